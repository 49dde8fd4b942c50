//! Admission and planning as tables: which src is built, what is decided at once, what a run is made of.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set its table up should stop"
)]

use super::*;
use crate::classify::{Patch, classify};
use crate::git::Mode;
use crate::reason::RefusedCode;
use crate::sample::{self, classified, commits, object, patch};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SEALED: &[&str] = &[
    "tests/sealed/MANIFEST.txt=tests/sealed/test_a.py",
    "tests/sealed/test_a.py",
    "ci/flake_leases.json={}",
];

/// The plan of src that goes from `base` to `head` under this policy, the oracle being sound.
fn planned(policy: &str, base: &[&str], head: &[&str]) -> Result<Plan, Refused> {
    let policy = Policy::parse(policy.as_bytes()).unwrap();
    let diff = classify(
        Patch {
            changes: Vec::new(),
            ..patch(base, head)
        },
        policy.clone(),
        Role::Agent,
    )?;
    let oracle = sample::oracle(&policy, SEALED);
    open(diff).admit(oracle, sample::src(&policy, base, head))
}

fn open(diff: DiffClass) -> OpenDiff {
    match Course::of(diff) {
        Course::Open(open) => open,
        Course::Barred(barred) => unreachable!("{:?}", barred.findings),
    }
}

/// Each finding as `code path`.
fn told(plan: &Plan) -> Vec<String> {
    let findings = match plan {
        Plan::Decided(decided) => decided.findings().to_vec(),
        Plan::Run(run) => run.oracle_findings(UnixTime(0)),
    };
    findings
        .iter()
        .map(|f| format!("{} {}", f.reason, f.subject.as_deref().unwrap_or("-")))
        .collect()
}

const COMPILED: &str = "overlay-compiled-artifact";
const ESCAPE: &str = "overlay-symlink-escape";
const SHADOW: &str = "overlay-module-shadow";
const GITLINK: &str = "overlay-gitlink";
const NO_TREE: &str = "overlay-root-not-a-tree";

type Trees = &'static [&'static str];
type Row = (
    &'static str,
    Trees,
    Trees,
    &'static [(&'static str, &'static str)],
);

