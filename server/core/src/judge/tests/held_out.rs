//! What held-out pins hold against the patch, and what they only warn of.

use super::*;
use crate::judge::HeldOutWants;
use crate::policy::Runs;

const OTHER: &str = "tests/sealed/test_core.py::test_other";
const SEALED_TEXT: &str = "AssertionError: assert 2028 == 2026";

fn both() -> Attempt {
    attempt().pass(EMPTY).pass(THREE)
}

fn wrong() -> Attempt {
    attempt().pass(EMPTY).fail(THREE, SEALED_TEXT)
}

impl Attempt {
    fn draw(mut self, number: u32) -> Self {
        self.0.index = number;
        self.0.lane = Lane::HeldOut;
        self
    }
}

/// Head passes under the policy's pins; base did this then, and these are the draws.
fn drawn(on_base: Attempt, head: Vec<Attempt>, base_under: Vec<Attempt>) -> Trial {
    Trial {
        base_run: vec![on_base],
        draws: 2,
        held_out: head,
        base_under,
        ..trial(both(), seven(&both()))
    }
}

fn wants(trial: &Trial) -> HeldOutWants {
    let facts = |attempts: &[Attempt]| attempts.iter().map(|a| a.0.clone()).collect::<Vec<_>>();
    let (head, base) = (facts(&trial.held_out), facts(&trial.base_under));
    let (property, base_run) = (facts(&trial.property), facts(&trial.base_run));
    let evidence = Evidence {
        held_out: HeldOutEvidence {
            planned: trial.draws,
            head: &head,
            base: &base,
        },
        ..Evidence::before(&trial.base.0, &base_run, &property, &trial.need_shared)
    };
    let property: Vec<Observed<'_>> = property.iter().map(Observed::of).collect();
    let base_run: Vec<Observed<'_>> = base_run.iter().map(Observed::of).collect();
    let leases = LeaseFile::default();
    let files = trial.files();
    let entries = docket::entries(&files, &leases, &evidence, &property, &base_run);
    crate::judge::held_out::hear(
        &files,
        &trial.runs,
        evidence.base,
        &entries,
        &evidence.held_out,
    )
    .wants
}

#[test]
fn the_table_of_held_out_failures() {
    use Reason::{HeldOutPins, PinSensitive};
    type Row = (
        &'static str,
        Attempt,
        Vec<Attempt>,
        Vec<Attempt>,
        Vec<Reason>,
        Vec<Reason>,
    );
    let rows: [Row; 9] = [
        (
            "holds",
            both(),
            vec![both().draw(0), both().draw(1)],
            vec![],
            vec![],
            vec![],
        ),
        (
            "green on base",
            both(),
            vec![wrong().draw(0), both().draw(1)],
            vec![both().draw(0)],
            vec![HeldOutPins],
            vec![],
        ),
        (
            "red on base too",
            both(),
            vec![wrong().draw(0), both().draw(1)],
            vec![wrong().draw(0)],
            vec![],
            vec![PinSensitive],
        ),
        (
            "green on base once",
            both(),
            vec![wrong().draw(0), wrong().draw(1)],
            vec![wrong().draw(0), both().draw(1)],
            vec![HeldOutPins],
            vec![],
        ),
        (
            "base dies under it",
            both(),
            vec![wrong().draw(0), both().draw(1)],
            vec![attempt().pass(EMPTY).die(End::Exited, THREE).draw(0)],
            vec![],
            vec![PinSensitive],
        ),
        (
            "the fix, failing twice",
            wrong(),
            vec![wrong().draw(0), wrong().draw(1)],
            vec![],
            vec![HeldOutPins],
            vec![],
        ),
        (
            "the fix, failing once and once more",
            wrong(),
            vec![wrong().draw(0), both().draw(1), wrong().draw(2)],
            vec![],
            vec![HeldOutPins],
            vec![],
        ),
        (
            "the fix, failing once only",
            wrong(),
            vec![wrong().draw(0), both().draw(1), both().draw(2)],
            vec![],
            vec![],
            vec![PinSensitive],
        ),
        (
            "a stored failure is not outvoted",
            both(),
            vec![wrong().draw(0), both().draw(1), both().draw(0)],
            vec![both().draw(0)],
            vec![HeldOutPins],
            vec![],
        ),
    ];
    for (row, on_base, head, base_under, fails, warns) in rows {
        let judged = drawn(on_base, head, base_under).judge();
        assert_eq!((src(&judged), warned(&judged)), (fails, warns), "{row}");
    }
}

#[test]
fn what_is_missing_is_asked_for_and_never_judged() {
    let ask = |on_base, head| wants(&drawn(on_base, head, vec![]));
    let asked = ask(both(), vec![wrong().draw(0), wrong().draw(1)]);
    assert_eq!((asked.again, asked.base), (None, vec![0, 1]));
    assert_eq!(asked.suspects, [THREE]);
    let asked = ask(wrong(), vec![both().draw(0), wrong().draw(1)]);
    assert_eq!((asked.again, asked.base), (Some(2), vec![]));
    assert!(ask(both(), vec![both().draw(0), both().draw(1)]).is_empty());

    let judge = |head| drawn(both(), head, vec![]).judge_at(GATE);
    for head in [
        vec![],
        vec![both().draw(0)],
        vec![wrong().draw(0), both().draw(1)],
    ] {
        assert!(matches!(
            judge(head),
            Err(Incomplete::HeldOut { planned: 2, .. })
        ));
    }
    // The same draw twice is one draw.
    assert!(judge(vec![both().draw(0), both().draw(0)]).is_err());
}

