//! The must-fail rerun: cases of shared files that passed, once more with a failure at each end of their tests.
//!
//! One attempt on head; on base too, for cases that head did not fail by it, because sealed code may swallow such a failure
//! itself. Which cases those are, and what it means, is the judge's.

use super::evidence::{Evidence, Ground, Run};
use super::running::Keeping;
use crate::sandbox::{AttemptMode, AttemptOrder, RunOrder};
use bytes::Bytes;
use tribunal_core::id::NodeId;
use tribunal_core::judge::{self, MustFailEvidence};
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::reason::Aborted;

/// Both sides of it.
#[derive(Default)]
pub(super) struct MustFailRuns {
    pub(super) head: Vec<AttemptFacts>,
    pub(super) base: Vec<AttemptFacts>,
}

impl MustFailRuns {
    /// As the judge takes it.
    pub(super) fn of(&self) -> MustFailEvidence<'_> {
        MustFailEvidence {
            head: &self.head,
            base: &self.base,
        }
    }
}

impl Run<'_> {
    /// What the judge wants of it, if anything.
    pub(super) async fn must_fail_after(
        &self,
        ground: &Ground,
        evidence: &mut Evidence,
    ) -> Result<(), Aborted> {
        let wants = judge::must_fail_wants(self.plan, &evidence.of(ground));
        if !wants.head.is_empty() {
            self.tell("seeing whether a failure fails").await;
            let names: Vec<&str> = wants.head.iter().map(NodeId::as_str).collect();
            let keep = self.evidence_key(ground, Lane::MustFail, &names.join("\n"));
            evidence.must_fail.head = self.stored(&keep).await?.attempts;
            if evidence.must_fail.head.is_empty() {
                let src = self.overlay.src_tar();
                let order = self.must_fail_order(ground, wants.head, src);
                let ran = self.run(order, Keeping::Quietly(keep)).await?;
                evidence.must_fail.head = ran.facts.attempts;
            }
        }
        let wants = judge::must_fail_wants(self.plan, &evidence.of(ground));
        if !wants.base.is_empty() {
            let src = self.overlay.base_src_tar().map_err(Aborted::from)?;
            let order = self.must_fail_order(ground, wants.base, src);
            let ran = self.run(order, Keeping::Silence).await?;
            evidence.must_fail.base = ran.facts.attempts;
        }
        Ok(())
    }

    fn must_fail_order(&self, ground: &Ground, only: Vec<NodeId>, src: Bytes) -> RunOrder {
        let pinned = self.plan.attempts().iter().take(1);
        let attempts = pinned.map(|planned| AttemptOrder {
            mode: AttemptMode::MustFail,
            only: Some(only.clone()),
            ..AttemptOrder::of(0, 0, planned.pins.clone())
        });
        RunOrder {
            lane: Lane::MustFail,
            attempts: attempts.collect(),
            starts: self.plan.starts().iter().take(1).copied().collect(),
            ..self.order(&ground.image, &ground.tree, src)
        }
    }
}
