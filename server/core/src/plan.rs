//! What is to be run for a patch, decided before anything runs: the order for the sandbox, or the verdicts already known.

use crate::git::{Entry, GitPath};
use crate::id::{Digest, RepoPath, TreeId};
use crate::policy::Policy;
use crate::reason::Reason;
use serde::{Deserialize, Serialize};

/// Whose change set this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeSet {
    /// src (and what is not scored): base's oracle, head's src.
    Agent,
    /// Oracle only, by a maintainer's token: head's oracle, base's src.
    Human,
}

/// A reason with what in particular was seen; prose is for people, the code for machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The code.
    pub reason: Reason,
    /// The path or case it is about, where there is one. Raw text: escape before showing on a terminal.
    pub subject: Option<String>,
    /// What was seen, one or two sentences, fit to be shown.
    pub detail: String,
}

/// What the tree that supplies the oracle holds, read by the repository room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OracleFacts {
    /// The root tree that supplies the oracle: base's, or head's for a human change set.
    pub tree: TreeId,
    /// The manifest's bytes.
    pub manifest: Option<Vec<u8>>,
    /// The lease file's bytes.
    pub leases: Option<Vec<u8>>,
    /// Every path under the sealed test root.
    pub sealed_paths: Vec<GitPath>,
    /// Sealed files and cassettes that hold a Git LFS pointer.
    pub lfs_pointers: Vec<GitPath>,
    /// Digest over the sorted (path, mode, object id) of all oracle-class entries.
    pub oracle_digest: Digest,
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

/// The src to be scored (head's, or the merge of head's and base's), read by the repository room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrcFacts {
    /// The scored tree per src root: `(root, tree id)`, in policy order; a root that head lacks is left out.
    pub trees: Vec<(String, TreeId)>,
    /// All its leaves of class src.
    pub entries: Vec<SrcEntry>,
    /// Base's leaves of class src, for "differs from base".
    pub base: Vec<(GitPath, Entry)>,
    /// Paths of base's whole tree, for collisions after case folding.
    pub base_paths: Vec<GitPath>,
}

/// A sealed test file, in manifest order.
pub type SealedFile = RepoPath;

/// What the sandbox needs to know of the policy, and nothing else of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomOrder {
    /// The policy (pins, runner, limits).
    pub policy: Policy,
    /// Sealed test files in manifest order.
    pub files: Vec<SealedFile>,
}
