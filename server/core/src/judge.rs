//! Facts to verdicts: a total function over plan, attempts and the gate's time. No I/O, no clock, no wildcard arm.

use crate::cassette::InEffect;
use crate::id::{NodeId, RepoPath, UnixTime};
use crate::lease::{Functions, LeaseFile, ShortDigest};
use crate::outcome::AttemptFacts;
use crate::plan::{Decided, RunPlan, TouchedFacts};
use crate::policy::Runs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

mod alive;
mod bench;
pub mod diagnosis;
mod docket;
mod expected;
mod held_out;
mod judged;
mod merge_lane;
mod modes;
mod observed;
mod over_pinned;
mod perturbed;
mod prose;
mod records;
mod sighting;
mod silences;
mod src_score;
mod tampers;

pub use diagnosis::{Diagnosis, Owed, Source, SourceRead, Standing, diagnose};
pub use perturbed::{Moved, Perturbed, changed_pins, open_cases, settled};

pub use alive::{Heed, Liveness, Mutants, NullProduct, PlantedChange, green, heed};
pub use held_out::{HeldOutEvidence, HeldOutWants};
pub use judged::{
    About, CaseSummary, Confidence, FailureText, Ground, Judged, LeaseSummary, OnBase, Origin,
    Verdict,
};
pub use merge_lane::{FORBIDDEN, MergeEvidence, MergeRun, MergeSummary, advice};
pub use modes::{NeedShared, need_shared, red, troubled};
pub use sighting::{Sighting, sighting, upper_bound_ppm};
pub use silences::SideRun;
pub use tampers::{AskBase, MustFailEvidence, MustFailWants};

use observed::Observed;

#[cfg(test)]
mod tests;

/// The word of one verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Word {
    /// It holds.
    #[serde(rename = "PASS")]
    Pass,
    /// It does not.
    #[serde(rename = "FAIL")]
    Fail,
    /// It was not asked.
    #[serde(rename = "NOT_RUN")]
    NotRun,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::NotRun => "NOT_RUN",
        })
    }
}

/// Which of the three verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Does the new product code hold against the old oracle?
    SrcScore,
    /// Did the measuring stick stay where it was?
    OracleIntegrity,
    /// Is every silence paid for, and is nothing unstable hidden?
    FlakeLease,
}

impl VerdictKind {
    /// All three, in the order of the join.
    pub const ALL: [Self; 3] = [Self::SrcScore, Self::OracleIntegrity, Self::FlakeLease];

    /// The name of its files, without ending.
    #[must_use]
    pub const fn file_stem(self) -> &'static str {
        match self {
            Self::SrcScore => "src_score",
            Self::OracleIntegrity => "oracle_integrity",
            Self::FlakeLease => "flake_lease",
        }
    }
}

/// Thirty days: no verdict is worth anything for longer.
const LONGEST: i64 = 30 * 24 * 3600;

/// What was seen, all of it. Attempts of the same content that were stored earlier stand in the same lists, oldest
/// first: a stored failure is never outvoted by asking again.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The sealed files as the tree that supplies the oracle collects them on base's own src.
    pub base: &'a AttemptFacts,
    /// Attempts on base's own src; empty where base was not run.
    pub base_run: &'a [AttemptFacts],
    /// Attempts of the property lane.
    pub property: &'a [AttemptFacts],
    /// Attempts on base's own src under the draw of the pinned attempt that has their index, where [`ask_base`] wants one.
    pub base_under: &'a [AttemptFacts],
    /// What was seen under held-out pins; nothing where [`deserves_held_out`] says so.
    pub held_out: HeldOutEvidence<'a>,
    /// The must-fail rerun; nothing where [`must_fail_wants`] asks for none.
    pub must_fail: MustFailEvidence<'a>,
    /// Attempts of the lease side run; empty where [`side_run`] asked for none.
    pub lease_side: &'a [AttemptFacts],
    /// The touched tests.
    pub merge: MergeEvidence<'a>,
    /// Digests of the functions of the files that [`side_run`] named.
    pub functions: Functions<'a>,
    /// Sealed files that do not hold on base but in one process with it, as [`need_shared`] found them.
    pub need_shared: &'a NeedShared,
    /// What the oracle said of products that are wrong on purpose.
    pub liveness: Liveness<'a>,
    /// The one change of pins that settles a mixed case, as [`settled`] found it; advice.
    pub moved: &'a BTreeMap<NodeId, Moved>,
}

