//! Planted changes: whether the sealed cases notice that base's src is wrong in one place.
//!
//! Costs as many attempts as there are changes, each up to its first red case, within a deadline in total. Never part of
//! a score: a score takes what is known. What an interrupted run has seen is kept by whoever goes on with it.

use super::base::{BaseRun, green_alone, keep_as, key, on_base, plain};
use super::evidence::{Ground, Run};
use crate::image::BuiltImage;
use crate::sandbox::{
    AttemptOrder, Product, RunEvent, RunOrder, Sandbox, SandboxError, SealedTree,
};
use crate::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tribunal_core::cassette::InEffect;
use tribunal_core::id::{Digest, RepoPath};
use tribunal_core::judge::{self, Heed, Mutants};
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::reason::Aborted;

/// All changes of one base have so long; what was not run then is told.
pub(super) const DEADLINE: Duration = Duration::from_secs(300);
/// An attempt may take so many times as long as base's own, and this much more: a change may make a loop endless.
const SLOWER: u64 = 5;
const MARGIN_MS: u64 = 5000;

/// Everything that running them takes, and what was seen already: it can be put aside and gone on with.
pub(super) struct Planting {
    /// Under which name the result is kept.
    pub(super) name: Digest,
    base: BaseRun,
    order: Template,
    seen: BTreeMap<u32, Heed>,
    spent: Duration,
}

/// A run order that can be given more than once.
struct Template {
    score: String,
    image: String,
    tree: SealedTree,
    src_tar: bytes::Bytes,
    files: Vec<RepoPath>,
    own_names: Vec<String>,
    policy: tribunal_core::policy::Policy,
    cassettes: Vec<InEffect>,
}

impl Run<'_> {
    /// What is known of base's planted changes.
    pub(super) async fn known_mutants(
        &self,
        image: &BuiltImage,
    ) -> Result<Option<Mutants>, Aborted> {
        self.known(self.mutants_key(image)).await
    }

    /// All of them, to be run.
    pub(super) fn planting(&self, ground: &Ground) -> Result<Planting, Aborted> {
        let order = self.base_order(&ground.image, &ground.tree)?;
        Ok(Planting {
            name: self.mutants_key(&ground.image),
            base: ground.base.clone(),
            order: Template {
                score: order.score,
                image: order.image,
                tree: order.tree,
                src_tar: order.src_tar,
                files: order.files,
                own_names: order.own_names,
                policy: order.policy,
                cassettes: order.cassettes,
            },
            seen: BTreeMap::new(),
            spent: Duration::ZERO,
        })
    }

    pub(super) fn mutants_key(&self, image: &BuiltImage) -> Digest {
        key(&["mutants/v1", self.base_key(image).as_str()])
    }
}

impl Planting {
    /// Run what was not run yet, until all were, the deadline is over, or `cancel`. `None` where it was cancelled: what was
    /// seen is kept, and the next call goes on.
    ///
    /// # Errors
    /// Our own trouble; what was seen is kept as well.
    pub(super) async fn run(
        &mut self,
        sandbox: &dyn Sandbox,
        cancel: &CancellationToken,
    ) -> Result<Option<Mutants>, Aborted> {
        loop {
            let before = self.seen.len();
            let Some(order) = self.rest() else {
                return Ok(Some(self.result()));
            };
            let begun = Instant::now();
            let ran = self.in_a_room(order, sandbox, cancel).await;
            self.spent += begun.elapsed();
            match ran {
                // A change that took its room with it leaves the others to another room.
                Ok(()) if self.seen.len() > before && self.spent < DEADLINE => {}
                Ok(()) => return Ok(Some(self.result())),
                Err(_) if cancel.is_cancelled() => return Ok(None),
                Err(_) if self.spent >= DEADLINE => return Ok(Some(self.result())),
                Err(aborted) => return Err(aborted),
            }
        }
    }

