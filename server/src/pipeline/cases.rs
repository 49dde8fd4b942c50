//! The sealed cases of a commit with their functions' digests, for whoever writes leases.
//!
//! Walks the same rooms as a score as far as base's own run, and no further: no attempt of the commit's src is made.

use super::{NoVerdict, Rooms, admit, evidence};
use crate::sandbox::FunctionDigest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, NodeId, RepoName, RepoPath, ScoreId};
use tribunal_core::outcome::Signature;
use tribunal_core::plan::Plan;
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::{Caller, RawScoreRequest};

/// The sealed cases of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCases {
    /// The commit that was read.
    pub commit: CommitId,
    /// In manifest order.
    pub cases: Vec<SealedCase>,
    /// Sealed files that could not be imported or compiled, with the message. Raw text: escape before showing.
    pub uncollected: Vec<(RepoPath, String)>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCase {
    /// The runner's id.
    pub node: NodeId,
    /// Its file.
    pub file: RepoPath,
    /// What a lease names: file stem, classes, function, dotted.
    pub qualname: String,
    /// Its function's digests; `None` where it has no code object.
    pub digest: Option<FunctionDigest>,
    /// Names of the marks it carries.
    pub marks: Vec<String>,
    /// How it fails when its silence is taken off; `None` where it is not silenced, or passes.
    pub signature: Option<Signature>,
}

/// Collect a commit's sealed files, on base's own src. `None` is the protected tip.
///
/// # Errors
/// Refused as by [`admit`], or our own trouble.
pub async fn cases(
    rooms: &Rooms,
    caller: &Caller,
    repository: &RepoName,
    commit: Option<&CommitId>,
    cancel: CancellationToken,
) -> Result<SealedCases, NoVerdict> {
    let (rooms_, caller, name, commit) = (
        rooms.clone(),
        caller.clone(),
        repository.clone(),
        commit.cloned(),
    );
    let (commit, admitted) = tokio::task::spawn_blocking(move || {
        let commit = match commit {
            Some(commit) => commit,
            None => rooms_.repository.refresh(&name)?.commit,
        };
        let raw = RawScoreRequest {
            repository: name.to_string(),
            head: commit.to_string(),
            ..RawScoreRequest::default()
        };
        let request = raw
            .check(&caller)
            .map_err(|error| Refused::new(RefusedCode::InvalidArgument, error.to_string()))?;
        Ok::<_, NoVerdict>((commit, admit(&*rooms_.repository, &request)?))
    })
    .await
    .map_err(|error| {
        Aborted::new(
            AbortedCode::Internal,
            format!("an admission failed: {error}"),
        )
    })??;
    let plan = match admitted.plan {
        Plan::Run(plan) => plan,
        Plan::Decided(decided) => {
            let why: Vec<String> = decided
                .findings()
                .iter()
                .map(|f| format!("{}: {}", f.reason, f.detail))
                .collect();
            return Err(Refused::new(RefusedCode::InvalidArgument, why.join("; ")).into());
        }
    };
    // Nobody listens: the events of a listing are its answer.
    let (progress, _) = mpsc::channel(1);
    let id: ScoreId = listing_id(&commit)?;
    let objects = admitted.objects;
    let (plan, overlay) = super::off(move || {
        let overlay = crate::overlay::build(objects, &plan)?;
        Ok((plan, overlay))
    })
    .await?;
    let run = evidence::Run {
        rooms,
        id: &id,
        plan: &plan,
        overlay: &overlay,
        progress: &progress,
        cancel: &cancel,
    };
    let ground = run.ground().await?;
    let signatures = run.signatures(&ground).await?;
    let base = ground.base;
    let digest_of = |file: &RepoPath, name: &str| {
        let mut all = base.digests.iter();
        all.find(|d| d.file == *file && d.qualname == name).cloned()
    };
    let cases = base.attempt.collected.iter().map(|case| SealedCase {
        node: case.node.clone(),
        qualname: format!("{}.{}", stem(&case.file), case.qualname),
        digest: digest_of(&case.file, &case.qualname),
        marks: case.marks.clone(),
        signature: signatures
            .iter()
            .find(|(node, _)| *node == case.node)
            .map(|(_, signature)| signature.clone()),
        file: case.file.clone(),
    });
    let errors = base.attempt.collection_errors.iter();
    let errors = errors.map(|e| {
        (
            e.file.clone(),
            format!("{}: {}", e.exception.kind, e.exception.message),
        )
    });
    Ok(SealedCases {
        commit,
        cases: cases.collect(),
        uncollected: errors.chain(base.undigested.iter().cloned()).collect(),
    })
}

/// Names the room that a listing may need; a listing is no score and is stored nowhere.
fn listing_id(commit: &CommitId) -> Result<ScoreId, Aborted> {
    let text: String = commit.as_str().chars().take(32).collect();
    text.parse().map_err(|_| {
        Aborted::new(
            AbortedCode::Internal,
            "a commit id is shorter than a score id",
        )
    })
}

fn stem(file: &RepoPath) -> &str {
    let name = file.as_str().rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".py").unwrap_or(name)
}
