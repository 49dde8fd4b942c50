//! What holds for any evidence at all.

use super::*;
use proptest::prelude::*;

/// What one of three cases may do in one attempt.
fn act(attempt: Attempt, node: &str, choice: u8) -> Attempt {
    match choice {
        0..=3 | 13.. => attempt.pass(node),
        4 => attempt.fail(node, "E: x"),
        5 => attempt.fail(node, "E: y"),
        6 => attempt.skip(node, "r", Raiser::Sealed),
        7 => attempt.skip(node, "r", Raiser::Product),
        8 => attempt.xfail(node, "E: x", Raiser::Sealed),
        9 => attempt.xpass(node),
        10 => attempt.collect(node),
        11 => attempt.collect(node).record(node, vec![phase(When::Setup)]),
        12 => attempt,
    }
}

fn end(choice: u8) -> End {
    match choice {
        0 => End::Exited,
        1 => End::CaseTimeout,
        2 => End::Protocol,
        3 => End::OutOfMemory,
        _ => End::Finished,
    }
}

fn any_attempt() -> impl Strategy<Value = Attempt> {
    (proptest::array::uniform4(0..60_u8), 0..30_u8).prop_map(|([a, b, c, d], how)| {
        let attempt = act(
            act(act(attempt(), EMPTY, a), THREE, b),
            "tests/sealed/test_z.py::test_z",
            c,
        );
        act(attempt, "tests/sealed/test_core.py::test_three[9]", d).ends(end(how))
    })
}

proptest! {
    #[test]
    fn a_pass_means_every_case_of_base_passed_or_is_silenced(attempts in proptest::collection::vec(any_attempt(), 1..6)) {
        let base = attempt().pass(EMPTY).pass(THREE).pass("tests/sealed/test_z.py::test_z");
        let judged = trial(base, attempts.clone()).judge();
        let score = judged.verdict(VerdictKind::SrcScore);
        prop_assert_eq!(score.word() == Word::Pass, score.grounds().is_empty());
        if score.word() == Word::Pass {
            for case in judged.cases().iter().filter(|case| case.origin == Origin::Base) {
                prop_assert!(matches!(case.class, Class::StablePass | Class::Silenced), "{case:?}");
            }
            for attempt in &attempts {
                prop_assert_eq!(attempt.0.end.end, End::Finished);
            }
        }
        for case in judged.cases() {
            prop_assert_eq!(case.outcomes.len(), attempts.len());
            if case.class == Class::StablePass {
                prop_assert!(case.code.is_none());
            } else {
                prop_assert!(case.code.is_some(), "{case:?}");
            }
        }
        let all_pass = judged.verdicts().iter().all(|v| v.word() == Word::Pass);
        prop_assert_eq!(all_pass, judged.cases().iter().all(|c| c.code.is_none()) && attempts.iter().all(|a| a.0.end.end == End::Finished) && judged.cases().iter().any(|c| c.class == Class::StablePass));
    }

    #[test]
    fn another_attempt_never_turns_a_fail_into_a_pass(attempts in proptest::collection::vec(any_attempt(), 1..5), more in any_attempt()) {
        let base = attempt().pass(EMPTY).pass(THREE).pass("tests/sealed/test_z.py::test_z");
        let before = trial(base.clone(), attempts.clone()).judge();
        let mut attempts = attempts;
        attempts.push(more);
        let after = trial(base, attempts).judge();
        let passes = |judged: &Judged| judged.verdict(VerdictKind::SrcScore).word() == Word::Pass;
        prop_assert!(passes(&before) || !passes(&after));
    }
}