/// Row, base's src, the src to be scored, and `code path` of each finding; none where it is built.
#[rustfmt::skip]
const ADMISSION: &[Row] = &[
    ("plain", &["src/a.py"], &["src/a.py=x", "src/b/c.py", "src/run*"], &[]),
    ("everything_deleted", &["src/a.py"], &[], &[]),
    ("attributes_are_only_files", &[], &["src/.gitattributes", "src/.gitignore", "src/.gitmodules"], &[]),
    // Roots.
    ("root_is_a_symlink", &["src/a.py"], &["src@lib"], &[(NO_TREE, "src")]),
    ("root_is_a_file", &["src/a.py"], &["src=x"], &[(NO_TREE, "src")]),
    ("root_is_a_submodule", &["src/a.py"], &["src+"], &[(NO_TREE, "src")]),
    ("root_is_on_base_what_it_is", &["src@lib"], &["src@lib"], &[]),
    // Submodules.
    ("submodule", &[], &["src/vendor+"], &[(GITLINK, "src/vendor")]),
    ("submodule_moved", &["src/vendor+=1"], &["src/vendor+=2"], &[(GITLINK, "src/vendor")]),
    ("submodule_of_base", &["src/vendor+=1"], &["src/vendor+=1"], &[]),
    // Symlinks.
    ("link_beside", &[], &["src/a.py", "src/b.py@a.py"], &[]),
    ("link_upwards_inside", &[], &["src/p/q/b.py@../../a.py", "src/a.py"], &[]),
    ("link_to_its_root", &[], &["src/p/all@.."], &[]),
    ("link_that_dangles_inside", &[], &["src/b.py@gone.py"], &[]),
    ("link_to_a_fixture", &[], &["src/table.json@../fixtures/sealed/t.json"], &[(ESCAPE, "src/table.json")]),
    ("link_out_and_back", &[], &["src/b.py@../src/a.py"], &[(ESCAPE, "src/b.py")]),
    ("link_absolute", &[], &["src/host@/etc/hostname"], &[(ESCAPE, "src/host")]),
    ("link_to_the_sandbox_tree", &[], &["src/b.py@/tree/src/a.py"], &[(ESCAPE, "src/b.py")]),
    ("link_above_by_depth", &[], &["src/p/q@a/../../../tests"], &[(ESCAPE, "src/p/q")]),
    ("link_with_doubled_slashes", &[], &["src/p@.//..//tests"], &[(ESCAPE, "src/p")]),
    ("link_to_nothing", &[], &["src/p@"], &[(ESCAPE, "src/p")]),
    ("link_to_itself", &[], &["src/p@p"], &[(ESCAPE, "src/p")]),
    ("links_in_a_ring", &[], &["src/p@q", "src/q@p"], &[(ESCAPE, "src/p"), (ESCAPE, "src/q")]),
    ("link_by_way_of_a_link", &[], &["src/p@q/tests", "src/q@.."], &[(ESCAPE, "src/p"), (ESCAPE, "src/q")]),
    ("link_by_way_of_a_deep_link", &[], &["src/d@a/b/c", "src/a/b/c/x.py", "src/p@d/../../../../tests"], &[(ESCAPE, "src/p")]),
    ("link_by_way_of_a_shallow_link", &[], &["src/a/b/c@../..", "src/p@a/b/c/../x"], &[(ESCAPE, "src/p")]),
    ("link_through_bases_own_escape", &["src/lib@../lib"], &["src/lib@../lib", "src/p@lib/x"], &[(ESCAPE, "src/p")]),
    ("bases_own_escape", &["src/lib@../lib"], &["src/lib@../lib", "src/a.py"], &[]),
    ("bases_link_led_out_by_a_new_link", &["src/l@a/b/../../../src2", "src/a/b/x"], &["src/l@a/b/../../../src2", "src/a/b@../q", "src/q/x"], &[(ESCAPE, "src/l")]),
    ("bases_link_led_out_by_a_removed_link", &["src/a/b@deep/x/y", "src/a/deep/x/y/z", "src/l@a/b/../../../../c"], &["src/a/b/f", "src/a/deep/x/y/z", "src/l@a/b/../../../../c"], &[(ESCAPE, "src/l")]),
    ("link_into_git", &[], &["src/p@.git/config"], &[(ESCAPE, "src/p")]),
    ("link_into_git_spelled_otherwise", &[], &["src/p@.GIT", "src/q@a/git~1"], &[(ESCAPE, "src/p"), (ESCAPE, "src/q")]),
    ("link_retargeted", &["src/p@a.py"], &["src/p@../a.py"], &[(ESCAPE, "src/p")]),
    ("link_that_replaces_a_module", &["src/calc.py"], &["src/calc.py@../tests/proposed/calc.py"], &[(ESCAPE, "src/calc.py")]),
    // Artifacts.
    ("bytecode", &[], &["src/a.pyc"], &[(COMPILED, "src/a.pyc")]),
    ("bytecode_cache", &[], &["src/__pycache__/a.cpython-313.pyc"], &[(COMPILED, "src/__pycache__/a.cpython-313.pyc")]),
    ("anything_in_a_bytecode_cache", &[], &["src/p/__pycache__/notes.txt"], &[(COMPILED, "src/p/__pycache__/notes.txt")]),
    ("extension", &[], &["src/a.cpython-313-x86_64-linux-gnu.so"], &[(COMPILED, "src/a.cpython-313-x86_64-linux-gnu.so")]),
    ("versioned_library", &[], &["src/liba.so.1.2"], &[(COMPILED, "src/liba.so.1.2")]),
    ("other_systems_libraries", &[], &["src/a.dll", "src/a.dylib", "src/a.pyd"], &[(COMPILED, "src/a.dll"), (COMPILED, "src/a.dylib"), (COMPILED, "src/a.pyd")]),
    ("upper_case", &[], &["src/A.SO"], &[(COMPILED, "src/A.SO")]),
    ("start_up", &[], &["src/a.pth"], &[(COMPILED, "src/a.pth")]),
    ("dist_info", &[], &["src/x-1.0.dist-info/entry_points.txt"], &[(COMPILED, "src/x-1.0.dist-info/entry_points.txt")]),
    ("egg_info_folder_and_file", &[], &["src/x.egg-info/PKG-INFO", "src/y.egg-info"], &[(COMPILED, "src/x.egg-info/PKG-INFO"), (COMPILED, "src/y.egg-info")]),
    ("extension_of_base", &["src/a.so=1"], &["src/a.so=1"], &[]),
    ("extension_changed", &["src/a.so=1"], &["src/a.so=2"], &[(COMPILED, "src/a.so")]),
    ("extension_deleted", &["src/a.so=1"], &[], &[]),
    ("link_named_like_an_extension", &[], &["src/a.so@b"], &[(COMPILED, "src/a.so")]),
    ("names_that_only_look_like_it", &[], &["src/so.py", "src/a.sow", "src/pth", "src/egg-info.md", "src/a.so.txt", "src/pycache/x"], &[]),
    ("embedded_git", &[], &["src/.git/config"], &[(COMPILED, "src/.git/config")]),
    ("embedded_git_file", &[], &["src/sub/.git"], &[(COMPILED, "src/sub/.git")]),
    ("embedded_git_in_capitals", &[], &["src/.GiT/config"], &[(COMPILED, "src/.GiT/config")]),
    ("embedded_git_by_its_short_name", &[], &["src/GIT~1/config"], &[(COMPILED, "src/GIT~1/config")]),
    ("embedded_git_with_ignored_characters", &[], &["src/.g\u{200c}it/config"], &[(COMPILED, "src/.g\u{200c}it/config")]),
    ("bare_repository", &[], &["src/r/HEAD", "src/r/objects/00/x", "src/r/refs/heads/a"], &[(COMPILED, "src/r/HEAD")]),
    ("bare_repository_by_links", &[], &["src/r/HEAD", "src/r/objects@../o", "src/r/refs@../r2"], &[(COMPILED, "src/r/HEAD")]),
    ("linked_work_tree", &[], &["src/r/HEAD", "src/r/commondir"], &[(COMPILED, "src/r/HEAD")]),
    ("bare_repository_completed", &["src/r/HEAD", "src/r/refs/x"], &["src/r/HEAD", "src/r/refs/x", "src/r/objects/x"], &[(COMPILED, "src/r/HEAD")]),
    ("bare_repository_of_base", &["src/r/HEAD", "src/r/objects/x", "src/r/refs/x"], &["src/r/HEAD", "src/r/objects/x", "src/r/refs/x", "src/r/config"], &[]),
    ("half_a_bare_repository", &[], &["src/r/HEAD", "src/r/objects.py", "src/r/refs.py"], &[]),
    // Shadows: `.` and `src` are import roots.
    ("stdlib_module", &[], &["src/csv.py"], &[(SHADOW, "src/csv.py")]),
    ("stdlib_package", &[], &["src/json/__init__.py", "src/json/x.py"], &[(SHADOW, "src/json/__init__.py")]),
    ("stdlib_private_module", &[], &["src/_collections_abc.py"], &[(SHADOW, "src/_collections_abc.py")]),
    ("stdlib_by_a_link", &[], &["src/csv@money", "src/money/__init__.py"], &[(SHADOW, "src/csv")]),
    ("stdlib_by_a_linked_file", &[], &["src/csv.py@money.py"], &[(SHADOW, "src/csv.py")]),
    ("stdlib_replaced_by_a_package", &["src/csv.py"], &["src/csv/__init__.py"], &[]),
    ("stdlib_name_of_base", &["src/types.py=1"], &["src/types.py=2"], &[]),
    ("stdlib_name_deeper", &[], &["src/pkg/csv.py", "src/pkg/json/__init__.py"], &[]),
    ("stdlib_name_as_data", &[], &["src/json/schema.json", "src/csv.txt", "src/csv"], &[]),
    ("stdlib_name_as_namespace", &[], &["src/json/x.py"], &[]),
    ("stdlib_in_other_case", &[], &["src/CSV.py"], &[]),
    ("third_party_name", &[], &["src/requests.py"], &[]),
    // Modules that take the place of others.
    ("package_over_module", &["src/m.py"], &["src/m.py", "src/m/__init__.py"], &[(SHADOW, "src/m/__init__.py")]),
    ("package_over_module_deep", &["src/a/b/m.py"], &["src/a/b/m.py", "src/a/b/m/__init__.py"], &[(SHADOW, "src/a/b/m/__init__.py")]),
    ("package_over_changed_module", &["src/m.py"], &["src/m.py=x", "src/m/__init__.py"], &[(SHADOW, "src/m/__init__.py")]),
    ("module_under_package", &["src/m/__init__.py"], &["src/m.py", "src/m/__init__.py"], &[(SHADOW, "src/m.py")]),
    ("both_new", &[], &["src/m.py", "src/m/__init__.py"], &[(SHADOW, "src/m/__init__.py")]),
    ("module_to_package", &["src/m.py"], &["src/m/__init__.py", "src/m/x.py"], &[]),
    ("package_to_module", &["src/m/__init__.py", "src/m/x.py"], &["src/m.py"], &[]),
    ("both_of_base", &["src/m.py", "src/m/__init__.py"], &["src/m.py=x", "src/m/__init__.py=y"], &[]),
    ("link_over_module", &["src/m.py", "src/n/__init__.py"], &["src/m.py", "src/m@n", "src/n/__init__.py"], &[(SHADOW, "src/m")]),
    ("in_other_case", &["src/m.py"], &["src/m.py", "src/M/__init__.py"], &[(SHADOW, "src/M/__init__.py")]),
    ("composed_otherwise", &["src/\u{e9}.py"], &["src/\u{e9}.py", "src/e\u{301}/__init__.py"], &[(SHADOW, "src/e\u{301}/__init__.py")]),
    ("over_a_binary_of_base", &["src/m.cpython-313-x86_64-linux-gnu.so"], &["src/m.cpython-313-x86_64-linux-gnu.so", "src/m/__init__.py"], &[(SHADOW, "src/m/__init__.py")]),
    ("under_a_binary_of_base", &["src/m.abi3.so"], &["src/m.abi3.so", "src/m.py"], &[(SHADOW, "src/m.py")]),
    ("over_bytecode_of_base", &["src/m.pyc"], &["src/m.pyc", "src/m.py"], &[(SHADOW, "src/m.py")]),
    ("over_a_namespace", &["src/n/x.py"], &["src/n.py", "src/n/x.py"], &[(SHADOW, "src/n.py")]),
    ("over_a_deep_namespace", &["src/n/o/x.py"], &["src/n.py", "src/n/o/x.py"], &[(SHADOW, "src/n.py")]),
    ("namespace_made_a_package", &["src/n/x.py"], &["src/n/__init__.py", "src/n/x.py"], &[]),
    ("namespace_beside_a_module", &["src/m.py"], &["src/m.py", "src/m/x.py"], &[]),
    ("folder_of_data_beside_a_module", &["src/t/page.html"], &["src/t.py", "src/t/page.html"], &[]),
    ("one_name_in_two_folders", &["src/a/m.py"], &["src/a/m.py", "src/b/m/__init__.py"], &[]),
    // Several at once are told at once.
    ("all_kinds", &[], &["src/a.so", "src/csv.py", "src/l@/x", "src/v+"], &[(COMPILED, "src/a.so"), (GITLINK, "src/v"), (ESCAPE, "src/l"), (SHADOW, "src/csv.py")]),
];

