//! What the verdicts stand on: how much was seen, every attempt, pins, inputs, and where the time went.

use super::{frame, text};
use maud::{Markup, html};
use tribunal_core::outcome::End;
use tribunal_core::report::{AttemptPart, Report, Timings};

/// Rows of a table; more are counted.
const ROWS: usize = 500;

pub(super) fn all(report: &Report) -> Markup {
    let seen = &report.evidence;
    let held_out = &report.held_out;
    html! {
        section aria-labelledby="evidence" {
            h2 id="evidence" { "Evidence" }
            dl.facts {
                div { dt { "Attempts" } dd { (seen.attempts) ", " (seen.stored) " of them stored" } }
                div { dt { "Could still hide" } dd { "a flake below " (text::percent(seen.upper_bound)) " (95 %)" } }
                @if held_out.planned > 0 { div { dt { "Held-out draws" } dd { (held_out.seen) " of " (held_out.planned) " seen" } } }
                div { dt { "Sealed files" } dd { (report.isolation.split) " split, " (report.isolation.shared) " shared" } }
                div { dt { "Seed" } dd { (report.pins.seed) ", hash seed " (report.pins.hash_seed) } }
                div { dt { "Pinned clock" } dd { (text::said(&report.pins.clock)) " " (text::said(&report.pins.timezone)) } }
                div { dt { "Good until" } dd { (text::said(&report.valid_until)) } }
                div { dt { "Judged by" } dd { (text::said(&report.scorer.id)) " " (text::said(&report.scorer.version)) } }
            }
            (times(&report.timings))
            (attempts(&report.attempts))
            @if !report.cut.is_empty() { p { "Cut for length: " (text::said(&report.cut.join(", "))) } }
        }
    }
}

/// Stages as parts of one bar, and in words.
fn times(timings: &Timings) -> Markup {
    let stages = [
        ("queued", timings.queued_ms),
        ("prepare", timings.prepare_ms),
        ("property lane", timings.property_ms),
        ("held-out draws", timings.held_out_ms),
        ("lease side", timings.lease_side_ms),
        ("merge lane", timings.merge_lane_ms),
    ];
    let stages: Vec<_> = stages.into_iter().filter(|(_, ms)| *ms > 0).collect();
    let all: u64 = stages.iter().map(|(_, ms)| *ms).sum();
    let total = all.max(timings.total_ms).max(1);
    let mut from = 0;
    let parts: Vec<(u64, u64)> = stages
        .iter()
        .map(|(_, ms)| {
            let part = (from, ms * 1000 / total);
            from += part.1;
            part
        })
        .collect();
    html! {
        h3 { "Where the time went" }
        svg.bar viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.track x="0" y="0" width="1000" height="16" {}
            @for (n, (x, width)) in parts.iter().enumerate() {
                rect class=(format!("part-{n}")) x=(x) y="0" width=(width) height="16" {}
            }
        }
        p.legend {
            @for (n, (name, ms)) in stages.iter().enumerate() {
                span class=(format!("key part-{n}")) aria-hidden="true" {} " " (name) " " (text::millis(*ms)) "; "
            }
            "in all " (text::millis(timings.total_ms))
        }
    }
}

fn attempts(attempts: &[AttemptPart]) -> Markup {
    if attempts.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            caption.sr { "Attempts" }
            thead { tr {
                th scope="col" { "Attempt" }
                th scope="col" { "Start" }
                th scope="col" { "End" }
                th.number scope="col" { "Cases" }
                th.number scope="col" { "Wall" }
                th.number scope="col" { "CPU" }
                th scope="col" { "From" }
            } }
            tbody {
                @for one in attempts.iter().take(ROWS) {
                    tr {
                        th scope="row" { (text::lane(one.lane)) " " (one.number) }
                        td { (one.start) }
                        td {
                            (end(one.end))
                            @if let Some(code) = one.exit_code.filter(|_| one.end != End::Finished) { " " (code) }
                            @if let Some(node) = &one.running { br; "in " (text::said(node.as_str())) }
                        }
                        td.number { (one.cases) }
                        td.number { (text::millis(one.wall_ms)) }
                        td.number { (text::millis(one.cpu_ms)) }
                        td { @if one.stored { "store" } @else { "run" } }
                    }
                }
            }
        }
    };
    let printed: Vec<_> = attempts
        .iter()
        .filter(|one| !one.output.trim().is_empty())
        .take(20)
        .collect();
    html! {
        details {
            summary { (attempts.len()) " attempts, one by one" }
            (frame::scrolled("Attempts", &table))
            @if attempts.len() > ROWS { p { "And " (attempts.len() - ROWS) " more." } }
            @for one in printed {
                p { (text::lane(one.lane)) " " (one.number) " printed outside of any case:" }
                (text::block(&one.output, "Output of an attempt"))
            }
        }
    }
}

const fn end(end: End) -> &'static str {
    match end {
        End::Finished => "finished",
        End::Exited => "exited",
        End::Killed => "killed",
        End::CaseTimeout => "case timed out",
        End::AttemptTimeout => "timed out",
        End::OutOfMemory => "out of memory",
        End::OutputLimit => "printed too much",
        End::Protocol => "broke the record",
    }
}