#[test]
fn a_score_that_is_red_already_deserves_none() {
    let files = trial(both(), vec![]).files();
    let deserves = |attempts: &[Attempt]| {
        let property: Vec<AttemptFacts> = attempts.iter().map(|a| a.0.clone()).collect();
        deserves_held_out(&files, None, 2, &both().0, &property)
    };
    assert!(deserves(&[both(), both()]));
    assert!(!deserves(&[both()]));
    assert!(!deserves(&[both(), wrong()]));
    assert!(!deserves(&[both(), both().ends(End::Exited)]));
    assert!(!deserves(&[both(), attempt().pass(EMPTY)]));
    // A silence is flake_lease's affair.
    assert!(deserves(&vec![
        attempt().pass(EMPTY).skip(
            THREE,
            "r",
            Raiser::Sealed
        );
        2
    ]));
}

#[test]
fn what_the_policy_names_is_exempt() {
    let named = |name: &str| Trial {
        runs: Runs {
            pin_sensitive: vec![name.parse().unwrap()],
            ..drawn(both(), vec![], vec![]).runs
        },
        ..drawn(
            both(),
            vec![wrong().draw(0), both().draw(1)],
            vec![both().draw(0)],
        )
    };
    assert_eq!(src(&named(THREE).judge()), []);
    assert_eq!(src(&named(OTHER).judge()), [Reason::HeldOutPins]);
}

#[test]
fn going_missing_or_silent_is_failing() {
    for odd in [
        attempt().pass(EMPTY),
        attempt().pass(EMPTY).skip(THREE, "r", Raiser::Sealed),
        attempt().pass(EMPTY).skip(THREE, "r", Raiser::Product),
        attempt().pass(EMPTY).die(End::Exited, THREE),
        attempt().error(CORE, "E: x"),
    ] {
        let trial = drawn(
            both(),
            vec![odd.draw(0), both().draw(1)],
            vec![both().draw(0)],
        );
        assert!(
            src(&trial.judge())
                .iter()
                .all(|r| *r == Reason::HeldOutPins)
        );
        assert!(!src(&trial.judge()).is_empty());
    }
    // What is silent under the policy's pins may speak under others, if it speaks well.
    let skips = attempt().pass(EMPTY).skip(THREE, "r", Raiser::Sealed);
    let silent = |head: Attempt| Trial {
        property: seven(&skips),
        ..drawn(
            both(),
            vec![head.draw(0), skips.clone().draw(1)],
            vec![both().draw(0)],
        )
    };
    assert_eq!(src(&silent(both()).judge()), []);
    assert_eq!(src(&silent(wrong()).judge()), [Reason::HeldOutPins]);
}

#[test]
fn a_death_is_told_once_by_the_case_it_was_in() {
    let dead = attempt().die(End::Killed, EMPTY).collect(THREE).draw(0);
    let trial = drawn(both(), vec![dead, both().draw(1)], vec![both().draw(0)]);
    let judged = trial.judge();
    assert_eq!(src(&judged), [Reason::HeldOutPins]);
    assert_eq!(judged.held_out_failures(), [EMPTY]);
    assert_eq!(summary(&judged, THREE).code, Some(Reason::HeldOutPins));
}

#[test]
fn names_that_head_makes_up_under_a_draw_are_not_told() {
    let secret = "tests/sealed/test_core.py::test_three[seed 4242]";
    let extra = both().fail(secret, SEALED_TEXT);
    let judged = drawn(
        both(),
        vec![extra.clone().draw(0), both().draw(1)],
        vec![both().draw(0)],
    )
    .judge();
    let [ground] = judged.verdict(VerdictKind::SrcScore).grounds() else {
        unreachable!("{judged:?}")
    };
    assert_eq!(ground.subject.as_deref(), Some(THREE));
    assert!(ground.detail.contains("seed 4242"), "the operator sees it");
    assert!(
        judged
            .cases()
            .iter()
            .all(|case| case.node.as_str() != secret)
    );
    // Base makes the same name up under the same draw: then it is the test's own.
    let judged = drawn(
        both(),
        vec![extra.clone().draw(0), both().draw(1)],
        vec![extra.draw(0)],
    )
    .judge();
    assert_eq!(
        (src(&judged), warned(&judged)),
        (vec![], vec![Reason::PinSensitive])
    );
    // From no sealed function at all: not even a name.
    let foreign = both().pass("tests/sealed/test_core.py::test_4242");
    let judged = drawn(
        both(),
        vec![foreign.draw(0), both().draw(1)],
        vec![both().draw(0)],
    )
    .judge();
    let [ground] = judged.verdict(VerdictKind::SrcScore).grounds() else {
        unreachable!("{judged:?}")
    };
    assert_eq!(
        (ground.reason, &ground.subject),
        (Reason::HeldOutPins, &None)
    );
}

#[test]
fn a_spoiled_record_is_tampering_here_too() {
    let spoiled = both().ends(End::Protocol).draw(0);
    let judged = drawn(both(), vec![spoiled, both().draw(1)], vec![]).judge();
    assert_eq!(
        codes(&judged, VerdictKind::OracleIntegrity),
        [Reason::TamperResultChannel]
    );
}
