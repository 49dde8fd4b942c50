//! The pinned attempts of a score in a room for each interpreter start, at the same time; what follows them is dealt out.
//!
//! Never decides what runs. Whether draws follow is asked with the facts of all rooms: each waits there for the others.

use crate::sandbox::{AttemptOrder, Deserved, Deserving};
use futures::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Barrier;
use tribunal_core::outcome::AttemptFacts;

/// What one room runs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Share {
    /// Hash seeds of its starts: the one that is fixed, then those of its draws.
    pub(super) starts: Vec<u32>,
    /// On the first start.
    pub(super) attempts: Vec<AttemptOrder>,
    /// Each on a start of its own.
    pub(super) draws: Vec<AttemptOrder>,
}

/// Attempts on the starts of a plan, and draws after them, by room.
pub(super) fn shares(
    starts: &[u32],
    attempts: Vec<AttemptOrder>,
    draws: Vec<AttemptOrder>,
) -> Vec<Share> {
    let mut shares: Vec<Share> = starts
        .iter()
        .map(|seed| Share {
            starts: vec![*seed],
            ..Share::default()
        })
        .collect();
    for mut attempt in attempts {
        if let Some(share) = shares.get_mut(attempt.start as usize) {
            attempt.start = 0;
            share.attempts.push(attempt);
        }
    }
    shares.retain(|share| !share.attempts.is_empty());
    for mut draw in draws {
        // The room that has the least to do.
        let least = shares
            .iter_mut()
            .min_by_key(|share| share.attempts.len() + share.draws.len());
        if let Some(share) = least {
            draw.start = u32::try_from(share.starts.len()).unwrap_or(u32::MAX);
            share.starts.push(draw.pins.hash_seed);
            share.draws.push(draw);
        }
    }
    shares
}

/// The same with as much in each room as in the fullest: for rooms of a score that nobody knows yet, because which start
/// has one attempt more differs between scores.
pub(super) fn alike(mut shares: Vec<Share>) -> Vec<Share> {
    let most = |of: fn(&Share) -> usize| shares.iter().map(of).max().unwrap_or_default();
    let (attempts, draws) = (
        most(|share| share.attempts.len()),
        most(|share| share.draws.len()),
    );
    for share in &mut shares {
        let Some(sample) = share.attempts.first().cloned() else {
            continue;
        };
        share.attempts.resize(attempts, sample.clone());
        while share.draws.len() < draws {
            let mut draw = sample.clone();
            draw.start = u32::try_from(share.starts.len()).unwrap_or(u32::MAX);
            share.starts.push(draw.pins.hash_seed);
            share.draws.push(draw);
        }
    }
    shares
}

/// Where the rooms of a score wait for each other, before what follows. One that never comes is one whose run is
/// cancelled, and then all are.
pub(super) struct Meeting {
    all: Barrier,
    seen: Mutex<Vec<AttemptFacts>>,
    by: Box<Rule>,
}

/// What all of them together deserve.
type Rule = dyn Fn(&[AttemptFacts]) -> Deserved + Send + Sync;

impl Meeting {
    /// Of so many rooms; these facts were known before.
    pub(super) fn of(
        rooms: usize,
        stored: Vec<AttemptFacts>,
        by: impl Fn(&[AttemptFacts]) -> Deserved + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            all: Barrier::new(rooms),
            seen: Mutex::new(stored),
            by: Box::new(by),
        })
    }

    /// One room's part in it.
    pub(super) fn seat(self: &Arc<Self>) -> Deserving {
        let meeting = Arc::clone(self);
        Box::new(move |fresh| {
            let meeting = Arc::clone(&meeting);
            async move {
                let seen = || meeting.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen().extend(fresh);
                meeting.all.wait().await;
                let seen = seen();
                (meeting.by)(&seen)
            }
            .boxed()
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use tribunal_core::id::Seed;
    use tribunal_core::outcome::Pins;

    fn attempt(index: u32, start: u32, hash_seed: u32) -> AttemptOrder {
        let pins = Pins {
            seed: Seed(7),
            hash_seed,
            clock: "2026-09-12T00:00:00Z".to_owned(),
            source_date_epoch: 0,
        };
        AttemptOrder::of(index, start, pins)
    }

    #[test]
    fn each_start_has_a_room_and_draws_go_where_least_is_done() {
        let pinned = (0..7).map(|n| attempt(n, n % 2, 40 + n % 2)).collect();
        let draws = (0..3).map(|n| attempt(n, 2 + n, 90 + n)).collect();
        let shares = shares(&[40, 41], pinned, draws);
        let told: Vec<_> = shares
            .iter()
            .map(|share| {
                let own = |all: &[AttemptOrder]| -> Vec<_> {
                    let each = all.iter();
                    each.map(|a| (a.index, a.start, a.start_in_score)).collect()
                };
                (
                    share.starts.clone(),
                    own(&share.attempts),
                    own(&share.draws),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (
                    vec![40, 91],
                    vec![(0, 0, 0), (2, 0, 0), (4, 0, 0), (6, 0, 0)],
                    vec![(1, 1, 3)]
                ),
                (
                    vec![41, 90, 92],
                    vec![(1, 0, 1), (3, 0, 1), (5, 0, 1)],
                    vec![(0, 1, 2), (2, 2, 4)]
                ),
            ]
        );
    }

    #[test]
    fn rooms_of_a_score_that_nobody_knows_have_place_for_the_fullest_of_any() {
        let pinned = (0..7).map(|n| attempt(n, n % 2, 40 + n % 2)).collect();
        let draws = (0..3).map(|n| attempt(n, 2 + n, 90 + n)).collect();
        for share in alike(shares(&[40, 41], pinned, draws)) {
            assert_eq!((share.attempts.len(), share.draws.len()), (4, 2));
            assert_eq!(share.starts.len(), 3);
            assert!(share.attempts.iter().all(|attempt| attempt.start == 0));
            let starts: Vec<u32> = share.draws.iter().map(|draw| draw.start).collect();
            assert_eq!(starts, [1, 2]);
        }
    }

    #[test]
    fn a_start_without_an_attempt_has_no_room() {
        let shares = shares(&[40, 41], vec![attempt(0, 0, 40)], Vec::new());
        assert_eq!(shares.len(), 1);
        assert_eq!(shares.first().unwrap().starts, [40]);
    }

    #[tokio::test]
    async fn no_room_decides_before_all_have_come() {
        let meeting = Meeting::of(2, Vec::new(), |seen| {
            assert!(seen.is_empty());
            Deserved::Yes
        });
        let mut first = (meeting.seat())(Vec::new());
        assert!((&mut first).now_or_never().is_none());
        let second = (meeting.seat())(Vec::new());
        assert_eq!(tokio::join!(first, second), (Deserved::Yes, Deserved::Yes));
    }
}
