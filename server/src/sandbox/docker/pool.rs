//! Rooms that are ready before anybody asks: made in the background, used once, never more than there may be.
//!
//! Holds nothing of a candidate: a ready room has the sealed tree and its interpreters, no src. One that nobody wanted for
//! a while, whose container died, or whose tree is to go, is ended. Never makes a score wait; where no room is ready, one
//! is made as ever.

use super::super::RunOrder;
use super::super::turns::Company;
use super::Inner;
use super::room::{self, Open};
use super::spec::SrcSpace;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tribunal_core::id::{Digest, RepoPath};
use tribunal_core::reason::{Aborted, AbortedCode};

/// After so long without a taker a room is ended.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// What a room is made for: everything but the src, and the hash seeds that may be any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Purpose {
    image: String,
    tree: Digest,
    policy: Digest,
    files: Vec<RepoPath>,
    /// Two bases with one sealed tree may have other names in src.
    own_names: Vec<String>,
    fixed_starts: Vec<u32>,
    /// Ports and memory are those that the records need.
    cassettes: Vec<Digest>,
}

impl Purpose {
    fn of(order: &RunOrder) -> Self {
        let fixed = order.starts.len().saturating_sub(order.free_starts);
        Self {
            image: order.image.clone(),
            tree: order.tree.digest.clone(),
            policy: order.policy.digest(),
            files: order.files.clone(),
            own_names: order.own_names.clone(),
            fixed_starts: order.starts.iter().take(fixed).copied().collect(),
            cassettes: order
                .cassettes
                .iter()
                .map(|each| each.sha256.clone())
                .collect(),
        }
    }
}

/// A room that was taken.
pub(super) struct Ready {
    pub(super) open: Open,
    /// The hash seeds of its starts.
    pub(super) starts: Vec<u32>,
}

struct Slot {
    purpose: Purpose,
    ready: Ready,
}

/// The ready rooms of one sandbox.
pub(super) struct Pool {
    most: usize,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// Oldest first.
    slots: VecDeque<Slot>,
    /// Rooms that are being made.
    making: HashMap<Purpose, usize>,
    closed: bool,
}

