//! Cases that scores found mixed, over time: from the first score that saw one to the last, with a mark for each.

use super::access::Visit;
use super::frame::{self, Frame, Tab};
use super::{Trouble, text};
use crate::clock;
use crate::store::{FlakyCase, FlakyFilter, Sight};
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use tribunal_core::id::{RepoName, ScoreId, UnixTime};
use tribunal_core::judge::upper_bound_ppm;

const PAGE: u32 = 40;
/// Scores of one case that are led to.
const LINKS: usize = 5;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    before: Option<u64>,
}

/// A case with the scores that saw it, and when they ended.
struct Row {
    case: FlakyCase,
    seen: Vec<(ScoreId, UnixTime)>,
}

pub(super) async fn show(
    visit: Visit,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Trouble> {
    let name = visit.repository(&name).await?;
    let filter = FlakyFilter {
        repository: name.clone(),
        // Agents, who see less, are not let in.
        sight: Sight::Whole,
        before: asked.before,
        limit: PAGE + 1,
    };
    let rows = visit
        .store(move |s| {
            let cases = s.flaky_cases(&filter)?.into_iter();
            let rows = cases.map(|case| {
                let mut seen = Vec::new();
                for id in &case.scores {
                    let ended = s.score(id)?.and_then(|record| record.ended);
                    seen.extend(ended.map(|at| (id.clone(), at)));
                }
                Ok(Row { case, seen })
            });
            rows.collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let (rows, rest) = rows.split_at(rows.len().min(PAGE as usize));
    let last = rows.last().filter(|_| !rest.is_empty());
    let body = html! {
        @if rows.is_empty() {
            p { "No score of this repository found a case that differs between attempts." }
        } @else {
            (table(&name, rows, clock::now()))
        }
        @if let Some(last) = last {
            p { a href=(format!("/repositories/{name}/flaky?before={}", last.case.number)) rel="next" { "Seen longer ago" } }
        }
    };
    let frame = Frame::of(&visit, format!("Flaky cases of {name}"), body);
    Ok(frame.at(&name, Tab::Flaky).into_response())
}

fn table(name: &RepoName, rows: &[Row], now: UnixTime) -> Markup {
    let first = rows.iter().map(|row| row.case.first).min().unwrap_or(now);
    // An hour at least: marks of one minute would fill the line.
    let length = (now.0 - first.0).max(3600);
    let from = UnixTime(now.0 - length);
    let table = html! {
        table {
            caption.sr { "Mixed cases over time" }
            thead { tr {
                th scope="col" { "Case" }
                th scope="col" { "Failed" }
                th.line scope="col" { "The last " (text::span(length)) }
                th scope="col" { "Blamed" }
                th scope="col" { "Owed" }
                th scope="col" { "Scores" }
            } }
            tbody { @for row in rows { (one(name, row, from, length, now)) } }
        }
    };
    frame::scrolled("Mixed cases over time", &table)
}

fn one(name: &RepoName, row: &Row, from: UnixTime, length: i64, now: UnixTime) -> Markup {
    let case = &row.case;
    let bound = f64::from(upper_bound_ppm(case.failures, case.attempts)) / 1e6;
    html! {
        tr.mixed {
            th scope="row" { (text::said(case.node.as_str())) br; span.faint { (text::lane(case.lane)) } }
            td.tight { (case.failures) " of " (case.attempts) br; span.faint { "below " (text::percent(bound)) " (95 %)" } }
            td.line {
                (line(row, from, length))
                span.faint { "first " (text::ago(case.first, now)) ", last " (text::ago(case.last, now)) }
            }
            td.name {
                (case.blame.source.map_or("nothing that it read", |source| source.words()))
                @if let Some(moved) = case.blame.moved { br; span.faint { "settled by another " (moved.words()) } }
            }
            td { (case.blame.owed.name()) }
            td {
                @for (id, _) in row.seen.iter().take(LINKS) {
                    a href=(format!("/repositories/{name}/scores/{id}")) { (text::short(id.as_str())) } " "
                }
                @if case.score_count > LINKS as u64 { "and " (case.score_count - LINKS as u64) " more" }
            }
        }
    }
}

fn line(row: &Row, from: UnixTime, length: i64) -> Markup {
    let at = |time: UnixTime| (time.0 - from.0).clamp(0, length) * 980 / length + 10;
    let (first, last) = (at(row.case.first), at(row.case.last));
    html! {
        svg.bar viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.track x="0" y="7" width="1000" height="2" {}
            rect.between x=(first) y="6" width=(last - first) height="4" {}
            @for (_, ended) in &row.seen { rect.mark x=(at(*ended) - 5) y="1" width="10" height="14" {} }
        }
    }
}
