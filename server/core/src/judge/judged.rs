//! What the judge hands on: three verdicts with their grounds, and every case, lease and count behind them.
//!
//! Values only. `Judged` has private fields: nothing can be stated or signed that the judge did not make.

use super::{Diagnosis, MergeSummary, VerdictKind, Word};
use crate::id::{NodeId, RepoPath, UnixTime};
use crate::outcome::{Class, ExceptionText, Outcome, When};
use crate::plan::Finding;
use crate::reason::Reason;
use serde::{Deserialize, Serialize};

/// What a reason is about: it decides how far it may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// The patch itself, the lease file, the oracle's own files: shown at every feedback level.
    Patch,
    /// A sealed case: shown from `names` on.
    Case,
    /// A case under held-out pins: its name from `names` on, everything else for the operator alone.
    HeldOut,
}

/// One ground of a verdict, or of a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// The code.
    pub reason: Reason,
    /// What it is about.
    pub about: About,
    /// The path or case, raw: escape before showing.
    pub subject: Option<String>,
    /// What was seen, in words of our own; names and counts, never text of a sealed case.
    pub detail: String,
    /// What the failing case said, one line: shown at `full` only.
    pub seen: Option<String>,
}

impl From<&Finding> for Ground {
    fn from(finding: &Finding) -> Self {
        Self {
            reason: finding.reason,
            about: About::Patch,
            subject: finding.subject.clone(),
            detail: finding.detail.clone(),
            seen: None,
        }
    }
}

/// One of the three verdicts: its word, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub(super) kind: VerdictKind,
    pub(super) word: Word,
    pub(super) grounds: Vec<Ground>,
}

impl Verdict {
    /// Which one.
    #[must_use]
    pub const fn kind(&self) -> VerdictKind {
        self.kind
    }
    /// Its word.
    #[must_use]
    pub const fn word(&self) -> Word {
        self.word
    }
    /// Why it is FAIL; empty otherwise.
    #[must_use]
    pub fn grounds(&self) -> &[Ground] {
        &self.grounds
    }
}

/// Where a case comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Base's own collection has it.
    Base,
    /// Base lacks it, but it comes from a sealed function that base has.
    Extra,
    /// It comes from elsewhere.
    Foreign,
}

/// What the case does on base, where base was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBase {
    /// It passes.
    Green,
    /// It fails, or differs between attempts.
    Red,
    /// It is skipped or xfailed.
    Silenced,
}

/// What a failing case said, from the first attempt in which it failed. Candidate text, as the harness capped it.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureText {
    /// The attempt, counted from 1 over all attempts of the lane.
    pub attempt: usize,
    /// The phase.
    pub when: When,
    /// The exception.
    pub exception: Option<ExceptionText>,
    /// The end of what it printed.
    pub output: String,
}

/// One case over all attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseSummary {
    /// The runner's id.
    pub node: NodeId,
    /// Its file; `None` for a record that no collection announced.
    pub file: Option<RepoPath>,
    /// Where it comes from.
    pub origin: Origin,
    /// Its class.
    pub class: Class,
    /// Why it is held against the patch, where it is.
    pub code: Option<Reason>,
    /// Its outcome per attempt of the property lane, oldest first.
    pub outcomes: Vec<Outcome>,
    /// Its outcome per attempt of the lease side run.
    pub unsilenced: Vec<Outcome>,
    /// Its outcome per held-out draw, by number. For the operator alone, and so is what it said there.
    pub held_out: Vec<(u32, Outcome)>,
    /// What it said in the first of them that it did not pass.
    pub held_out_failure: Option<FailureText>,
    /// What it does on base, where that is known.
    pub on_base: Option<OnBase>,
    /// What it said.
    pub failure: Option<FailureText>,
    /// What it read and what it owes, where it is mixed.
    pub diagnosis: Option<Diagnosis>,
    /// Wall milliseconds of its first reported run, all phases.
    pub duration_ms: f64,
}

/// What became of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSummary {
    /// As the file names it.
    pub qualname: String,
    /// Who owns it.
    pub owner: String,
    /// Why it is there.
    pub reason: String,
    /// When it ends.
    pub expires_at: UnixTime,
    /// The silenced cases it was used for.
    pub cases: Vec<NodeId>,
    /// Why it does not hold; empty where it does.
    pub refused: Vec<Reason>,
}

