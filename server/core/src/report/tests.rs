//! The report's levels, its bounds, and that it reads back.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::classify::PathClass;
use crate::git::{Change, GitPath};
use crate::judge::{About, CaseSummary, FailureText, Ground, Judged, Liveness, Mutants};
use crate::outcome::{AttemptEnd, AttemptFacts, ExceptionText, Outcome, Signature};
use crate::policy::PinPolicy;
use crate::signed_sample::{GATE, UNTIL, scored};

const SECRET: &str = "expected 42";

fn pins() -> PinPolicy {
    PinPolicy {
        seed: crate::id::Seed(20_260_912),
        seed_env: vec![],
        clock: "2026-09-12T00:00:00Z".into(),
        timezone: "UTC".into(),
        hash_seed: 0,
        source_date_epoch: 1_700_000_000,
    }
}

fn case(node: &str, class: Class, text: &str) -> CaseSummary {
    let red = Outcome::Red(Reason::CaseFailed, vec![Signature::written(SECRET)]);
    let failure = FailureText {
        attempt: 1,
        when: When::Call,
        exception: Some(ExceptionText {
            kind: "AssertionError".into(),
            message: format!("{SECRET} {text}"),
            traceback: format!("{text} the end of the traceback"),
        }),
        output: format!("{text} the end of the output"),
    };
    let passes = class == Class::StablePass;
    CaseSummary {
        node: node.parse().unwrap(),
        file: Some("tests/sealed/test_a.py".parse().unwrap()),
        origin: Origin::Base,
        class,
        code: (!passes).then_some(Reason::CaseFailed),
        outcomes: vec![if passes { Outcome::Passed } else { red }; 7],
        unsilenced: vec![],

        held_out: vec![],
        held_out_failure: None,
        on_base: None,
        failure: (!passes).then_some(failure),
        diagnosis: None,
        duration_ms: 1.23456,
    }
}

fn judged(cases: Vec<CaseSummary>) -> Judged {
    let ground = |about, subject: &str| Ground {
        reason: Reason::CaseFailed,
        about,
        subject: Some(subject.into()),
        detail: "failed in all 7 attempts".into(),
        seen: Some(SECRET.into()),
    };
    Judged::sample(
        [Word::Fail, Word::Pass, Word::Pass],
        Reason::CaseFailed,
        GATE,
        UNTIL,
    )
    .with_cases(cases)
    .with_grounds(vec![
        ground(About::Case, "tests/sealed/test_a.py::test_one"),
        ground(About::Case, "tests/sealed/test_a.py::test_two"),
        ground(About::Patch, "ci/flake_leases.json"),
    ])
}

fn facts() -> AttemptFacts {
    AttemptFacts {
        index: 0,
        lane: Lane::Property,
        pins: Pins {
            seed: crate::id::Seed(1),
            hash_seed: 0,
            clock: "2026-09-12T00:00:00Z".into(),
            source_date_epoch: 0,
        },
        start: 1,
        collected: vec![],
        collection_errors: vec![],
        silences: vec![],
        cases: vec![],
        tamper: Vec::new(),
        canaries: crate::outcome::Canaries::default(),
        end: AttemptEnd {
            end: End::Exited,
            exit_code: Some(0),
            signal: None,
            running: Some("tests/sealed/test_a.py::test_one".parse().unwrap()),
            phase: None,
            wall_ms: 5,
            cpu_ms: 4,
            run_delay_ms: 1,
            oom_kills: 0,
            output_bytes: 7,
            note: None,
            output: format!("{SECRET} the end of what the attempt printed"),
        },
    }
}

