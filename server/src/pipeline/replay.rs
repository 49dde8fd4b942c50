//! A stored score run again, for an operator who wants to see it fail: the same commits, the same pins, the held-out ones
//! too, and the tests that it touched.
//!
//! Nothing of it is evidence: no attempt is kept, nothing is judged, nothing is signed.

use super::evidence::Run;
use super::running::Keeping;
use super::{NoVerdict, Rooms, admit, off};
use crate::overlay;
use crate::sandbox::{Deserved, RunOrder, Sequel, deserving};
use crate::store::NewScore;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::Digest;
use tribunal_core::judge::MergeRun;
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::plan::{Finding, Plan};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::{Caller, RawScoreRequest};

/// What came of it.
pub enum Replayed {
    /// The patch is barred by what it is: nothing ran then, nothing runs now.
    Barred(Vec<Finding>),
    /// It ran.
    Ran(Box<Rerun>),
}

/// Attempts that are nobody's evidence.
pub struct Rerun {
    /// What they ran on.
    pub overlay: Digest,
    /// In which image.
    pub image: String,
    /// What base's own src does under the policy's pins.
    pub base: AttemptFacts,
    /// Pinned attempts, then held-out ones; the index of those is the number of their draw.
    pub attempts: Vec<AttemptFacts>,
    /// What the touched tests ran on, and their attempts by how often their files run; nothing where there are none.
    pub merge: Option<(Digest, Vec<MergeRun>)>,
}

/// Run what this score ran.
///
/// # Errors
/// Refused where its commits cannot be scored any more, or our own trouble.
pub async fn replay(
    rooms: &Rooms,
    asked: &NewScore,
    cancel: CancellationToken,
) -> Result<Replayed, NoVerdict> {
    let caller = Caller {
        token: asked.token.clone(),
        role: asked.role,
        scope: None,
    };
    let raw = RawScoreRequest {
        repository: asked.repository.to_string(),
        head: asked.head.to_string(),
        base: asked.base.to_string(),
        ..RawScoreRequest::default()
    };
    let repository = Arc::clone(&rooms.repository);
    let admitted = tokio::task::spawn_blocking(move || {
        let request = raw
            .check(&caller)
            .map_err(|error| Refused::new(RefusedCode::InvalidArgument, error.to_string()))?;
        admit(&*repository, &request)
    })
    .await
    .map_err(|error| {
        Aborted::new(
            AbortedCode::Internal,
            format!("an admission failed: {error}"),
        )
    })??;
    let plan = match admitted.plan {
        Plan::Decided(decided) => return Ok(Replayed::Barred(decided.findings().to_vec())),
        Plan::Run(plan) => plan,
    };
    let objects = admitted.objects;
    let (plan, overlay, laid) = off(move || {
        let overlay = overlay::build(Arc::clone(&objects), &plan)?;
        let touched = plan.touched();
        let laid = match touched.files.is_empty() {
            true => None,
            false => Some(overlay::lay(objects, &plan, &overlay, &touched.changes)?),
        };
        Ok((plan, overlay, laid))
    })
    .await?;
    // Nobody listens: what happens is the answer.
    let (progress, _) = mpsc::channel(1);
    let run = Run {
        rooms,
        id: &asked.id,
        plan: &plan,
        overlay: &overlay,
        progress: &progress,
        cancel: &cancel,
    };
    let ground = run.ground().await?;
    let key = run.evidence_key(&ground, Lane::Property, "");
    let before = run.held_out_before(&key).await?;
    let draws: BTreeSet<u32> = before
        .head
        .iter()
        .map(|attempt| attempt.index)
        .chain(0..before.planned)
        .collect();
    let draws: Vec<u32> = draws.into_iter().collect();
    let mut order = RunOrder {
        attempts: run.pinned(),
        ..run.order(&ground.image, &ground.tree, overlay.src_tar())
    };
    let held_out = run.drawn(&draws, &before.head, &mut order.starts);
    order.sequel = (!held_out.is_empty()).then(|| Sequel {
        lane: Lane::HeldOut,
        attempts: held_out,
        deserved: deserving(|_| Deserved::Yes),
    });
    let over = run.run(order, Keeping::Silence).await?;
    let merge = match &laid {
        Some(laid) => {
            let files = &plan.touched().files;
            let runs = run.unkept(&ground, laid, files, Lane::Merge).await?;
            Some((laid.digest().clone(), runs))
        }
        None => None,
    };
    Ok(Replayed::Ran(Box::new(Rerun {
        overlay: overlay.digest().clone(),
        image: ground.image.digest.to_string(),
        base: ground.base.attempt,
        attempts: over.facts.attempts,
        merge,
    })))
}
