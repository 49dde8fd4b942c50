//! `verify`: a folder of verdict files is verified as one set for its subject, offline, with the caller's own key.

use super::Sources;
use super::arguments::VerifyArguments;
use super::budget::Answer;
use super::errors::ErrorAnswer;
use super::parts::{CheckAnswer, Words, failed_checks};
use super::scores::{commit, workspace};
use crate::config::Needs;
use crate::failure::Failure;
use crate::gate::{self, Joined};
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use std::path::Path;
use tribunal_core::join::Expected;
use tribunal_core::plan::ChangeSet;
use tribunal_core::verify::CheckResult;

/// What the join says of a folder
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct VerifyAnswer {
    /// MERGE_OK or MERGE_BLOCKED
    decision: Option<String>,
    /// The three words; UNVERIFIED or MISSING where there is none to trust
    words: Option<Words>,
    /// How many checks held
    held: usize,
    /// Those that did not, besides the words
    checks: Vec<CheckAnswer>,
    /// How many of them had no room here
    more: usize,
    /// Why nothing was verified
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorAnswer>,
}

/// Verify it.
pub(super) fn verify(arguments: &VerifyArguments, sources: &Sources) -> VerifyAnswer {
    match joined(arguments, sources) {
        Ok(joined) => VerifyAnswer {
            decision: Some(joined.join.decision().word().to_owned()),
            words: Some(Words::of(&joined.join)),
            held: held(&joined),
            checks: failed_checks(&joined.join),
            more: 0,
            error: None,
        },
        Err(failure) => VerifyAnswer::failed(&failure),
    }
}

fn joined(arguments: &VerifyArguments, sources: &Sources) -> Result<Joined, Failure> {
    let settings = sources.settings(Needs::Offline)?;
    let workspace = workspace(arguments.workspace.as_deref())?;
    let given = Path::new(arguments.workspace.as_deref().unwrap_or("."));
    let folder = workspace.top().unwrap_or(given);
    let expected = Expected {
        repository: settings.known_repo().cloned(),
        head: match commit(arguments.head.as_deref(), "head")? {
            Some(head) => head,
            None => workspace.commit("HEAD")?,
        },
        base: commit(arguments.base.as_deref(), "base")?,
        change_set: ChangeSet::Agent,
        now: gate::now(),
    };
    let dir = folder.join(arguments.dir.as_deref().unwrap_or("ci_out"));
    Joined::of(&dir, &expected, &settings)
}

fn held(joined: &Joined) -> usize {
    let checks = joined.join.checks().iter();
    checks
        .filter(|check| matches!(check.result, CheckResult::Held(_)))
        .count()
}

impl VerifyAnswer {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self {
            decision: None,
            words: None,
            held: 0,
            checks: Vec::new(),
            more: 0,
            error: Some(failure.into()),
        }
    }
}

impl Answer for VerifyAnswer {
    fn text(&self) -> String {
        if let Some(error) = &self.error {
            return error.text();
        }
        let mut text = self.decision.clone().unwrap_or_default();
        if let Some(words) = &self.words {
            text.push_str(&format!(": {words}"));
        }
        text.push_str(&format!("\n{} checks held", self.held));
        for check in &self.checks {
            text.push_str(&format!(
                "\nFAILED {}: {}: {}\n  next: {}",
                check.check, check.subject, check.seen, check.next
            ));
        }
        if self.more > 0 {
            text.push_str(&format!("\n… {} more", self.more));
        }
        text
    }

    fn shrink(&mut self) -> bool {
        if self.checks.pop().is_some() {
            self.more += 1;
            return true;
        }
        self.error.as_mut().is_some_and(ErrorAnswer::shrink)
    }

    fn failed(&self) -> bool {
        self.error.is_some()
    }
}
