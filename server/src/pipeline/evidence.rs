//! The attempts of one score: those that the store has of the same content, or new ones, kept as they end.
//!
//! Evidence is only ever added. A stored attempt is never outvoted: whatever ran on this content before goes to the judge
//! beside what runs now. Never judges.

use super::base::{BaseRun, key};
use super::held_out::HeldOutRuns;
use super::merge_lane::MergeLane;
use super::must_fail::MustFailRuns;
use super::running::Keeping;
use super::side_by_side::{Meeting, Share, alike, shares};
use super::{Rooms, off};
use crate::image::{self, BuiltImage, ImageError};
use crate::metrics::{Happening, Observer, Source};
use crate::overlay::SealedOverlay;
use crate::sandbox::{
    AttemptMode, AttemptOrder, Deserved, RunOrder, SandboxError, SealedTree, Sequel,
};
use crate::store::{self, AttemptKey, AttemptSource, EventKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{NodeId, ScoreId, UnixTime};
use tribunal_core::judge::{self, MergeRun, Moved, Mutants};
use tribunal_core::lease::Functions;
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::plan::RunPlan;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::report;
use tribunal_core::request::Freshness;

/// What stands before any attempt of head: the image, the sealed tree, and what base does.
pub(super) struct Ground {
    pub(super) image: BuiltImage,
    pub(super) tree: SealedTree,
    pub(super) base: BaseRun,
    /// What became of planted changes; `None` until they were run.
    pub(super) mutants: Option<Mutants>,
}

impl Ground {
    /// What is known of the oracle.
    pub(super) fn liveness(&self) -> judge::Liveness<'_> {
        judge::Liveness {
            null: self.base.null,
            mutants: self.mutants.as_ref(),
        }
    }
}

/// All attempts that the judge sees.
pub(super) struct Evidence {
    pub(super) property: LaneEvidence,
    /// Base's own src under draws of those.
    pub(super) base_under: Vec<AttemptFacts>,
    pub(super) held_out: HeldOutRuns,
    pub(super) must_fail: MustFailRuns,
    pub(super) lease_side: LaneEvidence,
    pub(super) merge: MergeLane,
    /// Proposed tests, for advice; `None` where nobody asked.
    pub(super) proposed: Option<Vec<MergeRun>>,
    /// The one change of pins that settles a mixed case.
    pub(super) moved: BTreeMap<NodeId, Moved>,
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
    /// Whether attempts were made for this score, not only read from the store.
    pub(super) fn took_a_room(&self) -> bool {
        self.property.attempts.len() > self.property.stored
    }

    /// How many attempts it has, and where they came from.
    pub(super) fn tell(&self, observer: &dyn Observer) {
        let pinned = (self.property.attempts.len(), self.property.stored);
        let side = (self.lease_side.attempts.len(), self.lease_side.stored);
        let drawn = (self.held_out.head.len(), self.held_out.stored);
        for (all, stored) in [pinned, side, drawn] {
            for (from, count) in [
                (Source::Stored, stored),
                (Source::Run, all.saturating_sub(stored)),
            ] {
                observer.note(Happening::Attempts { from, count });
            }
        }
    }

