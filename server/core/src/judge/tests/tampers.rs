//! What the product did to its judge: which of it counts, and where it stands.

use super::*;
use crate::outcome::{Canaries, Tamper, TamperKind};

fn tamper(kind: TamperKind, what: &str) -> Tamper {
    Tamper {
        kind,
        what: what.to_owned(),
    }
}

fn green() -> Attempt {
    attempt().pass(EMPTY).pass(THREE)
}

/// Both cases pass, and this was seen in the call of the second.
fn within(seen: Tamper) -> Attempt {
    let mut attempt = green();
    attempt.0.cases[1].phases[1].tamper.push(seen);
    attempt
}

fn outside(seen: Tamper) -> Attempt {
    let mut attempt = green();
    attempt.0.tamper.push(seen);
    attempt
}

fn canaries(passed: u32) -> Attempt {
    let mut attempt = green();
    attempt.0.canaries = Canaries { run: 2, passed };
    attempt
}

fn on(base: &Attempt, head: &Attempt) -> Judged {
    let mut trial = trial(base.clone(), seven(head));
    trial.base_run = vec![base.clone()];
    trial.pinned_under = vec![base.clone()];
    trial.judge()
}

/// Head does this in its second attempt; base was not seen doing it.
fn once(kind: TamperKind) -> Trial {
    let mut heads = seven(&green());
    for (index, head) in (0..).zip(&mut heads) {
        head.0.index = index;
    }
    heads[1] = within(tamper(kind, "x"));
    heads[1].0.index = 1;
    let mut trial = trial(green(), heads);
    trial.base_run = vec![green()];
    trial
}

/// Base under the draw of this number.
fn under(index: u32, base: &Attempt) -> Vec<Attempt> {
    let mut base = base.clone();
    base.0.index = index;
    vec![base]
}

#[test]
fn before_it_counts_base_is_asked_under_the_very_draw() {
    let kind = TamperKind::UniversalEquality;
    let mut trial = once(kind);
    assert_eq!(trial.judge_at(GATE), Err(Incomplete::AskBase));
    // Under another draw it answers nothing.
    trial.pinned_under = under(0, &green());
    assert_eq!(trial.judge_at(GATE), Err(Incomplete::AskBase));
    trial.pinned_under = under(1, &green());
    assert_eq!(words(&trial.judge()), "FAIL FAIL PASS");
    trial.pinned_under = under(1, &within(tamper(kind, "x")));
    assert_eq!(words(&trial.judge()), "PASS PASS PASS");
    trial.pinned_under = under(1, &within(tamper(kind, "y")));
    assert_eq!(words(&trial.judge()), "FAIL FAIL PASS");
    // What no draw explains counts at once.
    let spoke = once(TamperKind::Protocol);
    assert_eq!(words(&spoke.judge()), "FAIL FAIL PASS");
}

#[test]
fn one_answer_of_base_that_holds_it_against_the_patch_is_enough() {
    let kind = TamperKind::Lied;
    let mut trial = once(kind);
    trial.property[4] = within(tamper(kind, "x"));
    trial.property[4].0.index = 4;
    trial.draws = 1;
    trial.held_out = vec![within(tamper(kind, "x"))];
    trial.pinned_under = under(1, &green());
    let judged = trial.judge();
    let [ground] = judged.verdict(VerdictKind::OracleIntegrity).grounds() else {
        unreachable!("one ground")
    };
    assert!(
        ground.detail.ends_with("in attempt 2 of 7"),
        "{}",
        ground.detail
    );
    // What base does under one draw it does; that goes for all.
    trial.pinned_under = under(1, &within(tamper(kind, "x")));
    assert_eq!(words(&trial.judge()), "PASS PASS PASS");
}

