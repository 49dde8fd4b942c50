//! What the wire asks of the pipeline beside scores: lists of cases, modes, recordings. Never outlives the server, nor its caller.

use crate::pipeline::{self, NoVerdict, Recording, Rooms, SealedCases, SealedModes, ToRecord};
use crate::sandbox::Outside;
use crate::wire::Collector;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::request::Caller;

/// Lists of cases come from the pipeline, and end with the server.
pub(super) struct PipelineCollector {
    pub(super) rooms: Rooms,
    pub(super) close: CancellationToken,
}

#[async_trait::async_trait]
impl Collector for PipelineCollector {
    async fn cases(
        &self,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedCases, NoVerdict> {
        // A caller that goes away ends its list: the guard cancels what runs in the engine.
        let cancel = self.close.child_token();
        let _guard = cancel.clone().drop_guard();
        pipeline::cases(&self.rooms, caller, repository, commit, cancel).await
    }

    async fn modes(
        &self,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedModes, NoVerdict> {
        let cancel = self.close.child_token();
        let _guard = cancel.clone().drop_guard();
        pipeline::modes(&self.rooms, caller, repository, commit, cancel).await
    }

    async fn record(
        &self,
        caller: &Caller,
        repository: &RepoName,
        wanted: &ToRecord,
        outside: Arc<dyn Outside>,
    ) -> Result<Recording, NoVerdict> {
        let cancel = self.close.child_token();
        let _guard = cancel.clone().drop_guard();
        pipeline::record(&self.rooms, caller, repository, wanted, outside, cancel).await
    }
}
