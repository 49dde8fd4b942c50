//! A running server's own upkeep: what is old goes. It alone knows what is in use.

use crate::clock;
use crate::config::Config;
use crate::repository::GitRepository;
use crate::sandbox::Sandbox as _;
use crate::sandbox::docker::DockerSandbox;
use crate::store::{self, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{Digest, UnixTime};

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(3600);

/// Old uploads and sealed trees go while the server runs: it alone knows which are in use.
pub(crate) async fn run(
    held: watch::Receiver<Config>,
    store: Arc<dyn Store>,
    repository: Arc<GitRepository>,
    sandbox: DockerSandbox,
    leave: CancellationToken,
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = leave.cancelled() => return,
        }
        let keep_for = held.borrow().keep.clone();
        let (room, age) = (Arc::clone(&repository), keep_for.uploads);
        match tokio::task::spawn_blocking(move || room.gc(age)).await {
            Ok(Ok(removed)) => tracing::info!(?removed, "old uploads"),
            Ok(Err(error)) => tracing::warn!(%error, "old uploads could not be removed"),
            Err(error) => tracing::error!(%error, "the upkeep of uploads broke"),
        }
        let seconds = i64::try_from(keep_for.trees.as_secs()).unwrap_or(i64::MAX);
        let before = UnixTime(clock::now().0.saturating_sub(seconds));
        let trees = store::off(&store, move |s| s.sealed_trees()).await;
        let keep: Vec<Digest> = match trees {
            Ok(trees) => trees
                .into_iter()
                .filter(|(_, used)| *used >= before)
                .map(|(digest, _)| digest)
                .collect(),
            Err(error) => {
                tracing::warn!(%error, "sealed trees could not be listed");
                continue;
            }
        };
        match sandbox.sweep(Some(&keep)).await {
            Ok(swept) => tracing::info!(?swept, "old rooms and trees"),
            Err(error) => tracing::warn!(%error, "old trees could not be removed"),
        }
    }
}
