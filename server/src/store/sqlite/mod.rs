//! The store on SQLite: one writer, readers beside it, WAL, every commit synced. Other processes (the administrative
//! commands) may write at the same time; SQLite's own lock orders them.

mod deliveries;
mod evidence;
mod flaky;
mod registry;
mod schema;
mod scores;
mod value;

use super::blob::{Blobs, file_error};
use super::delivery::{Delivery, Message};
use super::flaky::{FlakyCase, FlakyFilter};
use super::record::{
    AttemptKey, Audience, Collected, Completion, Created, EventKind, NewScore, ScoreFilter,
    ScoreRecord, StateName, StoredAttempt, StoredEvent, StoredFile, TokenRecord,
};
use super::{Collection, Sealed, Store, StoreError};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use scores::PlacedFile;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tribunal_core::id::{Digest, KeyId, RequestId, ScoreId, TokenId, UnixTime};
use tribunal_core::keys::KeyRecord;
use tribunal_core::outcome::AttemptFacts;
use tribunal_core::reason::Aborted;

/// How long a write waits for another process's write.
const BUSY: Duration = Duration::from_secs(30);
/// Readers that are kept open.
const IDLE_READERS: usize = 8;

/// The store in a data directory: `tribunal.db` and `blobs/`.
pub struct SqliteStore {
    file: PathBuf,
    blobs: Blobs,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl SqliteStore {
    /// Open it, or make it; brings an older schema up to date.
    ///
    /// # Errors
    /// The disk, the database, or a schema of a newer program.
    pub fn open(data: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(data).map_err(|e| file_error("create the data directory", e))?;
        let file = data.join("tribunal.db");
        let mut writer = connect(&file, OpenFlags::default())?;
        writer
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
            .map_err(broken)?;
        schema::migrate(&mut writer)?;
        Ok(Self {
            file,
            blobs: Blobs::open(data.join("blobs"))?,
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
        })
    }

    /// A copy of the database as of one moment, written to a file that must not exist, synced.
    ///
    /// # Errors
    /// The disk or the database.
    pub fn copy_to(&self, file: &Path) -> Result<(), StoreError> {
        self.read(|c| {
            let mut copy = Connection::open(file).map_err(broken)?;
            let backup = rusqlite::backup::Backup::new(c, &mut copy).map_err(broken)?;
            backup
                .run_to_completion(1024, Duration::ZERO, None)
                .map_err(broken)
        })?;
        std::fs::File::open(file)
            .and_then(|f| f.sync_all())
            .map_err(|e| file_error("sync the copy of the database", e))
    }

    /// The files that rows name, relative to the data directory.
    ///
    /// # Errors
    /// The database.
    pub fn named_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let blobs = self.read(evidence::named_blobs)?;
        let mut files = Vec::with_capacity(blobs.len());
        for blob in blobs {
            let blob = blob
                .parse()
                .map_err(|_| StoreError::Corrupt(format!("the blob name {blob:?}")))?;
            files.push(Path::new("blobs").join(Blobs::place(&blob)));
        }
        Ok(files)
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = lock(&self.readers).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect(&self.file, OpenFlags::default())?,
        };
        let result = work(&connection);
        let mut readers = lock(&self.readers);
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        result
    }

    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = lock(&self.writer);
        let transaction = writer
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(broken)?;
        let result = work(&transaction)?;
        transaction.commit().map_err(broken)?;
        Ok(result)
    }

    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) -> Result<(), StoreError> {
        lock(&self.writer)
            .pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, i64>(0))
            .map(drop)
            .map_err(broken)
    }

    #[cfg(test)]
    pub(super) fn raw<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        work(&lock(&self.writer))
    }
}

/// A panic of another thread leaves the connection usable: its transaction was rolled back when it unwound.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(file: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(file, flags).map_err(broken)?;
    connection.busy_timeout(BUSY).map_err(broken)?;
    for (name, value) in [
        ("synchronous", "FULL"),
        ("foreign_keys", "ON"),
        ("trusted_schema", "OFF"),
        ("cell_size_check", "ON"),
    ] {
        connection
            .pragma_update(None, name, value)
            .map_err(broken)?;
    }
    Ok(connection)
}

