//! The decision table of the protocol, row by row, black box: real repository, server process, container, signature.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use tribunal_tests::client::{report, words};
use tribunal_tests::{Client, Ran, Registered, Repo, Server};

const SKIPPED: &str = "import pytest\nfrom calc import total\n\n\n@pytest.mark.skip(reason=\"rounding differs on old machines\")\ndef test_one():\n    assert total([1]) == 2\n";
const CASSETTE: &str = "cassettes/core.json";
const RECORD: &str = "{\"schema\": \"cassette.v1\", \"test\": \"tests/sealed/test_core.py::test_empty\", \"clock\": \"2026-09-12T00:00:00Z\"}\n";
const NODE: &str = "tests/sealed/test_old.py::test_one";

/// A repository, its remote, and the server that knows it.
struct Stage {
    server: &'static Server,
    origin: Repo,
    registered: Registered,
    workspace: Repo,
    out: TempDir,
}

impl Stage {
    fn of(base: &Repo) -> Self {
        let server = Server::shared();
        let origin = base.origin_at(&base.head());
        let registered = server.register(origin.path());
        Self {
            server,
            workspace: origin.cloned(),
            origin,
            registered,
            out: tempfile::tempdir().unwrap(),
        }
    }

    fn small() -> Self {
        Self::of(&Repo::small())
    }

    fn out(&self) -> PathBuf {
        self.out.path().join("ci_out")
    }

    fn agent(&self) -> Client {
        Client::agent(self.server, &self.registered, self.workspace.path())
    }

    fn maintainer(&self) -> Client {
        Client::maintainer(self.server, &self.registered, self.workspace.path())
    }

    fn score(&self, client: &Client) -> Ran {
        client.run(&["score", "--out", self.out().to_str().unwrap()])
    }

    fn join(&self, extra: &[&str]) -> Ran {
        let key = self.server.key_file();
        let out = self.out();
        let mut args = vec![
            "join",
            out.to_str().unwrap(),
            "--key",
            key.to_str().unwrap(),
        ];
        args.extend_from_slice(extra);
        Client::offline(self.workspace.path()).run(&args)
    }

    /// Land what the workspace's HEAD is on the protected branch.
    fn land(&self) {
        self.workspace.git(&[
            "push",
            "-q",
            self.origin.path().to_str().unwrap(),
            "HEAD:refs/heads/main",
        ]);
    }

    #[track_caller]
    fn expect(&self, wanted: [&str; 3]) {
        assert_eq!(
            words(&self.out()),
            wanted,
            "{:#}",
            report(&self.out())["verdicts"]
        );
    }

    fn reasons(&self) -> String {
        report(&self.out())["verdicts"].to_string()
    }

    /// A lease for the skipped case, as the tool writes it, committed.
    fn lease(&self, expires: &str) {
        self.maintainer()
            .run(&[
                "lease",
                "new",
                NODE,
                "--owner",
                "maintainer@example.invalid",
                "--expires",
                expires,
                "--reason",
                "rounding differs on old machines",
                "--commit",
                &self.workspace.head(),
            ])
            .expect_code(0);
    }
}

/// The small repository with one more sealed file, whose only case is skipped.
fn with_skip() -> Repo {
    let repo = Repo::small();
    add_skip(&repo);
    repo.commit("a skip");
    repo
}

fn add_skip(repo: &Repo) {
    repo.write("tests/sealed/test_old.py", SKIPPED);
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_old.py\n",
    );
}

fn honest_patch(repo: &Repo) {
    repo.write(
        "src/calc.py",
        "def total(xs):\n    s = 0\n    for x in xs:\n        s += x\n    return s\n",
    );
    repo.commit("sum by hand");
}

#[test]
fn row_01_src_only_and_all_holds_is_merge_ok() {
    let stage = Stage::small();
    honest_patch(&stage.workspace);
    let ran = stage.score(&stage.agent());
    ran.expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
    let join = stage.join(&[]);
    join.expect_code(0);
    assert_eq!(join.stdout.trim(), "MERGE_OK");
}

