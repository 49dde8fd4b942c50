//! The join: three verified verdicts and what the caller expects become `MERGE_OK`, or why not.
//!
//! A total function. Merge is allowed only for exactly PASS PASS PASS of the expected subject; no majority, no weight, no
//! override. The clock is an argument.

use crate::id::{CommitId, RepoName, UnixTime};
use crate::judge::{VerdictKind, Word};
use crate::plan::ChangeSet;
use crate::reason::Reason;
use crate::statement::Predicate;
use crate::verify::{Check, SignedVerdict, Step, Unverified, Verification};
use std::fmt;

/// How far a statement may be from the future before it is not believed: clocks of two machines differ.
const CLOCK_SKEW: i64 = 300;

/// What the caller wants merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The repository; `None` does not ask.
    pub repository: Option<RepoName>,
    /// The commit that is to be merged.
    pub head: CommitId,
    /// What it is to be merged into: today's tip. `None` takes the tip as it was when the score started.
    pub base: Option<CommitId>,
    /// Whose change set it is to be.
    pub change_set: ChangeSet,
    /// The caller's clock.
    pub now: UnixTime,
}

/// Why a merge is blocked, as exit codes tell it apart. The worst speaks: unverified over mark over gap over the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocked {
    /// A word that is not PASS, a stale base, a change set that was not asked for.
    Verdict,
    /// A cassette gap among the reasons.
    CassetteGap,
    /// A forbidden mark among the reasons.
    ForbiddenMark,
    /// A signature, key, subject, age or file that does not hold.
    Unverified,
}

impl Blocked {
    /// The client's exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Verdict => 1,
            Self::ForbiddenMark => 2,
            Self::CassetteGap => 3,
            Self::Unverified => 5,
        }
    }
}

/// What is known of one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It is signed.
    Signed(Word),
    /// Its files do not hold; what `.txt` says is worth nothing.
    Unverified,
    /// A file is missing.
    Missing,
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(word) => word.fmt(f),
            Self::Unverified => f.write_str("UNVERIFIED"),
            Self::Missing => f.write_str("MISSING"),
        }
    }
}

/// Whether it merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Exactly PASS PASS PASS, of what is expected.
    MergeOk,
    /// Anything else.
    MergeBlocked(Blocked),
}

impl Decision {
    /// The word that the join's line begins with.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::MergeOk => "MERGE_OK",
            Self::MergeBlocked(_) => "MERGE_BLOCKED",
        }
    }
}

/// The join's answer. Displays as the one line that the protocol fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    decision: Decision,
    words: [Known; 3],
    checks: Vec<Check>,
    reasons: Vec<Reason>,
}

impl Join {
    /// Whether it merges.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        self.decision
    }
    /// The words, in the order of the join.
    #[must_use]
    pub const fn words(&self) -> &[Known; 3] {
        &self.words
    }
    /// Every check, verification's first.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }
    /// The checks that failed: why it is blocked.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.is_failure())
    }
    /// The signed reasons, distinct, in the order of the documentation.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.decision.word())?;
        match self.decision {
            Decision::MergeOk => Ok(()),
            Decision::MergeBlocked(_) => {
                f.write_str(":")?;
                for (kind, word) in VerdictKind::ALL.iter().zip(&self.words) {
                    write!(f, " {}={word}", kind.file_stem())?;
                }
                Ok(())
            }
        }
    }
}

/// Join the three for this subject.
#[must_use]
pub fn join(verification: Verification, expected: &Expected) -> Join {
    let words = verification
        .verdicts()
        .each_ref()
        .map(|verdict| match verdict {
            Ok(signed) => Known::Signed(signed.word()),
            Err(Unverified::Missing) => Known::Missing,
            Err(Unverified::Failed) => Known::Unverified,
        });
    let asked = verification
        .verified()
        .map(|verdicts| ask(verdicts, expected));
    let Some((asked, reasons)) = asked else {
        return Join {
            decision: Decision::MergeBlocked(Blocked::Unverified),
            words,
            checks: verification.checks,
            reasons: Vec::new(),
        };
    };
    let worst = asked
        .iter()
        .filter(|check| check.is_failure())
        .map(|check| blocked_by(check.step, &reasons))
        .max();
    let mut checks = verification.checks;
    checks.extend(asked);
    Join {
        decision: worst.map_or(Decision::MergeOk, Decision::MergeBlocked),
        words,
        checks,
        reasons,
    }
}

