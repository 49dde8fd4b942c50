//! Classes, origins and deaths: the rules of the attempts table, one row or law a test.

use super::*;

const ASSERT: &str = "AssertionError: assert 0 == 6";
const NEW: &str = "tests/sealed/test_core.py::test_three[9]";

fn base() -> Attempt {
    attempt().pass(EMPTY).pass(THREE)
}

/// Seven attempts of which the fourth is another one.
pub(super) fn but_fourth(usual: &Attempt, fourth: Attempt) -> Vec<Attempt> {
    let mut attempts = seven(usual);
    *attempts.get_mut(3).unwrap() = fourth;
    attempts
}

#[test]
fn all_passes_are_pass_pass_pass() {
    let judged = trial(base(), seven(&base())).judge();
    assert_eq!(words(&judged), "PASS PASS PASS");
    assert_eq!(
        judged
            .warnings()
            .iter()
            .map(|w| w.reason)
            .collect::<Vec<_>>(),
        [Reason::ThinEvidence]
    );
    assert!(
        judged
            .warnings()
            .first()
            .unwrap()
            .detail
            .contains("0 failures in 7 attempts: a flake that fails up to 34.8 %")
    );
    assert_eq!(judged.valid_until(), UnixTime(GATE.0 + 30 * 86_400));
    assert_eq!(judged.gate_time(), GATE);
    assert_eq!(judged.confidence().upper_bound_ppm, 348_164);
}

#[test]
fn a_mixed_case_is_a_gap_that_says_what_was_seen_and_what_is_owed() {
    let head = but_fourth(&base(), attempt().pass(EMPTY).fail(THREE, ASSERT));
    let judged = trial(base(), head).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::CassetteGap])
    );
    let case = summary(&judged, THREE);
    assert_eq!(
        (case.class, case.diagnosis.as_ref().unwrap().owed),
        (Class::Mixed, Owed::Property)
    );
    assert_eq!(case.failure.as_ref().unwrap().attempt, 4);
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains(
            "passed in attempts 1-3, 5-7 of 7; failed in attempt 4 of 7; reads no clock, random numbers, listings, network, threads or waits; owed: a human-owned property"
        ),
        "{said}"
    );
}

#[test]
fn red_every_time_in_different_ways_is_mixed() {
    let head: Vec<Attempt> = (0..7)
        .map(|n| {
            attempt()
                .pass(EMPTY)
                .fail(THREE, &format!("AssertionError: {n}"))
        })
        .collect();
    let judged = trial(base(), head).judge();
    assert_eq!(
        (class(&judged, THREE), src(&judged)),
        (Class::Mixed, vec![Reason::CassetteGap])
    );
    assert!(
        text(&judged, VerdictKind::SrcScore)
            .contains("failed in all 7 attempts, in 7 different ways")
    );
    // Addresses and durations are no difference.
    let head: Vec<Attempt> = (0..7)
        .map(|n| {
            attempt()
                .pass(EMPTY)
                .fail(THREE, &format!("E: <X at 0x7f{n}000> after {n}.5s"))
        })
        .collect();
    assert_eq!(class(&trial(base(), head).judge(), THREE), Class::StableRed);
}

#[test]
fn missing_or_skipped_now_and_then_is_mixed() {
    let missing = attempt().pass(EMPTY);
    let skipped = attempt().pass(EMPTY).skip(THREE, "r", Raiser::Sealed);
    for fourth in [missing.clone(), skipped] {
        let judged = trial(base(), but_fourth(&base(), fourth)).judge();
        assert_eq!(
            (class(&judged, THREE), src(&judged)),
            (Class::Mixed, vec![Reason::CassetteGap])
        );
    }
    let judged = trial(base(), seven(&missing)).judge();
    assert_eq!(
        (class(&judged, THREE), src(&judged)),
        (Class::StableRed, vec![Reason::MissingCase])
    );
    // Collected and never reported is missing as well.
    let judged = trial(base(), seven(&attempt().pass(EMPTY).collect(THREE))).judge();
    assert_eq!(src(&judged), [Reason::MissingCase]);
}

