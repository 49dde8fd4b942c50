//! The store in memory: for tests of other rooms, and to say what the seam means without SQL.

mod deliveries;
mod flaky;

use super::delivery::{Delivery, Message};
use super::flaky::{FlakyCase, FlakyFilter, MixedCase};
use super::record::{
    AttemptKey, Audience, Collected, Completion, Created, EventKind, NewScore, ScoreFilter,
    ScoreRecord, ScoreState, StateName, StoredAttempt, StoredEvent, StoredFile, TokenRecord,
};
use super::{Collection, Sealed, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tribunal_core::id::{Digest, KeyId, RequestId, ScoreId, TokenId, UnixTime};
use tribunal_core::keys::KeyRecord;
use tribunal_core::outcome::AttemptFacts;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Whether the store's pretended disk has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// It has.
    Roomy,
    /// It has not.
    Full,
}

/// Everything in one lock.
#[derive(Default)]
pub struct MemoryStore {
    shelves: Mutex<Shelves>,
    /// While set, nothing more can be written about a score.
    full: AtomicBool,
}

#[derive(Default)]
struct Shelves {
    meta: BTreeMap<String, String>,
    tokens: Vec<TokenRecord>,
    sealed: BTreeMap<Digest, UnixTime>,
    scores: Vec<Shelf>,
    numbers: u64,
    mixed_numbers: u64,
    attempts: Vec<(AttemptKey, StoredAttempt)>,
    collections: BTreeMap<Digest, (UnixTime, Collected)>,
    /// Base, case, overlay; when.
    held_out: BTreeMap<(Digest, String, Digest), UnixTime>,
    keys: Vec<KeyRecord>,
    post: deliveries::Post,
}

struct Shelf {
    record: ScoreRecord,
    events: Vec<StoredEvent>,
    files: Vec<StoredFile>,
    /// What was mixed, numbered over all scores.
    mixed: Vec<(u64, MixedCase)>,
}

impl Shelf {
    fn push(&mut self, at: UnixTime, kind: EventKind) -> StoredEvent {
        let event = StoredEvent {
            sequence: self.events.len() as u64 + 1,
            at,
            kind,
        };
        self.events.push(event.clone());
        event
    }

    fn abort(&mut self, at: UnixTime, aborted: &Aborted) {
        self.push(
            at,
            EventKind::Aborted {
                code: aborted.code,
                message: aborted.message.clone(),
            },
        );
        self.record.state = ScoreState::Aborted(aborted.clone());
        self.record.ended = Some(at);
    }

    fn counts(&self) -> bool {
        match &self.record.state {
            ScoreState::Aborted(aborted) => aborted.code == AbortedCode::Cancelled,
            ScoreState::Queued | ScoreState::Running | ScoreState::Completed(_) => true,
        }
    }
}

impl Shelves {
    fn of_request(&self, token: &TokenId, request_id: &RequestId) -> Option<ScoreRecord> {
        let mut records = self.scores.iter().map(|s| &s.record);
        records
            .find(|r| r.asked.token == *token && r.asked.request_id == *request_id)
            .cloned()
    }

    fn open(&mut self, id: &ScoreId) -> Result<&mut Shelf, StoreError> {
        let shelf = self
            .scores
            .iter_mut()
            .find(|s| s.record.asked.id == *id)
            .ok_or_else(|| StoreError::Missing(format!("score {id}")))?;
        match shelf.record.ended {
            Some(_) => Err(StoreError::Ended(id.clone())),
            None => Ok(shelf),
        }
    }
}

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writable(&self) -> Result<MutexGuard<'_, Shelves>, StoreError> {
        if self.full.load(Ordering::SeqCst) {
            return Err(StoreError::DiskFull);
        }
        Ok(self.shelves())
    }

    /// Let every write about a score fail as on a full disk, or end that: fault injection for tests of other rooms.
    pub fn fill(&self, full: Disk) {
        self.full.store(full == Disk::Full, Ordering::SeqCst);
    }
}

fn earlier(known: Option<UnixTime>, new: UnixTime) -> Option<UnixTime> {
    Some(known.map_or(new, |k| k.min(new)))
}

