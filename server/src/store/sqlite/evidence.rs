//! Attempts and base collections, and the collection of what is old.

use super::super::record::{AttemptKey, Collected, StoredAttempt};
use super::super::{Collection, StoreError};
use super::value::{json, lane_word, parsed, time, to_json};
use super::{added, broken};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashSet;
use tribunal_core::id::{Digest, ScoreId, UnixTime};
use tribunal_core::outcome::AttemptFacts;

pub(super) fn append(
    c: &Connection,
    key: &AttemptKey,
    run: &ScoreId,
    at: UnixTime,
    facts: &AttemptFacts,
) -> Result<(), StoreError> {
    added(
        c.execute(
            "INSERT INTO attempts (content, lane, run, idx, at, facts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key.content.as_str(),
                lane_word(key.lane),
                run.as_str(),
                facts.index,
                at.0,
                to_json(facts)?
            ],
        ),
        || format!("attempt {} of score {run}", facts.index),
    )
}

pub(super) fn of(c: &Connection, key: &AttemptKey) -> Result<Vec<StoredAttempt>, StoreError> {
    let mut statement = c
        .prepare_cached("SELECT * FROM attempts WHERE content = ?1 AND lane = ?2 ORDER BY number")
        .map_err(broken)?;
    let rows = statement
        .query_map([key.content.as_str(), lane_word(key.lane)], |row| {
            Ok(StoredAttempt {
                run: parsed(row, "run")?,
                at: time(row, "at")?,
                facts: json(row, "facts")?,
            })
        })
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

pub(super) fn collected(c: &Connection, key: &Digest) -> Result<Option<Collected>, StoreError> {
    c.query_row(
        "SELECT cases FROM collections WHERE key = ?1",
        [key.as_str()],
        |row| row.get(0).map(Collected),
    )
    .optional()
    .map_err(broken)
}

pub(super) fn keep_collected(
    c: &Connection,
    key: &Digest,
    at: UnixTime,
    collected: &Collected,
) -> Result<(), StoreError> {
    c.execute(
        "INSERT INTO collections (key, at, cases) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO NOTHING",
        params![key.as_str(), at.0, collected.0],
    )
    .map(drop)
    .map_err(broken)
}

pub(super) fn held_out_failed(
    c: &Connection,
    base: &Digest,
    overlay: &Digest,
    cases: &[String],
    at: UnixTime,
) -> Result<(), StoreError> {
    let cases_json = to_json(&cases)?;
    c.execute(
        "DELETE FROM held_out_failures WHERE base = ?1 AND overlay = ?2
         AND node NOT IN (SELECT value FROM json_each(?3))",
        params![base.as_str(), overlay.as_str(), cases_json],
    )
    .map_err(broken)?;
    c.execute(
        "INSERT INTO held_out_failures (base, node, overlay, at)
         SELECT ?1, value, ?2, ?4 FROM json_each(?3) WHERE true ON CONFLICT DO NOTHING",
        params![base.as_str(), overlay.as_str(), cases_json, at.0],
    )
    .map(drop)
    .map_err(broken)
}

pub(super) fn held_out_failures(
    c: &Connection,
    base: &Digest,
) -> Result<Vec<(String, Digest)>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT node, overlay FROM held_out_failures WHERE base = ?1 ORDER BY node, overlay",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map([base.as_str()], |row| {
            Ok((row.get("node")?, parsed(row, "overlay")?))
        })
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

/// Rows only; returns what blobs are still named.
pub(super) fn gc(
    c: &Connection,
    before: UnixTime,
) -> Result<(Collection, HashSet<String>), StoreError> {
    let count = |sql: &str| -> Result<u64, StoreError> {
        c.execute(sql, [before.0]).map(|n| n as u64).map_err(broken)
    };
    count("DELETE FROM held_out_failures WHERE at < ?1")?;
    let collection = Collection {
        scores: count("DELETE FROM scores WHERE ended < ?1")?,
        attempts: count("DELETE FROM attempts WHERE at < ?1")?,
        collections: count("DELETE FROM collections WHERE at < ?1")?,
        blobs: 0,
    };
    Ok((collection, named_blobs(c)?))
}

/// The blobs that a file of some score is.
pub(super) fn named_blobs(c: &Connection) -> Result<HashSet<String>, StoreError> {
    let mut statement = c
        .prepare("SELECT DISTINCT blob FROM files")
        .map_err(broken)?;
    statement
        .query_map([], |row| row.get(0))
        .map_err(broken)?
        .collect::<rusqlite::Result<HashSet<String>>>()
        .map_err(broken)
}
