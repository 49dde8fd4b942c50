//! Which path of a patch is what: src, oracle, cassette, proposed, touched test, other. Pure; total; no I/O.

use crate::git::{Change, GitPath, ResolvedCommits};
use crate::policy::{POLICY_PATH, Paths, Policy};
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

/// Whether both contents of a change at this path are wanted: files whose pytest tables are compared as parsed data, and
/// the policy, whose head side is read when a maintainer changes it.
#[must_use]
pub fn compares_tables(path: &GitPath) -> bool {
    path.as_bytes() == POLICY_PATH.as_bytes() || holds_tables(path)
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

/// The classified patch. Only `classify` makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffClass {
    commits: ResolvedCommits,
    policy: Policy,
    role: Role,
    changes: Vec<(Change, PathClass)>,
}