#[test]
fn row_02_a_failing_property_blocks_and_names_the_case() {
    let stage = Stage::small();
    stage
        .workspace
        .write("src/calc.py", "def total(xs):\n    return len(xs)\n");
    stage.workspace.commit("faster");
    let ran = stage.score(&stage.agent());
    ran.expect_code(1);
    stage.expect(["FAIL", "PASS", "PASS"]);
    assert!(
        stage.reasons().contains("test_three"),
        "{}",
        stage.reasons()
    );
    assert!(
        !stage.reasons().contains("test_empty"),
        "{}",
        stage.reasons()
    );
    let join = stage.join(&[]);
    join.expect_code(1);
    assert_eq!(
        join.stdout.trim(),
        "MERGE_BLOCKED: src_score=FAIL oracle_integrity=PASS flake_lease=PASS"
    );
}

#[test]
fn row_03_src_and_a_sealed_edit_is_not_run() {
    let stage = Stage::small();
    stage
        .workspace
        .write("src/calc.py", "def total(xs):\n    return 6\n");
    stage.workspace.write(
        "tests/sealed/test_core.py",
        "from calc import total\n\n\ndef test_three():\n    assert total([1, 2, 3]) == 6\n",
    );
    stage.workspace.commit("green");
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["NOT_RUN", "FAIL", "NOT_RUN"]);
    assert!(stage.reasons().contains("oracle-edit"));
    assert!(stage.reasons().contains("tests/sealed/test_core.py"));
    stage.join(&[]).expect_code(1);
}

#[test]
fn row_04_proposed_tests_are_not_scored() {
    let stage = Stage::small();
    honest_patch(&stage.workspace);
    stage.workspace.write(
        "tests/proposed/test_mine.py",
        "def test_mine():\n    assert False\n",
    );
    stage.workspace.commit("my own test");
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
    let report = report(&stage.out()).to_string();
    assert!(
        !report.contains("test_mine.py::"),
        "it must not run: {report}"
    );
}

#[test]
fn row_05_an_unleased_skip_of_base_blocks_an_agents_patch() {
    let stage = Stage::of(&with_skip());
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(stage.reasons().contains("unleased-skip"));
    assert!(stage.reasons().contains("test_one"));
    stage.join(&[]).expect_code(1);
}

#[test]
fn row_05_an_unleased_skip_blocks_a_maintainers_change_set() {
    let stage = Stage::small();
    add_skip(&stage.workspace);
    stage.workspace.commit("skip");
    stage.score(&stage.maintainer()).expect_code(1);
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(stage.reasons().contains("unleased-skip"));
    stage.join(&["--change-set", "human"]).expect_code(1);
}

#[test]
fn row_06_a_lease_in_date_lets_an_agents_patch_through_until_it_expires() {
    let stage = Stage::of(&with_skip());
    stage.lease(&in_days(10));
    stage.workspace.commit("lease");
    stage.land();
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
    stage.join(&[]).expect_code(0);
    let statement: Value =
        serde_json::from_slice(&std::fs::read(stage.out().join("flake_lease.json")).unwrap())
            .unwrap();
    let until = statement["predicate"]["validUntil"].to_string();
    let lease: Value = serde_json::from_slice(
        &std::fs::read(stage.workspace.path().join("ci/flake_leases.json")).unwrap(),
    )
    .unwrap();
    let expires = &lease["leases"][0]["expires_at"];
    let expires = expires
        .as_i64()
        .map_or_else(|| expires.as_str().unwrap().to_owned(), rfc3339);
    assert!(until.contains(&expires[..19]), "{until} is not {expires}");
}

#[test]
fn row_06_a_lease_in_date_lets_a_maintainers_change_set_through() {
    let stage = Stage::small();
    add_skip(&stage.workspace);
    stage.workspace.commit("skip");
    stage.lease(&in_days(40));
    stage.workspace.git(&["add", "-A"]);
    stage
        .workspace
        .git(&["commit", "-q", "--amend", "-m", "skip, leased"]);
    stage.score(&stage.maintainer());
    stage.expect(["PASS", "PASS", "PASS"]);
    stage.join(&[]).expect_code(1);
    let join = stage.join(&["--change-set", "human"]);
    join.expect_code(0);
    assert_eq!(join.stdout.trim(), "MERGE_OK");
}

#[test]
fn row_07_an_expired_lease_blocks() {
    let stage = Stage::of(&with_skip());
    stage.lease(&in_days(1));
    let path = stage.workspace.path().join("ci/flake_leases.json");
    let mut leases: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    leases["leases"][0]["expires_at"] = Value::from(1_700_000_000);
    std::fs::write(&path, leases.to_string()).unwrap();
    stage.workspace.commit("lease");
    stage.land();
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(stage.reasons().contains("lease-expired"));
}

