//! What leaves the server, whatever a product echoes: no text beyond the reader's level, and of held-out attempts nothing but
//! a case's id and code.

use super::*;
use crate::junit;
use crate::policy::FeedbackLevel;
use crate::report::{AttemptSource, Audience, Material, Report, Timings};
use proptest::prelude::*;

/// Stands for everything that a product may have been given: sealed text, arguments, environment.
const ECHO: &str = "ECHOED-4711";
/// The same under held-out pins.
const DRAWN: &str = "DRAWN-0815";

/// One case of an attempt that says this wherever it can.
fn act(attempt: Attempt, node: &str, choice: u8, says: &str) -> Attempt {
    let loud = Phase {
        outcome: PhaseOutcome::Failed,
        by: Raiser::Product,
        exception: Some(ExceptionText {
            kind: says.into(),
            message: format!("{says}: x\n{says}"),
            traceback: format!("tests/sealed/test_core.py:3: in {says}\nE   {says}"),
        }),
        output: says.into(),
        ..phase(When::Call)
    };
    match choice {
        0..=4 => attempt.pass(node),
        5 => attempt.case(node, loud),
        6 => attempt.skip(node, says, Raiser::Product),
        7 => attempt.skip(node, says, Raiser::Sealed),
        8 => attempt.xfail(node, &format!("{says}: x"), Raiser::Sealed),
        9 => attempt.silence(node, says, Raiser::Sealed),
        10 => attempt.error(CORE, &format!("{says}: x")),
        11 => attempt.pass(&format!("{node}[{says}]")),
        12 => attempt.case(&format!("{node}[{says}]"), loud),
        13 => attempt.pass(&format!(
            "tests/sealed/test_core.py::test_{}",
            says.replace('-', "_")
        )),
        14 => attempt.record(&format!("{says}::{says}"), vec![loud]),
        15 => attempt.die(End::Exited, &format!("{node}[{says}]")),
        _ => attempt,
    }
}

fn loud_attempt(says: &'static str) -> impl Strategy<Value = Attempt> {
    (proptest::array::uniform2(0..18_u8), 0..12_u8).prop_map(move |([a, b], end)| {
        let mut attempt = act(act(attempt(), EMPTY, a, says), THREE, b, says);
        attempt.0.end.output = says.into();
        if end == 0 {
            attempt = attempt.ends(End::Protocol);
            attempt.0.end.note = Some(format!("the attempt's records do not hold: {says}"));
        }
        attempt
    })
}

fn quiet_or(says: &'static str) -> impl Strategy<Value = Attempt> {
    prop_oneof![
        2 => Just(attempt().pass(EMPTY).pass(THREE)),
        1 => loud_attempt(says),
    ]
}

struct Seen {
    reports: Vec<(Audience, String)>,
}

fn rendered(judged: &Judged, trial: &Trial) -> Seen {
    let facts = |attempts: &[Attempt]| attempts.iter().map(|a| a.0.clone()).collect::<Vec<_>>();
    let property = facts(&trial.property);
    let held_out = [facts(&trial.held_out), facts(&trial.base_under)].concat();
    fn sourced(facts: &[AttemptFacts]) -> Vec<(AttemptSource, &AttemptFacts)> {
        facts.iter().map(|f| (AttemptSource::Fresh, f)).collect()
    }
    let scored = crate::signed_sample::scored();
    let report = Report::of(Material {
        judged,
        scored: &scored,
        pins: &crate::policy::Policy::default().pins,
        changes: &[],
        property: &sourced(&property),
        held_out: &sourced(&held_out),
        lease_side: &[],
        merge_lane: &[],
        proposed: None,
        oracle: Some(ALIVE),
        timings: Timings::default(),
    });
    let audiences = [
        Audience::Operator,
        Audience::Caller(FeedbackLevel::Full),
        Audience::Caller(FeedbackLevel::Names),
        Audience::Caller(FeedbackLevel::Verdict),
    ];
    let reports = audiences.map(|audience| {
        let report = String::from_utf8(report.render(judged, audience).unwrap()).unwrap();
        (
            audience,
            format!("{report}\n{}", junit::render(judged, audience)),
        )
    });
    Seen {
        reports: reports.into(),
    }
}

fn says(text: &str, sentinel: &str) -> bool {
    text.contains(sentinel) || text.contains(&sentinel.replace('-', "_"))
}

proptest! {
    #[test]
    fn no_reader_gets_more_than_its_level(
        property in proptest::collection::vec(quiet_or(ECHO), 1..4),
        head in proptest::collection::vec(quiet_or(DRAWN), 2..4),
        base in proptest::collection::vec(quiet_or(DRAWN), 2..4),
    ) {
        let number = |attempts: Vec<Attempt>, lane| -> Vec<Attempt> {
            (0..)
                .zip(attempts)
                .map(|(n, mut a)| {
                    a.0.index = n;
                    a.0.lane = lane;
                    a.0.pins.clock = DRAWN.into();
                    a
                })
                .collect()
        };
        let base_tree = attempt().pass(EMPTY).pass(THREE);
        let trial = Trial {
            base_run: vec![base_tree.clone()],
            draws: 2,
            held_out: number(head, Lane::HeldOut),
            base_under: number(base, Lane::BaseCollection),
            ..trial(base_tree, property)
        };
        // Where something is missing there is no verdict, and nothing to show.
        let Ok(judged) = trial.judge_at(GATE) else {
            return Ok(());
        };
        for (audience, text) in rendered(&judged, &trial).reports {
            let Audience::Caller(level) = audience else {
                prop_assert!(says(&text, DRAWN), "the operator sees all");
                continue;
            };
            prop_assert!(!says(&text, DRAWN), "{level:?}: {text}");
            match level {
                FeedbackLevel::Full => {}
                FeedbackLevel::Names => prop_assert!(!says(&text, ECHO), "{level:?}: {text}"),
                FeedbackLevel::Verdict => {
                    prop_assert!(!says(&text, ECHO), "{level:?}: {text}");
                    prop_assert!(!text.contains("test_empty") && !text.contains("test_three"));
                }
            }
        }
    }
}
