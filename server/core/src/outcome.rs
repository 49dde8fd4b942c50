//! From facts to classes: phases of one attempt become one outcome per case, outcomes of N attempts one class per case.
//!
//! Fact (one attempt), summary (all attempts) and policy are three things: this room knows the first two only.

use crate::id::{NodeId, RepoPath, Seed};
use serde::{Deserialize, Serialize};

mod class;
mod fold;
mod marks;
mod reads;
mod signature;

pub use class::{Class, Leased, class_of};
pub use fold::{Outcome, death, fold};
pub use marks::{Gained, GainedKind, MarksFound};
pub use reads::{CassetteUse, Counts, Reads};
pub use signature::Signature;

/// Which part of a score an attempt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Sealed cases on head's src.
    Property,
    /// Sealed cases on head's src, under pins that were not announced.
    HeldOut,
    /// Sealed cases on products that are wrong on purpose.
    Liveness,
    /// Sealed cases of shared files, with a failure at each end of a test.
    MustFail,
    /// Leased cases, unsilenced.
    LeaseSide,
    /// The test files that the patch touched, as head has them, on head's src.
    Merge,
    /// The extra tests that an agent proposes: advice only.
    Proposed,
    /// Mixed cases again, under one changed pin at a time: advice, in no verdict.
    Perturbed,
    /// The sealed files on base's own src, to learn which cases there are.
    BaseCollection,
}

/// The pins one attempt ran under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pins {
    /// The seed of every tool.
    pub seed: Seed,
    /// PYTHONHASHSEED.
    pub hash_seed: u32,
    /// The frozen wall clock, RFC 3339.
    pub clock: String,
    /// SOURCE_DATE_EPOCH.
    pub source_date_epoch: i64,
}

/// Everything that one attempt reported: append-only evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFacts {
    /// 0, 1, … within the run.
    pub index: u32,
    /// Which lane.
    pub lane: Lane,
    /// Under which pins.
    pub pins: Pins,
    /// Which of the separate interpreter starts it was forked from.
    pub start: u32,
    /// What it collected; empty when it died before.
    pub collected: Vec<CollectedCase>,
    /// Files it could not import.
    pub collection_errors: Vec<CollectionError>,
    /// Module-level skips and empty parameter sets.
    pub silences: Vec<Silence>,
    /// One record per case that was begun.
    pub cases: Vec<CaseRecord>,
    /// What the product tried outside of any case.
    #[serde(default)]
    pub tamper: Vec<Tamper>,
    /// Cases planted by the harness, which must fail.
    #[serde(default)]
    pub canaries: Canaries,
    /// How it ended.
    pub end: AttemptEnd,
}

/// A case as collection found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectedCase {
    /// The runner's id.
    pub node: NodeId,
    /// The file it stands in.
    pub file: RepoPath,
    /// Classes and function, dotted, without the file: `TestX.test_y`.
    pub qualname: String,
    /// Names of the marks it carries.
    pub marks: Vec<String>,
}

/// A file that could not be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionError {
    /// The file.
    pub file: RepoPath,
    /// Why.
    pub exception: ExceptionText,
}

/// A silence found at collection: a whole file, or `name[NOTSET]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The file, or `file::name[NOTSET]`.
    pub node: NodeId,
    /// The file.
    pub file: RepoPath,
    /// The reason that was given.
    pub reason: String,
    /// Who raised it.
    pub by: Raiser,
}

/// One case of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// The runner's id.
    pub node: NodeId,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// What it read that no two runs need to agree on.
    #[serde(default)]
    pub reads: Reads,
    /// What became of its cassette; `None` where it has none.
    #[serde(default)]
    pub cassette: Option<CassetteUse>,
}

/// Set-up, the test itself, or tear-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Fixtures going up.
    Setup,
    /// The test's own body.
    Call,
    /// Fixtures coming down.
    Teardown,
}

/// What the runner said of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseOutcome {
    /// It held.
    Passed,
    /// It did not.
    Failed,
    /// It was not done, or its failure was expected.
    Skipped,
}

/// Whose code raised something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Raiser {
    /// A sealed file, a conftest, or a mark on them.
    Sealed,
    /// Code under a src root.
    Product,
    /// The runner itself.
    Runner,
}