#[test]
fn a_case_without_all_three_phases_did_not_pass() {
    for phases in [
        vec![],
        vec![phase(When::Setup)],
        vec![phase(When::Setup), phase(When::Call)],
        vec![phase(When::Call), phase(When::Teardown)],
    ] {
        let head = attempt().pass(EMPTY).collect(THREE).record(THREE, phases);
        assert_eq!(
            src(&trial(base(), seven(&head)).judge()),
            [Reason::MissingCase]
        );
    }
}

#[test]
fn a_stored_failure_is_never_outvoted() {
    let mut attempts = vec![attempt().pass(EMPTY).fail(THREE, ASSERT)];
    attempts.extend((0..50).map(|_| base()));
    let judged = trial(base(), attempts).judge();
    assert_eq!(
        (words(&judged).as_str(), class(&judged, THREE)),
        ("FAIL PASS PASS", Class::Mixed)
    );
}

#[test]
fn too_few_attempts_are_no_verdict_unless_one_died() {
    let mut short = trial(base(), vec![base(); 6]);
    short.reruns = 7;
    assert_eq!(
        short.judge_at(GATE),
        Err(Incomplete::Attempts {
            seen: 6,
            planned: 7
        })
    );
    short.property = vec![];
    assert_eq!(
        short.judge_at(GATE),
        Err(Incomplete::Attempts {
            seen: 0,
            planned: 7
        })
    );
    // The room died with the attempt in it: the candidate's doing, and a verdict.
    short.property = vec![attempt().pass(EMPTY).die(End::OutOfMemory, THREE); 2];
    let judged = short.judge_at(GATE).unwrap();
    assert_eq!(
        (src(&judged), class(&judged, THREE)),
        (vec![Reason::OutOfMemory], Class::StableRed)
    );
}

#[test]
fn deaths_and_their_codes() {
    for (end, code) in [
        (End::Exited, Reason::ProcessExit),
        (End::Killed, Reason::ProcessExit),
        (End::CaseTimeout, Reason::Timeout),
        (End::AttemptTimeout, Reason::Timeout),
        (End::OutOfMemory, Reason::OutOfMemory),
        (End::OutputLimit, Reason::OutputLimit),
    ] {
        let after = "tests/sealed/test_core.py::test_zlast";
        let head = attempt().pass(EMPTY).die(end, THREE).collect(after);
        let judged = trial(base().pass(after), seven(&head)).judge();
        assert_eq!(
            (words(&judged).as_str(), src(&judged)),
            ("FAIL PASS PASS", vec![code]),
            "{end:?}"
        );
        assert_eq!(summary(&judged, after).code, Some(code), "{end:?}");
    }
}

#[test]
fn a_death_before_any_case_takes_all_of_them() {
    let judged = trial(base(), seven(&attempt().ends(End::Exited))).judge();
    assert_eq!(src(&judged), [Reason::ProcessExit, Reason::NoCases]);
    assert!(
        text(&judged, VerdictKind::SrcScore)
            .contains("before any case ran; 2 other cases did not run")
    );
    // At the end of the session every case is there, and the attempt is no pass all the same.
    let judged = trial(base(), seven(&base().ends(End::Exited))).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::ProcessExit])
    );
    assert!(text(&judged, VerdictKind::SrcScore).contains("after the last case"));
}

#[test]
fn a_death_now_and_then_is_told_with_what_it_took_along() {
    let after: Vec<String> = (0..5)
        .map(|n| format!("tests/sealed/test_core.py::test_z{n}"))
        .collect();
    let full = after.iter().fold(base(), |a, node| a.pass(node));
    let dead = after.iter().fold(
        attempt().pass(EMPTY).die(End::OutOfMemory, THREE),
        |a, node| a.collect(node),
    );
    let judged = trial(full.clone(), but_fourth(&full, dead)).judge();
    assert_eq!(
        src(&judged),
        [
            Reason::OutOfMemory,
            Reason::CassetteGap,
            Reason::CassetteGap
        ]
    );
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains("passed in attempts 1-3, 5-7 of 7; out-of-memory in attempt 4 of 7"),
        "{said}"
    );
    assert!(
        said.contains("5 cases (") && said.contains("were not reached in attempt 4 of 7"),
        "{said}"
    );
}

