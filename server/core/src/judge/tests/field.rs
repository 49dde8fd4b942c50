//! The field cases that the judge decides, as facts: what a runner would report of each, and the right answer.

use super::*;
use std::collections::HashSet;

const ASSERT: &str = "AssertionError: assert 0 == 6";

fn base() -> Attempt {
    attempt().pass(EMPTY).pass(THREE)
}

#[test]
fn field_19_printed_results_are_only_output() {
    let mut head = attempt().pass(EMPTY).fail(THREE, ASSERT);
    for record in &mut head.0.cases {
        for phase in &mut record.phases {
            phase.output = format!("PASSED {THREE}\n====== 2 passed in 0.01s ======\n");
        }
    }
    let judged = trial(base(), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(
        (class(&judged, EMPTY), class(&judged, THREE)),
        (Class::StablePass, Class::StableRed)
    );
    assert!(text(&judged, VerdictKind::SrcScore).contains(
        "case-failed tests/sealed/test_core.py::test_three failed in all 7 attempts AssertionError"
    ));
}

#[test]
fn field_21_exit_status_zero_in_the_middle_is_no_pass() {
    let last = "tests/sealed/test_zlast.py::test_after";
    let mut head = attempt().pass(EMPTY).die(End::Exited, THREE).collect(last);
    head.0.end.exit_code = Some(0);
    let judged = trial(base().pass(last), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(class(&judged, EMPTY), Class::StablePass);
    for node in [THREE, last] {
        assert_eq!(class(&judged, node), Class::StableRed, "{node}");
        assert_eq!(
            summary(&judged, node).code,
            Some(Reason::ProcessExit),
            "{node}"
        );
    }
    assert_eq!(src(&judged), [Reason::ProcessExit], "one cause, told once");
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains("test_three")
            && said.contains("exit code 0")
            && said.contains("1 other case did not run"),
        "{said}"
    );
}

#[test]
fn field_24_an_import_skip_hides_no_case() {
    let double = "tests/sealed/test_fast.py::test_double";
    let reason = "could not import 'fastpath': No module named 'fastpath'";
    let head = attempt().pass(EMPTY).pass(THREE).silence(
        "tests/sealed/test_fast.py",
        reason,
        Raiser::Sealed,
    );
    let judged = trial(base().pass(double), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(src(&judged), [Reason::MissingCase]);
    assert_eq!(
        (class(&judged, double), summary(&judged, double).code),
        (Class::StableRed, Some(Reason::MissingCase))
    );
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains("tests/sealed/test_fast.py head skips it as a whole")
            && said.contains("fastpath"),
        "{said}"
    );
}

#[test]
fn field_26_an_empty_parameter_set_hides_no_case() {
    let node = |n: u8| format!("tests/sealed/test_cases.py::test_single[{n}]");
    let full = (1..=3).fold(base(), |a, n| a.pass(&node(n)));
    let empty = base().silence(
        "tests/sealed/test_cases.py::test_single[NOTSET]",
        "got empty parameter set for (n)",
        Raiser::Sealed,
    );
    let judged = trial(full, seven(&empty)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(src(&judged), [Reason::MissingCase]);
    assert_eq!(
        judged.cases().len(),
        5,
        "the silence itself is no case: it says why three are gone"
    );
    assert_eq!(class(&judged, &node(1)), Class::StableRed);
    assert!(text(&judged, VerdictKind::SrcScore).contains("test_single[NOTSET]"));
}

#[test]
fn field_28_an_xfail_raised_by_the_product_is_red() {
    let head = attempt()
        .pass(EMPTY)
        .xfail(THREE, "XFailed: known", Raiser::Product);
    let judged = trial(base(), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(src(&judged), [Reason::SkipFromProduct]);
    assert!(text(&judged, VerdictKind::SrcScore).contains("test_three"));
}

#[test]
fn field_29_a_teardown_error_after_a_pass_is_stable_red() {
    let size = "tests/sealed/test_pool.py::test_size";
    let teardown = Phase {
        outcome: PhaseOutcome::Failed,
        exception: Some(exception("RuntimeError: leaked handle")),
        ..phase(When::Teardown)
    };
    let head = base()
        .collect(size)
        .record(size, vec![phase(When::Setup), phase(When::Call), teardown]);
    let judged = trial(base().pass(size), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(
        (src(&judged), class(&judged, size)),
        (vec![Reason::CaseError], Class::StableRed)
    );
}

#[test]
fn field_31_hostile_parameter_ids_stay_apart() {
    let ids = [
        "a::b",
        "x]y[z",
        "tab\there",
        "caf\u{e9}",
        "",
        "dup0",
        "dup1",
        "sp ace",
        "q\"uote",
        "new\nline",
    ];
    let node = |id: &str| format!("tests/sealed/test_ids.py::test_echo[{id}]");
    let base = ids.iter().fold(attempt(), |a, id| a.pass(&node(id)));
    let head = ids.iter().fold(attempt(), |a, id| match *id {
        "a::b" => a.fail(&node(id), "AssertionError: assert 'wrong' == 'a::b'"),
        other => a.pass(&node(other)),
    });
    let judged = trial(base, seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(judged.cases().len(), 10);
    let distinct: HashSet<&str> = judged.cases().iter().map(|c| c.node.as_str()).collect();
    assert_eq!(distinct.len(), 10);
    for case in judged.cases() {
        let right = if case.node.as_str() == node("a::b") {
            Class::StableRed
        } else {
            Class::StablePass
        };
        assert_eq!(case.class, right, "{:?}", case.node);
    }
    assert!(text(&judged, VerdictKind::SrcScore).contains("test_echo[a::b]"));
}

#[test]
fn field_51_memory_of_the_process_and_of_its_child() {
    let own = attempt().pass(EMPTY).die(End::OutOfMemory, THREE);
    let judged = trial(base(), seven(&own)).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::OutOfMemory])
    );
    assert!(text(&judged, VerdictKind::SrcScore).contains("memory limit"));

    let mut child = attempt().pass(EMPTY).fail(THREE, ASSERT);
    child.0.end.oom_kills = 1;
    let judged = trial(base(), seven(&child)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(src(&judged), [Reason::OutOfMemory, Reason::CaseFailed]);

    // A kill that nothing suffered from is told of by the attempt, and held against nobody.
    let mut spared = base();
    spared.0.end.oom_kills = 1;
    assert_eq!(
        words(&trial(base(), seven(&spared)).judge()),
        "PASS PASS PASS"
    );

    // A timeout's own kill is not called memory.
    let late = attempt().pass(EMPTY).die(End::CaseTimeout, THREE);
    assert_eq!(src(&trial(base(), seven(&late)).judge()), [Reason::Timeout]);
}
