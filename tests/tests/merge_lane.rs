//! The merge lane from outside: touched tests that try to get away with something, and what stays the oracle's.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use tribunal_tests::client::report;
use tribunal_tests::stage::Stage;
use tribunal_tests::{Repo, Server};

const OLD: &str = "import os\nimport pytest\nfrom calc import total\nfrom tests.helpers import WANTED\n\n\ndef test_old():\n    assert total([1, 2, 3]) == WANTED\n\n\ndef test_gone():\n    assert total([]) == 0\n\n\ndef test_asleep():\n    pytest.skip(\"needs a network\")\n";

/// A repository with tests outside the sealed ones, whose helper a sealed test uses too.
fn base() -> Repo {
    let repo = Repo::small();
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 2\nheld_out = 0\n[[runs.path]]\nprefix = \"tests/slow/\"\nreruns = 3\n[[runs.path]]\nprefix = \"tests/proposed/slow/\"\nreruns = 4\n",
    );
    repo.write(
        "pytest.ini",
        "[pytest]\naddopts = -p no:terminal --deselect tests/test_new.py::test_hidden\n",
    );
    repo.write("tests/helpers.py", "WANTED = 6\n");
    repo.write("tests/test_old.py", OLD);
    repo.write(
        "tests/sealed/test_helped.py",
        "from calc import total\nfrom tests.helpers import WANTED\n\n\ndef test_helped():\n    assert total([1, 2, 3]) == WANTED\n",
    );
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_helped.py\n",
    );
    repo.commit("tests");
    repo
}

/// One patch on a fresh clone of base: what it writes, and what is expected of it.
struct Tried<'a> {
    stage: &'a Stage<'a>,
    number: usize,
}

impl Tried<'_> {
    /// Score what `write` makes of base; the verdicts as text, the warnings as text, the report.
    fn score(&mut self, code: i32, words: [&str; 3], write: impl FnOnce(&Repo)) -> Value {
        self.number += 1;
        let out = format!("out-{}", self.number);
        let workspace = &self.stage.workspace;
        workspace.git(&["checkout", "-q", "-f", "-B", "work", "origin/main"]);
        workspace.git(&["clean", "-q", "-f", "-d"]);
        write(workspace);
        workspace.commit("a patch");
        self.stage
            .score(&self.stage.agent(), &out)
            .expect_code(code);
        self.stage.expect(&out, words);
        report(&self.stage.out(&out))
    }
}

#[track_caller]
fn says(part: &Value, words: &[&str]) {
    let text = part.to_string();
    for word in words {
        assert!(text.contains(word), "nothing says {word}: {part:#}");
    }
}

const QUIET: [&str; 3] = ["PASS", "PASS", "PASS"];
const BLOCKED: [&str; 3] = ["PASS", "PASS", "FAIL"];

#[test]
fn touched_tests_get_away_with_nothing() {
    let stage = Stage::of(Server::shared(), &base());
    let mut tried = Tried {
        stage: &stage,
        number: 0,
    };

    // An old run-time skip and a case that is gone are told; the rest runs, in its number of attempts.
    let said = tried.score(0, QUIET, |repo| {
        repo.write(
            "tests/test_old.py",
            OLD.replace("def test_gone", "def test_renamed"),
        );
        repo.write(
            "tests/slow/test_more.py",
            "def test_more():\n    assert True\n",
        );
    });
    says(
        &said["warnings"],
        &["test-removed", "test_gone", "unleased-skip", "test_asleep"],
    );
    let files = said["merge_lane"]["files"].as_array().unwrap();
    let counts: Vec<&Value> = files.iter().map(|file| &file["attempts"]).collect();
    assert_eq!(counts, [2, 3], "{files:#?}");

    // A helper that changed touches the tests beside it, and the sealed tests keep base's.
    let said = tried.score(1, BLOCKED, |repo| {
        repo.write("tests/helpers.py", "WANTED = 7\n")
    });
    says(&said["verdicts"], &["merge-lane-red", "test_old"]);

    // Deselected by addopts, dropped by a plug-in's hook, skipped by a plug-in's mark: it runs, and is seen.
    let said = tried.score(2, BLOCKED, |repo| {
        repo.write(
            "tests/quiet.py",
            "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    items[:] = [i for i in items if i.name != 'test_dropped']\n    for item in items:\n        if item.name == 'test_marked':\n            item.add_marker('skip')\n",
        );
        repo.write(
            "tests/test_new.py",
            "pytest_plugins = ['tests.quiet']\n\n\ndef test_hidden():\n    assert 0\n\n\ndef test_dropped():\n    assert 0\n\n\ndef test_marked():\n    assert 0\n",
        );
    });
    says(
        &said["verdicts"],
        &[
            "forbidden-mark",
            "merge-lane-red",
            "test_hidden",
            "test_dropped",
            "test_marked",
        ],
    );

    // What it does to its own runner reaches no other verdict, whichever way the product goes.
    let patched = "import sys\nimport _pytest.runner\nimport _pytest.python\n_pytest.python.Function.runtest = lambda self: None\nsys.modules['calc'] = sys\n\n\ndef test_never():\n    assert 0\n";
    tried.score(1, ["FAIL", "PASS", "PASS"], |repo| {
        repo.write("tests/test_new.py", patched);
        repo.write("src/calc.py", "def total(xs):\n    return 0\n");
    });
    let said = tried.score(1, BLOCKED, |repo| {
        repo.write(
            "tests/test_new.py",
            "import os\n\n\ndef test_leaves():\n    os._exit(0)\n",
        );
    });
    says(&said["verdicts"], &["process-exit"]);

    // What cannot be read counts as marked; what leads out is not built; a conftest is the oracle's.
    let said = tried.score(2, BLOCKED, |repo| {
        repo.write("tests/test_new.py", b"def test_caf\xe9():\n    pass\n");
    });
    says(
        &said["verdicts"],
        &["forbidden-mark", "cannot be read", "merge-lane-red"],
    );
    let said = tried.score(2, BLOCKED, |repo| {
        std::os::unix::fs::symlink("helpers.py", repo.path().join("tests/test_link.py")).unwrap();
    });
    says(&said["verdicts"], &["forbidden-mark", "a symlink"]);
    let said = tried.score(1, ["NOT_RUN", "FAIL", "NOT_RUN"], |repo| {
        std::os::unix::fs::symlink("/etc/passwd", repo.path().join("tests/test_link.py")).unwrap();
    });
    says(&said["verdicts"], &["overlay-symlink-escape"]);
    let said = tried.score(1, ["NOT_RUN", "FAIL", "NOT_RUN"], |repo| {
        repo.write("tests/conftest.py", "collect_ignore = ['test_old.py']\n");
    });
    says(&said["verdicts"], &["oracle-change-needs-maintainer"]);

    // Two megabytes of tests are read like others.
    let said = tried.score(2, BLOCKED, |repo| {
        let mut text =
            "import pytest\n\n\n@pytest.mark.skip\ndef test_long():\n    pass\n".to_owned();
        text.push_str(&format!("DATA = '''{}'''\n", "x".repeat(1_900_000)));
        repo.write("tests/test_new.py", text);
    });
    says(&said["verdicts"], &["forbidden-mark", "line 4"]);
}

