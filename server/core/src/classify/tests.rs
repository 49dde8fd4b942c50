//! Classification as tables: paths, names, pytest tables, change sets; and its laws as properties.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its table up should stop"
)]

use super::*;
use crate::git::{Entry, Mode};
use crate::reason::Reason;
use crate::sample::{changes, classified, commits, object, patch};
use proptest::prelude::*;

/// The row's path and its class under the default policy.
#[rustfmt::skip]
const DEFAULTS: &[(&str, PathClass)] = &[
    ("src/money.py", PathClass::Src),
    ("src", PathClass::Src),
    ("src/tests/sealed/x.py", PathClass::Src),
    ("srcs/money.py", PathClass::Other),
    ("Src/money.py", PathClass::Other),
    ("tests/sealed/test_a.py", PathClass::Oracle),
    ("tests/sealed", PathClass::Oracle),
    ("tests/sealed/json.py", PathClass::Oracle),
    ("tests/sealed/MANIFEST.txt", PathClass::Oracle),
    ("fixtures/sealed/table.json", PathClass::Oracle),
    ("fixtures", PathClass::Oracle),
    ("fixtures/open.json", PathClass::Other),
    ("properties/p.py", PathClass::Oracle),
    ("ci/flake_leases.json", PathClass::Oracle),
    ("ci/tribunal.toml", PathClass::Oracle),
    ("ci/allowed_signers", PathClass::Oracle),
    ("ci/cassette_ledger.json", PathClass::Cassette),
    ("ci", PathClass::Oracle),
    ("cassettes/a.json", PathClass::Cassette),
    ("cassettes/bodies/00", PathClass::Cassette),
    ("cassettes", PathClass::Cassette),
    ("tests/proposed/test_a.py", PathClass::Proposed),
    ("tests/proposed", PathClass::Proposed),
    ("tests/proposed/conftest.py", PathClass::Proposed),
    ("tests/proposed/pytest.ini", PathClass::Proposed),
    ("tests/test_a.py", PathClass::Touched),
    ("tests", PathClass::Touched),
    ("tests/sealed_not/test_a.py", PathClass::Touched),
    ("README.md", PathClass::Other),
    ("conftest.py", PathClass::Oracle),
    ("src/conftest.py", PathClass::Oracle),
    ("src/deep/er/conftest.py", PathClass::Oracle),
    ("tests/conftest.py", PathClass::Oracle),
    ("cassettes/conftest.py", PathClass::Oracle),
    ("pytest.ini", PathClass::Oracle),
    (".pytest.ini", PathClass::Oracle),
    ("src/pytest.toml", PathClass::Oracle),
    (".pytest.toml", PathClass::Oracle),
    ("sitecustomize.py", PathClass::Oracle),
    ("src/usercustomize.py", PathClass::Oracle),
    ("src/sitecustomize/__init__.py", PathClass::Oracle),
    ("src/conftest.py/x", PathClass::Oracle),
    ("src/my_conftest.py", PathClass::Src),
    ("src/pyproject.toml", PathClass::Src),
    ("pyproject.toml", PathClass::Other),
    (".gitattributes", PathClass::Other),
    (".gitmodules", PathClass::Other),
];

#[test]
fn the_default_paths_have_their_classes() {
    let paths = Paths::default();
    for (path, class) in DEFAULTS {
        assert_eq!(class_of(&paths, &GitPath::from(*path)), *class, "{path}");
    }
}

const OVERLAPPING: &str = r#"
[paths]
src = ["lib/python/", "parse.py", "tests/sealed/gen/", "conftest.py"]
sealed = ["lib/python/pkg/tests/", "tests/sealed/", "ci/"]
manifest = "lib/python/pkg/tests/MANIFEST.txt"
protect = ["tools/", "lib/python/pkg/_version.py", "Makefile"]
"#;

