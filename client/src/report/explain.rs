//! All there is to know of each reason: every attempt's outcome, what the case said, what is owed, and around it what
//! the score stood on.

use super::case_of;
use super::fixes::{about, warnings};
use super::lanes::{lanes, lanes_of};
use tribunal_core::cassette::{Change, PinChange};
use tribunal_core::judge::OnBase;
use tribunal_core::report::{CasePart, ChangeKind, FailurePart, ReasonPart, Report};
use tribunal_core::text::{shown, shown_block};

/// Longest single text of a case.
const TEXT: usize = 6000;

/// The whole report as text.
#[must_use]
pub fn explain(report: &Report) -> String {
    let mut lines = vec![
        shown(&report.score, 200),
        format!("head {}", report.head.id),
        format!(
            "base {} ({})",
            report.base.id,
            shown(&report.protected_ref, 200)
        ),
        String::new(),
    ];
    for verdict in &report.verdicts {
        lines.push(format!("{} {}", verdict.name.file_stem(), verdict.word));
        for reason in &verdict.reasons {
            lines.extend(reason_lines(report, reason));
        }
    }
    lines.extend(lanes(report));
    let warned = warnings(report);
    if !warned.is_empty() {
        lines.push(String::new());
        lines.push("warnings".to_owned());
        lines.extend(warned.iter().map(|line| format!("  {line}")));
    }
    lines.push(String::new());
    lines.extend(ground(report));
    lines.join("\n")
}

/// All there is to one case, wherever it ran; `None` where the report does not have it.
pub(super) fn explain_case(report: &Report, node: &str) -> Option<String> {
    let of_node = |reason: &&ReasonPart| reason.subject.as_deref() == Some(node);
    let mut lines = Vec::new();
    for verdict in &report.verdicts {
        for reason in verdict.reasons.iter().filter(of_node) {
            lines.push(format!("{} {}", verdict.name.file_stem(), verdict.word));
            lines.extend(reason_lines(report, reason));
        }
    }
    for warning in report.warnings.iter().filter(of_node) {
        lines.push(format!("warning {}: {}", warning.code, about(warning)));
    }
    if let (true, Some(case)) = (lines.is_empty(), case_of(report, Some(node))) {
        lines.push(format!("{}: {}", shown(node, 300), case.class));
        lines.extend(case_lines(case));
    }
    lines.extend(lanes_of(report, node));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn reason_lines(report: &Report, reason: &ReasonPart) -> Vec<String> {
    let mut lines = vec![
        format!("  {}: {}", reason.code, about(reason)),
        format!("    do: {}", shown(&reason.advice, 400)),
    ];
    match case_of(report, reason.subject.as_deref()) {
        Some(case) => lines.extend(case_lines(case)),
        None => {
            if let Some(seen) = &reason.seen {
                lines.push(format!("    said: {}", shown(seen, TEXT)));
            }
        }
    }
    lines
}

fn case_lines(case: &CasePart) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(outcomes) = numbered(&case.outcomes) {
        lines.push(format!("    attempts: {outcomes}"));
    }
    if let Some(outcomes) = numbered(&case.unsilenced) {
        lines.push(format!("    without its mark: {outcomes}"));
    }
    if let Some(on_base) = case.on_base {
        let word = match on_base {
            OnBase::Green => "passes",
            OnBase::Red => "fails too",
            OnBase::Silenced => "is silenced",
        };
        lines.push(format!("    on base it {word}"));
    }
    if let Some(failure) = &case.failure {
        let attempt = format!("attempt {}", failure.attempt);
        lines.extend(failure_lines(failure, &attempt));
    }
    // Both stand in an operator's report alone.
    if !case.held_out.is_empty() {
        let drawn = shown(&case.held_out.join(", "), 400);
        lines.push(format!("    held-out: {drawn}"));
    }
    if let Some(failure) = &case.held_out_failure {
        let draw = format!("held-out draw {}", failure.attempt);
        lines.extend(failure_lines(failure, &draw));
    }
    if let Some(diagnosis) = &case.diagnosis {
        lines.push(format!("    reads: {}", diagnosis.told_reads()));
        if let Some(moved) = diagnosis.moved {
            lines.push(format!("    settled by: another {}", moved.words()));
        }
        lines.push(format!("    owed: {}", diagnosis.told_owed()));
    }
    lines
}