impl Store for MemoryStore {
    fn meta(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.shelves().meta.get(name).cloned())
    }
    fn set_meta(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.shelves()
            .meta
            .insert(name.to_owned(), value.to_owned());
        Ok(())
    }
    fn add_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        if shelves.tokens.iter().any(|t| t.id == token.id) {
            return Err(StoreError::Exists(format!("token {}", token.id)));
        }
        shelves.tokens.push(token.clone());
        Ok(())
    }
    fn token(&self, id: &TokenId) -> Result<Option<TokenRecord>, StoreError> {
        Ok(self.shelves().tokens.iter().find(|t| t.id == *id).cloned())
    }
    fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        Ok(self.shelves().tokens.clone())
    }
    fn revoke_token(&self, id: &TokenId, at: UnixTime) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        let token = shelves
            .tokens
            .iter_mut()
            .find(|t| t.id == *id)
            .ok_or_else(|| StoreError::Missing(format!("token {id}")))?;
        token.revoked = token.revoked.or(Some(at));
        Ok(())
    }
    fn mark_sealed(&self, tree: &Digest, at: UnixTime) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        let used = shelves.sealed.entry(tree.clone()).or_insert(at);
        *used = (*used).max(at);
        Ok(())
    }
    fn is_sealed(&self, tree: &Digest) -> Result<Sealed, StoreError> {
        Ok(match self.shelves().sealed.get(tree) {
            Some(_) => Sealed::Complete,
            None => Sealed::Absent,
        })
    }
    fn sealed_trees(&self) -> Result<Vec<(Digest, UnixTime)>, StoreError> {
        let mut trees: Vec<_> = self
            .shelves()
            .sealed
            .iter()
            .map(|(digest, used)| (digest.clone(), *used))
            .collect();
        trees.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        Ok(trees)
    }
    fn forget_sealed(&self, tree: &Digest) -> Result<(), StoreError> {
        self.shelves().sealed.remove(tree);
        Ok(())
    }
    fn create_score(&self, score: &NewScore) -> Result<Created, StoreError> {
        let mut shelves = self.writable()?;
        if let Some(before) = shelves.of_request(&score.token, &score.request_id) {
            return Ok(Created::Before(before));
        }
        shelves.numbers += 1;
        let record = ScoreRecord {
            number: shelves.numbers,
            asked: score.clone(),
            state: ScoreState::Queued,
            started: None,
            ended: None,
        };
        shelves.scores.push(Shelf {
            record: record.clone(),
            events: Vec::new(),
            files: Vec::new(),
            mixed: Vec::new(),
        });
        Ok(Created::New(record))
    }
    fn score(&self, id: &ScoreId) -> Result<Option<ScoreRecord>, StoreError> {
        Ok(self
            .shelves()
            .scores
            .iter()
            .find(|s| s.record.asked.id == *id)
            .map(|s| s.record.clone()))
    }
    fn score_of_request(
        &self,
        token: &TokenId,
        request_id: &RequestId,
    ) -> Result<Option<ScoreRecord>, StoreError> {
        Ok(self.shelves().of_request(token, request_id))
    }
    fn scores(&self, filter: &ScoreFilter) -> Result<Vec<ScoreRecord>, StoreError> {
        let shelves = self.shelves();
        let matching = shelves.scores.iter().rev().map(|s| &s.record).filter(|r| {
            r.asked.repository == filter.repository
                && filter.token.as_ref().is_none_or(|t| r.asked.token == *t)
                && filter.head.as_ref().is_none_or(|h| r.asked.head == *h)
                && filter.base.as_ref().is_none_or(|b| r.asked.base == *b)
                && filter.state.is_none_or(|s| r.state.name() == s)
                && filter.before.is_none_or(|n| r.number < n)
        });
        Ok(matching.take(filter.limit as usize).cloned().collect())
    }
    fn charged(&self, token: &TokenId, since: UnixTime) -> Result<u64, StoreError> {
        let shelves = self.shelves();
        let charged = shelves.scores.iter().filter(|s| {
            s.record.asked.token == *token && s.record.asked.created >= since && s.counts()
        });
        Ok(charged.count() as u64)
    }
    fn start_score(&self, id: &ScoreId, at: UnixTime) -> Result<(), StoreError> {
        let mut shelves = self.writable()?;
        let record = &mut shelves.open(id)?.record;
        record.state = ScoreState::Running;
        record.started = record.started.or(Some(at));
        Ok(())
    }
    fn append_events(
        &self,
        id: &ScoreId,
        at: UnixTime,
        events: &[EventKind],
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let mut shelves = self.writable()?;
        let shelf = shelves.open(id)?;
        Ok(events.iter().map(|e| shelf.push(at, e.clone())).collect())
    }
    fn events(&self, id: &ScoreId, after: u64, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        let shelves = self.shelves();
        let events = shelves
            .scores
            .iter()
            .filter(|s| s.record.asked.id == *id)
            .flat_map(|s| &s.events)
            .filter(|e| e.sequence > after);
        Ok(events.take(limit as usize).cloned().collect())
    }
    fn complete_score(
        &self,
        id: &ScoreId,
        at: UnixTime,
        completion: &Completion,
    ) -> Result<(), StoreError> {
        let mut shelves = self.writable()?;
        let first = shelves.mixed_numbers + 1;
        let shelf = shelves.open(id)?;
        shelf.files = completion.files.clone();
        shelf.mixed = (first..).zip(completion.mixed.clone()).collect();
        shelf.push(
            at,
            EventKind::Completed {
                words: completion.words,
            },
        );
        shelf.record.state = ScoreState::Completed(completion.words);
        shelf.record.ended = Some(at);
        shelves.mixed_numbers += completion.mixed.len() as u64;
        Ok(())
    }
    fn abort_score(&self, id: &ScoreId, at: UnixTime, aborted: &Aborted) -> Result<(), StoreError> {
        self.writable()?.open(id)?.abort(at, aborted);
        Ok(())
    }
    fn abort_unfinished(
        &self,
        at: UnixTime,
        aborted: &Aborted,
    ) -> Result<Vec<ScoreId>, StoreError> {
        let mut shelves = self.shelves();
        let mut ids = Vec::new();
        for shelf in &mut shelves.scores {
            if shelf.record.ended.is_none() {
                shelf.abort(at, aborted);
                ids.push(shelf.record.asked.id.clone());
            }
        }
        Ok(ids)
    }
    fn files(&self, id: &ScoreId, audience: Audience) -> Result<Vec<StoredFile>, StoreError> {
        let shelves = self.shelves();
        let mut files: Vec<_> = shelves
            .scores
            .iter()
            .filter(|s| s.record.asked.id == *id)
            .flat_map(|s| &s.files)
            .filter(|f| f.audience == Audience::Everyone || f.audience == audience)
            .cloned()
            .collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }
    fn flaky_cases(&self, filter: &FlakyFilter) -> Result<Vec<FlakyCase>, StoreError> {
        Ok(self.shelves().flaky(filter))
    }
    fn append_attempt(
        &self,
        key: &AttemptKey,
        run: &ScoreId,
        at: UnixTime,
        facts: &AttemptFacts,
    ) -> Result<(), StoreError> {
        let mut shelves = self.writable()?;
        let known = shelves
            .attempts
            .iter()
            .any(|(k, a)| k == key && a.run == *run && a.facts.index == facts.index);
        if known {
            return Err(StoreError::Exists(format!(
                "attempt {} of score {run}",
                facts.index
            )));
        }
        let attempt = StoredAttempt {
            run: run.clone(),
            at,
            facts: facts.clone(),
        };
        shelves.attempts.push((key.clone(), attempt));
        Ok(())
    }
    fn attempts(&self, key: &AttemptKey) -> Result<Vec<StoredAttempt>, StoreError> {
        let shelves = self.shelves();
        let of_key = shelves.attempts.iter().filter(|(k, _)| k == key);
        Ok(of_key.map(|(_, a)| a.clone()).collect())
    }
    fn collected(&self, key: &Digest) -> Result<Option<Collected>, StoreError> {
        Ok(self.shelves().collections.get(key).map(|(_, c)| c.clone()))
    }
    fn keep_collected(
        &self,
        key: &Digest,
        at: UnixTime,
        collected: &Collected,
    ) -> Result<(), StoreError> {
        self.shelves()
            .collections
            .entry(key.clone())
            .or_insert_with(|| (at, collected.clone()));
        Ok(())
    }
    fn held_out_failed(
        &self,
        base: &Digest,
        overlay: &Digest,
        cases: &[String],
        at: UnixTime,
    ) -> Result<(), StoreError> {
        let mut shelves = self.writable()?;
        let rows = &mut shelves.held_out;
        rows.retain(|(b, case, o), _| b != base || o != overlay || cases.contains(case));
        for case in cases {
            let row = (base.clone(), case.clone(), overlay.clone());
            rows.entry(row).or_insert(at);
        }
        Ok(())
    }
    fn held_out_failures(&self, base: &Digest) -> Result<Vec<(String, Digest)>, StoreError> {
        let shelves = self.shelves();
        let of_base = shelves.held_out.keys().filter(|(b, ..)| b == base);
        Ok(of_base
            .map(|(_, case, o)| (case.clone(), o.clone()))
            .collect())
    }
    fn add_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        if shelves.keys.iter().any(|k| k.key.id() == key.key.id()) {
            return Err(StoreError::Exists(format!("key {}", key.key.id())));
        }
        shelves.keys.push(key.clone());
        Ok(())
    }
    fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        Ok(self.shelves().keys.iter().rev().cloned().collect())
    }
    fn retire_key(&self, id: &KeyId, at: UnixTime) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        let key = shelves
            .keys
            .iter_mut()
            .find(|k| k.key.id() == id)
            .ok_or_else(|| StoreError::Missing(format!("key {id}")))?;
        key.valid_before = key.valid_before.or(Some(at));
        Ok(())
    }
    fn revoke_key(&self, id: &KeyId, since: UnixTime) -> Result<(), StoreError> {
        let mut shelves = self.shelves();
        let key = shelves
            .keys
            .iter_mut()
            .find(|k| k.key.id() == id)
            .ok_or_else(|| StoreError::Missing(format!("key {id}")))?;
        key.revoked_since = earlier(key.revoked_since, since);
        Ok(())
    }
    fn untold(&self, limit: u32) -> Result<Vec<ScoreRecord>, StoreError> {
        Ok(self.shelves().untold(limit))
    }
    fn tell(
        &self,
        score: &ScoreId,
        state: StateName,
        at: UnixTime,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        self.writable()?.tell(score, state, at, messages)
    }
    fn due(&self, at: UnixTime, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        Ok(self.shelves().due(at, limit))
    }
    fn deliveries(&self) -> Result<u64, StoreError> {
        Ok(self.shelves().waiting())
    }
    fn put_off(&self, number: u64, due: UnixTime) -> Result<(), StoreError> {
        self.writable()?.put_off(number, due);
        Ok(())
    }
    fn over(&self, number: u64) -> Result<(), StoreError> {
        self.writable()?.over(number);
        Ok(())
    }
    fn gc(&self, before: UnixTime) -> Result<Collection, StoreError> {
        let mut shelves = self.shelves();
        let (scores, attempts, collections) = (
            shelves.scores.len(),
            shelves.attempts.len(),
            shelves.collections.len(),
        );
        shelves
            .scores
            .retain(|s| s.record.ended.is_none_or(|ended| ended >= before));
        shelves.attempts.retain(|(_, a)| a.at >= before);
        shelves.collections.retain(|_, (at, _)| *at >= before);
        shelves.held_out.retain(|_, at| *at >= before);
        Ok(Collection {
            scores: (scores - shelves.scores.len()) as u64,
            attempts: (attempts - shelves.attempts.len()) as u64,
            collections: (collections - shelves.collections.len()) as u64,
            blobs: 0,
        })
    }
}