/// The same under a policy whose paths overlap.
#[rustfmt::skip]
const LONGEST_WINS: &[(&str, PathClass)] = &[
    ("lib/python/pkg/core.py", PathClass::Src),
    ("lib/python/pkg/tests/test_a.py", PathClass::Oracle),
    ("lib/python/pkg/_version.py", PathClass::Oracle),
    ("lib/python/pkg/_version.pyi", PathClass::Src),
    ("lib/python", PathClass::Src),
    ("lib", PathClass::Oracle),
    ("lib/other", PathClass::Other),
    ("tests/sealed/gen/x.py", PathClass::Src),
    ("tests/sealed/gen/conftest.py", PathClass::Oracle),
    ("tests/sealed/x.py", PathClass::Oracle),
    ("parse.py", PathClass::Src),
    ("parse.py/x", PathClass::Other),
    ("parse.pyc", PathClass::Other),
    ("conftest.py", PathClass::Src),
    ("Makefile", PathClass::Oracle),
    ("Makefile.am", PathClass::Other),
    ("tools", PathClass::Oracle),
    ("src/x.py", PathClass::Other),
];

#[test]
fn exact_paths_then_names_then_the_longest_prefix() {
    let policy = Policy::parse(OVERLAPPING.as_bytes()).unwrap();
    for (path, class) in LONGEST_WINS {
        assert_eq!(
            class_of(&policy.paths, &GitPath::from(*path)),
            *class,
            "{path}"
        );
    }
}

/// Row, base's tree, head's tree, and what the refusal must say; empty where all names are fit.
type Trees = &'static [&'static str];
#[rustfmt::skip]
const NAMES: &[(&str, Trees, Trees, &str)] = &[
    ("plain", &["src/a.py"], &["src/a.py", "src/b.py"], ""),
    ("non_ascii", &[], &["src/café.py", "docs/日本.md"], ""),
    ("spaces_inside", &[], &["docs/a b.md", "docs/.hidden"], ""),
    ("control_character", &[], &["src/a\u{1}.py"], "src/a\\u{1}.py holds a control character"),
    ("newline", &[], &["docs/a\nb"], "holds a control character"),
    ("delete_character", &[], &["docs/a\u{7f}"], "holds a control character"),
    ("c1_control", &[], &["docs/a\u{85}b"], "holds a control character"),
    ("backslash", &[], &["src/a\\b.py"], "holds a backslash or colon"),
    ("colon", &[], &["src/a.py:stream"], "holds a backslash or colon"),
    ("drive_in_a_folder", &[], &["C:/a.py"], "holds a backslash or colon"),
    ("trailing_dot", &[], &["src/money.py."], "ends in a dot or space"),
    ("trailing_space", &[], &["src/money.py "], "ends in a dot or space"),
    ("trailing_dot_of_a_folder", &[], &["tests./sealed/a"], "ends in a dot or space"),
    ("dot_dot", &[], &["src/../ci/x"], "has an empty, `.` or `..` part"),
    ("empty_part", &[], &["src//x"], "has an empty, `.` or `..` part"),
    ("case_of_a_file", &["src/money.py"], &["src/money.py", "src/Money.py"], "src/Money.py is the same name as src/money.py"),
    ("case_of_a_folder", &["tests/sealed/a.py"], &["tests/sealed/a.py", "Tests/Sealed/b.py"], "Tests is the same name as tests"),
    ("case_of_a_root", &["src/a.py"], &["src/a.py", "SRC/b.py"], "SRC is the same name as src"),
    ("file_against_folder", &["docs/a.md"], &["docs/a.md", "Docs"], "Docs is the same name as docs"),
    ("two_new_ones", &[], &["docs/A.md", "docs/a.md"], "docs/a.md is the same name as docs/A.md"),
    ("unscored_names_too", &["README"], &["README", "Readme"], "is the same name"),
    ("composition", &["src/caf\u{e9}.py"], &["src/caf\u{e9}.py", "src/cafe\u{301}.py"], "is the same name"),
    ("sharp_s", &["docs/straße"], &["docs/straße", "docs/STRASSE"], "is the same name"),
    ("capital_sharp_s", &["docs/straße"], &["docs/straße", "docs/STRA\u{1e9e}E"], "is the same name"),
    ("final_sigma", &["docs/ΣΑΣ"], &["docs/ΣΑΣ", "docs/σας"], "is the same name"),
    ("kelvin", &["src/k.py"], &["src/k.py", "src/\u{212a}.py"], "is the same name"),
    ("long_s", &["src/s.py"], &["src/s.py", "src/\u{17f}.py"], "is the same name"),
    ("ligature", &["docs/ffi"], &["docs/ffi", "docs/\u{fb03}"], "is the same name"),
    ("ignored_by_hfs", &["src/money.py"], &["src/money.py", "src/mon\u{200d}ey.py"], "is the same name"),
    ("dotless_i_is_another_letter", &["docs/i"], &["docs/i", "docs/ı"], ""),
    ("full_width_is_another_letter", &["src/a.py"], &["src/a.py", "src/ａ.py"], ""),
    ("renamed_by_case_alone", &["src/Money.py"], &["src/money.py"], ""),
    ("folder_renamed_by_case_alone", &["Docs/a", "Docs/b"], &["docs/a", "docs/b"], ""),
    ("folder_renamed_in_part", &["Docs/a", "Docs/b"], &["docs/a", "Docs/b"], "docs is the same name as Docs"),
    ("file_becomes_folder", &["src/a"], &["src/a/b.py"], ""),
    ("bad_name_of_base_may_be_mended", &["a:b"], &["a:b=changed"], ""),
    ("bad_name_of_base_may_go", &["a:b", "x."], &["x."], ""),
    ("collision_of_base_may_be_edited", &["a", "A"], &["a=changed", "A"], ""),
    ("collision_of_base_may_not_grow", &["a/x", "A/y"], &["a/x", "A/y", "A/X"], "A/X is the same name as a/x"),
];

