//! Scores, their events and their files.

use super::super::StoreError;
use super::super::flaky::MixedCase;
use super::super::record::{
    Audience, Created, EventKind, NewScore, ScoreFilter, ScoreRecord, ScoreState, StateName,
    StoredEvent, Words,
};
use super::value::{
    audience_of, audience_word, change_set_of, change_set_word, count, freshness_of,
    freshness_word, json, parsed, role_of, role_word, signed, state_of, state_word, time,
    time_maybe, to_json, word,
};
use super::{broken, deliveries, flaky, registry::all};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tribunal_core::id::{CommitId, Digest, RequestId, ScoreId, TokenId, UnixTime};
use tribunal_core::reason::Aborted;

/// Why a score ended without a verdict, as stored.
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredAbort {
    code: tribunal_core::reason::AbortedCode,
    message: String,
}

pub(super) fn score_of(row: &Row<'_>) -> rusqlite::Result<ScoreRecord> {
    let state = match word(row, "state", state_of)? {
        StateName::Queued => ScoreState::Queued,
        StateName::Running => ScoreState::Running,
        StateName::Completed => ScoreState::Completed(json::<Words>(row, "outcome")?),
        StateName::Aborted => {
            let abort: StoredAbort = json(row, "outcome")?;
            ScoreState::Aborted(Aborted::new(abort.code, abort.message))
        }
    };
    Ok(ScoreRecord {
        number: count(row, "number")?,
        asked: NewScore {
            id: parsed(row, "id")?,
            repository: parsed(row, "repository")?,
            head: parsed(row, "head")?,
            base: parsed(row, "base")?,
            base_tip: parsed(row, "base_tip")?,
            change_set: word(row, "change_set", change_set_of)?,
            request_id: parsed(row, "request_id")?,
            token: parsed(row, "token")?,
            role: word(row, "role", role_of)?,
            freshness: word(row, "freshness", freshness_of)?,
            created: time(row, "created")?,
        },
        state,
        started: time_maybe(row, "started")?,
        ended: time_maybe(row, "ended")?,
    })
}

/// Inside a write transaction.
pub(super) fn create(c: &Connection, s: &NewScore) -> Result<Created, StoreError> {
    if let Some(before) = of_request(c, &s.token, &s.request_id)? {
        return Ok(Created::Before(before));
    }
    c.execute(
        "INSERT INTO scores (id, repository, head, base, base_tip, change_set, request_id, token,
                             role, freshness, created, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'queued')",
        params![
            s.id.as_str(),
            s.repository.as_str(),
            s.head.as_str(),
            s.base.as_str(),
            s.base_tip.as_str(),
            change_set_word(s.change_set),
            s.request_id.as_str(),
            s.token.as_str(),
            role_word(s.role),
            freshness_word(s.freshness),
            s.created.0,
        ],
    )
    .map_err(broken)?;
    score(c, &s.id)?
        .map(Created::New)
        .ok_or_else(|| StoreError::Missing(format!("score {}", s.id)))
}

pub(super) fn score(c: &Connection, id: &ScoreId) -> Result<Option<ScoreRecord>, StoreError> {
    c.query_row(
        "SELECT * FROM scores WHERE id = ?1",
        [id.as_str()],
        score_of,
    )
    .optional()
    .map_err(broken)
}

pub(super) fn of_request(
    c: &Connection,
    token: &TokenId,
    request_id: &RequestId,
) -> Result<Option<ScoreRecord>, StoreError> {
    c.query_row(
        "SELECT * FROM scores WHERE token = ?1 AND request_id = ?2",
        [token.as_str(), request_id.as_str()],
        score_of,
    )
    .optional()
    .map_err(broken)
}

pub(super) fn list(c: &Connection, f: &ScoreFilter) -> Result<Vec<ScoreRecord>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT * FROM scores
             WHERE repository = ?1
               AND (?2 IS NULL OR token = ?2) AND (?3 IS NULL OR head = ?3)
               AND (?4 IS NULL OR base = ?4) AND (?5 IS NULL OR state = ?5)
               AND number < ?6
             ORDER BY number DESC LIMIT ?7",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map(
            params![
                f.repository.as_str(),
                f.token.as_ref().map(TokenId::as_str),
                f.head.as_ref().map(CommitId::as_str),
                f.base.as_ref().map(CommitId::as_str),
                f.state.map(state_word),
                f.before.map_or(i64::MAX, signed),
                f.limit
            ],
            score_of,
        )
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

pub(super) fn charged(c: &Connection, token: &TokenId, since: UnixTime) -> Result<u64, StoreError> {
    c.query_row(
        "SELECT count(*) FROM scores WHERE token = ?1 AND created >= ?2
         AND (state <> 'aborted' OR json_extract(outcome, '$.code') = 'cancelled')",
        params![token.as_str(), since.0],
        |r| count(r, 0),
    )
    .map_err(broken)
}

