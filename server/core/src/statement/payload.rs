//! The shape of a payload: in-toto's Statement v1 around a predicate of ours, or around the standard test result.
//!
//! Field order is part of the frozen bytes. A reader ignores fields it does not know, as in-toto asks of it; the kind of
//! the predicate changes where a field changes its meaning.

use super::{
    Binding, Inputs, Isolation, Reports, STATEMENT_TYPE, Scorer, SrcTree, TEST_RESULT_TYPE,
};
use crate::git::Commit;
use crate::id::{CommitId, Digest, RepoName, RepoPath, UnixTime};
use crate::judge::{Judged, Word};
use crate::plan::ChangeSet;
use crate::reason::Reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An in-toto statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement<P> {
    /// in-toto's own type.
    #[serde(rename = "_type")]
    pub kind: String,
    /// What it is about.
    pub subject: Vec<Subject>,
    /// What the predicate means.
    pub predicate_type: String,
    /// What is said.
    pub predicate: P,
}

/// One thing a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// `head`, `base`, or a src root.
    pub name: String,
    /// Algorithm to hex.
    pub digest: BTreeMap<String, String>,
}

/// in-toto's words for ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Result {
    /// PASS.
    Passed,
    /// FAIL.
    Failed,
    /// NOT_RUN.
    NotRun,
}

impl From<Word> for Result {
    fn from(word: Word) -> Self {
        match word {
            Word::Pass => Self::Passed,
            Word::Fail => Self::Failed,
            Word::NotRun => Self::NotRun,
        }
    }
}
impl From<Result> for Word {
    fn from(result: Result) -> Self {
        match result {
            Result::Passed => Self::Pass,
            Result::Failed => Self::Fail,
            Result::NotRun => Self::NotRun,
        }
    }
}

/// How often it was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempts {
    /// N of the policy.
    pub planned: u32,
    /// How many the judge saw, stored ones included.
    pub seen: usize,
    /// How many were to be made beside them under pins that were not announced.
    #[serde(default)]
    pub held_out_planned: u32,
    /// How many of those the judge saw.
    pub held_out: u32,
    /// How many overlays failed a case of this base under such pins, per case, the most first. Without names: whoever
    /// may see them has them in the report.
    #[serde(default)]
    pub held_out_failures: Vec<u32>,
}

/// The tests that the patch touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeLane {
    /// Over everything that ran: these tests as they merge, the rest of the oracle's tree, the scored src.
    pub overlay: Digest,
    /// What each file gave.
    pub files: BTreeMap<RepoPath, MergeFile>,
}

/// One of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeFile {
    /// How many cases.
    pub cases: usize,
    /// How many attempts the judge saw.
    pub attempts: usize,
}

/// What one verdict binds. Codes name rules, never cases: so they stand here at every feedback level, and the join's exit
/// code can be told from signed bytes alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    /// The word.
    pub result: Result,
    /// Why it is FAILED: distinct codes.
    pub reasons: Vec<Reason>,
    /// Warnings of the score: distinct codes.
    pub warnings: Vec<Reason>,
    /// `repositories/R/scores/S`; the same in all three.
    pub score: String,
    /// Who judged.
    pub scorer: Scorer,
    /// The repository.
    pub repository: RepoName,
    /// Its protected branch.
    pub protected_ref: String,
    /// Whose change set.
    pub change_set: ChangeSet,
    /// Head, its root tree, and the hash of the raw commit object.
    pub head: Commit,
    /// Base likewise.
    pub base: Commit,
    /// The protected tip when the score started.
    pub base_tip_at_scoring: CommitId,
    /// Merge bases of both.
    pub merge_bases: Vec<CommitId>,
    /// The scored src.
    pub src_trees: Vec<SrcTree>,
    /// What it was scored with.
    pub inputs: Inputs,
    /// How often.
    pub attempts: Attempts,
    /// How each sealed file ran.
    pub isolation: BTreeMap<RepoPath, Isolation>,
    /// What the merge lane ran; only where the patch touches tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_lane: Option<MergeLane>,
    /// The reports.
    pub reports: Reports,
    /// The gate's clock when the score started; leases are judged by it.
    pub gate_time: String,
    /// When this was made.
    pub issued_at: String,
    /// When it stops being worth anything.
    pub valid_until: String,
}

/// Head by commit id and by the hash of its raw object; base by commit id alone, or a gate that checks only the hash of
/// *some* commit would take a base for a head; the scored trees.
pub(crate) fn subjects(head: &Commit, base: &Commit, src_trees: &[SrcTree]) -> Vec<Subject> {
    let one = |name: &str, algorithm: &str, hex: &str| Subject {
        name: name.to_owned(),
        digest: BTreeMap::from([(algorithm.to_owned(), hex.to_owned())]),
    };
    let mut subjects = vec![
        one("head", "gitCommit", head.id.as_str()),
        one("base", "gitCommit", base.id.as_str()),
    ];
    if let Some(subject) = subjects.first_mut() {
        let sha256 = head.sha256.hex().to_owned();
        subject.digest.insert("sha256".to_owned(), sha256);
    }
    subjects.extend(
        src_trees
            .iter()
            .map(|src| one(&format!("src:{}", src.root), "gitTree", src.tree.as_str())),
    );
    subjects
}

pub(super) fn time(time: UnixTime) -> String {
    time.rfc3339()
}

/// The standard predicate, as far as we have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestResult {
    /// PASSED or FAILED.
    pub result: Result,
    /// What it was tested with.
    pub configuration: Vec<Descriptor>,
}

/// in-toto's resource descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Descriptor {
    /// What it is.
    pub name: String,
    /// Algorithm to hex.
    pub digest: BTreeMap<String, String>,
    /// What else is to be known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The copy for gates that know the standard predicate; there is none for NOT_RUN, which it cannot say.
pub(super) fn test_result(
    word: Word,
    judged: &Judged,
    binding: &Binding<'_>,
) -> Option<Statement<TestResult>> {
    match word {
        Word::Pass | Word::Fail => {}
        Word::NotRun => return None,
    }
    let descriptor = |name: &str, digest: &crate::id::Digest| Descriptor {
        name: name.to_owned(),
        digest: BTreeMap::from([("sha256".to_owned(), digest.hex().to_owned())]),
        annotations: BTreeMap::new(),
    };
    let mut oracle = descriptor("oracle", &binding.scored.inputs.oracle);
    oracle.annotations = BTreeMap::from([
        (
            "repository".to_owned(),
            binding.scored.repository.to_string(),
        ),
        ("issuedAt".to_owned(), time(binding.issued_at)),
        ("validUntil".to_owned(), time(judged.valid_until())),
    ]);
    Some(Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: subjects(
            &binding.scored.head,
            &binding.scored.base,
            &binding.scored.src_trees,
        ),
        predicate_type: TEST_RESULT_TYPE.to_owned(),
        predicate: TestResult {
            result: word.into(),
            configuration: vec![
                oracle,
                descriptor("policy", &binding.scored.inputs.policy),
                descriptor("pins", &binding.scored.inputs.pins),
            ],
        },
    })
}