#[test]
fn new_names_are_portable_or_refused() {
    for (row, base, head, told) in NAMES {
        let seen = classified(Role::Agent, base, head);
        let seen = seen.map_or_else(|refused| refused.to_string(), |_| String::new());
        assert_eq!(seen.is_empty(), told.is_empty(), "{row}: {seen}");
        assert!(seen.contains(told), "{row}: {seen}");
        assert!(
            seen.is_empty() || seen.starts_with("bad-path: "),
            "{row}: {seen}"
        );
    }
}

#[test]
fn names_that_are_no_text_or_too_long_are_refused() {
    let long = format!("src/{}.py", "a".repeat(260));
    let deep = ["d"; 1200].join("/");
    for bytes in [
        b"src/\xff.py".to_vec(),
        long.into_bytes(),
        deep.into_bytes(),
    ] {
        let mut patch = patch(&[], &["src/a.py"]);
        patch.changes[0].path = GitPath::new(bytes);
        let refused = classify(patch, Policy::default(), Role::Operator).unwrap_err();
        assert_eq!(refused.code, RefusedCode::BadPath);
        assert!(refused.message.len() < 500, "{}", refused.message.len());
    }
}

#[test]
fn a_thousand_bad_names_make_one_short_message() {
    let names: Vec<String> = (0..1000).map(|n| format!("docs/{n}:")).collect();
    let head: Vec<&str> = names.iter().map(String::as_str).collect();
    let refused = classified(Role::Agent, &[], &head).unwrap_err();
    assert!(
        refused.message.ends_with("names beside these: 980"),
        "{}",
        refused.message
    );
}