/// The row of a score that has not ended.
fn open_number(c: &Connection, id: &ScoreId) -> Result<i64, StoreError> {
    let row: Option<(i64, Option<i64>)> = c
        .query_row(
            "SELECT number, ended FROM scores WHERE id = ?1",
            [id.as_str()],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .optional()
        .map_err(broken)?;
    match row {
        None => Err(StoreError::Missing(format!("score {id}"))),
        Some((_, Some(_))) => Err(StoreError::Ended(id.clone())),
        Some((number, None)) => Ok(number),
    }
}

pub(super) fn start(c: &Connection, id: &ScoreId, at: UnixTime) -> Result<(), StoreError> {
    let number = open_number(c, id)?;
    c.execute(
        "UPDATE scores SET state = 'running', started = coalesce(started, ?2) WHERE number = ?1",
        params![number, at.0],
    )
    .map_err(broken)?;
    deliveries::owed(c, number)
}

pub(super) fn append_events(
    c: &Connection,
    id: &ScoreId,
    at: UnixTime,
    events: &[EventKind],
) -> Result<Vec<StoredEvent>, StoreError> {
    let number = open_number(c, id)?;
    add_events(c, number, at, events)
}

fn add_events(
    c: &Connection,
    number: i64,
    at: UnixTime,
    events: &[EventKind],
) -> Result<Vec<StoredEvent>, StoreError> {
    let last: u64 = c
        .query_row(
            "SELECT coalesce(max(sequence), 0) FROM events WHERE score = ?1",
            [number],
            |r| count(r, 0),
        )
        .map_err(broken)?;
    let mut stored = Vec::with_capacity(events.len());
    for (sequence, kind) in (last + 1..).zip(events) {
        c.execute(
            "INSERT INTO events (score, sequence, at, kind) VALUES (?1, ?2, ?3, ?4)",
            params![number, signed(sequence), at.0, to_json(kind)?],
        )
        .map_err(broken)?;
        stored.push(StoredEvent {
            sequence,
            at,
            kind: kind.clone(),
        });
    }
    Ok(stored)
}

pub(super) fn events(
    c: &Connection,
    id: &ScoreId,
    after: u64,
    limit: u32,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT events.* FROM events JOIN scores ON scores.number = events.score
             WHERE scores.id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map(params![id.as_str(), signed(after), limit], |row| {
            Ok(StoredEvent {
                sequence: count(row, "sequence")?,
                at: time(row, "at")?,
                kind: json(row, "kind")?,
            })
        })
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

/// A file whose bytes are on the disk already.
pub(super) struct PlacedFile<'a> {
    pub(super) name: &'a str,
    pub(super) audience: Audience,
    pub(super) blob: Digest,
}

pub(super) fn complete(
    c: &Connection,
    id: &ScoreId,
    at: UnixTime,
    words: Words,
    files: &[PlacedFile<'_>],
    mixed: &[MixedCase],
) -> Result<(), StoreError> {
    let number = open_number(c, id)?;
    flaky::add(c, number, mixed)?;
    for file in files {
        c.execute(
            "INSERT INTO files (score, name, audience, blob) VALUES (?1, ?2, ?3, ?4)",
            params![
                number,
                file.name,
                audience_word(file.audience),
                file.blob.as_str()
            ],
        )
        .map_err(broken)?;
    }
    add_events(c, number, at, &[EventKind::Completed { words }])?;
    c.execute(
        "UPDATE scores SET state = 'completed', outcome = ?2, ended = ?3 WHERE number = ?1",
        params![number, to_json(&words)?, at.0],
    )
    .map_err(broken)?;
    deliveries::owed(c, number)
}

pub(super) fn abort(
    c: &Connection,
    id: &ScoreId,
    at: UnixTime,
    aborted: &Aborted,
) -> Result<(), StoreError> {
    let number = open_number(c, id)?;
    let event = EventKind::Aborted {
        code: aborted.code,
        message: aborted.message.clone(),
    };
    add_events(c, number, at, &[event])?;
    let outcome = to_json(&StoredAbort {
        code: aborted.code,
        message: aborted.message.clone(),
    })?;
    c.execute(
        "UPDATE scores SET state = 'aborted', outcome = ?2, ended = ?3 WHERE number = ?1",
        params![number, outcome, at.0],
    )
    .map_err(broken)?;
    deliveries::owed(c, number)
}

pub(super) fn unfinished_ids(c: &Connection) -> Result<Vec<ScoreId>, StoreError> {
    all(
        c,
        "SELECT id FROM scores WHERE ended IS NULL ORDER BY number",
        |row| parsed(row, "id"),
    )
}

/// Names and blobs of what this audience may have of a completed score.
pub(super) fn files(
    c: &Connection,
    id: &ScoreId,
    audience: Audience,
) -> Result<Vec<(String, Audience, Digest)>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT files.* FROM files JOIN scores ON scores.number = files.score
             WHERE scores.id = ?1 AND scores.state = 'completed'
               AND audience IN ('everyone', ?2) ORDER BY name",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map(params![id.as_str(), audience_word(audience)], |row| {
            Ok((
                row.get("name")?,
                word(row, "audience", audience_of)?,
                parsed(row, "blob")?,
            ))
        })
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}