fn rendered(judged: &Judged, audience: Audience) -> (Report, String) {
    let facts = facts();
    let property = [
        (AttemptSource::Stored, &facts),
        (AttemptSource::Fresh, &facts),
    ];
    let changes = [(
        Change {
            path: GitPath::from("src/a.py"),
            base: None,
            head: None,
            contents: None,
        },
        PathClass::Src,
    )];
    let report = Report::of(Material {
        judged,
        scored: &scored(),
        pins: &pins(),
        changes: &changes,
        property: &property,
        held_out: &[],
        lease_side: &[],
        merge_lane: &[],
        proposed: None,
        oracle: Some(Liveness {
            null: NullProduct::Noticed,
            mutants: Some(&weak()),
        }),
        timings: Timings::default(),
    });
    let text = String::from_utf8(report.render(judged, audience).unwrap()).unwrap();
    (serde_json::from_str(&text).unwrap(), text)
}

fn weak() -> Mutants {
    Mutants {
        drawn: 20,
        run: 20,
        unnoticed: vec![PlantedChange {
            path: "src/unwatched.py".into(),
            line: 7,
            function: "total".into(),
            what: "+ for -".into(),
        }],
    }
}

#[test]
fn where_nobody_looks_is_for_the_operator_alone() {
    let judged = small();
    for (audience, told) in [
        (Audience::Operator, 1),
        (Audience::Caller(FeedbackLevel::Full), 0),
        (Audience::Caller(FeedbackLevel::Names), 0),
        (Audience::Caller(FeedbackLevel::Verdict), 0),
    ] {
        let (report, text) = rendered(&judged, audience);
        let planted = report.oracle.unwrap().planted.unwrap();
        assert_eq!((planted.run, planted.unnoticed), (20, 1));
        assert_eq!(planted.places.len(), told, "{audience:?}");
        assert_eq!(text.contains("unwatched"), told == 1, "{audience:?}");
    }
}

fn small() -> Judged {
    judged(vec![
        case("tests/sealed/test_a.py::test_one", Class::StableRed, "text"),
        case("tests/sealed/test_a.py::test_fine", Class::StablePass, ""),
    ])
}

#[test]
fn the_operator_sees_everything_and_it_reads_back() {
    let (report, text) = rendered(&small(), Audience::Operator);
    assert_eq!(
        (report.schema.as_str(), report.feedback),
        (SCHEMA, Feedback::Operator)
    );
    assert!(text.contains(SECRET) && text.ends_with("}\n"));
    assert_eq!(report.cases.len(), 2);
    assert_eq!(report.cases.first().unwrap().outcomes, ["failed"; 7]);
    assert!(
        report.cases.get(1).unwrap().outcomes.is_empty(),
        "its class says it"
    );
    assert_eq!(
        report
            .attempts
            .iter()
            .map(|a| (a.number, a.stored))
            .collect::<Vec<_>>(),
        [(1, true), (2, false)]
    );
    assert_eq!(
        (report.evidence.stored, report.evidence.upper_bound),
        (1, 0.348_164)
    );
    assert_eq!(report.changes.first().unwrap().path, "src/a.py");
    assert_eq!(
        report.isolation,
        IsolationPart {
            shared: 1,
            split: 0
        }
    );
    assert!(report.cut.is_empty());
    let again = serde_json::to_string_pretty(&report).unwrap() + "\n";
    assert_eq!(again, text);
}

#[test]
fn full_differs_from_the_operators_by_its_level_and_planted_places_alone() {
    let (operator, _) = rendered(&small(), Audience::Operator);
    let (full, _) = rendered(&small(), Audience::Caller(FeedbackLevel::Full));
    assert!(full.attempts.iter().all(|a| a.output.contains(SECRET)));
    assert_eq!(
        Report {
            feedback: Feedback::Operator,
            oracle: operator.oracle.clone(),
            ..full
        },
        operator
    );
}

#[test]
fn names_hold_no_text_of_a_sealed_case() {
    let (report, text) = rendered(&small(), Audience::Caller(FeedbackLevel::Names));
    assert!(!text.contains(SECRET) && !text.contains("the end of"));
    assert!(
        report
            .cases
            .iter()
            .any(|c| c.node.as_str().ends_with("test_one") && c.code == Some(Reason::CaseFailed))
    );
    let reasons = &report.verdicts.first().unwrap().reasons;
    assert_eq!(reasons.len(), 3);
    assert_eq!(reasons.first().unwrap().detail, "failed in all 7 attempts");
}