pub(super) fn failure_lines(failure: &FailurePart, attempt: &str) -> Vec<String> {
    let when = match failure.when {
        tribunal_core::outcome::When::Setup => "set-up",
        tribunal_core::outcome::When::Call => "call",
        tribunal_core::outcome::When::Teardown => "tear-down",
    };
    let mut lines = vec![format!("    {attempt}, {when}:")];
    // A traceback ends with what was said; where a report has none, there is a place at most.
    let said = if super::frames(&failure.traceback).is_empty() {
        format!("{}: {}", failure.kind, failure.message)
    } else {
        failure.traceback.clone()
    };
    for (name, text) in [
        ("", said.as_str()),
        ("    printed:", failure.output.as_str()),
    ] {
        if text.trim().is_empty() {
            continue;
        }
        if !name.is_empty() {
            lines.push(name.to_owned());
        }
        let block = shown_block(text.trim_end(), TEXT);
        lines.extend(block.lines().map(|line| format!("      {line}")));
    }
    lines
}

/// `1 passed, 2 failed, 3-7 passed`.
fn numbered(outcomes: &[String]) -> Option<String> {
    let mut runs: Vec<(usize, usize, &str)> = Vec::new();
    for (number, outcome) in (1..).zip(outcomes) {
        match runs.last_mut() {
            Some((_, end, word)) if *word == outcome.as_str() => *end = number,
            Some(_) | None => runs.push((number, number, outcome)),
        }
    }
    let told: Vec<String> = runs
        .iter()
        .map(|(start, end, word)| {
            let numbers = if start == end {
                start.to_string()
            } else {
                format!("{start}-{end}")
            };
            format!("{numbers} {}", shown(word, 30))
        })
        .collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// What the patch does to cassettes, by pin name; empty where it does nothing.
#[must_use]
pub fn ledger(report: &Report) -> Vec<String> {
    report.ledger.iter().map(ledger_line).collect()
}

/// One line of it.
#[must_use]
pub fn ledger_line(change: &Change) -> String {
    let mut line = format!("  cassette {}: ", shown(&change.path, 300));
    match (change.change, &change.pin) {
        (PinChange::Added | PinChange::Moved | PinChange::Lost, Some(pin)) => {
            line.push_str(&format!("{} {}", shown(pin, 200), change.change.word()));
        }
        (PinChange::Added | PinChange::Moved | PinChange::Lost, None) => {
            line.push_str(change.change.word());
        }
        (PinChange::Respelled, _) => line.push_str("spelled otherwise"),
        (PinChange::Entry, _) => line.push_str("only its ledger entry changed"),
    }
    if let Some(why) = &change.why {
        line.push_str(&format!(": {}", shown(why, 300)));
    }
    match &change.accepted_by {
        Some(who) => line.push_str(&format!(" (accepted by {})", shown(who, 100))),
        None => line.push_str(" (not accepted)"),
    }
    line
}

/// What the verdicts stand on.
fn ground(report: &Report) -> Vec<String> {
    let evidence = &report.evidence;
    let mut lines = vec![format!(
        "{} cases, {} attempts ({} stored); a flake below {:.1} % could still hide (95 %)",
        report.cases.len(),
        evidence.attempts,
        evidence.stored,
        evidence.upper_bound * 100.0
    )];
    let held_out = &report.held_out;
    if held_out.planned > 0 {
        lines.push(format!(
            "{} of {} held-out draws seen",
            held_out.seen, held_out.planned
        ));
    }
    for failures in held_out.failures.iter().filter(|f| !f.case.is_empty()) {
        lines.push(format!(
            "  held-out pins: {} failed by {} overlays of this base",
            shown(&failures.case, 300),
            failures.overlays
        ));
    }
    let isolation = &report.isolation;
    if isolation.shared + isolation.split > 0 {
        lines.push(format!(
            "isolation: {} sealed files shared, {} split",
            isolation.shared, isolation.split
        ));
    }
    for change in &report.changes {
        let what = match change.change {
            ChangeKind::Added => "added",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Modified => "modified",
        };
        let class = format!("{:?}", change.class).to_lowercase();
        lines.push(format!("  {class} {what} {}", shown(&change.path, 300)));
    }
    for lease in &report.leases {
        let refused: Vec<&str> = lease.refused.iter().map(|reason| reason.code()).collect();
        let standing = if refused.is_empty() {
            "holds".to_owned()
        } else {
            refused.join(", ")
        };
        lines.push(format!(
            "  lease {} until {} ({}): {standing}",
            shown(&lease.qualname, 300),
            shown(&lease.expires_at, 40),
            shown(&lease.owner, 100)
        ));
    }
    lines.extend(ledger(report));
    lines.push(format!("good until {}", shown(&report.valid_until, 40)));
    if !report.cut.is_empty() {
        lines.push(format!(
            "cut for length: {}",
            shown(&report.cut.join(", "), 400)
        ));
    }
    lines
}
