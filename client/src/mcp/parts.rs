//! What answers are made of: words, findings, checks.
//!
//! Every text comes escaped and capped from the report's own room, or is escaped and capped here.

use crate::gate::{self, KeySource};
use crate::progress::word;
use crate::report::{Finding, finding_lines};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use std::fmt;
use tribunal_core::join::Join;
use tribunal_core::text::shown;
use tribunal_core::verify::{CheckResult, Step};
use tribunal_proto::v1::VerdictWords;

/// Longest path or line that is no finding's.
pub(super) const LINE: usize = 200;

/// The three words
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Words {
    /// Does the new code hold against the old tests?
    pub(super) src_score: String,
    /// Did the measuring stick stay where it was?
    pub(super) oracle_integrity: String,
    /// Is every silence paid for?
    pub(super) flake_lease: String,
}

impl Words {
    pub(super) fn of(join: &Join) -> Self {
        let [src_score, oracle_integrity, flake_lease] = join.words().map(|word| word.to_string());
        Self {
            src_score,
            oracle_integrity,
            flake_lease,
        }
    }

    pub(super) fn told(words: &VerdictWords) -> Self {
        Self {
            src_score: word(words.src_score()).to_owned(),
            oracle_integrity: word(words.oracle_integrity()).to_owned(),
            flake_lease: word(words.flake_lease()).to_owned(),
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "src_score={} oracle_integrity={} flake_lease={}",
            self.src_score, self.oracle_integrity, self.flake_lease
        )
    }
}

/// One reason that blocks
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct FindingAnswer {
    /// The verdict that it is a reason of
    pub(super) verdict: String,
    /// The reason code
    pub(super) code: String,
    /// What to do about such a reason
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    /// The case or path
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<String>,
    /// What was seen of it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// The failing assertion with its values: where in the test, where in the product, what was said
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) assertion: Vec<String>,
    /// How it came out in each attempt, as in P P F P
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<String>,
    /// The artifact that is owed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owed: Option<String>,
    /// The command that brings it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
    /// How many cases of the same file say the same
    pub(super) alike: usize,
}

impl From<&Finding> for FindingAnswer {
    fn from(finding: &Finding) -> Self {
        let detail = Some(finding.detail.clone());
        Self {
            verdict: finding.verdict.to_owned(),
            code: finding.code.code().to_owned(),
            advice: Some(finding.advice.clone()),
            case: finding.subject.clone(),
            detail: detail.filter(|detail| !detail.is_empty()),
            assertion: finding.evidence.clone(),
            attempts: finding.attempts.clone(),
            owed: finding.owed.clone(),
            next: finding.next.clone(),
            alike: finding.alike.len(),
        }
    }
}

/// A check of the join that did not hold
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct CheckAnswer {
    /// What was checked
    pub(super) check: String,
    /// Of which file
    pub(super) subject: String,
    /// What was seen
    pub(super) seen: String,
    /// What to do
    pub(super) next: String,
}

/// The failed checks of a join, but for the words, which say it themselves.
pub(super) fn failed_checks(join: &Join) -> Vec<CheckAnswer> {
    let checks = join.checks().iter().filter(|c| c.step != Step::Words);
    checks
        .filter_map(|check| match &check.result {
            CheckResult::Failed(seen) => Some(CheckAnswer {
                check: check.step.to_string(),
                subject: shown(&check.subject, LINE),
                seen: shown(seen, LINE),
                next: gate::next_after(check.step).to_owned(),
            }),
            CheckResult::Held(_) | CheckResult::NotAsked(_) => None,
        })
        .collect()
}

/// Whose keys it was verified with: `file` is the caller's own, `server` proves nothing to a gate.
pub(super) fn key(source: &KeySource) -> String {
    let word = match source {
        KeySource::File(_) => "file",
        KeySource::Server(_) => "server",
    };
    word.to_owned()
}

/// A finding in words, its code and advice first.
pub(super) fn lines(finding: &Finding) -> Vec<String> {
    let mut lines = vec![format!(
        "{} {}: {}",
        finding.verdict, finding.code, finding.advice
    )];
    lines.extend(finding_lines(finding));
    lines
}

impl FindingAnswer {
    /// Of the last finding that is left something always stays: its code and its case.
    pub(super) fn shrink(&mut self) -> bool {
        let longer = |text: &Option<String>, than| {
            text.as_ref()
                .is_some_and(|text: &String| text.chars().count() > than)
        };
        if self.assertion.len() > 1 {
            return self.assertion.pop().is_some();
        }
        if self.advice.take().is_some() {
            return true;
        }
        for text in [
            &mut self.detail,
            &mut self.owed,
            &mut self.next,
            &mut self.case,
        ] {
            if longer(text, 120) {
                *text = text.as_ref().map(|text| cut(text, 100));
                return true;
            }
        }
        match self.assertion.first_mut() {
            Some(line) if line.chars().count() > 120 => {
                *line = cut(line, 100);
                true
            }
            Some(_) | None => false,
        }
    }

    /// What is left of it in words.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![match &self.advice {
            Some(advice) => format!("{} {}: {advice}", self.verdict, self.code),
            None => format!("{} {}", self.verdict, self.code),
        }];
        let about: Vec<&str> = [self.case.as_deref(), self.detail.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        lines.push(format!("- {}", about.join(": ")));
        lines.extend(self.assertion.iter().map(|line| format!("    {line}")));
        for (name, text) in [
            ("attempts", &self.attempts),
            ("owed", &self.owed),
            ("next", &self.next),
        ] {
            lines.extend(text.iter().map(|text| format!("    {name}: {text}")));
        }
        lines
    }
}

/// These texts are escaped already.
fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).chain(['…']).collect()
}
