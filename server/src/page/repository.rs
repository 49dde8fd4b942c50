//! A repository's scores, the newest first.

use super::access::Visit;
use super::frame::{self, Frame, Live, Tab};
use super::progress::Progress;
use super::{Trouble, text};
use crate::clock;
use crate::store::{ScoreRecord, ScoreState, StateName};
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

const PAGE: u32 = 50;

/// Which of them.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    /// Older than this number.
    #[serde(default)]
    before: Option<u64>,
    /// In this state.
    #[serde(default)]
    state: Option<String>,
}

const STATES: [(&str, StateName); 4] = [
    ("queued", StateName::Queued),
    ("running", StateName::Running),
    ("completed", StateName::Completed),
    ("aborted", StateName::Aborted),
];

pub(super) async fn show(
    visit: Visit,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Trouble> {
    let name = visit.repository(&name).await?;
    let state = asked.state.as_deref().unwrap_or_default();
    let state = STATES.into_iter().find(|(known, _)| *known == state);
    let wanted = state.map(|(_, state)| state);
    let mut scores = visit.scores(&name, wanted, asked.before, PAGE + 1).await?;
    let more = scores.len() > PAGE as usize;
    scores.truncate(PAGE as usize);
    let here = format!("/repositories/{name}");
    let filter = state.map_or_else(String::new, |(name, _)| format!("&state={name}"));
    let body = html! {
        nav.filter aria-label="By state" {
            ul {
                li { a href=(here) aria-current=[state.is_none().then_some("true")] { "all" } }
                @for (known, of) in STATES {
                    li { a href=(format!("{here}?state={known}")) aria-current=[(wanted == Some(of)).then_some("true")] { (known) } }
                }
            }
        }
        div id="live-scores" data-live {
            @if scores.is_empty() { p { "There is no such score." } }
            @else { (table("Scores", &visit, &scores, false).await?) }
        }
        @if let Some(last) = scores.last().filter(|_| more) {
            p { a href=(format!("{here}?before={}{filter}", last.number)) rel="next" { "Older scores" } }
        }
    };
    let live = Live {
        events: format!("{here}/events"),
        reload: 30,
    };
    let frame = Frame::of(&visit, format!("Scores of {name}"), body);
    Ok(frame.at(&name, Tab::Scores).live(live).into_response())
}

/// Scores, one row each; those that are open say how far they are.
pub(super) async fn table(
    caption: &str,
    visit: &Visit,
    scores: &[ScoreRecord],
    of_many: bool,
) -> Result<Markup, Trouble> {
    let mut rows = Vec::new();
    for record in scores {
        let progress = match record.state.name() {
            StateName::Queued | StateName::Running => Some(progress(visit, record).await?),
            StateName::Completed | StateName::Aborted => None,
        };
        rows.push(row(record, progress.as_ref(), of_many));
    }
    let table = html! {
        table.scores {
            caption.sr { (caption) }
            thead { tr {
                th scope="col" { "Score" }
                @if of_many { th scope="col" { "Repository" } }
                th scope="col" { "State" }
                th scope="col" { "Verdicts" }
                th scope="col" { "Head" }
                th scope="col" { "Asked" }
                th scope="col" { "Took" }
            } }
            tbody { @for row in &rows { (row) } }
        }
    };
    Ok(frame::scrolled(caption, &table))
}

/// How far an open score is.
pub(super) async fn progress(visit: &Visit, record: &ScoreRecord) -> Result<Progress, Trouble> {
    let id = record.asked.id.clone();
    let events = visit.store(move |s| s.events(&id, 0, u32::MAX)).await?;
    let mut progress = Progress::after(&events);
    if let Some(position) = visit.desk.parts.queue.position(&record.asked.id) {
        progress.wait(position);
    }
    Ok(progress)
}

fn row(record: &ScoreRecord, progress: Option<&Progress>, of_many: bool) -> Markup {
    let asked = &record.asked;
    let link = format!("/repositories/{}/scores/{}", asked.repository, asked.id);
    let now = clock::now();
    html! {
        tr data-open=[progress.map(|_| asked.id.as_str())] {
            th scope="row" { a href=(link) { (text::short(asked.id.as_str())) } }
            @if of_many { td { (asked.repository) } }
            td { (text::state(record.state.name())) }
            td { (outcome(record, progress)) }
            td { (text::short(asked.head.as_str())) }
            td { span title=(asked.created.rfc3339()) { (text::ago(asked.created, now)) } }
            td { @if let Some(started) = record.started { (text::lasted(started, record.ended.unwrap_or(now))) } }
        }
    }
}

fn outcome(record: &ScoreRecord, progress: Option<&Progress>) -> Markup {
    match &record.state {
        ScoreState::Completed(words) => html! {
            (text::merge(words)) " "
            span.words {
                "src " (text::word(words.src_score))
                " oracle " (text::word(words.oracle_integrity))
                " leases " (text::word(words.flake_lease))
            }
        },
        ScoreState::Aborted(aborted) => html! { code { (aborted.code.code()) } },
        ScoreState::Queued | ScoreState::Running => html! {
            span data-line { (progress.map(|p| p.line.as_str()).unwrap_or_default()) }
        },
    }
}
