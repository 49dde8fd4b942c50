//! The replay table: every way of presenting another score's files, or another word, one test each.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

use super::*;
use crate::keys::{KeyRecord, KeyRing};
use crate::signed_sample::{ISSUED, PASSES, UNTIL, commit, dir, hex40, public, scored};
use crate::statement::Scored;
use crate::verify::{VerdictDir, verify};

fn expected() -> Expected {
    Expected {
        repository: Some("demo".parse().unwrap()),
        head: hex40('a').parse().unwrap(),
        base: Some(hex40('b').parse().unwrap()),
        change_set: ChangeSet::Agent,
        now: ISSUED,
    }
}

fn ring() -> KeyRing {
    KeyRing::new(vec![KeyRecord::undated(public(7))])
}

fn passing() -> VerdictDir {
    dir(7, PASSES, Reason::CaseFailed, &scored())
}

fn join_of(dir: &VerdictDir, expected: &Expected) -> Join {
    join(verify(dir, &ring()), expected)
}

fn blocked(join: &Join) -> Blocked {
    match join.decision() {
        Decision::MergeBlocked(blocked) => blocked,
        Decision::MergeOk => panic!("{join}"),
    }
}

/// Blocked by exactly this check.
fn blocked_at(join: &Join, step: Step) -> Blocked {
    let failures: Vec<Step> = join.failures().map(|check| check.step).collect();
    assert_eq!(failures, [step], "{join}");
    blocked(join)
}

#[test]
fn exactly_three_passes_of_the_expected_subject_merge() {
    let join = join_of(&passing(), &expected());
    assert_eq!(
        (join.decision(), join.to_string().as_str()),
        (Decision::MergeOk, "MERGE_OK")
    );
    assert_eq!(join.failures().count(), 0);
    // Without a base, the tip at scoring is taken; without a repository, none is asked.
    let loose = Expected {
        base: None,
        repository: None,
        ..expected()
    };
    assert_eq!(join_of(&passing(), &loose).decision(), Decision::MergeOk);
}

#[test]
fn every_other_triple_of_words_is_blocked() {
    let all = [Word::Pass, Word::Fail, Word::NotRun];
    for a in all {
        for b in all {
            for c in all {
                let join = join_of(
                    &dir(7, [a, b, c], Reason::CaseFailed, &scored()),
                    &expected(),
                );
                if [a, b, c] == PASSES {
                    assert_eq!(join.decision(), Decision::MergeOk);
                    continue;
                }
                assert_eq!(blocked_at(&join, Step::Words), Blocked::Verdict);
                let line =
                    format!("MERGE_BLOCKED: src_score={a} oracle_integrity={b} flake_lease={c}");
                assert_eq!(join.to_string(), line);
            }
        }
    }
}

#[test]
fn replay_of_another_head() {
    let other = Expected {
        head: hex40('d').parse().unwrap(),
        ..expected()
    };
    assert_eq!(
        blocked_at(&join_of(&passing(), &other), Step::Head),
        Blocked::Unverified
    );
}

#[test]
fn replay_of_another_repository() {
    let other = Expected {
        repository: Some("other".parse().unwrap()),
        ..expected()
    };
    assert_eq!(
        blocked_at(&join_of(&passing(), &other), Step::Repository),
        Blocked::Unverified
    );
}

#[test]
fn replay_of_another_base() {
    let other = Expected {
        base: Some(hex40('d').parse().unwrap()),
        ..expected()
    };
    assert_eq!(
        blocked_at(&join_of(&passing(), &other), Step::Base),
        Blocked::Verdict
    );
}

#[test]
fn a_base_that_was_stale_when_it_was_scored() {
    let stale = Scored {
        base_tip: hex40('e').parse().unwrap(),
        ..scored()
    };
    let stale = dir(7, PASSES, Reason::CaseFailed, &stale);
    let join = join_of(
        &stale,
        &Expected {
            base: None,
            ..expected()
        },
    );
    assert_eq!(blocked_at(&join, Step::Base), Blocked::Verdict);
    assert!(format!("{:?}", join.checks()).contains("stale-base"));
    let today = Expected {
        base: Some(hex40('e').parse().unwrap()),
        ..expected()
    };
    assert_eq!(
        blocked_at(&join_of(&stale, &today), Step::Base),
        Blocked::Verdict
    );
}

#[test]
fn replay_with_swapped_kinds() {
    let mut swapped = dir(
        7,
        [Word::Pass, Word::Fail, Word::Pass],
        Reason::TamperRuntime,
        &scored(),
    );
    for ending in [".txt", ".json", ".json.sig", ".sigstore.json"] {
        let pass = swapped
            .files_mut()
            .get(&format!("src_score{ending}"))
            .unwrap()
            .clone();
        swapped
            .files_mut()
            .insert(format!("oracle_integrity{ending}"), pass);
    }
    let join = join_of(&swapped, &expected());
    assert_eq!(blocked(&join), Blocked::Unverified);
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=PASS oracle_integrity=UNVERIFIED flake_lease=PASS"
    );
}

#[test]
fn an_edited_word_file() {
    let mut edited = dir(
        7,
        [Word::Fail, Word::Pass, Word::Pass],
        Reason::CaseFailed,
        &scored(),
    );
    edited
        .files_mut()
        .insert("src_score.txt".into(), b"PASS\n".to_vec());
    let join = join_of(&edited, &expected());
    assert_eq!(blocked_at(&join, Step::Word), Blocked::Unverified);
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=UNVERIFIED oracle_integrity=PASS flake_lease=PASS"
    );
}