/// Row, path, content on base, content on head, and whether it is an oracle edit.
#[rustfmt::skip]
const TABLES: &[(&str, &str, &str, &str, PathClass)] = &[
    ("new_dependency", "pyproject.toml", "[project]\nname='x'\n[tool.pytest.ini_options]\naddopts='-q'", "[project]\nname='x'\ndependencies=['a']\n[tool.pytest.ini_options]\naddopts='-q'", PathClass::Other),
    ("respelled", "pyproject.toml", "[tool.pytest.ini_options]\naddopts='-q'\ntestpaths=['a']", "# new\n[tool]\npytest.ini_options = { testpaths = [\"a\"], addopts = \"-q\" }", PathClass::Other),
    ("addopts_changed", "pyproject.toml", "[tool.pytest.ini_options]\naddopts='-q'", "[tool.pytest.ini_options]\naddopts='-q --deselect a'", PathClass::Oracle),
    ("table_added", "pyproject.toml", "[project]\nname='x'", "[project]\nname='x'\n[tool.pytest.ini_options]\nxfail_strict=false", PathClass::Oracle),
    ("native_table_added", "pyproject.toml", "", "[tool.pytest]\naddopts=['-q']", PathClass::Oracle),
    ("table_removed", "pyproject.toml", "[tool.pytest.ini_options]\naddopts='-q'", "", PathClass::Oracle),
    ("dotted_table", "pyproject.toml", "x=1", "x=1\ntool.pytest.ini_options.addopts='-q'", PathClass::Oracle),
    ("head_does_not_parse", "pyproject.toml", "x=1", "x=1\n[tool", PathClass::Oracle),
    ("base_does_not_parse", "pyproject.toml", "x=", "x=1", PathClass::Oracle),
    ("other_tool", "pyproject.toml", "", "[tool.ruff]\nline-length=100", PathClass::Other),
    ("pytest_plugin_of_another_name", "pyproject.toml", "", "[tool.pytest-enabler]\na=1", PathClass::Other),
    ("under_src", "src/pyproject.toml", "", "[tool.ruff]\na=1", PathClass::Src),
    ("under_src_with_table", "src/pyproject.toml", "", "[tool.pytest.ini_options]\na='1'", PathClass::Oracle),
    ("under_proposed", "tests/proposed/tox.ini", "", "[pytest]\na=1", PathClass::Proposed),
    ("under_sealed", "tests/sealed/tox.ini", "[x]\na=1", "[x]\na=2", PathClass::Oracle),
    ("toml_by_another_name", "pyproject.toml.bak", "", "[tool.pytest.ini_options]\na='1'", PathClass::Other),
    ("setup_cfg_other_section", "setup.cfg", "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n", "[metadata]\nname = y\n[tool:pytest]\naddopts: -q\n", PathClass::Other),
    ("setup_cfg_value", "setup.cfg", "[tool:pytest]\naddopts = -q\n", "[tool:pytest]\naddopts = -x\n", PathClass::Oracle),
    ("setup_cfg_continuation", "setup.cfg", "[tool:pytest]\naddopts =\n  -q\n", "[tool:pytest]\naddopts =\n  -q\n  -x\n", PathClass::Oracle),
    ("setup_cfg_continuation_respelled", "setup.cfg", "[tool:pytest]\naddopts =\n  -q\n\n    -x\n", "[tool:pytest]\naddopts =\n\t-q\n# c\n\t-x\n", PathClass::Other),
    ("setup_cfg_plain_pytest", "setup.cfg", "", "[pytest]\naddopts = -x\n", PathClass::Oracle),
    ("setup_cfg_duplicate_section", "setup.cfg", "[tool:pytest]\na=1\n", "[tool:pytest]\na=1\n[tool:pytest]\nb=1\n", PathClass::Oracle),
    ("setup_cfg_duplicate_key", "setup.cfg", "[x]\na=1\n", "[x]\na=1\na=2\n", PathClass::Oracle),
    ("setup_cfg_no_section", "setup.cfg", "", "a=1\n", PathClass::Oracle),
    ("setup_cfg_no_value", "setup.cfg", "[x]\na=1\n", "[x]\na=1\nb\n", PathClass::Oracle),
    ("tox_envlist", "tox.ini", "[tox]\nenvlist = a\n[pytest]\na=1", "[tox]\nenvlist = b\n[pytest]\na=1", PathClass::Other),
    ("tox_pytest", "tox.ini", "[tox]\nenvlist = a\n", "[tox]\nenvlist = a\n[pytest]\naddopts = --co\n", PathClass::Oracle),
    ("tox_pytest_in_another_folder", "docs/tox.ini", "", "[pytest]\naddopts = --co\n", PathClass::Oracle),
    ("tox_header_with_comment", "tox.ini", "", "[pytest] ; quiet\naddopts = --co\n", PathClass::Oracle),
    ("tox_header_behind_a_form_feed", "tox.ini", "[a]\nx = 1\n", "[a]\nx = 1\u{c}[pytest]\naddopts = --co\n", PathClass::Oracle),
    ("tox_header_behind_a_unicode_line_end", "tox.ini", "[a]\nx = 1\n", "[a]\nx = 1\u{2028}[pytest]\u{85}addopts = --co\n", PathClass::Oracle),
    ("tox_indented_header_is_a_continuation", "tox.ini", "[a]\nx = 1\n", "[a]\nx = 1\n [pytest]\n", PathClass::Other),
    ("tox_commented_table", "tox.ini", "", "# [pytest]\n; addopts = -x\n", PathClass::Other),
    ("tox_crlf", "tox.ini", "[pytest]\na = 1\n", "[pytest]\r\na = 1\r\n", PathClass::Other),
    ("tox_byte_order_mark", "tox.ini", "[pytest]\na=1", "\u{feff}[pytest]\na=1", PathClass::Other),
    ("tox_removed_without_table", "tox.ini", "[tox]\na=1", "", PathClass::Other),
];

