//! Held-out pins: what a secret, an overlay and a number make of the policy's pins, and how many such draws a score needs.
//!
//! The same three always make the same pins, so an operator can repeat them; without the secret nobody can tell them.
//! Never reads a secret, never runs anything.

use crate::id::{Digest, NodeId, Seed};
use crate::outcome::{Lane, Pins};
use crate::policy::{PinPolicy, Runs};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

const DAY: u64 = 24 * 3600;
/// Nearer to the pin than this the year could be the pin's own.
const NEAREST: u64 = 367 * DAY;
/// Two years.
const FARTHEST: u64 = 730 * DAY;
/// Failures of one case from which on more is drawn.
const DEARER_FROM: u32 = 3;
/// How often the number of draws is doubled at the most.
const DOUBLINGS: u32 = 3;

/// The pins of one draw: seed, hash seed, and a clock in another year, earlier and later by turns; SOURCE_DATE_EPOCH moves
/// with the clock. None of them equals the policy's.
#[must_use]
pub fn draw(secret: &[u8; 32], overlay: &Digest, number: u32, policy: &PinPolicy) -> Pins {
    let drawn = mac(secret, b"draw", overlay, number);
    let [a, b, c, d] = quarters(&drawn);
    let [low, high] = [c, d].map(u64::from);
    let distance = NEAREST + ((high << 32) | low) % (FARTHEST - NEAREST + 1);
    // One coin per overlay says which side comes first.
    let coin = mac(secret, b"side", overlay, 0)
        .first()
        .copied()
        .unwrap_or(0)
        & 1;
    let distance = i64::try_from(distance).unwrap_or(0);
    let offset = if (number & 1 == 0) == (coin == 0) {
        -distance
    } else {
        distance
    };
    Pins {
        seed: Seed(other_than(policy.seed.0, a)),
        hash_seed: other_than(policy.hash_seed, b),
        clock: moved(&policy.clock, offset),
        source_date_epoch: policy.source_date_epoch.saturating_add(offset).max(0),
    }
}

/// Attempts that every case must have for one of them to put a test's own questions first.
const FEWEST: u32 = 3;

/// The secret of what the oracle asks the product in passing, for one attempt of a lane on this overlay: 16 bytes in hex.
/// Base, asked again under the same one, hears what head heard.
///
/// It begins with a byte of 0 in the property lane's first attempt, and nowhere else: there each question of a test's own
/// comes before those that go with it, so a mistake that shows only in an object that nobody asked yet is seen at least
/// once. A liar that counts on it has all other attempts against it, and where some case has too few of them nothing is
/// put first.
#[must_use]
pub fn questions(
    secret: &[u8; 32],
    overlay: &Digest,
    lane: Lane,
    number: u32,
    runs: &Runs,
) -> String {
    let what: &[u8] = match lane {
        Lane::HeldOut => b"questions held-out",
        Lane::Property
        | Lane::Liveness
        | Lane::MustFail
        | Lane::LeaseSide
        | Lane::Merge
        | Lane::Proposed
        | Lane::Perturbed
        | Lane::BaseCollection => b"questions",
    };
    let paths = runs.path.iter().map(|path| path.reruns);
    let fewest = paths.fold(runs.reruns, u32::min);
    let own_first = lane == Lane::Property && number == 0 && fewest >= FEWEST;
    let mut drawn = mac(secret, what, overlay, number);
    drawn[0] = if own_first { 0 } else { drawn[0].max(1) };
    drawn
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// How many draws a score makes where `failures` overlays failed one case of this base before: the policy's number, twice
/// that from the third failure on, and twice again with each further one, up to eight times.
#[must_use]
pub fn planned(runs: &Runs, failures: u32) -> u32 {
    let doublings = (failures + 1).saturating_sub(DEARER_FROM).min(DOUBLINGS);
    runs.held_out << doublings
}

/// How often a case of one base failed under held-out pins, counted by overlays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The case, by a name that base itself gives it.
    pub case: String,
    /// Overlays.
    pub overlays: u32,
}

