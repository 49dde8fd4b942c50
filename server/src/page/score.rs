//! One score: how far it is, or how it ended and why.

use super::access::Visit;
use super::frame::{Frame, Live, Tab};
use super::repository::progress;
use super::{Trouble, attempts, changes, evidence, leases, text, verdicts};
use crate::clock;
use crate::store::{ScoreRecord, ScoreState, Words};
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::Aborted;
use tribunal_core::report::{Feedback, Report};

pub(super) async fn show(
    visit: Visit,
    Path((repository, id)): Path<(String, String)>,
) -> Result<Response, Trouble> {
    let record = visit.score(&repository, &id).await?;
    let asked = record.asked.clone();
    let subject = visit.subject(&asked.repository, &asked.head).await;
    let state = match &record.state {
        ScoreState::Queued | ScoreState::Running => running(&visit, &record).await?,
        ScoreState::Aborted(aborted) => without(aborted),
        ScoreState::Completed(words) => match visit.report(&record).await? {
            Some(report) => completed(words, &report),
            None => {
                html! { (verdicts::bare(words)) p { "Its report is not one that this version reads." } }
            }
        },
    };
    let body = html! {
        div id="live-score" data-live {
            (facts(&record, subject.as_deref()))
            (state)
        }
    };
    let title = format!("Score {}", asked.id.as_str().get(..12).unwrap_or_default());
    let frame = Frame::of(&visit, title, body).at(&asked.repository, Tab::Score);
    Ok(match record.ended {
        Some(_) => frame.into_response(),
        None => {
            let events = format!(
                "/repositories/{}/scores/{}/events",
                asked.repository, asked.id
            );
            frame.live(Live { events, reload: 5 }).into_response()
        }
    })
}

async fn running(visit: &Visit, record: &ScoreRecord) -> Result<Markup, Trouble> {
    let progress = progress(visit, record).await?;
    Ok(html! {
        section.under-way aria-labelledby="progress" {
            h2 id="progress" { "Progress" }
            p data-line { (progress.line) }
            @if progress.most == 0 {
                progress data-progress aria-label="Attempts" {}
            } @else {
                progress data-progress aria-label="Attempts" value=(progress.done) max=(progress.most) {}
            }
            noscript { p { "This page loads itself anew every five seconds." } }
        }
    })
}

fn without(aborted: &Aborted) -> Markup {
    html! {
        section aria-labelledby="aborted" {
            h2 id="aborted" { "No verdict" }
            p { code { (aborted.code.code()) } ": " (text::said(&aborted.message)) }
            p { "That is not the candidate's doing: nothing was signed, and asking again is worth it." }
        }
    }
}

fn completed(words: &Words, report: &Report) -> Markup {
    html! {
        (verdicts::all(words, report))
        (attempts::grids(report))
        (verdicts::warnings(report))
        (changes::ledger(report))
        (leases::of_report(report))
        (changes::paths(report))
        (evidence::all(report))
        @if report.feedback == Feedback::Operator {
            p.faint { "This is the operator's report: held-out draws stand in it." }
        }
    }
}

fn facts(record: &ScoreRecord, subject: Option<&str>) -> Markup {
    let asked = &record.asked;
    let now = clock::now();
    html! {
        dl.facts {
            div { dt { "State" } dd { (text::state(record.state.name())) } }
            div { dt { "Head" } dd {
                code { (asked.head) }
                @if let Some(subject) = subject { br; bdi.said.subject { (subject) } }
            } }
            div { dt { "Base" } dd {
                code { (asked.base) }
                @if asked.base != asked.base_tip { br; strong { "stale: " } "the protected tip was " code { (asked.base_tip) } }
            } }
            div { dt { "Change set" } dd { (match asked.change_set { ChangeSet::Agent => "agent", ChangeSet::Human => "human" }) } }
            div { dt { "Asked by" } dd { (super::access::role(asked.role)) " " code { (asked.token) } } }
            div { dt { "Asked" } dd { (text::time(asked.created)) } }
            @if let Some(started) = record.started {
                div { dt { "Ran" } dd { (text::lasted(started, record.ended.unwrap_or(now))) @if record.ended.is_none() { " so far" } } }
            }
            div { dt { "Score" } dd { code { "repositories/" (asked.repository) "/scores/" (asked.id) } } }
        }
    }
}
