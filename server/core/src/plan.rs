//! What is to be run for a patch, decided before anything runs: the order for the sandbox, or the verdicts already known.
//!
//! `DiffClass` becomes a [`Course`]; an open course plus the facts of both trees becomes a [`Plan`]. Never reads a tree
//! itself, never looks at an attempt. Fails with `Refused` where src is over the policy's sizes.

mod admission;
mod attempts;
mod facts;
mod findings;
mod touched;
mod warnings;

pub use facts::{OracleFacts, SrcEntry, SrcFacts, TreeSource};
pub use findings::Finding;
pub use touched::{ProposedFacts, Text, TextKind, TouchedFacts, TouchedText, is_test_file, reruns};

use crate::cassette::{self, InEffect};
use crate::classify::{DiffClass, PathClass, Standing, class_of};
use crate::git::{Change, GitPath, Relation, ResolvedCommits};
use crate::id::{Digest, TreeId, UnixTime};
use crate::manifest::{self, SealedFile};
use crate::outcome::Pins;
use crate::policy::Policy;
use crate::reason::{Reason, Refused};
use crate::request::Role;
use serde::{Deserialize, Serialize};

/// Whose change set this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeSet {
    /// src (and what is not scored): base's oracle, head's src.
    Agent,
    /// Oracle only, by a maintainer's token: head's oracle, base's src.
    Human,
}

/// The patch that is scored, and what it is scored against: what every statement binds, run or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoredPatch {
    diff: DiffClass,
    change_set: ChangeSet,
    oracle: OracleFacts,
    src_trees: Vec<(String, TreeId)>,
    cassettes: Option<Digest>,
    ledger: Vec<cassette::Change>,
}

impl ScoredPatch {
    /// Head, base and how they stand.
    #[must_use]
    pub fn commits(&self) -> &ResolvedCommits {
        self.diff.commits()
    }
    /// The policy of the tree that supplies the oracle.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        self.diff.policy()
    }
    /// The role of the token that asked.
    #[must_use]
    pub fn role(&self) -> Role {
        self.diff.role()
    }
    /// Whose change set it is. A patch that is barred is an agent's, whoever sent it.
    #[must_use]
    pub fn change_set(&self) -> ChangeSet {
        self.change_set
    }
    /// Every changed path with its class, byte-sorted.
    #[must_use]
    pub fn changes(&self) -> &[(Change, PathClass)] {
        self.diff.changes()
    }
    /// What judges: base's, or head's for a human change set.
    #[must_use]
    pub fn oracle(&self) -> &OracleFacts {
        &self.oracle
    }
    /// The scored tree per src root; empty where nothing was scored.
    #[must_use]
    pub fn src_trees(&self) -> &[(String, TreeId)] {
        &self.src_trees
    }
    /// The digest of the records that are replayed; `None` where nothing is.
    #[must_use]
    pub fn cassettes(&self) -> Option<&Digest> {
        self.cassettes.as_ref()
    }
    /// What the patch does to cassettes and their ledger, by pin name.
    #[must_use]
    pub fn ledger(&self) -> &[cassette::Change] {
        &self.ledger
    }
}

/// What a tree has of all that would not be built if a patch brought it: `repo add` and `doctor` list it for base.
#[must_use]
pub fn unsupported(policy: &Policy, src: &SrcFacts) -> Vec<Finding> {
    let from_nothing = SrcFacts {
        base: Vec::new(),
        ..src.clone()
    };
    admission::check(policy, &from_nothing)
}

/// What the patch alone says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Course {
    /// A verdict already; only what the statement binds is still to be read.
    Barred(BarredDiff),
    /// To be admitted, planned and run.
    Open(OpenDiff),
}

impl Course {
    /// The course of this patch.
    #[must_use]
    pub fn of(diff: DiffClass) -> Self {
        match diff.standing().clone() {
            Standing::Agent => Self::Open(OpenDiff {
                diff,
                change_set: ChangeSet::Agent,
            }),
            Standing::Human => Self::Open(OpenDiff {
                diff,
                change_set: ChangeSet::Human,
            }),
            Standing::Barred(findings) => Self::Barred(BarredDiff { diff, findings }),
        }
    }
}

