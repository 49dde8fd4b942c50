//! Who looks: a session's cookie or a bearer token becomes a caller, as on the wire; agents are not let in.
//!
//! A browser signs in by a form and gets a cookie that names a session, never the token.

use super::headers::Called;
use super::sessions::{LASTS, TooMany};
use super::trouble::WRONG;
use super::{Desk, Page, Trouble, frame};
use crate::wire::{Act, Allowed, allowed, token::Token};
use axum::Extension;
use axum::extract::{Form, FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;
use tribunal_core::request::{Caller, Role};

const COOKIE: &str = "tribunal-session";
const AGENTS: &str =
    "Agents' tokens are not let in here: what an agent may know, `tribunal explain` tells it.";

/// Somebody who may look, with what there is to look at.
pub(super) struct Visit {
    pub(super) desk: Arc<Desk>,
    pub(super) caller: Caller,
    /// How they came in.
    pub(super) way: Way,
}

/// How somebody came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// By a session of this name.
    Session(String),
    /// By a token in each request.
    Bearer,
}

impl FromRequestParts<Page> for Visit {
    type Rejection = Trouble;

    async fn from_request_parts(parts: &mut Parts, page: &Page) -> Result<Self, Trouble> {
        let desk = page.desk()?;
        let to = parts.uri.path().to_owned();
        let entered = enter(&desk, &parts.headers).await;
        let (caller, way) = entered.map_err(|trouble| trouble.on_the_way_to(&to))?;
        Ok(Self { desk, caller, way })
    }
}

async fn enter(desk: &Desk, headers: &HeaderMap) -> Result<(Caller, Way), Trouble> {
    if headers.contains_key(header::AUTHORIZATION) {
        return Ok((let_in(desk.door.caller(headers).await?)?, Way::Bearer));
    }
    let nobody = || Trouble::SignIn {
        to: String::new(),
        wrong: None,
    };
    let name = session(headers).ok_or_else(nobody)?;
    let token = desk.sessions.token(&name, Instant::now());
    let caller = desk.door.remembered(&token.ok_or_else(nobody)?).await?;
    Ok((let_in(caller)?, Way::Session(name)))
}

impl Desk {
    /// Whether somebody who came in so may still look.
    pub(super) async fn still(&self, caller: &Caller, way: &Way) -> Result<(), Trouble> {
        let now = self.door.remembered(&caller.token).await?;
        if let Way::Session(name) = way
            && self.sessions.token(name, Instant::now()).is_none()
        {
            return Err(Trouble::NoSuch);
        }
        let_in(now).map(drop)
    }
}

fn let_in(caller: Caller) -> Result<Caller, Trouble> {
    match allowed(caller.role, Act::ReadPage) {
        Allowed::Yes => Ok(caller),
        Allowed::No => Err(Trouble::NotLetIn(AGENTS)),
    }
}

/// The session's name among the cookies, if it can be one.
fn session(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let name = pairs
        .filter(|(key, _)| *key == COOKIE)
        .map(|(_, name)| name)
        .find(|name| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()))?;
    Some(name.to_owned())
}

/// Where somebody wanted to go.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    to: String,
}

/// The form.
pub(super) async fn form(Query(wanted): Query<Wanted>) -> Response {
    frame::page(StatusCode::OK, frame::sign_in(&path_of(&wanted.to), None))
}

/// What the form sends.
#[derive(Deserialize)]
pub(super) struct SignIn {
    token: String,
    #[serde(default)]
    to: String,
}

/// A token for a session.
pub(super) async fn sign_in(
    State(page): State<Page>,
    Extension(called): Extension<Called>,
    headers: HeaderMap,
    Form(sent): Form<SignIn>,
) -> Result<Response, Trouble> {
    let desk = page.desk()?;
    let to = path_of(&sent.to);
    desk.sessions
        .attempt(Instant::now())
        .map_err(|TooMany| Trouble::Busy("Too many sign-ins were tried; wait a moment."))?;
    let wrong = || Trouble::SignIn {
        to: to.clone(),
        wrong: Some(WRONG),
    };
    let token = Token::parse(sent.token.trim()).ok_or_else(wrong)?;
    let shown = desk.door.shown(&token).await;
    let caller = shown.map_err(|error| Trouble::from(error).on_the_way_to(&to))?;
    let caller = let_in(caller)?;
    if let Some(before) = session(&headers) {
        desk.sessions.end(&before);
    }
    let name = desk.sessions.begin(&caller.token, Instant::now());
    let name = name.ok_or_else(|| Trouble::Ours("draw a session's name".to_owned()))?;
    tracing::info!(token = %caller.token, role = role(caller.role), "signed in to the page");
    moved(&to, &cookie(&name, LASTS.as_secs(), called))
}

/// The session is over.
pub(super) async fn sign_out(
    State(page): State<Page>,
    Extension(called): Extension<Called>,
    headers: HeaderMap,
) -> Result<Response, Trouble> {
    if let Some(name) = session(&headers) {
        page.desk()?.sessions.end(&name);
    }
    moved("/sign-in", &cookie("", 0, called))
}

/// Beyond this machine there is TLS before us, and the cookie must not go without.
fn cookie(name: &str, lasts: u64, called: Called) -> String {
    let secure = match called {
        Called::Own => "",
        Called::Given => "; Secure",
    };
    format!("{COOKIE}={name}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lasts}{secure}")
}

fn moved(to: &str, cookie: &str) -> Result<Response, Trouble> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Trouble::Ours("write a header".to_owned()))
    };
    let headers = [
        (header::LOCATION, value(to)?),
        (header::SET_COOKIE, value(cookie)?),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// A path of ours, and nothing that a browser would take for another place; else the overview.
fn path_of(wanted: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.".contains(&b);
    let ours = wanted.starts_with('/')
        && !wanted.starts_with("//")
        && wanted.len() <= 300
        && wanted.bytes().all(plain)
        && !wanted.starts_with("/sign-")
        && !wanted.ends_with("/events");
    if ours { wanted } else { "/" }.to_owned()
}

/// A role's name.
pub(super) const fn role(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Ci => "ci",
        Role::Maintainer => "maintainer",
        Role::Operator => "operator",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn nobody_is_led_elsewhere() {
        let score = "/repositories/demo/scores/0123456789abcdef0123456789abcdef";
        assert_eq!(path_of(score), score);
        for elsewhere in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example/",
            "/a?b=c",
            "/a\r\nset-cookie: x=y",
            "/sign-out",
            "/repositories/demo/events",
            "javascript:alert(1)",
        ] {
            assert_eq!(path_of(elsewhere), "/", "{elsewhere}");
        }
    }

    #[test]
    fn a_session_is_found_among_cookies_of_others() {
        let name = "a".repeat(64);
        let mut headers = HeaderMap::new();
        let others = format!("x=1; {COOKIE}=short; {COOKIE}={name}; y=2");
        headers.append(header::COOKIE, others.parse().unwrap());
        assert_eq!(session(&headers), Some(name));
        assert_eq!(session(&HeaderMap::new()), None);
    }

    #[test]
    fn a_cookie_is_no_scripts_and_no_strangers_and_needs_tls_where_there_is_some() {
        let own = cookie("abc", 60, Called::Own);
        assert_eq!(
            own,
            "tribunal-session=abc; HttpOnly; SameSite=Strict; Path=/; Max-Age=60"
        );
        assert_eq!(cookie("abc", 60, Called::Given), format!("{own}; Secure"));
    }
}
