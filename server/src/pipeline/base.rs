//! The ground a score stands on: what base's own src collects and does, learned once per content and kept.
//!
//! The cases that a score must report come from here, never from head. The run is a single attempt under the policy's
//! pins, so it also says which cases are red on base already; it takes the digests of every sealed function, lets the
//! oracle see a product whose functions all raise, and runs files in which base has trouble split once more as shared.

use super::evidence::{Ground, Run, replayed};
use super::running::Keeping;
use crate::clock;
use crate::image::BuiltImage;
use crate::metrics::{Happening, Source};
use crate::sandbox::{
    AfterFailure, AttemptMode, AttemptOrder, Deserved, FunctionDigest, Functions, PlantingPlan,
    Product, RunOrder, SealedTree, Sequel, deserving,
};
use crate::store::{self, Collected, Store};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tribunal_core::id::{Digest, NodeId, RepoPath};
use tribunal_core::judge::{self, Heed, NeedShared, NullProduct};
use tribunal_core::outcome::{AttemptFacts, CaseRecord, Lane, Phase, Pins, Signature, fold};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Changes that are planted in a base's src to see whether the oracle notices: enough for a rate, few enough to wait for.
pub(super) const MUTANTS: u32 = 20;

/// Bytes of names in one order, which is one frame.
pub(super) const NAMES: usize = 500_000;

/// What base's own src gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaseRun {
    /// The one attempt.
    pub attempt: AttemptFacts,
    /// Digests of every function of the sealed files.
    pub digests: Vec<FunctionDigest>,
    /// Sealed files that do not compile, with the message.
    pub undigested: Vec<(RepoPath, String)>,
    /// The interpreter's tag.
    pub python_tag: String,
    /// Files that hold only in one process with the product, and are not listed for it.
    pub need_shared: NeedShared,
    /// What the oracle said of the null product.
    pub null: NullProduct,
    /// What could be planted.
    pub plan: PlantingPlan,
}

/// An order for attempts on base's own src.
#[must_use]
pub(super) fn on_base(order: RunOrder, lane: Lane, attempts: Vec<AttemptOrder>) -> RunOrder {
    RunOrder {
        lane,
        starts: vec![order.policy.pins.hash_seed],
        attempts,
        ..order
    }
}

/// All sealed cases on base's src as it is.
pub(super) fn plain(policy: &Policy) -> AttemptOrder {
    AttemptOrder::of(0, 0, pinned(policy))
}

/// The same on src whose functions raise; one failure is enough.
fn null(policy: &Policy) -> AttemptOrder {
    AttemptOrder {
        product: Product::Null,
        after_failure: AfterFailure::Stop,
        ..plain(policy)
    }
}

/// Which cases to order so that the first red one says something: none of those that base does not pass. `None` where it
/// passes none. Where their names do not fit into one order all are run, to the end.
pub(super) fn green_alone(
    base: &AttemptFacts,
    files: &[RepoPath],
) -> Option<(Option<Vec<NodeId>>, AfterFailure)> {
    let green = judge::green(base, files);
    if green.is_empty() {
        return None;
    }
    if judge::troubled(base, files).is_empty() {
        return Some((None, AfterFailure::Stop));
    }
    let length: usize = green.iter().map(|node| node.as_str().len() + 8).sum();
    Some(if length <= NAMES {
        (Some(green), AfterFailure::Stop)
    } else {
        (None, AfterFailure::GoOn)
    })
}

/// The policy's own pins.
pub(super) fn pinned(policy: &Policy) -> Pins {
    Pins {
        seed: policy.pins.seed,
        hash_seed: policy.pins.hash_seed,
        clock: policy.pins.clock.clone(),
        source_date_epoch: policy.pins.source_date_epoch,
    }
}

/// The name under which a base run is kept: everything that could change it.
pub(super) fn key(parts: &[&str]) -> Digest {
    Digest::of(parts.join("\0").as_bytes())
}