#[test]
fn a_case_that_base_does_not_pass_may_show_what_base_does_elsewhere() {
    let seen = || tamper(TamperKind::UniversalEquality, "x");
    let mut elsewhere = green();
    elsewhere.0.cases[0].phases[1].tamper.push(seen());
    assert_eq!(words(&on(&elsewhere, &within(seen()))), "FAIL FAIL PASS");
    let mut red = attempt().pass(EMPTY).fail(THREE, "AssertionError: x");
    red.0.cases[0].phases[1].tamper.push(seen());
    assert_eq!(words(&on(&red, &within(seen()))), "PASS PASS PASS");
    let other = within(tamper(TamperKind::UniversalEquality, "y"));
    assert_eq!(words(&on(&red, &other)), "FAIL FAIL PASS");
}

#[test]
fn every_kind_has_its_reason_and_fails_both_verdicts() {
    for (kind, reason) in [
        (TamperKind::Refused, Reason::TamperRuntime),
        (TamperKind::UniversalEquality, Reason::TamperRuntime),
        (TamperKind::Lied, Reason::TamperRuntime),
        (TamperKind::Protocol, Reason::TamperResultChannel),
        (TamperKind::ForeignModule, Reason::TamperRuntime),
        (TamperKind::Changed, Reason::TamperRuntime),
        (TamperKind::Witness, Reason::TamperRuntime),
        (TamperKind::Audit, Reason::TamperRuntime),
    ] {
        for head in [within(tamper(kind, "x")), outside(tamper(kind, "x"))] {
            let judged = on(&green(), &head);
            assert_eq!(words(&judged), "FAIL FAIL PASS", "{kind:?}");
            assert_eq!(codes(&judged, VerdictKind::SrcScore), [reason]);
            assert_eq!(codes(&judged, VerdictKind::OracleIntegrity), [reason]);
        }
    }
}

#[test]
fn what_base_does_as_well_is_nobodys_fault() {
    let seen = || tamper(TamperKind::Audit, "sys.settrace");
    let fails = "FAIL FAIL PASS";
    for (base, head, expected) in [
        (within(seen()), within(seen()), "PASS PASS PASS"),
        (outside(seen()), within(seen()), "PASS PASS PASS"),
        (outside(seen()), outside(seen()), "PASS PASS PASS"),
        // In a case of base's, it does not excuse it anywhere else.
        (within(seen()), outside(seen()), fails),
        (
            within(tamper(TamperKind::Audit, "gc.get_objects")),
            within(seen()),
            fails,
        ),
        (
            within(tamper(TamperKind::Witness, "sys.settrace")),
            within(seen()),
            fails,
        ),
        (green(), within(seen()), fails),
    ] {
        assert_eq!(words(&on(&base, &head)), expected);
    }
}

#[test]
fn a_changed_argument_counts_where_base_comes_as_far() {
    let head = within(tamper(TamperKind::Changed, "a list"));
    assert_eq!(words(&on(&green(), &head)), "FAIL FAIL PASS");
    let mut raises = green();
    raises.0.cases[1].phases[1].by = Raiser::Product;
    assert_eq!(words(&on(&raises, &head)), "PASS PASS PASS");
    let mut lacks = green();
    lacks.0.cases.truncate(1);
    assert_ne!(
        codes(&on(&lacks, &head), VerdictKind::OracleIntegrity),
        [Reason::TamperRuntime]
    );
}

#[test]
fn one_attempt_is_enough_and_what_was_seen_stays_out_of_the_detail() {
    let mut heads = seven(&green());
    heads[3] = within(tamper(TamperKind::Witness, "json.loads replaced"));
    let mut trial = trial(green(), heads);
    trial.base_run = vec![green()];
    trial.pinned_under = vec![green()];
    let judged = trial.judge();
    let [ground] = judged.verdict(VerdictKind::OracleIntegrity).grounds() else {
        unreachable!("one ground")
    };
    assert_eq!(ground.subject.as_deref(), Some(THREE));
    assert_eq!(
        ground.detail,
        "product code replaced what is not its own, in attempt 4 of 7"
    );
    assert_eq!(ground.seen.as_deref(), Some("json.loads replaced"));
}

