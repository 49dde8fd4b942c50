//! A score's events for whoever watches: first what the store has, then what happens, in one order and without a gap, until
//! the score has ended. Whoever has seen the end already is told it again, so that every watch ends with it.
//!
//! Touches nothing of the score. Dropping it, also in the middle of a wait, loses nothing.

use super::{Queue, Subscription};
use crate::store::{self, Store, StoreError, StoredEvent};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::id::ScoreId;

/// Events read from the store at once.
const BATCH: u32 = 256;

/// What there is to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// This happened.
    Event(StoredEvent),
    /// It waits there now, 1 is next.
    Position(u32),
    /// Nothing, for so long that somebody may wonder.
    Silence,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was told.
    Opening,
    /// More may come.
    Going,
    /// The end was told.
    Over,
}

/// One watcher's way through the events.
pub struct Follow {
    store: Arc<dyn Store>,
    queue: Queue,
    score: ScoreId,
    /// The last event that was told.
    after: u64,
    silence: Duration,
    news: Subscription,
    read: VecDeque<StoredEvent>,
    position: Option<u32>,
    phase: Phase,
}

impl Follow {
    /// From the event after this one on.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        queue: Queue,
        score: &ScoreId,
        after: u64,
        silence: Duration,
    ) -> Self {
        Self {
            // Subscribed before the store is read: what is stored after the read wakes us.
            news: queue.subscribe(score),
            store,
            queue,
            score: score.clone(),
            after,
            silence,
            read: VecDeque::new(),
            position: None,
            phase: Phase::Opening,
        }
    }

    /// What comes next; `None` after the end.
    ///
    /// # Errors
    /// The store.
    pub async fn next(&mut self) -> Result<Option<Told>, StoreError> {
        if self.phase == Phase::Opening {
            let end = self.end_again().await?;
            self.read.extend(end);
            self.phase = Phase::Going;
        }
        loop {
            if self.phase == Phase::Over {
                return Ok(None);
            }
            if let Some(event) = self.read.pop_front() {
                self.after = event.sequence;
                if event.kind.is_last() {
                    self.phase = Phase::Over;
                }
                return Ok(Some(Told::Event(event)));
            }
            let (id, after) = (self.score.clone(), self.after);
            let events = store::off(&self.store, move |s| s.events(&id, after, BATCH)).await?;
            if !events.is_empty() {
                self.read.extend(events);
                continue;
            }
            let position = self.queue.position(&self.score);
            if let Some(place) = position.filter(|_| position != self.position) {
                self.position = position;
                return Ok(Some(Told::Position(place)));
            }
            tokio::select! {
                () = self.news.changed() => {}
                () = tokio::time::sleep(self.silence) => return Ok(Some(Told::Silence)),
            }
        }
    }

    /// The last event, where the score has ended and nothing else is to be told.
    async fn end_again(&self) -> Result<Option<StoredEvent>, StoreError> {
        let (id, after) = (self.score.clone(), self.after);
        store::off(&self.store, move |s| {
            let ended = s.score(&id)?.is_some_and(|record| record.ended.is_some());
            if !ended || !s.events(&id, after, 1)?.is_empty() {
                return Ok(None);
            }
            Ok(s.events(&id, 0, u32::MAX)?.pop())
        })
        .await
    }
}
