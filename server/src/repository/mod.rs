//! Trusted mirrors and untrusted uploads: ids become objects, two commits become a list of changes.
//!
//! Never checks anything out, never runs a hook, never follows a ref that an agent named, never lets an uploaded object
//! become a base. Fails with `RepositoryError`: refused (the request's fault) or aborted (ours).
//!
//! The seam is [`Repository`] and [`Objects`]; `GitRepository` is the real one, `memory` the other. What is made of
//! objects (`resolve`, `diff`, `facts`) asks the seam only, so both give the same answers.

mod as_fetched;
mod bundle;
mod cassettes;
mod command;
mod complaint;
pub mod diff;
pub mod facts;
mod git;
mod history;
mod ingest;
pub mod memory;
mod merge;
mod mirror;
mod objects;
mod quarantine;
mod remote;
pub mod resolve;
mod retention;
mod scratch;
mod touched;
pub mod walk;

pub use as_fetched::AsFetched;
pub use git::{GitRepository, Protocol, RepositorySettings};
pub use mirror::Registration;
pub use retention::Removed;

use std::sync::Arc;
use tribunal_core::git::{Commit, GitPath, Mode, Relation};
use tribunal_core::id::{CommitId, ObjectId, RepoName, TokenId, TreeId};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
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

/// A refusal of this room.
fn refused(code: RefusedCode, message: impl Into<String>) -> RepositoryError {
    Refused::new(code, message).into()
}

/// Trouble of ours that has no code of its own.
fn internal(message: impl Into<String>) -> RepositoryError {
    Aborted::new(AbortedCode::Internal, message).into()
}

/// A file system error of ours: a full disk has its own code.
fn disk(what: &str, error: &std::io::Error) -> RepositoryError {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let code = if [StorageFull, QuotaExceeded].contains(&error.kind()) {
        AbortedCode::DiskFull
    } else {
        AbortedCode::Internal
    };
    Aborted::new(code, format!("failed to {what}: {error}")).into()
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
    /// Bytes on disk that one token's uploads of one repository may come to.
    pub kept_bytes: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            bytes: 256 << 20,
            object_bytes: 64 << 20,
            objects: 250_000,
            seconds: 120,
            memory: 1 << 30,
            kept_bytes: 8 << 30,
        }
    }
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

/// What merging two commits would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The root tree of the merge. At a conflicting path it holds whatever the merge left there.
    pub tree: TreeId,
    /// Paths that conflict, sorted; whether they matter is the caller's question.
    pub conflicts: Vec<GitPath>,
}

/// Mirrors and uploads. Blocking: call it off the async threads.
pub trait Repository: Send + Sync {
    /// Fetch the protected branch from the registered remote and say where it is.
    ///
    /// # Errors
    /// `unknown-repository`, or ours when the remote does not answer.
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError>;

    /// The protected branch as it was fetched last: asks no remote, writes nothing.
    ///
    /// # Errors
    /// `unknown-repository`.
    fn last_tip(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError>;

    /// The objects in view of this caller.
    ///
    /// # Errors
    /// `unknown-repository`.
    fn open(&self, repo: &RepoName, viewer: &Viewer) -> Result<Arc<dyn Objects>, RepositoryError>;

    /// The registered repositories, sorted.
    ///
    /// # Errors
    /// Ours, when the data directory cannot be read.
    fn list(&self) -> Result<Vec<RepoName>, RepositoryError>;

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
pub trait Objects: Send + Sync {
    /// The commit's facts and parents.
    ///
    /// # Errors
    /// `unknown-commit`, `not-a-commit`.
    fn commit(&self, id: &CommitId) -> Result<(Commit, Vec<CommitId>), RepositoryError>;
    /// What its author wrote of the commit, raw.
    ///
    /// # Errors
    /// `unknown-commit`, `not-a-commit`.
    fn message(&self, id: &CommitId) -> Result<Vec<u8>, RepositoryError>;
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
