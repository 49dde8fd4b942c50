//! What blocks, as values: a code with its advice, a case, one failing assertion, the pattern of its attempts, what is
//! owed and the command that brings it. Cases of one file that say the same are one finding.
//!
//! Every text is escaped and capped here, so whoever shows a finding, on a terminal or to an agent, shows it as it is.

use super::lanes::{Home, next, pattern};
use super::{case_of, frames, touched_case_of};
use tribunal_core::judge::Word;
use tribunal_core::outcome::Class;
use tribunal_core::reason::{Column, Reason};
use tribunal_core::report::{CasePart, ReasonPart, Report};
use tribunal_core::text::shown;

/// Longest single line.
pub(super) const LINE: usize = 300;

/// One reason of a verdict that is FAIL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The verdict's name.
    pub verdict: &'static str,
    /// Why.
    pub code: Reason,
    /// What to do about such a reason, one sentence.
    pub advice: String,
    /// The case or path.
    pub subject: Option<String>,
    /// What was seen of it.
    pub detail: String,
    /// Where in the sealed file, where in the product if it ended there, and what was said.
    pub evidence: Vec<String>,
    /// `P P F P (P passed, F failed)`.
    pub attempts: Option<String>,
    /// The artifact that is owed, where one is.
    pub owed: Option<String>,
    /// The command that brings it.
    pub next: Option<String>,
    /// Cases of the same file that say the same, without the file's name.
    pub alike: Vec<String>,
    file: Option<String>,
}

/// What blocks, in the order of the report.
#[must_use]
pub fn findings(report: &Report) -> Vec<Finding> {
    let mut findings = Vec::new();
    for verdict in &report.verdicts {
        match verdict.word {
            Word::Pass | Word::NotRun => {}
            Word::Fail => {
                let first = findings.len();
                for reason in &verdict.reasons {
                    let finding = Finding::of(report, verdict.name.file_stem(), reason);
                    match findings[first..].iter_mut().find(|f| finding.is_like(f)) {
                        Some(known) => known.alike.push(finding.short_subject()),
                        None => findings.push(finding),
                    }
                }
            }
        }
    }
    findings
}

impl Finding {
    fn of(report: &Report, verdict: &'static str, reason: &ReasonPart) -> Self {
        let subject = reason.subject.as_deref();
        let sealed = case_of(report, subject);
        let case = sealed.or_else(|| touched_case_of(report, subject));
        let home = match sealed {
            Some(_) => Home::Sealed,
            None => Home::Touched,
        };
        Self {
            verdict,
            code: reason.code,
            advice: shown(&reason.advice, LINE),
            subject: subject.map(|subject| shown(subject, LINE)),
            detail: shown(&reason.detail, LINE),
            evidence: evidence(reason, sealed),
            attempts: case.and_then(attempts),
            owed: case
                .and_then(|case| case.diagnosis.as_ref())
                .map(|diagnosis| shown(&diagnosis.told_owed(), LINE)),
            next: case
                .filter(|case| owes(case))
                .and_then(|case| next(case, home)),
            alike: Vec::new(),
            file: sealed
                .and_then(|case| case.file.as_ref())
                .map(|file| shown(file.as_str(), LINE)),
        }
    }

    /// Whether another case of its file says the same: then naming it is enough.
    fn is_like(&self, other: &Self) -> bool {
        self.subject.is_some()
            && self.file.is_some()
            && !self.evidence.is_empty()
            && self.file == other.file
            && self.code == other.code
            && self.detail == other.detail
            && self.evidence == other.evidence
            && self.attempts == other.attempts
    }

    fn short_subject(&self) -> String {
        let subject = self.subject.as_deref().unwrap_or_default();
        let within = self
            .file
            .as_deref()
            .and_then(|file| subject.strip_prefix(file))
            .and_then(|rest| rest.strip_prefix("::"));
        within.unwrap_or(subject).to_owned()
    }

    /// Subject and detail, whichever there are.
    #[must_use]
    pub fn about(&self) -> String {
        match (&self.subject, self.detail.as_str()) {
            (Some(subject), "") => subject.clone(),
            (Some(subject), detail) => format!("{subject}: {detail}"),
            (None, "") => self.advice.clone(),
            (None, detail) => detail.to_owned(),
        }
    }

    /// What is owed, where the detail does not say it already.
    #[must_use]
    pub fn owed_besides(&self) -> Option<&str> {
        let owed = self.owed.as_deref()?;
        (!self.detail.contains(owed)).then_some(owed)
    }
}

/// Only what an artifact settles names the command for it; all else is said by the advice.
fn owes(case: &CasePart) -> bool {
    match case.class {
        Class::Mixed => true,
        Class::StableRed => case.code == Some(Reason::CassetteMiss),
        Class::StablePass | Class::Silenced => false,
    }
}

/// A leased case is judged by what it did without its mark.
fn attempts(case: &CasePart) -> Option<String> {
    let seen = if case.unsilenced.is_empty() {
        &case.outcomes
    } else {
        &case.unsilenced
    };
    (!seen.is_empty()).then(|| pattern(seen))
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
