//! The attempts of one score: those that the store has of the same content, or new ones, kept as they end.
//!
//! Evidence is only ever added. A stored attempt is never outvoted: whatever ran on this content before goes to the judge
//! beside what runs now. Never judges.

use super::base::{BaseRun, key};
use super::{Rooms, off};
use crate::clock;
use crate::image::{self, BuiltImage, ImageError};
use crate::overlay::SealedOverlay;
use crate::sandbox::{
    AttemptMode, AttemptOrder, RunEvent, RunFacts, RunOrder, SandboxError, SealedTree,
};
use crate::store::{self, AttemptKey, AttemptSource, EventKind, StoreError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{NodeId, ScoreId, UnixTime};
use tribunal_core::judge::{self, Mutants};
use tribunal_core::lease::Functions;
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::plan::RunPlan;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::report;
use tribunal_core::request::Freshness;

/// Events of one run that may wait to be stored.
const EVENTS: usize = 256;

/// What stands before any attempt of head: the image, the sealed tree, and what base does.
pub(super) struct Ground {
    pub(super) image: BuiltImage,
    pub(super) tree: SealedTree,
    pub(super) base: BaseRun,
    /// What became of planted changes; `None` until they were run.
    pub(super) mutants: Option<Mutants>,
}

/// All attempts that the judge sees.
pub(super) struct Evidence {
    pub(super) property: LaneEvidence,
    pub(super) lease_side: LaneEvidence,
}

/// The attempts of one lane.
#[derive(Default)]
pub(super) struct LaneEvidence {
    /// Oldest first: what was stored, then what was run.
    pub(super) attempts: Vec<AttemptFacts>,
    /// How many of them were stored.
    pub(super) stored: usize,
    /// How long it took to have them.
    pub(super) took: Duration,
}

impl LaneEvidence {
    /// Each attempt with where it came from.
    pub(super) fn sources(&self) -> Vec<(report::AttemptSource, &AttemptFacts)> {
        let source = |n| {
            if n < self.stored {
                report::AttemptSource::Stored
            } else {
                report::AttemptSource::Fresh
            }
        };
        let all = self.attempts.iter().enumerate();
        all.map(|(n, facts)| (source(n), facts)).collect()
    }
}

impl Evidence {
    /// As the judge takes it.
    pub(super) fn of<'a>(&'a self, ground: &'a Ground) -> judge::Evidence<'a> {
        judge::Evidence {
            base: &ground.base.attempt,
            base_run: std::slice::from_ref(&ground.base.attempt),
            property: &self.property.attempts,
            lease_side: &self.lease_side.attempts,
            functions: Functions {
                digests: &ground.base.digests,
                tag: &ground.base.python_tag,
            },
            need_shared: &ground.base.need_shared,
            liveness: judge::Liveness {
                null: ground.base.null,
                mutants: ground.mutants.as_ref(),
            },
        }
    }
}

/// One score on its way through the sandbox.
pub(super) struct Run<'a> {
    pub(super) rooms: &'a Rooms,
    pub(super) id: &'a ScoreId,
    pub(super) plan: &'a RunPlan,
    pub(super) overlay: &'a SealedOverlay,
    pub(super) progress: &'a mpsc::Sender<EventKind>,
    pub(super) cancel: &'a CancellationToken,
}

