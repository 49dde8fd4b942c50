//! Which path of a patch is what: src, oracle, cassette, proposed, touched test, other. Pure; total; no I/O.

use crate::git::{Change, ResolvedCommits};
use crate::policy::Policy;
use crate::request::Role;
use serde::{Deserialize, Serialize};

/// What a path is to a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathClass {
    /// Product code: the only thing taken from head.
    Src,
    /// What judges.
    Oracle,
    /// Records and their ledger.
    Cassette,
    /// An agent's extra tests: never scored.
    Proposed,
    /// Tests outside sealed and proposed: the merge lane.
    Touched,
    /// Everything else: not applied, listed.
    Other,
}

/// The classified patch. Only `classify` makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffClass {
    commits: ResolvedCommits,
    policy: Policy,
    role: Role,
    changes: Vec<(Change, PathClass)>,
}
