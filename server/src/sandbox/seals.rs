//! Which sealed trees are complete. A tree counts only once it is marked; the mark is kept where a crash cannot lose it
//! or leave it half-written, which is not the engine: a volume exists as soon as its first byte does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tribunal_core::id::Digest;
use tribunal_core::reason::Aborted;

/// The completeness marks.
#[async_trait::async_trait]
pub trait SealMarks: Send + Sync {
    /// Whether the tree was written to its end.
    async fn is_complete(&self, digest: &Digest) -> Result<bool, Aborted>;
    /// It was.
    async fn mark_complete(&self, digest: &Digest) -> Result<(), Aborted>;
    /// It is gone, or about to be.
    async fn forget(&self, digest: &Digest) -> Result<(), Aborted>;
}

/// Marks that last as long as the process.
#[derive(Debug, Default)]
pub struct MarksInMemory {
    complete: Mutex<HashSet<Digest>>,
}

#[async_trait::async_trait]
impl SealMarks for MarksInMemory {
    async fn is_complete(&self, digest: &Digest) -> Result<bool, Aborted> {
        Ok(self.lock().contains(digest))
    }
    async fn mark_complete(&self, digest: &Digest) -> Result<(), Aborted> {
        self.lock().insert(digest.clone());
        Ok(())
    }
    async fn forget(&self, digest: &Digest) -> Result<(), Aborted> {
        self.lock().remove(digest);
        Ok(())
    }
}

impl MarksInMemory {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<Digest>> {
        self.complete.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One writer per digest at a time: those who come later wait and find it done.
#[derive(Debug, Default)]
pub(crate) struct OnePerDigest {
    locks: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
}

impl OnePerDigest {
    /// Wait for this digest's turn.
    pub(crate) async fn lock(&self, digest: &Digest) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever holds or awaits a lock holds a second reference to it.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(digest.clone()).or_default())
        };
        lock.lock_owned().await
    }

    /// Whether somebody is at this digest right now.
    pub(crate) fn is_busy(&self, digest: &Digest) -> bool {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks
            .get(digest)
            .is_some_and(|lock| Arc::strong_count(lock) > 1)
    }
}
