#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use super::*;
use serde_json::{Value, json};

const CASE: &str = "tests/sealed/test_money.py::test_split";
const TRACEBACK: &str = "Traceback (most recent call last):\n  File \"/opt/tribunal/runner/_pytest/python.py\", line 159, in call\n    run()\n  File \"/tree/tests/sealed/test_money.py\", line 12, in test_split\n    assert split(10, 3) == [4, 3, 3]\n           ^^^^^^^^^^^^\n  File \"/tree/src/money.py\", line 3, in split\n    raise ValueError(n)\nValueError: 10\n";

fn reason(code: &str, subject: &str, detail: &str) -> Value {
    json!({"code": code, "advice": format!("advice for {code}"), "subject": subject, "detail": detail, "seen": "seen"})
}

fn report(reasons: Vec<Value>, cases: Vec<Value>) -> Report {
    let id = "1".repeat(40);
    let digest = format!("sha256:{}", "0".repeat(64));
    let commit = json!({"id": id, "tree": id, "sha256": digest});
    let value = json!({
        "schema": "tribunal.report/v1", "feedback": "full", "score": "repositories/app/scores/0",
        "scorer": {"id": "t", "version": "0"}, "repository": "app", "protected_ref": "refs/heads/main",
        "change_set": "agent", "head": commit, "base": commit, "base_tip_at_scoring": id,
        "merge_bases": [id], "gate_time": "2026-01-01T00:00:00Z", "valid_until": "2026-01-31T00:00:00Z",
        "verdicts": [
            {"name": "src_score", "word": "FAIL", "reasons": reasons},
            {"name": "oracle_integrity", "word": "PASS", "reasons": []},
            {"name": "flake_lease", "word": "NOT_RUN", "reasons": []},
        ],
        "warnings": [
            reason("unscored-change", "README.md", ""),
            reason("unscored-change", "setup.py", ""),
            reason("thin-evidence", "x", "7 attempts"),
        ],
        "evidence": {"attempts": 7, "stored": 0, "upper_bound": 0.35},
        "cases": cases, "leases": [], "attempts": [],
        "pins": {"seed": 1, "clock": "2026-01-01T00:00:00Z", "timezone": "UTC", "hash_seed": 0, "source_date_epoch": 0},
        "changes": [{"path": "src/money.py", "class": "src", "change": "modified"}],
        "src_trees": [],
        "inputs": {"oracle": digest, "policy": digest, "pins": digest, "overlay": null, "image": null, "runner": null, "ledger": null},
        "isolation": {"shared": 1, "split": 0},
        "timings": {"queued_ms": 0, "prepare_ms": 0, "property_ms": 0, "lease_side_ms": 0, "total_ms": 0},
        "cut": [],
    });
    parse(value.to_string().as_bytes()).unwrap()
}

fn red(node: &str, message: &str) -> Value {
    json!({
        "node": node, "file": "tests/sealed/test_money.py", "class": "stable red", "code": "case-failed", "origin": "base",
        "outcomes": ["failed", "failed", "passed"], "on_base": "red", "diagnosis": {"reads": [{"source": "wall-clock", "oracle": 0, "product": 2, "standing": "policy"}], "owed": "cassette-pin", "source": "wall-clock", "moved": "clock"},
        "failure": {"attempt": 1, "when": "call", "type": "ValueError", "message": message, "traceback": TRACEBACK, "output": "noise\u{7}"},
        "duration_ms": 1.0,
    })
}

/// As the runner writes it.
const SHORT: &str = "tests/sealed/test_money.py:12: in test_split\n    assert split(10, 3) == [4, 3, 3], text\n           ^^^^^\nE   AssertionError: 4ms\nE   assert [3, 3, 3] == [4, 3, 3]\nE     At index 0 diff: 3 != 4\nE     Full diff:\n";

#[test]
fn the_case_the_assertion_the_attempt_and_what_to_do() {
    let mut case = red(CASE, "4ms\nassert …");
    case["failure"]["traceback"] = SHORT.into();
    let told = vec![reason("case-failed", CASE, "failed in all 7 attempts")];
    assert_eq!(
        fixes(&report(told, vec![case]), 4000),
        "src_score case-failed: advice for case-failed\n\
         - tests/sealed/test_money.py::test_split: failed in all 7 attempts\n    \
         tests/sealed/test_money.py:12: assert split(10, 3) == [4, 3, 3], text\n    \
         AssertionError: 4ms\n    \
         assert [3, 3, 3] == [4, 3, 3]\n    \
         At index 0 diff: 3 != 4\n    \
         attempts: F F P (F failed, P passed)\n    \
         owed: an accepted cassette with the pin `clock`"
    );
}