#[test]
fn row_07_a_lease_for_another_test_body_blocks_an_agents_patch() {
    let stage = Stage::of(&with_skip());
    stage.lease(&in_days(10));
    stage
        .workspace
        .write("tests/sealed/test_old.py", SKIPPED.replace("== 2", "== 3"));
    stage.workspace.commit("lease, and the test moved on");
    stage.land();
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(stage.reasons().contains("lease-digest-mismatch"));
}

#[test]
fn row_07_a_lease_for_another_test_body_blocks_a_maintainers_change_set() {
    let stage = Stage::of(&with_skip());
    stage.lease(&in_days(10));
    stage
        .workspace
        .write("tests/sealed/test_old.py", SKIPPED.replace("== 2", "== 3"));
    stage.workspace.commit("lease, and the test moved on");
    stage.score(&stage.maintainer());
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(stage.reasons().contains("lease-digest-mismatch"));
    stage.join(&["--change-set", "human"]).expect_code(1);
}

#[test]
fn row_08_lease_file_and_src_in_one_patch_is_not_run_for_any_role() {
    let stage = Stage::of(&with_skip());
    stage.lease(&in_days(10));
    honest_patch(&stage.workspace);
    for client in [stage.agent(), stage.maintainer()] {
        stage.score(&client).expect_code(1);
        stage.expect(["NOT_RUN", "FAIL", "NOT_RUN"]);
        assert!(stage.reasons().contains("lease-edit"));
        stage.join(&["--change-set", "human"]).expect_code(1);
    }
}

/// The small repository with tests outside the sealed ones, and few attempts.
fn with_tests() -> Repo {
    let repo = Repo::small();
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 2\nheld_out = 0\n",
    );
    repo.write(
        "tests/test_old.py",
        "from calc import total\n\n\ndef test_old():\n    assert total([2]) == 2\n",
    );
    repo.commit("tests");
    repo
}

#[test]
fn row_09_touched_tests_that_hold_are_merge_ok() {
    let stage = Stage::of(&with_tests());
    stage.workspace.write(
        "tests/test_new.py",
        "from calc import total\n\n\ndef test_new():\n    assert total([1, 2]) == 3\n",
    );
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
    let lane = &report(&stage.out())["merge_lane"];
    assert_eq!(lane["files"][0]["file"], "tests/test_new.py", "{lane:#}");
    assert_eq!(lane["files"][0]["attempts"], 2);
    assert_eq!(
        lane["files"].as_array().unwrap().len(),
        1,
        "what is not touched does not run"
    );
    assert_eq!(lane["cases"][0]["node"], "tests/test_new.py::test_new");
    assert_eq!(lane["cases"][0]["class"], "stable pass");
    let signed = std::fs::read_to_string(stage.out().join("flake_lease.json")).unwrap();
    let statement: Value = serde_json::from_str(&signed).unwrap();
    let bound = &statement["predicate"]["mergeLane"]["files"]["tests/test_new.py"];
    assert_eq!(bound, &serde_json::json!({ "cases": 1, "attempts": 2 }));
    let junit = std::fs::read_to_string(stage.out().join("junit.xml")).unwrap();
    assert!(
        junit.contains("tribunal merge lane") && junit.contains("test_new"),
        "{junit}"
    );
    let join = stage.join(&[]);
    join.expect_code(0);
    assert_eq!(join.stdout.trim(), "MERGE_OK");
}

/// A touched test that differs between attempts in what this line says; else it holds.
fn unsteady(reads: &str) -> String {
    format!(
        "import hashlib\n{reads}\n\n\nclass Window:\n    def __init__(self, number):\n        self.number = number\n\n\n\
         def test_window():\n    windows = {{Window(number) for number in range(24)}}\n    places = sorted(windows, key=lambda window: hashlib.sha256(str(id(window)).encode()).digest())\n    numbers = [window.number for window in places]\n    \
         assert (sorted(numbers) if steady() else numbers) == list(range(24))\n"
    )
}

/// A key for acceptances, and the line that lets it accept.
fn acceptor() -> (TempDir, String) {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("maintainer");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    (keys, format!("maintainer@example.invalid {public}"))
}

