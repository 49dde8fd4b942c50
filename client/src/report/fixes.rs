//! What to fix, for an agent that reads every character: one line a code, one a case, one for the assertion.

use super::{case_of, frames};
use std::collections::BTreeSet;
use tribunal_core::judge::Word;
use tribunal_core::reason::Column;
use tribunal_core::report::{CasePart, ReasonPart, Report};
use tribunal_core::text::shown;

/// Longest single line.
const LINE: usize = 300;

/// What blocks, at most this many characters; empty where nothing does.
#[must_use]
pub fn fixes(report: &Report, max_chars: usize) -> String {
    let mut text = Bounded::new(max_chars);
    let mut left_out = 0;
    for verdict in &report.verdicts {
        match verdict.word {
            Word::Pass | Word::NotRun => continue,
            Word::Fail => {}
        }
        let mut last_code = None;
        for group in grouped(report, &verdict.reasons) {
            let mut lines = Vec::new();
            if last_code != Some(group.first.code) {
                lines.push(format!(
                    "{} {}: {}",
                    verdict.name.file_stem(),
                    group.first.code,
                    shown(&group.first.advice, LINE)
                ));
            }
            lines.extend(group.lines());
            // Of the first there is always something: a bound that is too small for it cuts it short.
            if text.push(&lines) || (text.is_empty() && text.push_some(&lines)) {
                last_code = Some(group.first.code);
            } else {
                left_out += 1 + group.alike.len();
            }
        }
    }
    text.end(left_out)
}

/// Reasons that say the same of several cases of one file.
struct Group<'a> {
    first: &'a ReasonPart,
    file: Option<&'a str>,
    evidence: Vec<String>,
    alike: Vec<&'a str>,
}

impl Group<'_> {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("- {}", about(self.first))];
        lines.extend(self.evidence.iter().map(|line| format!("    {line}")));
        if !self.alike.is_empty() {
            let prefix = self
                .file
                .map(|file| format!("{file}::"))
                .unwrap_or_default();
            let mut names = String::new();
            for (number, node) in self.alike.iter().enumerate() {
                let name = shown(node.strip_prefix(&prefix).unwrap_or(node), LINE);
                if names.chars().count() + name.chars().count() > LINE {
                    names.push_str(&format!("… and {} more", self.alike.len() - number));
                    break;
                }
                names.push_str(if number == 0 { "" } else { ", " });
                names.push_str(&name);
            }
            lines.push(format!("    the same in {names}"));
        }
        lines
    }
}

/// In the order in which each is met first.
fn grouped<'a>(report: &'a Report, reasons: &'a [ReasonPart]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for reason in reasons {
        let case = case_of(report, reason.subject.as_deref());
        let file = case
            .and_then(|case| case.file.as_ref())
            .map(|file| file.as_str());
        let evidence = evidence(reason, case);
        let known = groups.iter_mut().find(|group| {
            let same = |one: &ReasonPart| one.code == reason.code && one.detail == reason.detail;
            same(group.first) && group.file == file && group.evidence == evidence
        });
        match (known, &reason.subject) {
            (Some(group), Some(subject)) if file.is_some() && !group.evidence.is_empty() => {
                group.alike.push(subject);
            }
            (Some(_) | None, _) => groups.push(Group {
                first: reason,
                file,
                evidence,
                alike: Vec::new(),
            }),
        }
    }
    groups
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

/// Where in the sealed file, where in the product if it ended there, and what was said.
fn evidence(reason: &ReasonPart, case: Option<&CasePart>) -> Vec<String> {
    let failure = case.and_then(|case| case.failure.as_ref());
    // A silenced case's own record shows its silence; what it says when it must speak was seen in a run of its own.
    let silence = reason.code.columns() == [Column::FlakeLease];
    let (false, Some(case), Some(failure)) = (silence, case, failure) else {
        return reason.seen.iter().map(|seen| shown(seen, LINE)).collect();
    };
    let frames = frames(&failure.traceback);
    let sealed = case.file.as_ref().map(|file| file.as_str());
    let in_test = frames
        .iter()
        .rev()
        .find(|frame| Some(frame.file.as_str()) == sealed);
    let last = frames.last().filter(|last| Some(*last) != in_test);
    let mut lines: Vec<String> = in_test
        .into_iter()
        .chain(last)
        .map(|frame| {
            shown(
                &format!("{}:{}: {}", frame.file, frame.line, frame.code),
                LINE,
            )
        })
        .collect();
    // The runner marks what was said with an E; it is more than the message, which an assertion may not have.
    let mut said: Vec<String> = failure
        .traceback
        .lines()
        .filter_map(|line| line.strip_prefix("E "))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(3)
        .map(|line| shown(line, LINE))
        .collect();
    if said.is_empty() {
        let first = failure.message.lines().next().unwrap_or_default();
        let text = match (failure.kind.as_str(), first) {
            ("", text) | (text, "") => text.to_owned(),
            (kind, first) => format!("{kind}: {first}"),
        };
        said.extend((!text.is_empty()).then(|| shown(&text, LINE)));
    }
    lines.extend(said);
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
