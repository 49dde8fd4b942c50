//! Tokens, repositories, images, sealed trees, keys: rows that are looked up by name.

use super::super::record::{ImageRecord, KeyRecord, RepositoryRecord, TokenRecord};
use super::super::{Sealed, StoreError};
use super::value::{
    json, parsed, parsed_maybe, role_of, role_word, time, time_maybe, to_json, word,
};
use super::{added, broken, found};
use rusqlite::{Connection, OptionalExtension, Row, params};
use tribunal_core::id::{Digest, KeyId, RepoName, TokenId, UnixTime};

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

fn repository_of(row: &Row<'_>) -> rusqlite::Result<RepositoryRecord> {
    Ok(RepositoryRecord {
        name: parsed(row, "name")?,
        remote: row.get("remote")?,
        protected_ref: row.get("protected_ref")?,
        created: time(row, "created")?,
    })
}

pub(super) fn add_repository(c: &Connection, r: &RepositoryRecord) -> Result<(), StoreError> {
    added(
        c.execute(
            "INSERT INTO repositories (name, remote, protected_ref, created)
             VALUES (?1, ?2, ?3, ?4)",
            params![r.name.as_str(), r.remote, r.protected_ref, r.created.0],
        ),
        || format!("repository {}", r.name),
    )
}

pub(super) fn repository(
    c: &Connection,
    name: &RepoName,
) -> Result<Option<RepositoryRecord>, StoreError> {
    c.query_row(
        "SELECT * FROM repositories WHERE name = ?1",
        [name.as_str()],
        repository_of,
    )
    .optional()
    .map_err(broken)
}

pub(super) fn repositories(c: &Connection) -> Result<Vec<RepositoryRecord>, StoreError> {
    all(c, "SELECT * FROM repositories ORDER BY name", repository_of)
}

pub(super) fn remove_repository(c: &Connection, name: &RepoName) -> Result<(), StoreError> {
    found(
        c.execute("DELETE FROM repositories WHERE name = ?1", [name.as_str()]),
        || format!("repository {name}"),
    )
}

fn image_of(row: &Row<'_>) -> rusqlite::Result<ImageRecord> {
    Ok(ImageRecord {
        tag: row.get("tag")?,
        engine_id: row.get("engine_id")?,
        runner: parsed(row, "runner")?,
        python: row.get("python")?,
        packages: json(row, "packages")?,
        created: time(row, "created")?,
    })
}

pub(super) fn add_image(c: &Connection, i: &ImageRecord) -> Result<(), StoreError> {
    let packages = to_json(&i.packages)?;
    c.execute(
        "INSERT INTO images (tag, engine_id, runner, python, packages, created)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            i.tag,
            i.engine_id,
            i.runner.as_str(),
            i.python,
            packages,
            i.created.0
        ],
    )
    .map(drop)
    .map_err(broken)
}

pub(super) fn image(c: &Connection, tag: &str) -> Result<Option<ImageRecord>, StoreError> {
    c.query_row(
        "SELECT * FROM images WHERE tag = ?1 ORDER BY number DESC LIMIT 1",
        [tag],
        image_of,
    )
    .optional()
    .map_err(broken)
}

pub(super) fn images(c: &Connection) -> Result<Vec<ImageRecord>, StoreError> {
    all(c, "SELECT * FROM images ORDER BY number DESC", image_of)
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
    Ok(KeyRecord {
        id: parsed(row, "id")?,
        public: row.get("public")?,
        created: time(row, "created")?,
        retired: time_maybe(row, "retired")?,
        revoked: time_maybe(row, "revoked")?,
    })
}

pub(super) fn add_key(c: &Connection, k: &KeyRecord) -> Result<(), StoreError> {
    added(
        c.execute(
            "INSERT INTO keys (id, public, created, retired, revoked) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                k.id.as_str(),
                k.public,
                k.created.0,
                k.retired.map(|t| t.0),
                k.revoked.map(|t| t.0)
            ],
        ),
        || format!("key {}", k.id),
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
