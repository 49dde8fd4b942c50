//! Which sealed files need the product in their own process: what base does split, against what it does shared.
//!
//! Base's code never chooses the mode: a file that needs it stays red until a maintainer lists it in the policy.

use super::expected::{self, Case, Kind};
use super::observed::Observed;
use crate::id::{NodeId, RepoPath};
use crate::outcome::{AttemptFacts, Outcome};
use std::collections::BTreeMap;

/// Files whose cases differ by the mode, each with those that pass shared and not split.
pub type NeedShared = BTreeMap<RepoPath, Vec<NodeId>>;

/// The files in which base has a red or missing case: worth running once more as shared. In order of the manifest.
#[must_use]
pub fn troubled(base: &AttemptFacts, files: &[RepoPath]) -> Vec<RepoPath> {
    let observed = Observed::of(base);
    let red: Vec<RepoPath> = expected::cases(base, files, std::iter::empty())
        .into_iter()
        .filter(|case| is_red(&observed, case))
        .filter_map(|case| case.file)
        .collect();
    files
        .iter()
        .filter(|file| red.contains(file))
        .cloned()
        .collect()
}

/// The cases, and the files that cannot be collected, that are red in base's own run.
#[must_use]
pub fn red(base: &AttemptFacts, files: &[RepoPath]) -> Vec<NodeId> {
    let observed = Observed::of(base);
    expected::cases(base, files, std::iter::empty())
        .into_iter()
        .filter(|case| is_red(&observed, case))
        .map(|case| case.node)
        .collect()
}

/// The files that need it: base, run shared, passes a case that it does not pass split.
#[must_use]
pub fn need_shared(split: &AttemptFacts, shared: &AttemptFacts, files: &[RepoPath]) -> NeedShared {
    let (apart, together) = (Observed::of(split), Observed::of(shared));
    let mut need = NeedShared::new();
    for case in expected::cases(shared, files, std::iter::empty()) {
        if case.kind == Kind::Runs
            && together.outcome(&case) == Some(Outcome::Passed)
            && is_red(&apart, &case)
            && let Some(file) = case.file
        {
            need.entry(file).or_default().push(case.node);
        }
    }
    need
}

fn is_red(observed: &Observed<'_>, case: &Case) -> bool {
    observed
        .outcome(case)
        .is_some_and(|outcome| outcome.red().is_some())
}
