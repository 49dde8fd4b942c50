//! Sealed rooms as containers of a Docker Engine (20.10 and newer, cgroup v1 or v2), reached through its API alone.
//!
//! Never touches the host's files: the server may itself run in a container or talk to a remote engine. Every call has a
//! deadline; every container is owned by a task that is cancelled and awaited, and what such a task could not remove is
//! remembered, tried again, and swept at the next start.

mod container;
mod engine;
mod examine;
mod names;
mod pool;
mod room;
mod spec;
mod sweep;
mod volume;

pub use examine::{EngineDetails, EngineFacts};

use super::line::Patience;
use super::owned::Owned;
use super::seals::{PerDigest, SealMarks};
use super::{RunEvent, RunFacts, RunOrder, Sandbox, SandboxError, SealedTree, Swept, TreeToSeal};
use crate::metrics::{Happening, Observer};
use engine::Engine;
use names::{Instance, Ledger};
use pool::Pool;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::Digest;
use tribunal_core::reason::Aborted;

/// Where the engine is and whose things in it are ours.
pub struct DockerOptions {
    /// `unix:///var/run/docker.sock`, `tcp://127.0.0.1:2375`; `None` is the first.
    pub host: Option<String>,
    /// The server's own name, 1 to 32 of a-z 0-9, the same over restarts and no other server's.
    pub instance: String,
    /// Which trees are complete.
    pub marks: Arc<dyn SealMarks>,
    /// How many rooms may wait, ready, for a score to come.
    pub ready_rooms: usize,
    /// Who hears of rooms that are entered and of runs that come to nothing.
    pub observer: Arc<dyn Observer>,
}

/// Rooms in a Docker Engine.
#[derive(Clone)]
pub struct DockerSandbox {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    instance: Instance,
    marks: Arc<dyn SealMarks>,
    trees: PerDigest,
    ledger: Ledger,
    owned: Owned,
    pool: Pool,
    observer: Arc<dyn Observer>,
}

impl DockerSandbox {
    /// A sandbox that has not called its engine yet: a server starts, and says so, while the engine is down.
    ///
    /// # Errors
    ///
    /// When the instance name is not fit for a label.
    pub fn new(options: DockerOptions) -> Result<Self, Aborted> {
        Ok(Self {
            inner: Arc::new(Inner {
                engine: Engine::at(options.host),
                instance: Instance::new(&options.instance)?,
                marks: options.marks,
                trees: PerDigest::default(),
                ledger: Ledger::default(),
                owned: Owned::default(),
                pool: Pool::of(options.ready_rooms),
                observer: options.observer,
            }),
        })
    }

    /// What the engine is.
    pub async fn examine(&self) -> EngineFacts {
        examine::examine(&self.inner.engine).await
    }

    /// How many rooms are ready.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.inner.pool.ready()
    }

    /// End every room and wait until they are gone. Runs that are going on end with `server-restarted`; new ones are
    /// refused with it.
    pub async fn drain(&self) {
        self.inner.pool.close(&self.inner);
        self.inner.owned.drain().await;
    }
}

#[async_trait::async_trait]
impl Sandbox for DockerSandbox {
    async fn seal(&self, tree: TreeToSeal) -> Result<SealedTree, SandboxError> {
        let inner = Arc::clone(&self.inner);
        let never = CancellationToken::new();
        let sealed = self
            .inner
            .owned
            .run(&never, |token| volume::seal(inner, tree, token))
            .await?;
        Ok(sealed)
    }

    async fn run(
        &self,
        order: RunOrder,
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<RunFacts, SandboxError> {
        let inner = Arc::clone(&self.inner);
        let facts = self
            .inner
            .owned
            .run(&cancel, |token| {
                room::run(inner, order, events, Patience::default(), token)
            })
            .await;
        facts.map_err(|aborted| {
            self.inner.observer.note(Happening::RunFailed(aborted.code));
            SandboxError::from(aborted)
        })
    }

    fn expect(&self, order: RunOrder) {
        self.inner.pool.expect(&self.inner, order);
    }

    async fn unseal(&self, tree: SealedTree) -> Result<(), SandboxError> {
        let inner = Arc::clone(&self.inner);
        let never = CancellationToken::new();
        self.inner
            .owned
            .run(
                &never,
                |_| async move { volume::unseal(&inner, &tree).await },
            )
            .await?;
        Ok(())
    }

    async fn sweep(&self, keep: Option<&[Digest]>) -> Result<Swept, SandboxError> {
        if let Some(keep) = keep {
            self.inner.pool.keep_trees(keep).await;
        }
        Ok(sweep::sweep(&self.inner, keep).await?)
    }
}
