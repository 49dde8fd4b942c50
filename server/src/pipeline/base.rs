//! The ground a score stands on: what base's own src collects and does, learned once per content and kept.
//!
//! The cases that a score must report come from here, never from head. The run is a single attempt under the policy's
//! pins, so it also says which cases are red on base already, and it takes the digests of every sealed function.

use super::evidence::{Ground, Run};
use crate::clock;
use crate::image::BuiltImage;
use crate::sandbox::{AttemptMode, AttemptOrder, FunctionDigest, RunOrder, SealedTree};
use crate::store::{self, Collected};
use serde::{Deserialize, Serialize};
use tribunal_core::id::{Digest, NodeId, RepoPath};
use tribunal_core::outcome::{AttemptFacts, CaseRecord, Lane, Phase, Pins, Signature, fold};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};

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
}

/// The order that makes one.
#[must_use]
pub(super) fn base_run(order: RunOrder) -> RunOrder {
    let pins = pinned(&order.policy);
    RunOrder {
        lane: Lane::BaseCollection,
        starts: vec![pins.hash_seed],
        attempts: vec![AttemptOrder::of(0, 0, pins)],
        digests: order.files.clone(),
        ..order
    }
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
        let name = self.base_key(image);
        let found = store::off(&self.rooms.store, {
            let name = name.clone();
            move |s| s.collected(&name)
        })
        .await?;
        if let Some(base) = found.and_then(|kept| serde_json::from_str(&kept.0).ok()) {
            return Ok(base);
        }
        self.tell("running base once, to know its cases").await;
        let order = base_run(self.order(
            image,
            tree,
            self.overlay.base_src_tar().map_err(Aborted::from)?,
        ));
        let facts = self.run(order, None).await?;
        let mut attempts = facts.attempts.into_iter();
        let (Some(attempt), None) = (attempts.next(), attempts.next()) else {
            return Err(Aborted::new(
                AbortedCode::Internal,
                "base's run is not one attempt",
            ));
        };
        let base = BaseRun {
            attempt,
            digests: facts.digests,
            undigested: facts.undigested,
            python_tag: facts.python_tag,
        };
        let text = serde_json::to_string(&base).map_err(|error| {
            Aborted::new(AbortedCode::Internal, format!("keep base's run: {error}"))
        })?;
        let at = clock::now();
        store::off(&self.rooms.store, move |s| {
            s.keep_collected(&name, at, &Collected(text))
        })
        .await?;
        Ok(base)
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
        let src = self.overlay.base_src_tar().map_err(Aborted::from)?;
        let mut order = base_run(self.order(&ground.image, &ground.tree, src));
        for attempt in &mut order.attempts {
            attempt.mode = AttemptMode::Unsilenced;
            attempt.only = Some(cases.clone());
        }
        order.digests.clear();
        let facts = self.run(order, None).await?;
        let spoke = |record: &CaseRecord| {
            let failure = record.phases.iter().find_map(|p| p.exception.as_ref())?;
            Some((record.node.clone(), Signature::of(failure)))
        };
        let records = facts.attempts.iter().flat_map(|attempt| &attempt.cases);
        Ok(records.filter_map(spoke).collect())
    }

    /// Everything that could change what base collects or does.
    fn base_key(&self, image: &BuiltImage) -> Digest {
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
            "base-run/v1",
            self.overlay.tree_digest().as_str(),
            Digest::of(src.join("\n").as_bytes()).as_str(),
            &image.engine_id,
            image.runner_digest.as_str(),
            self.plan.patch().policy().digest().as_str(),
            &files.join("\n"),
        ])
    }
}
