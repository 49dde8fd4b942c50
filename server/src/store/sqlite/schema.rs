//! The tables, and how older ones become newer. A migration is never edited once released; a new one is added.

use super::super::StoreError;
use super::broken;
use rusqlite::{Connection, TransactionBehavior};

/// Each entry brings the schema from version `index` to `index + 1`.
const MIGRATIONS: &[&str] = &[FIRST, HELD_OUT, MIXED, DELIVERIES];

const FIRST: &str = "
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE tokens (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    secret_hash BLOB NOT NULL CHECK (length(secret_hash) = 32),
    role        TEXT NOT NULL,
    scope       TEXT,
    created     INTEGER NOT NULL,
    expires     INTEGER,
    revoked     INTEGER
) STRICT;

CREATE TABLE sealed_trees (
    digest TEXT PRIMARY KEY,
    used   INTEGER NOT NULL
) STRICT;

CREATE TABLE scores (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    repository TEXT NOT NULL,
    head       TEXT NOT NULL,
    base       TEXT NOT NULL,
    base_tip   TEXT NOT NULL,
    change_set TEXT NOT NULL,
    request_id TEXT NOT NULL,
    token      TEXT NOT NULL,
    role       TEXT NOT NULL,
    freshness  TEXT NOT NULL,
    created    INTEGER NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'aborted')),
    outcome    TEXT,
    started    INTEGER,
    ended      INTEGER,
    UNIQUE (token, request_id),
    CHECK ((state IN ('completed', 'aborted')) = (ended IS NOT NULL)),
    CHECK ((ended IS NOT NULL) = (outcome IS NOT NULL))
) STRICT;
CREATE INDEX scores_by_repository ON scores (repository, number);
CREATE INDEX scores_by_token ON scores (token, created);
CREATE INDEX scores_by_state ON scores (state);
CREATE TRIGGER scores_end_once BEFORE UPDATE ON scores WHEN old.ended IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a score that has ended never changes'); END;

CREATE TABLE events (
    score    INTEGER NOT NULL REFERENCES scores (number) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    PRIMARY KEY (score, sequence)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER events_are_final BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are only added'); END;

CREATE TABLE files (
    score    INTEGER NOT NULL REFERENCES scores (number) ON DELETE CASCADE,
    name     TEXT NOT NULL,
    audience TEXT NOT NULL,
    blob     TEXT NOT NULL,
    PRIMARY KEY (score, name, audience)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_blob ON files (blob);

CREATE TABLE attempts (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL,
    lane    TEXT NOT NULL,
    run     TEXT NOT NULL,
    idx     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    facts   TEXT NOT NULL,
    UNIQUE (content, lane, run, idx)
) STRICT;
CREATE TRIGGER attempts_are_final BEFORE UPDATE ON attempts
BEGIN SELECT RAISE(ABORT, 'attempts are only added'); END;

CREATE TABLE collections (
    key   TEXT PRIMARY KEY,
    at    INTEGER NOT NULL,
    cases TEXT NOT NULL
) STRICT;

CREATE TABLE keys (
    number  INTEGER PRIMARY KEY,
    id      TEXT NOT NULL UNIQUE,
    public  BLOB NOT NULL CHECK (length(public) = 32),
    created INTEGER,
    retired INTEGER,
    revoked INTEGER
) STRICT;
";

const HELD_OUT: &str = "
CREATE TABLE held_out_failures (
    base      TEXT NOT NULL,
    node      TEXT NOT NULL,
    overlay   TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (base, node, overlay)
) STRICT, WITHOUT ROWID;
";

const MIXED: &str = "
CREATE TABLE mixed_cases (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    score      INTEGER NOT NULL REFERENCES scores (number) ON DELETE CASCADE,
    node       TEXT NOT NULL,
    agent_node TEXT,
    digest     TEXT NOT NULL,
    lane       TEXT NOT NULL,
    content    TEXT NOT NULL,
    attempts   INTEGER NOT NULL CHECK (attempts >= failures),
    failures   INTEGER NOT NULL CHECK (failures > 0),
    blame      TEXT NOT NULL
) STRICT;
CREATE INDEX mixed_cases_by_score ON mixed_cases (score);
CREATE INDEX mixed_cases_by_node ON mixed_cases (node, digest, lane);
CREATE INDEX mixed_cases_by_agent_node ON mixed_cases (agent_node, digest, lane);
CREATE TRIGGER mixed_cases_are_final BEFORE UPDATE ON mixed_cases
BEGIN SELECT RAISE(ABORT, 'what a judgement saw never changes'); END;
";

const DELIVERIES: &str = "
CREATE TABLE untold (
    score INTEGER PRIMARY KEY REFERENCES scores (number) ON DELETE CASCADE
) STRICT;

CREATE TABLE deliveries (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT NOT NULL UNIQUE,
    target  TEXT NOT NULL,
    subject TEXT,
    body    TEXT NOT NULL,
    score   TEXT NOT NULL,
    created INTEGER NOT NULL,
    tries   INTEGER NOT NULL,
    due     INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_by_due ON deliveries (due);
CREATE INDEX deliveries_by_subject ON deliveries (target, subject);
";

/// Bring the database to the present version.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let known = MIGRATIONS.len();
    // One process migrates, the others wait for it and find nothing left to do.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(broken)?;
    let found: i64 = transaction
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(broken)?;
    let from = match usize::try_from(found) {
        Ok(version) if version <= known => version,
        Ok(_) | Err(_) => {
            return Err(StoreError::Newer {
                found,
                known: known as i64,
            });
        }
    };
    for step in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(step).map_err(broken)?;
    }
    transaction
        .pragma_update(None, "user_version", known as i64)
        .map_err(broken)?;
    transaction.commit().map_err(broken)
}
