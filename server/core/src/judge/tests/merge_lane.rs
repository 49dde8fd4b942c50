//! The merge lane's table: what touched tests did, and what `flake_lease` says of it.

use super::*;
use crate::git::{Entry, GitPath, Mode};
use crate::outcome::{Counts, Gained, GainedKind};
use crate::plan::{SrcEntry, Text, TextKind, TouchedText};

const FILE: &str = "tests/test_new.py";
const A: &str = "tests/test_new.py::test_a";
const B: &str = "tests/test_new.py::test_b";

/// A sealed side that holds, and one touched file with these attempts.
fn merge(base: Option<Attempt>, attempts: Vec<Attempt>) -> Trial {
    let sealed = attempt().pass(EMPTY).pass(THREE);
    let file: RepoPath = FILE.parse().unwrap();
    let id: crate::id::ObjectId = "1".repeat(40).parse().unwrap();
    let entry = SrcEntry {
        path: GitPath::from(FILE),
        entry: Entry {
            mode: Mode::File,
            id: id.clone(),
        },
        size: 1,
        link_target: None,
        lfs_pointer: false,
    };
    let mut trial = trial(sealed.clone(), vec![sealed]);
    trial.touched = TouchedFacts {
        changes: vec![(GitPath::from(FILE), Some(entry))],
        files: vec![file.clone()],
        base_files: base.iter().map(|_| file.clone()).collect(),
        texts: vec![TouchedText {
            file: file.clone(),
            kind: TextKind::Test,
            now: Text::Blob(id),
            before: vec![],
        }],
        ..TouchedFacts::default()
    };
    trial.merge_base = base;
    trial.merge_runs = vec![MergeRun {
        files: vec![file.clone()],
        reruns: u32::try_from(attempts.len()).unwrap(),
        attempts: attempts.into_iter().map(|a| a.0).collect(),
    }];
    trial.merge_marks = vec![MarksFound {
        file,
        gained: vec![],
        unread: None,
    }];
    trial
}

fn marked(mut attempt: Attempt, mark: &str) -> Attempt {
    attempt
        .0
        .collected
        .last_mut()
        .unwrap()
        .marks
        .push(mark.into());
    attempt
}

/// Name, base, attempts, grounds, warnings.
type Row = (
    &'static str,
    Option<Attempt>,
    Vec<Attempt>,
    Vec<Reason>,
    Vec<Reason>,
);

#[test]
fn what_a_mixed_case_owes_is_told_once_and_proposed_runs_are_told_together() {
    let attempts = || {
        vec![
            attempt().pass(A),
            attempt().fail(A, "AssertionError: 1 == 2"),
        ]
    };
    let judged = merge(None, attempts()).judge();
    let grounds = judged.verdict(VerdictKind::FlakeLease).grounds();
    let detail = &grounds.first().unwrap().detail;
    assert_eq!(detail.matches("owed: ").count(), 1, "{detail}");

    let run = |file: &str, attempts: Vec<Attempt>| MergeRun {
        files: vec![file.parse().unwrap()],
        reruns: u32::try_from(attempts.len()).unwrap(),
        attempts: attempts.into_iter().map(|a| a.0).collect(),
    };
    let other = "tests/test_other.py";
    let one = || attempt().pass("tests/test_other.py::test_c");
    let told = advice(&[run(FILE, attempts()), run(other, vec![one(), one(), one()])]);
    let counts: Vec<(&str, usize)> = told
        .files
        .iter()
        .map(|(file, seen)| (file.as_str(), seen.attempts))
        .collect();
    assert_eq!(counts, [(FILE, 2), (other, 3)]);
    let classes: Vec<Class> = told.cases.iter().map(|case| case.class).collect();
    assert_eq!(classes, [Class::Mixed, Class::StablePass]);
}