#[test]
fn proposed_tests_are_advice_on_request() {
    let stage = Stage::of(Server::shared(), &base());
    stage.workspace.write("tests/proposed/test_mine.py", "from calc import total\n\n\ndef test_right():\n    assert total([1]) == 1\n\n\ndef test_wrong():\n    assert total([1]) == 2\n");
    let slow = "def test_slow():\n    assert True\n";
    stage
        .workspace
        .write("tests/proposed/slow/test_more.py", slow);
    stage.honest_patch("and tests of my own");
    let out = stage.out("advice");
    let ran = stage.agent().run(&[
        "score",
        "--lane",
        "proposed",
        "--out",
        out.to_str().unwrap(),
    ]);
    ran.expect_code(0);
    stage.expect("advice", QUIET);
    let said = report(&out);
    let cases = said["proposed"]["cases"].as_array().unwrap();
    let classes: Vec<&Value> = cases.iter().map(|case| &case["class"]).collect();
    assert_eq!(
        classes,
        ["stable pass", "stable red", "stable pass"],
        "{cases:#?}"
    );
    let files = said["proposed"]["files"].as_array().unwrap();
    let counts: Vec<(&str, u64)> = files
        .iter()
        .map(|file| {
            let attempts = file["attempts"].as_u64().unwrap();
            (file["file"].as_str().unwrap(), attempts)
        })
        .collect();
    assert_eq!(
        counts,
        [
            ("tests/proposed/test_mine.py", 2),
            ("tests/proposed/slow/test_more.py", 4)
        ],
        "as often as the policy's paths say"
    );
    assert!(!said["verdicts"].to_string().contains("test_mine"));
    for stem in ["src_score", "oracle_integrity", "flake_lease"] {
        let signed = std::fs::read_to_string(out.join(format!("{stem}.json"))).unwrap();
        assert!(!signed.contains("test_mine"), "{signed}");
    }
}

#[test]
fn an_operator_sees_the_touched_tests_run_again() {
    let stage = Stage::of(Server::shared(), &base());
    let text = |sum: u8| {
        format!("from calc import total\n\n\ndef test_new():\n    assert total([1]) == {sum}\n")
    };
    stage.workspace.write("tests/test_new.py", text(2));
    stage.workspace.write("tests/slow/test_more.py", text(1));
    stage.honest_patch("and tests");
    stage.score(&stage.agent(), "out").expect_code(1);
    let report = report(&stage.out("out"));
    let score = report["score"].as_str().unwrap();
    let replayed = stage.server.admin(&["--json", "replay", score]);
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    let attempts = replayed["attempts"].as_array().unwrap();
    let of = |lane: &str, file: &str, outcome: &str| {
        let wanted = |case: &Value| {
            let node = case["node"].as_str().unwrap();
            node.starts_with(file) && case["outcome"] == outcome
        };
        let cases = |attempt: &Value| attempt["cases"].as_array().unwrap().iter().any(wanted);
        let seen = attempts.iter().filter(|attempt| attempt["lane"] == lane);
        seen.filter(|attempt| cases(attempt)).count()
    };
    assert_eq!(of("property", "tests/sealed/test_core.py", "passed"), 2);
    assert_eq!(of("merge", "tests/test_new.py", "failed"), 2);
    assert_eq!(of("merge", "tests/slow/test_more.py", "passed"), 3);
    assert_eq!(attempts.len(), 7, "{replayed:#}");
    let signed = std::fs::read_to_string(stage.out("out").join("flake_lease.json")).unwrap();
    let signed: Value = serde_json::from_str(&signed).unwrap();
    let overlay = &signed["predicate"]["mergeLane"]["overlay"];
    assert_eq!(&replayed["merge_overlay"], overlay, "it is the same tree");
    let told = stage.server.admin(&["replay", score]);
    assert!(
        told.contains("merge lane attempt 2: 1 of 1 cases red") && !told.contains("not the same"),
        "{told}"
    );
}
