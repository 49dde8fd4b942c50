//! What was judged, as the exact bytes that are signed: one in-toto Statement v1 per verdict.
//!
//! The bytes are made here, once. Nothing later parses and writes them again: signing, storing, sending and verifying all
//! work on these bytes. Never signs. Fails with `StatementError`, which is ours.

use crate::git::Commit;
use crate::held_out::Failures;
use crate::id::{CommitId, Digest, RepoName, RepoPath, ScoreId, TreeId, UnixTime};
use crate::judge::{Judged, Verdict, VerdictKind, Word};
use crate::plan::{ChangeSet, ScoredPatch};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod payload;

pub use payload::{Attempts, MergeFile, MergeLane, Predicate, Result, Statement, Subject};
pub(crate) use payload::{TestResult, subjects};

/// The statement form of in-toto.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// What an envelope says its payload is.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The predicate that gates know which know nothing of us.
pub const TEST_RESULT_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// The predicate types of our own. A URN, because a URL would be somebody's: whoever holds the domain could say what
/// the type means. Three of them, because with one type the three files could be swapped by renaming.
#[must_use]
pub const fn predicate_type(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::SrcScore => "urn:tribunal:attestation/src-score/v1",
        VerdictKind::OracleIntegrity => "urn:tribunal:attestation/oracle-integrity/v1",
        VerdictKind::FlakeLease => "urn:tribunal:attestation/flake-lease/v1",
    }
}

/// Which server judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scorer {
    /// The instance, as the operator named it.
    pub id: String,
    /// Its version.
    pub version: String,
}

/// The tree that stood at one src root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SrcTree {
    /// The root, as the policy spells it.
    pub root: String,
    /// The tree.
    pub tree: TreeId,
}

/// How a sealed file ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In one process with the product.
    Shared,
    /// In a process of its own.
    Split,
}

/// Digests of everything that could change a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inputs {
    /// All entries of class oracle.
    pub oracle: Digest,
    /// The policy, canonical.
    pub policy: Digest,
    /// Its pins alone.
    pub pins: Digest,
    /// The src that was laid over the base; absent where none was made.
    pub overlay: Option<Digest>,
    /// The runner image; absent where nothing ran.
    pub image: Option<String>,
    /// The harness and its interpreter; absent where nothing ran.
    pub runner: Option<String>,
    /// The cassette ledger; absent where there is none.
    pub ledger: Option<Digest>,
    /// The records that were replayed; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cassettes: Option<Digest>,
}

/// Digests of the report as each kind of reader gets it: whichever of them lies beside the statements, it is bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reports {
    /// The operator's.
    pub operator: Digest,
    /// What CI and maintainers get.
    pub full: Digest,
    /// What agents get, as the policy's feedback level allows.
    pub agent: Digest,
}

/// What was scored, with what: everything the statements of one score bind beside the judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scored {
    /// The score.
    pub score: ScoreId,
    /// Who judged.
    pub scorer: Scorer,
    /// The repository.
    pub repository: RepoName,
    /// Its protected branch.
    pub protected_ref: String,
    /// What was scored.
    pub head: Commit,
    /// Against what.
    pub base: Commit,
    /// The protected tip when the score started.
    pub base_tip: CommitId,
    /// Their merge bases.
    pub merge_bases: Vec<CommitId>,
    /// Whose change set.
    pub change_set: ChangeSet,
    /// The scored src.
    pub src_trees: Vec<SrcTree>,
    /// What it was scored with.
    pub inputs: Inputs,
    /// What the patch does to cassettes and their ledger; for the report, not for the statement.
    pub ledger: Vec<crate::cassette::Change>,
    /// N of the policy.
    pub planned_attempts: u32,
    /// Draws of held-out pins.
    pub held_out: HeldOut,
    /// What the merge lane ran; `None` where the patch touches no test, or nothing ran.
    pub merge_overlay: Option<Digest>,
    /// How each sealed file ran; empty where nothing ran.
    pub isolation: BTreeMap<RepoPath, Isolation>,
}

