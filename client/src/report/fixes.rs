//! What to fix, for an agent that reads every character: one line a code, one a case, one for the assertion.

use super::{case_of, place};
use std::collections::BTreeSet;
use tribunal_core::judge::Word;
use tribunal_core::report::{ReasonPart, Report};
use tribunal_core::text::shown;

/// Longest single line.
const LINE: usize = 300;

/// What blocks, at most this many characters; empty where nothing does.
#[must_use]
pub fn fixes(report: &Report, max_chars: usize) -> String {
    let mut text = Bounded::new(max_chars);
    let mut left_out = 0_usize;
    for verdict in &report.verdicts {
        match verdict.word {
            Word::Pass | Word::NotRun => continue,
            Word::Fail => {}
        }
        let mut last_code = None;
        for reason in &verdict.reasons {
            let mut lines = Vec::new();
            if last_code != Some(reason.code) {
                lines.push(format!(
                    "{} {}: {}",
                    verdict.name.file_stem(),
                    reason.code,
                    shown(&reason.advice, LINE)
                ));
            }
            lines.extend(told(report, reason));
            if text.push(&lines) {
                last_code = Some(reason.code);
            } else {
                left_out += 1;
            }
        }
    }
    text.end(left_out)
}

/// One warning a line: its code and what it is about.
#[must_use]
pub fn warnings(report: &Report) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for warning in &report.warnings {
        if !seen.insert(warning.code) {
            continue;
        }
        let alike = report
            .warnings
            .iter()
            .filter(|w| w.code == warning.code)
            .count();
        let more = match alike {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        lines.push(format!("{}: {}{more}", warning.code, about(warning)));
    }
    lines
}

/// Subject and detail, whichever there are.
pub(super) fn about(reason: &ReasonPart) -> String {
    let detail = shown(&reason.detail, LINE);
    match (&reason.subject, detail.as_str()) {
        (Some(subject), "") => shown(subject, LINE),
        (Some(subject), detail) => format!("{}: {detail}", shown(subject, LINE)),
        (None, "") => shown(&reason.advice, LINE),
        (None, detail) => detail.to_owned(),
    }
}

/// The case or path with what was seen, then the assertion and what it said.
fn told(report: &Report, reason: &ReasonPart) -> Vec<String> {
    let mut lines = vec![format!("- {}", about(reason))];
    let case = case_of(report, reason.subject.as_deref());
    let failure = case.and_then(|case| case.failure.as_ref());
    if let (Some(case), Some(failure)) = (case, failure) {
        let file = case.file.as_ref().map(|file| file.as_str());
        let found = place(&failure.traceback, file).or_else(|| place(&failure.traceback, None));
        if let Some(place) = found {
            lines.push(format!("    {}", shown(&place, LINE)));
        }
        let first = failure.message.lines().next().unwrap_or_default();
        let said = match (failure.kind.as_str(), first) {
            ("", _) | (_, "") => shown(&failure.kind, LINE),
            (kind, first) => shown(&format!("{kind}: {first}"), LINE),
        };
        if !said.is_empty() {
            lines.push(format!("    {said}"));
        }
    } else if let Some(seen) = &reason.seen {
        lines.push(format!("    {}", shown(seen, LINE)));
    }
    lines
}

/// Text that never grows over its bound, not even by the note that says so.
struct Bounded {
    text: String,
    used: usize,
    max: usize,
}

/// Room for the note at the end.
const NOTE: usize = 60;

impl Bounded {
    fn new(max: usize) -> Self {
        Self {
            text: String::new(),
            used: 0,
            max,
        }
    }

    /// All of these lines, or none: whether they had room.
    fn push(&mut self, lines: &[String]) -> bool {
        let length: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
        if self.used + length + NOTE > self.max {
            return false;
        }
        for line in lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
        self.used += length;
        true
    }

    fn end(mut self, left_out: usize) -> String {
        if left_out > 0 {
            let note = format!("… {left_out} more: `tribunal explain` shows them\n");
            self.text
                .extend(note.chars().take(self.max.saturating_sub(self.used)));
        }
        self.text.trim_end().to_owned()
    }
}