#[test]
fn a_false_record_is_tampering() {
    let head = attempt().pass(EMPTY).die(End::Protocol, THREE);
    let judged = trial(base(), seven(&head)).judge();
    assert_eq!(words(&judged), "FAIL FAIL PASS");
    assert_eq!(src(&judged), [Reason::TamperResultChannel]);
    assert_eq!(
        codes(&judged, VerdictKind::OracleIntegrity),
        [Reason::TamperResultChannel]
    );
}

#[test]
fn an_extra_case_of_a_sealed_function_must_pass() {
    let grown = |extra: fn(Attempt) -> Attempt| trial(base(), seven(&extra(base()))).judge();
    let judged = grown(|a| a.pass(NEW));
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::ExtraCase])
    );
    assert_eq!(summary(&judged, NEW).origin, Origin::Extra);
    let judged = grown(|a| a.fail(NEW, ASSERT));
    assert_eq!(
        (src(&judged), warned(&judged)),
        (vec![Reason::CaseFailed], vec![])
    );
    let judged = grown(|a| a.skip(NEW, "r", Raiser::Sealed));
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::ExtraCase])
    );
    let judged = trial(base(), but_fourth(&base().pass(NEW), base())).judge();
    assert_eq!(src(&judged), [Reason::CassetteGap]);
}

#[test]
fn an_extra_case_from_elsewhere_is_red_even_if_it_passes() {
    for node in [
        "tests/sealed/test_core.py::test_other",
        "src/plugin.py::test_three",
        "tests/sealed/test_core.py::TestX::test_three",
    ] {
        let judged = trial(base(), seven(&base().pass(node))).judge();
        assert_eq!(
            (words(&judged).as_str(), src(&judged)),
            ("FAIL PASS PASS", vec![Reason::ExtraCase]),
            "{node}"
        );
        assert_eq!(summary(&judged, node).origin, Origin::Foreign);
    }
    // A record that no collection announced.
    let head = base().record(
        "ghost",
        vec![phase(When::Setup), phase(When::Call), phase(When::Teardown)],
    );
    assert_eq!(
        src(&trial(base(), seven(&head)).judge()),
        [Reason::ExtraCase]
    );
    // A stray silence.
    let head = base().silence(
        "tests/sealed/test_core.py::test_new[NOTSET]",
        "got empty parameter set",
        Raiser::Sealed,
    );
    assert_eq!(
        src(&trial(base(), seven(&head)).judge()),
        [Reason::ExtraCase]
    );
}

#[test]
fn at_least_one_case_must_pass() {
    let judged = trial(attempt(), seven(&attempt())).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::NoCases])
    );
    // A case from elsewhere does not count.
    let judged = trial(attempt(), seven(&attempt().pass("src/x.py::test_a"))).judge();
    assert_eq!(src(&judged), [Reason::ExtraCase, Reason::NoCases]);
    let silent = attempt().skip(THREE, "r", Raiser::Sealed);
    assert!(src(&trial(silent.clone(), seven(&silent)).judge()).contains(&Reason::NoCases));
}

#[test]
fn product_skips_are_red_wherever_they_arise() {
    let run_time = attempt().pass(EMPTY).skip(THREE, "no gpu", Raiser::Product);
    let module =
        attempt()
            .pass("tests/sealed/test_a.py::test_a")
            .silence(CORE, "no gpu", Raiser::Product);
    let judged = trial(base(), seven(&run_time)).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::SkipFromProduct])
    );
    let judged = trial(
        base().pass("tests/sealed/test_a.py::test_a"),
        seven(&module),
    )
    .judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::SkipFromProduct])
    );
    assert_eq!(summary(&judged, THREE).code, Some(Reason::SkipFromProduct));
}

