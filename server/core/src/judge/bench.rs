//! Where it all comes together: terms and evidence to three words.

use super::docket;
use super::judged::{About, Confidence, Ground, Judged, Origin, Verdict};
use super::observed::Observed;
use super::silences::{Heard, Hearing};
use super::{
    Evidence, Incomplete, LONGEST, Terms, VerdictKind, Word, alive, held_out, merge_lane,
    over_pinned, prose, src_score, tampers,
};
use crate::id::{RepoPath, UnixTime};
use crate::lease::{LeaseFile, LeaseFileError};
use crate::outcome::{Class, End};
use crate::reason::Reason;
use std::collections::BTreeSet;

pub(super) fn judge(
    terms: Terms<'_>,
    evidence: &Evidence<'_>,
    gate: UnixTime,
) -> Result<Judged, Incomplete> {
    let property: Vec<Observed<'_>> = evidence.property.iter().map(Observed::of).collect();
    let died = property
        .iter()
        .any(|attempt| attempt.facts.end.end != End::Finished);
    if property.is_empty() || (property.len() < terms.reruns && !died) {
        let (seen, planned) = (property.len(), terms.reruns);
        return Err(Incomplete::Attempts { seen, planned });
    }
    let base_run: Vec<Observed<'_>> = evidence.base_run.iter().map(Observed::of).collect();
    let side: Vec<Observed<'_>> = evidence.lease_side.iter().map(Observed::of).collect();
    let (leases, invalid) = match LeaseFile::parse(terms.leases) {
        Ok(leases) => (leases, None),
        Err(error) => (LeaseFile::default(), Some(error)),
    };
    let entries = docket::entries(terms.files, &leases, evidence, &property, &base_run);
    let mut heard = match &invalid {
        // Whether a silence is leased cannot be told; that the file does not parse is.
        Some(error) => unreadable(terms.lease_path, error),
        None => Hearing {
            entries: &entries,
            leases: &leases,
            side: &side,
            functions: evidence.functions,
            short: terms.short,
            gate,
        }
        .hear()?,
    };
    let mut src = src_score::grounds(&entries, &property);
    let must_fail = tampers::wants(&entries, terms.shared, evidence.must_fail);
    if src.is_empty() && !must_fail.is_empty() {
        let wanted = must_fail.head.len() + must_fail.base.len();
        return Err(Incomplete::MustFail(wanted));
    }
    let held = evidence.held_out;
    let mut held_out = held_out::hear(terms.files, terms.runs, evidence.base, &entries, &held);
    let drawn: BTreeSet<u32> = held.head.iter().map(|attempt| attempt.index).collect();
    // Never fewer than the policy asks for, whatever the pipeline planned.
    let planned = held.planned.max(terms.runs.held_out);
    if src.is_empty() && (drawn.len() < planned as usize || !held_out.wants.is_empty()) {
        let seen = drawn.len();
        return Err(Incomplete::HeldOut { seen, planned });
    }
    src.append(&mut held_out.src);
    src.append(&mut heard.src);
    let mut merge = merge_lane::hear(
        terms.touched,
        &terms.runs.forbid_marks,
        &evidence.merge,
        evidence.moved,
    )?;
    heard.flake.append(&mut merge.flake);
    let mut oracle = terms.oracle;
    let dead = alive::dead(evidence.liveness.null);
    src.extend(dead.clone());
    oracle.extend(dead);
    let done = tampers_of(evidence, terms.shared, &entries)?;
    src.extend(done.clone());
    oracle.extend(done);
    oracle.extend(tampered(&property, "the property lane"));
    oracle.extend(held_out::tampered(held.head));
    let side_tampered = tampered(&side, "the lease side run");
    src.extend(side_tampered.clone());
    oracle.extend(side_tampered);
    let mut warnings = terms.warnings;
    warnings.extend(entries.iter().filter(|e| e.case.origin == Origin::Extra && e.class == Class::StablePass).map(|entry| Ground {
        reason: Reason::ExtraCase,
        about: About::Case,
        subject: Some(entry.case.node.to_string()),
        detail: "base does not have it; it comes from a sealed function of base's, and passed every time".to_owned(),
        seen: None,
    }));
    warnings.append(&mut heard.warnings);
    warnings.append(&mut merge.warnings);
    warnings.extend(alive::weak(evidence.liveness.mutants));
    warnings.append(&mut held_out.warnings);
    warnings.extend(over_pinned::unused(
        terms.cassettes,
        evidence
            .property
            .iter()
            .chain(evidence.merge.runs.iter().flat_map(|run| &run.attempts)),
    ));
    let seen = confidence(property.len());
    warnings.extend(thin(seen, &entries));
    let cases = entries
        .into_iter()
        .map(|entry| {
            let (unsilenced, lease_code) = heard.cases.remove(&entry.case.node).unwrap_or_default();
            let code = entry.code().or(lease_code);
            let under = held_out.cases.remove(&entry.case.node).unwrap_or_default();
            docket::summary(entry, unsilenced, code, under, &property)
        })
        .collect();
    Ok(Judged {
        verdicts: [
            verdict(VerdictKind::SrcScore, src),
            verdict(VerdictKind::OracleIntegrity, oracle),
            verdict(VerdictKind::FlakeLease, heard.flake),
        ],
        warnings,
        cases,
        merge: merge.summary,
        leases: heard.leases,
        held_out_failures: held_out.failures,
        confidence: seen,
        gate_time: gate,
        valid_until: valid_until(gate, heard.earliest),
    })
}