#[test]
fn pytest_tables_are_compared_as_data() {
    for (row, path, base, head, class) in TABLES {
        let mut change = changes(&[&format!("{path}=1")], &[&format!("{path}=2")]).remove(0);
        change.contents = Some(crate::git::Contents {
            base: base.as_bytes().to_vec(),
            head: head.as_bytes().to_vec(),
        });
        assert_eq!(class_of_change(&Paths::default(), &change), *class, "{row}");
    }
}

#[test]
fn a_table_file_that_is_no_plain_file_or_was_not_read_is_an_edit() {
    let link = changes(&["tox.ini=[a]"], &["tox.ini@[b]"]).remove(0);
    assert_eq!(class_of_change(&Paths::default(), &link), PathClass::Oracle);
    let mut unread = changes(&["tox.ini=[a]"], &["tox.ini=[b]"]).remove(0);
    assert_eq!(
        class_of_change(&Paths::default(), &unread),
        PathClass::Other
    );
    unread.contents = None;
    assert_eq!(
        class_of_change(&Paths::default(), &unread),
        PathClass::Oracle
    );
}

#[test]
fn contents_are_wanted_of_files_that_are_compared() {
    for path in [
        "pyproject.toml",
        "a/b/setup.cfg",
        "src/tox.ini",
        "ci/tribunal.toml",
        "pytest.ini",
    ] {
        assert!(compares_tables(&path.into()), "{path}");
    }
    for path in [
        "pyproject.toml/x",
        "xtox.ini",
        "a/ci/tribunal.toml",
        "conftest.py",
    ] {
        assert!(!compares_tables(&path.into()), "{path}");
    }
}

/// Row, role, what head adds or changes, and the codes of the verdict; `None` where it is open, as agent or human.
#[rustfmt::skip]
const CHANGE_SETS: &[(&str, Role, Trees, &str)] = &[
    ("nothing", Role::Agent, &[], "agent"),
    ("src", Role::Agent, &["src/a.py"], "agent"),
    ("src_by_a_maintainer", Role::Maintainer, &["src/a.py"], "agent"),
    ("src_and_proposed", Role::Agent, &["src/a.py", "tests/proposed/conftest.py"], "agent"),
    ("src_and_touched_and_other", Role::Agent, &["src/a.py", "tests/test_x.py", "README"], "agent"),
    ("proposed_alone", Role::Agent, &["tests/proposed/test_x.py"], "agent"),
    ("src_and_sealed", Role::Agent, &["src/a.py", "tests/sealed/test_x.py"], "oracle-edit"),
    ("src_and_sealed_by_a_maintainer", Role::Maintainer, &["src/a.py", "tests/sealed/test_x.py"], "oracle-edit"),
    ("src_and_sealed_by_an_operator", Role::Operator, &["src/a.py", "tests/sealed/test_x.py"], "oracle-edit"),
    ("src_and_leases", Role::Agent, &["src/a.py", "ci/flake_leases.json"], "lease-edit"),
    ("src_and_leases_by_a_maintainer", Role::Maintainer, &["src/a.py", "ci/flake_leases.json"], "lease-edit"),
    ("src_and_policy", Role::Agent, &["src/a.py", "ci/tribunal.toml"], "policy-edit"),
    ("src_and_all_of_them", Role::Ci, &["src/a.py", "ci/tribunal.toml", "ci/flake_leases.json", "conftest.py"], "lease-edit policy-edit oracle-edit"),
    ("src_conftest", Role::Agent, &["src/conftest.py"], "oracle-change-needs-maintainer oracle-edit"),
    ("src_and_allowed_signers", Role::Agent, &["src/a.py", "ci/allowed_signers"], "oracle-edit"),
    ("sealed_alone", Role::Agent, &["tests/sealed/test_café.py"], "oracle-change-needs-maintainer oracle-edit"),
    ("sealed_alone_by_ci", Role::Ci, &["tests/sealed/test_x.py"], "oracle-change-needs-maintainer oracle-edit"),
    ("leases_alone", Role::Agent, &["ci/flake_leases.json"], "oracle-change-needs-maintainer lease-edit"),
    ("policy_alone", Role::Agent, &["ci/tribunal.toml"], "oracle-change-needs-maintainer policy-edit"),
    ("sealed_and_other", Role::Agent, &["tests/sealed/test_x.py", "README"], "oracle-change-needs-maintainer oracle-edit"),
    ("sealed_by_a_maintainer", Role::Maintainer, &["tests/sealed/test_x.py"], "human"),
    ("sealed_by_an_operator", Role::Operator, &["tests/sealed/test_x.py"], "human"),
    ("sealed_and_beside_by_a_maintainer", Role::Maintainer, &["ci/flake_leases.json", "README", "tests/test_x.py"], "human"),
    ("cassette_alone", Role::Agent, &["cassettes/a.json", "ci/cassette_ledger.json"], "agent"),
];

