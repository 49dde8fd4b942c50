//! Whose turn it is: never more running attempts than cores, over all rooms of this server.
//!
//! A time-out is the candidate's fault only if the attempt had its CPU; this is how it gets it. Turns are given in the
//! order in which they were asked for.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tribunal_core::reason::{Aborted, AbortedCode};

/// The cores, to be taken in turn.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    cores: u32,
    free: Arc<Semaphore>,
}

/// A turn; over when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _cores: OwnedSemaphorePermit,
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
        }
    }

    /// Wait for a turn of an attempt that uses this many CPUs.
    pub(crate) async fn take(&self, cpus: u32, company: Company) -> Result<Turn, Aborted> {
        let cores = match company {
            Company::Others => cpus.clamp(1, self.cores),
            Company::Alone => self.cores,
        };
        match Arc::clone(&self.free).acquire_many_owned(cores).await {
            Ok(permit) => Ok(Turn { _cores: permit }),
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
}