/// How much was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confidence {
    /// Attempts of the property lane, stored ones included.
    pub attempts: usize,
    /// The 95 % upper bound on a failure rate that none of them showed, in parts per million.
    pub upper_bound_ppm: u32,
}

/// The three verdicts and all that was found. Only the judge makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub(super) verdicts: [Verdict; 3],
    pub(super) warnings: Vec<Ground>,
    pub(super) cases: Vec<CaseSummary>,
    pub(super) merge: Option<MergeSummary>,
    pub(super) leases: Vec<LeaseSummary>,
    pub(super) held_out_failures: Vec<String>,
    pub(super) confidence: Confidence,
    pub(super) gate_time: UnixTime,
    pub(super) valid_until: UnixTime,
}

impl Judged {
    /// The verdict of this kind.
    #[must_use]
    pub fn verdict(&self, kind: VerdictKind) -> &Verdict {
        let [src_score, oracle_integrity, flake_lease] = &self.verdicts;
        match kind {
            VerdictKind::SrcScore => src_score,
            VerdictKind::OracleIntegrity => oracle_integrity,
            VerdictKind::FlakeLease => flake_lease,
        }
    }
    /// All three, in the order of the join.
    #[must_use]
    pub const fn verdicts(&self) -> &[Verdict; 3] {
        &self.verdicts
    }
    /// What is worth knowing and blocks nothing.
    #[must_use]
    pub fn warnings(&self) -> &[Ground] {
        &self.warnings
    }
    /// Every case, base's first in base's order.
    #[must_use]
    pub fn cases(&self) -> &[CaseSummary] {
        &self.cases
    }
    /// The merge lane; `None` where the patch touches no test, or nothing ran.
    #[must_use]
    pub fn merge(&self) -> Option<&MergeSummary> {
        self.merge.as_ref()
    }
    /// Every lease of the file.
    #[must_use]
    pub fn leases(&self) -> &[LeaseSummary] {
        &self.leases
    }
    /// The cases that held-out pins hold against the patch, by the names that they are counted under.
    #[must_use]
    pub fn held_out_failures(&self) -> &[String] {
        &self.held_out_failures
    }
    /// How much was seen.
    #[must_use]
    pub const fn confidence(&self) -> Confidence {
        self.confidence
    }
    /// The gate's clock when the score began.
    #[must_use]
    pub const fn gate_time(&self) -> UnixTime {
        self.gate_time
    }
    /// When the verdicts stop being worth anything.
    #[must_use]
    pub const fn valid_until(&self) -> UnixTime {
        self.valid_until
    }
}

#[cfg(test)]
impl Judged {
    /// A judgement with these words; what fails, fails for the reason given.
    pub(crate) fn sample(
        words: [Word; 3],
        reason: Reason,
        gate_time: UnixTime,
        valid_until: UnixTime,
    ) -> Self {
        let [src_score, oracle_integrity, flake_lease] = words;
        let verdict = |kind, word| Verdict {
            kind,
            word,
            grounds: match word {
                Word::Fail => vec![Ground {
                    reason,
                    about: About::Case,
                    subject: Some("tests/sealed/test_\u{e9}.py::test_a".to_owned()),
                    detail: "failed in all 7 attempts".to_owned(),
                    seen: Some("AssertionError: assert 0 == 6".to_owned()),
                }],
                Word::Pass | Word::NotRun => vec![],
            },
        };
        Self {
            verdicts: [
                verdict(VerdictKind::SrcScore, src_score),
                verdict(VerdictKind::OracleIntegrity, oracle_integrity),
                verdict(VerdictKind::FlakeLease, flake_lease),
            ],
            warnings: vec![],
            cases: vec![],
            merge: None,
            leases: vec![],
            held_out_failures: vec![],
            confidence: Confidence {
                attempts: 7,
                upper_bound_ppm: 348_164,
            },
            gate_time,
            valid_until,
        }
    }

    /// The same with these cases.
    pub(crate) fn with_cases(self, cases: Vec<CaseSummary>) -> Self {
        Self { cases, ..self }
    }

    /// The same with these grounds of `src_score`.
    pub(crate) fn with_grounds(mut self, grounds: Vec<Ground>) -> Self {
        let [src_score, ..] = &mut self.verdicts;
        src_score.grounds = grounds;
        self
    }
}
