//! `token new|list|revoke`.

use super::{AdminError, Answer, Data};
use crate::clock;
use crate::store::{Store, TokenRecord};
use crate::wire::token::Token;
use serde_json::json;
use std::time::Duration;
use tribunal_core::id::{RepoName, TokenId, UnixTime};
use tribunal_core::request::Role;

/// A new token; the one place where a token is shown.
///
/// # Errors
/// The store, or no entropy; a repository that is not registered.
pub fn new_token(
    data: &Data,
    role: Role,
    scope: Option<RepoName>,
    expires_in: Option<Duration>,
) -> Result<Answer, AdminError> {
    if let Some(repo) = &scope {
        data.repository(crate::repository::RepositorySettings::new(data.path()))?
            .registration(repo)
            .map_err(AdminError::repository("scope the token"))?;
    }
    let expires = expires_in.map(|age| {
        let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        UnixTime(clock::now().0.saturating_add(seconds))
    });
    let token = mint(&data.store()?, role, scope, expires)?;
    let json = json!({ "id": token.id(), "token": *token.reveal() });
    Ok(Answer::lines(format!("{}\n", *token.reveal()), json))
}

pub(super) fn mint(
    store: &dyn Store,
    role: Role,
    scope: Option<RepoName>,
    expires: Option<UnixTime>,
) -> Result<Token, AdminError> {
    let token = Token::mint()?;
    store.add_token(&TokenRecord {
        id: token.id().clone(),
        secret_hash: token.secret_hash(),
        role,
        scope,
        created: clock::now(),
        expires,
        revoked: None,
    })?;
    Ok(token)
}

/// All tokens, without their secrets: nobody has those.
///
/// # Errors
/// The store.
pub fn list_tokens(data: &Data) -> Result<Answer, AdminError> {
    let now = clock::now();
    let rows = data.store()?.tokens()?.into_iter().map(|token| {
        let state = match (token.revoked, token.expires) {
            (Some(_), _) => "revoked",
            (None, Some(at)) if at <= now => "expired",
            (None, Some(_) | None) => "valid",
        };
        vec![
            token.id.to_string(),
            role_name(token.role).to_owned(),
            token
                .scope
                .map_or_else(|| "-".to_owned(), |s| s.to_string()),
            state.to_owned(),
            token.created.rfc3339(),
            token
                .expires
                .map_or_else(|| "-".to_owned(), UnixTime::rfc3339),
        ]
    });
    let heading = ["id", "role", "repository", "state", "created", "expires"];
    Ok(Answer::table("tokens", &heading, rows.collect()))
}

/// From now on it opens nothing.
///
/// # Errors
/// No such token; the store.
pub fn revoke_token(data: &Data, id: &TokenId) -> Result<Answer, AdminError> {
    data.store()?.revoke_token(id, clock::now())?;
    let json = json!({ "revoked": id });
    Ok(Answer::lines(format!("token {id} is revoked\n"), json))
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Ci => "ci",
        Role::Maintainer => "maintainer",
        Role::Operator => "operator",
    }
}
