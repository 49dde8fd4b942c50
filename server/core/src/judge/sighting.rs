//! What one judgement saw of a mixed case, for a list over time: how many attempts speak of it, and how many it did not pass.
//!
//! An attempt that ended before it came to the case says nothing of the case; it would put every case behind a crash on the
//! list.

use super::judged::CaseSummary;
use crate::id::NodeId;
use crate::outcome::{AttemptFacts, Class, End, Leased, Outcome, class_of};

/// A mixed case, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Attempts that speak of it.
    pub attempts: u32,
    /// Those of them that it did not pass.
    pub failures: u32,
}

/// What these attempts, which the case was judged from, saw of it; `None` where it is not mixed by itself.
#[must_use]
pub fn sighting(case: &CaseSummary, attempts: &[AttemptFacts]) -> Option<Sighting> {
    if case.class != Class::Mixed {
        return None;
    }
    let spoken: Vec<Outcome> = case
        .outcomes
        .iter()
        .zip(attempts)
        .filter(|(_, facts)| speaks(facts, &case.node))
        .map(|(outcome, _)| outcome.clone())
        .collect();
    let failures = spoken.iter().filter(|o| **o != Outcome::Passed).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mixed = !spoken.is_empty() && class_of(&spoken, Leased::No) == Class::Mixed;
    mixed.then(|| Sighting {
        attempts: count(spoken.len()),
        failures: count(failures),
    })
}

fn speaks(facts: &AttemptFacts, node: &NodeId) -> bool {
    facts.end.end == End::Finished
        || facts.end.running.as_ref() == Some(node)
        || facts.cases.iter().any(|record| record.node == *node)
}

/// The one-sided 95 % bound on a failure rate of which so many failures were seen (Clopper and Pearson), in parts per
/// million: the rate at which so few or fewer would be seen one time in twenty. For no failure it is the bound of a report.
#[must_use]
pub fn upper_bound_ppm(failures: u64, attempts: u64) -> u32 {
    const MILLION: u32 = 1_000_000;
    if failures >= attempts {
        return MILLION;
    }
    let (mut below, mut above) = (0, MILLION);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if at_most(failures, attempts, f64::from(middle) / 1e6) > 0.05 {
            below = middle;
        } else {
            above = middle;
        }
    }
    above
}

/// How likely at most so many failures are, each with this chance, which is neither 0 nor 1.
#[expect(clippy::cast_precision_loss, reason = "counts of attempts")]
fn at_most(failures: u64, attempts: u64, chance: f64) -> f64 {
    // In logarithms: the first term of many attempts is too small for a number.
    let odds = (chance / (1.0 - chance)).ln();
    let mut term = attempts as f64 * (1.0 - chance).ln();
    let mut sum = term.exp();
    for k in 1..=failures {
        term += ((attempts - k + 1) as f64 / k as f64).ln() + odds;
        sum += term.exp();
    }
    sum
}
