//! Every case with its outcomes, its class and its lease: what both verdicts on cases are made from.

use super::Evidence;
use super::diagnosis::{Diagnosis, diagnose};
use super::expected::{self, Case, Kind};
use super::held_out::HeldOutCase;
use super::judged::{CaseSummary, FailureText, OnBase, Origin};
use super::observed::Observed;
use super::perturbed::Moved;
use crate::id::RepoPath;
use crate::lease::{Candidate, Lease, LeaseFile, Match, Names};
use crate::outcome::{Class, ExceptionText, Leased, Outcome, Phase, PhaseOutcome, When, class_of};
use crate::reason::Reason;

/// One case as it stands before both verdicts.
pub(super) struct Entry<'a> {
    pub(super) case: Case,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) class: Class,
    pub(super) on_base: Option<OnBase>,
    /// The closest lease that names it.
    pub(super) lease: Option<(&'a Lease, Match)>,
    /// Whether its file can stand apart from the product.
    pub(super) fit: Fit,
    /// The one change of pins that settles it, where that was tried.
    pub(super) moved: Option<Moved>,
}

/// Whether a sealed file holds split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// As far as base shows, it does.
    Split,
    /// Base passes some of it in one process with it only, and no maintainer has listed it.
    NeedsShared,
}

impl Entry<'_> {
    /// Why it is held against the patch in `src_score`.
    pub(super) fn code(&self) -> Option<Reason> {
        if self.case.origin == Origin::Foreign {
            return Some(Reason::ExtraCase);
        }
        match self.class {
            Class::StablePass => None,
            Class::Silenced => match self.case.origin {
                Origin::Base => None,
                Origin::Extra | Origin::Foreign => Some(Reason::ExtraCase),
            },
            Class::StableRed => {
                let code = self.outcomes.first().and_then(Outcome::red);
                code.map(|code| self.because(code))
            }
            Class::Mixed => {
                let mut codes = self.outcomes.iter().filter_map(Outcome::red);
                let missed = codes.any(|code| code == Reason::CassetteMiss);
                Some(if missed {
                    Reason::CassetteMiss
                } else {
                    Reason::CassetteGap
                })
            }
        }
    }

    /// Red for want of the product in its own process is nobody's failure; a death is one, however the file runs.
    fn because(&self, code: Reason) -> Reason {
        let of_the_mode = matches!(
            code,
            Reason::CaseFailed
                | Reason::CaseError
                | Reason::CollectionError
                | Reason::MissingCase
                | Reason::SkipFromProduct
        );
        match self.fit {
            Fit::NeedsShared if of_the_mode => Reason::NeedsShared,
            Fit::NeedsShared | Fit::Split => code,
        }
    }
}

/// All cases, base's first.
pub(super) fn entries<'a>(
    files: &[RepoPath],
    leases: &'a LeaseFile,
    evidence: &Evidence<'_>,
    property: &[Observed<'_>],
    base_run: &[Observed<'_>],
) -> Vec<Entry<'a>> {
    let names = Names::of(files);
    expected::cases(evidence.base, files, property.iter().map(|o| o.facts))
        .into_iter()
        .filter_map(|case| {
            let outcomes = over(&case, property)?;
            let lease = case.file.as_ref().and_then(|file| {
                let candidate = Candidate {
                    node: &case.node,
                    file,
                    qualname: &case.qualname,
                };
                names.closest(leases, candidate)
            });
            let leased = match lease {
                Some((_, Match::No | Match::Ambiguous)) | None => Leased::No,
                Some((
                    _,
                    Match::Function | Match::FunctionByPath | Match::Case | Match::CaseByPath,
                )) => Leased::Yes,
            };
            let class = class_of(&outcomes, leased);
            let on_base = match case.kind {
                Kind::Unread => Some(OnBase::Red),
                Kind::Runs | Kind::Silence(_) => on_base(&case, base_run),
            };
            let listed = |file| evidence.need_shared.contains_key(file);
            let fit = if case.file.as_ref().is_some_and(listed) {
                Fit::NeedsShared
            } else {
                Fit::Split
            };
            Some(Entry {
                moved: evidence.moved.get(&case.node).copied(),
                fit,
                case,
                outcomes,
                class,
                on_base,
                lease,
            })
        })
        .collect()
}

