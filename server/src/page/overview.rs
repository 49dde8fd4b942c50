//! The first page: repositories within reach with their oracles' health, and what runs in them.

use super::access::Visit;
use super::frame::{self, Frame, Live};
use super::leases::{self, Next};
use super::oracle::Health;
use super::repository::table;
use super::{Trouble, text};
use crate::store::{ScoreRecord, ScoreState, StateName};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tribunal_core::id::RepoName;

/// Repositories that are shown with what is known of them; more are named.
const SHOWN: usize = 50;
/// Open scores of one repository.
const OPEN: u32 = 20;

struct Row {
    name: RepoName,
    branch: Option<(String, String)>,
    health: Health,
    last: Option<ScoreRecord>,
    next: Next,
}

pub(super) async fn show(visit: Visit) -> Result<Response, Trouble> {
    let mut names = visit.repositories().await?;
    let more = names.split_off(names.len().min(SHOWN));
    let (mut rows, mut open) = (Vec::new(), Vec::new());
    for name in names {
        for state in [StateName::Running, StateName::Queued] {
            open.extend(visit.scores(&name, Some(state), None, OPEN).await?);
        }
        rows.push(row(&visit, name).await?);
    }
    let body = html! {
        section aria-labelledby="open" {
            h2 id="open" { "Open scores" }
            div id="live-open" data-live {
                @if open.is_empty() { p { "Nothing runs and nothing waits." } }
                @else { (table("Open scores", &visit, &open, true).await?) }
            }
        }
        section aria-labelledby="repositories" {
            h2 id="repositories" { "Repositories" }
            @if rows.is_empty() {
                p { "None is registered. " code { "tribunal-server repo add" } " registers one." }
            } @else {
                div id="live-repositories" data-live { (repositories(&rows)) }
            }
            @if !more.is_empty() {
                p { "And:" @for name in &more { " " a href=(format!("/repositories/{name}")) { (name) } } }
            }
        }
    };
    let live = Live {
        events: "/events".to_owned(),
        reload: 30,
    };
    Ok(Frame::of(&visit, "Overview", body)
        .live(live)
        .into_response())
}

async fn row(visit: &Visit, name: RepoName) -> Result<Row, Trouble> {
    let of = name.clone();
    let tip = visit.mirrors(move |room| room.last_tip(&of)).await.ok();
    let ended = visit
        .scores(&name, Some(StateName::Completed), None, 1)
        .await?;
    Ok(Row {
        branch: tip.map(|tip| (tip.name, tip.commit.to_string())),
        health: visit.desk.oracles.health(&name).await,
        last: ended.into_iter().next(),
        next: leases::next(visit, &name).await,
        name,
    })
}

fn repositories(rows: &[Row]) -> Markup {
    let table = html! {
        table {
            caption.sr { "Repositories with their oracles, last verdicts and leases" }
            thead { tr {
                th scope="col" { "Repository" }
                th scope="col" { "Protected branch" }
                th scope="col" { "Oracle" }
                th scope="col" { "Last verdict" }
                th scope="col" { "Next lease to expire" }
            } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { a href=(format!("/repositories/{}", row.name)) { (row.name) } }
                        td { @if let Some((branch, tip)) = &row.branch { (text::said(branch.trim_start_matches("refs/heads/"))) " " (text::short(tip)) } }
                        td { (row.health.badge()) }
                        td { @if let Some(last) = &row.last { (verdict(last)) } @else { "none yet" } }
                        td { (row.next.line()) }
                    }
                }
            }
        }
    };
    frame::scrolled("Repositories", &table)
}

fn verdict(record: &ScoreRecord) -> Markup {
    let (asked, ended) = (&record.asked, record.ended);
    let link = format!("/repositories/{}/scores/{}", asked.repository, asked.id);
    html! {
        @if let ScoreState::Completed(words) = &record.state { (text::merge(words)) }
        " " a href=(link) { (text::short(asked.id.as_str())) }
        @if let Some(ended) = ended { " " span.faint { (text::ago(ended, crate::clock::now())) } }
    }
}
