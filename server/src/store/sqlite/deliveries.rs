//! Starts and ends of scores that nobody was told of yet, and messages that wait.

use super::super::StoreError;
use super::super::delivery::{Delivery, Message};
use super::super::record::{ScoreRecord, StateName};
use super::value::{count, parsed, signed, state_word, time};
use super::{broken, found, scores};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tribunal_core::id::{ScoreId, UnixTime};

/// Inside the write that starts or ends the score.
pub(super) fn owed(c: &Connection, score: i64) -> Result<(), StoreError> {
    c.execute("INSERT OR IGNORE INTO untold (score) VALUES (?1)", [score])
        .map(drop)
        .map_err(broken)
}

pub(super) fn untold(c: &Connection, limit: u32) -> Result<Vec<ScoreRecord>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT scores.* FROM untold JOIN scores ON scores.number = untold.score
             ORDER BY scores.number LIMIT ?1",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map([limit], scores::score_of)
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

pub(super) fn tell(
    c: &Connection,
    score: &ScoreId,
    state: StateName,
    at: UnixTime,
    messages: &[Message],
) -> Result<(), StoreError> {
    let number: Option<i64> = c
        .query_row(
            "SELECT number FROM scores WHERE id = ?1 AND state = ?2",
            [score.as_str(), state_word(state)],
            |row| row.get(0),
        )
        .optional()
        .map_err(broken)?;
    let removed = c.execute("DELETE FROM untold WHERE score = ?1", [number]);
    found(removed, || format!("{state:?} of {score}, untold"))?;
    for message in messages {
        c.execute(
            "DELETE FROM deliveries WHERE target = ?1 AND subject = ?2",
            params![message.target, message.subject],
        )
        .map_err(broken)?;
        c.execute(
            "INSERT INTO deliveries (id, target, subject, body, score, created, tries, due)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?6)",
            params![
                message.id,
                message.target,
                message.subject,
                message.body,
                score.as_str(),
                at.0
            ],
        )
        .map_err(broken)?;
    }
    Ok(())
}

fn delivery_of(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        number: count(row, "number")?,
        message: Message {
            id: row.get("id")?,
            target: row.get("target")?,
            subject: row.get("subject")?,
            body: row.get("body")?,
        },
        score: parsed(row, "score")?,
        created: time(row, "created")?,
        tries: row.get("tries")?,
        due: time(row, "due")?,
    })
}

pub(super) fn due(c: &Connection, at: UnixTime, limit: u32) -> Result<Vec<Delivery>, StoreError> {
    let mut statement = c
        .prepare_cached(
            "SELECT * FROM (
                 SELECT *, row_number() OVER (PARTITION BY target ORDER BY number) AS place
                 FROM deliveries WHERE due <= ?1
             ) WHERE place <= ?2 ORDER BY number",
        )
        .map_err(broken)?;
    let rows = statement
        .query_map(params![at.0, limit], delivery_of)
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}

pub(super) fn waiting(c: &Connection) -> Result<u64, StoreError> {
    c.query_row("SELECT count(*) FROM deliveries", [], |row| count(row, 0))
        .map_err(broken)
}

pub(super) fn put_off(c: &Connection, number: u64, due: UnixTime) -> Result<(), StoreError> {
    c.execute(
        "UPDATE deliveries SET tries = tries + 1, due = ?2 WHERE number = ?1",
        params![signed(number), due.0],
    )
    .map(drop)
    .map_err(broken)
}

pub(super) fn over(c: &Connection, number: u64) -> Result<(), StoreError> {
    c.execute("DELETE FROM deliveries WHERE number = ?1", [signed(number)])
        .map(drop)
        .map_err(broken)
}