#[test]
fn the_table() {
    let sealed = Raiser::Sealed;
    let pass = || attempt().pass(A);
    let fail = || attempt().fail(A, "AssertionError: 1 == 2");
    let skip = || attempt().skip(A, "no network", sealed);
    let product = || attempt().skip(A, "no network", Raiser::Product);
    let import = || attempt().error(FILE, "ImportError: no module");
    let whole = |reason| attempt().silence(FILE, reason, sealed);
    use Reason as R;
    #[rustfmt::skip]
    let rows: Vec<Row> = vec![
        ("stable pass", None, vec![pass(), pass()], vec![], vec![]),
        ("stable red", None, vec![fail(), fail()], vec![R::MergeLaneRed], vec![]),
        ("red on base too", Some(fail()), vec![fail(), fail()], vec![R::MergeLaneRed], vec![]),
        ("mixed", None, vec![pass(), fail()], vec![R::CassetteGap], vec![]),
        ("two ways to fail", None, vec![fail(), attempt().fail(A, "E: other")], vec![R::CassetteGap], vec![]),
        ("skipped now and then", None, vec![pass(), skip()], vec![R::CassetteGap], vec![]),
        ("collected now and then", None, vec![pass(), attempt()], vec![R::CassetteGap], vec![]),
        ("a new skip", Some(pass()), vec![skip(), skip()], vec![R::ForbiddenMark], vec![]),
        ("a skip in a new test", None, vec![skip(), skip()], vec![R::ForbiddenMark], vec![]),
        ("an old skip", Some(skip()), vec![skip(), skip()], vec![], vec![R::UnleasedSkip]),
        ("a new xfail at run time", Some(pass()), vec![attempt().xfail(A, "E: x", sealed)], vec![R::ForbiddenMark], vec![]),
        ("the product skips, new", Some(pass()), vec![product()], vec![R::ForbiddenMark], vec![]),
        ("the product skips, old", Some(product()), vec![product()], vec![], vec![R::UnleasedSkip]),
        ("a file that skips itself", Some(pass()), vec![whole("later")], vec![R::ForbiddenMark], vec![R::TestRemoved]),
        ("the same as base did", Some(whole("later")), vec![whole("later")], vec![], vec![R::UnleasedSkip]),
        ("the same for another reason", Some(whole("now")), vec![whole("later")], vec![R::ForbiddenMark], vec![]),
        ("no import", Some(pass()), vec![import(), import()], vec![R::MergeLaneRed], vec![]),
        ("imported now and then", None, vec![pass(), import()], vec![R::CassetteGap], vec![]),
        ("a case is gone", Some(pass().pass(B)), vec![pass()], vec![], vec![R::TestRemoved]),
        ("nothing is left", Some(pass()), vec![attempt()], vec![], vec![R::TestRemoved]),
        ("exits", None, vec![attempt().die(End::Exited, A)], vec![R::ProcessExit], vec![]),
        ("no records", None, vec![attempt().die(End::Protocol, A)], vec![R::ProcessExit], vec![]),
        ("hangs", None, vec![attempt().die(End::CaseTimeout, A)], vec![R::Timeout], vec![]),
        ("memory", None, vec![attempt().die(End::OutOfMemory, A)], vec![R::OutOfMemory], vec![]),
        ("floods", None, vec![attempt().die(End::OutputLimit, A)], vec![R::OutputLimit], vec![]),
        ("a collected mark", Some(pass()), vec![marked(pass(), "skipif")], vec![R::ForbiddenMark], vec![]),
        ("base has the mark", Some(marked(pass(), "skip")), vec![marked(pass(), "skip")], vec![], vec![]),
        ("an innocent mark", Some(pass()), vec![marked(pass(), "slow")], vec![], vec![]),
        ("a mark of the policy's", Some(pass()), vec![marked(pass(), "sluggish")], vec![R::ForbiddenMark], vec![]),
    ];
    for (name, base, attempts, flake_codes, warned_codes) in rows {
        let mut trial = merge(base, attempts);
        trial.runs.forbid_marks = vec!["sluggish".into()];
        let judged = trial.judge();
        assert_eq!(flake(&judged), flake_codes, "{name}");
        assert_eq!(warned(&judged), warned_codes, "{name}");
        // Whatever a touched test does, it is no part of the other verdicts.
        assert!(
            words(&judged).starts_with("PASS PASS "),
            "{name}: {}",
            words(&judged)
        );
    }
}

