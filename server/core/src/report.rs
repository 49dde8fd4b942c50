//! `report.json`: everything a person or an agent needs to act, as one serde tree with a schema version.
//!
//! One report is made of a judgement; it is rendered twice, for the operator and for the caller, whose feedback level takes
//! away what a sealed case said. Never longer than [`LIMIT`]: texts and counts are cut, and what was cut is said.

use crate::git::Commit;
use crate::held_out::Failures;
use crate::id::{CommitId, NodeId, RepoName, RepoPath};
use crate::judge::{Diagnosis, NullProduct, OnBase, Origin, PlantedChange, VerdictKind, Word};
use crate::outcome::{Class, End, Lane, Pins, When};
use crate::plan::ChangeSet;
use crate::policy::FeedbackLevel;
use crate::reason::Reason;
use crate::statement::{Inputs, Scorer, SrcTree};
use serde::{Deserialize, Serialize};

mod build;
mod letter;
mod named;
mod render;

pub use build::{AttemptSource, Material};
pub use letter::letter;
pub use named::told_name;
pub use render::{Audience, LIMIT};

/// The schema of the file. It changes when a field changes its meaning; a reader ignores fields it does not know.
pub const SCHEMA: &str = "tribunal.report/v1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// For whom it was rendered: `operator`, `full`, `names` or `verdict`.
    pub feedback: Feedback,
    /// `repositories/R/scores/S`.
    pub score: String,
    /// Who judged.
    pub scorer: Scorer,
    /// The repository.
    pub repository: RepoName,
    /// Its protected branch.
    pub protected_ref: String,
    /// Whose change set.
    pub change_set: ChangeSet,
    /// What was scored.
    pub head: Commit,
    /// Against what.
    pub base: Commit,
    /// The protected tip when the score started.
    pub base_tip_at_scoring: CommitId,
    /// Merge bases of both.
    pub merge_bases: Vec<CommitId>,
    /// The gate's clock when the score started, RFC 3339.
    pub gate_time: String,
    /// Until when the verdicts are worth anything, RFC 3339.
    pub valid_until: String,
    /// The three verdicts, in the order of the join.
    pub verdicts: Vec<VerdictPart>,
    /// What blocks nothing.
    pub warnings: Vec<ReasonPart>,
    /// How much was seen.
    pub evidence: EvidencePart,
    /// What was seen under pins that were not announced.
    #[serde(default)]
    pub held_out: HeldOutPart,
    /// Cases: what is not a stable pass first where not all have room.
    pub cases: Vec<CasePart>,
    /// The merge lane: the tests that the patch touches; left out where it touches none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_lane: Option<MergePart>,
    /// Proposed tests, where advice on them was asked for: no verdict knows of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<MergePart>,
    /// Leases of the lease file.
    pub leases: Vec<LeasePart>,
    /// What the patch does to cassettes and their ledger, by pin name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger: Vec<crate::cassette::Change>,
    /// Every attempt, property lane first. Those under held-out pins are for the operator alone.
    pub attempts: Vec<AttemptPart>,
    /// The pins of the policy.
    pub pins: PinsPart,
    /// Changed paths by class.
    pub changes: Vec<ChangePart>,
    /// The scored src.
    pub src_trees: Vec<SrcTree>,
    /// What it was scored with.
    pub inputs: Inputs,
    /// How many sealed files ran how.
    pub isolation: IsolationPart,
    /// What the oracle said of products that are wrong on purpose; left out where nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oracle: Option<OraclePart>,
    /// Where the time went.
    pub timings: Timings,
    /// What was left out to stay within the limit; empty where nothing was.
    pub cut: Vec<String>,
}

/// For whom a report was rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Feedback {
    /// Everything.
    Operator,
    /// Everything that may leave the server.
    Full,
    /// No text of a sealed case.
    Names,
    /// The words, and codes.
    Verdict,
}

impl From<FeedbackLevel> for Feedback {
    fn from(level: FeedbackLevel) -> Self {
        match level {
            FeedbackLevel::Verdict => Self::Verdict,
            FeedbackLevel::Names => Self::Names,
            FeedbackLevel::Full => Self::Full,
        }
    }
}

/// One verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictPart {
    /// Which.
    pub name: VerdictKind,
    /// Its word.
    pub word: Word,
    /// Why it is FAIL.
    pub reasons: Vec<ReasonPart>,
}

/// One reason, or one warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonPart {
    /// The code.
    pub code: Reason,
    /// What to do about it, one sentence.
    pub advice: String,
    /// The path or case. Raw: escape before showing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// What the failing case said, one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// How much the passes say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EvidencePart {
    /// Attempts of the property lane.
    pub attempts: usize,
    /// How many of them were taken from the store.
    pub stored: usize,
    /// The 95 % upper bound on a failure rate that none of them showed.
    pub upper_bound: f64,
}

