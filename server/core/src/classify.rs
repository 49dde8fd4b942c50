//! Which path of a patch is what: src, oracle, cassette, proposed, touched test, other; and what that makes of the patch.
//!
//! `Patch` and policy become a [`DiffClass`]. Total over paths, indifferent to the order of changes; never reads a tree.
//! Fails with `Refused`: `bad-path` for new names that are not portable, `merge-conflict` where the policy refuses branches
//! that are behind, `policy-invalid` where a maintainer's change breaks the policy itself.

mod change_set;
mod ini;
mod names;
mod seeds;
mod tables;

pub(crate) use names::folded;

use crate::git::{Change, GitPath, Relation, ResolvedCommits};
use crate::plan::Finding;
use crate::policy::{POLICY_PATH, Paths, Policy, WhenBehind};
use crate::reason::{Refused, RefusedCode};
use crate::request::Role;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

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

/// Oracle paths that no policy can give away.
const ALWAYS_ORACLE: [&str; 2] = [POLICY_PATH, "ci/allowed_signers"];

/// Files (and packages: the interpreter imports `sitecustomize/` as readily) that steer a test run wherever they are.
const STEERING_NAMES: [&[u8]; 9] = [
    b"conftest.py",
    b"pytest.ini",
    b".pytest.ini",
    b"pytest.toml",
    b".pytest.toml",
    b"sitecustomize.py",
    b"usercustomize.py",
    b"sitecustomize",
    b"usercustomize",
];

/// Files of which only the pytest tables steer a test run.
const TABLE_NAMES: [&[u8]; 3] = [b"pyproject.toml", b"setup.cfg", b"tox.ini"];

/// Whether both contents of a change at this path are wanted: files whose pytest tables are compared as parsed data, those
/// that hold options of the runner, and the policy, whose head side is read when a maintainer changes it.
#[must_use]
pub fn compares_tables(path: &GitPath) -> bool {
    path.as_bytes() == POLICY_PATH.as_bytes() || holds_tables(path) || seeds::may_hold(path)
}

fn holds_tables(path: &GitPath) -> bool {
    let name = path.as_bytes().rsplit(|b| *b == b'/').next();
    name.is_some_and(|name| TABLE_NAMES.contains(&name))
}

/// The class of a path by its name alone: exact path, then the oracle's names, then the longest prefix. What pytest tables
/// a file holds is not looked at here; a changed one may still turn out to be an oracle edit.
#[must_use]
pub fn class_of(paths: &Paths, path: &GitPath) -> PathClass {
    let bytes = path.as_bytes();
    if let Some(class) = exact_class(paths, bytes) {
        return class;
    }
    let by_prefix = prefix_class(paths, bytes);
    let steers = bytes
        .split(|b| *b == b'/')
        .any(|part| STEERING_NAMES.contains(&part));
    match by_prefix {
        Some(PathClass::Proposed) => PathClass::Proposed,
        _ if steers => PathClass::Oracle,
        Some(class) => class,
        None => above_root(paths, bytes),
    }
}

fn exact_class(paths: &Paths, path: &[u8]) -> Option<PathClass> {
    let fixed = ALWAYS_ORACLE
        .into_iter()
        .chain([paths.manifest.as_str(), paths.leases.as_str()]);
    if fixed.into_iter().any(|p| p.as_bytes() == path) {
        return Some(PathClass::Oracle);
    }
    if paths.ledger.as_str().as_bytes() == path {
        return Some(PathClass::Cassette);
    }
    roots(paths)
        .find(|(root, _)| !root.ends_with('/') && root.as_bytes() == path)
        .map(|(_, class)| class)
}

/// A path equal to a root, as when `src` becomes a symlink, belongs to that root.
fn prefix_class(paths: &Paths, path: &[u8]) -> Option<PathClass> {
    roots(paths)
        .filter(|(root, _)| root.ends_with('/') && covers(root.as_bytes(), path))
        .max_by_key(|(root, class)| (root.len(), Reverse(rank(*class))))
        .map(|(_, class)| class)
}

fn covers(prefix: &[u8], path: &[u8]) -> bool {
    path.starts_with(prefix) || prefix.strip_suffix(b"/") == Some(path)
}

/// A leaf that stands where a directory above a root would: it takes the root away, so it belongs to it.
fn above_root(paths: &Paths, path: &[u8]) -> PathClass {
    let above = |root: &str| {
        root.as_bytes()
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with(b"/"))
    };
    roots(paths)
        .filter(|(root, _)| above(root))
        .map(|(_, class)| class)
        .min_by_key(|class| rank(*class))
        .unwrap_or(PathClass::Other)
}

/// The strictest class comes first, for where two roots claim one path.
fn rank(class: PathClass) -> u8 {
    match class {
        PathClass::Oracle => 0,
        PathClass::Cassette => 1,
        PathClass::Src => 2,
        PathClass::Touched => 3,
        PathClass::Proposed => 4,
        PathClass::Other => 5,
    }
}

