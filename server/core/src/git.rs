//! Git's nouns as plain values: modes, entries, changes, commits. Reading them is the repository room's job.

use crate::id::{CommitId, Digest, ObjectId, RepoName, TreeId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A path as a tree holds it: raw bytes, not yet trusted to be UTF-8 or portable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GitPath(Vec<u8>);

impl GitPath {
    /// The path with these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    /// Its text, where it is UTF-8.
    #[must_use]
    pub fn as_utf8(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
    /// `self/name`.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self(bytes)
    }
    /// Whether a symlink here with this target stays in the tree. By the words alone: never above the tree's root, never
    /// absolute.
    #[must_use]
    pub fn leads_inside(&self, target: &[u8]) -> bool {
        if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
            return false;
        }
        let mut depth = self.0.iter().filter(|b| **b == b'/').count();
        for part in target.split(|b| *b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => match depth.checked_sub(1) {
                    Some(up) => depth = up,
                    None => return false,
                },
                _ => depth += 1,
            }
        }
        true
    }
}
impl From<&str> for GitPath {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}
impl fmt::Display for GitPath {
    /// Escaped, never raw.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::shown_bytes(&self.0, 300))
    }
}
impl fmt::Debug for GitPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GitPath({self})")
    }
}

/// What kind of thing a tree entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// 100644 (and the historic 100664).
    File,
    /// 100755.
    Executable,
    /// 120000.
    Symlink,
    /// 160000, a submodule.
    Gitlink,
    /// 040000.
    Tree,
}

/// One entry of a tree, without its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// File, link, tree…
    pub mode: Mode,
    /// The object it names.
    pub id: ObjectId,
}

/// A leaf (never a tree) that differs between base and head, and between head and at least one merge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: GitPath,
    /// What base has there; `None` where it has nothing.
    pub base: Option<Entry>,
    /// What head has there; `None` where it was deleted.
    pub head: Option<Entry>,
    /// Both contents, only for files whose *tables* are compared (`classify::compares_tables`); `None` elsewhere.
    pub contents: Option<Contents>,
}

/// Both sides of a file that is compared as parsed data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Base's bytes; empty where base has no such file.
    pub base: Vec<u8>,
    /// Head's bytes; empty where head has no such file.
    pub head: Vec<u8>,
}

/// A commit as far as a statement binds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its object id.
    pub id: CommitId,
    /// Its root tree.
    pub tree: TreeId,
    /// SHA-256 of the raw commit object without git's header (what `git cat-file commit ID` prints).
    pub sha256: Digest,
}

/// How head stands to base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Base is an ancestor of head: head's src is what merges.
    Contains,
    /// Base moved on since head branched.
    Behind,
}

/// What the repository room made of a request: every id is full, present and of the right kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedCommits {
    /// The repository.
    pub repository: RepoName,
    /// The protected branch, as a full ref name.
    pub protected_ref: String,
    /// The agent's commit.
    pub head: Commit,
    /// The commit that supplies the oracle.
    pub base: Commit,
    /// The protected tip, resolved once when the score started.
    pub base_tip: CommitId,
    /// All merge bases of base and head, sorted; never empty.
    pub merge_bases: Vec<CommitId>,
    /// How head stands to base.
    pub relation: Relation,
}
