//! Rooms in this process, for tests and for trying the rest of the server without an engine.
//!
//! They hold the same conversation as real ones, through the same code, with a harness that plays scripts (`dialect`)
//! instead of running anything. Nothing of a tree is ever executed.

mod dialect;
mod harness;
mod played;

use super::autopsy::{Autopsy, Death, Life};
use super::conversation::{self, Begun, Stage};
use super::line::{Line, Patience};
use super::owned::Owned;
use super::parts;
use super::seals::PerDigest;
use super::turns::Turns;
use super::uids::UidRange;
use super::{RunEvent, RunFacts, RunOrder, Sandbox, SandboxError, SealedTree, Swept, TreeToSeal};
use futures::StreamExt;
use harness::Files;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::Digest;
use tribunal_core::outcome::End;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Rooms without an engine.
#[derive(Clone)]
pub struct FakeSandbox {
    inner: Arc<Inner>,
}

struct Inner {
    trees: Mutex<HashMap<Digest, Arc<Files>>>,
    writing: PerDigest,
    turns: Turns,
    owned: Owned,
    rooms: Mutex<Rooms>,
}

#[derive(Default)]
struct Rooms {
    next: u64,
    /// Cancelled to end a room's harness from outside.
    live: HashMap<u64, CancellationToken>,
}

impl FakeSandbox {
    /// Rooms on this many pretended cores.
    #[must_use]
    pub fn on(cores: u32) -> Self {
        Self {
            inner: Arc::new(Inner {
                trees: Mutex::default(),
                writing: PerDigest::default(),
                turns: Turns::on(cores),
                owned: Owned::default(),
                rooms: Mutex::default(),
            }),
        }
    }

    /// How many rooms there are now.
    #[must_use]
    pub fn rooms(&self) -> usize {
        lock(&self.inner.rooms).live.len()
    }

    /// How many trees are sealed.
    #[must_use]
    pub fn trees(&self) -> usize {
        lock(&self.inner.trees).len()
    }

    /// End the first process of every room, as an operator's `kill -9` would.
    pub fn kill_rooms(&self) {
        for kill in lock(&self.inner.rooms).live.values() {
            kill.cancel();
        }
    }

    /// End every room and wait until they are gone.
    pub async fn drain(&self) {
        self.inner.owned.drain().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}

#[async_trait::async_trait]
impl Sandbox for FakeSandbox {
    async fn seal(&self, tree: TreeToSeal) -> Result<SealedTree, SandboxError> {
        let inner = Arc::clone(&self.inner);
        let never = CancellationToken::new();
        let sealed = self
            .inner
            .owned
            .run(&never, |_| async move {
                let digest = tree.digest;
                let _turn = inner.writing.write(&digest).await;
                if lock(&inner.trees).contains_key(&digest) {
                    return Ok(SealedTree { digest });
                }
                let make = tree.tar;
                let files = tokio::task::spawn_blocking(move || {
                    harness::files_of(make()?)
                        .map_err(|error| internal(format!("failed to read a tree: {error}")))
                })
                .await
                .map_err(|error| internal(error.to_string()))??;
                lock(&inner.trees).insert(digest.clone(), Arc::new(files));
                Ok(SealedTree { digest })
            })
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
            .run(&cancel, |token| run(inner, order, events, token))
            .await?;
        Ok(facts)
    }

    async fn unseal(&self, tree: SealedTree) -> Result<(), SandboxError> {
        lock(&self.inner.trees).remove(&tree.digest);
        Ok(())
    }

    async fn sweep(&self, keep: Option<&[Digest]>) -> Result<Swept, SandboxError> {
        let mut trees = lock(&self.inner.trees);
        let before = trees.len();
        if let Some(keep) = keep {
            trees.retain(|digest, _| keep.contains(digest));
        }
        Ok(Swept {
            rooms: 0,
            trees: u32::try_from(before - trees.len()).unwrap_or(u32::MAX),
        })
    }
}

async fn run(
    inner: Arc<Inner>,
    order: RunOrder,
    events: mpsc::Sender<RunEvent>,
    cancel: CancellationToken,
) -> Result<RunFacts, Aborted> {
    let tree = lock(&inner.trees)
        .get(&order.tree.digest)
        .cloned()
        .ok_or_else(|| internal("the tree is not sealed"))?;
    let wanted = u32::try_from(order.most_attempts())
        .unwrap_or(u32::MAX)
        .saturating_mul(parts::UIDS_AN_ATTEMPT)
        .saturating_add(2);
    let uids = UidRange::take(wanted).ok_or_else(|| internal("no range of user ids is free"))?;
    let mut room = Room::enter(&inner);
    let (outgoing, theirs) = tokio::io::duplex(64 << 10);
    let (said, chunks) = mpsc::channel(4);
    let playing = harness::play(tree, theirs, said);
    let kill = room.kill.clone();
    let work = async {
        let patience = Patience::default();
        let chunks = ReceiverStream::new(chunks).boxed();
        let mut line = Line::open(chunks, Box::new(outgoing), patience, &mut room).await?;
        let stage = Stage {
            order: &order,
            uids: &uids,
            turns: &inner.turns,
            events: &events,
            starts: Begun::No,
        };
        let facts = conversation::converse(&mut line, stage, &mut room).await;
        conversation::farewell(&mut line).await;
        facts
    };
    // The harness lives beside its conversation; killed, it goes first and the line ends.
    let playing = async {
        tokio::select! {
            () = kill.cancelled() => {}
            () = playing => {}
        }
        std::future::pending::<std::convert::Infallible>().await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(inner.owned.why_cancelled()),
        facts = work => facts,
        never = playing => match never {},
    }
}

/// A live room; gone when dropped.
struct Room {
    inner: Arc<Inner>,
    number: u64,
    kill: CancellationToken,
}

impl Room {
    fn enter(inner: &Arc<Inner>) -> Self {
        let kill = CancellationToken::new();
        let mut rooms = lock(&inner.rooms);
        let number = rooms.next;
        rooms.next += 1;
        rooms.live.insert(number, kill.clone());
        Self {
            inner: Arc::clone(inner),
            number,
            kill,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        lock(&self.inner.rooms).live.remove(&self.number);
    }
}

#[async_trait::async_trait]
impl Autopsy for Room {
    async fn examine(&mut self) -> Result<Death, Aborted> {
        Ok(Death {
            end: End::Killed,
            exit_code: Some(137),
            signal: Some(9),
            note: "the room died: its first process ended, exit code 137".to_owned(),
        })
    }

    async fn is_alive(&mut self) -> Result<Life, Aborted> {
        Ok(if self.kill.is_cancelled() {
            Life::Gone
        } else {
            Life::Running
        })
    }
}