#[test]
fn src_is_admitted_by_what_differs_from_base() {
    for (row, base, head, expected) in ADMISSION {
        let plan = planned("", base, head).unwrap();
        let expected: Vec<String> = expected
            .iter()
            .map(|(code, path)| format!("{code} {path}"))
            .collect();
        assert_eq!(told(&plan), expected, "{row}: {plan:?}");
        assert_eq!(matches!(plan, Plan::Run(_)), expected.is_empty(), "{row}");
    }
}

const LIBRARY: &str = r#"
[paths]
src = ["lib/python/", "parse.py"]
[runner]
pythonpath = [".", "lib/python"]
"#;

/// The same for a policy with a deep root and a root that is one file.
#[rustfmt::skip]
const OTHER_ROOTS: &[Row] = &[
    ("plain", &[], &["lib/python/a.py", "parse.py"], &[]),
    ("above_the_root", &["lib/python/a.py"], &["lib@other"], &[(NO_TREE, "lib")]),
    ("link_to_the_folder_above_the_root", &[], &["lib/python/p@../x"], &[(ESCAPE, "lib/python/p")]),
    ("link_from_root_to_root", &[], &["lib/python/p@../../parse.py"], &[(ESCAPE, "lib/python/p")]),
    ("link_in_the_place_of_the_file", &["parse.py"], &["parse.py@lib/python/a.py"], &[(ESCAPE, "parse.py")]),
    ("folder_in_the_place_of_the_file", &["parse.py"], &["parse.py/"], &[(NO_TREE, "parse.py")]),
    ("submodule_in_the_place_of_the_file", &["parse.py"], &["parse.py+"], &[(GITLINK, "parse.py")]),
    ("shadow_on_the_deep_root", &[], &["lib/python/csv.py"], &[(SHADOW, "lib/python/csv.py")]),
    ("no_shadow_below_it", &[], &["lib/python/pkg/csv.py"], &[]),
];

