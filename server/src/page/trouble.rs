//! Why there is no page: a page of its own, with the status that says whose fault it is.

use super::frame::{self, Frame};
use crate::pipeline::NoVerdict;
use crate::repository::RepositoryError;
use crate::store::StoreError;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tribunal_core::reason::{Refused, RefusedCode};

/// What stands in the way.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server has not come so far yet.
    Starting,
    /// Nobody is signed in; where they wanted to go.
    SignIn {
        /// A path of ours.
        to: String,
        /// What was wrong with what was shown, where something was.
        wrong: Option<&'static str>,
    },
    /// The token is good and not let in.
    NotLetIn(&'static str),
    /// There is none, or it may not be seen.
    NoSuch,
    /// Too much is asked.
    Busy(&'static str),
    /// Ours.
    Ours(String),
}

/// What is said of every token that opens nothing, whatever is the matter with it.
pub(super) const WRONG: &str = "The token is not valid, or no longer.";

impl Trouble {
    /// The same for somebody who wanted to go there.
    pub(super) fn on_the_way_to(self, path: &str) -> Self {
        if let Self::SignIn { wrong, .. } = self {
            let to = path.to_owned();
            return Self::SignIn { to, wrong };
        }
        self
    }
}

impl From<NoVerdict> for Trouble {
    fn from(error: NoVerdict) -> Self {
        match error {
            NoVerdict::Refused(refused) => refused.into(),
            NoVerdict::Aborted(aborted) => Self::Ours(aborted.to_string()),
        }
    }
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        if refused.code == RefusedCode::Unauthenticated {
            let (to, wrong) = (String::new(), Some(WRONG));
            return Self::SignIn { to, wrong };
        }
        if refused.code == RefusedCode::Quota {
            return Self::Busy("This token asks too often; slow down.");
        }
        // What may not be seen is not there.
        Self::NoSuch
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Ours(error.to_string())
    }
}

impl From<RepositoryError> for Trouble {
    fn from(error: RepositoryError) -> Self {
        NoVerdict::from(error).into()
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, title, body) = match self {
            Self::SignIn { to, wrong } => {
                let form = frame::sign_in(&to, wrong);
                let answer = frame::page(StatusCode::UNAUTHORIZED, form);
                return ([(header::WWW_AUTHENTICATE, "Bearer")], answer).into_response();
            }
            Self::Starting => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The server starts",
                html! { p { "It does not take scores yet. Reload this page in a moment." } },
            ),
            Self::NotLetIn(why) => (
                StatusCode::FORBIDDEN,
                "Not let in",
                html! { p { (why) } p { a href="/sign-in" { "Sign in with another token" } } },
            ),
            Self::NoSuch => (StatusCode::NOT_FOUND, "Not here", nothing()),
            Self::Busy(why) => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too much at once",
                html! { p { (why) } },
            ),
            Self::Ours(why) => {
                tracing::warn!(why, "a page could not be made");
                let text = "The server could not make this page. Its log says why.";
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "Trouble of the server's own",
                    html! { p { (text) } },
                )
            }
        };
        let retry = matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        let mut answer = frame::page(status, Frame::bare(title, body)).into_response();
        if retry {
            let seconds = header::HeaderValue::from_static("5");
            answer.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        answer
    }
}

fn nothing() -> Markup {
    html! {
        p { "There is no such page, or this token may not see it." }
        p { a href="/" { "To the overview" } }
    }
}

/// Every other address; and nothing is ever changed here.
pub(super) async fn no_such_page(method: Method) -> Response {
    match method {
        Method::GET | Method::HEAD => Trouble::NoSuch.into_response(),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
