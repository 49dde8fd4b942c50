//! What outlives a process: tokens, scores with every event and attempt, verdict files, public keys.
//! (Mirrors and images are on record in rooms of their own.)
//!
//! Every write that returned is on the disk. Attempts and events are only ever added; a score that has ended never
//! changes. Never judges, never signs, never holds a token's secret (its hash alone) nor the private key. Blocking:
//! from async code go through [`off`]. Fails with `StoreError`, which is always ours.

mod blob;
#[cfg(test)]
mod conformance;
mod delivery;
mod flaky;
mod memory;
mod record;
mod sqlite;

pub use delivery::{Delivery, Message};
pub use flaky::{Blame, FLAKY_SCORES, FlakyCase, FlakyFilter, MixedCase, Sight};
pub use memory::{Disk, MemoryStore};
pub use record::{
    AttemptKey, AttemptSource, Audience, Collected, Completion, Created, EventKind, NewScore,
    ScoreFilter, ScoreRecord, ScoreState, StateName, StoredAttempt, StoredEvent, StoredFile,
    TokenRecord, Words,
};
pub use sqlite::SqliteStore;

use std::sync::Arc;
use tribunal_core::id::{Digest, KeyId, ScoreId, TokenId, UnixTime};
use tribunal_core::keys::KeyRecord;
use tribunal_core::outcome::AttemptFacts;
use tribunal_core::reason::{Aborted, AbortedCode};

/// What can go wrong here.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No room on the disk; nothing was written.
    #[error("write to the store: the disk is full")]
    DiskFull,
    /// Something of that name is there already.
    #[error("add {0}: it exists already")]
    Exists(String),
    /// There is no such thing.
    #[error("find {0}")]
    Missing(String),
    /// The score has ended and can no longer change.
    #[error("change score {0}: it has ended")]
    Ended(ScoreId),
    /// The database was written by a newer version.
    #[error(
        "open the store: its schema is version {found}, this program knows {known}; upgrade the program"
    )]
    Newer {
        /// What the file says.
        found: i64,
        /// What this program can read.
        known: i64,
    },
    /// What was read is not what was written.
    #[error("read the store: {0} does not hold together")]
    Corrupt(String),
    /// A file.
    #[error("{what}: {source}")]
    File {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database.
    #[error("use the database: {0}")]
    Database(#[source] rusqlite::Error),
    /// The thread that did the work is gone.
    #[error("reach the store's thread")]
    Thread,
}

impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::DiskFull => AbortedCode::DiskFull,
            StoreError::Exists(_)
            | StoreError::Missing(_)
            | StoreError::Ended(_)
            | StoreError::Newer { .. }
            | StoreError::Corrupt(_)
            | StoreError::File { .. }
            | StoreError::Database(_)
            | StoreError::Thread => AbortedCode::Internal,
        };
        Aborted::new(code, format!("failed to {error}"))
    }
}