const TWO_ROOTS: &str = r#"
[paths]
src = ["src/", "lib/"]
[runner]
pythonpath = [".", "src", "lib"]
"#;

/// Between import roots the earlier one wins.
#[rustfmt::skip]
const IMPORT_ROOTS: &[Row] = &[
    ("before_a_later_root", &["lib/m.py"], &["lib/m.py", "src/m.py"], &[(SHADOW, "src/m.py")]),
    ("package_before_a_later_root", &["lib/m.py"], &["lib/m.py", "src/m/__init__.py"], &[(SHADOW, "src/m/__init__.py")]),
    ("behind_an_earlier_root", &["src/m.py"], &["src/m.py", "lib/m.py"], &[]),
    ("moved_to_an_earlier_root", &["lib/m.py"], &["src/m.py"], &[]),
    ("on_both_of_base", &["lib/m.py", "src/m.py"], &["lib/m.py", "src/m.py=x"], &[]),
    ("deeper", &["lib/p/m.py"], &["lib/p/m.py", "src/q/m.py"], &[]),
];

#[test]
fn import_roots_have_an_order() {
    for (row, base, head, expected) in IMPORT_ROOTS {
        let expected: Vec<String> = expected
            .iter()
            .map(|(code, path)| format!("{code} {path}"))
            .collect();
        assert_eq!(
            told(&planned(TWO_ROOTS, base, head).unwrap()),
            expected,
            "{row}"
        );
    }
}

