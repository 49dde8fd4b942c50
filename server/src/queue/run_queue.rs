//! The line and what was claimed of it, as plain data: bounded per token, round robin among tokens.
//!
//! A claim is a lease: it lapses unless a heartbeat renews it, and whoever holds the claim completes it. The shape is
//! that of a queue in a database, so that many servers can share one later.

use super::lapse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{ScoreId, TokenId};
use tribunal_core::reason::{Aborted, AbortedCode};

/// Why a running score is to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its caller, or someone with the right to, cancelled it.
    Caller,
    /// The server leaves.
    Shutdown,
    /// It told nothing for too long.
    Stalled,
}

impl Cause {
    pub(super) fn aborted(self) -> Aborted {
        match self {
            Self::Caller => Aborted::new(AbortedCode::Cancelled, "cancelled by request"),
            Self::Shutdown => Aborted::new(AbortedCode::ServerRestarted, "the server shut down"),
            Self::Stalled => Aborted::new(
                AbortedCode::Deadline,
                "the score made no progress for too long",
            ),
        }
    }
}

/// A score that a worker holds.
struct Lease {
    token: TokenId,
    lapses: Instant,
    cancel: CancellationToken,
    cause: Option<Cause>,
}

/// What a worker gets.
pub(super) struct Claim<T> {
    pub(super) id: ScoreId,
    pub(super) item: T,
    pub(super) cancel: CancellationToken,
}

pub(super) struct RunQueue<T> {
    running_per_token: usize,
    stall: Duration,
    /// Tokens with waiting scores, the next to be served in front.
    turns: VecDeque<TokenId>,
    waiting: HashMap<TokenId, VecDeque<(ScoreId, T)>>,
    leases: BTreeMap<ScoreId, Lease>,
}

impl<T> RunQueue<T> {
    pub(super) fn new(running_per_token: usize, stall: Duration) -> Self {
        Self {
            running_per_token,
            stall,
            turns: VecDeque::new(),
            waiting: HashMap::new(),
            leases: BTreeMap::new(),
        }
    }

    pub(super) fn push(&mut self, token: &TokenId, id: &ScoreId, item: T) {
        let own = self.waiting.entry(token.clone()).or_default();
        if own.is_empty() {
            self.turns.push_back(token.clone());
        }
        own.push_back((id.clone(), item));
    }

    /// The next score of the next token that may run one more.
    pub(super) fn claim(&mut self) -> Option<Claim<T>> {
        let turn = self
            .turns
            .iter()
            .position(|token| self.running_of(token) < self.running_per_token)?;
        let token = self.turns.remove(turn)?;
        let own = self.waiting.get_mut(&token)?;
        let (id, item) = own.pop_front()?;
        if own.is_empty() {
            self.waiting.remove(&token);
        } else {
            self.turns.push_back(token.clone());
        }
        let cancel = CancellationToken::new();
        let lease = Lease {
            token,
            lapses: lapse(self.stall),
            cancel: cancel.clone(),
            cause: None,
        };
        self.leases.insert(id.clone(), lease);
        Some(Claim { id, item, cancel })
    }

    fn running_of(&self, token: &TokenId) -> usize {
        self.leases.values().filter(|l| l.token == *token).count()
    }

    /// It lives.
    pub(super) fn heartbeat(&mut self, id: &ScoreId) {
        if let Some(lease) = self.leases.get_mut(id) {
            lease.lapses = lapse(self.stall);
        }
    }

    /// It is over; tells why it was to end early, if it was.
    pub(super) fn complete(&mut self, id: &ScoreId) -> Option<Cause> {
        self.leases.remove(id).and_then(|lease| lease.cause)
    }

    /// Why it is to end early, if it is.
    pub(super) fn cause(&self, id: &ScoreId) -> Option<Cause> {
        self.leases.get(id).and_then(|lease| lease.cause)
    }

    /// Ask a running score to end. The first cause stays.
    pub(super) fn cancel(&mut self, id: &ScoreId, cause: Cause) {
        if let Some(lease) = self.leases.get_mut(id) {
            lease.cause.get_or_insert(cause);
            lease.cancel.cancel();
        }
    }

    pub(super) fn cancel_all(&mut self, cause: Cause) {
        for lease in self.leases.values_mut() {
            lease.cause.get_or_insert(cause);
            lease.cancel.cancel();
        }
    }

    /// End what told nothing for too long.
    pub(super) fn cancel_lapsed(&mut self, now: Instant) {
        for lease in self.leases.values_mut().filter(|l| l.lapses <= now) {
            lease.cause.get_or_insert(Cause::Stalled);
            lease.cancel.cancel();
        }
    }

    /// Take a waiting score out.
    pub(super) fn remove(&mut self, id: &ScoreId) -> Option<T> {
        let token = self
            .waiting
            .iter()
            .find(|(_, own)| own.iter().any(|(known, _)| known == id))
            .map(|(token, _)| token.clone())?;
        let own = self.waiting.get_mut(&token)?;
        let place = own.iter().position(|(known, _)| known == id)?;
        let (_, item) = own.remove(place)?;
        if own.is_empty() {
            self.waiting.remove(&token);
            self.turns.retain(|t| *t != token);
        }
        Some(item)
    }