/// A database error, told apart where the disk is full or the file is damaged.
fn broken(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => return StoreError::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return StoreError::Corrupt("the database file".to_owned());
        }
        Some(_) | None => {}
    }
    if let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = error {
        return StoreError::Corrupt(format!("a stored row ({cause})"));
    }
    StoreError::Database(error)
}

/// The result of an INSERT that must add a row.
fn added(result: rusqlite::Result<usize>, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    match result {
        Ok(_) => Ok(()),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreError::Exists(what()))
        }
        Err(e) => Err(broken(e)),
    }
}

/// The result of an UPDATE or DELETE that must meet a row.
fn found(result: rusqlite::Result<usize>, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    match result.map_err(broken)? {
        0 => Err(StoreError::Missing(what())),
        _ => Ok(()),
    }
}

impl Store for SqliteStore {
    fn meta(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|c| registry::meta(c, name))
    }
    fn set_meta(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.write(|c| registry::set_meta(c, name, value))
    }
    fn add_token(&self, token: &TokenRecord) -> Result<(), StoreError> {
        self.write(|c| registry::add_token(c, token))
    }
    fn token(&self, id: &TokenId) -> Result<Option<TokenRecord>, StoreError> {
        self.read(|c| registry::token(c, id))
    }
    fn tokens(&self) -> Result<Vec<TokenRecord>, StoreError> {
        self.read(registry::tokens)
    }
    fn revoke_token(&self, id: &TokenId, at: UnixTime) -> Result<(), StoreError> {
        self.write(|c| registry::revoke_token(c, id, at))
    }
    fn mark_sealed(&self, tree: &Digest, at: UnixTime) -> Result<(), StoreError> {
        self.write(|c| registry::mark_sealed(c, tree, at))
    }
    fn is_sealed(&self, tree: &Digest) -> Result<Sealed, StoreError> {
        self.read(|c| registry::is_sealed(c, tree))
    }
    fn sealed_trees(&self) -> Result<Vec<(Digest, UnixTime)>, StoreError> {
        self.read(registry::sealed_trees)
    }
    fn forget_sealed(&self, tree: &Digest) -> Result<(), StoreError> {
        self.write(|c| registry::forget_sealed(c, tree))
    }
    fn create_score(&self, score: &NewScore) -> Result<Created, StoreError> {
        self.write(|c| scores::create(c, score))
    }
    fn score(&self, id: &ScoreId) -> Result<Option<ScoreRecord>, StoreError> {
        self.read(|c| scores::score(c, id))
    }
    fn score_of_request(
        &self,
        token: &TokenId,
        request_id: &RequestId,
    ) -> Result<Option<ScoreRecord>, StoreError> {
        self.read(|c| scores::of_request(c, token, request_id))
    }
    fn scores(&self, filter: &ScoreFilter) -> Result<Vec<ScoreRecord>, StoreError> {
        self.read(|c| scores::list(c, filter))
    }
    fn charged(&self, token: &TokenId, since: UnixTime) -> Result<u64, StoreError> {
        self.read(|c| scores::charged(c, token, since))
    }
    fn start_score(&self, id: &ScoreId, at: UnixTime) -> Result<(), StoreError> {
        self.write(|c| scores::start(c, id, at))
    }
    fn append_events(
        &self,
        id: &ScoreId,
        at: UnixTime,
        events: &[EventKind],
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.write(|c| scores::append_events(c, id, at, events))
    }
    fn events(&self, id: &ScoreId, after: u64, limit: u32) -> Result<Vec<StoredEvent>, StoreError> {
        self.read(|c| scores::events(c, id, after, limit))
    }
    fn complete_score(
        &self,
        id: &ScoreId,
        at: UnixTime,
        completion: &Completion,
    ) -> Result<(), StoreError> {
        // The bytes first: a row never names a file that is not there.
        let mut placed = Vec::with_capacity(completion.files.len());
        for file in &completion.files {
            placed.push(PlacedFile {
                name: &file.name,
                audience: file.audience,
                blob: self.blobs.put(&file.content)?,
            });
        }
        self.write(|c| scores::complete(c, id, at, completion.words, &placed, &completion.mixed))
    }
    fn abort_score(&self, id: &ScoreId, at: UnixTime, aborted: &Aborted) -> Result<(), StoreError> {
        self.write(|c| scores::abort(c, id, at, aborted))
    }
    fn abort_unfinished(
        &self,
        at: UnixTime,
        aborted: &Aborted,
    ) -> Result<Vec<ScoreId>, StoreError> {
        self.write(|c| {
            let ids = scores::unfinished_ids(c)?;
            for id in &ids {
                scores::abort(c, id, at, aborted)?;
            }
            Ok(ids)
        })
    }
    fn files(&self, id: &ScoreId, audience: Audience) -> Result<Vec<StoredFile>, StoreError> {
        self.read(|c| scores::files(c, id, audience))?
            .into_iter()
            .map(|(name, audience, blob)| {
                Ok(StoredFile {
                    name,
                    audience,
                    content: self.blobs.get(&blob)?,
                })
            })
            .collect()
    }
    fn flaky_cases(&self, filter: &FlakyFilter) -> Result<Vec<FlakyCase>, StoreError> {
        self.read(|c| flaky::list(c, filter))
    }
    fn append_attempt(
        &self,
        key: &AttemptKey,
        run: &ScoreId,
        at: UnixTime,
        facts: &AttemptFacts,
    ) -> Result<(), StoreError> {
        self.write(|c| evidence::append(c, key, run, at, facts))
    }
    fn attempts(&self, key: &AttemptKey) -> Result<Vec<StoredAttempt>, StoreError> {
        self.read(|c| evidence::of(c, key))
    }
    fn collected(&self, key: &Digest) -> Result<Option<Collected>, StoreError> {
        self.read(|c| evidence::collected(c, key))
    }
    fn keep_collected(
        &self,
        key: &Digest,
        at: UnixTime,
        collected: &Collected,
    ) -> Result<(), StoreError> {
        self.write(|c| evidence::keep_collected(c, key, at, collected))
    }
    fn held_out_failed(
        &self,
        base: &Digest,
        overlay: &Digest,
        cases: &[String],
        at: UnixTime,
    ) -> Result<(), StoreError> {
        self.write(|c| evidence::held_out_failed(c, base, overlay, cases, at))
    }
    fn held_out_failures(&self, base: &Digest) -> Result<Vec<(String, Digest)>, StoreError> {
        self.read(|c| evidence::held_out_failures(c, base))
    }
    fn add_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        self.write(|c| registry::add_key(c, key))
    }
    fn keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.read(registry::keys)
    }
    fn retire_key(&self, id: &KeyId, at: UnixTime) -> Result<(), StoreError> {
        self.write(|c| registry::retire_key(c, id, at))
    }
    fn revoke_key(&self, id: &KeyId, since: UnixTime) -> Result<(), StoreError> {
        self.write(|c| registry::revoke_key(c, id, since))
    }
    fn untold(&self, limit: u32) -> Result<Vec<ScoreRecord>, StoreError> {
        self.read(|c| deliveries::untold(c, limit))
    }
    fn tell(
        &self,
        score: &ScoreId,
        state: StateName,
        at: UnixTime,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        self.write(|c| deliveries::tell(c, score, state, at, messages))
    }
    fn due(&self, at: UnixTime, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.read(|c| deliveries::due(c, at, limit))
    }
    fn deliveries(&self) -> Result<u64, StoreError> {
        self.read(deliveries::waiting)
    }
    fn put_off(&self, number: u64, due: UnixTime) -> Result<(), StoreError> {
        self.write(|c| deliveries::put_off(c, number, due))
    }
    fn over(&self, number: u64) -> Result<(), StoreError> {
        self.write(|c| deliveries::over(c, number))
    }
    fn gc(&self, before: UnixTime) -> Result<Collection, StoreError> {
        let (mut collection, named) = self.write(|c| evidence::gc(c, before))?;
        collection.blobs = self.blobs.sweep(&named)?;
        Ok(collection)
    }
}