#[test]
fn the_same_silence_on_base_is_one_silenced_case() {
    let other = "tests/sealed/test_win.py";
    let empty = "tests/sealed/test_core.py::test_many[NOTSET]";
    let both = base()
        .silence(other, "needs windows", Raiser::Sealed)
        .silence(empty, "got empty", Raiser::Sealed);
    let judged = trial(both.clone(), seven(&both)).judge();
    assert_eq!(words(&judged), "PASS PASS FAIL");
    assert_eq!(
        (class(&judged, other), class(&judged, empty)),
        (Class::Silenced, Class::Silenced)
    );
    assert_eq!(flake(&judged), [Reason::UnleasedSkip, Reason::UnleasedSkip]);
    // Another reason is another silence.
    let head = base().silence(other, "needs luck", Raiser::Sealed).silence(
        empty,
        "got empty",
        Raiser::Sealed,
    );
    let judged = trial(both.clone(), seven(&head)).judge();
    assert_eq!(
        (src(&judged), summary(&judged, other).code),
        (vec![Reason::MissingCase], Some(Reason::MissingCase))
    );
    // Gone without a word.
    assert_eq!(
        src(&trial(both.clone(), seven(&base())).judge()),
        [Reason::MissingCase, Reason::MissingCase]
    );
    // Head makes them run: extra cases, no silence left.
    let runs = base()
        .pass("tests/sealed/test_win.py::test_a")
        .pass("tests/sealed/test_core.py::test_many[1]");
    let judged = trial(both.clone(), seven(&runs)).judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::ExtraCase, Reason::ExtraCase])
    );
    // Only now and then.
    let judged = trial(both.clone(), but_fourth(&runs, both)).judge();
    assert_eq!(words(&judged), "FAIL PASS PASS");
    assert_eq!(class(&judged, other), Class::Mixed);
}

#[test]
fn a_class_that_is_skipped_as_a_whole_hides_no_case() {
    let (a, b) = (
        "tests/sealed/test_core.py::TestX::test_a",
        "tests/sealed/test_core.py::TestX::test_b",
    );
    let class_gone = base().silence(
        "tests/sealed/test_core.py::TestX",
        "no luck",
        Raiser::Sealed,
    );
    let judged = trial(base().pass(a).pass(b), seven(&class_gone)).judge();
    assert_eq!(
        (src(&judged), judged.cases().len()),
        (vec![Reason::MissingCase], 4)
    );
    assert!(
        text(&judged, VerdictKind::SrcScore)
            .contains("test_core.py::TestX head skips it as a whole")
    );
    // The same on base is one silenced case, and no other class is meant.
    let judged = trial(class_gone.clone(), seven(&class_gone)).judge();
    assert_eq!(
        (words(&judged).as_str(), flake(&judged)),
        ("PASS PASS FAIL", vec![Reason::UnleasedSkip])
    );
    let other = base()
        .pass("tests/sealed/test_core.py::TestXY::test_a")
        .silence("tests/sealed/test_core.py::TestX", "r", Raiser::Sealed);
    assert_eq!(src(&trial(other.clone(), seven(&other)).judge()), []);
}

#[test]
fn a_file_that_does_not_import_takes_its_cases_along() {
    let head = attempt()
        .pass("tests/sealed/test_a.py::test_a")
        .error(CORE, "ImportError: no calc");
    let judged = trial(base().pass("tests/sealed/test_a.py::test_a"), seven(&head)).judge();
    assert_eq!(
        (words(&judged).as_str(), src(&judged)),
        ("FAIL PASS PASS", vec![Reason::CollectionError])
    );
    let said = text(&judged, VerdictKind::SrcScore);
    assert!(
        said.contains(
            "collection-error tests/sealed/test_core.py the file could not be imported, 2 cases"
        ),
        "{said}"
    );
    assert!(said.contains("ImportError: no calc"));
}

