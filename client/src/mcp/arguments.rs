//! What the tools take. A field that is not known is a mistake that is told, not ignored.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

/// Least room that an answer needs for what it always says.
pub(super) const LEAST_CHARS: usize = 1500;
/// More than an agent wants at once.
const MOST_CHARS: usize = 50_000;
/// Answers are this long at most where nobody says otherwise.
const CHARS: usize = 4000;
/// Under the minute after which common clients give a call up.
const SECONDS: u64 = 50;
/// The longest wait of one call.
pub(super) const MOST_SECONDS: u64 = 3600;

const fn chars() -> usize {
    CHARS
}

const fn seconds() -> u64 {
    SECONDS
}

const fn first() -> usize {
    1
}

/// `score`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScoreArguments {
    /// The git workspace: an absolute path, or one relative to the folder this server was started in (its default).
    pub(super) workspace: Option<String>,
    /// The commit that supplies the oracle, full id. Default: the protected tip.
    pub(super) base: Option<String>,
    /// The revision to score. Default: HEAD.
    pub(super) head: Option<String>,
    /// Score a temporary commit of the uncommitted work on top of HEAD.
    #[serde(default)]
    pub(super) worktree: bool,
    /// Where the verdict files go, relative to the workspace. Default: ci_out.
    pub(super) out: Option<String>,
    /// How long to wait for the verdict; after that the answer names the score, and score_status goes on with it.
    #[serde(default = "seconds")]
    #[schemars(range(min = 1, max = MOST_SECONDS))]
    pub(super) wait_seconds: u64,
    /// At most this many characters of text, and of structured content.
    #[serde(default = "chars")]
    #[schemars(range(min = LEAST_CHARS, max = MOST_CHARS))]
    pub(super) max_chars: usize,
}

/// `score_status`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArguments {
    /// The score's name, or its id.
    pub(super) score: String,
    /// How long to wait for its end; 0 only looks.
    #[serde(default)]
    #[schemars(range(max = MOST_SECONDS))]
    pub(super) wait_seconds: u64,
    /// At most this many characters of text, and of structured content.
    #[serde(default = "chars")]
    #[schemars(range(min = LEAST_CHARS, max = MOST_CHARS))]
    pub(super) max_chars: usize,
}

/// `explain`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainArguments {
    /// The score's name, or its id.
    pub(super) score: String,
    /// Only this case, as the report names it. Default: the whole report.
    pub(super) case: Option<String>,
    /// Which page.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) page: usize,
    /// At most this many characters a page.
    #[serde(default = "chars")]
    #[schemars(range(min = LEAST_CHARS, max = MOST_CHARS))]
    pub(super) max_chars: usize,
}

/// `verify`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyArguments {
    /// The git workspace whose HEAD is to be merged. Default: the folder this server was started in.
    pub(super) workspace: Option<String>,
    /// The folder with the verdict files, relative to the workspace. Default: ci_out.
    pub(super) dir: Option<String>,
    /// The commit that was to be scored, full id. Default: HEAD of the workspace.
    pub(super) head: Option<String>,
    /// The commit that was to supply the oracle, full id. Default: the tip that the verdicts name.
    pub(super) base: Option<String>,
    /// At most this many characters of text, and of structured content.
    #[serde(default = "chars")]
    #[schemars(range(min = LEAST_CHARS, max = MOST_CHARS))]
    pub(super) max_chars: usize,
}

/// `leases`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeasesArguments {
    /// The git workspace whose lease file is read. Default: the folder this server was started in.
    pub(super) workspace: Option<String>,
    /// Instead of a file: the leases as this score's gate judged them; its name, or its id.
    pub(super) score: Option<String>,
    /// At most this many characters of text, and of structured content.
    #[serde(default = "chars")]
    #[schemars(range(min = LEAST_CHARS, max = MOST_CHARS))]
    pub(super) max_chars: usize,
}

/// What all of them have in common: a budget, within bounds.
pub(super) trait Budgeted {
    /// At most this many characters.
    fn max_chars(&self) -> usize;
    /// At most this many seconds.
    fn seconds(&self) -> u64 {
        0
    }

    /// What is out of bounds, told.
    fn out_of_bounds(&self) -> Option<String> {
        let chars = self.max_chars();
        if !(LEAST_CHARS..=MOST_CHARS).contains(&chars) {
            return Some(format!(
                "max_chars is {chars}; it has to lie between {LEAST_CHARS} and {MOST_CHARS}"
            ));
        }
        let seconds = self.seconds();
        (seconds > MOST_SECONDS)
            .then(|| format!("wait_seconds is {seconds}; {MOST_SECONDS} is the most"))
    }
}

impl Budgeted for ScoreArguments {
    fn max_chars(&self) -> usize {
        self.max_chars
    }
    fn seconds(&self) -> u64 {
        self.wait_seconds
    }
}
impl Budgeted for StatusArguments {
    fn max_chars(&self) -> usize {
        self.max_chars
    }
    fn seconds(&self) -> u64 {
        self.wait_seconds
    }
}
impl Budgeted for ExplainArguments {
    fn max_chars(&self) -> usize {
        self.max_chars
    }
}
impl Budgeted for VerifyArguments {
    fn max_chars(&self) -> usize {
        self.max_chars
    }
}
impl Budgeted for LeasesArguments {
    fn max_chars(&self) -> usize {
        self.max_chars
    }
}
