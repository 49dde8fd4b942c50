//! A container that is certainly removed: by its owner, and where its owner fails, by the reaper.

use super::Inner;
use super::engine::{Connected, Failed, QUICK, SLOW, call, failed};
use super::names::{Kind, Left, Reaper};
use bollard::Docker;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tribunal_core::reason::Aborted;

/// Names are random; if five in a row are taken, something else is wrong.
const NAMES: usize = 5;
/// Tries of a removal before it is left to the reaper.
const TRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A created container. Dropped without `remove`, it is left to the reaper.
pub(super) struct Container {
    inner: Arc<Inner>,
    name: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its create is under way.
    Asked,
    /// It is there.
    Made,
    /// It is not, or not any more.
    Gone,
}

impl Container {
    /// Create one. From before the call on, its name is in the ledger: a create that breaks off half-way leaves nothing.
    pub(super) async fn create(
        inner: &Arc<Inner>,
        kind: Kind,
        request: ContainerCreateBody,
    ) -> Result<Self, Aborted> {
        let engine = inner.engine.get().await?;
        let mut last = None;
        for _ in 0..NAMES {
            let name = inner.instance.fresh_name(kind)?;
            inner.ledger.own(&name);
            let mut container = Self {
                inner: Arc::clone(inner),
                name,
                state: State::Asked,
            };
            let options = CreateContainerOptionsBuilder::new()
                .name(&container.name)
                .build();
            let created = engine
                .docker
                .create_container(Some(options), request.clone());
            match call("create a container", SLOW, created).await {
                Ok(_) => {
                    container.state = State::Made;
                    return Ok(container);
                }
                Err(failed) => {
                    container.forget_uncreated(&failed);
                    let taken = failed.status == Some(409);
                    last = Some(failed.aborted);
                    if !taken {
                        break;
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| inner.owned.why_cancelled()))
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The engine answered that it made none: then there is nothing to reap. A call that broke off may have made one.
    fn forget_uncreated(mut self, failed: &Failed) {
        if failed.status.is_some() {
            self.inner.ledger.removed(&self.name);
            self.state = State::Gone;
        }
    }

    /// Kill and remove it, and wait until it is gone. Where the engine does not let us, the reaper goes on trying.
    pub(super) async fn remove(mut self) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match remove(&self.inner, &self.name).await {
                Ok(()) => {
                    self.state = State::Gone;
                    return;
                }
                Err(aborted) => {
                    tracing::warn!(name = %self.name, attempt, %aborted, "failed to remove a container");
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let left = match self.state {
            State::Gone => return,
            State::Made => Left::Made,
            State::Asked => Left::Perhaps(Instant::now()),
        };
        match self.inner.ledger.leave(&self.name, left) {
            Reaper::Wanted => reap(&self.inner),
            Reaper::Working => {}
        }
    }
}

/// Kill and remove a container by name; one that is not there is gone already.
pub(super) async fn remove(inner: &Inner, name: &str) -> Result<(), Aborted> {
    let Connected { docker, .. } = inner.engine.get().await?;
    let options = RemoveContainerOptionsBuilder::new()
        .force(true)
        .v(true)
        .build();
    match call(
        "remove a container",
        SLOW,
        docker.remove_container(name, Some(options)),
    )
    .await
    {
        Ok(()) => {}
        Err(failed) if failed.status == Some(404) => {
            inner.ledger.unknown(name);
            return Ok(());
        }
        // Somebody is removing it already: wait until the engine does not know it any more.
        Err(failed) if failed.status == Some(409) => until_gone(docker, name, failed).await?,
        Err(failed) => return Err(failed.aborted),
    }
    inner.ledger.removed(name);
    Ok(())
}

async fn until_gone(docker: &Docker, name: &str, conflict: Failed) -> Result<(), Aborted> {
    for _ in 0..20 {
        let seen = docker.inspect_container(name, None::<InspectContainerOptions>);
        match call("look for a container", QUICK, seen).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            Err(failed) if failed.status == Some(404) => return Ok(()),
            Err(failed) => return Err(failed.aborted),
        }
    }
    Err(conflict.aborted)
}

/// Go on removing what was left behind until nothing is, or until the server shuts down; then the next start sweeps it.
fn reap(inner: &Arc<Inner>) {
    let task = Arc::clone(inner);
    inner.owned.background(|closing| reaper(task, closing));
}

async fn reaper(inner: Arc<Inner>, closing: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    let mut work = inner.ledger.work_left();
    while !work.is_empty() {
        for name in &work {
            if let Err(aborted) = remove(&inner, name).await {
                tracing::debug!(%name, %aborted, "a container is still left behind");
            }
        }
        work = inner.ledger.work_left();
        if work.is_empty() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            () = closing.cancelled() => {
                tracing::warn!(left = work.len(), "containers are left for the next start to sweep");
                return;
            }
        }
    }
}

/// How its PID 1 ended: resolves when it has, or when the engine cannot be asked any more.
pub(super) async fn exit_of(docker: Docker, name: String) -> Result<i64, Failed> {
    use futures::StreamExt as _;
    let none = None::<bollard::query_parameters::WaitContainerOptions>;
    let mut waiting = Box::pin(docker.wait_container(&name, none));
    match waiting.next().await {
        Some(Ok(answer)) => Ok(answer.status_code),
        // The client library reports an exit code other than 0 as an error.
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => Ok(code),
        Some(Err(error)) => Err(failed("wait for a container", &error)),
        None => Err(super::engine::silent("wait for a container")),
    }
}