impl Run<'_> {
    /// Base's own run: from the store where it is known.
    pub(super) async fn base(
        &self,
        image: &BuiltImage,
        tree: &SealedTree,
    ) -> Result<BaseRun, Aborted> {
        let known = self.known_base(image).await?;
        let from = known.as_ref().map_or(Source::Run, |_| Source::Stored);
        self.rooms.observer.note(Happening::BaseWanted(from));
        if let Some(base) = known {
            return Ok(base);
        }
        self.tell("running base once, to know its cases").await;
        let (policy, files) = (self.plan.patch().policy(), self.plan.files().to_vec());
        let mut order = on_base(
            self.base_order(image, tree)?,
            Lane::BaseCollection,
            vec![plain(policy)],
        );
        order.digests = order.files.clone();
        order.plant = Some(MUTANTS);
        order.sequel = Some(Sequel {
            lane: Lane::Liveness,
            attempts: vec![null(policy)],
            deserved: deserving(move |seen| {
                let green = seen
                    .iter()
                    .any(|base| !judge::green(base, &files).is_empty());
                if green { Deserved::Yes } else { Deserved::No }
            }),
        });
        let facts = self.run(order, Keeping::Progress).await?.facts;
        let (attempt, wrong) = first(&facts.attempts)?;
        let base = BaseRun {
            need_shared: self.modes(image, tree, &attempt).await?,
            null: self
                .null_product(image, tree, &attempt, wrong, facts.plan.as_ref())
                .await?,
            attempt,
            digests: facts.digests,
            undigested: facts.undigested,
            python_tag: facts.python_tag,
            plan: facts
                .plan
                .ok_or_else(|| internal("base's run has no plan of changes"))?,
        };
        self.keep_as(self.base_key(image), &base).await?;
        Ok(base)
    }

    /// The same, only if it was made before.
    pub(super) async fn known_base(&self, image: &BuiltImage) -> Result<Option<BaseRun>, Aborted> {
        self.known(self.base_key(image)).await
    }

    /// Which files hold shared and not split, of those that nobody has listed.
    async fn modes(
        &self,
        image: &BuiltImage,
        tree: &SealedTree,
        split: &AttemptFacts,
    ) -> Result<NeedShared, Aborted> {
        let listed = &self.plan.patch().policy().runner.shared;
        let mut troubled = judge::troubled(split, self.plan.files());
        troubled.retain(|file| !listed.contains(file));
        if troubled.is_empty() {
            return Ok(NeedShared::new());
        }
        self.tell("running base once more, to see which files need the product beside them")
            .await;
        let split = self
            .resumed(split.clone(), || {
                let order = self.base_order(image, tree)?;
                let attempt = plain(&order.policy);
                Ok(on_base(order, Lane::BaseCollection, vec![attempt]))
            })
            .await?;
        let mut troubled = judge::troubled(&split, self.plan.files());
        troubled.retain(|file| !listed.contains(file));
        let together = || {
            let mut order = self.base_order(image, tree)?;
            order.policy.runner.shared = troubled.clone();
            order.files.clone_from(&troubled);
            let attempt = plain(&order.policy);
            Ok(on_base(order, Lane::BaseCollection, vec![attempt]))
        };
        if troubled.is_empty() {
            return Ok(NeedShared::new());
        }
        let facts = self.run(together()?, Keeping::Progress).await?.facts;
        let (shared, _) = first(&facts.attempts)?;
        let shared = self.resumed(shared, together).await?;
        Ok(judge::need_shared(&split, &shared, &troubled))
    }

    /// What the oracle says of the null product. It was run with all cases up to the first red one; where that one is red
    /// on base as well, those that are green there are run alone.
    async fn null_product(
        &self,
        image: &BuiltImage,
        tree: &SealedTree,
        base: &AttemptFacts,
        wrong: Option<AttemptFacts>,
        plan: Option<&PlantingPlan>,
    ) -> Result<NullProduct, Aborted> {
        let none = plan.is_some_and(|plan| plan.functions == Functions::None);
        let Some(wrong) = wrong.filter(|_| !none) else {
            return Ok(NullProduct::Untold);
        };
        let files = self.plan.files();
        let heed = judge::heed(base, &wrong, files);
        let reached = |node: &NodeId| wrong.cases.iter().any(|record| record.node == *node);
        if heed == Heed::Noticed || judge::green(base, files).iter().all(reached) {
            return Ok(NullProduct::from(heed));
        }
        let Some((only, after_failure)) = green_alone(base, files) else {
            return Ok(NullProduct::Untold);
        };
        let again = AttemptOrder {
            only,
            after_failure,
            ..null(self.plan.patch().policy())
        };
        let order = on_base(self.base_order(image, tree)?, Lane::Liveness, vec![again]);
        let facts = self.run(order, Keeping::Progress).await?.facts;
        let (wrong, _) = first(&facts.attempts)?;
        Ok(NullProduct::from(judge::heed(base, &wrong, files)))
    }

    /// What base's silenced cases say once they are made to speak: the failure that a lease has to name.
    pub(super) async fn signatures(
        &self,
        ground: &Ground,
    ) -> Result<Vec<(NodeId, Signature)>, Aborted> {
        let silent = |record: &&CaseRecord| {
            let phases: Vec<&Phase> = record.phases.iter().collect();
            fold(&phases, ground.base.attempt.end.end).is_silent()
        };
        let cases = ground.base.attempt.cases.iter().filter(silent);
        let cases: Vec<NodeId> = cases.map(|record| record.node.clone()).collect();
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        let unsilenced = AttemptOrder {
            mode: AttemptMode::Unsilenced,
            only: Some(cases),
            ..plain(self.plan.patch().policy())
        };
        let order = self.base_order(&ground.image, &ground.tree)?;
        let order = on_base(order, Lane::BaseCollection, vec![unsilenced]);
        let facts = self.run(order, Keeping::Progress).await?.facts;
        let spoke = |record: &CaseRecord| {
            let failure = record.phases.iter().find_map(|p| p.exception.as_ref())?;
            Some((record.node.clone(), Signature::of(failure)))
        };
        let records = facts.attempts.iter().flat_map(|attempt| &attempt.cases);
        Ok(records.filter_map(spoke).collect())
    }

    /// An order with base's own src.
    pub(super) fn base_order(
        &self,
        image: &BuiltImage,
        tree: &SealedTree,
    ) -> Result<RunOrder, Aborted> {
        Ok(self.order(image, tree, self.overlay.base_src_tar()?))
    }

    /// What was kept under this name, if it can still be read.
    pub(super) async fn known<T: for<'a> Deserialize<'a>>(
        &self,
        name: Digest,
    ) -> Result<Option<T>, Aborted> {
        let found = store::off(&self.rooms.store, move |s| s.collected(&name)).await?;
        Ok(found.and_then(|kept| serde_json::from_str(&kept.0).ok()))
    }

    /// Keep it. What was kept under this name before stays.
    pub(super) async fn keep_as<T: Serialize + Sync>(
        &self,
        name: Digest,
        what: &T,
    ) -> Result<(), Aborted> {
        keep_as(&self.rooms.store, name, what).await
    }

    /// Everything that could change what base collects or does.
    pub(super) fn base_key(&self, image: &BuiltImage) -> Digest {
        let src = self.plan.src().base.iter();
        let src: Vec<String> = src
            .map(|(path, entry)| {
                format!(
                    "{:?} {} {}",
                    entry.mode,
                    entry.id,
                    hex::encode(path.as_bytes())
                )
            })
            .collect();
        let files: Vec<&str> = self.plan.files().iter().map(|f| f.as_str()).collect();
        key(&[
            "base-run/v5",
            self.overlay.tree_digest().as_str(),
            Digest::of(src.join("\n").as_bytes()).as_str(),
            &image.engine_id,
            image.runner_digest.as_str(),
            self.plan.patch().policy().digest().as_str(),
            &replayed(self.plan),
            &files.join("\n"),
        ])
    }
}

/// Keep it. What was kept under this name before stays.
pub(super) async fn keep_as<T: Serialize + Sync>(
    store: &Arc<dyn Store>,
    name: Digest,
    what: &T,
) -> Result<(), Aborted> {
    let text = serde_json::to_string(what)
        .map_err(|error| internal(format!("failed to keep what base did: {error}")))?;
    let at = clock::now();
    store::off(store, move |s| {
        s.keep_collected(&name, at, &Collected(text))
    })
    .await?;
    Ok(())
}

/// The attempt that was ordered, and the sequel's where there was one.
fn first(attempts: &[AttemptFacts]) -> Result<(AttemptFacts, Option<AttemptFacts>), Aborted> {
    match attempts {
        [only] => Ok((only.clone(), None)),
        [base, wrong] => Ok((base.clone(), Some(wrong.clone()))),
        [] | [_, _, _, ..] => Err(internal("base's run is not one attempt")),
    }
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}
