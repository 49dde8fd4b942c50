//! Who is calling: a bearer token becomes a `Caller`, or a refusal that tells nothing about which part was wrong.

use super::token::{Opens, Token};
use crate::clock;
use crate::pipeline::NoVerdict;
use crate::store::{self, Store, TokenRecord};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tonic::codegen::http::{HeaderMap, header::AUTHORIZATION};
use tribunal_core::id::{TokenId, UnixTime};
use tribunal_core::reason::{Aborted, Refused, RefusedCode};
use tribunal_core::request::Caller;

/// How many calls a token may make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallRate {
    /// In the long run.
    pub per_second: f64,
    /// At once.
    pub burst: f64,
}

/// Where tokens are shown. Every way in has one of its own.
pub(crate) struct Door {
    store: Arc<dyn Store>,
    rate: CallRate,
    /// Calls left, and when that was counted. As many entries as there are valid tokens, at most.
    buckets: Mutex<HashMap<TokenId, (f64, Instant)>>,
}

impl Door {
    pub(crate) fn new(store: Arc<dyn Store>, rate: CallRate) -> Self {
        Self {
            store,
            rate,
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// The caller of a request with these headers.
    pub(crate) async fn caller(&self, headers: &HeaderMap) -> Result<Caller, NoVerdict> {
        self.shown(&bearer(headers)?).await
    }

    /// The caller that shows this token.
    pub(crate) async fn shown(&self, token: &Token) -> Result<Caller, NoVerdict> {
        let record = self.record(token.id()).await?;
        let caller = opened(token, record, clock::now())?;
        self.spend(&caller.token, Instant::now())?;
        Ok(caller)
    }

    /// Who showed this token before, as it stands now.
    pub(crate) async fn remembered(&self, token: &TokenId) -> Result<Caller, NoVerdict> {
        let record = self.record(token).await?.ok_or_else(not_valid)?;
        let caller = in_date(record, clock::now())?;
        self.spend(&caller.token, Instant::now())?;
        Ok(caller)
    }

    async fn record(&self, token: &TokenId) -> Result<Option<TokenRecord>, Aborted> {
        let id = token.clone();
        Ok(store::off(&self.store, move |s| s.token(&id)).await?)
    }

    /// One call of the token's allowance.
    fn spend(&self, token: &TokenId, now: Instant) -> Result<(), Refused> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, counted) = buckets
            .entry(token.clone())
            .or_insert((self.rate.burst, now));
        let gained = now.saturating_duration_since(*counted).as_secs_f64() * self.rate.per_second;
        *left = (*left + gained).min(self.rate.burst);
        *counted = now;
        if *left < 1.0 {
            return Err(Refused::new(
                RefusedCode::Quota,
                "this token makes too many calls; slow down",
            ));
        }
        *left -= 1.0;
        Ok(())
    }
}

fn bearer(headers: &HeaderMap) -> Result<Token, Refused> {
    let missing = || Refused::new(RefusedCode::Unauthenticated, "the call carries no token");
    let value = headers.get(AUTHORIZATION).ok_or_else(missing)?;
    value
        .to_str()
        .ok()
        .and_then(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        })
        .and_then(Token::parse)
        .ok_or_else(not_valid)
}

fn not_valid() -> Refused {
    Refused::new(
        RefusedCode::Unauthenticated,
        "the token is not valid, or no longer",
    )
}

fn opened(token: &Token, record: Option<TokenRecord>, now: UnixTime) -> Result<Caller, Refused> {
    // An unknown id costs the same comparison.
    let known = record.as_ref().map_or([0; 32], |r| r.secret_hash);
    let opens = token.opens(&known);
    let record = record.ok_or_else(not_valid)?;
    match opens {
        Opens::Yes => in_date(record, now),
        Opens::No => Err(not_valid()),
    }
}

fn in_date(record: TokenRecord, now: UnixTime) -> Result<Caller, Refused> {
    let expired = record.expires.is_some_and(|at| at <= now);
    let revoked = record.revoked.is_some_and(|at| at <= now);
    if expired || revoked {
        return Err(not_valid());
    }
    Ok(Caller {
        token: record.id,
        role: record.role,
        scope: record.scope,
    })
}

/// How long a call may take, as its `grpc-timeout` header says.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;
    use crate::store::MemoryStore;
    use tribunal_core::request::Role;

    const NOW: UnixTime = UnixTime(1_000);

    fn record(token: &Token) -> TokenRecord {
        TokenRecord {
            id: token.id().clone(),
            secret_hash: token.secret_hash(),
            role: Role::Ci,
            scope: None,
            created: UnixTime(0),
            expires: None,
            revoked: None,
        }
    }

    #[test]
    fn a_token_opens_until_it_expires_or_is_revoked() {
        let token = Token::mint().unwrap();
        let at = |seconds| Some(UnixTime(seconds));
        for (expires, revoked, opens) in [
            (None, None, true),
            (at(1001), None, true),
            (at(1000), None, false),
            (at(1001), at(1000), false),
            (None, at(1), false),
        ] {
            let record = TokenRecord {
                expires,
                revoked,
                ..record(&token)
            };
            assert_eq!(
                opened(&token, Some(record), NOW).is_ok(),
                opens,
                "{expires:?} {revoked:?}"
            );
        }
        let other = Token::mint().unwrap();
        let forged = TokenRecord {
            id: token.id().clone(),
            ..record(&other)
        };
        assert!(opened(&token, Some(forged), NOW).is_err());
        assert!(opened(&token, None, NOW).is_err());
    }

    #[test]
    fn every_reason_to_refuse_reads_the_same() {
        let token = Token::mint().unwrap();
        let expired = TokenRecord {
            expires: Some(UnixTime(1)),
            ..record(&token)
        };
        let one = opened(&token, None, NOW).unwrap_err();
        let two = opened(&token, Some(expired), NOW).unwrap_err();
        assert_eq!(one, two);
    }

    #[test]
    fn only_a_bearer_token_is_taken() {
        let token = Token::mint().unwrap().reveal();
        let with = |value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).is_ok()
        };
        assert!(with(format!("Bearer {}", *token)));
        assert!(with(format!("bearer {}", *token)));
        assert!(!with(format!("Basic {}", *token)));
        assert!(!with(token.to_string()));
        assert!(!with("Bearer ".to_owned()));
        assert!(bearer(&HeaderMap::new()).is_err());
    }

    #[test]
    fn a_burst_is_allowed_and_a_flood_is_not() {
        let rate = CallRate {
            per_second: 2.0,
            burst: 3.0,
        };
        let door = Door::new(Arc::new(MemoryStore::new()), rate);
        let (one, two) = (Token::mint().unwrap(), Token::mint().unwrap());
        let start = Instant::now();
        for _ in 0..3 {
            door.spend(one.id(), start).unwrap();
        }
        let refused = door.spend(one.id(), start).unwrap_err();
        assert_eq!(refused.code, RefusedCode::Quota);
        door.spend(two.id(), start).unwrap();
        let later = start + Duration::from_millis(501);
        door.spend(one.id(), later).unwrap();
        door.spend(one.id(), later).unwrap_err();
    }

    #[test]
    fn timeouts_are_read_as_grpc_writes_them() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            timeout(&headers)
        };
        assert_eq!(of("500m"), Some(Duration::from_millis(500)));
        assert_eq!(of("2S"), Some(Duration::from_secs(2)));
        assert_eq!(of("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(of("99999999u"), Some(Duration::from_micros(99_999_999)));
        for bad in ["", "S", "5", "5s", "-5S", "1.5S", "123456789S"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }
}
