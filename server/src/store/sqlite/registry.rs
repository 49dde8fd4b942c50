//! Tokens, sealed trees, keys: rows that are looked up by name.

use super::super::record::TokenRecord;
use super::super::{Sealed, StoreError};
use super::value::{parsed, parsed_maybe, role_of, role_word, time, time_maybe, unreadable, word};
use super::{added, broken, found};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tribunal_core::id::{Digest, KeyId, RepoName, TokenId, UnixTime};
use tribunal_core::keys::{KeyRecord, PublicKey};

pub(super) fn meta(c: &Connection, name: &str) -> Result<Option<String>, StoreError> {
    c.query_row("SELECT value FROM meta WHERE name = ?1", [name], |r| {
        r.get(0)
    })
    .optional()
    .map_err(broken)
}

pub(super) fn set_meta(c: &Connection, name: &str, value: &str) -> Result<(), StoreError> {
    c.execute(
        "INSERT INTO meta (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [name, value],
    )
    .map(drop)
    .map_err(broken)
}

fn token_of(row: &Row<'_>) -> rusqlite::Result<TokenRecord> {
    Ok(TokenRecord {
        id: parsed(row, "id")?,
        secret_hash: row.get("secret_hash")?,
        role: word(row, "role", role_of)?,
        scope: parsed_maybe(row, "scope")?,
        created: time(row, "created")?,
        expires: time_maybe(row, "expires")?,
        revoked: time_maybe(row, "revoked")?,
    })
}

pub(super) fn add_token(c: &Connection, t: &TokenRecord) -> Result<(), StoreError> {
    added(
        c.execute(
            "INSERT INTO tokens (id, secret_hash, role, scope, created, expires, revoked)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                t.id.as_str(),
                t.secret_hash,
                role_word(t.role),
                t.scope.as_ref().map(RepoName::as_str),
                t.created.0,
                t.expires.map(|e| e.0),
                t.revoked.map(|e| e.0)
            ],
        ),
        || format!("token {}", t.id),
    )
}

pub(super) fn token(c: &Connection, id: &TokenId) -> Result<Option<TokenRecord>, StoreError> {
    c.query_row(
        "SELECT * FROM tokens WHERE id = ?1",
        [id.as_str()],
        token_of,
    )
    .optional()
    .map_err(broken)
}

pub(super) fn tokens(c: &Connection) -> Result<Vec<TokenRecord>, StoreError> {
    all(c, "SELECT * FROM tokens ORDER BY number", token_of)
}

pub(super) fn revoke_token(c: &Connection, id: &TokenId, at: UnixTime) -> Result<(), StoreError> {
    found(
        c.execute(
            "UPDATE tokens SET revoked = coalesce(revoked, ?2) WHERE id = ?1",
            params![id.as_str(), at.0],
        ),
        || format!("token {id}"),
    )
}

pub(super) fn mark_sealed(c: &Connection, tree: &Digest, at: UnixTime) -> Result<(), StoreError> {
    c.execute(
        "INSERT INTO sealed_trees (digest, used) VALUES (?1, ?2)
         ON CONFLICT (digest) DO UPDATE SET used = max(used, excluded.used)",
        params![tree.as_str(), at.0],
    )
    .map(drop)
    .map_err(broken)
}

pub(super) fn is_sealed(c: &Connection, tree: &Digest) -> Result<Sealed, StoreError> {
    let row: Option<i64> = c
        .query_row(
            "SELECT used FROM sealed_trees WHERE digest = ?1",
            [tree.as_str()],
            |r| r.get(0),
        )
        .optional()
        .map_err(broken)?;
    Ok(row.map_or(Sealed::Absent, |_| Sealed::Complete))
}

pub(super) fn sealed_trees(c: &Connection) -> Result<Vec<(Digest, UnixTime)>, StoreError> {
    all(
        c,
        "SELECT * FROM sealed_trees ORDER BY used, digest",
        |row| Ok((parsed(row, "digest")?, time(row, "used")?)),
    )
}

pub(super) fn forget_sealed(c: &Connection, tree: &Digest) -> Result<(), StoreError> {
    c.execute(
        "DELETE FROM sealed_trees WHERE digest = ?1",
        [tree.as_str()],
    )
    .map(drop)
    .map_err(broken)
}

fn key_of(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let public: [u8; 32] = row.get("public")?;
    Ok(KeyRecord {
        key: PublicKey::from_bytes(&public).map_err(|e| unreadable(e.into()))?,
        valid_after: time_maybe(row, "created")?,
        valid_before: time_maybe(row, "retired")?,
        revoked_since: time_maybe(row, "revoked")?,
    })
}

pub(super) fn add_key(c: &Connection, k: &KeyRecord) -> Result<(), StoreError> {
    added(
        c.execute(
            "INSERT INTO keys (id, public, created, retired, revoked) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                k.key.id().as_str(),
                k.key.as_bytes(),
                k.valid_after.map(|t| t.0),
                k.valid_before.map(|t| t.0),
                k.revoked_since.map(|t| t.0)
            ],
        ),
        || format!("key {}", k.key.id()),
    )
}

pub(super) fn keys(c: &Connection) -> Result<Vec<KeyRecord>, StoreError> {
    all(c, "SELECT * FROM keys ORDER BY number DESC", key_of)
}

pub(super) fn retire_key(c: &Connection, id: &KeyId, at: UnixTime) -> Result<(), StoreError> {
    found(
        c.execute(
            "UPDATE keys SET retired = coalesce(retired, ?2) WHERE id = ?1",
            params![id.as_str(), at.0],
        ),
        || format!("key {id}"),
    )
}

pub(super) fn revoke_key(c: &Connection, id: &KeyId, since: UnixTime) -> Result<(), StoreError> {
    found(
        c.execute(
            "UPDATE keys SET revoked = min(coalesce(revoked, ?2), ?2) WHERE id = ?1",
            params![id.as_str(), since.0],
        ),
        || format!("key {id}"),
    )
}

pub(super) fn all<T>(
    c: &Connection,
    sql: &str,
    of: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = c.prepare_cached(sql).map_err(broken)?;
    let rows = statement.query_map([], of).map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<T>>>().map_err(broken)
}