/// An exception as text. Candidate-controlled; capped by the harness, escaped where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExceptionText {
    /// The type's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its message.
    pub message: String,
    /// The end of its traceback.
    #[serde(default)]
    pub traceback: String,
}

/// One phase of one case, the fields of `images/python/PROTOCOL.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Which.
    pub when: When,
    /// What the runner said.
    pub outcome: PhaseOutcome,
    /// The reason, where an xfail mark or call was in play.
    #[serde(default)]
    pub xfail: Option<String>,
    /// It passed although an xfail mark was on it.
    #[serde(default)]
    pub xpassed: bool,
    /// The reason of a skip.
    #[serde(default)]
    pub skip_reason: Option<String>,
    /// Who raised the skip, xfail or failure.
    #[serde(default = "raised_by_runner")]
    pub by: Raiser,
    /// The failure.
    #[serde(default)]
    pub exception: Option<ExceptionText>,
    /// The end of what it printed.
    #[serde(default)]
    pub output: String,
    /// Wall milliseconds.
    #[serde(default)]
    pub duration_ms: f64,
    /// False for the phase that was running when the attempt ended.
    #[serde(default = "yes")]
    pub reported: bool,
    /// What the product tried in it.
    #[serde(default)]
    pub tamper: Vec<Tamper>,
}

fn raised_by_runner() -> Raiser {
    Raiser::Runner
}
fn yes() -> bool {
    true
}

/// Something that the product did and that no honest code needs. Base's own run tells whether it always does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tamper {
    /// The kind.
    pub kind: TamperKind,
    /// What in particular. Candidate-controlled; capped by the harness, escaped where it is shown.
    pub what: String,
}

/// The kinds of tampering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TamperKind {
    /// The product asked an oracle object for something that it may not have.
    Refused,
    /// A product object claims to equal what it was never compared with before.
    UniversalEquality,
    /// Something other than a truth value from `==`, or forged by-value data.
    Lied,
    /// A malformed frame on a link between product and oracle.
    Protocol,
    /// A product module from outside the overlay and the dependencies.
    ForeignModule,
    /// A container that a test passed is another one after the call, and with it what the test computes from it.
    Changed,
    /// Shared only: a callable or class that is not the product's was replaced.
    Witness,
    /// Shared only: an audit event that no product needs.
    Audit,
}

/// How the planted cases of an attempt fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Canaries {
    /// How many ran.
    pub run: u32,
    /// How many passed: none should.
    pub passed: u32,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// The kind of end.
    pub end: End,
    /// Exit code, where it exited.
    pub exit_code: Option<i32>,
    /// Signal, where it was killed.
    pub signal: Option<i32>,
    /// The case that was running.
    pub running: Option<NodeId>,
    /// The phase that was running.
    pub phase: Option<When>,
    /// Wall time of the attempt.
    pub wall_ms: u64,
    /// CPU time of its processes.
    pub cpu_ms: u64,
    /// The most that any one of its threads waited for a CPU. Not the sum: threads that crowd each other out could make
    /// that as large as they like.
    pub run_delay_ms: u64,
    /// Out-of-memory kills in its cgroup, its children's included.
    pub oom_kills: u64,
    /// Bytes it printed.
    pub output_bytes: u64,
    /// Said where the server had to conclude this end: the room was gone, and this attempt died with it or never ran.
    #[serde(default)]
    pub note: Option<String>,
    /// The end of what it printed outside of any case: what the interpreter said before it left.
    #[serde(default)]
    pub output: String,
}

/// The kinds of end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The whole session ran and the process left as the harness expects.
    Finished,
    /// The process left before that, whatever its code.
    Exited,
    /// A signal that the harness did not send.
    Killed,
    /// One case ran out of its time.
    CaseTimeout,
    /// The attempt ran out of its time.
    AttemptTimeout,
    /// Killed for memory (or the whole container was).
    OutOfMemory,
    /// It printed far too much.
    OutputLimit,
    /// What came over the record pipe was not a record.
    Protocol,
}

/// The digests of one function of a sealed file, taken by compiling it, never by importing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionDigest {
    /// Its file.
    pub file: RepoPath,
    /// Dotted name within the file.
    pub qualname: String,
    /// `v2:cp313:<64 hex>`.
    pub v2: String,
    /// 16 hex digits over `co_code` alone.
    pub short: String,
}
