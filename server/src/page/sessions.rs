//! Who is signed in, in this process's memory alone: random names, of which only hashes are kept, with the token's public
//! id. What the token may see is asked anew at every request, so that a revoked one sees nothing from then on.
//!
//! Never holds a token's secret. A restart signs everybody out.

use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tribunal_core::id::TokenId;

/// How long a session lasts, whatever happens in it.
pub(super) const LASTS: Duration = Duration::from_secs(2 * 3600);
/// Sessions at the same time.
const MOST: usize = 1024;
/// Of one token.
const MOST_OF_ONE: usize = 16;
/// Sign-ins at once.
const TRIES: f64 = 10.0;
/// Sign-ins a second, in the long run.
const TRIES_PER_SECOND: f64 = 0.5;

type Hash = [u8; 32];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    token: TokenId,
    began: Instant,
}

/// All of them.
pub(super) struct Sessions {
    open: Mutex<HashMap<Hash, Session>>,
    /// Sign-ins left, and when that was counted.
    tries: Mutex<(f64, Option<Instant>)>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            tries: Mutex::new((TRIES, None)),
        }
    }
}

/// Too many sign-ins were tried.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Sessions {
    /// One try to sign in, whoever tries: nobody is known yet.
    pub(super) fn attempt(&self, now: Instant) -> Result<(), TooMany> {
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, counted) = *tries;
        let passed = counted.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let left = (left + passed.as_secs_f64() * TRIES_PER_SECOND).min(TRIES);
        *tries = (left, Some(now));
        if left < 1.0 {
            return Err(TooMany);
        }
        tries.0 = left - 1.0;
        Ok(())
    }

    /// A new session's name; `None` where the system gives no entropy.
    pub(super) fn begin(&self, token: &TokenId, now: Instant) -> Option<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok()?;
        let name = hex::encode(bytes);
        let mut open = self.open();
        open.retain(|_, session| lives(session, now));
        let of_one = |session: &Session| session.token == *token;
        if open.values().filter(|session| of_one(session)).count() >= MOST_OF_ONE {
            remove_oldest(&mut open, of_one);
        }
        if open.len() >= MOST {
            remove_oldest(&mut open, |_| true);
        }
        let session = Session {
            token: token.clone(),
            began: now,
        };
        open.insert(hashed(&name), session);
        Some(name)
    }

    /// The token of a session that lasts.
    pub(super) fn token(&self, name: &str, now: Instant) -> Option<TokenId> {
        let open = self.open();
        let session = open.get(&hashed(name))?;
        lives(session, now).then(|| session.token.clone())
    }

    /// It is over.
    pub(super) fn end(&self, name: &str) {
        self.open().remove(&hashed(name));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Hash, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looked up by its hash: how long a look takes tells nothing of a name.
fn hashed(name: &str) -> Hash {
    Sha256::digest(name.as_bytes()).into()
}

fn lives(session: &Session, now: Instant) -> bool {
    now.saturating_duration_since(session.began) < LASTS
}

fn remove_oldest(open: &mut HashMap<Hash, Session>, of: impl Fn(&Session) -> bool) {
    let oldest = open.iter().filter(|(_, session)| of(session));
    let oldest = oldest.min_by_key(|(_, session)| session.began);
    if let Some(name) = oldest.map(|(name, _)| *name) {
        open.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    fn token(n: u8) -> TokenId {
        format!("{n:016x}").parse().unwrap()
    }

    #[test]
    fn a_session_lasts_until_it_ends_or_is_too_old() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let name = sessions.begin(&token(1), start).unwrap();
        assert_eq!(name.len(), 64);
        assert_eq!(sessions.token(&name, start), Some(token(1)));
        let nearly = start + LASTS - Duration::from_secs(1);
        assert_eq!(sessions.token(&name, nearly), Some(token(1)));
        assert_eq!(sessions.token(&name, start + LASTS), None);
        sessions.end(&name);
        assert_eq!(sessions.token(&name, start), None);
        assert_eq!(sessions.token("", start), None);
    }

    #[test]
    fn the_oldest_makes_room_and_only_one_of_the_same_token() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let other = sessions.begin(&token(2), start).unwrap();
        let at = |n: usize| start + Duration::from_secs(n as u64 + 1);
        let names: Vec<String> = (0..=MOST_OF_ONE)
            .map(|n| sessions.begin(&token(1), at(n)).unwrap())
            .collect();
        let now = at(MOST_OF_ONE);
        assert_eq!(sessions.token(&names[0], now), None);
        assert_eq!(sessions.token(&names[1], now), Some(token(1)));
        assert_eq!(sessions.token(&other, now), Some(token(2)));
    }

    #[test]
    fn a_flood_of_sign_ins_is_stopped_and_passes() {
        let sessions = Sessions::default();
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(sessions.attempt(start), Ok(()));
        }
        assert_eq!(sessions.attempt(start), Err(TooMany));
        let later = start + Duration::from_secs(2);
        assert_eq!(sessions.attempt(later), Ok(()));
        assert_eq!(sessions.attempt(later), Err(TooMany));
    }
}