/// How much was seen under pins that were not announced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldOut {
    /// Draws that the score was to make; none where it was red without them.
    pub planned: u32,
    /// Attempts under them.
    pub seen: u32,
    /// Failures of cases of this base, counted over overlays, this one included; the most frequent first.
    pub failures: Vec<Failures>,
}

/// What a run adds to what the plan knew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The src overlay.
    pub overlay: Digest,
    /// The runner image.
    pub image: String,
    /// The harness and its interpreter.
    pub runner: String,
    /// Draws of held-out pins.
    pub held_out: HeldOut,
    /// The touched tests laid over the oracle's tree, with the scored src.
    pub merge_overlay: Option<Digest>,
    /// How each sealed file ran.
    pub isolation: BTreeMap<RepoPath, Isolation>,
}

impl Scored {
    /// What this patch was scored as; `ran` is `None` where it was decided without a run.
    #[must_use]
    pub fn of(score: ScoreId, scorer: Scorer, patch: &ScoredPatch, ran: Option<Ran>) -> Self {
        let commits = patch.commits();
        let (overlay, image, runner, held_out, merge_overlay, isolation) = match ran {
            Some(ran) => (
                Some(ran.overlay),
                Some(ran.image),
                Some(ran.runner),
                ran.held_out,
                ran.merge_overlay,
                ran.isolation,
            ),
            None => (None, None, None, HeldOut::default(), None, BTreeMap::new()),
        };
        let tree = |(root, tree): &(String, TreeId)| SrcTree {
            root: root.clone(),
            tree: tree.clone(),
        };
        Self {
            score,
            scorer,
            repository: commits.repository.clone(),
            protected_ref: commits.protected_ref.clone(),
            head: commits.head.clone(),
            base: commits.base.clone(),
            base_tip: commits.base_tip.clone(),
            merge_bases: commits.merge_bases.clone(),
            change_set: patch.change_set(),
            src_trees: patch.src_trees().iter().map(tree).collect(),
            inputs: Inputs {
                oracle: patch.oracle().oracle_digest.clone(),
                policy: patch.policy().digest(),
                pins: patch.policy().pins.digest(),
                overlay,
                image,
                runner,
                ledger: patch.oracle().ledger.as_deref().map(Digest::of),
                cassettes: patch.cassettes().cloned(),
            },
            ledger: patch.ledger().to_vec(),
            planned_attempts: patch.policy().runs.reruns,
            held_out,
            merge_overlay,
            isolation,
        }
    }

    /// `repositories/R/scores/S`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("repositories/{}/scores/{}", self.repository, self.score)
    }
}

/// Why there are no statements; always ours.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// A value has no JSON form.
    #[error("failed to write a statement")]
    Write(#[from] serde_json::Error),
}

/// The exact bytes of one statement, and the name of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    stem: &'static str,
    bytes: Vec<u8>,
}

impl Payload {
    /// The name of its files, without ending.
    #[must_use]
    pub const fn stem(&self) -> &'static str {
        self.stem
    }
    /// What is to be signed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The name of the copy with the standard predicate.
pub const TEST_RESULT_STEM: &str = "src_score.test-result";

/// The statements of one score, judged and not yet signed. Only `Statements::of` makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statements {
    verdicts: Vec<(Payload, Word)>,
    test_result: Option<Payload>,
}