/// What was seen under pins that were not announced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldOutPart {
    /// Draws that the score was to make.
    pub planned: u32,
    /// Attempts under them.
    pub seen: u32,
    /// Failures of cases of this base, counted over overlays; without names at the level that shows none.
    pub failures: Vec<Failures>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CasePart {
    /// The runner's id.
    pub node: NodeId,
    /// Its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<RepoPath>,
    /// Its class.
    pub class: Class,
    /// Why it is held against the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Reason>,
    /// Where it comes from.
    pub origin: Origin,
    /// Its outcome per attempt of the property lane; left out where it passed in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<String>,
    /// Its outcome per attempt of the lease side run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsilenced: Vec<String>,
    /// What it does on base, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_base: Option<OnBase>,
    /// What a mixed case read, what of that is pinned, and what it owes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailurePart>,
    /// Wall milliseconds of its first run.
    pub duration_ms: f64,
    /// Its outcome per held-out draw; for the operator alone, where it did not pass in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<String>,
    /// What it said there; for the operator alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out_failure: Option<FailurePart>,
}

/// The merge lane, or proposed tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergePart {
    /// Its files, with how often they ran.
    pub files: Vec<MergeFilePart>,
    /// Its cases, as those of the sealed files; none has a say in `src_score`.
    pub cases: Vec<CasePart>,
}

/// One touched file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeFilePart {
    /// Its path.
    pub file: RepoPath,
    /// Attempts that the judge saw of this content.
    pub attempts: usize,
    /// The 95 % upper bound on a failure rate that none of them showed.
    pub upper_bound: f64,
}

/// What a case said where it did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailurePart {
    /// In which attempt, counted from 1.
    pub attempt: usize,
    /// In which phase.
    pub when: When,
    /// The exception's type.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The end of its traceback.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub traceback: String,
    /// The end of what it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// One lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasePart {
    /// As the file names it.
    pub qualname: String,
    /// Who answers for it.
    pub owner: String,
    /// Why it is there.
    pub reason: String,
    /// When it ends, RFC 3339.
    pub expires_at: String,
    /// The cases that are silent under it.
    pub cases: Vec<NodeId>,
    /// Why it does not hold.
    pub refused: Vec<Reason>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptPart {
    /// Its lane.
    pub lane: Lane,
    /// Counted from 1 within the lane.
    pub number: usize,
    /// It was taken from the store.
    pub stored: bool,
    /// Which interpreter start it was forked from.
    pub start: u32,
    /// Under which pins.
    pub pins: Pins,
    /// How it ended.
    pub end: End,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The case it ended in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<NodeId>,
    /// Cases it reported.
    pub cases: usize,
    /// Wall milliseconds.
    pub wall_ms: u64,
    /// CPU milliseconds.
    pub cpu_ms: u64,
    /// Milliseconds that one of its threads waited for a CPU, at the most.
    pub run_delay_ms: u64,
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// Bytes it printed.
    pub output_bytes: u64,
    /// The end of what it printed outside of any case. Candidate text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The pins of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinsPart {
    /// The one seed.
    pub seed: u32,
    /// The frozen wall clock.
    pub clock: String,
    /// The time zone.
    pub timezone: String,
    /// PYTHONHASHSEED.
    pub hash_seed: u32,
    /// SOURCE_DATE_EPOCH.
    pub source_date_epoch: i64,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePart {
    /// The path, escaped where it is not plain text.
    pub path: String,
    /// Its class.
    pub class: crate::classify::PathClass,
    /// What happened to it.
    pub change: ChangeKind,
}

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Base does not have it.
    Added,
    /// Head does not have it.
    Deleted,
    /// Both have it.
    Modified,
}

/// What the oracle is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OraclePart {
    /// Whether a sealed case that passes on base fails on a product whose functions all raise.
    pub null_product: NullProduct,
    /// How many changes could be planted; left out until they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedPart>,
}

/// What became of planted changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedPart {
    /// How many were drawn.
    pub drawn: usize,
    /// How many were run in the time there was.
    pub run: usize,
    /// How many of them no sealed case noticed.
    pub unnoticed: usize,
    /// Where those are: for the operator alone. Candidate text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlantedChange>,
}

/// How many sealed files ran how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationPart {
    /// In one process with the product.
    pub shared: usize,
    /// In a process of their own.
    pub split: usize,
}

/// Where the time went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// From admission to a worker.
    pub queued_ms: u64,
    /// Objects, trees, base's collection.
    pub prepare_ms: u64,
    /// The property lane.
    pub property_ms: u64,
    /// Held-out attempts; for the operator alone.
    #[serde(default)]
    pub held_out_ms: u64,
    /// The lease side run.
    pub lease_side_ms: u64,
    /// The merge lane.
    #[serde(default)]
    pub merge_lane_ms: u64,
    /// From admission to the judgement.
    pub total_ms: u64,
}

#[cfg(test)]
mod tests;
