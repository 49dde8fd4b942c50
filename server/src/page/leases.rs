//! Leases on a time line: what the protected branch's lease file holds now, the next to expire first; and those that a score
//! was judged by.

use super::access::Visit;
use super::frame::{self, Frame, Tab};
use super::{Trouble, text};
use crate::clock;
use crate::repository::facts::lease_file;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tribunal_core::id::{RepoName, UnixTime};
use tribunal_core::lease::{Lease, LeaseFile};
use tribunal_core::report::Report;
use tribunal_core::text::shown;

/// Rows; more are counted.
const ROWS: usize = 500;
const DAY: i64 = 86_400;
/// How far the line reaches at least, and at most.
const LINE: (i64, i64) = (7 * DAY, 120 * DAY);

/// What the lease file of the tip is.
enum File {
    Holds(Vec<Lease>),
    Broken(String),
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>) -> Result<Response, Trouble> {
    let name = visit.repository(&name).await?;
    let body = match file(&visit, &name).await? {
        File::Broken(why) => html! {
            p { strong { "The lease file does not parse, so no silence holds." } }
            p { (text::said(&why)) }
        },
        File::Holds(leases) if leases.is_empty() => html! {
            p { "There are no leases on the protected branch: nothing is silenced." }
        },
        File::Holds(leases) => table(leases, clock::now()),
    };
    let frame = Frame::of(&visit, format!("Leases of {name}"), body);
    Ok(frame.at(&name, Tab::Leases).into_response())
}

async fn file(visit: &Visit, name: &RepoName) -> Result<File, Trouble> {
    let of = name.clone();
    let tip = visit.mirrors(move |room| room.last_tip(&of)).await?.commit;
    let bytes = visit
        .objects(name, move |objects| lease_file(objects, &tip))
        .await?;
    Ok(match LeaseFile::parse(bytes.as_deref()) {
        Ok(file) => File::Holds(file.leases().to_vec()),
        Err(error) => File::Broken(error.to_string()),
    })
}

/// Sorted by their ends; those that have ended last.
fn sorted(leases: &mut [Lease], now: UnixTime) {
    leases.sort_by_key(|lease| (lease.expires_at <= now, lease.expires_at));
}

fn table(mut leases: Vec<Lease>, now: UnixTime) -> Markup {
    sorted(&mut leases, now);
    let furthest = leases.iter().map(|lease| lease.expires_at.0 - now.0).max();
    let line = furthest.unwrap_or(0).clamp(LINE.0, LINE.1);
    let ended = leases
        .iter()
        .filter(|lease| lease.expires_at <= now)
        .count();
    let table = html! {
        table {
            caption.sr { "Leases by their ends" }
            thead { tr {
                th scope="col" { "Case" }
                th scope="col" { "Ends" }
                th.line scope="col" { "The next " (line / DAY) " days" }
                th scope="col" { "Owner" }
                th scope="col" { "Reason" }
            } }
            tbody {
                @for (n, lease) in leases.iter().take(ROWS).enumerate() {
                    tr {
                        th scope="row" { (text::said(&lease.qualname)) }
                        td { (end(lease, now)) @if n == 0 && lease.expires_at > now { " " span.tag { "next" } } }
                        td.line { (bar(lease.expires_at.0 - now.0, line)) }
                        td.name { (text::said(&lease.owner)) }
                        td.name { (text::sentence(&lease.reason)) }
                    }
                }
            }
        }
    };
    html! {
        p { (leases.len()) " leases, " (ended) " of them expired." }
        (frame::scrolled("Leases by their ends", &table))
        @if leases.len() > ROWS { p { "And " (leases.len() - ROWS) " more." } }
    }
}

fn end(lease: &Lease, now: UnixTime) -> Markup {
    let left = lease.expires_at.0 - now.0;
    html! {
        @if left > 0 { "in " (text::span(left)) } @else { strong { "expired" } " " (text::span(-left)) " ago" }
        br; span.faint { (text::time(lease.expires_at)) }
    }
}

/// How much of the line is left; what is told here stands in words beside it.
fn bar(left: i64, line: i64) -> Markup {
    let width = left.clamp(0, line) * 1000 / line;
    let class = match left {
        ..=0 => "left gone",
        1..=604_799 => "left soon",
        _ => "left",
    };
    html! {
        svg.bar viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.track x="0" y="6" width="1000" height="4" {}
            rect class=(class) x="0" y="2" width=(width) height="12" {}
            @if left > line { path.beyond d="M985 0 L1000 8 L985 16 Z" {} }
        }
    }
}

/// The next lease of a repository to expire, for a list.
pub(super) enum Next {
    None,
    At(String, UnixTime),
    Unknown(String),
}

pub(super) async fn next(visit: &Visit, name: &RepoName) -> Next {
    match file(visit, name).await {
        Err(_) => Next::Unknown("not known".to_owned()),
        Ok(File::Broken(_)) => Next::Unknown("the lease file does not parse".to_owned()),
        Ok(File::Holds(mut leases)) => {
            let now = clock::now();
            sorted(&mut leases, now);
            let first = leases.into_iter().next();
            first.map_or(Next::None, |lease| {
                Next::At(lease.qualname, lease.expires_at)
            })
        }
    }
}

impl Next {
    pub(super) fn line(&self) -> Markup {
        let now = clock::now();
        match self {
            Self::None => html! { "no leases" },
            Self::Unknown(why) => html! { strong { (why) } },
            Self::At(case, at) if *at <= now => {
                html! { strong { "expired " (text::ago(*at, now)) } " " (text::said(case)) }
            }
            Self::At(case, at) => {
                html! { "in " (text::span(at.0 - now.0)) " " (text::said(case)) }
            }
        }
    }
}

/// Leases that a score was judged by.
pub(super) fn of_report(report: &Report) -> Markup {
    if report.leases.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            caption.sr { "Leases of the oracle" }
            thead { tr {
                th scope="col" { "Case" }
                th scope="col" { "Holds" }
                th scope="col" { "Ends" }
                th scope="col" { "Owner" }
                th scope="col" { "Silences" }
            } }
            tbody {
                @for lease in report.leases.iter().take(ROWS) {
                    tr {
                        th scope="row" { (text::said(&lease.qualname)) }
                        td {
                            @if lease.refused.is_empty() { span.word.pass { "HOLDS" } }
                            @else { span.word.fail { "REFUSED" } @for reason in &lease.refused { " " code { (reason) } } }
                        }
                        td { (text::said(&lease.expires_at)) }
                        td { (text::said(&lease.owner)) }
                        td { (silenced(lease.cases.iter().map(|case| case.as_str()))) }
                    }
                }
            }
        }
    };
    html! {
        section aria-labelledby="leases" {
            h2 id="leases" { "Leases" }
            (frame::scrolled("Leases of the oracle", &table))
        }
    }
}

fn silenced<'a>(cases: impl ExactSizeIterator<Item = &'a str>) -> Markup {
    let count = cases.len();
    let named: Vec<String> = cases.take(5).map(|case| shown(case, 200)).collect();
    html! {
        @if count == 0 { "no case" }
        @for (n, case) in named.iter().enumerate() { @if n > 0 { br; } (text::said(case)) }
        @if count > 5 { br; "and " (count - 5) " more" }
    }
}