#[test]
fn where_the_product_raised_is_told_too() {
    let told = vec![reason("case-failed", CASE, "failed in all 7 attempts")];
    assert_eq!(
        fixes(&report(told, vec![red(CASE, "10\nmore")]), 4000),
        "src_score case-failed: advice for case-failed\n\
         - tests/sealed/test_money.py::test_split: failed in all 7 attempts\n    \
         tests/sealed/test_money.py:12: assert split(10, 3) == [4, 3, 3]\n    \
         src/money.py:3: raise ValueError(n)\n    \
         ValueError: 10\n    \
         attempts: F F P (F failed, P passed)\n    \
         owed: an accepted cassette with the pin `clock`"
    );
}

#[test]
fn where_the_product_raised_in_its_own_process_is_told_and_nothing_of_the_harness() {
    let mut case = red(CASE, "list index out of range");
    case["failure"]["traceback"] = "In the product:\n  File \"/tree/src/money.py\", line 2, in split\n    out = prices[0]\n          ~~~~~~^^^\n\ntests/sealed/test_money.py:9: in test_split\n    assert total([]) == 0\n           ^^^^^^^^^\n/opt/tribunal/harness/split/remote.py:38: in __call__\n    return _get(self)\n/opt/tribunal/harness/split/peer.py:88: in _ask\n    raise answer\nE   IndexError: list index out of range\n".into();
    let told = vec![reason("case-failed", CASE, "failed in all 7 attempts")];
    let text = fixes(&report(told, vec![case]), 4000);
    let lines = "tests/sealed/test_money.py:9: assert total([]) == 0\n    src/money.py:2: out = prices[0]\n    IndexError: list index out of range\n";
    assert!(text.contains(lines), "{text}");
    assert!(!text.contains("harness"), "{text}");
}

#[test]
fn a_lease_is_held_against_what_the_case_said_unsilenced() {
    let mut silent = red(CASE, "not today");
    silent["failure"]["type"] = "Skipped".into();
    silent["failure"]["traceback"] = "E   Skipped: not today\n".into();
    let detail = "unsilenced, in attempt 1 of 7, it fails in another way than the lease says";
    let told = vec![reason("lease-signature-mismatch", CASE, detail)];
    let text = fixes(&report(told, vec![silent]), 4000);
    assert!(
        text.contains("than the lease says\n    seen\n    attempts: "),
        "{text}"
    );
}

#[test]
fn cases_that_fail_alike_are_told_once() {
    let node = |n: usize| format!("tests/sealed/test_money.py::test_split[a::{n}]");
    let reasons = (0..40)
        .map(|n| {
            let detail = if n == 1 {
                "failed; also red on base"
            } else {
                "failed"
            };
            reason("case-failed", &node(n), detail)
        })
        .collect();
    let cases = (0..40).map(|n| red(&node(n), "10")).collect();
    let text = fixes(&report(reasons, cases), 4000);
    assert_eq!(text.matches("\n- ").count(), 2, "{text}");
    assert!(
        text.contains("the same in test_split[a::2], test_split[a::3], "),
        "{text}"
    );
    assert!(
        text.contains("… and ") && text.lines().all(|l| l.chars().count() < 400),
        "{text}"
    );
}

#[test]
fn advice_stands_once_a_code_and_the_bound_is_never_passed() {
    let reasons: Vec<Value> = (0..50)
        .map(|n| {
            reason(
                "case-failed",
                &format!("tests/sealed/test_a.py::test_{n}"),
                "failed",
            )
        })
        .collect();
    let report = report(reasons, Vec::new());
    let all = fixes(&report, 100_000);
    assert_eq!(all.matches("advice for").count(), 1);
    assert_eq!(all.lines().count(), 1 + 2 * 50);
    for max in [0, 10, 59, 60, 100, 200, 500, 1000, 4000] {
        let text = fixes(&report, max);
        assert!(text.chars().count() <= max, "{max}: {text}");
    }
    let little = fixes(&report, 170);
    assert!(
        little.starts_with("src_score case-failed: advice for case-failed\n- tests/sealed/"),
        "{little}"
    );
    assert!(fixes(&report, 500).ends_with("more: `tribunal explain` shows them"));
}