/// What the product did to its judge, in pinned and held-out attempts and under must-fail: held against both.
fn tampers_of(
    evidence: &Evidence<'_>,
    shared: &[RepoPath],
    entries: &[docket::Entry<'_>],
) -> Result<Vec<Ground>, Incomplete> {
    let (base, held) = (evidence.base_run, evidence.held_out.head);
    let heard = tampers::hear(evidence);
    if heard.ask.is_some() {
        return Err(Incomplete::AskBase);
    }
    let mut done = heard.grounds;
    done.extend(tampers::canaries(evidence.property, base, About::Case));
    // The draw must not be told by what was seen under it.
    done.extend(tampers::canaries(held, base, About::HeldOut));
    done.extend(tampers::must_fail(entries, shared, evidence.must_fail));
    Ok(done)
}

/// `oracle_integrity` FAIL, the others not asked.
pub(super) fn unrun(grounds: Vec<Ground>, warnings: Vec<Ground>, gate: UnixTime) -> Judged {
    let not_run = |kind| Verdict {
        kind,
        word: Word::NotRun,
        grounds: Vec::new(),
    };
    Judged {
        verdicts: [
            not_run(VerdictKind::SrcScore),
            Verdict {
                kind: VerdictKind::OracleIntegrity,
                word: Word::Fail,
                grounds,
            },
            not_run(VerdictKind::FlakeLease),
        ],
        warnings,
        cases: Vec::new(),
        merge: None,
        leases: Vec::new(),
        held_out_failures: Vec::new(),
        confidence: confidence(0),
        gate_time: gate,
        valid_until: valid_until(gate, None),
    }
}

fn verdict(kind: VerdictKind, grounds: Vec<Ground>) -> Verdict {
    let word = if grounds.is_empty() {
        Word::Pass
    } else {
        Word::Fail
    };
    Verdict {
        kind,
        word,
        grounds,
    }
}

fn valid_until(gate: UnixTime, earliest: Option<UnixTime>) -> UnixTime {
    let longest = UnixTime(gate.0.saturating_add(LONGEST));
    earliest.map_or(longest, |lease| lease.min(longest))
}

fn unreadable(path: &str, error: &LeaseFileError) -> Heard {
    Heard {
        flake: vec![Ground {
            reason: Reason::LeaseFileInvalid,
            about: About::Patch,
            subject: Some(path.to_owned()),
            detail: error.to_string(),
            seen: None,
        }],
        ..Heard::default()
    }
}

/// The result channel held something that the harness did not write.
fn tampered(attempts: &[Observed<'_>], lane: &str) -> Option<Ground> {
    let numbers: Vec<usize> = (1..)
        .zip(attempts)
        .filter(|(_, attempt)| attempt.facts.end.end == End::Protocol)
        .map(|(number, _)| number)
        .collect();
    let first = attempts.get(numbers.first()?.checked_sub(1)?)?;
    Some(Ground {
        reason: Reason::TamperResultChannel,
        about: About::Case,
        subject: first.facts.end.running.as_ref().map(ToString::to_string),
        detail: format!(
            "in {} of {lane}, something came that is no record",
            prose::attempts(&numbers, attempts.len())
        ),
        seen: None,
    })
}

/// Nothing was seen in n attempts: with 95 % confidence the rate is below `1 - 0.05^(1/n)`.
pub(super) fn confidence(attempts: usize) -> Confidence {
    let bound = match u32::try_from(attempts) {
        Ok(0) | Err(_) => 1.0,
        Ok(n) => 1.0 - 0.05_f64.powf(1.0 / f64::from(n)),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and a million"
    )]
    let upper_bound_ppm = (bound * 1e6).round() as u32;
    Confidence {
        attempts,
        upper_bound_ppm,
    }
}

/// Says how little the passes say, until they say that a flake is rarer than one in a hundred.
fn thin(seen: Confidence, entries: &[docket::Entry<'_>]) -> Option<Ground> {
    let passes = entries.iter().any(|entry| entry.class == Class::StablePass);
    (passes && seen.upper_bound_ppm > 10_000).then(|| Ground {
        reason: Reason::ThinEvidence,
        about: About::Patch,
        subject: None,
        detail: format!(
            "0 failures in {} attempts: a flake that fails up to {}.{} % of the time may hide (95 % bound)",
            seen.attempts,
            seen.upper_bound_ppm / 10_000,
            seen.upper_bound_ppm / 1_000 % 10
        ),
        seen: None,
    })
}
