//! One score from request to signed files, one line a room.
//!
//! [`admit`] walks as far as the plan, inside the caller's own call: a refusal is that call's answer and leaves nothing.
//! [`score`] does the rest behind the queue: whatever the candidate causes there is a verdict, whatever fails there is
//! ours and signs nothing. Holds no rule of its own; those stand in `core`.

mod base;
mod cases;
mod deliver;
mod evidence;
mod held_out;
mod look;
mod merge_lane;
mod mixed;
mod modes;
mod must_fail;
mod mutants;
mod perturb;
mod prepared;
mod record;
mod replay;
mod resumed;
mod running;
mod scorer;
mod side_by_side;
mod vigil;

pub use base::BaseRun;
pub use cases::{SealedCase, SealedCases, cases};
pub use look::{Look, known, look_now};
pub use modes::{FileMode, Listed, SealedModes, modes};
pub use record::{Recording, ToRecord, record};
pub use replay::{Replayed, Rerun, replay};
pub use scorer::PipelineScorer;
pub use vigil::{Busy, Offers, Vigil, Wish, ask, keep, wish};

use crate::clock;
use crate::draws::Draws;
use crate::metrics::{Happening, Observer};
use crate::overlay;
use crate::repository::diff::DiffLimits;
use crate::repository::resolve::resolve;
use crate::repository::{Objects, Repository, RepositoryError, Viewer};
use crate::sandbox::Sandbox;
use crate::sign::Signer;
use crate::store::{EventKind, Store};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, info_span};
use tribunal_core::classify::classify;
use tribunal_core::id::ScoreId;
use tribunal_core::judge;
use tribunal_core::plan::{Course, Plan, ScoredPatch};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::report::Timings;
use tribunal_core::request::{Advice, Freshness, ScoreRequest};
use tribunal_core::statement::Scorer as ScorerName;

/// The rooms a score walks through, each behind its seam.
#[derive(Clone)]
pub struct Rooms {
    /// Mirrors and uploads.
    pub repository: Arc<dyn Repository>,
    /// Sealed rooms.
    pub sandbox: Arc<dyn Sandbox>,
    /// Who signs now: asked once per score, so that a rotation takes effect with the next one.
    pub signer: Arc<dyn SigningKey>,
    /// What outlives the process.
    pub store: Arc<dyn Store>,
    /// What draws held-out pins.
    pub draws: Arc<Draws>,
    /// The data folder, where images are on record.
    pub data: PathBuf,
    /// What statements call this server.
    pub scorer: ScorerName,
    /// Who hears of what happens.
    pub observer: Arc<dyn Observer>,
    /// What looks at oracles while nothing else runs.
    pub vigil: Vigil,
}

/// Where the present signing key comes from.
pub trait SigningKey: Send + Sync {
    /// The key that signs now.
    ///
    /// # Errors
    /// Ours: the key cannot be read.
    fn current(&self) -> Result<Arc<dyn Signer>, Aborted>;
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum NoVerdict {
    /// The request's fault.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Ours.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

impl From<RepositoryError> for NoVerdict {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::Refused(refused) => Self::Refused(refused),
            RepositoryError::Aborted(aborted) => Self::Aborted(aborted),
        }
    }
}

/// A request that will get its verdicts, or our apology: nothing about it can be refused any more.
pub struct Admitted {
    plan: Plan,
    objects: Arc<dyn Objects>,
    freshness: Freshness,
    advice: Advice,
    at: Instant,
}

impl Admitted {
    /// What is scored: head, base, tip, change set.
    #[must_use]
    pub fn patch(&self) -> &ScoredPatch {
        match &self.plan {
            Plan::Decided(decided) => decided.patch(),
            Plan::Run(plan) => plan.patch(),
        }
    }
}

/// From the request as far as the plan: refresh the mirror, resolve, classify, admit. Takes no container. Blocking.
///
/// # Errors
/// Refused by any room up to the plan, or our own trouble with the mirror.
pub fn admit(repository: &dyn Repository, request: &ScoreRequest) -> Result<Admitted, NoVerdict> {
    let viewer = Viewer {
        token: request.caller().token.clone(),
        role: request.caller().role,
    };
    let resolved = resolve(
        repository,
        request.repository(),
        &viewer,
        request.head(),
        request.base(),
    )?;
    let policy = match resolved.policy_bytes()? {
        None => Policy::default(),
        Some(bytes) => Policy::parse(&bytes)
            .map_err(|error| Refused::new(RefusedCode::PolicyInvalid, error.to_string()))?,
    };
    let patch = resolved.patch(&DiffLimits::default())?;
    let diff = classify(patch, policy.clone(), viewer.role)?;
    let plan = match Course::of(diff) {
        Course::Barred(barred) => {
            Plan::Decided(Box::new(barred.decide(resolved.base_oracle(&policy)?)))
        }
        Course::Open(open) => {
            let (oracle, src) = resolved.facts(&open)?;
            open.admit(oracle, src)?
        }
    };
    Ok(Admitted {
        plan,
        objects: Arc::clone(resolved.objects()),
        freshness: request.freshness(),
        advice: request.advice(),
        at: Instant::now(),
    })
}

