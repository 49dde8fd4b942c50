//! What of a repository's base this server cannot score, said before an agent's patch meets it.

use crate::clock;
use crate::overlay;
use crate::pipeline::NoVerdict;
use crate::repository::diff::DiffLimits;
use crate::repository::resolve::resolve;
use crate::repository::{ProtectedTip, Repository, Viewer};
use tribunal_core::classify::classify;
use tribunal_core::id::{RepoName, TokenId};
use tribunal_core::plan::{Course, Finding, Plan, unsupported};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::Role;
use tribunal_core::text::shown;

/// The base as a score would meet it.
pub(super) struct Survey {
    /// Sealed test files that would run.
    pub(super) sealed_files: usize,
    /// What stands in the way, or will be judged.
    pub(super) notes: Vec<String>,
}

/// Look at the protected tip.
pub(super) fn survey(
    room: &dyn Repository,
    repo: &RepoName,
    tip: &ProtectedTip,
) -> Result<Survey, NoVerdict> {
    let viewer = Viewer {
        token: nobody()?,
        role: Role::Operator,
    };
    let resolved = resolve(room, repo, &viewer, &tip.commit, None)?;
    let mut survey = Survey {
        sealed_files: 0,
        notes: Vec::new(),
    };
    let policy = match resolved.policy_bytes()?.map(|bytes| Policy::parse(&bytes)) {
        None => Policy::default(),
        Some(Ok(policy)) => policy,
        Some(Err(error)) => {
            survey.notes.push(format!("policy-invalid: {error}"));
            return Ok(survey);
        }
    };
    let patch = resolved.patch(&DiffLimits::default())?;
    let diff = classify(patch, policy.clone(), viewer.role)?;
    // The tip against itself changes nothing, so nothing is barred.
    let Course::Open(open) = Course::of(diff) else {
        return Ok(survey);
    };
    let (oracle, src) = resolved.facts(&open)?;
    let mut found = unsupported(&policy, &src);
    match open.admit(oracle, src)? {
        Plan::Decided(decided) => found.extend_from_slice(decided.findings()),
        Plan::Run(plan) => {
            survey.sealed_files = plan.files().len();
            found.extend(plan.oracle_findings(clock::now()));
        }
    }
    survey.notes.extend(found.iter().map(note));
    let tree = &resolved.commits().base.tree;
    let left_out =
        overlay::left_out(&**resolved.objects(), tree, &policy).map_err(Aborted::from)?;
    let told = left_out
        .iter()
        .map(|(path, why)| format!("left out: {path}: {why}"));
    survey.notes.extend(told);
    if survey.sealed_files == 0 && survey.notes.is_empty() {
        let note = "no-cases: there is no sealed test file, so no score can pass";
        survey.notes.push(note.to_owned());
    }
    Ok(survey)
}

fn note(finding: &Finding) -> String {
    let subject = finding.subject.as_deref().unwrap_or_default();
    let parts = [
        finding.reason.code().to_owned(),
        shown(subject, 200),
        shown(&finding.detail, 300),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// A viewer that sent nothing.
fn nobody() -> Result<TokenId, Aborted> {
    "0000000000000000"
        .parse()
        .map_err(|_| Aborted::new(AbortedCode::Internal, "the nobody token has no id"))
}
