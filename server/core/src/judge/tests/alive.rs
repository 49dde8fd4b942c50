//! Wrong products and modes: who notices, and what is said when nobody does.

use super::*;

const NET: &str = "tests/sealed/test_net.py::test_get";
const ASSERT: &str = "AssertionError: assert 0 == 6";

fn base() -> Attempt {
    attempt().pass(EMPTY).pass(THREE)
}

fn files() -> Vec<RepoPath> {
    vec![
        CORE.parse().unwrap(),
        "tests/sealed/test_net.py".parse().unwrap(),
    ]
}

#[test]
fn who_notices_a_wrong_product() {
    let of = |base: &Attempt, wrong: &Attempt| heed(&base.0, &wrong.0, &files());
    let red = base().0;
    assert_eq!(
        green(&red, &files()),
        [EMPTY.parse().unwrap(), THREE.parse().unwrap()]
    );
    assert_eq!(of(&base(), &base()), Heed::Unnoticed);
    for (name, wrong) in [
        ("fails", attempt().pass(EMPTY).fail(THREE, ASSERT)),
        (
            "skips",
            attempt().pass(EMPTY).skip(THREE, "why", Raiser::Sealed),
        ),
        ("is not collected", attempt().pass(EMPTY)),
        ("kills the process", attempt().die(End::Exited, EMPTY)),
        ("hangs", attempt().pass(EMPTY).die(End::CaseTimeout, THREE)),
        (
            "cannot be imported",
            attempt().error(CORE, "ImportError: no"),
        ),
    ] {
        assert_eq!(of(&base(), &wrong), Heed::Noticed, "{name}");
    }
    // The attempt was ended before it came to the other case.
    let stopped = attempt().pass(EMPTY).collect(THREE);
    assert_eq!(of(&base(), &stopped), Heed::Unnoticed);
}

#[test]
fn what_is_not_green_on_base_notices_nothing() {
    let base = attempt()
        .pass(EMPTY)
        .fail(THREE, ASSERT)
        .skip(NET, "why", Raiser::Sealed);
    let wrong = attempt()
        .pass(EMPTY)
        .fail(THREE, "NullProduct: x")
        .fail(NET, ASSERT);
    assert_eq!(green(&base.0, &files()), [EMPTY.parse().unwrap()]);
    assert_eq!(heed(&base.0, &wrong.0, &files()), Heed::Unnoticed);
}

#[test]
fn a_base_that_died_is_held_against_what_it_did_before() {
    let base = attempt().pass(EMPTY).die(End::Exited, THREE);
    assert_eq!(heed(&base.0, &base.0, &files()), Heed::Unnoticed);
    let wrong = attempt().fail(EMPTY, ASSERT).die(End::Exited, THREE);
    assert_eq!(heed(&base.0, &wrong.0, &files()), Heed::Noticed);
}

#[test]
fn a_dead_oracle_fails_both() {
    for (null, expected) in [
        (NullProduct::Noticed, "PASS PASS PASS"),
        (NullProduct::Untold, "PASS PASS PASS"),
        (NullProduct::Unnoticed, "FAIL FAIL PASS"),
    ] {
        let trial = Trial {
            null,
            ..trial(base(), seven(&base()))
        };
        let judged = trial.judge();
        assert_eq!(words(&judged), expected, "{null:?}");
        if expected.starts_with("FAIL") {
            assert_eq!(src(&judged), [Reason::OracleDead]);
            assert_eq!(
                codes(&judged, VerdictKind::OracleIntegrity),
                [Reason::OracleDead]
            );
        }
    }
}

#[test]
fn a_weak_one_is_a_warning_with_counts_and_no_place() {
    let unnoticed = PlantedChange {
        path: "src/calc.py".into(),
        line: 7,
        function: "total".into(),
        what: "+ for -".into(),
    };
    let judged = |run, unnoticed| {
        let mutants = Some(Mutants {
            drawn: 20,
            run,
            unnoticed,
        });
        Trial {
            mutants,
            ..trial(base(), seven(&base()))
        }
        .judge()
    };
    assert!(warned(&judged(20, vec![])).is_empty());
    let weak = judged(14, vec![unnoticed; 5]);
    assert_eq!(
        (words(&weak).as_str(), warned(&weak)),
        ("PASS PASS PASS", vec![Reason::OracleWeak])
    );
    let said = &weak
        .warnings()
        .iter()
        .find(|w| w.reason == Reason::OracleWeak)
        .unwrap()
        .detail;
    assert_eq!(
        said,
        "5 of 14 planted changes were noticed by no sealed case; for 6 more there was no time"
    );
}

#[test]
fn which_files_need_the_product_beside_them() {
    let files = files();
    let split = attempt().pass(EMPTY).fail(THREE, ASSERT).pass(NET);
    assert_eq!(troubled(&split.0, &files), [CORE.parse().unwrap()]);
    let need = |split: &Attempt, shared: &Attempt| need_shared(&split.0, &shared.0, &files);
    let shared = attempt().pass(EMPTY).pass(THREE);
    let found = need(&split, &shared);
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        [&CORE.parse::<RepoPath>().unwrap()]
    );
    assert_eq!(found.values().next().unwrap(), &[THREE.parse().unwrap()]);
    // Red both ways is base's own failure; red only shared is no need; and one that cannot be collected split is one.
    assert!(need(&split, &split).is_empty());
    let worse = attempt().pass(EMPTY).fail(THREE, ASSERT);
    assert!(need(&shared, &worse).is_empty());
    let unread = attempt().error(CORE, "ImportError: no").pass(NET);
    assert_eq!(troubled(&unread.0, &files), [CORE.parse().unwrap()]);
    assert_eq!(need(&unread, &shared).values().next().unwrap().len(), 2);
    let died = attempt()
        .die(End::Exited, EMPTY)
        .collect(THREE)
        .collect(NET);
    assert_eq!(troubled(&died.0, &files), files);
}

#[test]
fn a_file_that_needs_it_says_so_and_what_to_do() {
    let head = attempt().pass(EMPTY).fail(THREE, ASSERT).fail(NET, ASSERT);
    let mut trial = trial(head.clone(), seven(&head));
    trial.base_run = vec![head.clone()];
    trial.need_shared = [(CORE.parse().unwrap(), vec![THREE.parse().unwrap()])].into();
    let judged = trial.judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(src(&judged), [Reason::CaseFailed, Reason::NeedsShared]);
    assert_eq!(summary(&judged, THREE).code, Some(Reason::NeedsShared));
    assert_eq!(summary(&judged, EMPTY).code, None);
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains("needs-shared tests/sealed/test_core.py 1 case"),
        "{said}"
    );
    assert!(said.contains("tribunal modes --write"), "{said}");
}

#[test]
fn a_death_in_such_a_file_stays_a_death() {
    let head = attempt().pass(EMPTY).die(End::CaseTimeout, THREE);
    let mut trial = trial(attempt().pass(EMPTY).pass(THREE), seven(&head));
    trial.need_shared = [(CORE.parse().unwrap(), vec![])].into();
    assert_eq!(src(&trial.judge()), [Reason::Timeout]);
}
