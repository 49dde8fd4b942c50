//! Cases of both corpora that try to fool whoever reads a repository, taken as far as the plan and its overlay.

#![expect(clippy::panic, reason = "a test fails loudly, where it stands")]

use std::time::{Duration, Instant};
use tribunal_core::git::{GitPath, Relation};
use tribunal_core::plan::Plan;
use tribunal_core::reason::Reason;
use tribunal_core::request::Role;
use tribunal_tests::Case;
use tribunal_tests::scored::{Outcome, Scored};

fn exploit(number: &str) -> Scored {
    Scored::of(Case::named("exploits", number).materialize(), Role::Agent)
}

fn field(number: &str) -> Scored {
    Scored::of(Case::named("field", number).materialize(), Role::Agent)
}

#[track_caller]
fn barred(scored: &Scored, reason: Reason, path: &str) {
    let Outcome::Planned(Plan::Decided(decided)) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    let told = |f: &&tribunal_core::plan::Finding| {
        f.reason == reason && f.subject.as_deref() == Some(path)
    };
    let findings = decided.findings();
    assert!(findings.iter().any(|f| told(&f)), "{findings:?}");
}

#[track_caller]
fn refused(scored: &Scored, code: &str) {
    let Outcome::Refused(seen) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    assert!(seen.starts_with(&format!("{code}: ")), "{seen}");
}

#[test]
fn exploit_69_quoted_path() {
    barred(
        &exploit("69"),
        Reason::OracleEdit,
        "fixtures/sealed/münzen.csv",
    );
}

#[test]
fn exploit_71_earlier_commit_tamper() {
    barred(
        &exploit("71"),
        Reason::OracleEdit,
        "tests/sealed/test_money.py",
    );
}

#[test]
fn exploit_73_symlink_to_sealed_fixture() {
    barred(
        &exploit("73"),
        Reason::OverlaySymlinkEscape,
        "src/table.json",
    );
}

#[test]
fn exploit_75_src_is_symlink() {
    barred(&exploit("75"), Reason::OverlayRootNotATree, "src");
}

#[test]
fn exploit_77_gitlink_in_src() {
    barred(&exploit("77"), Reason::OverlayGitlink, "src/vendor");
}

/// The files that the case hides are in the overlay, byte for byte, and so is the file that hides them.
#[test]
fn exploits_79_and_81_attributes_change_nothing() {
    for number in ["79", "81"] {
        let scored = exploit(number);
        let src = scored.src_tar();
        let listed = scored.ls_tree("src/");
        assert_eq!(src.files(), listed, "{number}");
        assert!(
            listed
                .iter()
                .any(|(path, ..)| path == b"src/.gitattributes")
        );
        assert!(listed.iter().any(|(path, ..)| path == b"src/window.py"));
    }
}

#[test]
fn exploit_83_embedded_dot_git() {
    let scored = exploit("83");
    refused(&scored, "bad-object");
    let Outcome::Refused(text) = &scored.outcome else {
        unreachable!()
    };
    assert!(text.contains("hasDotgit"), "{text}");
}

#[test]
fn exploit_85_duplicate_entry() {
    let scored = exploit("85");
    refused(&scored, "bad-object");
    let Outcome::Refused(text) = &scored.outcome else {
        unreachable!()
    };
    assert!(text.contains("duplicateEntries"), "{text}");
}

#[test]
fn exploit_87_grafts_forge_no_ancestry() {
    refused(&exploit("87"), "no-merge-base");
}

#[test]
fn exploit_89_case_fold_paths() {
    refused(&exploit("89"), "bad-path");
}

#[test]
fn exploit_97_tree_bomb() {
    let case = Case::named("exploits", "97");
    let begun = Instant::now();
    let scored = Scored::of(case.materialize_with(&[("CASE_DEPTH", "10")]), Role::Agent);
    refused(&scored, "too-large");
    assert!(begun.elapsed() < Duration::from_secs(60));
    // The small one is a patch like any other.
    let scored = Scored::of(case.materialize(), Role::Agent);
    assert_eq!(scored.src_tar().files(), scored.ls_tree("src/"));
}

#[test]
fn field_01_rename_sealed_into_src() {
    let scored = field("01");
    barred(&scored, Reason::OracleEdit, "tests/sealed/test_extra.py");
    let paths: Vec<_> = scored.changes.iter().map(|c| c.path.clone()).collect();
    assert_eq!(
        paths,
        [
            GitPath::from("src/extra_checks.py"),
            GitPath::from("tests/sealed/test_extra.py")
        ]
    );
}

#[test]
fn field_03_quoted_non_ascii_sealed_path() {
    let scored = field("03");
    barred(&scored, Reason::OracleEdit, "tests/sealed/test_café.py");
}

#[test]
fn field_05_symlinks_in_src() {
    let scored = field("05");
    for path in ["src/peek", "src/host.txt", "src/calc.py"] {
        barred(&scored, Reason::OverlaySymlinkEscape, path);
    }
}

#[test]
fn field_07_export_ignore_in_src() {
    let scored = field("07");
    assert_eq!(scored.src_tar().files(), scored.ls_tree("src/"));
}

#[test]
fn field_09_annotated_tag_sha() {
    refused(&field("09"), "not-a-commit");
}

#[test]
fn field_11_head_behind_base() {
    let scored = field("11");
    assert_eq!(scored.relation, Some(Relation::Behind));
    let paths: Vec<_> = scored.changes.iter().map(|c| c.path.clone()).collect();
    assert_eq!(paths, [GitPath::from("src/calc.py")]);
    let Outcome::Planned(Plan::Run(plan)) = &scored.outcome else {
        panic!("{:?}", scored.outcome);
    };
    let files: Vec<_> = plan.files().iter().map(|f| f.as_str()).collect();
    assert_eq!(
        files,
        ["tests/sealed/test_core.py", "tests/sealed/test_new.py"]
    );
}

#[test]
fn field_13_orphan_head_no_merge_base() {
    refused(&field("13"), "no-merge-base");
}

#[test]
fn field_15_deleted_src_file_must_go() {
    let scored = field("15");
    let src = scored.src_tar();
    assert_eq!(src.files(), scored.ls_tree("src/"));
    assert!(!src.has("src/settings_override.py"));
    assert!(src.has("src/settings.py"));
    // Nor is it in the sealed tree, where head's src is to come.
    assert!(!scored.tree_tar().has("src/settings_override.py"));
    assert!(scored.tree_tar().has("src/"));
}