#[test]
fn what_base_itself_has_can_be_listed() {
    let tree = ["src/a.so", "src/l@/etc", "src/v+", "src/csv.py", "src/a.py"];
    let policy = Policy::default();
    let listed = unsupported(&policy, &sample::src(&policy, &tree, &tree));
    let codes: Vec<&str> = listed.iter().map(|f| f.reason.code()).collect();
    assert_eq!(codes, [COMPILED, GITLINK, ESCAPE, SHADOW, SHADOW]);
}

#[test]
fn other_roots_are_judged_alike() {
    for (row, base, head, expected) in OTHER_ROOTS {
        let plan = planned(LIBRARY, base, head).unwrap();
        let expected: Vec<String> = expected
            .iter()
            .map(|(code, path)| format!("{code} {path}"))
            .collect();
        assert_eq!(told(&plan), expected, "{row}: {plan:?}");
    }
}

#[test]
fn only_import_roots_have_top_level_modules() {
    let here_only = "runner.pythonpath = [\".\"]";
    assert_eq!(
        told(&planned(here_only, &[], &["src/csv.py"]).unwrap()),
        [""; 0]
    );
    let file_root = "paths.src = [\"csv.py\"]";
    assert_eq!(
        told(&planned(file_root, &[], &["csv.py"]).unwrap()),
        ["overlay-module-shadow csv.py"]
    );
}

