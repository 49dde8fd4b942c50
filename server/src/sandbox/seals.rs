//! Which sealed trees are complete. A tree counts only once it is marked; the mark is kept where a crash cannot lose it
//! or leave it half-written, which is not the engine: a volume exists as soon as its first byte does.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
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

/// Who is at a tree: one that writes or removes it, or any number that are about to use it.
///
/// A tree that a room is about to mount must not be swept from under it: the engine would mount an empty new one.
#[derive(Debug, Default)]
pub(crate) struct PerDigest {
    locks: Mutex<HashMap<Digest, Arc<RwLock<()>>>>,
}

impl PerDigest {
    /// Wait until nobody else is at this tree. Those who want to write it and come later wait, and find it done.
    pub(crate) async fn write(&self, digest: &Digest) -> OwnedRwLockWriteGuard<()> {
        self.of(digest).write_owned().await
    }

    /// Wait until nobody writes or removes this tree.
    pub(crate) async fn read(&self, digest: &Digest) -> OwnedRwLockReadGuard<()> {
        self.of(digest).read_owned().await
    }

    /// The tree to oneself, if nobody is at it.
    pub(crate) fn try_write(&self, digest: &Digest) -> Option<OwnedRwLockWriteGuard<()>> {
        self.of(digest).try_write_owned().ok()
    }

    fn of(&self, digest: &Digest) -> Arc<RwLock<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever holds or awaits a lock holds a second reference to it.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(digest.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_tree_in_use_is_not_written_and_others_are() {
        let trees = PerDigest::default();
        let (one, other) = (Digest::of(b"one"), Digest::of(b"other"));
        let using = trees.read(&one).await;
        let also = trees.read(&one).now_or_never().unwrap();
        assert!(trees.try_write(&one).is_none());
        assert!(trees.write(&one).now_or_never().is_none());
        assert!(trees.try_write(&other).is_some());
        drop((using, also));
        let writing = trees.try_write(&one).unwrap();
        assert!(trees.read(&one).now_or_never().is_none());
        drop(writing);
        // Locks that nobody holds are not kept.
        drop(trees.read(&other).await);
        assert_eq!(trees.locks.lock().unwrap().len(), 1);
    }
}