/// A patch that touches the oracle in a way that nobody, or not this role, may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarredDiff {
    diff: DiffClass,
    findings: Vec<Finding>,
}

impl BarredDiff {
    /// The classified patch.
    #[must_use]
    pub fn diff(&self) -> &DiffClass {
        &self.diff
    }

    /// The verdicts, bound to base's oracle.
    #[must_use]
    pub fn decide(mut self, base_oracle: OracleFacts) -> Decided {
        let warnings = warnings::of(&self.diff, &[]);
        self.findings.extend_from_slice(self.diff.seeds());
        Decided {
            patch: ScoredPatch {
                diff: self.diff,
                change_set: ChangeSet::Agent,
                oracle: base_oracle,
                src_trees: Vec::new(),
                cassettes: None,
                ledger: Vec::new(),
            },
            findings: self.findings,
            warnings,
        }
    }
}

/// A patch that may be run once its trees are found fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenDiff {
    diff: DiffClass,
    change_set: ChangeSet,
}

impl OpenDiff {
    /// The classified patch.
    #[must_use]
    pub fn diff(&self) -> &DiffClass {
        &self.diff
    }
    /// Whose change set it is.
    #[must_use]
    pub fn change_set(&self) -> ChangeSet {
        self.change_set
    }
    /// Where [`OracleFacts`] are to be read. Everything but src comes from this tree.
    #[must_use]
    pub fn oracle_from(&self) -> TreeSource {
        match self.change_set {
            ChangeSet::Agent => TreeSource::Base,
            ChangeSet::Human => self.what_merges(),
        }
    }
    /// Where [`SrcFacts`] are to be read.
    #[must_use]
    pub fn src_from(&self) -> TreeSource {
        match self.change_set {
            ChangeSet::Agent => self.what_merges(),
            ChangeSet::Human => TreeSource::Base,
        }
    }
    /// Where [`TouchedFacts`] are to be read.
    #[must_use]
    pub fn touched_from(&self) -> TreeSource {
        self.what_merges()
    }
    /// Admit the trees, or decide at once: `oracle_integrity` FAIL and nothing run.
    ///
    /// # Errors
    /// `too-large` where the scored src is over the policy's limits, `runner-package-clash` where it holds a package of
    /// the runner's.
    pub fn admit(self, mut oracle: OracleFacts, src: SrcFacts) -> Result<Plan, Refused> {
        let policy = self.diff.policy();
        let shelves = std::mem::take(&mut oracle.cassettes);
        let cassettes = cassette::in_effect(&policy.paths, &shelves);
        let mut heard = cassette::hear(policy, &shelves);
        if let Some(ledger) = &shelves.head.ledger {
            oracle.ledger = ledger.bytes().map(<[u8]>::to_vec);
        }
        admission::sizes(&policy.limits, &src)?;
        touched::sizes(&policy.limits, &src.touched)?;
        admission::runner_clash(policy, &src)?;
        let mut barring = admission::check(policy, &src);
        oracle.lfs_pointers.append(&mut heard.pointers);
        oracle.lfs_pointers.sort();
        barring.extend(touched::check(&src.touched));
        let pointers = oracle.lfs_pointers.iter().map(|path| {
            let told = "a Git LFS pointer, content not fetched";
            Finding::at(Reason::LfsPointer, path, told)
        });
        barring.extend(pointers);
        let sealed: Vec<GitPath> = oracle
            .sealed_paths
            .iter()
            .filter(|path| class_of(&policy.paths, path) == PathClass::Oracle)
            .cloned()
            .collect();
        let manifest = manifest::check(&policy.paths.manifest, oracle.manifest.as_deref(), &sealed);
        let (starts, attempts) = attempts::pinned(policy);
        let warnings = warnings::of(&self.diff, &src.entries);
        let patch = ScoredPatch {
            change_set: self.change_set,
            diff: self.diff,
            oracle,
            src_trees: src.trees.clone(),
            cassettes: cassette::digest(&cassettes),
            ledger: std::mem::take(&mut heard.changes),
        };
        match manifest {
            Ok(files) if barring.is_empty() => Ok(Plan::Run(Box::new(RunPlan {
                heard,
                patch,
                files,
                src,
                cassettes,
                starts,
                attempts,
                warnings,
            }))),
            other => {
                barring.extend(other.err());
                barring.extend_from_slice(heard.timeless());
                barring.extend_from_slice(patch.diff.seeds());
                let barring = findings::capped(barring);
                Ok(Plan::Decided(Box::new(Decided {
                    patch,
                    findings: barring,
                    warnings,
                })))
            }
        }
    }
    fn what_merges(&self) -> TreeSource {
        match self.diff.commits().relation {
            Relation::Contains => TreeSource::Head,
            Relation::Behind => TreeSource::Merge,
        }
    }
}