#[test]
fn threads_cannot_be_pinned() {
    let with_threads = |mut attempt: Attempt| {
        attempt.0.cases[0].reads.oracle = Counts {
            threads: 1,
            ..Counts::default()
        };
        attempt
    };
    let fail = attempt().fail(A, "AssertionError: 1 == 2");
    let judged = merge(
        None,
        vec![with_threads(attempt().pass(A)), with_threads(fail)],
    )
    .judge();
    assert_eq!(flake(&judged), [Reason::UnpinnableSource]);
}

#[test]
fn what_the_texts_gained() {
    let gained = |kind| Gained {
        what: "pytest.mark.skip".into(),
        scope: "test_a".into(),
        line: 4,
        kind,
    };
    let mut trial = merge(
        Some(attempt().pass(A)),
        vec![marked(attempt().pass(A), "skip")],
    );
    trial.merge_marks[0]
        .gained
        .push(gained(GainedKind::Silence));
    // The same mark is told once, by its line.
    assert_eq!(flake(&trial.judge()), [Reason::ForbiddenMark]);
    assert!(text(&trial.judge(), VerdictKind::FlakeLease).contains("line 4: `test_a` gained"));
    trial.merge_marks[0].gained[0] = gained(GainedKind::EarlyReturn);
    trial.merge_runs[0].attempts = vec![attempt().pass(A).0];
    assert_eq!(flake(&trial.judge()), []);
    assert_eq!(warned(&trial.judge()), [Reason::UnleasedSkip]);
}

#[test]
fn what_cannot_be_read_counts_as_gained() {
    let mut trial = merge(None, vec![attempt().pass(A)]);
    trial.merge_marks[0].unread = Some("invalid syntax".into());
    assert_eq!(flake(&trial.judge()), [Reason::ForbiddenMark]);
    trial.touched.texts[0].kind = TextKind::Helper;
    assert_eq!(flake(&trial.judge()), []);
    trial.touched.texts[0].kind = TextKind::Test;
    trial.touched.texts[0].now = Text::None("a symlink");
    assert_eq!(flake(&trial.judge()), [Reason::ForbiddenMark]);
}

#[test]
fn nothing_is_judged_that_was_not_seen() {
    let whole = || {
        merge(
            Some(attempt().pass(A)),
            vec![attempt().pass(A), attempt().pass(A)],
        )
    };
    assert!(whole().judge_at(GATE).is_ok());
    let mut trial = whole();
    trial.merge_runs[0].attempts.pop();
    assert!(trial.judge_at(GATE).is_err());
    let mut trial = whole();
    trial.merge_runs.clear();
    assert!(trial.judge_at(GATE).is_err());
    let mut trial = whole();
    trial.merge_base = None;
    assert!(trial.judge_at(GATE).is_err());
    let mut trial = whole();
    trial.merge_marks.clear();
    assert!(trial.judge_at(GATE).is_err());
}

#[test]
fn cases_stand_apart_from_the_sealed_ones() {
    let judged = merge(None, vec![attempt().pass(A), attempt().fail(A, "E: x")]).judge();
    assert!(judged.cases().iter().all(|case| case.node.as_str() != A));
    let lane = judged.merge().unwrap();
    assert_eq!(lane.cases.len(), 1);
    assert_eq!(lane.cases[0].class, Class::Mixed);
    assert_eq!(lane.cases[0].code, Some(Reason::CassetteGap));
    assert_eq!(lane.files[0].1.attempts, 2);
    assert!(lane.files[0].1.upper_bound_ppm > 700_000);
}
