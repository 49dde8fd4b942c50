//! Looks at oracles while no score needs the cores: planted changes of bases that were scored, and bases that an operator
//! asks about.
//!
//! One task, started by the server and ended with it. It begins nothing unless a core is left free beside it, and what it
//! has begun is cancelled as soon as scores and lists need the last one: what was seen is kept, and the rest is done later.
//! So it never holds up a verdict. What goes wrong is logged and forgotten: the next score asks again.

use super::look::look;
use super::mutants::Planting;
use super::{NoVerdict, Rooms};
use crate::store::{self, Store, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::RepoName;
use tribunal_core::text::shown;

/// Bases that wait. One that finds no room is offered again by its next score.
const WAITING: usize = 8;
/// How often the store is asked whether an operator wants a look.
const EVERY: Duration = Duration::from_secs(1);
/// What a wish says until it is granted.
const WANTED: &str = "wanted";

/// The handle that scores and lists have of it.
#[derive(Clone)]
pub struct Vigil {
    /// Cores that scores and lists use.
    running: watch::Sender<usize>,
    offers: Option<mpsc::Sender<Planting>>,
}

/// While one of these lives, its cores are taken.
pub struct Busy {
    running: watch::Sender<usize>,
    cores: usize,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.running.send_modify(|running| *running -= self.cores);
    }
}

impl Vigil {
    /// None: for whoever runs no scores, or wants no changes planted.
    #[must_use]
    pub fn none() -> Self {
        Self {
            running: watch::Sender::new(0),
            offers: None,
        }
    }

    /// One with a place for its offers, and the other end, to be kept by [`keep`].
    #[must_use]
    pub fn new() -> (Self, Offers) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let vigil = Self {
            running: watch::Sender::new(0),
            offers: Some(sender),
        };
        (vigil, Offers(receiver))
    }

    /// The same without offers: it looks only where an operator asks.
    #[must_use]
    pub fn asked_only(self) -> Self {
        Self {
            offers: None,
            ..self
        }
    }

    /// Something that comes first is going on, on so many cores.
    #[must_use]
    pub fn busy(&self, cores: u32) -> Busy {
        let cores = cores as usize;
        self.running.send_modify(|running| *running += cores);
        Busy {
            running: self.running.clone(),
            cores,
        }
    }

    /// Changes that nobody has planted yet.
    pub(super) fn offer(&self, planting: impl FnOnce() -> Option<Planting>) {
        let Some(offers) = &self.offers else {
            return;
        };
        // Where there is no room nothing is made.
        if let Ok(place) = offers.try_reserve()
            && let Some(planting) = planting()
        {
            place.send(planting);
        }
    }
}

/// What scores have offered.
pub struct Offers(mpsc::Receiver<Planting>);

/// Start it. It ends with `leave`, and everything that it runs with it.
#[must_use]
pub fn keep(rooms: Rooms, offers: Offers, leave: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut watcher = Watcher {
            idle: rooms.vigil.running.subscribe(),
            rooms,
            leave,
        };
        watcher.run(offers).await;
    })
}

struct Watcher {
    rooms: Rooms,
    idle: watch::Receiver<usize>,
    leave: CancellationToken,
}

impl Watcher {
    async fn run(&mut self, Offers(mut offers): Offers) {
        let leave = self.leave.clone();
        loop {
            tokio::select! {
                () = leave.cancelled() => return,
                Some(planting) = offers.recv() => self.plant(planting).await,
                () = tokio::time::sleep(EVERY) => self.wishes().await,
            }
        }
    }