impl Pool {
    /// At most this many rooms wait at a time; none: every score makes its own.
    pub(super) fn of(most: usize) -> Self {
        Self {
            most,
            books: Mutex::default(),
        }
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are ready.
    pub(super) fn ready(&self) -> usize {
        self.books().slots.len()
    }

    /// Whether a room that is ready has this tree mounted.
    pub(super) fn holds(&self, tree: &Digest) -> bool {
        let books = self.books();
        let mut slots = books.slots.iter();
        slots.any(|slot| slot.purpose.tree == *tree && slot.ready.open.stands())
    }

    /// A room that is ready for this order.
    pub(super) fn take(
        &self,
        inner: &Arc<Inner>,
        order: &RunOrder,
    ) -> Result<Option<Ready>, Aborted> {
        if self.most == 0 || order.outside.is_some() {
            return Ok(None);
        }
        let purpose = Purpose::of(order);
        loop {
            let found = {
                let mut books = self.books();
                let place = books.slots.iter().position(|slot| slot.purpose == purpose);
                place.and_then(|place| books.slots.remove(place))
            };
            let Some(Slot { ready, .. }) = found else {
                tracing::debug!(waiting = self.ready(), "no room is ready for this");
                return Ok(None);
            };
            if ready.starts.len() >= order.starts.len() && ready.open.serves(order)? {
                return Ok(Some(ready));
            }
            let (name, stands) = (ready.open.name(), ready.open.stands());
            tracing::debug!(name, stands, "a room that was ready does not do");
            ready.open.leave(inner);
        }
    }

    /// Have a room ready for orders like this one. Returns at once; what comes of it is told in the log.
    pub(super) fn expect(&self, inner: &Arc<Inner>, order: RunOrder) {
        let purpose = Purpose::of(&order);
        let Some(oldest) = self.reserve(&purpose) else {
            return;
        };
        if let Some(slot) = oldest {
            slot.ready.open.leave(inner);
        }
        let task = Arc::clone(inner);
        inner.owned.background(|closing| async move {
            let made = make(&task, order, &closing).await;
            let name = task.pool.keep(&task, purpose, made);
            let Some(name) = name else { return };
            tokio::select! {
                () = tokio::time::sleep(IDLE) => {}
                () = closing.cancelled() => {}
            }
            task.pool.end(&task, |slot| slot.ready.open.name() == name);
        });
    }

    /// A place for one more room, or none; and the room that has to go for it.
    fn reserve(&self, purpose: &Purpose) -> Option<Option<Slot>> {
        let mut books = self.books();
        let own = books
            .slots
            .iter()
            .filter(|slot| slot.purpose == *purpose)
            .count()
            + books.making.get(purpose).copied().unwrap_or(0);
        if books.closed || own >= self.most {
            return None;
        }
        let all = books.slots.len() + books.making.values().sum::<usize>();
        let oldest = if all < self.most {
            None
        } else {
            let other = books
                .slots
                .iter()
                .position(|slot| slot.purpose != *purpose)?;
            books.slots.remove(other)
        };
        *books.making.entry(purpose.clone()).or_default() += 1;
        Some(oldest)
    }

    /// What was made is ready from now on; its name.
    fn keep(
        &self,
        inner: &Arc<Inner>,
        purpose: Purpose,
        made: Result<Ready, Aborted>,
    ) -> Option<String> {
        let mut books = self.books();
        if let Some(count) = books.making.get_mut(&purpose) {
            *count -= 1;
            if *count == 0 {
                books.making.remove(&purpose);
            }
        }
        match made {
            Ok(ready) if !books.closed => {
                let name = ready.open.name().to_owned();
                tracing::info!(%name, "a room is ready");
                books.slots.push_back(Slot { purpose, ready });
                Some(name)
            }
            Ok(ready) => {
                drop(books);
                ready.open.leave(inner);
                None
            }
            Err(aborted) => {
                tracing::info!(%aborted, "no room could be made ready beforehand");
                None
            }
        }
    }

    /// Take out the ready rooms that these are.
    fn without(&self, which: impl Fn(&Slot) -> bool) -> VecDeque<Slot> {
        let mut books = self.books();
        let slots = std::mem::take(&mut books.slots);
        let (gone, left) = slots.into_iter().partition(which);
        books.slots = left;
        gone
    }

    fn end(&self, inner: &Arc<Inner>, which: impl Fn(&Slot) -> bool) {
        for slot in self.without(which) {
            slot.ready.open.leave(inner);
        }
    }

    /// End rooms whose tree is not wanted any more; they are gone when this returns.
    pub(super) async fn keep_trees(&self, keep: &[Digest]) {
        for slot in self.without(|slot| !keep.contains(&slot.purpose.tree)) {
            slot.ready.open.remove().await;
        }
    }

    /// End every room, and take no more.
    pub(super) fn close(&self, inner: &Arc<Inner>) {
        self.books().closed = true;
        self.end(inner, |_| true);
    }
}

async fn make(
    inner: &Arc<Inner>,
    mut order: RunOrder,
    closing: &tokio_util::sync::CancellationToken,
) -> Result<Ready, Aborted> {
    let fixed = order.starts.len().saturating_sub(order.free_starts);
    for seed in order.starts.iter_mut().skip(fixed) {
        *seed = getrandom::u32().map_err(|error| {
            Aborted::new(AbortedCode::Internal, format!("draw a hash seed: {error}"))
        })?;
    }
    let src = SrcSpace::of(&order.src_tar)?.ample();
    room::caller_first(closing).await;
    // It waits for its turn on the cores like an attempt: attempts that run keep theirs.
    let engine = inner.engine.get().await?;
    let _turn = tokio::select! {
        turn = engine.turns.take(1, Company::Others) => turn?,
        () = closing.cancelled() => return Err(inner.owned.why_cancelled()),
    };
    let open = room::prepare(inner, &order, src, closing).await?;
    Ok(Ready {
        open,
        starts: order.starts,
    })
}
