//! gRPC: messages come in, are checked and become our own values; our values go out as messages.
//!
//! Only this room knows proto types. Never decides anything about a score, never lets a caller see what its token does
//! not reach. Every error that leaves is one status with one ErrorInfo; see `status` for the table.

mod access;
mod cassettes;
mod convert;
mod door;
mod gate;
mod incoming;
mod keys;
mod listen;
mod name;
mod repositories;
mod scores;
mod status;
#[cfg(test)]
mod tests;
pub mod token;
mod upload;
mod watch;

pub use access::{Act, Allowed, allowed};
pub(crate) use access::{no_score, reach, see};
pub use door::CallRate;
pub(crate) use door::Door;
pub use incoming::{Certificates, Tls};
pub use listen::{ListenError, Listener, Stops};
pub use status::{DOMAIN, Retry, aborted_code, refused_code};

use crate::metrics::Observer;
use crate::pipeline::{NoVerdict, Recording, SealedCases, SealedModes, ToRecord};
use crate::queue::Queue;
use crate::repository::{Repository, UploadLimits};
use crate::sandbox::Outside;
use crate::store::Store;
use status::IntoStatus as _;
use std::sync::Arc;
use std::time::Duration;
use tonic::{Request, Status};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::{Refused, RefusedCode};
use tribunal_core::request::Caller;

/// What lists the sealed cases of a commit, and records one: the pipeline, or a stand-in for tests.
#[async_trait::async_trait]
pub trait Collector: Send + Sync + 'static {
    /// The cases of this commit, or of the protected tip.
    async fn cases(
        &self,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedCases, NoVerdict>;

    /// How the sealed files of this commit, or of the protected tip, can run.
    async fn modes(
        &self,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedModes, NoVerdict>;

    /// What one case reads, with its requests performed by `outside`.
    async fn record(
        &self,
        caller: &Caller,
        repository: &RepoName,
        wanted: &ToRecord,
        outside: Arc<dyn Outside>,
    ) -> Result<Recording, NoVerdict>;
}

/// How the wire behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct WireSettings {
    /// A silent watch says that it lives so often.
    pub heartbeat: Duration,
    /// A silent connection is asked whether it lives so often.
    pub keepalive: Duration,
    /// How many calls a token may make.
    pub call_rate: CallRate,
    /// Limits of one upload.
    pub uploads: UploadLimits,
    /// Uploads that go on at the same time.
    pub uploads_at_once: usize,
    /// Lists of cases that are made at the same time.
    pub collections_at_once: usize,
}

/// The rooms behind the wire.
#[derive(Clone)]
pub struct Services {
    /// What outlives the process.
    pub store: Arc<dyn Store>,
    /// Where scores go.
    pub queue: Queue,
    /// Mirrors and uploads.
    pub repository: Arc<dyn Repository>,
    /// Lists of cases.
    pub collector: Arc<dyn Collector>,
    /// Who hears of uploads.
    pub observer: Arc<dyn Observer>,
    /// How the wire behaves.
    pub settings: WireSettings,
}

/// Who the gate found to be calling. A service that is reached without it answers nobody.
fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request.extensions().get().cloned().ok_or_else(|| {
        Refused::new(RefusedCode::Unauthenticated, "the call carries no token").into_status()
    })
}
