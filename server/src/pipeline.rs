//! One score from request to signed files, one line a room. Refusals come out of `admit`, verdicts and aborts out of `score`.

use crate::repository::Repository;
use crate::sandbox::Sandbox;
use crate::store::{EventKind, Store};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, NodeId, RepoName, RepoPath, RequestId, ScoreId};
use tribunal_core::outcome::FunctionDigest;
use tribunal_core::plan::{ChangeSet, Plan, ScoredPatch};
use tribunal_core::reason::{Aborted, AbortedCode, Refused};
use tribunal_core::request::{Caller, Freshness, ScoreRequest};

/// The rooms a score walks through, each behind its seam.
#[derive(Clone)]
pub struct Rooms {
    /// Mirrors and uploads.
    pub repository: Arc<dyn Repository>,
    /// Sealed rooms.
    pub sandbox: Arc<dyn Sandbox>,
    /// What outlives the process.
    pub store: Arc<dyn Store>,
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum NoVerdict {
    /// The request's fault.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Ours.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

/// A request that will get its verdicts, or our apology: nothing about it can be refused any more.
#[derive(Debug)]
pub struct Admitted {
    plan: Plan,
    caller: Caller,
    freshness: Freshness,
    request_id: Option<RequestId>,
}

impl Admitted {
    /// What is scored: head, base, tip, change set.
    #[must_use]
    pub fn patch(&self) -> &ScoredPatch {
        match &self.plan {
            Plan::Decided(decided) => decided.patch(),
            Plan::Run(plan) => plan.patch(),
        }
    }
    /// Whose change set it is.
    #[must_use]
    pub fn change_set(&self) -> ChangeSet {
        self.patch().change_set()
    }
    /// Who asked.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }
    /// Whether stored attempts may serve.
    #[must_use]
    pub const fn freshness(&self) -> Freshness {
        self.freshness
    }
    /// The caller's idempotency key, where one was given.
    #[must_use]
    pub const fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }
}

/// From the request as far as the plan: refresh the mirror, resolve, classify, admit. Takes no container.
///
/// # Errors
/// Refused by any room up to the plan, or our own trouble with the mirror.
pub async fn admit(_rooms: &Rooms, _request: ScoreRequest) -> Result<Admitted, NoVerdict> {
    Err(Aborted::new(AbortedCode::Internal, "the pipeline is being laid").into())
}

/// From the plan to stored, signed verdicts. Sends what happens to `progress`; cancelling ends it within a second or so,
/// with nothing signed.
///
/// # Errors
/// Our own trouble only.
pub async fn score(
    _rooms: &Rooms,
    _id: ScoreId,
    _admitted: Admitted,
    _progress: mpsc::Sender<EventKind>,
    _cancel: CancellationToken,
) -> Result<(), Aborted> {
    Err(Aborted::new(
        AbortedCode::Internal,
        "the pipeline is being laid",
    ))
}

/// The sealed cases of a commit, for whoever writes leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCases {
    /// The commit that was read.
    pub commit: CommitId,
    /// In manifest order.
    pub cases: Vec<SealedCase>,
    /// Sealed files that could not be imported or compiled, with the message. Raw text: escape before showing.
    pub uncollected: Vec<(RepoPath, String)>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedCase {
    /// The runner's id.
    pub node: NodeId,
    /// Its file.
    pub file: RepoPath,
    /// What a lease names: file stem, classes, function, dotted.
    pub qualname: String,
    /// Its function's digests; `None` where it has no code object.
    pub digest: Option<FunctionDigest>,
    /// Names of the marks it carries.
    pub marks: Vec<String>,
}

/// Collect a commit's sealed files, on its own src; nothing runs but collection. `None` is the protected tip.
///
/// # Errors
/// Refused as by [`admit`], or our own trouble.
pub async fn cases(
    _rooms: &Rooms,
    _caller: &Caller,
    _repository: &RepoName,
    _commit: Option<&CommitId>,
    _cancel: CancellationToken,
) -> Result<SealedCases, NoVerdict> {
    Err(Aborted::new(AbortedCode::Internal, "the pipeline is being laid").into())
}
