//! What `score` and `score_status` answer: the state of a score, its words, what blocks and what to do, in few words.
//!
//! Never tells more of a case than the report does, which the policy's feedback level has limited already.

use super::budget::Answer;
use super::errors::ErrorAnswer;
use super::parts::{CheckAnswer, FindingAnswer, LINE, Words, failed_checks, key, lines};
use crate::failure::Failure;
use crate::report::{findings, warnings};
use crate::scoring::Concluded;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use std::path::Path;
use tribunal_core::join::Decision;
use tribunal_core::text::shown;
use tribunal_proto::v1::{Score, ScoreState};

/// Longest id.
const ID: usize = 64;

/// Where a score is
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It waits
    Queued,
    /// It is at work
    Running,
    /// Judged and signed
    Completed,
    /// It ended without a verdict
    Aborted,
    /// Nothing is known of it
    Unknown,
}

impl State {
    pub(super) fn of(score: &Score) -> Self {
        match score.state() {
            ScoreState::Unspecified => Self::Unknown,
            ScoreState::Queued => Self::Queued,
            ScoreState::Running => Self::Running,
            ScoreState::Completed => Self::Completed,
            ScoreState::Aborted => Self::Aborted,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// What became of a score
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ScoreAnswer {
    /// The score's name: score_status, explain and leases take it. Null only before there is a score
    pub(super) name: Option<String>,
    /// Where it is
    pub(super) state: State,
    /// MERGE_OK or MERGE_BLOCKED, once it is completed
    pub(super) decision: Option<String>,
    /// The three words, once they are known
    pub(super) words: Option<Words>,
    /// The commit
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
    /// The commit that supplies the oracle
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
    /// Its place in the queue
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_position: Option<u32>,
    /// What blocks
    pub(super) findings: Vec<FindingAnswer>,
    /// How many more findings there are, which explain tells
    pub(super) more: usize,
    /// Checks of the join that did not hold, besides the words
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) checks: Vec<CheckAnswer>,
    /// What blocks nothing
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// Whose keys it was verified with: file (the caller's own) or server
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Where the verdict files are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) out: Option<String>,
    /// Why the call came to nothing
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorAnswer>,
    /// What to do now
    pub(super) next: String,
    #[serde(skip)]
    lines: Vec<Vec<String>>,
}

impl ScoreAnswer {
    /// A score of which nothing but a name may be known.
    fn blank(name: Option<String>, state: State, next: impl Into<String>) -> Self {
        Self {
            name,
            state,
            decision: None,
            words: None,
            head: None,
            base: None,
            queue_position: None,
            findings: Vec::new(),
            more: 0,
            checks: Vec::new(),
            warnings: Vec::new(),
            key: None,
            out: None,
            error: None,
            next: next.into(),
            lines: Vec::new(),
        }
    }

    /// The call came to nothing; the score, where there is one, may well go on.
    pub(super) fn failed(name: Option<String>, state: State, failure: &Failure) -> Self {
        let error = ErrorAnswer::from(failure);
        let next = match &name {
            Some(_) if state != State::Aborted => "call score_status with this name".to_owned(),
            Some(_) | None => shown(&error.next, LINE),
        };
        Self {
            error: Some(error),
            ..Self::blank(name, state, next)
        }
    }

    /// It has not ended yet.
    pub(super) fn going_on(score: &Score) -> Self {
        let position = (score.state() == ScoreState::Queued).then_some(score.queue_position);
        Self {
            words: score.words.as_ref().map(Words::told),
            queue_position: position,
            ..Self::blank(
                Some(shown(&score.name, LINE)),
                State::of(score),
                "call score_status with this name and wait_seconds",
            )
        }
        .of_commits(score)
    }

    /// It is completed.
    pub(super) fn completed(score: &Score, concluded: &Concluded) -> Self {
        let join = &concluded.join;
        let report = concluded.report.as_ref();
        let found = report.map(findings).unwrap_or_default();
        let next = match join.decision() {
            Decision::MergeOk => "nothing blocks: hand the commit over",
            Decision::MergeBlocked(_) if found.is_empty() => "do what the checks say",
            Decision::MergeBlocked(_) => {
                "mend what blocks, commit, call score again; explain with this name (and a case) tells more"
            }
        };
        Self {
            decision: Some(join.decision().word().to_owned()),
            words: Some(Words::of(join)),
            findings: found.iter().map(FindingAnswer::from).collect(),
            lines: found.iter().map(lines).collect(),
            checks: failed_checks(join),
            warnings: report.map(warnings).unwrap_or_default(),
            key: Some(key(&concluded.source)),
            ..Self::blank(Some(shown(&score.name, LINE)), State::Completed, next)
        }
        .of_commits(score)
    }

    fn of_commits(mut self, score: &Score) -> Self {
        self.head = Some(shown(&score.head, ID));
        self.base = Some(shown(&score.base, ID));
        self
    }

    /// One more thing that blocks nothing, before all others.
    pub(super) fn warned(mut self, warning: String) -> Self {
        self.warnings.insert(0, shown(&warning, 400));
        self
    }

    /// Where its files are.
    pub(super) fn kept_in(mut self, folder: &Path) -> Self {
        self.out = Some(shown(&folder.to_string_lossy(), LINE));
        self
    }

    fn headline(&self) -> String {
        let mut line = match &self.decision {
            Some(decision) => decision.clone(),
            None => self.state.word().to_owned(),
        };
        if let Some(words) = &self.words {
            line.push_str(&format!(": {words}"));
        }
        if let Some(position) = self.queue_position {
            line.push_str(&format!(", number {position} in the queue"));
        }
        line
    }
}

impl Answer for ScoreAnswer {
    fn text(&self) -> String {
        let mut text = vec![match &self.error {
            Some(error) => error.headline(),
            None => self.headline(),
        }];
        let mut last = None;
        for (finding, lines) in self.findings.iter().zip(&self.lines) {
            // Advice stands once for all of a code.
            let kind = (&finding.verdict, &finding.code);
            let from = usize::from(last == Some(kind));
            text.extend(lines.iter().skip(from).cloned());
            last = Some(kind);
        }
        if self.more > 0 {
            text.push(format!("… {} more: explain tells them", self.more));
        }
        for check in &self.checks {
            text.push(format!(
                "{}: {}: {}",
                check.check, check.subject, check.seen
            ));
            text.push(format!("  next: {}", check.next));
        }
        text.extend(self.warnings.iter().map(|line| format!("warning: {line}")));
        if let Some(name) = &self.name {
            text.push(format!("score: {name}"));
        }
        text.push(format!("next: {}", self.next));
        text.join("\n")
    }

    fn shrink(&mut self) -> bool {
        if self.warnings.pop().is_some() {
            return true;
        }
        if self.findings.len() > 1 {
            let left_out = self.findings.pop().map_or(0, |finding| 1 + finding.alike);
            self.lines.pop();
            self.more += left_out;
            return true;
        }
        if self.checks.len() > 1 {
            self.checks.pop();
            return true;
        }
        if let (Some(finding), Some(lines)) = (self.findings.first_mut(), self.lines.first_mut())
            && finding.shrink()
        {
            *lines = finding.lines();
            return true;
        }
        self.error.as_mut().is_some_and(ErrorAnswer::shrink)
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }
}