#[test]
fn change_sets_by_role_and_class() {
    for (row, role, head, expected) in CHANGE_SETS {
        let seen = match classified(*role, &[], head).unwrap().standing() {
            Standing::Agent => "agent".to_owned(),
            Standing::Human => "human".to_owned(),
            Standing::Barred(findings) => {
                let codes: Vec<&str> = findings.iter().map(|f| f.reason.code()).collect();
                codes.join(" ")
            }
        };
        assert_eq!(seen, *expected, "{row}");
    }
}

#[test]
fn a_sealed_file_renamed_into_src_is_an_edit_that_names_the_old_path() {
    let diff = classified(
        Role::Agent,
        &["tests/sealed/test_extra.py=x"],
        &["src/extra_checks.py=x"],
    )
    .unwrap();
    let Standing::Barred(findings) = diff.standing() else {
        unreachable!("{diff:?}")
    };
    let told: Vec<_> = findings
        .iter()
        .map(|f| (f.reason, f.subject.as_deref(), f.detail.as_str()))
        .collect();
    assert_eq!(
        told,
        [(
            Reason::OracleEdit,
            Some("tests/sealed/test_extra.py"),
            "deleted by the patch"
        )]
    );
}

#[test]
fn a_crowd_of_edits_hides_neither_policy_nor_its_own_size() {
    let names: Vec<String> = (0..200).map(|n| format!("a{n}/conftest.py")).collect();
    let mut head: Vec<&str> = names.iter().map(String::as_str).collect();
    head.extend(["ci/tribunal.toml", "src/a.py"]);
    let diff = classified(Role::Agent, &[], &head).unwrap();
    let Standing::Barred(findings) = diff.standing() else {
        unreachable!("{diff:?}")
    };
    assert_eq!(findings.len(), 51);
    assert_eq!(findings[0].reason, Reason::PolicyEdit);
    assert_eq!(
        findings[50].detail,
        "oracle paths changed beside these: 151"
    );
}

#[test]
fn a_maintainers_policy_is_the_one_in_force() {
    let human = |base: &[&str], head: &[&str]| classified(Role::Maintainer, base, head);
    let diff = human(&[], &["ci/tribunal.toml=runs.reruns = 3"]).unwrap();
    assert_eq!(diff.policy().runs.reruns, 3);
    let diff = human(&["ci/tribunal.toml=runs.reruns = 3"], &[]).unwrap();
    assert_eq!(diff.policy(), &Policy::default());
    for broken in [
        "ci/tribunal.toml=runs.reruns = 0",
        "ci/tribunal.toml@src/policy.toml",
    ] {
        let refused = human(&[], &[broken]).unwrap_err();
        assert_eq!(refused.code, RefusedCode::PolicyInvalid, "{broken}");
    }
    // An agent's edit of the policy is a verdict, whatever it says, and never in force.
    let diff = classified(Role::Agent, &[], &["ci/tribunal.toml=runs.reruns = 0"]).unwrap();
    assert_eq!(diff.policy(), &Policy::default());
}

