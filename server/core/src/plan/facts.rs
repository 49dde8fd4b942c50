//! What planning must know of trees, read by the repository room and judged here.

use super::TouchedFacts;
use crate::cassette::CassetteFacts;
use crate::git::{Entry, GitPath};
use crate::id::{Digest, TreeId};
use std::collections::BTreeSet;

/// Which commit's tree something is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSource {
    /// Base's root tree.
    Base,
    /// Head's root tree.
    Head,
    /// The root tree of the three-way merge of both; a conflict is refused as `merge-conflict`.
    Merge,
}

/// What the tree that supplies the oracle holds, read by the repository room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleFacts {
    /// The root tree that supplies the oracle.
    pub tree: TreeId,
    /// The manifest's bytes.
    pub manifest: Option<Vec<u8>>,
    /// The lease file's bytes.
    pub leases: Option<Vec<u8>>,
    /// The cassette ledger's bytes.
    pub ledger: Option<Vec<u8>>,
    /// Every path under the sealed test root (`manifest::sealed_root`).
    pub sealed_paths: Vec<GitPath>,
    /// Sealed files that hold a Git LFS pointer.
    pub lfs_pointers: Vec<GitPath>,
    /// Digest over the sorted (path, mode, object id) of all oracle-class entries.
    pub oracle_digest: Digest,
    /// Cassettes of both trees; empty for a patch that is barred.
    pub cassettes: CassetteFacts,
}

/// One leaf of the src that is to be scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrcEntry {
    /// Where.
    pub path: GitPath,
    /// What.
    pub entry: Entry,
    /// Bytes of the blob (0 for a gitlink).
    pub size: u64,
    /// Where a symlink leads, raw.
    pub link_target: Option<Vec<u8>>,
    /// The blob is a Git LFS pointer.
    pub lfs_pointer: bool,
}

/// The src to be scored, read by the repository room from `OpenDiff::src_from`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrcFacts {
    /// The scored tree per src root: `(root, tree id)`, in policy order; a root that is lacking or no tree is left out.
    pub trees: Vec<(String, TreeId)>,
    /// All its leaves of class src (`classify::class_of`), byte-sorted.
    pub entries: Vec<SrcEntry>,
    /// Base's leaves of class src, for "differs from base"; byte-sorted.
    pub base: Vec<(GitPath, Entry)>,
    /// The touched tests that come with it.
    pub touched: TouchedFacts,
}

impl SrcFacts {
    /// The top-level modules of base's src, seen from the folders of `pythonpath`: a patch takes no other name that
    /// means a dependency or a tool of the tests.
    #[must_use]
    pub fn own_names(&self, import_roots: &[String]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for path in self.base.iter().filter_map(|(path, _)| path.as_utf8()) {
            for root in import_roots {
                let below = match root.as_str() {
                    "." => Some(path),
                    folder => path
                        .strip_prefix(folder)
                        .and_then(|rest| rest.strip_prefix('/')),
                };
                let first = below.and_then(|rest| rest.split(['/', '.']).next());
                names.extend(first.filter(|name| !name.is_empty()).map(str::to_owned));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::git::Mode;

    #[test]
    fn own_names_are_what_base_can_be_imported_by() {
        let blob = Entry {
            mode: Mode::File,
            id: "0".repeat(40).parse().unwrap(),
        };
        let facts = SrcFacts {
            trees: Vec::new(),
            entries: Vec::new(),
            base: [
                "lib/app.py",
                "src/numpy/__init__.py",
                "src/one.py",
                "src/.hidden/x.py",
                "tool.cpython-313.so",
            ]
            .map(|path| (GitPath::new(path), blob.clone()))
            .to_vec(),
            touched: TouchedFacts::default(),
        };
        let names = |roots: &[&str]| {
            let roots: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
            facts
                .own_names(&roots)
                .into_iter()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names(&["src"]), "numpy one");
        assert_eq!(names(&[".", "src"]), "lib numpy one src tool");
        assert_eq!(names(&["lib", "sr"]), "app");
    }
}
