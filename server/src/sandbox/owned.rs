//! Tasks that own a room: cancelled and awaited, never aborted.
//!
//! The caller's future may be dropped at any time; the task then ends its room by itself. At shutdown all tasks are told
//! to end and waited for.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tribunal_core::reason::{Aborted, AbortedCode};

/// The live tasks of one sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    tasks: TaskTracker,
    closing: CancellationToken,
}

impl Owned {
    /// Run `work` as a task of its own and wait for it. Its token is cancelled when `cancel` is, when the sandbox drains,
    /// and when the caller goes away; `work` then ends soon, having cleaned up.
    pub(crate) async fn run<T, F>(
        &self,
        cancel: &CancellationToken,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<T, Aborted>
    where
        F: Future<Output = Result<T, Aborted>> + Send + 'static,
        T: Send + 'static,
    {
        let token = self.closing.child_token();
        let _when_dropped = token.clone().drop_guard();
        if self.tasks.is_closed() {
            return Err(self.why_cancelled());
        }
        let mut task = self.tasks.spawn(work(token.clone()));
        let ended = tokio::select! {
            ended = &mut task => ended,
            () = cancel.cancelled() => {
                token.cancel();
                task.await
            }
        };
        ended.unwrap_or_else(|error| {
            Err(Aborted::new(
                AbortedCode::Internal,
                format!("a sandbox task broke: {error}"),
            ))
        })
    }

    /// What a cancelled task reports.
    pub(crate) fn why_cancelled(&self) -> Aborted {
        if self.closing.is_cancelled() {
            Aborted::new(AbortedCode::ServerRestarted, "the server is shutting down")
        } else {
            Aborted::new(AbortedCode::Cancelled, "the run was cancelled")
        }
    }

    /// Run `work` in the background until it ends; it must end soon after its token is cancelled.
    pub(crate) fn background<F>(&self, work: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(work(self.closing.child_token()));
    }

    /// End every task and wait for them. Nothing is begun afterwards.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.closing.cancel();
        self.tasks.wait().await;
    }
}
