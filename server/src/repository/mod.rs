//! Trusted mirrors and untrusted uploads: ids become objects, two commits become a list of changes.
//!
//! Never checks anything out, never runs a hook, never follows a ref that an agent named, never lets an uploaded object
//! become a base. Fails with `RepositoryError`: refused (the request's fault) or aborted (ours).

use tribunal_core::git::{Change, Commit, GitPath, Mode, Relation};
use tribunal_core::id::{CommitId, ObjectId, RepoName, TokenId, TreeId};
use tribunal_core::reason::{Aborted, Refused};
use tribunal_core::request::Role;

/// What can go wrong here, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The request's.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Ours.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

/// The protected branch as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtectedTip {
    /// Full ref name.
    pub name: String,
    /// Where it points.
    pub commit: CommitId,
}

/// Whose uploads are in view: an agent sees its own, ci and maintainer see the repository's, the mirror is seen by all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    /// The token.
    pub token: TokenId,
    /// Its role.
    pub role: Role,
}

/// Limits of one upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadLimits {
    /// Bytes of the bundle on the wire.
    pub bytes: u64,
    /// Bytes of one unpacked object.
    pub object_bytes: u64,
    /// Objects in the pack.
    pub objects: u64,
    /// Seconds for the whole ingest.
    pub seconds: u64,
    /// Bytes of address space for the indexer.
    pub memory: u64,
}

/// An entry of one tree, one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its raw name.
    pub name: Vec<u8>,
    /// What it is.
    pub mode: Mode,
    /// The object.
    pub id: ObjectId,
}

/// Head's src where base moved on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The root tree of the merge.
    Tree(TreeId),
    /// Paths that conflict.
    Conflict(Vec<GitPath>),
}

/// Mirrors and uploads. Blocking: call it off the async threads.
pub trait Repository: Send + Sync {
    /// Fetch the protected branch from the registered remote and say where it is.
    ///
    /// # Errors
    /// `unknown-repository`, or ours when the remote does not answer.
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError>;

    /// The objects in view of this caller.
    ///
    /// # Errors
    /// `unknown-repository`.
    fn open(&self, repo: &RepoName, viewer: &Viewer) -> Result<Box<dyn Objects>, RepositoryError>;

    /// Take a bundle into quarantine, check it, keep its objects for this token. Returns the commits it names.
    ///
    /// # Errors
    /// `missing-prerequisite`, `bad-object`, `too-large`, `upload-incomplete`; nothing is kept then.
    fn ingest(
        &self,
        repo: &RepoName,
        viewer: &Viewer,
        bundle: &mut dyn std::io::Read,
        limits: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError>;
}

/// Reading objects by full id. Absent or wrong-kind objects are `unknown-commit` / `not-a-commit` / `bad-object`.
pub trait Objects {
    /// The commit's facts and parents.
    ///
    /// # Errors
    /// `unknown-commit`, `not-a-commit`.
    fn commit(&self, id: &CommitId) -> Result<(Commit, Vec<CommitId>), RepositoryError>;
    /// All merge bases, sorted; empty where the histories share nothing.
    ///
    /// # Errors
    /// A broken history.
    fn merge_bases(&self, a: &CommitId, b: &CommitId) -> Result<Vec<CommitId>, RepositoryError>;
    /// Whether `ancestor` is `descendant` or in its history.
    ///
    /// # Errors
    /// A broken history.
    fn relation(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<Relation, RepositoryError>;
    /// One level of a tree, in git's order.
    ///
    /// # Errors
    /// `bad-object`.
    fn tree(&self, id: &TreeId) -> Result<Vec<TreeEntry>, RepositoryError>;
    /// A blob's bytes; over `limit` is `too-large`.
    ///
    /// # Errors
    /// `bad-object`, `too-large`.
    fn blob(&self, id: &ObjectId, limit: u64) -> Result<Vec<u8>, RepositoryError>;
    /// A blob's size, from its header.
    ///
    /// # Errors
    /// `bad-object`.
    fn blob_size(&self, id: &ObjectId) -> Result<u64, RepositoryError>;
    /// What would be merged.
    ///
    /// # Errors
    /// A broken history, or git itself.
    fn merge(&self, base: &CommitId, head: &CommitId) -> Result<Merged, RepositoryError>;
}

/// Leaves that differ between two trees, and between head and at least one merge base. See protocol.md "Classifying".
pub type Changes = Vec<Change>;