/// From the plan to stored, signed verdicts. Sends what happens to `progress`; cancelling ends it within a second or so,
/// with nothing signed.
///
/// # Errors
/// Our own trouble only.
pub async fn score(
    rooms: &Rooms,
    id: ScoreId,
    admitted: Admitted,
    progress: mpsc::Sender<EventKind>,
    cancel: CancellationToken,
) -> Result<(), Aborted> {
    let gate = clock::now();
    let mut timings = Timings {
        queued_ms: millis(admitted.at.elapsed()),
        ..Timings::default()
    };
    let begun = Instant::now();
    match admitted.plan {
        Plan::Decided(decided) => {
            let judged = judge::judge_decided(&decided, gate);
            timings.total_ms = millis(admitted.at.elapsed());
            deliver::publish(
                rooms,
                &id,
                decided.patch(),
                &judged,
                None,
                timings,
                &progress,
            )
            .instrument(info_span!("publish"))
            .await
        }
        Plan::Run(plan) => {
            let objects = admitted.objects;
            let advice = admitted.advice;
            let (plan, overlay, laid, proposed) = off(move || {
                let overlay = overlay::build(Arc::clone(&objects), &plan)?;
                let changes = &plan.touched().changes;
                let laid = match changes.is_empty() {
                    true => None,
                    false => Some(overlay::lay(
                        Arc::clone(&objects),
                        &plan,
                        &overlay,
                        changes,
                    )?),
                };
                let asked = advice == Advice::Proposed;
                let proposed = match asked && !plan.touched().proposed.files.is_empty() {
                    true => {
                        let all = [changes.as_slice(), &plan.touched().proposed.changes].concat();
                        Some(overlay::lay(objects, &plan, &overlay, &all)?)
                    }
                    false => None,
                };
                Ok::<_, Aborted>((plan, overlay, laid, proposed))
            })
            .instrument(info_span!("overlay"))
            .await?;
            let run = evidence::Run {
                rooms,
                id: &id,
                plan: &plan,
                overlay: &overlay,
                progress: &progress,
                cancel: &cancel,
            };
            let _busy = rooms.vigil.busy(plan.patch().policy().limits.cpus);
            let ground = run.ground().instrument(info_span!("base")).await?;
            timings.prepare_ms = millis(begun.elapsed());
            let mut evidence = run
                .gather(&ground, admitted.freshness, gate)
                .instrument(info_span!("attempts"))
                .await?;
            evidence.merge = run
                .merge_lane(&ground, laid.as_ref(), admitted.freshness)
                .instrument(info_span!("merge-lane"))
                .await?;
            evidence.moved = run
                .perturb(&ground, laid.as_ref(), &evidence)
                .instrument(info_span!("perturb"))
                .await?;
            evidence.proposed = run
                .proposed(&ground, proposed.as_ref())
                .instrument(info_span!("proposed"))
                .await?;
            let judged = info_span!("judge")
                .in_scope(|| judge::judge(&plan, &evidence.of(&ground), gate))
                .map_err(|error| Aborted::new(AbortedCode::Internal, error.to_string()))?;
            evidence.tell(&*rooms.observer);
            let held_out = judged.held_out_failures().len();
            rooms.observer.note(Happening::HeldOutFailures(held_out));
            let failures = run.count(judged.held_out_failures().to_vec()).await?;
            timings.property_ms = millis(evidence.property.took);
            timings.held_out_ms = millis(evidence.held_out.took);
            timings.merge_lane_ms = millis(evidence.merge.took);
            timings.lease_side_ms = millis(evidence.lease_side.took);
            timings.total_ms = millis(admitted.at.elapsed());
            let ran = deliver::Ran {
                ground: &ground,
                evidence: &evidence,
                overlay: overlay.digest(),
                files: plan.files(),
                failures,
                mixed: run.mixed(&ground, laid.as_ref(), &evidence, &judged),
            };
            deliver::publish(
                rooms,
                &id,
                plan.patch(),
                &judged,
                Some(ran),
                timings,
                &progress,
            )
            .instrument(info_span!("publish"))
            .await?;
            if evidence.took_a_room() {
                for order in run.likely_next(&ground) {
                    rooms.sandbox.expect(order);
                }
            }
            if ground.mutants.is_none() {
                rooms.vigil.offer(|| run.planting(&ground).ok());
            }
            Ok(())
        }
    }
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// Blocking work off the async threads.
async fn off<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Aborted> + Send + 'static,
) -> Result<T, Aborted> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Aborted::new(AbortedCode::Internal, format!("a worker failed: {error}")))?
}
