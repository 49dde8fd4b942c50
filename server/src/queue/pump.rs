//! From a running score's progress to stored events: in batches, counts of cases thinned, every one a sign of life.

use super::Shared;
use crate::clock;
use crate::store::{self, EventKind, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tribunal_core::id::ScoreId;

/// Events are stored at most so often; a disk is synced for each batch.
const BATCH: Duration = Duration::from_millis(100);
/// Messages taken at once.
const MANY: usize = 1024;

/// Runs until all senders are gone.
pub(super) async fn run(shared: Arc<Shared>, id: ScoreId, mut progress: mpsc::Receiver<EventKind>) {
    let mut batch = Vec::new();
    let mut next = Instant::now();
    while progress.recv_many(&mut batch, MANY).await > 0 {
        // What the senders left behind goes at once, the rest no sooner than the last batch allows.
        while let Ok(more) = timeout_at(next, progress.recv_many(&mut batch, MANY)).await {
            if more == 0 {
                break;
            }
        }
        next = Instant::now() + BATCH;
        shared.line().heartbeat(&id);
        let events = thinned(batch.drain(..));
        let of = id.clone();
        let stored = store::off(&shared.store, move |s| {
            s.append_events(&of, clock::now(), &events)
        })
        .await;
        match stored {
            // An end that was stored first stands; what comes after it is dropped.
            Ok(_) | Err(StoreError::Ended(_)) => {}
            // Progress is for people; the score's own writes will meet the same trouble and end it.
            Err(error) => tracing::warn!(score = %id, %error, "could not store progress"),
        }
        shared.feed.poke(&id);
    }
}

/// Only the last of several counts of the same attempt matters.
fn thinned(batch: impl Iterator<Item = EventKind>) -> Vec<EventKind> {
    let mut events: Vec<EventKind> = Vec::new();
    // An end is stored together with the state that it ends in, never alone.
    for event in batch.filter(|event| !event.is_last()) {
        if let (
            Some(EventKind::CasesDone { lane, index, .. }),
            EventKind::CasesDone {
                lane: next_lane,
                index: next_index,
                ..
            },
        ) = (events.last(), &event)
            && (lane, index) == (next_lane, next_index)
        {
            events.pop();
        }
        events.push(event);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribunal_core::outcome::Lane;

    #[test]
    fn counts_are_thinned_and_nothing_else() {
        let count = |index, done| EventKind::CasesDone {
            lane: Lane::Property,
            index,
            done,
            total: 9,
        };
        let started = |index| EventKind::AttemptStarted {
            lane: Lane::Property,
            index,
            total: 2,
        };
        let batch = vec![
            started(0),
            count(0, 1),
            count(0, 2),
            count(0, 9),
            started(1),
            count(1, 1),
            count(1, 2),
        ];
        let expected = [started(0), count(0, 9), started(1), count(1, 2)];
        assert_eq!(thinned(batch.into_iter()), expected);
    }
}
