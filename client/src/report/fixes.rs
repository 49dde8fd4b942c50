//! What to fix, for an agent that reads every character: one line a code, one a case, one for the assertion.

use super::findings::{Finding, LINE, findings};
use std::collections::BTreeSet;
use tribunal_core::report::{ReasonPart, Report};
use tribunal_core::text::shown;

/// What blocks, at most this many characters; empty where nothing does.
#[must_use]
pub fn fixes(report: &Report, max_chars: usize) -> String {
    let mut text = Bounded::new(max_chars);
    let mut left_out = 0;
    let mut last = None;
    for finding in findings(report) {
        let mut lines = Vec::new();
        if last != Some((finding.verdict, finding.code)) {
            lines.push(format!(
                "{} {}: {}",
                finding.verdict, finding.code, finding.advice
            ));
        }
        lines.extend(finding_lines(&finding));
        // Of the first there is always something: a bound that is too small for it cuts it short.
        if text.push(&lines) || (text.is_empty() && text.push_some(&lines)) {
            last = Some((finding.verdict, finding.code));
        } else {
            left_out += 1 + finding.alike.len();
        }
    }
    text.end(left_out)
}

/// A finding without its code and advice, which stand once for all of that code.
#[must_use]
pub fn finding_lines(finding: &Finding) -> Vec<String> {
    let mut lines = vec![format!("- {}", finding.about())];
    lines.extend(finding.evidence.iter().map(|line| format!("    {line}")));
    for (name, text) in [
        ("attempts", finding.attempts.as_deref()),
        ("owed", finding.owed_besides()),
        ("next", finding.next.as_deref()),
    ] {
        lines.extend(text.map(|text| format!("    {name}: {text}")));
    }
    if !finding.alike.is_empty() {
        lines.push(format!("    the same in {}", some_of(&finding.alike)));
    }
    lines
}

/// As many names as one line has room for.
fn some_of(names: &[String]) -> String {
    let mut line = String::new();
    for (number, name) in names.iter().enumerate() {
        if line.chars().count() + name.chars().count() > LINE {
            line.push_str(&format!("… and {} more", names.len() - number));
            break;
        }
        line.push_str(if number == 0 { "" } else { ", " });
        line.push_str(name);
    }
    line
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

    /// As many of these lines as have room: whether any had.
    fn push_some(&mut self, lines: &[String]) -> bool {
        let pushed = lines
            .iter()
            .take_while(|line| self.push(std::slice::from_ref(line)))
            .count();
        pushed > 0
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
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
