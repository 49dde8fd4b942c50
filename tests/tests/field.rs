//! Public bug reports about graders, each as one small input with its right answer, against a real server.
//!
//! 34, 35 and 37 are tables over their inputs and stand in `field_tables.rs`, 45 in `cassettes.rs`; the cassette half of
//! 46 waits for what sets a record's clock. Numbers from 401 on were written for this project.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::process::Command;
use tribunal_tests::client::words;
use tribunal_tests::expect::{score, score_again};
use tribunal_tests::{Case, Client, Server, until};

macro_rules! field {
    ($($name:ident = $case:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let case = Case::named("field", $case);
            let (_, scored) = score(Server::shared(), &case.materialize_with(&[("PY", "python3")]));
            scored.meets(case.expect());
        })+
    };
}

field! {
    f01_rename_sealed_into_src = "01",
    f03_quoted_non_ascii_sealed_path = "03",
    f05_symlinks_in_src = "05",
    f07_export_ignore_in_src = "07",
    f09_annotated_tag_sha = "09",
    f11_head_behind_base = "11",
    f13_orphan_head_no_merge_base = "13",
    f15_deleted_src_file_must_go = "15",
    f17_committed_unchecked_pyc = "17",
    f19_forged_result_lines_in_output = "19",
    f21_os_exit_zero_mid_run = "21",
    f24_importorskip_hides_missing_module = "24",
    f26_empty_parameter_set = "26",
    f28_imperative_xfail_from_src = "28",
    f29_teardown_error_after_pass = "29",
    f31_hostile_parameter_ids = "31",
    f41_manifest_sort_order = "41",
    f43_lfs_pointer_as_cassette = "43",
    f46_frozen_clock_waits = "46",
    f48_hypothesis_under_pinned_clock_and_read_only_fs = "48",
    f51_oom_of_main = "51",
    f52_long_lines_and_many_nodes = "52",
    f401_tear_down_of_a_module_fails = "401",
    f402_ordinary_code_is_no_tampering = "402",
    f403_options_of_absent_plugins = "403",
    f404_what_is_left_running = "404",
    f405_odd_but_portable_names = "405",
    f406_a_repair_that_sets_variables_and_moves = "406",
}

/// The variant in which only a child of the attempt runs out of memory.
#[test]
fn f51_oom_of_a_child() {
    let case = Case::named("field", "51");
    let made = case.materialize();
    made.workspace
        .git(&["checkout", "-q", "-b", "variant-b", &made.base]);
    let variant = case.folder().join("head_b/src/calc.py");
    made.workspace
        .write("src/calc.py", std::fs::read(variant).unwrap());
    let head = made.workspace.commit("head b");
    let made = tribunal_tests::Materialized { head, ..made };
    let (_, scored) = score(Server::shared(), &made);
    scored.meets(case.expect());
}

/// Containers of this server, running or not.
fn containers(server: &Server) -> String {
    let instance = server.instance();
    let output = Command::new("docker")
        .args(["ps", "-a", "--format", "{{.Names}}", "--filter"])
        .arg(format!("label=tribunal.instance={instance}"))
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn f54_timeout_leaves_no_container() {
    let server = Server::own();
    let case = Case::named("field", "54");
    let made = case.materialize();
    let (registered, scored) = score(&server, &made);
    scored.meets(case.expect());
    assert_eq!(containers(&server), "");
    // The same again, but the server is killed in the middle: what is left over goes when it starts again.
    let token = server.token(tribunal_tests::Role::Maintainer, Some(&registered.name));
    let client = Client::with_token(&server, &registered, &token, made.workspace.path());
    let mut running = client.spawn(&["score", "--head", &made.head, "--fresh", "--json"]);
    until("a container", || !containers(&server).is_empty());
    server.kill();
    let _ = running.wait();
    assert_ne!(containers(&server), "", "the kill left nothing to sweep");
    server.start();
    assert_eq!(containers(&server), "");
    server.shutdown();
}

#[test]
fn f57_same_commit_twice_at_once() {
    let server = Server::shared();
    let case = Case::named("field", "57");
    let made = case.materialize();
    let registered = server.register(made.origin.path());
    let both: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| score_again(server, &registered, &made)))
            .collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    });
    for scored in &both {
        scored.meets(case.expect());
    }
    assert_eq!(words(&both[0].out()), words(&both[1].out()));
    assert_eq!(both[0].classes(), both[1].classes());
}