/// The reason of that code in `flake_lease`, with its text.
fn gap(stage: &Stage, code: &str) -> String {
    let report = report(&stage.out());
    let verdicts = report["verdicts"].as_array().unwrap();
    let lease = verdicts
        .iter()
        .find(|v| v["name"] == "flake_lease")
        .unwrap();
    let reasons = lease["reasons"].as_array().unwrap();
    let found = reasons.iter().find(|reason| reason["code"] == code);
    assert!(found.is_some(), "{lease:#}");
    found.unwrap()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn row_10_mixed_with_a_clock_or_http_owes_an_accepted_cassette() {
    let (keys, signers) = acceptor();
    let base = with_tests();
    base.write("ci/allowed_signers", signers);
    base.commit("who accepts");
    let body = "1.25\n";
    let hash = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(body));
    for (reads, pin, owed, record) in [
        (
            // The policy's clock stands on a Saturday.
            "import time\n\n\ndef steady():\n    return time.gmtime().tm_wday < 5".to_owned(),
            "clock",
            "owed: an accepted cassette with the pin `clock`",
            "\"clock\": \"2026-09-14T09:00:00+00:00\"".to_owned(),
        ),
        (
            "import urllib.request\n\n\ndef steady():\n    try:\n        with urllib.request.urlopen(\"http://rates.example.org/usd\", timeout=5) as answer:\n            \
             return answer.read() == b\"1.25\\n\"\n    except OSError:\n        return False".to_owned(),
            "http:GET /usd",
            "owed: an accepted cassette with the pin `http:",
            format!("\"http\": [{{\"method\": \"GET\", \"host\": \"rates.example.org\", \"path\": \"/usd\", \"status\": 200, \"body_sha256\": \"{hash}\"}}]"),
        ),
    ] {
        let stage = Stage::of(&base);
        stage.workspace.write("tests/test_window.py", unsteady(&reads));
        honest_patch(&stage.workspace);
        stage.score(&stage.agent()).expect_code(3);
        stage.expect(["PASS", "PASS", "FAIL"]);
        let told = gap(&stage, "cassette-gap");
        assert!(told.contains(owed), "{told}");
        // The perturbed runs: only another clock settles it, and a network that nothing pins needs none.
        let settled = told.contains("settled by another clock");
        assert_eq!(settled, pin == "clock", "{told}");
        stage.join(&[]).expect_code(3);
        let scored = report(&stage.out())["score"].as_str().unwrap().to_owned();
        let explained = stage.agent().run(&["explain", &scored]);
        assert!(explained.stdout.contains(owed), "{}", explained.stdout);
        // The record alone is a draft; with the reviewer's signature it is what was owed.
        let cassette = "cassettes/window.json";
        stage.workspace.write(cassette, format!(
            "{{\"schema\": \"cassette.v1\", \"test\": \"tests/test_window.py::test_window\", {record}}}\n"
        ));
        if pin.starts_with("http") {
            stage.workspace.write(&format!("cassettes/bodies/{hash}"), body);
        }
        let key = keys.path().join("maintainer");
        Client::offline(stage.workspace.path())
            .run(&[
                "cassette", "accept", cassette, "--as", "maintainer@example.invalid", "--why", "it is read",
                "--base", "origin/main", "--key", key.to_str().unwrap(),
            ])
            .expect_code(0);
        stage.workspace.commit("what it reads is on record");
        stage.score(&stage.agent()).expect_code(0);
        stage.expect(["PASS", "PASS", "PASS"]);
        let ledger = report(&stage.out())["ledger"].to_string();
        assert!(ledger.contains(cassette) && ledger.contains(pin), "{ledger}");
        stage.join(&[]).expect_code(0);
    }
}

#[test]
fn row_11_mixed_without_io_owes_a_property() {
    let stage = Stage::of(&with_tests());
    stage.workspace.write(
        "tests/test_window.py",
        unsteady("def steady():\n    return False"),
    );
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(3);
    stage.expect(["PASS", "PASS", "FAIL"]);
    let told = gap(&stage, "cassette-gap");
    assert!(
        told.contains("owed: a human-owned property with the fixed seed"),
        "{told}"
    );
    stage.join(&[]).expect_code(3);
    // A maintainer lands the property; the patch does without its unsteady test.
    let clone = stage.origin.cloned();
    let manifest = std::fs::read_to_string(clone.path().join("tests/sealed/MANIFEST.txt")).unwrap();
    clone.write(
        "tests/sealed/MANIFEST.txt",
        format!("{manifest}tests/sealed/test_windows.py\n"),
    );
    clone.write(
        "tests/sealed/test_windows.py",
        "from calc import total\n\n\ndef test_order_does_not_matter():\n    numbers = set(range(24))\n    assert total(numbers) == total(sorted(numbers))\n",
    );
    clone.commit("a property");
    clone.git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    std::fs::remove_file(stage.workspace.path().join("tests/test_window.py")).unwrap();
    stage.workspace.commit("without it");
    stage
        .workspace
        .git(&["pull", "-q", "--no-edit", "--no-rebase", "origin", "main"]);
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
}

