//! The ground a score stands on: what base's own src collects and does, learned once per content and kept.
//!
//! The cases that a score must report come from here, never from head. The run is a single attempt under the policy's
//! pins, so it also says which cases are red on base already, and it takes the digests of every sealed function.

use crate::sandbox::{AttemptOrder, Extent, FunctionDigest, RunOrder, SilenceMode};
use serde::{Deserialize, Serialize};
use tribunal_core::id::{Digest, RepoPath};
use tribunal_core::outcome::{AttemptFacts, Lane, Pins};
use tribunal_core::policy::Policy;

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
        attempts: vec![AttemptOrder {
            index: 0,
            start: 0,
            pins,
            silence: SilenceMode::Silenced,
            only: None,
            extent: Extent::Run,
        }],
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
