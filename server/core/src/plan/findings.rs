//! What was found about a patch: a code, a place, a sentence.

use crate::git::GitPath;
use crate::reason::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A reason with what in particular was seen; prose is for people, the code for machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The code.
    pub reason: Reason,
    /// The path or case it is about, where there is one. Raw text: escape before showing on a terminal.
    pub subject: Option<String>,
    /// What was seen, one or two sentences, fit to be shown.
    pub detail: String,
}

impl Finding {
    /// A finding about a path.
    #[must_use]
    pub fn at(reason: Reason, path: &GitPath, detail: impl Into<String>) -> Self {
        let subject = path
            .as_utf8()
            .map_or_else(|| path.to_string(), str::to_owned);
        Self {
            reason,
            subject: Some(subject),
            detail: detail.into(),
        }
    }
}

/// How many findings one patch is told.
const NAMED: usize = 50;

/// Every code that occurs is told at least once, whatever crowd another one makes.
pub(super) fn capped(findings: Vec<Finding>) -> Vec<Finding> {
    if findings.len() <= NAMED {
        return findings;
    }
    let mut told: BTreeSet<Reason> = BTreeSet::new();
    let (first, more): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| told.insert(finding.reason));
    first.into_iter().chain(more).take(NAMED).collect()
}