    /// As the judge takes it.
    pub(super) fn of<'a>(&'a self, ground: &'a Ground) -> judge::Evidence<'a> {
        judge::Evidence {
            base: &ground.base.attempt,
            base_run: std::slice::from_ref(&ground.base.attempt),
            property: &self.property.attempts,
            base_under: &self.base_under,
            held_out: self.held_out.of(),
            must_fail: self.must_fail.of(),
            lease_side: &self.lease_side.attempts,
            merge: self.merge.of(),
            functions: Functions {
                digests: &ground.base.digests,
                tag: &ground.base.python_tag,
            },
            need_shared: &ground.base.need_shared,
            liveness: ground.liveness(),
            moved: &self.moved,
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
        let image = self.image().await?;
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

    /// The image that the policy names.
    pub(super) async fn image(&self) -> Result<BuiltImage, Aborted> {
        let tag = self.plan.patch().policy().runner.image.clone();
        let (data, wanted) = (self.rooms.data.clone(), tag.clone());
        off(move || image::find(&data, &wanted).map_err(unreadable))
            .await?
            .ok_or_else(|| {
                let message =
                    format!("the policy wants the image {tag}, which is not registered here");
                Aborted::new(AbortedCode::ImageMissing, message)
            })
    }

    /// The attempts of the property lane, and of the lease side run where base's leases want one.
    pub(super) async fn gather(
        &self,
        ground: &Ground,
        freshness: Freshness,
        gate: UnixTime,
    ) -> Result<Evidence, Aborted> {
        let keep = self.evidence_key(ground, Lane::Property, "");
        let mut evidence = Evidence {
            property: LaneEvidence::default(),
            base_under: Vec::new(),
            held_out: self.held_out_before(&keep).await?,
            must_fail: MustFailRuns::default(),
            lease_side: LaneEvidence::default(),
            merge: MergeLane::default(),
            proposed: None,
            moved: BTreeMap::new(),
        };
        self.property(ground, freshness, &keep, &mut evidence)
            .await?;
        self.held_out_after(ground, &keep, &mut evidence).await?;
        self.must_fail_after(ground, &mut evidence).await?;
        self.tampers_after(ground, &mut evidence).await?;
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
            let keep = self.evidence_key(ground, Lane::LeaseSide, &names);
            evidence.lease_side = self
                .lane(ground, unsilenced.collect(), freshness, keep)
                .await?;
        }
        Ok(evidence)
    }

    /// What the next score of this base is likely to order: the same with another src, and draws of its own.
    pub(super) fn likely_next(&self, ground: &Ground) -> Vec<RunOrder> {
        let pinned = self.pinned();
        let held_out = self.plan.patch().policy().runs.held_out as usize;
        // Samples: they are never run, and a room that waits holds no draw.
        let draws = pinned.iter().cycle().take(held_out).cloned().collect();
        let shares = alike(shares(self.plan.starts(), pinned, draws));
        let never = Some(|_: &[AttemptFacts]| Deserved::No);
        self.in_rooms(ground, shares, never, &[])
    }

    /// The N attempts under the policy's pins.
    pub(super) fn pinned(&self) -> Vec<AttemptOrder> {
        let planned = self.plan.attempts().iter();
        planned
            .map(|planned| {
                AttemptOrder::of(planned.index, planned.start, planned.pins.clone())
                    .asked(self.questions(Lane::Property, planned.index))
            })
            .collect()
    }

    /// The pinned attempts, and in the same rooms those under held-out pins if they deserve them.
    async fn property(
        &self,
        ground: &Ground,
        freshness: Freshness,
        keep: &AttemptKey,
        evidence: &mut Evidence,
    ) -> Result<(), Aborted> {
        let begun = Instant::now();
        let mut lane = self.stored(keep).await?;
        let attempts = self.pinned();
        if freshness == Freshness::Stored && lane.stored >= attempts.len() {
            self.tell_stored(keep.lane, lane.stored).await;
        } else {
            let held_out = &mut evidence.held_out;
            let missing = held_out.missing(freshness);
            let draws = self.drawn(&missing, &held_out.head, &mut self.plan.starts().to_vec());
            let deserving = (!draws.is_empty()).then(|| self.deserving(ground));
            let shares = shares(self.plan.starts(), attempts, draws);
            let orders = self.in_rooms(ground, shares, deserving, &lane.attempts);
            let ran = self.run_all(orders, Keeping::Told(keep.clone())).await?;
            let (pinned, followed) = ran
                .facts
                .attempts
                .into_iter()
                .partition::<Vec<_>, _>(|facts| facts.lane == keep.lane);
            lane.attempts.extend(pinned);
            held_out.head.extend(followed);
            held_out.took = ran.sequel;
        }
        lane.took = begun.elapsed().saturating_sub(evidence.held_out.took);
        evidence.property = lane;
        Ok(())
    }

    /// An order for each share. Their draws are decided on together, if there are any.
    fn in_rooms(
        &self,
        ground: &Ground,
        shares: Vec<Share>,
        deserving: Option<impl Fn(&[AttemptFacts]) -> Deserved + Send + Sync + 'static>,
        stored: &[AttemptFacts],
    ) -> Vec<RunOrder> {
        let meeting = deserving.map(|by| Meeting::of(shares.len(), stored.to_vec(), by));
        let orders = shares.into_iter().map(|share| RunOrder {
            free_starts: share.draws.len(),
            starts: share.starts,
            attempts: share.attempts,
            sequel: meeting.as_ref().map(|meeting| Sequel {
                lane: Lane::HeldOut,
                attempts: share.draws,
                deserved: meeting.seat(),
            }),
            ..self.order(&ground.image, &ground.tree, self.overlay.src_tar())
        });
        orders.collect()
    }

    /// One lane's evidence: stored attempts first, then, where they do not suffice, a whole run of new ones.
    async fn lane(
        &self,
        ground: &Ground,
        attempts: Vec<AttemptOrder>,
        freshness: Freshness,
        keep: AttemptKey,
    ) -> Result<LaneEvidence, Aborted> {
        let begun = Instant::now();
        let mut lane = self.stored(&keep).await?;
        if freshness == Freshness::Stored && lane.stored >= attempts.len() {
            self.tell_stored(keep.lane, lane.stored).await;
        } else {
            let order = RunOrder {
                lane: keep.lane,
                attempts,
                ..self.order(&ground.image, &ground.tree, self.overlay.src_tar())
            };
            let ran = self.run(order, Keeping::Told(keep)).await?;
            lane.attempts.extend(ran.facts.attempts);
        }
        lane.took = begun.elapsed();
        Ok(lane)
    }

    /// Under what name attempts of this content are kept.
    pub(super) fn evidence_key(&self, ground: &Ground, lane: Lane, extra: &str) -> AttemptKey {
        let content = key(&[
            "attempts/v2",
            self.overlay.digest().as_str(),
            &ground.image.engine_id,
            ground.image.runner_digest.as_str(),
            self.plan.patch().policy().digest().as_str(),
            &replayed(self.plan),
            &self.own_names().join(" "),
            extra,
        ]);
        AttemptKey { content, lane }
    }

    pub(super) async fn stored(&self, evidence: &AttemptKey) -> Result<LaneEvidence, Aborted> {
        let evidence = evidence.clone();
        let stored = store::off(&self.rooms.store, move |s| s.attempts(&evidence)).await?;
        let attempts: Vec<AttemptFacts> = stored.into_iter().map(|a| a.facts).collect();
        Ok(LaneEvidence {
            stored: attempts.len(),
            attempts,
            took: Duration::ZERO,
        })
    }

    async fn tell_stored(&self, lane: Lane, stored: usize) {
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
            own_names: self.own_names(),
            policy: self.plan.patch().policy().clone(),
            starts: self.plan.starts().to_vec(),
            free_starts: 0,
            attempts: Vec::new(),
            sequel: None,
            digests: Vec::new(),
            cassettes: self.plan.cassettes().to_vec(),
            outside: None,
            plant: None,
            marks: Vec::new(),
        }
    }

    fn own_names(&self) -> Vec<String> {
        let roots = &self.plan.patch().policy().runner.pythonpath;
        self.plan.src().own_names(roots).into_iter().collect()
    }

    pub(super) async fn tell(&self, stage: &str) {
        self.send(EventKind::Preparing {
            stage: stage.to_owned(),
        })
        .await;
    }

    /// A listener that went away does not end a score.
    pub(super) async fn send(&self, event: EventKind) {
        let _gone = self.progress.send(event).await;
    }
}

/// The digest of the records in effect, for the names under which attempts are kept; empty where nothing is replayed.
pub(super) fn replayed(plan: &RunPlan) -> String {
    let digest = plan.cassettes_digest();
    digest.map(ToString::to_string).unwrap_or_default()
}

fn unreadable(error: ImageError) -> Aborted {
    Aborted::new(AbortedCode::Internal, error.to_string())
}

pub(super) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