/// Whether the policy says that the result of this case may depend on the pins: by its id, or by its function's.
#[must_use]
pub fn is_exempt(runs: &Runs, node: &NodeId) -> bool {
    let named = |name: &NodeId| {
        node.as_str()
            .strip_prefix(name.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    runs.pin_sensitive.iter().any(named)
}

fn mac(secret: &[u8; 32], what: &[u8], overlay: &Digest, number: u32) -> [u8; 32] {
    // Any length of key is one; an all-zero answer cannot come of it.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
        return [0; 32];
    };
    for part in [
        b"tribunal held-out pins v1",
        what,
        overlay.as_str().as_bytes(),
    ] {
        mac.update(part);
        mac.update(&[0]);
    }
    mac.update(&number.to_be_bytes());
    mac.finalize().into_bytes().into()
}

fn quarters(drawn: &[u8; 32]) -> [u32; 4] {
    let mut words = drawn.chunks_exact(4).map(|bytes| {
        bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u32::from(*byte))
    });
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

fn other_than(pinned: u32, drawn: u32) -> u32 {
    if drawn == pinned {
        drawn.wrapping_add(1)
    } else {
        drawn
    }
}

/// A policy's clock was parsed when the policy was.
fn moved(clock: &str, seconds: i64) -> String {
    let at: Result<jiff::Timestamp, _> = clock.parse();
    let then = at
        .ok()
        .and_then(|at| jiff::Timestamp::from_second(at.as_second().saturating_add(seconds)).ok());
    then.map_or_else(|| clock.to_owned(), |then| then.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::policy::Policy;
    use proptest::prelude::*;

    fn year(clock: &str) -> i64 {
        clock[..4].parse().unwrap()
    }

    #[test]
    fn a_draw_is_the_same_for_ever() {
        // Frozen: stored attempts are found again by these numbers.
        let pins = draw(
            &[7; 32],
            &Digest::of(b"overlay"),
            0,
            &Policy::default().pins,
        );
        let text = serde_json::to_string(&pins).unwrap();
        assert_eq!(text, FROZEN);
    }

    const FROZEN: &str = r#"{"seed":1685314100,"hash_seed":3154264814,"clock":"2025-07-30T13:17:08Z","source_date_epoch":1664710228}"#;

    #[test]
    fn a_tests_own_question_comes_first_in_one_attempt_where_others_see_every_case() {
        let own_first = |lane, number, policy: &str| {
            let runs = Policy::parse(policy.as_bytes()).unwrap().runs;
            // One draw in 256 would begin with a 0 of its own.
            let draws: Vec<bool> = (0..600_u32)
                .map(|n| {
                    let overlay = Digest::of(&n.to_be_bytes());
                    questions(&[7; 32], &overlay, lane, number, &runs).starts_with("00")
                })
                .collect();
            assert!(draws.iter().all(|draw| *draw == draws[0]));
            draws[0]
        };
        let slow =
            |reruns: u32| format!("[[runs.path]]\nprefix = \"tests/slow/\"\nreruns = {reruns}\n");
        assert!(own_first(Lane::Property, 0, ""));
        assert!(own_first(Lane::Property, 0, &slow(3)));
        assert!(!own_first(Lane::Property, 0, &slow(2)));
        assert!(!own_first(Lane::Property, 0, "[runs]\nreruns = 2\n"));
        assert!(!own_first(Lane::Property, 1, ""));
        assert!(!own_first(Lane::HeldOut, 0, ""));
    }

    proptest! {
        #[test]
        fn a_draw_is_another_year_within_two_and_moves_the_epoch_along(secret: [u8; 32], overlay: u64, number in 0..64_u32) {
            let policy = Policy::default().pins;
            let overlay = Digest::of(&overlay.to_be_bytes());
            let pins = draw(&secret, &overlay, number, &policy);
            prop_assert_ne!(pins.seed, policy.seed);
            prop_assert_ne!(pins.hash_seed, policy.hash_seed);
            prop_assert_ne!(year(&pins.clock), year(&policy.clock));
            let second = |clock: &str| clock.parse::<jiff::Timestamp>().unwrap().as_second();
            let offset = second(&pins.clock) - second(&policy.clock);
            prop_assert!(offset.unsigned_abs() <= FARTHEST);
            prop_assert_eq!(pins.source_date_epoch - policy.source_date_epoch, offset);
            // The next one lies on the other side, and nothing of it is the same.
            let next = draw(&secret, &overlay, number + 1, &policy);
            prop_assert!((second(&next.clock) > second(&policy.clock)) != (offset > 0));
            prop_assert_ne!(next.seed, pins.seed);
        }

        #[test]
        fn everything_that_goes_in_matters(secret: [u8; 32], flip in 0..32_usize, overlay: u64) {
            let Policy { pins: policy, runs, .. } = Policy::default();
            let digest = |n: u64| Digest::of(&n.to_be_bytes());
            let here = draw(&secret, &digest(overlay), 0, &policy);
            let mut other = secret;
            other[flip] ^= 1;
            prop_assert_ne!(&draw(&other, &digest(overlay), 0, &policy), &here);
            prop_assert_ne!(&draw(&secret, &digest(overlay ^ 1), 0, &policy), &here);
            let ask = |secret, overlay, lane, number| {
                questions(secret, &digest(overlay), lane, number, &runs)
            };
            let asked = ask(&secret, overlay, Lane::Property, 1);
            prop_assert_eq!(asked.len(), 32);
            for (secret, overlay, lane, number) in [
                (&other, overlay, Lane::Property, 1), (&secret, overlay ^ 1, Lane::Property, 1),
                (&secret, overlay, Lane::HeldOut, 1), (&secret, overlay, Lane::Property, 2),
            ] {
                prop_assert_ne!(ask(secret, overlay, lane, number), asked.clone());
            }
        }
    }

    #[test]
    fn grinding_gets_dearer() {
        let runs = Policy::default().runs;
        let drawn: Vec<u32> = (0..8).map(|failures| planned(&runs, failures)).collect();
        assert_eq!(drawn, [2, 2, 2, 4, 8, 16, 16, 16]);
        let none = Runs {
            held_out: 0,
            ..runs
        };
        assert_eq!(planned(&none, 9), 0);
    }

    #[test]
    fn exempt_by_id_or_by_function() {
        let runs = Runs {
            pin_sensitive: vec![
                "t.py::test_a".parse().unwrap(),
                "t.py::test_b[1]".parse().unwrap(),
            ],
            ..Policy::default().runs
        };
        let exempt = |node: &str| is_exempt(&runs, &node.parse().unwrap());
        assert!(exempt("t.py::test_a") && exempt("t.py::test_a[x]") && exempt("t.py::test_b[1]"));
        assert!(!exempt("t.py::test_ab") && !exempt("t.py::test_b") && !exempt("t.py::test_b[2]"));
    }
}