#[test]
fn links_made_to_cost_time_are_given_up_on() {
    let long = |to: &str| format!("{}{to}", "./".repeat(1900));
    let mut head: Vec<String> = (0..39)
        .map(|n| format!("src/l{n:02}@{}", long(&format!("l{:02}", n + 1))))
        .collect();
    head.push("src/l39".to_owned());
    head.extend((0..300).map(|n| format!("src/z{n}@{}", long("l00"))));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let policy = Policy::default();
    let findings = admission::check(&policy, &sample::src(&policy, &[], &head));
    // Each of them alone resolves, and the first ones do.
    assert!((100..300).contains(&findings.len()), "{}", findings.len());
    let told = "more symlinks than can be followed";
    assert!(
        findings.iter().all(|f| f.detail.contains(told)),
        "{findings:?}"
    );
}

#[test]
fn sizes_are_refused_and_runner_packages_too() {
    fn refused(policy: &str, head: &[&str]) -> Refused {
        planned(policy, &[], head).unwrap_err()
    }
    let seen = refused("limits.src_files = 1", &["src/a.py", "src/b.py"]);
    assert_eq!(seen.code, RefusedCode::TooLarge);
    assert_eq!(
        seen.message,
        "src holds 2 files, the policy's limits.src_files allows 1"
    );
    let seen = refused("limits.src_bytes = \"3B\"", &["src/a.py=ab", "src/b.py=cd"]);
    assert_eq!(
        seen.message,
        "src holds 4 bytes, the policy's limits.src_bytes allows 3"
    );
    assert!(
        planned(
            "limits.src_bytes = \"4B\"",
            &[],
            &["src/a.py=ab", "src/b.py=cd"]
        )
        .is_ok()
    );
    const SHARED: &str = "[runner]\nshared = [\"tests/sealed/test_a.py\"]";
    for clash in [
        "src/pytest.py",
        "src/_pytest/__init__.py",
        "src/packaging/__init__.py",
        "src/hypothesis@x",
    ] {
        assert_eq!(
            refused(SHARED, &[clash]).code,
            RefusedCode::RunnerPackageClash,
            "{clash}"
        );
    }
    // Base's own package clashes as well: it would be in the judge's process all the same.
    let seen = planned(
        SHARED,
        &["src/packaging/__init__.py"],
        &["src/packaging/__init__.py"],
    )
    .unwrap_err();
    assert!(
        seen.message
            .starts_with("src/packaging/__init__.py would be imported as packaging"),
        "{seen}"
    );
    assert!(
        planned(
            SHARED,
            &[],
            &["src/pkg/pytest.py", "src/packaging/data.json"]
        )
        .is_ok()
    );
    // Where no file runs shared, each process imports its own.
    assert!(
        planned(
            "",
            &["src/packaging/__init__.py"],
            &["src/packaging/__init__.py"]
        )
        .is_ok()
    );
}

/// Row, the tree that supplies the oracle, and `code path` of each finding.
#[rustfmt::skip]
const ORACLES: &[(&str, Trees, &[&str])] = &[
    ("sound", SEALED, &[]),
    ("no_manifest", &["tests/sealed/test_a.py"], &["manifest-drift tests/sealed/MANIFEST.txt"]),
    ("a_file_that_the_manifest_lacks", &["tests/sealed/MANIFEST.txt", "tests/sealed/test_a.py"], &["manifest-drift tests/sealed/MANIFEST.txt"]),
    ("sealed_pointer", &["tests/sealed/MANIFEST.txt=tests/sealed/test_a.py", "tests/sealed/test_a.py", "fixtures/sealed/core.json=lfs"], &["lfs-pointer fixtures/sealed/core.json"]),
    ("both", &["tests/sealed/MANIFEST.txt=x", "tests/sealed/test_a.py=lfs"], &["lfs-pointer tests/sealed/test_a.py", "manifest-drift tests/sealed/MANIFEST.txt"]),
];