impl Run<'_> {
    /// Image, sealed tree, and base's own run: from the store where they are known.
    pub(super) async fn ground(&self) -> Result<Ground, Aborted> {
        let tag = self.plan.patch().policy().runner.image.clone();
        let (data, wanted) = (self.rooms.data.clone(), tag.clone());
        let image = off(move || image::find(&data, &wanted).map_err(unreadable))
            .await?
            .ok_or_else(|| {
                let message =
                    format!("the policy wants the image {tag}, which is not registered here");
                Aborted::new(AbortedCode::ImageMissing, message)
            })?;
        self.tell("sealing the base tree").await;
        let tree = self
            .rooms
            .sandbox
            .seal(self.overlay.tree(&image.engine_id))
            .await
            .map_err(|SandboxError::Aborted(aborted)| aborted)?;
        let base = self.base(&image, &tree).await?;
        let mutants = self.known_mutants(&image).await?;
        Ok(Ground {
            image,
            tree,
            base,
            mutants,
        })
    }

    /// The attempts of the property lane, and of the lease side run where base's leases want one.
    pub(super) async fn gather(
        &self,
        ground: &Ground,
        freshness: Freshness,
        gate: UnixTime,
    ) -> Result<Evidence, Aborted> {
        let pinned =
            self.plan.attempts().iter().map(|planned| {
                AttemptOrder::of(planned.index, planned.start, planned.pins.clone())
            });
        let property = self
            .lane(ground, Lane::Property, pinned.collect(), freshness, "")
            .await?;
        let mut evidence = Evidence {
            property,
            lease_side: LaneEvidence::default(),
        };
        let side = judge::side_run(
            self.plan,
            &ground.base.attempt,
            &evidence.property.attempts,
            gate,
        );
        if !side.is_empty() {
            let leased = side.cases;
            let names: Vec<&str> = leased.iter().map(NodeId::as_str).collect();
            let names = names.join("\n");
            let unsilenced = self.plan.attempts().iter().map(|planned| AttemptOrder {
                mode: AttemptMode::Unsilenced,
                only: Some(leased.clone()),
                ..AttemptOrder::of(planned.index, planned.start, planned.pins.clone())
            });
            evidence.lease_side = self
                .lane(
                    ground,
                    Lane::LeaseSide,
                    unsilenced.collect(),
                    freshness,
                    &names,
                )
                .await?;
        }
        Ok(evidence)
    }

    /// One lane's evidence: stored attempts first, then, where they do not suffice, a whole run of new ones.
    async fn lane(
        &self,
        ground: &Ground,
        lane: Lane,
        attempts: Vec<AttemptOrder>,
        freshness: Freshness,
        extra: &str,
    ) -> Result<LaneEvidence, Aborted> {
        let begun = Instant::now();
        let content = key(&[
            "attempts/v1",
            self.overlay.digest().as_str(),
            &ground.image.engine_id,
            ground.image.runner_digest.as_str(),
            self.plan.patch().policy().digest().as_str(),
            extra,
        ]);
        let evidence = AttemptKey { content, lane };
        let stored = store::off(&self.rooms.store, {
            let evidence = evidence.clone();
            move |s| s.attempts(&evidence)
        })
        .await?;
        let mut all: Vec<AttemptFacts> = stored.into_iter().map(|a| a.facts).collect();
        let stored = all.len();
        if freshness == Freshness::Stored && stored >= attempts.len() {
            let total = count(stored);
            for index in 0..total {
                self.send(EventKind::AttemptEnded {
                    lane,
                    index,
                    total,
                    source: AttemptSource::Stored,
                })
                .await;
            }
            return Ok(LaneEvidence {
                attempts: all,
                stored,
                took: begun.elapsed(),
            });
        }
        let order = RunOrder {
            lane,
            attempts,
            ..self.order(&ground.image, &ground.tree, self.overlay.src_tar())
        };
        all.extend(self.run(order, Some(evidence)).await?.attempts);
        Ok(LaneEvidence {
            attempts: all,
            stored,
            took: begun.elapsed(),
        })
    }

    pub(super) fn order(
        &self,
        image: &BuiltImage,
        tree: &SealedTree,
        src_tar: bytes::Bytes,
    ) -> RunOrder {
        RunOrder {
            score: self.id.to_string(),
            lane: Lane::Property,
            image: image.engine_id.clone(),
            tree: tree.clone(),
            src_tar,
            files: self.plan.files().to_vec(),
            policy: self.plan.patch().policy().clone(),
            starts: self.plan.starts().to_vec(),
            attempts: Vec::new(),
            sequel: None,
            digests: Vec::new(),
            plant: None,
        }
    }

    /// Run an order, telling and keeping what happens while it happens.
    pub(super) async fn run(
        &self,
        order: RunOrder,
        keep: Option<AttemptKey>,
    ) -> Result<RunFacts, Aborted> {
        let (lane, total) = (order.lane, count(order.attempts.len()));
        let (events, mut inbox) = mpsc::channel(EVENTS);
        // A child: our own trouble ends this run without looking like the caller's cancel.
        let cancel = self.cancel.child_token();
        let running = self.rooms.sandbox.run(order, events, cancel.clone());
        let listening = async {
            let mut kept = Ok(());
            while let Some(event) = inbox.recv().await {
                // After a failed write the rest is still drained: the sandbox must not stall on a full inbox.
                if let (RunEvent::AttemptEnded(facts), Some(evidence), Ok(())) =
                    (&event, &keep, &kept)
                {
                    kept = self.keep(evidence, facts).await;
                    if kept.is_err() {
                        cancel.cancel();
                    }
                }
                if let Some(told) = told(event, lane, total) {
                    self.send(told).await;
                }
            }
            kept
        };
        let (facts, kept) = tokio::join!(running, listening);
        kept?;
        facts.map_err(|SandboxError::Aborted(aborted)| aborted)
    }

    async fn keep(&self, evidence: &AttemptKey, facts: &AttemptFacts) -> Result<(), StoreError> {
        let (evidence, facts, run, at) = (
            evidence.clone(),
            facts.clone(),
            self.id.clone(),
            clock::now(),
        );
        store::off(&self.rooms.store, move |s| {
            s.append_attempt(&evidence, &run, at, &facts)
        })
        .await
    }

    pub(super) async fn tell(&self, stage: &str) {
        self.send(EventKind::Preparing {
            stage: stage.to_owned(),
        })
        .await;
    }

    /// A listener that went away does not end a score.
    async fn send(&self, event: EventKind) {
        let _gone = self.progress.send(event).await;
    }
}

fn told(event: RunEvent, lane: Lane, total: u32) -> Option<EventKind> {
    match event {
        RunEvent::Ready => None,
        RunEvent::SequelBegun => Some(EventKind::Preparing {
            stage: match lane {
                Lane::BaseCollection | Lane::Liveness => "seeing whether the oracle is alive",
                Lane::Property | Lane::LeaseSide | Lane::HeldOut => {
                    "running under pins that were not announced"
                }
            }
            .to_owned(),
        }),
        RunEvent::AttemptStarted(index) => Some(EventKind::AttemptStarted { lane, index, total }),
        RunEvent::CasesDone(index, done) => Some(EventKind::CasesDone {
            lane,
            index,
            done,
            total: 0,
        }),
        // Of a sequel nothing is told before the verdict.
        RunEvent::AttemptEnded(facts) => (facts.lane == lane).then_some(EventKind::AttemptEnded {
            lane,
            index: facts.index,
            total,
            source: AttemptSource::Run,
        }),
    }
}

fn unreadable(error: ImageError) -> Aborted {
    Aborted::new(AbortedCode::Internal, error.to_string())
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