#[test]
fn a_verdict_alone_holds_no_name_of_a_sealed_case() {
    let (report, text) = rendered(&small(), Audience::Caller(FeedbackLevel::Verdict));
    assert!(
        !text.contains(SECRET) && !text.contains("test_one") && !text.contains("test_two"),
        "{text}"
    );
    assert_eq!(
        report.verdicts.iter().map(|v| v.word).collect::<Vec<_>>(),
        [Word::Fail, Word::Pass, Word::Pass]
    );
    let reasons = &report.verdicts.first().unwrap().reasons;
    assert_eq!(
        reasons.len(),
        2,
        "the code once, and what is about the patch itself"
    );
    assert_eq!(reasons.first().unwrap().subject, None);
    assert_eq!(
        reasons.get(1).unwrap().subject.as_deref(),
        Some("ci/flake_leases.json")
    );
    assert!(report.cases.is_empty() && report.attempts.is_empty());
}

#[test]
fn texts_are_cut_before_cases_and_passes_before_the_rest() {
    let long = "\u{1b}".repeat(5000);
    let mut cases: Vec<CaseSummary> = (0..400)
        .map(|n| {
            case(
                &format!("tests/sealed/test_a.py::test_red[{n}]"),
                Class::StableRed,
                &long,
            )
        })
        .collect();
    let (report, text) = rendered(&judged(cases.clone()), Audience::Operator);
    assert!(text.len() <= LIMIT);
    assert_eq!(report.cases.len(), 400, "texts go first");
    assert!(
        report
            .cut
            .iter()
            .any(|c| c.starts_with("texts of cases were cut to")),
        "{:?}",
        report.cut
    );
    let failure = report.cases.first().unwrap().failure.as_ref().unwrap();
    assert!(failure.message.starts_with(SECRET) && failure.message.ends_with('…'));
    assert!(failure.output.ends_with("the end of the output"));

    cases.extend((0..30_000).map(|n| {
        case(
            &format!("tests/sealed/test_a.py::test_ok[{n}]"),
            Class::StablePass,
            "",
        )
    }));
    let (report, text) = rendered(&judged(cases), Audience::Operator);
    assert!(text.len() <= LIMIT);
    let red = report
        .cases
        .iter()
        .filter(|c| c.class == Class::StableRed)
        .count();
    assert_eq!(red, 400, "no red case is left out while a pass has room");
    let said = report
        .cut
        .iter()
        .find(|c| c.starts_with("cases: "))
        .unwrap();
    assert_eq!(
        said,
        &format!(
            "cases: {} of 30400 are left out",
            30_400 - report.cases.len()
        )
    );
}

#[test]
fn no_evidence_makes_a_report_too_long() {
    let node = |n: usize| format!("{n}{}", "\u{1}".repeat(4000));
    let mut summaries: Vec<CaseSummary> = (0..3000)
        .map(|n| case(&node(n), Class::StableRed, &"x".repeat(2000)))
        .collect();
    for summary in &mut summaries {
        summary.outcomes = vec![Outcome::Missing; 100];
    }
    let grounds = summaries
        .iter()
        .map(|s| Ground {
            reason: Reason::CaseFailed,
            about: About::Case,
            subject: Some(s.node.to_string()),
            detail: "d".into(),
            seen: Some("s".repeat(300)),
        })
        .collect();
    let judged = judged(summaries).with_grounds(grounds);
    for audience in [
        Audience::Operator,
        Audience::Caller(FeedbackLevel::Names),
        Audience::Caller(FeedbackLevel::Verdict),
    ] {
        let (_, text) = rendered(&judged, audience);
        assert!(text.len() <= LIMIT, "{audience:?}: {}", text.len());
    }
}
