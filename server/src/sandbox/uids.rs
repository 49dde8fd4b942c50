//! Ranges of user ids for live rooms, none overlapping another.
//!
//! Limits per user (processes, pending signals) are counted by the kernel over all containers of an engine, so two rooms
//! must not share a uid. The ids stay below 60000: a rootless engine maps no more than 65536.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

const FIRST: u32 = 10_000;
const END: u32 = 60_000;

static TAKEN: LazyLock<Mutex<Taken>> = LazyLock::new(|| {
    Mutex::new(Taken {
        ranges: BTreeMap::new(),
        // Somewhere: another server on the same engine does not begin with the same ids.
        next: FIRST + getrandom::u32().unwrap_or(0) % (END - FIRST),
    })
});

struct Taken {
    /// First id to the one after the last.
    ranges: BTreeMap<u32, u32>,
    /// Where to look first: an id that was just given back rests for a while.
    next: u32,
}

/// A range that nobody else in this process has; given back when dropped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UidRange {
    base: u32,
    count: u32,
}

impl UidRange {
    /// Take `count` ids. `None` when they are all in use, or more than there are.
    pub(crate) fn take(count: u32) -> Option<Self> {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let count = count.max(1);
        let base = taken
            .free_from(taken.next, count)
            .or_else(|| taken.free_from(FIRST, count))?;
        taken.ranges.insert(base, base + count);
        taken.next = base + count;
        Some(Self { base, count })
    }

    /// The first id.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether this id is one of them.
    pub(crate) fn holds(&self, uid: u32) -> bool {
        (self.base..self.base + self.count).contains(&uid)
    }
}

impl Taken {
    fn free_from(&self, from: u32, count: u32) -> Option<u32> {
        let mut base = from;
        for (&start, &end) in &self.ranges {
            if end <= base {
                continue;
            }
            if start >= base.checked_add(count)? {
                break;
            }
            base = end;
        }
        (base.checked_add(count)? <= END).then_some(base)
    }
}

impl Drop for UidRange {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        taken.ranges.remove(&self.base);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn live_ranges_never_overlap_and_come_back() {
        let mut live: Vec<UidRange> = Vec::new();
        for round in 0..3000u32 {
            if round % 3 == 2 {
                live.remove((round as usize * 7) % live.len());
            }
            if live.len() < 100 {
                live.push(UidRange::take(1 + round % 200).unwrap());
            }
            let mut spans: Vec<(u32, u32)> = live.iter().map(|r| (r.base(), r.count())).collect();
            spans.sort_unstable();
            for pair in spans.windows(2) {
                assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
            }
            for (base, count) in spans {
                assert!(base >= FIRST && base + count <= END);
            }
        }
        assert!(UidRange::take(END).is_none());
    }
}
