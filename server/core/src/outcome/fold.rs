//! Phases to one outcome: a case passed only if set-up, call and tear-down all did and all were reported.

use super::{End, Phase, PhaseOutcome, Raiser, Signature, When};
use crate::reason::Reason;

/// What one case did in one attempt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// All phases passed.
    Passed,
    /// Skipped by the sealed side.
    Skipped(Signature),
    /// Failed as an xfail expects.
    Xfailed(Signature),
    /// Passed although an xfail expects a failure.
    Xpassed,
    /// Red, with its code and what was seen; a death has no signatures.
    Red(Reason, Vec<Signature>),
    /// Not reported by an attempt that came to its end.
    Missing,
}

impl Outcome {
    /// One word for reports.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Skipped(_) => "skipped",
            Self::Xfailed(_) => "xfailed",
            Self::Xpassed => "xpassed",
            Self::Red(code, _) => match code.as_outcome() {
                Some(word) => word,
                None => code.code(),
            },
            Self::Missing => "missing",
        }
    }

    /// Skipped, xfailed or xpassed: nothing was held against it.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        match self {
            Self::Skipped(_) | Self::Xfailed(_) | Self::Xpassed => true,
            Self::Passed | Self::Red(..) | Self::Missing => false,
        }
    }

    /// The code that makes it red; `None` where it is not.
    #[must_use]
    pub const fn red(&self) -> Option<Reason> {
        match self {
            Self::Red(code, _) => Some(*code),
            Self::Missing => Some(Reason::MissingCase),
            Self::Passed | Self::Skipped(_) | Self::Xfailed(_) | Self::Xpassed => None,
        }
    }
}

impl Reason {
    /// The everyday word of a red outcome, where it has one.
    const fn as_outcome(self) -> Option<&'static str> {
        if matches!(self, Self::CaseFailed) {
            Some("failed")
        } else if matches!(self, Self::CaseError) {
            Some("error")
        } else {
            None
        }
    }
}

/// What every case is that an attempt was in, or never reached, when it ended like this.
#[must_use]
pub const fn death(end: End) -> Option<Reason> {
    match end {
        End::Finished => None,
        End::Exited | End::Killed => Some(Reason::ProcessExit),
        End::CaseTimeout | End::AttemptTimeout => Some(Reason::Timeout),
        End::OutOfMemory => Some(Reason::OutOfMemory),
        End::OutputLimit => Some(Reason::OutputLimit),
        End::Protocol => Some(Reason::TamperResultChannel),
    }
}

/// The outcome of a case whose phases are these, in an attempt that ended so.
///
/// The worst phase speaks: a death over a product's skip, over a failure, over an xfail, over a skip. What is left
/// passed only if all three phases are there.
#[must_use]
pub fn fold(phases: &[&Phase], end: End) -> Outcome {
    if phases.iter().any(|phase| !phase.reported) {
        // A finished attempt has no unreported phase; one that claims both is not believed.
        return Outcome::Red(death(end).unwrap_or(Reason::ProcessExit), Vec::new());
    }
    let phases = || phases.iter().copied();
    let from_product: Vec<Signature> = phases()
        .filter(|phase| skipped_by_product(phase))
        .map(silence)
        .collect();
    if !from_product.is_empty() {
        return Outcome::Red(Reason::SkipFromProduct, from_product);
    }
    let failed: Vec<&Phase> = phases()
        .filter(|phase| phase.outcome == PhaseOutcome::Failed && !phase.xpassed)
        .collect();
    if let Some(first) = failed.first() {
        let code = match first.when {
            When::Call => Reason::CaseFailed,
            When::Setup | When::Teardown => Reason::CaseError,
        };
        return Outcome::Red(code, failed.iter().map(|phase| failure(phase)).collect());
    }
    let skipped = |phase: &&Phase| phase.outcome == PhaseOutcome::Skipped;
    if let Some(phase) = phases().find(|p| skipped(p) && p.xfail.is_some()) {
        return Outcome::Xfailed(silence(phase));
    }
    if let Some(phase) = phases().find(skipped) {
        return Outcome::Skipped(silence(phase));
    }
    if phases().any(|phase| phase.xpassed) {
        return Outcome::Xpassed;
    }
    let all = [When::Setup, When::Call, When::Teardown]
        .iter()
        .all(|when| phases().any(|phase| phase.when == *when));
    if all {
        Outcome::Passed
    } else {
        death(end).map_or(Outcome::Missing, |code| Outcome::Red(code, Vec::new()))
    }
}

fn skipped_by_product(phase: &Phase) -> bool {
    phase.outcome == PhaseOutcome::Skipped && phase.by == Raiser::Product
}

fn failure(phase: &Phase) -> Signature {
    phase
        .exception
        .as_ref()
        .map_or_else(|| Signature::written(""), Signature::of)
}

