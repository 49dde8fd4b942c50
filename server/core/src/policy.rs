//! `ci/tribunal.toml`: parsed strictly, every mistake reported at once, with a digest of its canonical form.
//!
//! Read from the tree that supplies the oracle, never from the agent's side of a patch. Fails with the list of all
//! mistakes, each with its key.

mod defaults;
mod parse;
mod paths;
mod reader;
mod render;
mod units;

pub(crate) use units::clock;

use crate::id::{NodeId, RepoPath, Seed};
use crate::reason::{Refused, RefusedCode};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One mistake of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The key, as in `pins.seed`; empty for the file as a whole.
    pub key: String,
    /// What is wrong, and what would be right; fit to be shown.
    pub told: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "the file {}", self.told),
            key => write!(f, "{key} {}", self.told),
        }
    }
}

/// Why a policy does not hold: all of its mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{POLICY_PATH}: {}", listed(.mistakes))]
pub struct PolicyError {
    /// Never empty.
    pub mistakes: Vec<Mistake>,
}

fn listed(mistakes: &[Mistake]) -> String {
    let told: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    told.join("; ")
}

impl From<PolicyError> for Refused {
    fn from(error: PolicyError) -> Self {
        Self::new(RefusedCode::PolicyInvalid, error.to_string())
    }
}

/// Where the policy is, in every repository.
pub const POLICY_PATH: &str = "ci/tribunal.toml";

/// The whole policy, defaults filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Which path is what.
    pub paths: Paths,
    /// What is pinned, and to what.
    pub pins: PinPolicy,
    /// How often, how long.
    pub runs: Runs,
    /// What runs it.
    pub runner: Runner,
    /// What it may use.
    pub limits: Limits,
    /// What an agent's token may see of failures.
    pub feedback: Feedback,
}

/// Prefixes end in `/`, everything else is an exact path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paths {
    /// Roots of the product code.
    pub src: Vec<String>,
    /// The oracle.
    pub sealed: Vec<String>,
    /// An agent's extra tests.
    pub proposed: Vec<String>,
    /// The merge lane's universe.
    pub tests: Vec<String>,
    /// Where cassettes are.
    pub cassettes: String,
    /// The manifest of sealed test files.
    pub manifest: RepoPath,
    /// The lease file.
    pub leases: RepoPath,
    /// The cassette ledger.
    pub ledger: RepoPath,
    /// More oracle paths.
    pub protect: Vec<String>,
}

/// Pins of the N attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinPolicy {
    /// The one seed.
    pub seed: Seed,
    /// Environment variables that carry it.
    pub seed_env: Vec<String>,
    /// The frozen wall clock, RFC 3339.
    pub clock: String,
    /// The time zone's name.
    pub timezone: String,
    /// PYTHONHASHSEED.
    pub hash_seed: u32,
    /// SOURCE_DATE_EPOCH.
    pub source_date_epoch: i64,
}

/// Attempts and time-outs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// N, 1 to 100.
    pub reruns: u32,
    /// Held-out attempts, 0 to 20.
    pub held_out: u32,
    /// Cases that may depend on clock or seed.
    pub pin_sensitive: Vec<NodeId>,
    /// Wall milliseconds of one attempt.
    pub attempt_timeout_ms: u64,
    /// Wall milliseconds of one case.
    pub case_timeout_ms: u64,
    /// What happens when base moved on.
    pub when_behind: WhenBehind,
    /// Marks forbidden beside the built-in ones.
    pub forbid_marks: Vec<String>,
    /// Leases with the short digest fail.
    pub require_strong_digest: bool,
    /// Reruns per path, merge lane only.
    pub path: Vec<PathReruns>,
}

/// What happens when base moved on since head branched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenBehind {
    /// Score the three-way merge.
    Merge,
    /// Refuse.
    Refuse,
}

/// Reruns for a path prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathReruns {
    /// The prefix.
    pub prefix: String,
    /// N for it.
    pub reruns: u32,
}

/// What runs the tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runner {
    /// `pytest`.
    pub kind: String,
    /// The image's tag, as registered.
    pub image: String,
    /// The product's import path, relative to the tree.
    pub pythonpath: Vec<String>,
    /// `auto` or `none`.
    pub preload: String,
    /// Sealed files that may share a process with the product.
    pub shared: Vec<RepoPath>,
}

/// What an attempt may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processes.
    pub pids: u32,
    /// CPUs.
    pub cpus: u32,
    /// Bytes of `/tmp`.
    pub tmp: u64,
    /// Scripts in temp dirs may run.
    pub tmp_exec: bool,
    /// Bytes one case may print.
    pub output: u64,
    /// Files under src.
    pub src_files: u64,
    /// Bytes under src.
    pub src_bytes: u64,
}

/// Feedback levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// What an agent's token may see.
    pub agent: FeedbackLevel,
}

/// What may be seen of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackLevel {
    /// The three words.
    Verdict,
    /// And the names of cases with their codes.
    Names,
    /// And messages, tracebacks, output.
    Full,
}

#[cfg(test)]
mod tests;
