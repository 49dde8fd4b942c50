//! What a changed test file gained that silences, as the runner's parser found it.

use crate::id::RepoPath;
use serde::{Deserialize, Serialize};

/// One file, compared with every text it had before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarksFound {
    /// The file.
    pub file: RepoPath,
    /// What none of the earlier texts has as often.
    pub gained: Vec<Gained>,
    /// Why it could not be read; then nothing is known of its marks.
    #[serde(default)]
    pub unread: Option<String>,
}

/// One thing that a file gained. Texts are the candidate's, capped by the harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gained {
    /// `pytest.mark.skip`, `pytest.skip`, `unittest.SkipTest`.
    pub what: String,
    /// The function or class it is on or in, dotted; empty for the module.
    pub scope: String,
    /// Its line.
    pub line: u32,
    /// What it is.
    pub kind: GainedKind,
}

/// What was gained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainedKind {
    /// A mark, or a call or exception that skips.
    Silence,
    /// A test that returns early where its surroundings are not as it likes.
    EarlyReturn,
}