#[test]
fn under_held_out_pins_no_case_and_no_text_is_told() {
    let mut trial = trial(green(), seven(&green()));
    trial.base_run = vec![green()];
    trial.draws = 1;
    trial.held_out = vec![within(tamper(TamperKind::Lied, "1 == 2"))];
    assert_eq!(trial.judge_at(GATE), Err(Incomplete::AskBase));
    trial.base_under = vec![green()];
    let judged = trial.judge();
    let [ground] = judged.verdict(VerdictKind::OracleIntegrity).grounds() else {
        unreachable!("one ground")
    };
    assert_eq!(
        (ground.about, ground.subject.as_deref()),
        (About::HeldOut, None)
    );
}

#[test]
fn refusals_in_a_file_that_needs_shared_are_not_judged() {
    let mut trial = trial(green(), seven(&within(tamper(TamperKind::Refused, "x"))));
    trial.base_run = vec![green()];
    trial.need_shared = [(CORE.parse().unwrap(), vec![])].into();
    assert_eq!(words(&trial.judge()), "PASS PASS PASS");
}

#[test]
fn a_canary_that_passes_fails_both_unless_base_passes_it_too() {
    assert_eq!(words(&on(&canaries(0), &canaries(0))), "PASS PASS PASS");
    assert_eq!(words(&on(&canaries(1), &canaries(1))), "PASS PASS PASS");
    let judged = on(&canaries(0), &canaries(1));
    assert_eq!(words(&judged), "FAIL FAIL PASS");
    assert_eq!(
        codes(&judged, VerdictKind::SrcScore),
        [Reason::TamperCanary]
    );
}

/// A shared file whose cases pass, and the two ends that a must-fail rerun had.
fn rerun(head: Attempt, base: Option<Attempt>) -> Trial {
    let mut trial = trial(green(), seven(&green()));
    trial.base_run = vec![green()];
    trial.shared = vec![CORE.parse().unwrap()];
    trial.must_fail = vec![head];
    trial.must_fail_base.extend(base);
    trial
}

const ENDS: &str = "MustFail: x";

fn failing() -> Attempt {
    attempt().fail(EMPTY, ENDS).fail(THREE, ENDS)
}

#[test]
fn a_case_of_a_shared_file_must_fail_when_each_end_of_it_does() {
    let half = || attempt().fail(EMPTY, ENDS).pass(THREE);
    let other = || attempt().fail(EMPTY, ENDS).fail(THREE, "ValueError: x");
    let missing = || attempt().fail(EMPTY, ENDS).die(End::Exited, THREE);
    for (head, base, expected) in [
        (failing(), None, "PASS PASS PASS"),
        (half(), Some(failing()), "FAIL FAIL PASS"),
        (other(), Some(failing()), "FAIL FAIL PASS"),
        (missing(), Some(failing()), "FAIL FAIL PASS"),
        // The sealed code swallows it, whatever product it has.
        (half(), Some(half()), "PASS PASS PASS"),
        // Base is red there: that excuses nothing.
        (half(), Some(other()), "FAIL FAIL PASS"),
    ] {
        let judged = rerun(head, base).judge();
        assert_eq!(words(&judged), expected);
        if expected != "PASS PASS PASS" {
            assert_eq!(
                codes(&judged, VerdictKind::OracleIntegrity),
                [Reason::TamperCanary]
            );
        }
    }
}

#[test]
fn a_rerun_that_was_not_made_is_no_verdict() {
    let mut never = rerun(failing(), None);
    never.must_fail.clear();
    assert_eq!(never.judge_at(GATE), Err(Incomplete::MustFail(2)));
    let half = rerun(attempt().fail(EMPTY, ENDS).pass(THREE), None);
    assert_eq!(half.judge_at(GATE), Err(Incomplete::MustFail(1)));
    // What is split, or red anyway, is not asked.
    let mut split = rerun(failing(), None);
    split.must_fail.clear();
    split.shared.clear();
    assert_eq!(words(&split.judge()), "PASS PASS PASS");
    let mut red = rerun(failing(), None);
    red.must_fail.clear();
    red.property = seven(&attempt().pass(EMPTY).fail(THREE, "AssertionError: x"));
    assert_eq!(words(&red.judge()), "FAIL PASS PASS");
}
