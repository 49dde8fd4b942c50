//! What is worth knowing about a patch though no verdict turns on it.

use super::{Finding, SrcEntry};
use crate::classify::{DiffClass, PathClass};
use crate::git::Relation;
use crate::reason::Reason;

/// How many paths are named one by one, per reason; the report's path classes list all.
const NAMED: usize = 20;

/// The warnings of this patch, and of the src that it makes.
pub(super) fn of(diff: &DiffClass, src: &[SrcEntry]) -> Vec<Finding> {
    let commits = diff.commits();
    let mut warnings = Vec::new();
    if commits.base.id != commits.base_tip {
        warnings.push(Finding {
            reason: Reason::StaleBase,
            subject: None,
            detail: format!("the protected tip is {}", commits.base_tip),
        });
    }
    match commits.relation {
        Relation::Contains => {}
        Relation::Behind => warnings.push(Finding {
            reason: Reason::HeadBehindBase,
            subject: None,
            detail: format!("head does not contain base {}", commits.base.id),
        }),
    }
    let unscored = diff.changes().iter().filter_map(|(change, class)| {
        let told = match class {
            PathClass::Other => "outside src and the tests: not applied",
            PathClass::Src
            | PathClass::Oracle
            | PathClass::Cassette
            | PathClass::Proposed
            | PathClass::Touched => return None,
        };
        Some(Finding::at(Reason::UnscoredChange, &change.path, told))
    });
    capped(&mut warnings, Reason::UnscoredChange, unscored);
    let pointers = src.iter().filter(|entry| entry.lfs_pointer).map(|entry| {
        Finding::at(
            Reason::LfsPointer,
            &entry.path,
            "a Git LFS pointer is scored as it stands",
        )
    });
    capped(&mut warnings, Reason::LfsPointer, pointers);
    warnings
}

fn capped(warnings: &mut Vec<Finding>, reason: Reason, found: impl Iterator<Item = Finding>) {
    let mut found = found;
    warnings.extend(found.by_ref().take(NAMED));
    let rest = found.count();
    if rest > 0 {
        warnings.push(Finding {
            reason,
            subject: None,
            detail: format!("paths beside these: {rest}"),
        });
    }
}
