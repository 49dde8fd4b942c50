//! What is known of a repository's oracle: whether it is alive, what it overlooks, what is red on base.
//!
//! Recalled, never run, of the tip as it was fetched last. It takes some reading of trees, so it is done beside the page,
//! once at a time for each repository, and kept for a while.

use super::access::Visit;
use super::frame::{self, Frame, Tab};
use super::{Trouble, text};
use crate::pipeline::{self, Look, NoVerdict, Rooms};
use crate::repository::AsFetched;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex as Turn;
use tribunal_core::id::{NodeId, RepoName};
use tribunal_core::judge::{Mutants, NullProduct};
use tribunal_core::request::Role;

/// How long a recollection serves.
const KEPT: Duration = Duration::from_secs(20);
/// How long a page waits for one.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Names in one list; more are counted.
const NAMES: usize = 200;

/// What is known.
#[derive(Clone)]
pub(super) enum Health {
    /// This.
    Known(Arc<Look>),
    /// Base was not run yet.
    NotYet,
    /// It cannot be scored, and why.
    Unfit(String),
    /// It takes longer than a page waits.
    Looking,
}

type Kept = Arc<Turn<Option<(Health, Instant)>>>;

/// Recollections of all repositories.
pub(super) struct Oracles {
    rooms: Rooms,
    kept: Mutex<HashMap<RepoName, Kept>>,
}

impl Oracles {
    pub(super) fn of(rooms: &Rooms) -> Self {
        let repository = Arc::new(AsFetched(Arc::clone(&rooms.repository)));
        Self {
            rooms: Rooms {
                repository,
                ..rooms.clone()
            },
            kept: Mutex::default(),
        }
    }

    /// Of a repository that is registered.
    pub(super) async fn health(&self, name: &RepoName) -> Health {
        let kept = {
            let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(name.clone()).or_default())
        };
        let (rooms, name) = (self.rooms.clone(), name.clone());
        // It goes on when the page does not wait for it, and the next page finds it.
        let recalled = tokio::spawn(async move {
            let mut kept = kept.lock().await;
            match &*kept {
                Some((health, at)) if at.elapsed() < KEPT => health.clone(),
                Some(_) | None => {
                    let health = recall(&rooms, &name).await;
                    *kept = Some((health.clone(), Instant::now()));
                    health
                }
            }
        });
        match tokio::time::timeout(PATIENCE, recalled).await {
            Ok(Ok(health)) => health,
            Ok(Err(_)) | Err(_) => Health::Looking,
        }
    }
}

async fn recall(rooms: &Rooms, name: &RepoName) -> Health {
    match pipeline::known(rooms, name).await {
        Ok(Some(look)) => Health::Known(Arc::new(look)),
        Ok(None) => Health::NotYet,
        Err(NoVerdict::Refused(refused)) => Health::Unfit(refused.to_string()),
        Err(NoVerdict::Aborted(aborted)) => Health::Unfit(aborted.to_string()),
    }
}

impl Health {
    /// A word, and what to know at once.
    pub(super) fn badge(&self) -> Markup {
        match self {
            Self::NotYet => html! { span.word.not-run { "UNKNOWN" } " not looked at yet" },
            Self::Looking => html! { span.word.not-run { "LOOKING" } },
            Self::Unfit(_) => html! { span.word.fail { "UNFIT" } " no score can pass" },
            Self::Known(look) => html! {
                (alive(look.null))
                @if let Some(mutants) = look.mutants.as_ref().filter(|m| m.run > 0) {
                    " noticed " (mutants.run.saturating_sub(mutants.unnoticed.len())) " of " (mutants.run) " planted changes"
                }
                @if !look.red.is_empty() { "; " (look.red.len()) " red on base" }
            },
        }
    }
}

