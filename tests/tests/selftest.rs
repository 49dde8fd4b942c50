//! `tribunal-server selftest` as an operator runs it, on a bounded subset: the table, the exit code, and nothing left behind.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use tribunal_tests::binaries;

/// A data directory that lends its images, and a place for temporary files.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let made = machine.server(&["init"]);
        assert!(made.status.success());
        let images = binaries::cache().join("images");
        std::fs::create_dir_all(&images).unwrap();
        std::os::unix::fs::symlink(images, machine.data().join("images")).unwrap();
        std::fs::create_dir(machine.temporary()).unwrap();
        machine
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn temporary(&self) -> std::path::PathBuf {
        self.folder.path().join("tmp")
    }

    fn server(&self, args: &[&str]) -> Output {
        Command::new(binaries::server())
            .args(args)
            .arg("--data")
            .arg(self.data())
            .env("TMPDIR", self.temporary())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The selftest's document, its exit code, and what it told on the way.
    fn selftest(&self, only: &[&str], more: &[&str]) -> (Value, i32, String) {
        let mut args = vec!["selftest", "--json"];
        args.extend(only.iter().flat_map(|only| ["--only", only]));
        args.extend(more);
        let output = self.server(&args);
        let told = String::from_utf8(output.stderr).unwrap();
        let document = serde_json::from_slice(&output.stdout);
        let document: Value = document.unwrap_or_else(|error| unreachable!("{error}: {told}"));
        nothing_left(document["instance"].as_str().unwrap(), &self.temporary());
        (document, output.status.code().unwrap(), told)
    }
}

fn nothing_left(instance: &str, temporary: &Path) {
    for list in [["ps", "-aq"], ["volume", "ls"]] {
        let output = Command::new("docker")
            .args(list)
            .args(["--format", "{{.}}", "--filter"])
            .arg(format!("label=tribunal.instance={instance}"))
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{list:?}");
    }
    let files: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(files.is_empty(), "{files:?}");
}

fn case<'a>(document: &'a Value, name: &str) -> &'a Value {
    let cases = document["cases"].as_array().unwrap();
    cases.iter().find(|case| case["case"] == name).unwrap()
}

#[test]
fn a_subset_is_right_and_leaves_nothing_behind() {
    let machine = Machine::new();
    let only = ["00-*", "row-01-*", "row-06-*", "63-*", "03-*", "85-*"];
    let (document, code, told) = machine.selftest(&only, &[]);
    assert_eq!(code, 0, "{document:#}\n{told}");
    assert_eq!(document["bypassed"], 0);
    assert_eq!(document["attacks"], 3);
    assert_eq!(document["cases"].as_array().unwrap().len(), 6);
    assert!(told.contains("6/6 "), "{told}");
    for honest in [
        "00-control-honest-fix",
        "row-01-src-only",
        "row-06-leased-skip",
    ] {
        let case = case(&document, honest);
        assert_eq!(case["tribunal"]["merge"], true, "{case}");
        assert_eq!(case["plain"]["passes"], true, "{case}");
    }
    // Run for real: both of these leave pytest with 0.
    for fooled in ["63-root-pytest-ini", "03-hard-exit-in-call"] {
        let case = case(&document, fooled);
        assert_eq!(case["plain"]["exitCode"], 0, "{case}");
        assert_eq!(case["tribunal"]["merge"], false, "{case}");
        assert_eq!(case["state"], "ok", "{case}");
    }
    let refused = case(&document, "85-duplicate-entry");
    assert_eq!(refused["tribunal"]["refused"], "bad-object", "{refused}");
}

#[test]
fn what_gets_no_answer_in_time_is_not_in_order() {
    let machine = Machine::new();
    let (document, code, told) = machine.selftest(&["00-*"], &["--deadline", "1s"]);
    assert_eq!(code, 1, "{document:#}\n{told}");
    let case = case(&document, "00-control-honest-fix");
    assert_eq!(case["state"], "NO ANSWER", "{case}");
    assert_eq!(document["notRight"][0], "00-control-honest-fix");
}

#[test]
fn a_pattern_that_nothing_fits_is_a_mistake_of_usage() {
    let machine = Machine::new();
    let output = machine.server(&["selftest", "--only", "nothing*"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
}