#[test]
fn a_candidates_text_steers_no_terminal() {
    let node = "tests/sealed/test_a.py::test_x[\u{1b}[2J]";
    let report = report(
        vec![reason("case-failed", node, "failed")],
        vec![red(node, "\u{1b}[31mred\u{202e}")],
    );
    for text in [fixes(&report, 4000), explain(&report)] {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
    }
}

#[test]
fn warnings_are_counted_by_code() {
    let report = report(Vec::new(), Vec::new());
    assert_eq!(
        warnings(&report),
        [
            "unscored-change: README.md (and 1 more)",
            "thin-evidence: x: 7 attempts"
        ]
    );
    assert_eq!(fixes(&report, 4000), "");
}

#[test]
fn explain_tells_attempts_base_text_and_what_is_owed() {
    let report = report(
        vec![reason("cassette-gap", CASE, "mixed")],
        vec![red(CASE, "10")],
    );
    let text = explain(&report);
    for part in [
        "src_score FAIL",
        "cassette-gap: tests/sealed/test_money.py::test_split: mixed",
        "do: advice for cassette-gap",
        "attempts: 1-2 failed, 3 passed",
        "on base it fails too",
        "attempt 1, call:",
        "    raise ValueError(n)",
        "reads: the wall clock (2 times in the product; pinned by the policy)",
        "settled by: another clock",
        "owed: an accepted cassette with the pin `clock`",
        "35.0 %",
        "src modified src/money.py",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A case of the merge lane.
fn touched(
    name: &str,
    class: &str,
    code: Option<&str>,
    outcomes: &[&str],
    diagnosis: Value,
) -> Value {
    json!({
        "node": format!("tests/test_new.py::{name}"), "file": "tests/test_new.py", "class": class, "code": code,
        "origin": "base", "outcomes": outcomes, "diagnosis": diagnosis, "duration_ms": 1.0,
    })
}

fn diagnosis(source: Option<&str>, owed: &str, moved: Option<&str>) -> Value {
    let reads = source.map_or(
        json!([]),
        |source| json!([{"source": source, "oracle": 2, "product": 0, "standing": "open"}]),
    );
    json!({"reads": reads, "owed": owed, "source": source, "moved": moved})
}

#[test]
fn explain_tells_each_touched_test_and_the_next_command() {
    let mut report = report(Vec::new(), Vec::new());
    let gap = Some("cassette-gap");
    let mut many = vec!["passed"; 100];
    many[40] = "failed";
    report.merge_lane = serde_json::from_value(json!({
        "files": [{"file": "tests/test_new.py", "attempts": 4, "upper_bound": 0.5271}],
        "cases": [
            touched("test_clock", "mixed", gap, &["passed", "passed", "failed", "passed"], diagnosis(Some("wall-clock"), "cassette-pin", Some("clock"))),
            touched("test_net[a b'c]", "mixed", gap, &["passed", "timeout"], diagnosis(Some("network"), "cassette-pin", None)),
            touched("test_order", "mixed", gap, &many, diagnosis(None, "property", Some("order"))),
            touched("test_race", "mixed", Some("unpinnable-source"), &["failed", "passed"], diagnosis(Some("threads"), "neither", None)),
            touched("test_wrong", "stable red", Some("merge-lane-red"), &["failed", "failed"], Value::Null),
            touched("test_asks", "stable red", Some("cassette-miss"), &["cassette-miss", "cassette-miss"], Value::Null),
            touched("test_skips", "silenced", Some("forbidden-mark"), &["skipped", "skipped"], Value::Null),
            touched("test_slept", "silenced", None, &["skipped", "skipped"], Value::Null),
            touched("test_holds", "stable pass", None, &[], Value::Null),
        ],
    }))
    .unwrap();
    let text = explain(&report);
    let (_, lane) = text.split_once("\nmerge lane\n").unwrap();
    let (lane, _) = lane.split_once("\n\n").unwrap();
    assert_eq!(
        lane,
        "  tests/test_new.py: 4 attempts; a flake below 52.7 % could still hide (95 %)
  tests/test_new.py::test_clock: mixed
    attempts: P P F P (P passed, F failed)
    source: the wall clock
    reads: the wall clock (2 times; not pinned)
    settled by: another clock
    owed: an accepted cassette with the pin `clock`
    next: a maintainer: tribunal cassette record tests/test_new.py::test_clock --why TEXT, then cassette accept
  tests/test_new.py::test_net[a b'c]: mixed
    attempts: P ! (P passed, ! timeout)
    source: other hosts
    reads: other hosts (2 times; not pinned)
    owed: an accepted cassette with the pin `http:<METHOD> <path>`
    next: a maintainer: tribunal cassette record 'tests/test_new.py::test_net[a b'\\''c]' --host HOST --why TEXT, then cassette accept
  tests/test_new.py::test_order: mixed
    attempts: 40P 1F 59P (P passed, F failed)
    reads: no clock, random numbers, listings, network, threads or waits
    settled by: another order of cases
    owed: a human-owned property with the fixed seed: what differs is an order, a retry count or the iteration of a set or map
    next: a maintainer lands a property (under the sealed paths, then: tribunal manifest --write); the patch goes on without this case
  tests/test_new.py::test_race: mixed
    attempts: F P (F failed, P passed)
    source: threads
    reads: threads (2 times; not pinned)
    owed: neither a pin nor a property: threads cannot be pinned, and a case that depends on it does not belong here
    next: take the case out of the patch, or let it do without, then: tribunal score
  tests/test_new.py::test_wrong: stable red
    attempts: F F (F failed)
    next: mend the test or the product, then: tribunal score
  tests/test_new.py::test_asks: stable red
    attempts: ! ! (! cassette-miss)
    next: a maintainer: tribunal cassette record tests/test_new.py::test_asks --why TEXT, then cassette accept
  tests/test_new.py::test_skips: silenced
    attempts: S S (S skipped)
    next: take off what skips it, then: tribunal score
  tests/test_new.py::test_slept: silenced
    attempts: S S (S skipped)
  tests/test_new.py::test_holds: stable pass"
    );
    report.merge_lane = None;
    assert!(!explain(&report).contains("merge lane"));
}

#[test]
fn a_mixed_case_names_its_pattern_what_it_owes_and_the_command() {
    let detail = "passed in attempt 1; owed: an accepted cassette with the pin `clock`";
    let mut case = red(CASE, "10");
    case["class"] = "mixed".into();
    let mut report = report(vec![reason("cassette-gap", CASE, detail)], vec![case]);
    let text = fixes(&report, 4000);
    assert!(
        text.ends_with(
            "attempts: F F P (F failed, P passed)\n    \
             next: a maintainer: tribunal cassette record tests/sealed/test_money.py::test_split --why TEXT, then cassette accept"
        ),
        "{text}"
    );
    assert_eq!(
        text.matches("owed: ").count(),
        1,
        "the detail says it: {text}"
    );

    // A touched test that is mixed is looked up where it ran.
    let gap = Some("cassette-gap");
    let order = diagnosis(None, "property", Some("order"));
    report.merge_lane = serde_json::from_value(json!({
        "files": [],
        "cases": [touched("test_order", "mixed", gap, &["passed", "failed"], order)],
    }))
    .unwrap();
    let node = "tests/test_new.py::test_order";
    report.verdicts[0].reasons =
        vec![serde_json::from_value(reason("cassette-gap", node, "mixed")).unwrap()];
    let found = findings(&report);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].attempts.as_deref(),
        Some("P F (P passed, F failed)")
    );
    assert!(
        found[0]
            .owed
            .as_deref()
            .unwrap()
            .starts_with("a human-owned property")
    );
    assert!(
        found[0]
            .next
            .as_deref()
            .unwrap()
            .contains("goes on without this case")
    );
}

#[test]
fn one_case_is_explained_alone() {
    let report = report(
        vec![reason("cassette-gap", CASE, "mixed")],
        vec![
            red(CASE, "10"),
            red("tests/sealed/test_money.py::test_beside", "11"),
        ],
    );
    let text = told(&report, Some(CASE)).unwrap();
    assert!(
        text.starts_with("src_score FAIL\n  cassette-gap: "),
        "{text}"
    );
    assert!(
        text.contains("attempts: 1-2 failed, 3 passed") && !text.contains("test_beside"),
        "{text}"
    );
    let beside = told(&report, Some("tests/sealed/test_money.py::test_beside")).unwrap();
    assert!(beside.contains("ValueError"), "{beside}");
    assert!(matches!(
        told(&report, Some("nope")),
        Err(ReportError::NoCase(_))
    ));
    assert_eq!(told(&report, None).unwrap(), explain(&report));
}

#[test]
fn what_is_no_report_is_told() {
    assert!(matches!(parse(b"{}"), Err(ReportError::Form(_))));
    assert!(matches!(among(&[]), Err(ReportError::Missing)));
}