/// What is missing for a judgement; always ours, never a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// Fewer attempts than the policy asks for, and none of them died.
    #[error("{seen} attempts of {planned} were made")]
    Attempts {
        /// How many there are.
        seen: usize,
        /// How many there should be.
        planned: usize,
    },
    /// Held-out draws, or base's own run under one of them.
    #[error(
        "{seen} held-out draws of {planned} were made, or base was not run under one that failed"
    )]
    HeldOut {
        /// How many there are.
        seen: usize,
        /// How many there should be.
        planned: u32,
    },
    /// Base, under a draw in which the product did something that base was not seen doing.
    #[error("base was not run under a draw in which head did what base was not seen doing")]
    AskBase,
    /// Cases of shared files were not run with failures at their ends.
    #[error("{0} cases were not run again with failures at their ends")]
    MustFail(usize),
    /// A touched file was not run, or its marks were not read.
    #[error("the touched file {0} was not run, or its marks were not read")]
    MergeLane(RepoPath),
    /// A leased case was not run unsilenced.
    #[error("leased case {0} was not run unsilenced")]
    NoSideRun(NodeId),
}

/// The cases that are to be run unsilenced, once the property lane is over.
#[must_use]
pub fn side_run(
    plan: &RunPlan,
    base: &AttemptFacts,
    property: &[AttemptFacts],
    gate: UnixTime,
) -> SideRun {
    let Ok(leases) = LeaseFile::parse(plan.leases()) else {
        return SideRun::default();
    };
    // Which files need to run shared has no say in which silences are leased, nor in what is red.
    let need_shared = NeedShared::new();
    let evidence = Evidence::before(base, &[], property, &need_shared);
    let observed: Vec<Observed<'_>> = property.iter().map(Observed::of).collect();
    let entries = docket::entries(plan.files(), &leases, &evidence, &observed, &[]);
    silences::side_run(&entries, gate)
}

static NONE_MOVED: BTreeMap<NodeId, Moved> = BTreeMap::new();

impl<'a> Evidence<'a> {
    /// What is known once the property lane is over, and nothing else yet.
    fn before(
        base: &'a AttemptFacts,
        base_run: &'a [AttemptFacts],
        property: &'a [AttemptFacts],
        need_shared: &'a NeedShared,
    ) -> Self {
        Self {
            base,
            base_run,
            property,
            base_under: &[],
            held_out: HeldOutEvidence::default(),
            must_fail: MustFailEvidence::default(),
            lease_side: &[],
            merge: MergeEvidence::default(),
            functions: Functions {
                digests: &[],
                tag: "",
            },
            need_shared,
            liveness: Liveness {
                null: NullProduct::Untold,
                mutants: None,
            },
            moved: &NONE_MOVED,
        }
    }
}

/// Whether held-out attempts could change anything: only where these N hold nothing against the patch in `src_score`. A
/// score that is red already must not pay for more, nor learn from them.
#[must_use]
pub fn deserves_held_out(
    files: &[RepoPath],
    leases: Option<&[u8]>,
    reruns: u32,
    base: &AttemptFacts,
    property: &[AttemptFacts],
) -> bool {
    let leases = LeaseFile::parse(leases).unwrap_or_default();
    let need_shared = NeedShared::new();
    let evidence = Evidence::before(base, &[], property, &need_shared);
    let observed: Vec<Observed<'_>> = property.iter().map(Observed::of).collect();
    let entries = docket::entries(files, &leases, &evidence, &observed, &[]);
    property.len() >= reruns as usize && src_score::grounds(&entries, &observed).is_empty()
}

