//! From a judgement to what is handed out: reports per audience, statements, signatures, all stored in one step.
//!
//! Signs what was judged and nothing else; a failure on the way stores nothing.

use super::evidence::{Evidence, Ground, LaneEvidence};
use super::{Rooms, off};
use crate::clock;
use crate::metrics::Happening;
use crate::sandbox::parts::isolation;
use crate::sign::sign;
use crate::store::{self, Audience, Completion, EventKind, MixedCase, StoredFile, Words};
use tokio::sync::mpsc;
use tribunal_core::held_out::Failures;
use tribunal_core::id::{Digest, RepoPath, ScoreId};
use tribunal_core::judge::{Judged, VerdictKind};
use tribunal_core::junit;
use tribunal_core::plan::ScoredPatch;
use tribunal_core::policy::{FeedbackLevel, Policy};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::report::{self, Material, Report, Timings};
use tribunal_core::statement::{self, Reports, Scored, Statements};

/// What ran, where something did.
pub(super) struct Ran<'a> {
    pub(super) ground: &'a Ground,
    pub(super) evidence: &'a Evidence,
    pub(super) overlay: &'a Digest,
    pub(super) files: &'a [RepoPath],
    pub(super) failures: Vec<Failures>,
    pub(super) mixed: Vec<MixedCase>,
}

/// Report, state, sign and store.
pub(super) async fn publish(
    rooms: &Rooms,
    id: &ScoreId,
    patch: &ScoredPatch,
    judged: &Judged,
    ran: Option<Ran<'_>>,
    timings: Timings,
    progress: &mpsc::Sender<EventKind>,
) -> Result<(), Aborted> {
    let words = Words {
        src_score: judged.verdict(VerdictKind::SrcScore).word(),
        oracle_integrity: judged.verdict(VerdictKind::OracleIntegrity).word(),
        flake_lease: judged.verdict(VerdictKind::FlakeLease).word(),
    };
    // A listener that went away does not end a score.
    let _gone = progress.send(EventKind::Judged { words }).await;
    let scored = Scored::of(
        id.clone(),
        rooms.scorer.clone(),
        patch,
        ran.as_ref().map(|ran| stated(ran, patch.policy())),
    );
    let nothing = LaneEvidence::default();
    let (property, lease_side) = match &ran {
        Some(ran) => (&ran.evidence.property, &ran.evidence.lease_side),
        None => (&nothing, &nothing),
    };
    let held_out = ran.as_ref().map(|ran| ran.evidence.held_out.sources());
    let merge_lane = ran.as_ref().map(|ran| ran.evidence.merge.sources());
    let asked = ran
        .as_ref()
        .and_then(|ran| ran.evidence.proposed.as_deref());
    let proposed = asked.map(tribunal_core::judge::advice);
    let report = Report::of(Material {
        judged,
        scored: &scored,
        pins: &patch.policy().pins,
        changes: patch.changes(),
        property: &property.sources(),
        held_out: held_out.as_deref().unwrap_or_default(),
        lease_side: &lease_side.sources(),
        merge_lane: merge_lane.as_deref().unwrap_or_default(),
        proposed: proposed.as_ref(),
        oracle: ran.as_ref().map(|ran| ran.ground.liveness()),
        timings,
    });
    let mut files = Vec::new();
    let mut digests = [const { None }; 3];
    let audiences = [Audience::Agent, Audience::Reader, Audience::Operator];
    for (audience, digest) in audiences.into_iter().zip(&mut digests) {
        let reader = reader(audience, patch.policy().feedback.agent);
        let bytes = report.render(judged, reader).map_err(unwritable)?;
        *digest = Some((audience, Digest::of(&bytes)));
        files.push(file("report.json", audience, bytes));
        files.push(file(
            "junit.xml",
            audience,
            junit::render(judged, reader).into_bytes(),
        ));
    }
    let digest_for = |wanted| {
        let found = digests
            .iter()
            .flatten()
            .find(|(audience, _)| *audience == wanted);
        found
            .map(|(_, digest)| digest.clone())
            .ok_or_else(|| unwritable("no report for this reader"))
    };
    let reports = Reports {
        operator: digest_for(Audience::Operator)?,
        full: digest_for(Audience::Reader)?,
        agent: digest_for(Audience::Agent)?,
    };
    // The key before the time: what is issued now lies within the dates of a key that was appointed before.
    let signer = rooms.signer.current()?;
    let statements = Statements::of(judged, &scored, &reports, clock::now()).map_err(unwritable)?;
    let envelopes = off(move || Ok(sign(statements, &*signer)?)).await?;
    let signed = envelopes.into_files().into_iter();
    files.extend(signed.map(|signed| file(&signed.name, Audience::Everyone, signed.bytes)));
    let (id, at) = (id.clone(), clock::now());
    let completion = Completion {
        words,
        files,
        mixed: ran.map(|ran| ran.mixed).unwrap_or_default(),
    };
    store::off(&rooms.store, move |s| {
        s.complete_score(&id, at, &completion)
    })
    .await?;
    let completed = Happening::ScoreCompleted {
        words,
        timings: &timings,
    };
    rooms.observer.note(completed);
    Ok(())
}

fn stated(ran: &Ran<'_>, policy: &Policy) -> statement::Ran {
    let image = &ran.ground.image;
    statement::Ran {
        overlay: ran.overlay.clone(),
        image: image.digest.to_string(),
        runner: image.runner_digest.to_string(),
        held_out: statement::HeldOut {
            planned: ran.evidence.held_out.planned,
            seen: u32::try_from(ran.evidence.held_out.head.len()).unwrap_or(u32::MAX),
            failures: ran.failures.clone(),
        },
        merge_overlay: ran.evidence.merge.overlay.clone(),
        isolation: ran
            .files
            .iter()
            .map(|file| (file.clone(), isolation(policy, file)))
            .collect(),
    }
}

/// What a role's token may see: agents as the policy allows, CI and maintainers what may leave the server, operators all.
fn reader(audience: Audience, agent: FeedbackLevel) -> report::Audience {
    match audience {
        Audience::Operator => report::Audience::Operator,
        Audience::Agent => report::Audience::Caller(agent),
        Audience::Everyone | Audience::Reader => report::Audience::Caller(FeedbackLevel::Full),
    }
}

fn file(name: &str, audience: Audience, bytes: Vec<u8>) -> StoredFile {
    StoredFile {
        name: name.to_owned(),
        audience,
        content: bytes.into(),
    }
}

fn unwritable(error: impl std::fmt::Display) -> Aborted {
    Aborted::new(
        AbortedCode::Internal,
        format!("failed to write a report: {error}"),
    )
}
