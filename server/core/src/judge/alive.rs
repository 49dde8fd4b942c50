//! Whether the oracle can tell right from wrong at all: what it said of products that are wrong on purpose.
//!
//! A null product, whose functions all raise, has to fail a sealed case that passes on base. Planted changes that no
//! such case notices are a warning. Where they were planted is for the operator: an agent that knew could live there.

use super::expected::{self, Case, Kind};
use super::judged::{About, Ground};
use super::observed::Observed;
use crate::id::{NodeId, RepoPath};
use crate::outcome::{AttemptFacts, End, Outcome};
use crate::reason::Reason;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What the sealed cases said of a wrong product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heed {
    /// A case that passes on base did not pass.
    Noticed,
    /// All that pass on base passed.
    Unnoticed,
}

/// What is known of base's null product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NullProduct {
    /// A case that passes on base fails on it.
    Noticed,
    /// All that pass on base pass on it, too.
    Unnoticed,
    /// Src has no function that could raise, or no sealed case passes on base: nothing can be told by it.
    Untold,
}

impl From<Heed> for NullProduct {
    fn from(heed: Heed) -> Self {
        match heed {
            Heed::Noticed => Self::Noticed,
            Heed::Unnoticed => Self::Unnoticed,
        }
    }
}

/// One planted change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedChange {
    /// Its file, as base names it. Candidate text, like the function: escape before showing.
    pub path: String,
    /// Its line.
    pub line: u32,
    /// The function it lies in, dotted, or `<module>`.
    pub function: String,
    /// What was changed, in the harness's words.
    pub what: String,
}

/// What became of the planted changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutants {
    /// How many there were to plant.
    pub drawn: usize,
    /// How many were run in the time there was.
    pub run: usize,
    /// Those that no sealed case noticed.
    pub unnoticed: Vec<PlantedChange>,
}

impl Mutants {
    /// `5 of 20 planted changes were noticed by no sealed case`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut said = format!(
            "{} of {} planted changes were noticed by no sealed case",
            self.unnoticed.len(),
            self.run
        );
        if self.run < self.drawn {
            said.push_str(&format!(
                "; for {} more there was no time",
                self.drawn - self.run
            ));
        }
        said
    }
}

/// What is known of the oracle.
#[derive(Debug, Clone, Copy)]
pub struct Liveness<'a> {
    /// Its word on the null product.
    pub null: NullProduct,
    /// Its word on planted changes; `None` where they were not run yet.
    pub mutants: Option<&'a Mutants>,
}

/// The sealed cases that pass in base's own run, in its order.
#[must_use]
pub fn green(base: &AttemptFacts, files: &[RepoPath]) -> Vec<NodeId> {
    green_cases(base, files).map(|case| case.node).collect()
}

fn green_cases<'a>(base: &'a AttemptFacts, files: &[RepoPath]) -> impl Iterator<Item = Case> + 'a {
    let observed = Observed::of(base);
    expected::cases(base, files, std::iter::empty())
        .into_iter()
        .filter(|case| case.kind == Kind::Runs)
        .filter(move |case| observed.outcome(case) == Some(Outcome::Passed))
}

/// Whether the wrong product's attempt differs from base's where base is green. That attempt may have been ended after
/// its first red case: a case that it collected and did not come to says nothing.
#[must_use]
pub fn heed(base: &AttemptFacts, wrong: &AttemptFacts, files: &[RepoPath]) -> Heed {
    if base.end.end == End::Finished && wrong.end.end != End::Finished {
        return Heed::Noticed;
    }
    let observed = Observed::of(wrong);
    let collected: HashSet<&NodeId> = wrong.collected.iter().map(|case| &case.node).collect();
    let noticed = green_cases(base, files).any(|case| {
        let passed = || observed.outcome(&case) == Some(Outcome::Passed);
        !collected.contains(&case.node) || (observed.reached(&case.node) && !passed())
    });
    if noticed {
        Heed::Noticed
    } else {
        Heed::Unnoticed
    }
}

/// The ground of a dead oracle; it stands under `oracle_integrity` and `src_score`.
pub(super) fn dead(null: NullProduct) -> Option<Ground> {
    match null {
        NullProduct::Noticed | NullProduct::Untold => None,
        NullProduct::Unnoticed => Some(Ground {
            reason: Reason::OracleDead,
            about: About::Patch,
            subject: None,
            detail: "every sealed case that passes on base also passes when each function of src raises: \
                     none of them depends on what src does"
                .to_owned(),
            seen: None,
        }),
    }
}

/// The warning about a weak one.
pub(super) fn weak(mutants: Option<&Mutants>) -> Option<Ground> {
    let mutants = mutants.filter(|mutants| !mutants.unnoticed.is_empty())?;
    Some(Ground {
        reason: Reason::OracleWeak,
        about: About::Patch,
        subject: None,
        detail: mutants.sentence(),
        seen: None,
    })
}
