//! Which one change of pins settles a mixed case: runs of it under a single changed pin become a name.
//!
//! A change is named only if a run of as many equal outcomes would hardly come from the mix that was seen before, so a rare
//! failure names nothing. The runs are advice: they are in no verdict.

use super::diagnosis::diagnose;
use crate::id::{NodeId, Seed};
use crate::outcome::{
    AttemptFacts, CaseRecord, Class, Leased, Outcome, Phase, Pins, class_of, death, fold,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Mixed cases that are looked at in one score.
const CASES: usize = 20;
/// How often chance alone may name any of the changes for a case that none of them moves.
const CHANCE: f64 = 0.02;

/// One pin that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moved {
    /// The wall clock.
    Clock,
    /// The seed.
    Seed,
    /// PYTHONHASHSEED.
    HashSeed,
    /// The order of the cases.
    Order,
    /// The order of directory listings.
    Listings,
}

impl Moved {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 5] = [
        Self::Clock,
        Self::Seed,
        Self::HashSeed,
        Self::Order,
        Self::Listings,
    ];

    /// Its name in reports and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Seed => "seed",
            Self::HashSeed => "hash-seed",
            Self::Order => "order",
            Self::Listings => "listings",
        }
    }

    /// In words, as the end of "another …".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Seed => "seed",
            Self::HashSeed => "hash seed",
            Self::Order => "order of cases",
            Self::Listings => "order of listings",
        }
    }
}

/// Attempts under one changed pin; `None` are those under none, for comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Perturbed {
    /// What was changed.
    pub changed: Option<Moved>,
    /// The attempts.
    pub attempts: Vec<AttemptFacts>,
}

/// The mixed cases of these attempts whose sources leave it open what moves them.
#[must_use]
pub fn open_cases(attempts: &[AttemptFacts]) -> Vec<NodeId> {
    let mut records: BTreeMap<&NodeId, Vec<&CaseRecord>> = BTreeMap::new();
    for record in attempts.iter().flat_map(|facts| &facts.cases) {
        records.entry(&record.node).or_default().push(record);
    }
    records
        .into_iter()
        .filter(|(node, records)| {
            let outcomes: Vec<Outcome> =
                attempts.iter().map(|facts| outcome(facts, node)).collect();
            class_of(&outcomes, Leased::No) == Class::Mixed && diagnose(records).is_open()
        })
        .map(|(node, _)| node.clone())
        .take(CASES)
        .collect()
}

/// The only change under which the case is always the same, where chance does not explain it.
#[must_use]
pub fn settled(node: &NodeId, seen: &[AttemptFacts], perturbed: &[Perturbed]) -> Option<Moved> {
    let outcomes = |attempts: &[AttemptFacts]| -> Vec<Outcome> {
        attempts.iter().map(|facts| outcome(facts, node)).collect()
    };
    let mut mix = outcomes(seen);
    for unchanged in perturbed.iter().filter(|run| run.changed.is_none()) {
        mix.extend(outcomes(&unchanged.attempts));
    }
    let mut found = perturbed.iter().filter_map(|run| {
        let changed = run.changed?;
        let outcomes = outcomes(&run.attempts);
        let same = outcomes.windows(2).all(|pair| pair.first() == pair.last());
        (same && by_chance(&mix, outcomes.len()) <= CHANCE).then_some(changed)
    });
    let first = found.next();
    // What settles under more than one change is settled by neither.
    found.next().is_none().then_some(first)?
}

/// How likely it is that under any of the changes so many outcomes, drawn from this mix, are equal (Bonferroni's bound).
fn by_chance(mix: &[Outcome], rounds: usize) -> f64 {
    let rounds = i32::try_from(rounds).unwrap_or(i32::MAX);
    let kinds: BTreeSet<_> = mix.iter().collect();
    #[expect(clippy::cast_precision_loss, reason = "a few dozen attempts")]
    let share = |kind: &Outcome| {
        mix.iter().filter(|one| *one == kind).count() as f64 / mix.len().max(1) as f64
    };
    #[expect(clippy::cast_precision_loss, reason = "five")]
    let changes = Moved::ALL.len() as f64;
    changes
        * kinds
            .into_iter()
            .map(|kind| share(kind).powi(rounds))
            .sum::<f64>()
}

/// These pins with that one changed. The order of cases and of listings is no pin of an attempt.
#[must_use]
pub fn changed_pins(of: &Pins, changed: Option<Moved>) -> Pins {
    let mut pins = of.clone();
    match changed {
        Some(Moved::Clock) => {
            // Another weekday and hour, soon.
            let later = jiff::SignedDuration::from_secs(3 * 86_400 + 5 * 3600 + 17 * 60 + 11);
            if let Ok(clock) = of.clock.parse::<jiff::Timestamp>()
                && let Ok(clock) = clock.checked_add(later)
            {
                pins.clock = clock.to_string();
            }
        }
        Some(Moved::Seed) => pins.seed = Seed(of.seed.0.wrapping_add(1)),
        Some(Moved::HashSeed) => pins.hash_seed = of.hash_seed.wrapping_add(1),
        Some(Moved::Order | Moved::Listings) | None => {}
    }
    pins
}

fn outcome(facts: &AttemptFacts, node: &NodeId) -> Outcome {
    let mut records = facts.cases.iter().filter(|record| record.node == *node);
    let Some(first) = records.next() else {
        return death(facts.end.end)
            .map_or(Outcome::Missing, |code| Outcome::Red(code, Vec::new()));
    };
    let phases: Vec<&Phase> = first.phases.iter().collect();
    fold(&phases, facts.end.end)
}
