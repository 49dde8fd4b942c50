//! Places: how many scores may wait in all, and how many one token may have open. A place is given back by being dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tribunal_core::id::TokenId;
use tribunal_core::reason::{Refused, RefusedCode};

pub(super) struct Places {
    capacity: usize,
    waiting: Arc<Semaphore>,
    open_per_token: usize,
    open: Arc<Mutex<HashMap<TokenId, usize>>>,
}

/// A place in the line, and among the token's open scores.
pub(super) struct Place {
    waiting: OwnedSemaphorePermit,
    open: Open,
}

/// A place among the token's open scores.
pub(super) struct Open {
    token: TokenId,
    open: Arc<Mutex<HashMap<TokenId, usize>>>,
}

impl Places {
    pub(super) fn new(capacity: usize, open_per_token: usize) -> Self {
        Self {
            capacity,
            waiting: Arc::new(Semaphore::new(capacity.min(Semaphore::MAX_PERMITS))),
            open_per_token,
            open: Arc::default(),
        }
    }

    /// Take one, before anything costly is done for the request.
    pub(super) fn take(&self, token: &TokenId) -> Result<Place, Refused> {
        let open = {
            let mut counts = lock(&self.open);
            let count = counts.entry(token.clone()).or_default();
            if *count >= self.open_per_token {
                let message = format!("this token has {count} scores open, which is its limit");
                return Err(Refused::new(RefusedCode::Quota, message));
            }
            *count += 1;
            Open {
                token: token.clone(),
                open: Arc::clone(&self.open),
            }
        };
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            let message = format!("{} scores wait already", self.capacity);
            Refused::new(RefusedCode::QueueFull, message)
        })?;
        Ok(Place { waiting, open })
    }
}

impl Place {
    /// It waits no more, but is still open.
    pub(super) fn leave_line(self) -> Open {
        drop(self.waiting);
        self.open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut counts = lock(&self.open);
        if let Some(count) = counts.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.token);
            }
        }
    }
}

fn lock(counts: &Mutex<HashMap<TokenId, usize>>) -> MutexGuard<'_, HashMap<TokenId, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test may stop at the first surprise"
    )]
    use super::*;

    fn token(n: u8) -> TokenId {
        format!("{n:016x}").parse().unwrap()
    }

    fn refused(result: Result<Place, Refused>) -> RefusedCode {
        match result {
            Ok(_) => panic!("a place was given"),
            Err(refused) => refused.code,
        }
    }

    #[test]
    fn one_token_cannot_take_all_and_all_cannot_take_more() {
        let places = Places::new(3, 2);
        let first = places.take(&token(1)).unwrap();
        let _second = places.take(&token(1)).unwrap();
        assert_eq!(refused(places.take(&token(1))), RefusedCode::Quota);
        let _third = places.take(&token(2)).unwrap();
        assert_eq!(refused(places.take(&token(2))), RefusedCode::QueueFull);

        let running = first.leave_line();
        let _fourth = places.take(&token(2)).unwrap();
        assert_eq!(refused(places.take(&token(1))), RefusedCode::Quota);
        drop(running);
        assert_eq!(refused(places.take(&token(1))), RefusedCode::QueueFull);
        assert_eq!(lock(&places.open).get(&token(1)), Some(&1));
    }
}
