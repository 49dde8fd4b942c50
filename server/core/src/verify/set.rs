//! Three verdicts as one set, and the files beside them.

use super::bundle::{Steps, open};
use super::{Check, SignedVerdict, Step, Unverified, VerdictDir};
use crate::id::Digest;
use crate::judge::Word;
use crate::keys::KeyRing;
use crate::statement::{
    Predicate, STATEMENT_TYPE, Statement, TEST_RESULT_STEM, TEST_RESULT_TYPE, TestResult, subjects,
};
use crate::text::shown;

pub(super) fn checks(
    dir: &VerdictDir,
    keys: &KeyRing,
    verdicts: &[Result<SignedVerdict, Unverified>; 3],
    checks: &mut Vec<Check>,
) {
    if let [Ok(first), Ok(second), Ok(third)] = verdicts {
        checks.push(one_set(first, [second, third]));
    }
    // The report and the copy are judged by src_score's statement: one_set has found the others to agree with it.
    let [Ok(src_score), ..] = verdicts else {
        return;
    };
    checks.push(report(dir, src_score));
    test_result(dir, keys, src_score, checks);
}

/// Everything but the word and its reasons must be equal.
fn one_set(first: &SignedVerdict, others: [&SignedVerdict; 2]) -> Check {
    let common = |verdict: &SignedVerdict| Predicate {
        result: crate::statement::Result::NotRun,
        reasons: Vec::new(),
        ..verdict.predicate.clone()
    };
    for other in others {
        if other.key != first.key {
            return Check::failed(
                Step::OneSet,
                other.kind.file_stem(),
                "signed by another key than src_score",
            );
        }
        if common(other) != common(first) {
            let seen = if other.predicate.score == first.predicate.score {
                "says otherwise of the same score than src_score does"
            } else {
                "of another score than src_score"
            };
            return Check::failed(Step::OneSet, other.kind.file_stem(), seen);
        }
    }
    Check::held(
        Step::OneSet,
        first.predicate.score.clone(),
        "all three of one score",
    )
}

fn report(dir: &VerdictDir, verdict: &SignedVerdict) -> Check {
    const NAME: &str = "report.json";
    let Some(bytes) = dir.get(NAME) else {
        return Check::not_asked(Step::Report, NAME, "not in the folder");
    };
    let digest = Digest::of(bytes);
    let reports = &verdict.predicate.reports;
    let known = [
        (&reports.full, "the one for CI and maintainers"),
        (&reports.agent, "the one for agents"),
        (&reports.operator, "the operator's"),
    ];
    match known.into_iter().find(|(known, _)| **known == digest) {
        Some((_, whose)) => Check::held(Step::Report, NAME, whose),
        None => Check::failed(Step::Report, NAME, "not a report that the statements name"),
    }
}

fn test_result(dir: &VerdictDir, keys: &KeyRing, verdict: &SignedVerdict, checks: &mut Vec<Check>) {
    let name = format!("{TEST_RESULT_STEM}.sigstore.json");
    let Some(bytes) = dir.get(&name) else {
        checks.push(Check::not_asked(
            Step::TestResult,
            name,
            "not in the folder",
        ));
        return;
    };
    let mut steps = Steps {
        stem: TEST_RESULT_STEM,
        checks,
    };
    let Ok(opened) = open(bytes, keys, &mut steps) else {
        return;
    };
    let result = if opened.key == verdict.key {
        says_the_same(&opened.payload, verdict)
    } else {
        Err("signed by another key than src_score".to_owned())
    };
    checks.push(match result {
        Ok(seen) => Check::held(Step::TestResult, name, seen),
        Err(seen) => Check::failed(Step::TestResult, name, seen),
    });
}

fn says_the_same(payload: &[u8], verdict: &SignedVerdict) -> Result<String, String> {
    let statement: Statement<TestResult> =
        serde_json::from_slice(payload).map_err(|e| shown(&e.to_string(), 200))?;
    let predicate = &verdict.predicate;
    if statement.kind != STATEMENT_TYPE || statement.predicate_type != TEST_RESULT_TYPE {
        return Err(format!(
            "a statement of another kind: {}",
            shown(&statement.predicate_type, 80)
        ));
    }
    if statement.subject != subjects(&predicate.head, &predicate.base, &predicate.src_trees) {
        return Err("about other commits than src_score".to_owned());
    }
    if statement.predicate.result != predicate.result || verdict.word() == Word::NotRun {
        return Err("another result than src_score".to_owned());
    }
    Ok("says what src_score says".to_owned())
}