fn alive(null: NullProduct) -> Markup {
    match null {
        NullProduct::Noticed => html! { span.word.pass { "ALIVE" } },
        NullProduct::Unnoticed => html! { span.word.fail { "DEAD" } },
        NullProduct::Untold => html! { span.word.not-run { "UNTOLD" } },
    }
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>) -> Result<Response, Trouble> {
    let name = visit.repository(&name).await?;
    let health = visit.desk.oracles.health(&name).await;
    let body = match &health {
        Health::Known(look) => known(look, visit.caller.role),
        Health::NotYet => html! {
            p { (health.badge()) }
            p { "Base was not run yet. The first score does it, or " code { "tribunal-server repo sync" } "." }
        },
        Health::Looking => html! {
            p { (health.badge()) }
            p { "It takes a while; " a href=(format!("/repositories/{name}/oracle")) { "look again" } "." }
        },
        Health::Unfit(why) => html! { p { (health.badge()) } p { (text::said(why)) } },
    };
    let frame = Frame::of(&visit, format!("Oracle of {name}"), body);
    Ok(frame.at(&name, Tab::Oracle).into_response())
}

fn known(look: &Look, role: Role) -> Markup {
    let meaning = match look.null {
        NullProduct::Noticed => "It notices when src does nothing.",
        NullProduct::Unnoticed => {
            "No sealed case notices when src does nothing, so no score can pass: add cases that depend on src."
        }
        NullProduct::Untold => {
            "Whether it is alive cannot be told: src has no function, or base passes no sealed case."
        }
    };
    html! {
        dl.facts {
            div { dt { "Oracle" } dd { (alive(look.null)) " " (meaning) } }
            div { dt { "Of the tip" } dd { code { (look.commit) } } }
            div { dt { "Planted changes" } dd { (planted(look.mutants.as_ref())) } }
        }
        @if let Some(mutants) = &look.mutants { (places(mutants, role)) }
        (list("red", "Sealed cases that are red on base", &look.red))
        @if !look.need_shared.is_empty() {
            section aria-labelledby="shared" {
                h2 id="shared" { "Files that need " code { "shared" } }
                p { "They are red until the policy lists them: " code { "tribunal modes --write" } "." }
                @for (file, cases) in &look.need_shared {
                    p { strong { (text::said(file.as_str())) } ": " (cases.len()) " cases" }
                }
            }
        }
    }
}

fn planted(mutants: Option<&Mutants>) -> Markup {
    match mutants {
        None => html! { "none were planted yet" },
        Some(mutants) if mutants.run == 0 => html! { "there were none to plant" },
        Some(mutants) => html! { (mutants.sentence()) },
    }
}

/// Where nobody looks is the operator's to know.
fn places(mutants: &Mutants, role: Role) -> Markup {
    if mutants.unnoticed.is_empty() {
        return html! {};
    }
    match role {
        Role::Agent | Role::Ci | Role::Maintainer => {
            html! { p.faint { "Where they are, the operator is told." } }
        }
        Role::Operator => {
            let table = html! {
                table {
                    caption.sr { "Changes that no sealed case noticed" }
                    thead { tr {
                        th scope="col" { "Place" }
                        th scope="col" { "Function" }
                        th scope="col" { "Change" }
                    } }
                    tbody {
                        @for change in mutants.unnoticed.iter().take(NAMES) {
                            tr {
                                th scope="row" { (text::said(&format!("{}:{}", change.path, change.line))) }
                                td { (text::said(&change.function)) }
                                td { (text::said(&change.what)) }
                            }
                        }
                    }
                }
            };
            html! {
                section aria-labelledby="unnoticed" {
                    h2 id="unnoticed" { "Changes that no sealed case noticed" }
                    (frame::scrolled("Changes that no sealed case noticed", &table))
                }
            }
        }
    }
}

fn list(id: &str, title: &str, nodes: &[NodeId]) -> Markup {
    html! {
        @if !nodes.is_empty() {
            section aria-labelledby=(id) {
                h2 id=(id) { (title) }
                ul { @for node in nodes.iter().take(NAMES) { li { (text::said(node.as_str())) } } }
                @if nodes.len() > NAMES { p { "And " (nodes.len() - NAMES) " more." } }
            }
        }
    }
}