#[test]
fn an_oracle_that_is_not_there_is_decided_at_once() {
    for (row, tree, expected) in ORACLES {
        let diff = classified(Role::Agent, &[], &["src/a.py"]).unwrap();
        let policy = Policy::default();
        let plan = open(diff)
            .admit(
                sample::oracle(&policy, tree),
                sample::src(&policy, &[], &["src/a.py"]),
            )
            .unwrap();
        assert_eq!(told(&plan), *expected, "{row}");
        assert_eq!(matches!(plan, Plan::Run(_)), expected.is_empty(), "{row}");
    }
}

#[test]
fn src_under_the_sealed_root_is_no_sealed_file() {
    let text = "paths.src = [\"src/\", \"tests/sealed/gen/\"]";
    let policy = Policy::parse(text.as_bytes()).unwrap();
    let mut tree = SEALED.to_vec();
    tree.push("tests/sealed/gen/test_x.py");
    let diff = classify(patch(&[], &["src/a.py"]), policy.clone(), Role::Agent).unwrap();
    let plan = open(diff)
        .admit(
            sample::oracle(&policy, &tree),
            sample::src(&policy, &[], &["src/a.py"]),
        )
        .unwrap();
    assert!(matches!(plan, Plan::Run(_)), "{plan:?}");
}

#[test]
fn a_barred_patch_is_bound_to_bases_oracle_and_no_src() {
    let diff = classified(
        Role::Maintainer,
        &[],
        &["src/a.py", "tests/sealed/test_a.py", "README"],
    )
    .unwrap();
    let Course::Barred(barred) = Course::of(diff) else {
        unreachable!()
    };
    let decided = barred.decide(sample::oracle(&Policy::default(), SEALED));
    assert_eq!(decided.patch().change_set(), ChangeSet::Agent);
    assert!(decided.patch().src_trees().is_empty());
    assert_eq!(decided.findings().len(), 1);
    assert_eq!(decided.warnings()[0].reason, Reason::UnscoredChange);
}

#[test]
fn each_change_set_reads_its_own_trees() {
    let of = |role, relation| {
        let patch = Patch {
            commits: commits(relation),
            ..patch(&[], &["tests/sealed/test_a.py"])
        };
        let src = Patch {
            commits: commits(relation),
            ..sample::patch(&[], &["src/a.py"])
        };
        let patch = if role == Role::Maintainer { patch } else { src };
        let open = open(classify(patch, Policy::default(), role).unwrap());
        (open.change_set(), open.oracle_from(), open.src_from())
    };
    use {ChangeSet::*, Relation::*, TreeSource::*};
    assert_eq!(of(Role::Agent, Contains), (Agent, Base, Head));
    assert_eq!(of(Role::Agent, Behind), (Agent, Base, Merge));
    assert_eq!(of(Role::Maintainer, Contains), (Human, Head, Base));
    assert_eq!(of(Role::Maintainer, Behind), (Human, Merge, Base));
}

fn run(policy: &str, head: &[&str]) -> RunPlan {
    match planned(policy, &[], head).unwrap() {
        Plan::Run(run) => *run,
        Plan::Decided(decided) => unreachable!("{decided:?}"),
    }
}

