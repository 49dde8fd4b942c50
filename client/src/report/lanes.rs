//! Tests of the patch's own, touched or proposed, as `explain` tells them: how each came out in which attempt, what it
//! reads, what is owed, and the command that comes next.

use super::explain::failure_lines;
use tribunal_core::judge::{Diagnosis, Owed, Source};
use tribunal_core::outcome::Class;
use tribunal_core::reason::Reason;
use tribunal_core::report::{CasePart, MergePart, Report, letter};
use tribunal_core::text::shown;

/// Attempts that are told one letter each; more are counted.
const LETTERS: usize = 40;

/// A section for each of the two that the report has.
pub(super) fn lanes(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for (title, part) in parts(report) {
        lines.push(String::new());
        lines.push(title.to_owned());
        lines.extend(section(part));
    }
    lines
}

/// The same of one case alone.
pub(super) fn lanes_of(report: &Report, node: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (title, part) in parts(report) {
        for case in part.cases.iter().filter(|case| case.node.as_str() == node) {
            lines.push(title.to_owned());
            lines.extend(case_lines(case));
        }
    }
    lines
}

fn parts(report: &Report) -> impl Iterator<Item = (&'static str, &MergePart)> {
    [
        ("merge lane", &report.merge_lane),
        ("proposed tests, for advice", &report.proposed),
    ]
    .into_iter()
    .filter_map(|(title, part)| Some((title, part.as_ref()?)))
}

fn section(part: &MergePart) -> Vec<String> {
    let mut lines: Vec<String> = part
        .files
        .iter()
        .map(|file| {
            format!(
                "  {}: {} attempts; a flake below {:.1} % could still hide (95 %)",
                shown(file.file.as_str(), 300),
                file.attempts,
                file.upper_bound * 100.0
            )
        })
        .collect();
    for case in &part.cases {
        lines.extend(case_lines(case));
    }
    lines
}

fn case_lines(case: &CasePart) -> Vec<String> {
    let mut lines = vec![format!(
        "  {}: {}",
        shown(case.node.as_str(), 300),
        case.class
    )];
    if !case.outcomes.is_empty() {
        lines.push(format!("    attempts: {}", pattern(&case.outcomes)));
    }
    if let Some(failure) = &case.failure {
        let attempt = format!("attempt {}", failure.attempt);
        lines.extend(failure_lines(failure, &attempt));
    }
    if let Some(diagnosis) = &case.diagnosis {
        if let Some(source) = diagnosis.source {
            lines.push(format!("    source: {}", source.words()));
        }
        lines.push(format!("    reads: {}", diagnosis.told_reads()));
        if let Some(moved) = diagnosis.moved {
            lines.push(format!("    settled by: another {}", moved.words()));
        }
        lines.push(format!("    owed: {}", diagnosis.told_owed()));
    }
    lines.extend(next(case, Home::Touched).map(|next| format!("    next: {next}")));
    lines
}

/// `P P F P (P passed, F failed)`; of many, `39P 1F 60P`.
pub(super) fn pattern(outcomes: &[String]) -> String {
    let mut legend: Vec<(char, &str)> = Vec::new();
    let letters: Vec<char> = outcomes
        .iter()
        .map(|outcome| {
            let letter = letter(outcome);
            if !legend.iter().any(|(_, word)| *word == outcome) {
                legend.push((letter, outcome));
            }
            letter
        })
        .collect();
    let told: Vec<String> = if letters.len() <= LETTERS {
        letters.iter().map(char::to_string).collect()
    } else {
        let runs = letters.chunk_by(|one, next| one == next);
        runs.filter_map(|run| Some(format!("{}{}", run.len(), run.first()?)))
            .collect()
    };
    let legend: Vec<String> = legend
        .iter()
        .map(|(letter, word)| format!("{letter} {}", shown(word, 30)))
        .collect();
    format!("{} ({})", told.join(" "), legend.join(", "))
}

/// Who owns a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// A maintainer: a patch cannot leave it out.
    Sealed,
    /// The patch that touches it.
    Touched,
}

/// The command that brings what is owed, and who runs it.
pub(super) fn next(case: &CasePart, home: Home) -> Option<String> {
    let node = quoted(case.node.as_str());
    match case.class {
        Class::StablePass => None,
        Class::Silenced => case
            .code
            .map(|_| "take off what skips it, then: tribunal score".to_owned()),
        Class::StableRed if case.code == Some(Reason::CassetteMiss) => Some(record(&node, None)),
        Class::StableRed => Some("mend the test or the product, then: tribunal score".to_owned()),
        Class::Mixed => case
            .diagnosis
            .as_ref()
            .map(|diagnosis| of_mixed(&node, diagnosis, home)),
    }
}

fn of_mixed(node: &str, diagnosis: &Diagnosis, home: Home) -> String {
    match (diagnosis.owed, home) {
        (Owed::CassettePin, _) => record(node, diagnosis.source),
        (Owed::Property, Home::Touched) => {
            "a maintainer lands a property (under the sealed paths, then: tribunal manifest --write); \
             the patch goes on without this case"
                .to_owned()
        }
        (Owed::Property, Home::Sealed) => {
            "make the product give one answer (sort what has no order), then: tribunal score; \
             or a maintainer lands a property in this case's place"
                .to_owned()
        }
        (Owed::Neither, Home::Touched) => {
            "take the case out of the patch, or let it do without, then: tribunal score".to_owned()
        }
        (Owed::Neither, Home::Sealed) => {
            "let the product do without, then: tribunal score; or a maintainer rewrites the case"
                .to_owned()
        }
    }
}

fn record(node: &str, source: Option<Source>) -> String {
    let host = match source {
        Some(Source::Network) => " --host HOST",
        Some(
            Source::WallClock
            | Source::Monotonic
            | Source::Entropy
            | Source::RandomDevice
            | Source::Listings
            | Source::OwnServer
            | Source::Sleep
            | Source::Threads,
        )
        | None => "",
    };
    format!("a maintainer: tribunal cassette record {node}{host} --why TEXT, then cassette accept")
}

/// One word for a shell, escaped for a terminal.
fn quoted(node: &str) -> String {
    let shown = shown(node, 300);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if shown.chars().all(plain) {
        shown
    } else {
        format!("'{}'", shown.replace('\'', "'\\''"))
    }
}
