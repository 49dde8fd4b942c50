//! Between the columns' texts and numbers and our own types. What does not parse is corrupt, never guessed.

use super::super::StoreError;
use super::super::record::{Audience, StateName};
use rusqlite::types::{FromSqlError, Type};
use tribunal_core::id::UnixTime;
use tribunal_core::outcome::Lane;
use tribunal_core::plan::ChangeSet;
use tribunal_core::request::{Freshness, Role};

/// A column's text as one of our types.
pub(super) fn parsed<T>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: String = row.get(column)?;
    text.parse::<T>().map_err(|e| unreadable(e.into()))
}

/// The same where the column may be empty.
pub(super) fn parsed_maybe<T>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text: Option<String> = row.get(column)?;
    text.map(|t| t.parse::<T>().map_err(|e| unreadable(e.into())))
        .transpose()
}

/// A column's JSON.
pub(super) fn json<T: serde::de::DeserializeOwned>(
    row: &rusqlite::Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|e| unreadable(e.into()))
}

/// A column's word as one of a closed set.
pub(super) fn word<T: Copy>(
    row: &rusqlite::Row<'_>,
    column: &str,
    of: fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    of(&text).ok_or_else(|| unreadable(format!("{column} is {text:?}").into()))
}

/// A column's count; SQLite knows signed integers only.
pub(super) fn count<I: rusqlite::RowIndex>(
    row: &rusqlite::Row<'_>,
    column: I,
) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|e| unreadable(e.into()))
}

/// A number of ours as SQLite takes it; one beyond its integers is beyond every row.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn time(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<UnixTime> {
    row.get(column).map(UnixTime)
}

pub(super) fn time_maybe(
    row: &rusqlite::Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<UnixTime>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(UnixTime))
}

pub(super) fn unreadable(cause: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(FromSqlError::Other(cause)))
}

/// JSON text of a value of ours.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| StoreError::Corrupt(format!("a value to store: {e}")))
}

pub(super) const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Ci => "ci",
        Role::Maintainer => "maintainer",
        Role::Operator => "operator",
    }
}

pub(super) fn role_of(word: &str) -> Option<Role> {
    [Role::Agent, Role::Ci, Role::Maintainer, Role::Operator]
        .into_iter()
        .find(|role| role_word(*role) == word)
}

pub(super) const fn freshness_word(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Stored => "stored",
        Freshness::Fresh => "fresh",
    }
}

pub(super) fn freshness_of(word: &str) -> Option<Freshness> {
    [Freshness::Stored, Freshness::Fresh]
        .into_iter()
        .find(|f| freshness_word(*f) == word)
}

pub(super) const fn change_set_word(change_set: ChangeSet) -> &'static str {
    match change_set {
        ChangeSet::Agent => "agent",
        ChangeSet::Human => "human",
    }
}

pub(super) fn change_set_of(word: &str) -> Option<ChangeSet> {
    [ChangeSet::Agent, ChangeSet::Human]
        .into_iter()
        .find(|c| change_set_word(*c) == word)
}

pub(super) const fn lane_word(lane: Lane) -> &'static str {
    match lane {
        Lane::Property => "property",
        Lane::HeldOut => "held-out",
        Lane::MustFail => "must-fail",
        Lane::Liveness => "liveness",
        Lane::LeaseSide => "lease-side",
        Lane::Merge => "merge",
        Lane::Proposed => "proposed",
        Lane::Perturbed => "perturbed",
        Lane::BaseCollection => "base-collection",
    }
}

pub(super) fn lane_of(word: &str) -> Option<Lane> {
    [
        Lane::Property,
        Lane::HeldOut,
        Lane::MustFail,
        Lane::Liveness,
        Lane::LeaseSide,
        Lane::Merge,
        Lane::Proposed,
        Lane::Perturbed,
        Lane::BaseCollection,
    ]
    .into_iter()
    .find(|lane| lane_word(*lane) == word)
}

pub(super) const fn state_word(state: StateName) -> &'static str {
    match state {
        StateName::Queued => "queued",
        StateName::Running => "running",
        StateName::Completed => "completed",
        StateName::Aborted => "aborted",
    }
}

pub(super) fn state_of(word: &str) -> Option<StateName> {
    [
        StateName::Queued,
        StateName::Running,
        StateName::Completed,
        StateName::Aborted,
    ]
    .into_iter()
    .find(|s| state_word(*s) == word)
}

pub(super) const fn audience_word(audience: Audience) -> &'static str {
    match audience {
        Audience::Everyone => "everyone",
        Audience::Agent => "agent",
        Audience::Reader => "reader",
        Audience::Operator => "operator",
    }
}

pub(super) fn audience_of(word: &str) -> Option<Audience> {
    [
        Audience::Everyone,
        Audience::Agent,
        Audience::Reader,
        Audience::Operator,
    ]
    .into_iter()
    .find(|a| audience_word(*a) == word)
}
