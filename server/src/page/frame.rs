//! What stands around every page: head, skip link, landmarks, who is signed in.

use super::access::{self, Visit, Way};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use tribunal_core::id::RepoName;

/// A page about to be sent.
pub(super) struct Frame<'a> {
    /// Its title, and what its heading says.
    title: String,
    /// Who looks.
    visit: Option<&'a Visit>,
    /// In which repository, and at which of its pages.
    place: Option<(&'a RepoName, Tab)>,
    /// Where its events come from.
    live: Option<Live>,
    body: Markup,
}

/// Where a page's events come from.
pub(super) struct Live {
    /// Their address.
    pub(super) events: String,
    /// Seconds after which a browser without script loads the page anew.
    pub(super) reload: u32,
}

/// Pages of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Scores,
    Leases,
    Flaky,
    Oracle,
    /// One of them.
    Score,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Scores, "", "Scores"),
    (Tab::Leases, "/leases", "Leases"),
    (Tab::Flaky, "/flaky", "Flaky cases"),
    (Tab::Oracle, "/oracle", "Oracle"),
];

impl<'a> Frame<'a> {
    /// For somebody who is let in.
    pub(super) fn of(visit: &'a Visit, title: impl Into<String>, body: Markup) -> Self {
        Self {
            visit: Some(visit),
            ..Self::bare(title, body)
        }
    }

    /// For anybody.
    pub(super) fn bare(title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            visit: None,
            place: None,
            live: None,
            body,
        }
    }

    pub(super) fn at(self, repository: &'a RepoName, tab: Tab) -> Self {
        Self {
            place: Some((repository, tab)),
            ..self
        }
    }

    pub(super) fn live(self, live: Live) -> Self {
        Self {
            live: Some(live),
            ..self
        }
    }

    fn html(&self) -> Markup {
        let events = self.live.as_ref().map(|live| live.events.as_str());
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Tribunal" }
                    link rel="icon" type="image/svg+xml" href="/static/icon.svg";
                    link rel="stylesheet" href="/static/page.css";
                    script defer src="/static/page.js" {}
                    @if let Some(live) = &self.live {
                        noscript { meta http-equiv="refresh" content=(live.reload); }
                    }
                }
                body data-events=[events] {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        a.brand href="/" { "Tribunal" }
                        @if let Some(visit) = self.visit { (who(visit)) }
                    }
                    @if let Some((repository, tab)) = self.place { (tabs(repository, tab)) }
                    main id="main" tabindex="-1" {
                        h1 { (self.title) }
                        p.sr aria-live="polite" id="news" {}
                        (self.body)
                    }
                    footer { p { "Read-only. Verdicts are the signed files; " code { "tribunal join" } " decides." } }
                }
            }
        }
    }
}

impl IntoResponse for Frame<'_> {
    fn into_response(self) -> Response {
        page(StatusCode::OK, self)
    }
}

/// A page with a status of its own.
pub(super) fn page(status: StatusCode, frame: Frame<'_>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, frame.html().into_string()).into_response()
}

fn who(visit: &Visit) -> Markup {
    let caller = &visit.caller;
    let reach = caller.scope.as_ref().map(RepoName::as_str);
    html! {
        div.who {
            span {
                (access::role(caller.role)) " "
                code { (caller.token) }
                @if let Some(scope) = reach { " of " (scope) }
            }
            @if let Way::Session(_) = visit.way {
                form method="post" action="/sign-out" { button type="submit" { "Sign out" } }
            }
        }
    }
}

fn tabs(repository: &RepoName, here: Tab) -> Markup {
    html! {
        nav.tabs aria-label=(format!("Repository {repository}")) {
            span.repository { (repository) }
            ul {
                @for (tab, path, name) in TABS {
                    @let current = match (tab, here) {
                        (Tab::Scores, Tab::Score) => Some("true"),
                        (tab, here) => (tab == here).then_some("page"),
                    };
                    li { a href=(format!("/repositories/{repository}{path}")) aria-current=[current] { (name) } }
                }
            }
        }
    }
}

/// The form to sign in with.
pub(super) fn sign_in(to: &str, wrong: Option<&str>) -> Frame<'static> {
    let invalid = wrong.map(|_| "true");
    let described = wrong.map(|_| "wrong");
    Frame::bare(
        "Sign in",
        html! {
            @if let Some(wrong) = wrong { p.wrong id="wrong" role="alert" { (wrong) } }
            form.sign-in method="post" action="/sign-in" {
                input type="hidden" name="to" value=(to);
                label for="token" { "Token of an operator, a maintainer or CI" }
                input id="token" name="token" type="password" required autocomplete="off" spellcheck="false"
                    aria-invalid=[invalid] aria-describedby=[described];
                button type="submit" { "Sign in" }
            }
            p { "A token of one repository shows that repository. Agents' tokens are not let in. A session ends after two hours, or with " code { "token revoke" } "." }
            @if to != "/" && !to.is_empty() {
                p { "Signed in already, and came by a link from elsewhere? " a href=(to) { "Go on" } "." }
            }
        },
    )
}

/// A table in a region of its own: it scrolls there, by keyboard too, and the page does not.
pub(super) fn scrolled(label: &str, table: &Markup) -> Markup {
    html! { div.scrolled role="region" aria-label=(label) tabindex="0" { (table) } }
}