#[test]
fn an_unknown_word() {
    let mut edited = passing();
    edited
        .files_mut()
        .insert("flake_lease.txt".into(), b"MAYBE\n".to_vec());
    assert_eq!(
        blocked_at(&join_of(&edited, &expected()), Step::Word),
        Blocked::Unverified
    );
}

#[test]
fn a_missing_file() {
    let mut missing = passing();
    missing.files_mut().remove("flake_lease.txt").unwrap();
    let join = join_of(&missing, &expected());
    assert_eq!(blocked_at(&join, Step::Present), Blocked::Unverified);
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=PASS oracle_integrity=PASS flake_lease=MISSING"
    );
    let nothing = join_of(&VerdictDir::default(), &expected());
    assert_eq!(
        nothing.to_string(),
        "MERGE_BLOCKED: src_score=MISSING oracle_integrity=MISSING flake_lease=MISSING"
    );
}

#[test]
fn an_expired_set_and_one_from_the_future() {
    let at = |now: i64| Expected {
        now: UnixTime(now),
        ..expected()
    };
    assert_eq!(
        join_of(&passing(), &at(UNTIL.0 - 1)).decision(),
        Decision::MergeOk
    );
    assert_eq!(
        blocked_at(&join_of(&passing(), &at(UNTIL.0)), Step::Age),
        Blocked::Unverified
    );
    assert_eq!(
        join_of(&passing(), &at(ISSUED.0 - CLOCK_SKEW)).decision(),
        Decision::MergeOk
    );
    assert_eq!(
        blocked_at(
            &join_of(&passing(), &at(ISSUED.0 - CLOCK_SKEW - 1)),
            Step::Age
        ),
        Blocked::Unverified
    );
}

#[test]
fn a_revoked_key() {
    let revoked = ring()
        .revoked(public(7).id(), UnixTime(ISSUED.0 - 1))
        .unwrap();
    let join = join(verify(&passing(), &revoked), &expected());
    assert_eq!(blocked(&join), Blocked::Unverified);
    assert!(join.failures().all(|check| check.step == Step::KeyDates));
}

#[test]
fn a_key_that_is_not_ours() {
    let forged = dir(8, PASSES, Reason::CaseFailed, &scored());
    let join = join_of(&forged, &expected());
    assert_eq!(blocked(&join), Blocked::Unverified);
    assert_eq!(
        join.to_string(),
        "MERGE_BLOCKED: src_score=UNVERIFIED oracle_integrity=UNVERIFIED flake_lease=UNVERIFIED"
    );
}

#[test]
fn a_human_set_that_was_not_asked_for_and_one_that_was() {
    let human = dir(
        7,
        PASSES,
        Reason::CaseFailed,
        &Scored {
            change_set: ChangeSet::Human,
            ..scored()
        },
    );
    assert_eq!(
        blocked_at(&join_of(&human, &expected()), Step::ChangeSet),
        Blocked::Verdict
    );
    let asked = Expected {
        change_set: ChangeSet::Human,
        ..expected()
    };
    assert_eq!(join_of(&human, &asked).decision(), Decision::MergeOk);
    assert_eq!(
        blocked_at(&join_of(&passing(), &asked), Step::ChangeSet),
        Blocked::Verdict
    );
}

#[test]
fn three_scores_mixed_into_one_folder() {
    let second = Scored {
        score: "2".repeat(32).parse().unwrap(),
        ..scored()
    };
    let mut mixed = passing();
    for (name, bytes) in dir(7, PASSES, Reason::CaseFailed, &second).files_mut() {
        if name.starts_with("flake_lease") {
            mixed.files_mut().insert(name.clone(), bytes.clone());
        }
    }
    assert_eq!(
        blocked_at(&join_of(&mixed, &expected()), Step::OneSet),
        Blocked::Unverified
    );
}

#[test]
fn a_pass_of_yesterday_is_worth_nothing_for_todays_commit() {
    let yesterday = dir(
        7,
        PASSES,
        Reason::CaseFailed,
        &Scored {
            head: commit('d'),
            ..scored()
        },
    );
    assert_eq!(
        blocked_at(&join_of(&yesterday, &expected()), Step::Head),
        Blocked::Unverified
    );
}

#[test]
fn exit_codes_and_which_of_them_speaks() {
    let code = |words: [Word; 3], reason: Reason| {
        let join = join_of(&dir(7, words, reason, &scored()), &expected());
        (blocked(&join).exit_code(), join.reasons().to_vec())
    };
    let [p, f] = [Word::Pass, Word::Fail];
    assert_eq!(
        code([f, p, p], Reason::CaseFailed),
        (1, vec![Reason::CaseFailed])
    );
    assert_eq!(
        code([f, p, p], Reason::CassetteGap),
        (3, vec![Reason::CassetteGap])
    );
    assert_eq!(
        code([p, p, f], Reason::ForbiddenMark),
        (2, vec![Reason::ForbiddenMark])
    );
    assert_eq!(
        blocked_by(
            Step::Words,
            &[
                Reason::CaseFailed,
                Reason::CassetteGap,
                Reason::ForbiddenMark
            ]
        )
        .exit_code(),
        2
    );
    assert_eq!(blocked_by(Step::Base, &[]).exit_code(), 1);
    assert_eq!(
        blocked_by(Step::Head, &[Reason::ForbiddenMark]).exit_code(),
        5
    );
    assert!(
        Blocked::Unverified > Blocked::ForbiddenMark
            && Blocked::ForbiddenMark > Blocked::CassetteGap
    );
    assert!(Blocked::CassetteGap > Blocked::Verdict);
}
