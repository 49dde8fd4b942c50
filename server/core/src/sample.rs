//! Commits, changes and trees for the tables of the tests, spelled short.
//!
//! A tree is a list of lines `path`, `path*` (executable), `path@target` (symlink), `path+` (submodule) or `path/` (an
//! empty directory where a leaf belongs); the text behind `=` stands for the content and decides the object id.

#![expect(
    clippy::unwrap_used,
    reason = "a sample that is misspelled should stop the test"
)]

use crate::cassette::CassetteFacts;
use crate::classify::{DiffClass, Patch, PathClass, class_of, classify};
use crate::git::{Change, Commit, Contents, Entry, GitPath, Mode, Relation, ResolvedCommits};
use crate::id::{Digest, ObjectId};
use crate::plan::{OracleFacts, SrcEntry, SrcFacts, TouchedFacts};
use crate::policy::Policy;
use crate::reason::Refused;
use crate::request::Role;
use std::collections::BTreeMap;

/// An object id out of any text.
pub(crate) fn object(text: &str) -> ObjectId {
    Digest::of(text.as_bytes()).hex()[..40].parse().unwrap()
}

/// A leaf as it stands in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) entry: Entry,
    pub(crate) content: String,
}

/// Path to leaf, see the head of this file.
pub(crate) fn tree(lines: &[&str]) -> BTreeMap<GitPath, Leaf> {
    lines.iter().map(|line| leaf(line)).collect()
}

fn leaf(line: &str) -> (GitPath, Leaf) {
    let (name, content) = line.split_once('=').unwrap_or((line, ""));
    let (path, mode, content) = if let Some((path, target)) = name.split_once('@') {
        (path, Mode::Symlink, target)
    } else if let Some(path) = name.strip_suffix('*') {
        (path, Mode::Executable, content)
    } else if let Some(path) = name.strip_suffix('+') {
        (path, Mode::Gitlink, content)
    } else if let Some(path) = name.strip_suffix('/') {
        (path, Mode::Tree, content)
    } else {
        (name, Mode::File, content)
    };
    let entry = Entry {
        mode,
        id: object(content),
    };
    (
        GitPath::from(path),
        Leaf {
            entry,
            content: content.to_owned(),
        },
    )
}

/// What differs between two trees, as the repository room reports it.
pub(crate) fn changes(base: &[&str], head: &[&str]) -> Vec<Change> {
    let (base, head) = (tree(base), tree(head));
    let mut paths: Vec<&GitPath> = base.keys().chain(head.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths
        .into_iter()
        .filter(|path| base.get(path) != head.get(path));
    changed
        .map(|path| {
            let (old, new) = (base.get(path), head.get(path));
            let bytes = |leaf: Option<&Leaf>| {
                leaf.map_or_else(Vec::new, |l| l.content.clone().into_bytes())
            };
            Change {
                path: path.clone(),
                base: old.map(|l| l.entry.clone()),
                head: new.map(|l| l.entry.clone()),
                contents: crate::classify::compares_tables(path).then(|| Contents {
                    base: bytes(old),
                    head: bytes(new),
                }),
            }
        })
        .collect()
}

/// Commits whose only facts are names.
pub(crate) fn commits(relation: Relation) -> ResolvedCommits {
    let commit = |name: &str| Commit {
        id: object(name).to_string().parse().unwrap(),
        tree: object(&format!("{name} tree")).to_string().parse().unwrap(),
        sha256: Digest::of(name.as_bytes()),
    };
    let base = commit("base");
    ResolvedCommits {
        repository: "demo".parse().unwrap(),
        protected_ref: "refs/heads/main".to_owned(),
        head: commit("head"),
        base_tip: base.id.clone(),
        merge_bases: vec![base.id.clone()],
        base,
        relation,
    }
}

/// The patch between two trees.
pub(crate) fn patch(base: &[&str], head: &[&str]) -> Patch {
    Patch {
        commits: commits(Relation::Contains),
        changes: changes(base, head),
        base_paths: tree(base).into_keys().collect(),
    }
}

/// Classified under the default policy.
pub(crate) fn classified(role: Role, base: &[&str], head: &[&str]) -> Result<DiffClass, Refused> {
    classify(patch(base, head), Policy::default(), role)
}

/// Facts of a tree that supplies the oracle.
pub(crate) fn oracle(policy: &Policy, lines: &[&str]) -> OracleFacts {
    let tree = tree(lines);
    let bytes = |path: &str| {
        tree.get(&GitPath::from(path))
            .map(|l| l.content.clone().into_bytes())
    };
    let root = crate::manifest::sealed_root(&policy.paths.manifest).as_bytes();
    OracleFacts {
        tree: object("oracle tree").to_string().parse().unwrap(),
        manifest: bytes(policy.paths.manifest.as_str()),
        leases: bytes(policy.paths.leases.as_str()),
        ledger: bytes(policy.paths.ledger.as_str()),
        sealed_paths: tree
            .keys()
            .filter(|p| p.as_bytes().starts_with(root))
            .cloned()
            .collect(),
        lfs_pointers: tree
            .iter()
            .filter(|(path, leaf)| {
                class_of(&policy.paths, path) == PathClass::Oracle && leaf.content == LFS
            })
            .map(|(path, _)| path.clone())
            .collect(),
        oracle_digest: Digest::of(b"oracle"),
        cassettes: CassetteFacts::default(),
    }
}

/// A content that stands for a Git LFS pointer.
pub(crate) const LFS: &str = "lfs";

/// Facts of the src of one tree against base's.
pub(crate) fn src(policy: &Policy, base: &[&str], scored: &[&str]) -> SrcFacts {
    let in_src = |path: &GitPath| class_of(&policy.paths, path) == PathClass::Src;
    SrcFacts {
        trees: vec![(
            "src/".to_owned(),
            object("src tree").to_string().parse().unwrap(),
        )],
        entries: tree(scored)
            .into_iter()
            .filter(|(path, _)| in_src(path))
            .map(|(path, leaf)| SrcEntry {
                size: leaf.content.len() as u64,
                link_target: (leaf.entry.mode == Mode::Symlink)
                    .then(|| leaf.content.clone().into_bytes()),
                lfs_pointer: leaf.content == LFS,
                path,
                entry: leaf.entry,
            })
            .collect(),
        base: tree(base)
            .into_iter()
            .filter(|(path, _)| in_src(path))
            .map(|(path, leaf)| (path, leaf.entry))
            .collect(),
        touched: TouchedFacts::default(),
    }
}