    /// Run the changes of one base, in as many goes as it takes.
    async fn plant(&mut self, mut planting: Planting) {
        let known = store::off(&self.rooms.store, {
            let name = planting.name.clone();
            move |s| s.collected(&name)
        })
        .await;
        if !matches!(known, Ok(None)) {
            return;
        }
        while let Some(go) = self.when_idle(planting.cores()).await {
            let ran = planting.run(&*self.rooms.sandbox, go.token()).await;
            go.over().await;
            match ran {
                Ok(None) => {}
                Ok(Some(mutants)) => {
                    tracing::info!(name = %planting.name, "{}", mutants.sentence());
                    if let Err(error) = planting.keep(&self.rooms.store, &mutants).await {
                        tracing::warn!(%error, "what became of planted changes could not be kept");
                    }
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "changes could not be planted");
                    return;
                }
            }
        }
    }

    /// What operators asked for in the store.
    async fn wishes(&mut self) {
        let room = Arc::clone(&self.rooms.repository);
        let Ok(Ok(names)) = tokio::task::spawn_blocking(move || room.list()).await else {
            return;
        };
        for name in names {
            match wish(&self.rooms.store, &name).await {
                Ok(Wish::Wanted) => self.grant(&name).await,
                Ok(Wish::None | Wish::Granted | Wish::Failed(_)) => {}
                Err(error) => tracing::warn!(%error, "the store could not be asked for wishes"),
            }
        }
    }

    async fn grant(&mut self, name: &RepoName) {
        while let Some(go) = self.when_idle(1).await {
            let cancel = go.token().clone();
            let looked = look(&self.rooms, name, &cancel).await;
            go.over().await;
            let said = match looked {
                Err(_) if cancel.is_cancelled() => continue,
                Err(error) => told(&error),
                Ok((_, planting)) => {
                    if let Some(planting) = planting {
                        self.plant(planting).await;
                    }
                    String::new()
                }
            };
            if let Err(error) = set(&self.rooms.store, name, said).await {
                tracing::warn!(%error, "a wish could not be answered");
            }
            return;
        }
    }

    /// Leave to go on, on so many cores, until something else comes first; `None` when the server leaves.
    async fn when_idle(&mut self, cores: u32) -> Option<Go> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let beside = spare(all, cores as usize);
        let waited = self.idle.wait_for(|running| *running <= beside);
        tokio::select! {
            idle = waited => drop(idle.ok()?),
            () = self.leave.cancelled() => return None,
        }
        let token = self.leave.child_token();
        let (mut idle, stop) = (self.idle.clone(), token.clone());
        let guard = tokio::spawn(async move {
            tokio::select! {
                _ = idle.wait_for(|running| *running > beside) => stop.cancel(),
                () = stop.cancelled() => {}
            }
        });
        Some(Go { token, guard })
    }
}

/// How many cores others may use beside something that uses `cores`: one more is left to whoever comes next. Where there are
/// not so many, it runs while nobody else does.
fn spare(all: usize, cores: usize) -> usize {
    all.saturating_sub(cores + 1)
}

/// Leave to use the cores, until its token is cancelled.
struct Go {
    token: CancellationToken,
    guard: JoinHandle<()>,
}

impl Go {
    fn token(&self) -> &CancellationToken {
        &self.token
    }

    async fn over(self) {
        self.guard.abort();
        // An aborted guard holds nothing.
        let _ended = self.guard.await;
    }
}

/// What became of an operator's wish for a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// There was none.
    None,
    /// It waits for an idle hour.
    Wanted,
    /// It was granted: what was seen is known.
    Granted,
    /// It could not be granted.
    Failed(String),
}

/// Ask the server that serves this store for a look at a repository's tip.
///
/// # Errors
/// The store.
pub async fn ask(store: &Arc<dyn Store>, name: &RepoName) -> Result<(), StoreError> {
    set(store, name, WANTED.to_owned()).await
}

/// What became of it.
///
/// # Errors
/// The store.
pub async fn wish(store: &Arc<dyn Store>, name: &RepoName) -> Result<Wish, StoreError> {
    let key = wish_key(name);
    let said = store::off(store, move |s| s.meta(&key)).await?;
    Ok(match said.as_deref() {
        None => Wish::None,
        Some(WANTED) => Wish::Wanted,
        Some("") => Wish::Granted,
        Some(why) => Wish::Failed(why.to_owned()),
    })
}

async fn set(store: &Arc<dyn Store>, name: &RepoName, said: String) -> Result<(), StoreError> {
    let key = wish_key(name);
    store::off(store, move |s| s.set_meta(&key, &said)).await
}

fn wish_key(name: &RepoName) -> String {
    format!("look {name}")
}

fn told(error: &NoVerdict) -> String {
    shown(&error.to_string(), 500)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn the_last_core_is_left_alone() {
        for (all, cores, beside) in [
            (1, 1, 0),
            (2, 1, 0),
            (3, 1, 1),
            (8, 1, 6),
            (8, 4, 3),
            (2, 8, 0),
        ] {
            assert_eq!(spare(all, cores), beside, "{all} {cores}");
        }
    }

    #[tokio::test]
    async fn what_is_busy_is_counted_by_its_cores_until_it_is_dropped() {
        let (vigil, _offers) = Vigil::new();
        let mut idle = vigil.running.subscribe();
        let (one, four) = (vigil.busy(1), vigil.busy(4));
        assert_eq!(*idle.borrow_and_update(), 5);
        drop(four);
        idle.wait_for(|running| *running == 1).await.unwrap();
        drop(one);
        idle.wait_for(|running| *running == 0).await.unwrap();
    }

    #[test]
    fn nothing_is_made_for_an_offer_that_nobody_takes() {
        Vigil::none().offer(|| unreachable!("nobody takes it"));
        let (vigil, _offers) = Vigil::new();
        vigil.asked_only().offer(|| unreachable!("nobody takes it"));
    }
}