#[test]
fn a_branch_that_is_behind_is_refused_only_where_the_policy_says_so() {
    let behind = || Patch {
        commits: commits(Relation::Behind),
        ..patch(&[], &["src/a.py"])
    };
    assert!(classify(behind(), Policy::default(), Role::Agent).is_ok());
    let policy = Policy::parse(b"runs.when_behind = \"refuse\"").unwrap();
    let refused = classify(behind(), policy.clone(), Role::Agent).unwrap_err();
    assert_eq!(refused.code, RefusedCode::MergeConflict);
    assert!(classify(patch(&[], &["src/a.py"]), policy, Role::Agent).is_ok());
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(vec![
        Mode::File,
        Mode::Executable,
        Mode::Symlink,
        Mode::Gitlink,
    ])
}

fn any_path() -> impl Strategy<Value = GitPath> {
    let part = prop::sample::select(vec![
        "src",
        "tests",
        "sealed",
        "proposed",
        "ci",
        "conftest.py",
        "pyproject.toml",
        "a",
        "B",
        "tribunal.toml",
        "cassettes",
        "properties",
    ]);
    prop::collection::vec(part, 1..4).prop_map(|parts| GitPath::from(parts.join("/").as_str()))
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    let entry = || {
        (any_mode(), "[a-c]").prop_map(|(mode, text)| Entry {
            mode,
            id: object(&text),
        })
    };
    let change = (
        any_path(),
        prop::option::of(entry()),
        prop::option::of(entry()),
    );
    prop::collection::btree_map(any_path(), change, 0..8).prop_map(|by_path| {
        by_path
            .into_iter()
            .map(|(path, (_, base, head))| Change {
                path,
                base,
                head,
                contents: None,
            })
            .collect()
    })
}

fn any_role() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![
        Role::Agent,
        Role::Ci,
        Role::Maintainer,
        Role::Operator,
    ])
}

proptest! {
    #[test]
    fn every_path_has_one_class(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let path = GitPath::new(bytes);
        let class = class_of(&Paths::default(), &path);
        prop_assert_eq!(class, class_of(&Paths::default(), &path.clone()));
    }

    #[test]
    fn the_order_of_changes_is_nothing(changes in any_changes(), role in any_role(), turn in 0_usize..8) {
        let of = |changes: Vec<Change>| {
            let base_paths = changes.iter().filter(|c| c.base.is_some()).map(|c| c.path.clone()).collect();
            classify(Patch { commits: commits(Relation::Contains), changes, base_paths }, Policy::default(), role)
        };
        let mut turned = changes.clone();
        turned.rotate_left(turn % changes.len().max(1));
        let mut reversed = changes.clone();
        reversed.reverse();
        prop_assert_eq!(of(changes.clone()), of(turned));
        prop_assert_eq!(of(changes), of(reversed));
    }

    #[test]
    fn a_branch_that_is_merely_behind_changes_nothing(changes in any_changes(), role in any_role()) {
        let of = |relation| {
            let base_paths = changes.iter().filter(|c| c.base.is_some()).map(|c| c.path.clone()).collect();
            let patch = Patch { commits: commits(relation), changes: changes.clone(), base_paths };
            classify(patch, Policy::default(), role).map(|d| (d.changes().to_vec(), d.standing().clone()))
        };
        prop_assert_eq!(of(Relation::Contains), of(Relation::Behind));
    }

    #[test]
    fn oracle_with_src_is_barred_for_every_role(changes in any_changes(), role in any_role()) {
        let base_paths = changes.iter().filter(|c| c.base.is_some()).map(|c| c.path.clone()).collect();
        let patch = Patch { commits: commits(Relation::Contains), changes, base_paths };
        if let Ok(diff) = classify(patch, Policy::default(), role) {
            let has = |class| diff.changes().iter().any(|(_, c)| *c == class);
            let trusted = matches!(role, Role::Maintainer | Role::Operator);
            let expected = has(PathClass::Oracle) && (has(PathClass::Src) || !trusted);
            prop_assert_eq!(matches!(diff.standing(), Standing::Barred(_)), expected);
            prop_assert_eq!(matches!(diff.standing(), Standing::Human), has(PathClass::Oracle) && !expected);
        }
    }
}
