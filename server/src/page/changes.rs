//! What the patch changes: pins of cassettes and the ledger, and paths by class.

use super::{frame, text};
use maud::{Markup, html};
use tribunal_core::cassette::PinChange;
use tribunal_core::classify::PathClass;
use tribunal_core::report::{ChangeKind, Report};

/// Rows of a table; more are counted.
const ROWS: usize = 500;

pub(super) fn ledger(report: &Report) -> Markup {
    if report.ledger.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            caption.sr { "Cassettes and their ledger" }
            thead { tr {
                th scope="col" { "Cassette" }
                th scope="col" { "Pin" }
                th scope="col" { "What became of it" }
                th scope="col" { "Why" }
                th scope="col" { "Accepted by" }
            } }
            tbody {
                @for change in report.ledger.iter().take(ROWS) {
                    tr {
                        th scope="row" { (text::said(&change.path)) }
                        td { @if let Some(pin) = &change.pin { (text::said(pin)) } }
                        td { span class=(pinned(change.change)) { (change.change.word()) } }
                        td { @if let Some(why) = &change.why { (text::said(why)) } @else { "no note" } }
                        td { @if let Some(who) = &change.accepted_by { (text::said(who)) } @else { strong { "nobody" } } }
                    }
                }
            }
        }
    };
    html! {
        section aria-labelledby="ledger" {
            h2 id="ledger" { "Ledger difference" }
            (frame::scrolled("Ledger difference", &table))
        }
    }
}

const fn pinned(change: PinChange) -> &'static str {
    match change {
        PinChange::Lost => "tone fail",
        PinChange::Added | PinChange::Moved => "tone",
        PinChange::Respelled | PinChange::Entry => "faint",
    }
}

pub(super) fn paths(report: &Report) -> Markup {
    let all = report.changes.len();
    if all == 0 {
        return html! {};
    }
    let table = html! {
        table {
            caption.sr { "Changed paths" }
            thead { tr {
                th scope="col" { "Path" }
                th scope="col" { "Class" }
                th scope="col" { "Change" }
            } }
            tbody {
                @for change in report.changes.iter().take(ROWS) {
                    tr {
                        th scope="row" { (text::said(&change.path)) }
                        td { (class(change.class)) }
                        td { (match change.change {
                            ChangeKind::Added => "added",
                            ChangeKind::Deleted => "deleted",
                            ChangeKind::Modified => "modified",
                        }) }
                    }
                }
            }
        }
    };
    html! {
        section aria-labelledby="changes" {
            h2 id="changes" { "Changed paths" }
            details open[all <= 12] {
                summary { (all) " paths differ" }
                (frame::scrolled("Changed paths", &table))
                @if all > ROWS { p { "And " (all - ROWS) " more." } }
            }
        }
    }
}

const fn class(class: PathClass) -> &'static str {
    match class {
        PathClass::Src => "src: scored",
        PathClass::Oracle => "oracle",
        PathClass::Cassette => "cassette",
        PathClass::Proposed => "proposed: not scored",
        PathClass::Touched => "touched test",
        PathClass::Other => "other: not applied",
    }
}