impl Statements {
    /// The statements of this judgement.
    ///
    /// # Errors
    /// Ours: a value that has no JSON form.
    pub fn of(
        judged: &Judged,
        scored: &Scored,
        reports: &Reports,
        issued_at: UnixTime,
    ) -> std::result::Result<Self, StatementError> {
        let binding = Binding {
            scored,
            reports,
            issued_at,
        };
        let mut verdicts = Vec::with_capacity(3);
        for verdict in judged.verdicts() {
            let statement = statement(verdict, judged, &binding);
            let payload = payload(verdict.kind().file_stem(), &statement)?;
            verdicts.push((payload, verdict.word()));
        }
        let src_score = judged.verdict(VerdictKind::SrcScore).word();
        let test_result = payload::test_result(src_score, judged, &binding)
            .map(|statement| payload(TEST_RESULT_STEM, &statement))
            .transpose()?;
        Ok(Self {
            verdicts,
            test_result,
        })
    }

    /// The three, each with its word, in the order of the join.
    #[must_use]
    pub fn verdicts(&self) -> &[(Payload, Word)] {
        &self.verdicts
    }

    /// The copy with the standard predicate; only for PASS and FAIL.
    #[must_use]
    pub const fn test_result(&self) -> Option<&Payload> {
        self.test_result.as_ref()
    }
}

/// All that a statement is made of beside the judgement.
pub(crate) struct Binding<'a> {
    pub(crate) scored: &'a Scored,
    pub(crate) reports: &'a Reports,
    pub(crate) issued_at: UnixTime,
}

fn payload<T: Serialize>(
    stem: &'static str,
    statement: &T,
) -> std::result::Result<Payload, StatementError> {
    let mut bytes = serde_json::to_vec_pretty(statement)?;
    bytes.push(b'\n');
    Ok(Payload { stem, bytes })
}

fn statement(verdict: &Verdict, judged: &Judged, binding: &Binding<'_>) -> Statement<Predicate> {
    let codes = |grounds: &[crate::judge::Ground]| -> Vec<crate::reason::Reason> {
        let codes: BTreeSet<_> = grounds.iter().map(|ground| ground.reason).collect();
        codes.into_iter().collect()
    };
    let scored = binding.scored;
    Statement {
        kind: STATEMENT_TYPE.to_owned(),
        subject: payload::subjects(&scored.head, &scored.base, &scored.src_trees),
        predicate_type: predicate_type(verdict.kind()).to_owned(),
        predicate: Predicate {
            result: Result::from(verdict.word()),
            reasons: codes(verdict.grounds()),
            warnings: codes(judged.warnings()),
            score: scored.name(),
            scorer: scored.scorer.clone(),
            repository: scored.repository.clone(),
            protected_ref: scored.protected_ref.clone(),
            change_set: scored.change_set,
            head: scored.head.clone(),
            base: scored.base.clone(),
            base_tip_at_scoring: scored.base_tip.clone(),
            merge_bases: scored.merge_bases.clone(),
            src_trees: scored.src_trees.clone(),
            inputs: scored.inputs.clone(),
            attempts: Attempts {
                planned: scored.planned_attempts,
                seen: judged.confidence().attempts,
                held_out_planned: scored.held_out.planned,
                held_out: scored.held_out.seen,
                held_out_failures: scored
                    .held_out
                    .failures
                    .iter()
                    .map(|f| f.overlays)
                    .collect(),
            },
            isolation: scored.isolation.clone(),
            merge_lane: merge_lane(judged, scored),
            reports: binding.reports.clone(),
            gate_time: payload::time(judged.gate_time()),
            issued_at: payload::time(binding.issued_at),
            valid_until: payload::time(judged.valid_until()),
        },
    }
}

/// What the merge lane ran; the same in all three.
fn merge_lane(judged: &Judged, scored: &Scored) -> Option<MergeLane> {
    let (lane, overlay) = (judged.merge()?, scored.merge_overlay.clone()?);
    let cases = |file: &RepoPath| {
        let all = lane.cases.iter();
        all.filter(|case| case.file.as_ref() == Some(file)).count()
    };
    let files = lane.files.iter().map(|(file, seen)| {
        let stated = MergeFile {
            cases: cases(file),
            attempts: seen.attempts,
        };
        (file.clone(), stated)
    });
    Some(MergeLane {
        overlay,
        files: files.collect(),
    })
}