/// Its outcome in every attempt; `None` where others speak for it in all of them.
pub(super) fn over(case: &Case, attempts: &[Observed<'_>]) -> Option<Vec<Outcome>> {
    let outcomes: Vec<Option<Outcome>> = attempts
        .iter()
        .map(|attempt| attempt.outcome(case))
        .collect();
    if !outcomes.is_empty() && outcomes.iter().all(Option::is_none) {
        return None;
    }
    Some(
        outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or(Outcome::Missing))
            .collect(),
    )
}

fn on_base(case: &Case, base_run: &[Observed<'_>]) -> Option<OnBase> {
    if base_run.is_empty() || case.origin != Origin::Base {
        return None;
    }
    let outcomes = over(case, base_run)?;
    Some(match class_of(&outcomes, Leased::Yes) {
        Class::StablePass => OnBase::Green,
        Class::Silenced => OnBase::Silenced,
        Class::StableRed | Class::Mixed => OnBase::Red,
    })
}

/// The entry as the report tells it.
pub(super) fn summary(
    entry: Entry<'_>,
    unsilenced: Vec<Outcome>,
    code: Option<Reason>,
    held_out: HeldOutCase,
    property: &[Observed<'_>],
) -> CaseSummary {
    let failure = failure(&entry, property);
    let duration_ms = property
        .iter()
        .find(|attempt| attempt.reached(&entry.case.node))
        .map_or(0.0, |attempt| {
            attempt
                .phases(&entry.case.node)
                .map(|phase| phase.duration_ms)
                .sum()
        });
    let diagnosis = diagnosed(&entry, property);
    CaseSummary {
        node: entry.case.node,
        file: entry.case.file,
        origin: entry.case.origin,
        class: entry.class,
        code: code.or(held_out.code),
        outcomes: entry.outcomes,
        unsilenced,
        held_out: held_out.outcomes,
        held_out_failure: held_out.failure,
        on_base: entry.on_base,
        failure,
        diagnosis,
        duration_ms,
    }
}

/// Why it differs, where it does.
pub(super) fn diagnosed(entry: &Entry<'_>, attempts: &[Observed<'_>]) -> Option<Diagnosis> {
    match entry.class {
        Class::Mixed => {
            let records = attempts
                .iter()
                .flat_map(|attempt| attempt.of_case(&entry.case.node));
            Some(diagnose(&records.collect::<Vec<_>>()).with(entry.moved))
        }
        Class::StablePass | Class::Silenced | Class::StableRed => None,
    }
}

/// What it said in the first attempt in which it did not simply pass.
fn failure(entry: &Entry<'_>, property: &[Observed<'_>]) -> Option<FailureText> {
    let red = entry
        .outcomes
        .iter()
        .position(|outcome| outcome.red().is_some());
    let silent = entry.outcomes.iter().position(Outcome::is_silent);
    let index = red.or(silent)?;
    spoken(&entry.case, property.get(index)?, index)
}

/// What a case said in the first draw in which it was red.
pub(super) fn said(
    case: &Case,
    outcomes: &[(u32, Outcome)],
    attempts: &[Observed<'_>],
) -> Option<FailureText> {
    let (draw, _) = outcomes
        .iter()
        .find(|(_, outcome)| *outcome != Outcome::Passed)?;
    let attempt = attempts
        .iter()
        .find(|attempt| attempt.facts.index == *draw)?;
    spoken(case, attempt, *draw as usize)
}

fn spoken(case: &Case, attempt: &Observed<'_>, index: usize) -> Option<FailureText> {
    let text = |when, exception: Option<ExceptionText>, output: &str| FailureText {
        attempt: index + 1,
        when,
        exception,
        output: output.to_owned(),
    };
    let spoke = |phase: &&Phase| !phase.reported || phase.outcome != PhaseOutcome::Passed;
    if let Some(phase) = attempt.phases(&case.node).find(spoke) {
        let exception = phase.exception.clone().or_else(|| {
            let reason = phase.skip_reason.clone().or_else(|| phase.xfail.clone())?;
            Some(skipped(reason))
        });
        return Some(text(phase.when, exception, &phase.output));
    }
    if let Some(error) = attempt.error(case) {
        return Some(text(When::Setup, Some(error.exception.clone()), ""));
    }
    let silence = attempt.covering(case)?;
    Some(text(When::Setup, Some(skipped(silence.reason.clone())), ""))
}

fn skipped(reason: String) -> ExceptionText {
    ExceptionText {
        kind: "Skipped".to_owned(),
        message: reason,
        traceback: String::new(),
    }
}