/// The seam. Two implementations, one conformance suite.
pub trait Store: Send + Sync + 'static {
    /// A value of the server itself: `instance`, …
    ///
    /// # Errors
    /// See [`StoreError`]; so for all below.
    fn meta(&self, name: &str) -> Result<Option<String>, StoreError>;
    /// Set it.
    ///
    /// # Errors
    /// The disk or the database.
    fn set_meta(&self, name: &str, value: &str) -> Result<(), StoreError>;

    /// Keep a token's hash.
    ///
    /// # Errors
    /// `Exists`.
    fn add_token(&self, token: &TokenRecord) -> Result<(), StoreError>;
    /// One token.
    ///
    /// # Errors
    /// The disk or the database.
    fn token(&self, id: &TokenId) -> Result<Option<TokenRecord>, StoreError>;
    /// All of them, oldest first.
    ///
    /// # Errors
    /// The disk or the database.
    fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError>;
    /// From now on it opens nothing. The first date stays.
    ///
    /// # Errors
    /// `Missing`.
    fn revoke_token(&self, id: &TokenId, at: UnixTime) -> Result<(), StoreError>;

    /// The sealed tree is whole and may be used.
    ///
    /// # Errors
    /// The disk or the database.
    fn mark_sealed(&self, tree: &Digest, at: UnixTime) -> Result<(), StoreError>;
    /// Whether it is.
    ///
    /// # Errors
    /// The disk or the database.
    fn is_sealed(&self, tree: &Digest) -> Result<Sealed, StoreError>;
    /// All whole trees with the time of their last use, the least used first.
    ///
    /// # Errors
    /// The disk or the database.
    fn sealed_trees(&self) -> Result<Vec<(Digest, UnixTime)>, StoreError>;
    /// The tree is no longer there.
    ///
    /// # Errors
    /// The disk or the database.
    fn forget_sealed(&self, tree: &Digest) -> Result<(), StoreError>;

    /// Make a score, QUEUED, or give the one that this token and request id made before.
    ///
    /// # Errors
    /// The disk or the database.
    fn create_score(&self, score: &NewScore) -> Result<Created, StoreError>;
    /// One score.
    ///
    /// # Errors
    /// The disk or the database.
    fn score(&self, id: &ScoreId) -> Result<Option<ScoreRecord>, StoreError>;
    /// The score that a request id made.
    ///
    /// # Errors
    /// The disk or the database.
    fn score_of_request(
        &self,
        token: &TokenId,
        request_id: &tribunal_core::id::RequestId,
    ) -> Result<Option<ScoreRecord>, StoreError>;
    /// Scores that match, the newest first.
    ///
    /// # Errors
    /// The disk or the database.
    fn scores(&self, filter: &ScoreFilter) -> Result<Vec<ScoreRecord>, StoreError>;
    /// How many scores of this token since then count against its quota: all but those that we aborted.
    ///
    /// # Errors
    /// The disk or the database.
    fn charged(&self, token: &TokenId, since: UnixTime) -> Result<u64, StoreError>;
    /// A worker has it: QUEUED becomes RUNNING.
    ///
    /// # Errors
    /// `Ended`, `Missing`.
    fn start_score(&self, id: &ScoreId, at: UnixTime) -> Result<(), StoreError>;
    /// Add events in order; they get the next sequence numbers.
    ///
    /// # Errors
    /// `Ended`, `Missing`.
    fn append_events(
        &self,
        id: &ScoreId,
        at: UnixTime,
        events: &[EventKind],
    ) -> Result<Vec<StoredEvent>, StoreError>;
    /// Events after a sequence number, in order, at most so many.
    ///
    /// # Errors
    /// The disk or the database.
    fn events(&self, id: &ScoreId, after: u64, limit: u32) -> Result<Vec<StoredEvent>, StoreError>;
    /// All at once or nothing: the files, what was mixed, COMPLETED, and the event that says so.
    ///
    /// # Errors
    /// `Ended`, `Missing`.
    fn complete_score(
        &self,
        id: &ScoreId,
        at: UnixTime,
        completion: &Completion,
    ) -> Result<(), StoreError>;
    /// ABORTED and the event that says so. Nothing is handed out.
    ///
    /// # Errors
    /// `Ended`, `Missing`.
    fn abort_score(&self, id: &ScoreId, at: UnixTime, aborted: &Aborted) -> Result<(), StoreError>;
    /// Every score that has not ended becomes ABORTED: for the start of a server. Returns which.
    ///
    /// # Errors
    /// The disk or the database.
    fn abort_unfinished(&self, at: UnixTime, aborted: &Aborted)
    -> Result<Vec<ScoreId>, StoreError>;
    /// Files of a completed score for this audience; empty where it is not completed.
    ///
    /// # Errors
    /// The disk or the database.
    fn files(&self, id: &ScoreId, audience: Audience) -> Result<Vec<StoredFile>, StoreError>;

    /// Cases that completed scores found mixed, by name, case digest and lane; the one seen last first.
    ///
    /// # Errors
    /// The disk or the database.
    fn flaky_cases(&self, filter: &FlakyFilter) -> Result<Vec<FlakyCase>, StoreError>;

    /// Add evidence. `run` is the score that ran it.
    ///
    /// # Errors
    /// The disk or the database.
    fn append_attempt(
        &self,
        key: &AttemptKey,
        run: &ScoreId,
        at: UnixTime,
        facts: &AttemptFacts,
    ) -> Result<(), StoreError>;
    /// All evidence of this content, in the order it came.
    ///
    /// # Errors
    /// The disk or the database.
    fn attempts(&self, key: &AttemptKey) -> Result<Vec<StoredAttempt>, StoreError>;

    /// What base collects, as the pipeline kept it.
    ///
    /// # Errors
    /// The disk or the database.
    fn collected(&self, key: &Digest) -> Result<Option<Collected>, StoreError>;
    /// Keep it; the first one stays.
    ///
    /// # Errors
    /// The disk or the database.
    fn keep_collected(
        &self,
        key: &Digest,
        at: UnixTime,
        collected: &Collected,
    ) -> Result<(), StoreError>;

    /// What failed under held-out pins for this overlay of this base: these cases and no others.
    ///
    /// # Errors
    /// The disk or the database.
    fn held_out_failed(
        &self,
        base: &Digest,
        overlay: &Digest,
        cases: &[String],
        at: UnixTime,
    ) -> Result<(), StoreError>;
    /// Every case of this base that failed under held-out pins, with the overlay that failed it.
    ///
    /// # Errors
    /// The disk or the database.
    fn held_out_failures(&self, base: &Digest) -> Result<Vec<(String, Digest)>, StoreError>;

    /// Publish a key's public half.
    ///
    /// # Errors
    /// `Exists`.
    fn add_key(&self, key: &KeyRecord) -> Result<(), StoreError>;
    /// All keys, the newest first.
    ///
    /// # Errors
    /// The disk or the database.
    fn keys(&self) -> Result<Vec<KeyRecord>, StoreError>;
    /// It signs no more; what it signed holds. The first date stays.
    ///
    /// # Errors
    /// `Missing`.
    fn retire_key(&self, id: &KeyId, at: UnixTime) -> Result<(), StoreError>;
    /// What it signed from then on does not hold. The earliest date stays.
    ///
    /// # Errors
    /// `Missing`.
    fn revoke_key(&self, id: &KeyId, since: UnixTime) -> Result<(), StoreError>;

    /// Scores that run or have ended and whose state [`Store::tell`] was not called for yet, oldest first. A score is one from
    /// the writes on that start and end it; one that ended before anybody was told of its start is told of once.
    ///
    /// # Errors
    /// The disk or the database.
    fn untold(&self, limit: u32) -> Result<Vec<ScoreRecord>, StoreError>;
    /// What is to be said of a score that is in this state, in one step with that being settled. A message takes the place of
    /// those that wait for the same target about the same subject.
    ///
    /// # Errors
    /// `Missing` where it is settled already, or the score has left that state since.
    fn tell(
        &self,
        score: &ScoreId,
        state: StateName,
        at: UnixTime,
        messages: &[Message],
    ) -> Result<(), StoreError>;
    /// Messages whose time has come, oldest first, at most so many for each target: none waits behind another's.
    ///
    /// # Errors
    /// The disk or the database.
    fn due(&self, at: UnixTime, limit: u32) -> Result<Vec<Delivery>, StoreError>;
    /// How many messages wait.
    ///
    /// # Errors
    /// The disk or the database.
    fn deliveries(&self) -> Result<u64, StoreError>;
    /// It was tried in vain, and is tried again then. One that is gone stays gone.
    ///
    /// # Errors
    /// The disk or the database.
    fn put_off(&self, number: u64, due: UnixTime) -> Result<(), StoreError>;
    /// It was heard, or will never be.
    ///
    /// # Errors
    /// The disk or the database.
    fn over(&self, number: u64) -> Result<(), StoreError>;

    /// Forget ended scores, evidence and collections older than this, and files that nothing names.
    ///
    /// # Errors
    /// The disk or the database.
    fn gc(&self, before: UnixTime) -> Result<Collection, StoreError>;
}

/// Whether a sealed tree is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// It may be used.
    Complete,
    /// It was never finished, or is gone.
    Absent,
}

/// What a collection removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collection {
    /// Scores with their events and files.
    pub scores: u64,
    /// Attempts.
    pub attempts: u64,
    /// Collections of base.
    pub collections: u64,
    /// Files that nothing named any more.
    pub blobs: u64,
}

/// Do blocking work on the store from async code.
///
/// # Errors
/// Those of the work itself, and `Thread`.
pub async fn off<T, F>(store: &Arc<dyn Store>, work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
{
    let store = Arc::clone(store);
    tokio::task::spawn_blocking(move || work(&*store))
        .await
        .map_err(|_| StoreError::Thread)?
}