#[test]
fn a_run_has_everything_that_is_to_be_run() {
    let run = run("pins.hash_seed = 5\npins.seed = 9", &["src/a.py"]);
    assert_eq!(
        run.files()
            .iter()
            .map(SealedFile::as_str)
            .collect::<Vec<_>>(),
        ["tests/sealed/test_a.py"]
    );
    assert_eq!(run.leases(), Some(b"{}".as_slice()));
    assert_eq!(run.starts(), [5, 5]);
    assert_eq!(run.attempts().len(), 7);
    let pins = &run.attempts()[6].pins;
    assert_eq!(
        (pins.seed.0, pins.hash_seed, pins.clock.as_str()),
        (9, 5, "2026-09-12T00:00:00Z")
    );
    assert!(run.src().entries[0].entry.mode == Mode::File && run.warnings().is_empty());
}

proptest! {
    #[test]
    fn attempts_are_spread_over_at_least_two_starts(n in 1_u32..=100) {
        let run = run(&format!("runs.reruns = {n}"), &["src/a.py"]);
        let used: BTreeSet<u32> = run.attempts().iter().map(|a| a.start).collect();
        prop_assert_eq!(run.attempts().len(), n as usize);
        prop_assert_eq!(used.len(), run.starts().len());
        prop_assert!(used.len() >= 2 || n == 1);
        prop_assert!(used.iter().all(|start| (*start as usize) < run.starts().len()));
        prop_assert!(run.attempts().iter().enumerate().all(|(i, a)| a.index as usize == i));
        let same = run.attempts().windows(2).all(|two| two[0].pins == two[1].pins);
        prop_assert!(same);
    }
}

/// Row, what the patch is, and each warning as `code path`.
type Twist = fn(&mut Patch);
#[rustfmt::skip]
const WARNINGS: &[(&str, Twist, Trees, &[&str])] = &[
    ("none", |_| {}, &["src/a.py", "tests/proposed/test_x.py"], &[]),
    ("stale", |p| p.commits.base_tip = object("tip").to_string().parse().unwrap(), &["src/a.py"], &["stale-base -"]),
    ("behind", |p| p.commits.relation = Relation::Behind, &["src/a.py"], &["head-behind-base -"]),
    ("unscored", |_| {}, &["src/a.py", "README", "tests/test_x.py"], &["unscored-change README"]),
    ("pointer_in_src", |_| {}, &["src/data.bin=lfs"], &["lfs-pointer src/data.bin"]),
];

#[test]
fn warnings_are_told_and_turn_no_verdict() {
    for (row, twist, head, expected) in WARNINGS {
        let mut patch = patch(&[], head);
        twist(&mut patch);
        let policy = Policy::default();
        let diff = classify(patch, policy.clone(), Role::Agent).unwrap();
        let Plan::Run(run) = open(diff)
            .admit(
                sample::oracle(&policy, SEALED),
                sample::src(&policy, &[], head),
            )
            .unwrap()
        else {
            unreachable!("{row}")
        };
        let seen: Vec<String> = run
            .warnings()
            .iter()
            .map(|f| format!("{} {}", f.reason, f.subject.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(seen, *expected, "{row}");
    }
}

#[test]
fn a_crowd_of_unscored_paths_is_counted() {
    let names: Vec<String> = (0..90).map(|n| format!("docs/{n:02}.md")).collect();
    let head: Vec<&str> = names.iter().map(String::as_str).collect();
    let policy = Policy::default();
    let open = open(classified(Role::Agent, &[], &head).unwrap());
    let Plan::Run(run) = open
        .admit(
            sample::oracle(&policy, SEALED),
            sample::src(&policy, &[], &head),
        )
        .unwrap()
    else {
        unreachable!()
    };
    assert_eq!(run.warnings().len(), 21);
    assert_eq!(run.warnings()[20].detail, "paths beside these: 70");
}

#[test]
fn a_crowd_of_findings_hides_no_code() {
    let mut head: Vec<String> = (0..200).map(|n| format!("src/{n}.so")).collect();
    head.extend(["src/csv.py".to_owned(), "src/v+".to_owned()]);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let plan = planned("", &[], &head).unwrap();
    let told = told(&plan);
    assert_eq!(told.len(), 50);
    for code in [COMPILED, SHADOW, GITLINK] {
        assert!(told.iter().any(|t| t.starts_with(code)), "{code}");
    }
}
