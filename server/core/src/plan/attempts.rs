//! The pinned attempts: how many, under which pins, forked from which interpreter start.

use super::PlannedAttempt;
use crate::outcome::Pins;
use crate::policy::Policy;

/// Forks of one warmed interpreter are clones; what differs only between fresh starts must not look stable.
const STARTS: u32 = 2;

/// Hash seeds of the starts, and the N attempts spread over them in turn. All pinned starts share the policy's hash seed:
/// what they differ in is the layout of their memory.
pub(super) fn pinned(policy: &Policy) -> (Vec<u32>, Vec<PlannedAttempt>) {
    let n = policy.runs.reruns;
    let starts = STARTS.min(n).max(1);
    let attempts = (0..n)
        .map(|index| PlannedAttempt {
            index,
            start: index % starts,
            pins: pins(policy),
        })
        .collect();
    (vec![policy.pins.hash_seed; starts as usize], attempts)
}

fn pins(policy: &Policy) -> Pins {
    Pins {
        seed: policy.pins.seed,
        hash_seed: policy.pins.hash_seed,
        clock: policy.pins.clock.clone(),
        source_date_epoch: policy.pins.source_date_epoch,
    }
}