    /// Take all waiting scores out.
    pub(super) fn drain(&mut self) -> Vec<ScoreId> {
        let ids = self.waiting();
        self.waiting.clear();
        self.turns.clear();
        ids
    }

    /// Waiting scores in the order in which they will be served, as far as it is known.
    pub(super) fn waiting(&self) -> Vec<ScoreId> {
        let mut order = Vec::new();
        let longest = self.waiting.values().map(VecDeque::len).max().unwrap_or(0);
        for round in 0..longest {
            for token in &self.turns {
                let own = self.waiting.get(token);
                order.extend(own.and_then(|o| o.get(round)).map(|(id, _)| id.clone()));
            }
        }
        order
    }

    pub(super) fn waiting_count(&self) -> u32 {
        let count: usize = self.waiting.values().map(VecDeque::len).sum();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(super) fn running_count(&self) -> u64 {
        self.leases.len() as u64
    }

    /// 1 is next.
    pub(super) fn position(&self, id: &ScoreId) -> Option<u32> {
        (1..)
            .zip(self.waiting())
            .find(|(_, waiting)| waiting == id)
            .map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    fn token(n: u8) -> TokenId {
        format!("{n:016x}").parse().unwrap()
    }
    fn id(n: u8) -> ScoreId {
        format!("{n:032x}").parse().unwrap()
    }
    fn queue(running_per_token: usize) -> RunQueue<u8> {
        RunQueue::new(running_per_token, Duration::from_secs(60))
    }
    fn push(queue: &mut RunQueue<u8>, of: u8, n: u8) {
        queue.push(&token(of), &id(n), n);
    }
    fn claim(queue: &mut RunQueue<u8>) -> Option<u8> {
        queue.claim().map(|c| c.item)
    }

    #[test]
    fn tokens_take_turns_whoever_came_first() {
        let mut q = queue(usize::MAX);
        for n in 1..=4 {
            push(&mut q, 1, n);
        }
        push(&mut q, 2, 11);
        push(&mut q, 2, 12);
        push(&mut q, 3, 21);
        let places: Vec<_> = [1, 11, 21, 2, 12, 3, 4]
            .into_iter()
            .map(|n| q.position(&id(n)).unwrap())
            .collect();
        assert_eq!(places, [1, 2, 3, 4, 5, 6, 7]);
        let order: Vec<_> = std::iter::from_fn(|| claim(&mut q)).collect();
        assert_eq!(order, [1, 11, 21, 2, 12, 3, 4]);
        assert!(q.position(&id(1)).is_none());
    }

    #[test]
    fn a_token_at_its_limit_lets_others_pass() {
        let mut q = queue(1);
        push(&mut q, 1, 1);
        push(&mut q, 1, 2);
        push(&mut q, 2, 11);
        assert_eq!(claim(&mut q), Some(1));
        assert_eq!(claim(&mut q), Some(11));
        assert_eq!(claim(&mut q), None);
        assert_eq!(q.complete(&id(1)), None);
        assert_eq!(claim(&mut q), Some(2));
    }

    #[test]
    fn what_is_removed_is_not_served_and_leaves_no_turn() {
        let mut q = queue(usize::MAX);
        push(&mut q, 1, 1);
        push(&mut q, 2, 11);
        push(&mut q, 2, 12);
        assert_eq!(q.remove(&id(1)), Some(1));
        assert_eq!(q.remove(&id(1)), None);
        assert_eq!(q.remove(&id(11)), Some(11));
        assert_eq!(q.waiting(), [id(12)]);
        push(&mut q, 1, 2);
        let order: Vec<_> = std::iter::from_fn(|| claim(&mut q)).collect();
        assert_eq!(order, [12, 2]);
    }

    #[test]
    fn the_first_cause_stays_and_a_heartbeat_renews() {
        let mut q = queue(usize::MAX);
        push(&mut q, 1, 1);
        push(&mut q, 1, 2);
        let (first, second) = (q.claim().unwrap(), q.claim().unwrap());
        let later = Instant::now() + Duration::from_secs(61);
        q.leases.get_mut(&first.id).unwrap().lapses = later + Duration::from_secs(1);
        q.cancel_lapsed(later);
        assert!(!first.cancel.is_cancelled());
        assert!(second.cancel.is_cancelled());
        q.cancel(&second.id, Cause::Caller);
        assert_eq!(q.complete(&second.id), Some(Cause::Stalled));
        q.leases.get_mut(&first.id).unwrap().lapses = Instant::now();
        q.heartbeat(&first.id);
        q.cancel_lapsed(Instant::now() + Duration::from_secs(1));
        assert_eq!(q.cause(&first.id), None);
    }

    #[test]
    fn a_drain_empties_the_line_only() {
        let mut q = queue(usize::MAX);
        push(&mut q, 1, 1);
        push(&mut q, 1, 2);
        let running = q.claim().unwrap();
        assert_eq!(q.drain(), [id(2)]);
        assert_eq!(q.waiting_count(), 0);
        assert!(!running.cancel.is_cancelled());
        q.cancel_all(Cause::Shutdown);
        assert!(running.cancel.is_cancelled());
    }
}