fn ask(verdicts: [&SignedVerdict; 3], expected: &Expected) -> (Vec<Check>, Vec<Reason>) {
    let [src_score, ..] = verdicts;
    // `verify` found the three to say the same of everything but word and reasons.
    let said = src_score.predicate();
    let mut reasons: Vec<Reason> = verdicts
        .iter()
        .flat_map(|v| v.predicate().reasons.clone())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    let checks = vec![
        repository(said, expected),
        equal(Step::Head, "head", &said.head.id, &expected.head),
        base(said, expected),
        change_set(said.change_set, expected.change_set),
        age(src_score, expected.now),
        words(verdicts, &reasons),
    ];
    (checks, reasons)
}

fn blocked_by(step: Step, reasons: &[Reason]) -> Blocked {
    match step {
        Step::Base | Step::ChangeSet | Step::Words => {
            if reasons.contains(&Reason::ForbiddenMark) {
                Blocked::ForbiddenMark
            } else if reasons.contains(&Reason::CassetteGap) {
                Blocked::CassetteGap
            } else {
                Blocked::Verdict
            }
        }
        Step::Present
        | Step::Bundle
        | Step::Key
        | Step::Signature
        | Step::Payload
        | Step::Statement
        | Step::KeyDates
        | Step::SshSignature
        | Step::Word
        | Step::OneSet
        | Step::Report
        | Step::TestResult
        | Step::Repository
        | Step::Head
        | Step::Age => Blocked::Unverified,
    }
}

fn equal<T: PartialEq + fmt::Display>(
    step: Step,
    subject: &str,
    signed: &T,
    expected: &T,
) -> Check {
    if signed == expected {
        Check::held(step, subject, signed.to_string())
    } else {
        Check::failed(
            step,
            subject,
            format!("signed is {signed}, expected {expected}"),
        )
    }
}

fn repository(said: &Predicate, expected: &Expected) -> Check {
    match &expected.repository {
        Some(expected) => equal(Step::Repository, "repository", &said.repository, expected),
        None => Check::not_asked(
            Step::Repository,
            "repository",
            format!("signed is {}", said.repository),
        ),
    }
}

fn base(said: &Predicate, expected: &Expected) -> Check {
    let tip = expected.base.as_ref().unwrap_or(&said.base_tip_at_scoring);
    if said.base.id == *tip {
        return Check::held(Step::Base, "base", tip.to_string());
    }
    Check::failed(
        Step::Base,
        "base",
        format!(
            "{}: signed is {}, the tip is {tip}",
            Reason::StaleBase,
            said.base.id
        ),
    )
}

fn change_set(signed: ChangeSet, expected: ChangeSet) -> Check {
    let name = |set: ChangeSet| match set {
        ChangeSet::Agent => "agent",
        ChangeSet::Human => "human",
    };
    equal(
        Step::ChangeSet,
        "change set",
        &name(signed),
        &name(expected),
    )
}

fn age(verdict: &SignedVerdict, now: UnixTime) -> Check {
    let (issued, until) = (verdict.issued_at(), verdict.valid_until());
    if now.0 >= until.0 {
        Check::failed(Step::Age, "age", format!("expired at {}", until.rfc3339()))
    } else if issued.0 > now.0.saturating_add(CLOCK_SKEW) {
        Check::failed(
            Step::Age,
            "age",
            format!("issued at {}, which is still to come", issued.rfc3339()),
        )
    } else {
        Check::held(
            Step::Age,
            "age",
            format!(
                "issued {}, good until {}",
                issued.rfc3339(),
                until.rfc3339()
            ),
        )
    }
}

fn words(verdicts: [&SignedVerdict; 3], reasons: &[Reason]) -> Check {
    if verdicts.iter().all(|verdict| verdict.word() == Word::Pass) {
        return Check::held(Step::Words, "words", "PASS PASS PASS");
    }
    let words: Vec<String> = verdicts.iter().map(|v| v.word().to_string()).collect();
    let codes: Vec<&str> = reasons.iter().map(|reason| reason.code()).collect();
    Check::failed(
        Step::Words,
        "words",
        format!("{} ({})", words.join(" "), codes.join(", ")),
    )
}

#[cfg(test)]
mod tests;