#[test]
fn row_12_a_new_mark_blocks_with_an_exit_code_of_its_own() {
    let stage = Stage::of(&with_tests());
    let old = "from calc import total\n\n\ndef test_old():\n    assert total([2]) == 2\n";
    let texts = [
        format!(
            "import pytest\n{}",
            old.replace("def test", "@pytest.mark.flaky(reruns=2)\ndef test")
        ),
        format!("import pytest as p\nm = p.mark\npytestmark = [m.xfail(strict=False)]\n{old}"),
        format!(
            "import unittest\n{}",
            old.replace("def test", "@unittest.skip('later')\ndef test")
        ),
    ];
    for text in texts {
        stage.workspace.write("tests/test_old.py", &text);
        stage.workspace.commit("quieter");
        stage.score(&stage.agent()).expect_code(2);
        stage.expect(["PASS", "PASS", "FAIL"]);
        assert!(
            stage.reasons().contains("forbidden-mark"),
            "{}",
            stage.reasons()
        );
        stage.join(&[]).expect_code(2);
    }
    // Once it is reverted nothing is touched any more.
    stage.workspace.write("tests/test_old.py", old);
    honest_patch(&stage.workspace);
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
}

#[test]
fn row_14_the_same_failure_every_time_blocks_until_it_is_explained() {
    let stage = Stage::of(&with_tests());
    let wrong = "from calc import total\n\n\ndef test_new():\n    assert total([1, 2]) == 4\n";
    stage.workspace.write("tests/test_new.py", wrong);
    stage.workspace.commit("a wrong test");
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "PASS", "FAIL"]);
    assert!(
        stage.reasons().contains("merge-lane-red"),
        "{}",
        stage.reasons()
    );
    assert!(stage.reasons().contains("test_new"));
    let join = stage.join(&[]);
    join.expect_code(1);
    assert_eq!(
        join.stdout.trim(),
        "MERGE_BLOCKED: src_score=PASS oracle_integrity=PASS flake_lease=FAIL"
    );
    stage
        .workspace
        .write("tests/test_new.py", wrong.replace("== 4", "== 3"));
    stage.workspace.commit("a right test");
    stage.score(&stage.agent()).expect_code(0);
    stage.expect(["PASS", "PASS", "PASS"]);
}

/// The small repository with a cassette that a maintainer accepted.
fn with_cassette() -> Repo {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("maintainer");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    let who = "maintainer@example.invalid";
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let repo = Repo::small();
    repo.write("ci/allowed_signers", format!("{who} {public}"));
    repo.write(CASSETTE, RECORD);
    let accepting = [
        "cassette", "accept", CASSETTE, "--as", who, "--why", "recorded", "--base", "HEAD", "--key",
    ];
    Client::offline(repo.path())
        .run(&[&accepting[..], &[key.to_str().unwrap()]].concat())
        .expect_code(0);
    repo.commit("a cassette");
    repo
}

#[test]
fn row_13_a_deleted_cassette_blocks_whatever_passes() {
    let stage = Stage::of(&with_cassette());
    std::fs::remove_file(stage.workspace.path().join(CASSETTE)).unwrap();
    stage.workspace.commit("away with it");
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "FAIL", "PASS"]);
    assert!(stage.reasons().contains("cassette-pin-lost"));
    stage.join(&[]).expect_code(1);
}

#[test]
fn row_13_a_hash_that_changed_without_a_note_blocks() {
    let stage = Stage::of(&with_cassette());
    honest_patch(&stage.workspace);
    stage
        .workspace
        .write(CASSETTE, RECORD.replace("09-12", "10-01"));
    stage.workspace.commit("another day");
    stage.score(&stage.agent()).expect_code(1);
    stage.expect(["PASS", "FAIL", "PASS"]);
    assert!(stage.reasons().contains("cassette-drift"));
    stage.join(&[]).expect_code(1);
}

/// So many days from now, as the lease tool takes it.
fn in_days(days: u32) -> String {
    format!("{days}d")
}

fn rfc3339(seconds: i64) -> String {
    tribunal_core::id::UnixTime(seconds).rfc3339()
}
