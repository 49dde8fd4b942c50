//! Whose turn it is: never more running attempts than cores, over all rooms of this server.
//!
//! A time-out is the candidate's fault only if the attempt had its CPU; this is how it gets it. Turns are given in the
//! order in which they were asked for. Each says which cores are its own: an attempt whose processes keep to one core
//! must not keep to another's.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tribunal_core::reason::{Aborted, AbortedCode};

/// The cores, to be taken in turn.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    cores: u32,
    free: Arc<Semaphore>,
    idle: Idle,
}

/// The numbers of the cores that no turn has.
type Idle = Arc<Mutex<BTreeSet<u32>>>;

/// A turn; over when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    // In this order: the next turn finds the cores that this one had.
    cores: Cores,
    _permit: OwnedSemaphorePermit,
}

impl Turn {
    /// The first of its cores, counted from 0.
    pub(crate) fn core(&self) -> Option<u32> {
        self.cores.numbers.first().copied()
    }
}

/// Cores that are given back when dropped.
#[derive(Debug)]
struct Cores {
    numbers: BTreeSet<u32>,
    idle: Idle,
}

impl Cores {
    fn of(idle: &Idle, count: u32) -> Self {
        let mut left = idle.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = (0..count).map_while(|_| left.pop_first()).collect();
        Self {
            numbers,
            idle: Arc::clone(idle),
        }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        let mut left = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        left.append(&mut self.numbers);
    }
}

/// Beside whom an attempt may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// Beside attempts of other rooms.
    Others,
    /// Beside none.
    Alone,
}

impl Turns {
    /// Turns on this many cores.
    pub(crate) fn on(cores: u32) -> Self {
        let cores = cores.max(1);
        Self {
            cores,
            free: Arc::new(Semaphore::new(cores as usize)),
            idle: Arc::new(Mutex::new((0..cores).collect())),
        }
    }

    /// Wait for a turn of an attempt that uses this many CPUs.
    pub(crate) async fn take(&self, cpus: u32, company: Company) -> Result<Turn, Aborted> {
        let cores = match company {
            Company::Others => cpus.clamp(1, self.cores),
            Company::Alone => self.cores,
        };
        match Arc::clone(&self.free).acquire_many_owned(cores).await {
            Ok(permit) => Ok(Turn {
                cores: Cores::of(&self.idle, cores),
                _permit: permit,
            }),
            // Nothing closes it; if it ever were, the server would be going down.
            Err(_) => Err(Aborted::new(
                AbortedCode::ServerRestarted,
                "the server is shutting down",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn no_more_turns_than_cores_and_alone_means_alone() {
        let turns = Turns::on(2);
        let first = turns.take(1, Company::Others).await.unwrap();
        let second = turns.take(1, Company::Others).await.unwrap();
        assert!(turns.take(1, Company::Others).now_or_never().is_none());
        drop(first);
        assert!(turns.take(1, Company::Alone).now_or_never().is_none());
        drop(second);
        let alone = turns.take(1, Company::Alone).await.unwrap();
        assert!(turns.take(1, Company::Others).now_or_never().is_none());
        drop(alone);
        // More CPUs than there are cores is every core, never a wait without end.
        let _wide = turns.take(64, Company::Others).await.unwrap();
        assert!(turns.take(1, Company::Others).now_or_never().is_none());
    }

    #[tokio::test]
    async fn no_two_turns_have_one_core() {
        let turns = Turns::on(2);
        let first = turns.take(1, Company::Others).await.unwrap();
        let second = turns.take(1, Company::Others).await.unwrap();
        assert_eq!((first.core(), second.core()), (Some(0), Some(1)));
        drop(first);
        let third = turns.take(1, Company::Others).await.unwrap();
        assert_eq!(third.core(), Some(0));
        drop((second, third));
        let alone = turns.take(1, Company::Alone).await.unwrap();
        assert_eq!(alone.core(), Some(0));
        drop(alone);
        assert_eq!(turns.idle.lock().unwrap().len(), 2);
    }
}