/// What an admitted patch comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Known without a run: `oracle_integrity` FAIL, the others NOT_RUN.
    Decided(Box<Decided>),
    /// To be run.
    Run(Box<RunPlan>),
}

/// Verdicts known without a run: `oracle_integrity` FAIL, `src_score` and `flake_lease` NOT_RUN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    patch: ScoredPatch,
    findings: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Decided {
    /// What was (not) scored.
    #[must_use]
    pub fn patch(&self) -> &ScoredPatch {
        &self.patch
    }
    /// Why `oracle_integrity` is FAIL; never empty.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
    /// What is worth knowing beside.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

/// One attempt to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedAttempt {
    /// 0, 1, … N-1.
    pub index: u32,
    /// Which interpreter start it is forked from: an index into [`RunPlan::starts`].
    pub start: u32,
    /// Its pins.
    pub pins: Pins,
}

/// Everything that is to be run for an admitted patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan {
    patch: ScoredPatch,
    files: Vec<SealedFile>,
    src: SrcFacts,
    cassettes: Vec<InEffect>,
    starts: Vec<u32>,
    attempts: Vec<PlannedAttempt>,
    heard: cassette::Hearing,
    warnings: Vec<Finding>,
}

impl RunPlan {
    /// What is scored, against what.
    #[must_use]
    pub fn patch(&self) -> &ScoredPatch {
        &self.patch
    }
    /// Sealed test files in manifest order.
    #[must_use]
    pub fn files(&self) -> &[SealedFile] {
        &self.files
    }
    /// The src to be scored, and base's for comparison.
    #[must_use]
    pub fn src(&self) -> &SrcFacts {
        &self.src
    }
    /// Records that are replayed, each to its own test, by path.
    #[must_use]
    pub fn cassettes(&self) -> &[InEffect] {
        &self.cassettes
    }
    /// The digest of what is replayed; `None` where nothing is.
    #[must_use]
    pub fn cassettes_digest(&self) -> Option<&Digest> {
        self.patch.cassettes.as_ref()
    }
    /// The tests that the patch touches.
    #[must_use]
    pub fn touched(&self) -> &TouchedFacts {
        &self.src.touched
    }
    /// Hash seeds of the separate interpreter starts that serve the attempts.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }
    /// The N attempts, in order.
    #[must_use]
    pub fn attempts(&self) -> &[PlannedAttempt] {
        &self.attempts
    }
    /// What makes `oracle_integrity` FAIL at the gate's time although everything still runs.
    #[must_use]
    pub fn oracle_findings(&self, gate: UnixTime) -> Vec<Finding> {
        let mut all = self.heard.findings(gate);
        all.extend_from_slice(self.patch.diff.seeds());
        findings::capped(all)
    }
    /// What is worth knowing beside.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
    /// The lease file of the tree that supplies the oracle.
    #[must_use]
    pub fn leases(&self) -> Option<&[u8]> {
        self.patch.oracle.leases.as_deref()
    }
}

#[cfg(test)]
mod tests;