    async fn in_a_room(
        &mut self,
        order: RunOrder,
        sandbox: &dyn Sandbox,
        cancel: &CancellationToken,
    ) -> Result<(), Aborted> {
        let late = cancel.child_token();
        let (events, mut inbox) = mpsc::channel(16);
        let (base, files) = (&self.base.attempt, &self.order.files);
        let seen = &mut self.seen;
        let running = sandbox.run(order, events, late.clone());
        let listening = async {
            while let Some(event) = inbox.recv().await {
                if let RunEvent::AttemptEnded(facts) = event
                    && was_run(&facts)
                {
                    seen.insert(facts.index, judge::heed(base, &facts, files));
                }
            }
        };
        let left = DEADLINE.saturating_sub(self.spent);
        let clock = async {
            tokio::time::sleep(left).await;
            late.cancel();
        };
        let ended = async { tokio::join!(running, listening).0 };
        tokio::pin!(ended);
        let ran = tokio::select! {
            ran = &mut ended => ran,
            // The room is gone only when the run returns.
            () = clock => ended.await,
        };
        ran.map(drop)
            .map_err(|SandboxError::Aborted(aborted)| aborted)
    }

    /// An order for those that were not run; `None` where all were, or where nobody could notice any.
    fn rest(&self) -> Option<RunOrder> {
        let (only, after_failure) = green_alone(&self.base.attempt, &self.order.files)?;
        let mut policy = self.order.policy.clone();
        let patience = (self.base.attempt.end.wall_ms * SLOWER).saturating_add(MARGIN_MS);
        policy.runs.attempt_timeout_ms = policy.runs.attempt_timeout_ms.min(patience);
        policy.runs.case_timeout_ms = policy.runs.case_timeout_ms.min(patience);
        let attempt = |number: u32| AttemptOrder {
            index: number,
            product: Product::Mutant {
                number,
                of: super::base::MUTANTS,
            },
            only: only.clone(),
            after_failure,
            ..plain(&policy)
        };
        let drawn = u32::try_from(self.base.plan.mutants.len()).unwrap_or(u32::MAX);
        let attempts: Vec<AttemptOrder> = (0..drawn)
            .filter(|number| !self.seen.contains_key(number))
            .map(attempt)
            .collect();
        if attempts.is_empty() {
            return None;
        }
        let template = RunOrder {
            score: self.order.score.clone(),
            lane: Lane::Liveness,
            image: self.order.image.clone(),
            tree: self.order.tree.clone(),
            src_tar: self.order.src_tar.clone(),
            files: self.order.files.clone(),
            own_names: self.order.own_names.clone(),
            policy,
            starts: Vec::new(),
            free_starts: 0,
            attempts: Vec::new(),
            sequel: None,
            digests: Vec::new(),
            cassettes: self.order.cassettes.clone(),
            outside: None,
            plant: None,
            marks: Vec::new(),
        };
        Some(on_base(template, Lane::Liveness, attempts))
    }

    /// How many cores one attempt uses.
    pub(super) fn cores(&self) -> u32 {
        self.order.policy.limits.cpus
    }

    /// Keep what became of them, for every score of this base.
    ///
    /// # Errors
    /// The store.
    pub(super) async fn keep(
        &self,
        store: &Arc<dyn Store>,
        mutants: &Mutants,
    ) -> Result<(), Aborted> {
        keep_as(store, self.name.clone(), mutants).await
    }

    fn result(&self) -> Mutants {
        let changes = self.base.plan.mutants.iter().zip(0..);
        Mutants {
            drawn: self.base.plan.mutants.len(),
            run: self.seen.len(),
            unnoticed: changes
                .filter(|(_, number)| self.seen.get(number) == Some(&Heed::Unnoticed))
                .map(|(change, _)| change.clone())
                .collect(),
        }
    }
}

/// Not one that the room's end, in an earlier attempt, left undone.
fn was_run(facts: &AttemptFacts) -> bool {
    facts.end.note.is_none() || facts.end.wall_ms > 0
}