#[test]
fn a_file_that_base_cannot_read_is_owed_and_can_be_mended() {
    let good = "tests/sealed/test_a.py::test_a";
    let broken = attempt().pass(good).error(CORE, "ImportError: no calc");
    // Still broken: red, and base is named.
    let judged = trial(broken.clone(), seven(&broken)).judge();
    assert_eq!(src(&judged), [Reason::CollectionError]);
    assert!(text(&judged, VerdictKind::SrcScore).contains("also red on base"));
    assert_eq!(summary(&judged, CORE).on_base, Some(OnBase::Red));
    // Mended: its cases are extra, must pass, and do.
    let judged = trial(
        broken.clone(),
        seven(&attempt().pass(good).pass(EMPTY).pass(THREE)),
    )
    .judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::ExtraCase, Reason::ExtraCase])
    );
    // Half mended.
    let judged = trial(
        broken.clone(),
        seven(&attempt().pass(good).pass(EMPTY).fail(THREE, ASSERT)),
    )
    .judge();
    assert_eq!(src(&judged), [Reason::CaseFailed]);
    // Emptied: nothing instead of the error is no repair.
    let judged = trial(broken.clone(), seven(&attempt().pass(good))).judge();
    assert_eq!(src(&judged), [Reason::MissingCase]);
    let judged = trial(
        broken,
        seven(&attempt().pass(good).silence(CORE, "r", Raiser::Sealed)),
    )
    .judge();
    assert_eq!(src(&judged), [Reason::MissingCase]);
}

#[test]
fn a_base_that_dies_is_owed_no_more_than_it_told() {
    // While it ran: its collection stands, an empty sealed file stays empty.
    let mut running = trial(base(), seven(&base()));
    running.base = attempt().collect(EMPTY).collect(THREE).ends(End::Exited);
    assert_eq!(words(&running.judge()), "PASS PASS PASS");
    // Before it told anything: every sealed file is owed, by whatever cases it turns out to have.
    let mut before = trial(base(), seven(&base()));
    before.base_run = vec![base()];
    before.base = attempt().ends(End::Exited);
    let judged = before.judge();
    assert_eq!(
        (words(&judged).as_str(), warned(&judged)),
        ("PASS PASS PASS", vec![Reason::ExtraCase, Reason::ExtraCase])
    );
    before.property = seven(&attempt().ends(End::Exited));
    let judged = before.judge();
    assert_eq!(
        (words(&judged).as_str(), summary(&judged, CORE).on_base),
        ("FAIL PASS PASS", Some(OnBase::Red))
    );
}

#[test]
fn red_on_base_is_named_and_its_repair_is_green() {
    let red = attempt().pass(EMPTY).fail(THREE, ASSERT);
    let mut both = trial(base(), seven(&red));
    both.base_run = vec![red.clone()];
    let judged = both.judge();
    assert_eq!(
        (src(&judged), summary(&judged, THREE).on_base),
        (vec![Reason::CaseFailed], Some(OnBase::Red))
    );
    assert!(
        text(&judged, VerdictKind::SrcScore).contains("failed in all 7 attempts; also red on base")
    );
    let mut mended = trial(base(), seven(&base()));
    mended.base_run = vec![red];
    let judged = mended.judge();
    assert_eq!(
        (words(&judged).as_str(), summary(&judged, THREE).on_base),
        ("PASS PASS PASS", Some(OnBase::Red))
    );
    let mut broken = trial(base(), seven(&attempt().pass(EMPTY).fail(THREE, ASSERT)));
    broken.base_run = vec![base()];
    assert_eq!(summary(&broken.judge(), THREE).on_base, Some(OnBase::Green));
}

#[test]
fn what_the_plan_found_stands_beside_what_was_run() {
    let ground = Ground {
        reason: Reason::CassetteDrift,
        about: About::Patch,
        subject: Some("cassettes/a.json".into()),
        detail: "changed".into(),
        seen: None,
    };
    let mut drifted = trial(base(), seven(&base()));
    drifted.oracle = vec![ground.clone()];
    assert_eq!(words(&drifted.judge()), "PASS FAIL PASS");
    let judged = bench::unrun(vec![ground], vec![], GATE);
    assert_eq!(words(&judged), "NOT_RUN FAIL NOT_RUN");
    assert!(judged.cases().is_empty());
}