/// What is still to be run of held-out attempts, with all that was seen so far.
#[must_use]
pub fn held_out_wants(plan: &RunPlan, evidence: &Evidence<'_>) -> HeldOutWants {
    let leases = LeaseFile::parse(plan.leases()).unwrap_or_default();
    let property: Vec<Observed<'_>> = evidence.property.iter().map(Observed::of).collect();
    let base_run: Vec<Observed<'_>> = evidence.base_run.iter().map(Observed::of).collect();
    let entries = docket::entries(plan.files(), &leases, evidence, &property, &base_run);
    let runs = &plan.patch().policy().runs;
    held_out::hear(
        plan.files(),
        runs,
        evidence.base,
        &entries,
        &evidence.held_out,
    )
    .wants
}

/// The next attempt under whose draw base is to be run, because of what head's product did there, with all that was seen so
/// far. What one of them holds against the patch needs no second one.
#[must_use]
pub fn ask_base(evidence: &Evidence<'_>) -> Option<AskBase> {
    tampers::hear(evidence).ask
}

/// What is still to be run of the must-fail rerun, with all that was seen so far. A score that is red already does not
/// need it.
#[must_use]
pub fn must_fail_wants(plan: &RunPlan, evidence: &Evidence<'_>) -> MustFailWants {
    let leases = LeaseFile::parse(plan.leases()).unwrap_or_default();
    let property: Vec<Observed<'_>> = evidence.property.iter().map(Observed::of).collect();
    let entries = docket::entries(plan.files(), &leases, evidence, &property, &[]);
    if src_score::grounds(&entries, &property).is_empty() {
        tampers::wants(
            &entries,
            &plan.patch().policy().runner.shared,
            evidence.must_fail,
        )
    } else {
        MustFailWants::default()
    }
}

/// Judge a patch that was run.
///
/// # Errors
/// Where evidence is missing that the plan asked for: then there is no verdict.
pub fn judge(
    plan: &RunPlan,
    evidence: &Evidence<'_>,
    gate: UnixTime,
) -> Result<Judged, Incomplete> {
    let policy = plan.patch().policy();
    let mut oracle: Vec<Ground> = plan
        .oracle_findings(gate)
        .iter()
        .map(Ground::from)
        .collect();
    oracle.extend(records::astray(
        &policy.paths,
        plan.files(),
        plan.cassettes(),
        evidence.base,
    ));
    let terms = Terms {
        cassettes: plan.cassettes(),
        files: plan.files(),
        leases: plan.leases(),
        lease_path: policy.paths.leases.as_str(),
        reruns: policy.runs.reruns as usize,
        runs: &policy.runs,
        shared: &policy.runner.shared,
        short: ShortDigest::of(policy),
        touched: plan.touched(),
        oracle,
        warnings: plan.warnings().iter().map(Ground::from).collect(),
    };
    bench::judge(terms, evidence, gate)
}

/// The verdicts that a patch has without a run.
#[must_use]
pub fn judge_decided(decided: &Decided, gate: UnixTime) -> Judged {
    let grounds: Vec<Ground> = decided.findings().iter().map(Ground::from).collect();
    let warnings = decided.warnings().iter().map(Ground::from).collect();
    bench::unrun(grounds, warnings, gate)
}

/// What the judge needs of a plan.
struct Terms<'a> {
    cassettes: &'a [InEffect],
    files: &'a [RepoPath],
    leases: Option<&'a [u8]>,
    lease_path: &'a str,
    reruns: usize,
    runs: &'a Runs,
    shared: &'a [RepoPath],
    short: ShortDigest,
    touched: &'a TouchedFacts,
    oracle: Vec<Ground>,
    warnings: Vec<Ground>,
}