/// Every root of the policy with its class.
fn roots(paths: &Paths) -> impl Iterator<Item = (&str, PathClass)> {
    class_roots(&paths.sealed, PathClass::Oracle)
        .chain(class_roots(&paths.protect, PathClass::Oracle))
        .chain([(paths.cassettes.as_str(), PathClass::Cassette)])
        .chain(class_roots(&paths.src, PathClass::Src))
        .chain(class_roots(&paths.proposed, PathClass::Proposed))
        .chain(class_roots(&paths.tests, PathClass::Touched))
}

fn class_roots(list: &[String], class: PathClass) -> impl Iterator<Item = (&str, PathClass)> {
    list.iter().map(move |root| (root.as_str(), class))
}

/// Two commits and what differs between them, as the repository room read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Head, base and how they stand.
    pub commits: ResolvedCommits,
    /// Every leaf that head changed; see protocol.md, "Classifying the patch".
    pub changes: Vec<Change>,
    /// Every leaf of base's whole tree: new names may not collide with any of them.
    pub base_paths: Vec<GitPath>,
}

/// What the classes of the changed paths make of the whole patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// No oracle path changed: head's src against base's oracle.
    Agent,
    /// Oracle without src, by a maintainer: head's oracle against base's src.
    Human,
    /// A verdict already: the oracle was touched by one who may not, or together with src.
    Barred(Vec<Finding>),
}

/// The classified patch. Only [`classify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffClass {
    commits: ResolvedCommits,
    policy: Policy,
    role: Role,
    changes: Vec<(Change, PathClass)>,
    standing: Standing,
    seeds: Vec<Finding>,
}

/// The classes of all changed paths, and what they make of the patch. `policy` is base's.
///
/// # Errors
/// `bad-path`, `merge-conflict`, `policy-invalid`: see the head of this room.
pub fn classify(patch: Patch, policy: Policy, role: Role) -> Result<DiffClass, Refused> {
    let Patch {
        commits,
        mut changes,
        base_paths,
    } = patch;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    if commits.relation == Relation::Behind && policy.runs.when_behind == WhenBehind::Refuse {
        return Err(Refused::new(
            RefusedCode::MergeConflict,
            "base has moved on since this branch began, and the policy says when_behind = \"refuse\"; rebase it",
        ));
    }
    names::check(&base_paths, &changes)?;
    let mut changes: Vec<_> = changes
        .into_iter()
        .map(|change| {
            let class = class_of_change(&policy.paths, &change);
            (change, class)
        })
        .collect();
    let standing = change_set::standing(&policy.paths, role, &changes);
    let policy = match standing {
        Standing::Human => policy_after(policy, &changes)?,
        Standing::Agent | Standing::Barred(_) => policy,
    };
    let counted = changes
        .iter()
        .filter(|(_, class)| *class != PathClass::Proposed);
    let seeds = counted
        .flat_map(|(change, _)| seeds::drift(policy.pins.seed, change))
        .collect();
    // Contents were wanted for the comparison only.
    changes
        .iter_mut()
        .for_each(|(change, _)| change.contents = None);
    Ok(DiffClass {
        commits,
        policy,
        role,
        changes,
        standing,
        seeds,
    })
}

/// A maintainer's change of the policy is scored under the changed policy: that is what will hold once it is merged.
fn policy_after(base: Policy, changes: &[(Change, PathClass)]) -> Result<Policy, Refused> {
    let changed = changes
        .iter()
        .map(|(change, _)| change)
        .find(|change| change.path.as_bytes() == POLICY_PATH.as_bytes());
    match changed.map(|change| (&change.head, &change.contents)) {
        None => Ok(base),
        Some((None, _)) => Ok(Policy::default()),
        Some((Some(_), Some(contents))) => Ok(Policy::parse(&contents.head)?),
        Some((Some(_), None)) => Err(Refused::new(
            RefusedCode::PolicyInvalid,
            format!("{POLICY_PATH} in head is no file that can be read"),
        )),
    }
}

fn class_of_change(paths: &Paths, change: &Change) -> PathClass {
    let class = class_of(paths, &change.path);
    let compared = holds_tables(&change.path)
        && exact_class(paths, change.path.as_bytes()).is_none()
        && class != PathClass::Proposed;
    if compared && tables::edited(change) {
        PathClass::Oracle
    } else {
        class
    }
}

impl DiffClass {
    /// Head, base and how they stand.
    #[must_use]
    pub fn commits(&self) -> &ResolvedCommits {
        &self.commits
    }
    /// The policy of the tree that supplies the oracle: base's, but head's where a human change set changes it.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
    /// The role of the token that asked.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }
    /// Every changed path with its class, byte-sorted.
    #[must_use]
    pub fn changes(&self) -> &[(Change, PathClass)] {
        &self.changes
    }
    /// Seeds beside the policy's that the patch brings in options of the runner.
    pub(crate) fn seeds(&self) -> &[Finding] {
        &self.seeds
    }
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }
}

#[cfg(test)]
mod tests;