fn silence(phase: &Phase) -> Signature {
    match (&phase.exception, &phase.skip_reason, &phase.xfail) {
        (_, Some(reason), _) => Signature::skipped(reason),
        (Some(exception), None, _) => Signature::of(exception),
        (None, None, Some(reason)) => Signature::written(&format!("XFailed: {reason}")),
        (None, None, None) => Signature::skipped(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ExceptionText;

    fn phase(when: When, outcome: PhaseOutcome) -> Phase {
        Phase {
            when,
            outcome,
            xfail: None,
            xpassed: false,
            skip_reason: None,
            by: Raiser::Sealed,
            exception: None,
            output: String::new(),
            duration_ms: 0.0,
            reported: true,
            tamper: Vec::new(),
        }
    }

    fn raised(when: When, text: &str) -> Phase {
        let exception = ExceptionText {
            kind: "E".into(),
            message: text.into(),
            traceback: String::new(),
        };
        Phase {
            exception: Some(exception),
            ..phase(when, PhaseOutcome::Failed)
        }
    }

    fn skipped(when: When, by: Raiser, xfail: Option<&str>) -> Phase {
        Phase {
            by,
            skip_reason: Some("r".into()),
            xfail: xfail.map(Into::into),
            ..phase(when, PhaseOutcome::Skipped)
        }
    }

    #[test]
    fn the_worst_phase_speaks() {
        use PhaseOutcome::Passed;
        use When::{Call, Setup, Teardown};
        let pass = |when| phase(when, Passed);
        let red = |code, texts: &[&str]| {
            Outcome::Red(
                code,
                texts
                    .iter()
                    .map(|t| Signature::written(&format!("E: {t}")))
                    .collect(),
            )
        };
        let r = Signature::written("Skipped: r");
        let silent = Outcome::Skipped(r.clone());
        let running = Phase {
            reported: false,
            ..phase(Call, PhaseOutcome::Failed)
        };
        let xpassed = Phase {
            xpassed: true,
            xfail: Some("k".into()),
            ..pass(Call)
        };
        let strict = Phase {
            xpassed: true,
            ..raised(Call, "[XPASS(strict)]")
        };
        for (phases, end, right) in [
            (
                vec![pass(Setup), pass(Call), pass(Teardown)],
                End::Finished,
                Outcome::Passed,
            ),
            (
                vec![pass(Setup), pass(Call), pass(Teardown)],
                End::Exited,
                Outcome::Passed,
            ),
            (
                vec![pass(Setup), raised(Call, "a"), pass(Teardown)],
                End::Finished,
                red(Reason::CaseFailed, &["a"]),
            ),
            (
                vec![pass(Setup), raised(Call, "a"), raised(Teardown, "b")],
                End::Finished,
                red(Reason::CaseFailed, &["a", "b"]),
            ),
            (
                vec![raised(Setup, "a"), pass(Teardown)],
                End::Finished,
                red(Reason::CaseError, &["a"]),
            ),
            (
                vec![pass(Setup), pass(Call), raised(Teardown, "b")],
                End::Finished,
                red(Reason::CaseError, &["b"]),
            ),
            (
                vec![skipped(Setup, Raiser::Sealed, None), pass(Teardown)],
                End::Finished,
                silent.clone(),
            ),
            (
                vec![
                    pass(Setup),
                    skipped(Call, Raiser::Runner, None),
                    pass(Teardown),
                ],
                End::Finished,
                silent,
            ),
            (
                vec![skipped(Setup, Raiser::Sealed, None), raised(Teardown, "b")],
                End::Finished,
                red(Reason::CaseError, &["b"]),
            ),
            (
                vec![
                    pass(Setup),
                    skipped(Call, Raiser::Sealed, Some("k")),
                    pass(Teardown),
                ],
                End::Finished,
                Outcome::Xfailed(r.clone()),
            ),
            (
                vec![
                    pass(Setup),
                    skipped(Call, Raiser::Product, Some("k")),
                    pass(Teardown),
                ],
                End::Finished,
                Outcome::Red(Reason::SkipFromProduct, vec![r.clone()]),
            ),
            (
                vec![
                    pass(Setup),
                    raised(Call, "a"),
                    skipped(Teardown, Raiser::Product, None),
                ],
                End::Finished,
                Outcome::Red(Reason::SkipFromProduct, vec![r]),
            ),
            (
                vec![pass(Setup), xpassed.clone(), pass(Teardown)],
                End::Finished,
                Outcome::Xpassed,
            ),
            (
                vec![pass(Setup), strict, pass(Teardown)],
                End::Finished,
                Outcome::Xpassed,
            ),
            (
                vec![pass(Setup), xpassed, raised(Teardown, "b")],
                End::Finished,
                red(Reason::CaseError, &["b"]),
            ),
            (
                vec![pass(Setup), running.clone()],
                End::OutOfMemory,
                red(Reason::OutOfMemory, &[]),
            ),
            (
                vec![pass(Setup), running],
                End::Finished,
                red(Reason::ProcessExit, &[]),
            ),
            (
                vec![pass(Setup), pass(Call)],
                End::Killed,
                red(Reason::ProcessExit, &[]),
            ),
            (
                vec![pass(Setup), pass(Call)],
                End::Finished,
                Outcome::Missing,
            ),
            (
                vec![pass(Call), pass(Teardown)],
                End::Finished,
                Outcome::Missing,
            ),
            (vec![], End::Finished, Outcome::Missing),
            (vec![], End::CaseTimeout, red(Reason::Timeout, &[])),
        ] {
            let phases: Vec<&Phase> = phases.iter().collect();
            assert_eq!(fold(&phases, end), right, "{phases:#?}");
        }
    }
}
