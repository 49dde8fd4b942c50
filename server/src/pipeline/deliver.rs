//! From a judgement to what is handed out: reports per audience, statements, signatures, all stored in one step.
//!
//! Signs what was judged and nothing else; a failure on the way stores nothing.

use super::evidence::{Evidence, Ground};
use super::{Rooms, off};
use crate::clock;
use crate::sign::sign;
use crate::store::{self, Audience, Completion, EventKind, StoredFile, Words};
use tokio::sync::mpsc;
use tribunal_core::id::{Digest, RepoPath, ScoreId};
use tribunal_core::judge::{Judged, VerdictKind};
use tribunal_core::plan::ScoredPatch;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::statement::{Isolation, Reports, Scored, Statements};

/// What ran, where something did.
pub(super) struct Ran<'a> {
    pub(super) ground: &'a Ground,
    pub(super) evidence: &'a Evidence,
    pub(super) overlay: &'a Digest,
    pub(super) files: &'a [RepoPath],
}

/// Report, state, sign and store.
pub(super) async fn publish(
    rooms: &Rooms,
    id: &ScoreId,
    patch: &ScoredPatch,
    judged: &Judged,
    ran: Option<Ran<'_>>,
    progress: &mpsc::Sender<EventKind>,
) -> Result<(), Aborted> {
    let words = Words {
        src_score: judged.verdict(VerdictKind::SrcScore).word(),
        oracle_integrity: judged.verdict(VerdictKind::OracleIntegrity).word(),
        flake_lease: judged.verdict(VerdictKind::FlakeLease).word(),
    };
    let _gone = progress.send(EventKind::Judged { words }).await;
    let report = serde_json::json!({"reasons": format!("{:?}", judged.verdicts()), "cases": format!("{:?}", judged.cases())}).to_string();
    let reports = Reports {
        operator: Digest::of(report.as_bytes()),
        delivered: Digest::of(report.as_bytes()),
    };
    let scored = scored(rooms, id, patch, ran.as_ref());
    let statements = Statements::of(judged, &scored, &reports, clock::now())
        .map_err(|error| Aborted::new(AbortedCode::Internal, error.to_string()))?;
    let signer = rooms.signer.current()?;
    let envelopes = off(move || Ok(sign(statements, &*signer)?)).await?;
    let mut files = vec![StoredFile {
        name: "report.json".into(),
        audience: Audience::Everyone,
        content: report.into_bytes().into(),
    }];
    files.extend(envelopes.into_files().into_iter().map(|file| StoredFile {
        name: file.name,
        audience: Audience::Everyone,
        content: file.bytes.into(),
    }));
    let (id, at) = (id.clone(), clock::now());
    store::off(&rooms.store, move |s| {
        s.complete_score(&id, at, &Completion { words, files })
    })
    .await?;
    Ok(())
}

fn scored(rooms: &Rooms, id: &ScoreId, patch: &ScoredPatch, ran: Option<&Ran<'_>>) -> Scored {
    let ran = ran.map(|ran| tribunal_core::statement::Ran {
        overlay: ran.overlay.clone(),
        image: ran.ground.image.digest.to_string(),
        runner: ran.ground.image.runner_digest.to_string(),
        isolation: ran
            .files
            .iter()
            .map(|file| (file.clone(), Isolation::Shared))
            .collect(),
    });
    Scored::of(id.clone(), rooms.scorer.clone(), patch, ran)
}
