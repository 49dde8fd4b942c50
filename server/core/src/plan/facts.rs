//! What planning must know of trees, read by the repository room and judged here.

use crate::cassette::CassetteFacts;
use crate::git::{Entry, GitPath};
use crate::id::{Digest, TreeId};

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
    /// Sealed files and cassettes that hold a Git LFS pointer.
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
}
