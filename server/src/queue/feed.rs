//! Wakes watchers. Carries nothing: what happened is read from the store, so a watcher that is late misses nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tribunal_core::id::ScoreId;

type Senders = Arc<Mutex<HashMap<ScoreId, watch::Sender<()>>>>;

#[derive(Default)]
pub(super) struct Feed {
    each: Senders,
    any: watch::Sender<()>,
}

/// One watcher's end. Counts as having been woken once from the start.
pub struct Subscription {
    id: ScoreId,
    receiver: watch::Receiver<()>,
    senders: Senders,
}

impl Feed {
    pub(super) fn subscribe(&self, id: &ScoreId) -> Subscription {
        let mut senders = lock(&self.each);
        let sender = senders
            .entry(id.clone())
            .or_insert_with(|| watch::Sender::new(()));
        Subscription {
            id: id.clone(),
            receiver: sender.subscribe(),
            senders: Arc::clone(&self.each),
        }
    }

    pub(super) fn poke(&self, id: &ScoreId) {
        if let Some(sender) = lock(&self.each).get(id) {
            sender.send_replace(());
        }
        self.any.send_replace(());
    }

    /// Woken by every poke.
    pub(super) fn tide(&self) -> watch::Receiver<()> {
        self.any.subscribe()
    }
}

impl Subscription {
    /// Returns once something happened since the last return.
    pub async fn changed(&mut self) {
        // The sender lives in the map as long as this subscription does.
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut senders = lock(&self.senders);
        if senders
            .get(&self.id)
            .is_some_and(|s| s.receiver_count() <= 1)
        {
            senders.remove(&self.id);
        }
    }
}

fn lock(senders: &Senders) -> MutexGuard<'_, HashMap<ScoreId, watch::Sender<()>>> {
    senders.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[tokio::test]
    async fn a_poke_before_the_wait_is_not_missed_and_nothing_stays() {
        let feed = Feed::default();
        let id: ScoreId = format!("{:032x}", 1).parse().unwrap();
        feed.poke(&id);
        let mut one = feed.subscribe(&id);
        let two = feed.subscribe(&id);
        feed.poke(&id);
        one.changed().await;
        drop(one);
        assert_eq!(lock(&feed.each).len(), 1);
        drop(two);
        assert!(lock(&feed.each).is_empty());
    }
}
