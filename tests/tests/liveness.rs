//! Oracles that cannot tell, black box: real repository, server process, containers.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tribunal_tests::client::{report, words};
use tribunal_tests::{Client, Registered, Repo, Role, Server};

/// A repository, the server that knows it, and a workspace that is one commit ahead.
struct Stage<'a> {
    server: &'a Server,
    origin: Repo,
    registered: Registered,
    workspace: Repo,
    out: TempDir,
}

impl<'a> Stage<'a> {
    fn of(server: &'a Server, base: &Repo) -> Self {
        let origin = base.origin_at(&base.head());
        let registered = server.register(origin.path());
        let workspace = origin.cloned();
        workspace.write("README.md", "more\n");
        workspace.commit("a word");
        Self {
            server,
            origin,
            registered,
            workspace,
            out: tempfile::tempdir().unwrap(),
        }
    }

    fn out(&self) -> PathBuf {
        self.out.path().join("ci_out")
    }

    /// Score HEAD as the agent; the report it gets.
    fn score(&self) -> Value {
        self.score_as(&self.registered.agent)
    }

    fn score_as(&self, token: &str) -> Value {
        let client =
            Client::with_token(self.server, &self.registered, token, self.workspace.path());
        let out = self.out();
        let ran = client.run(&["score", "--out", out.to_str().unwrap()]);
        assert!([0, 1].contains(&ran.code), "{}\n{}", ran.stdout, ran.stderr);
        report(&out)
    }

    /// `repo sync`, base run and all.
    fn sync(&self) -> Value {
        let said = self
            .server
            .admin(&["repo", "sync", &self.registered.name, "--json"]);
        serde_json::from_str(&said).unwrap()
    }
}

/// A product of two functions, none of whose changes comes to the same, and sealed tests of this text.
fn repo(tests: &str) -> Repo {
    let repo = Repo::small();
    repo.write(
        "src/calc.py",
        "def total(xs):\n    return sum(xs)\n\n\ndef grade(points):\n    return \"pass\" if points >= 50 else \"fail\"\n",
    );
    repo.write("tests/sealed/test_core.py", tests);
    repo.commit("tests");
    repo
}

const DEAD: &str = "import contextlib\nimport calc\n\n\ndef test_it_is_there():\n    assert calc\n\n\ndef test_nothing_is_asserted():\n    with contextlib.suppress(Exception):\n        calc.total([1])\n";
/// Calls everything, looks at little.
const WEAK: &str = "import calc\n\n\ndef test_total():\n    assert calc.total([1, 2]) == 3\n\n\ndef test_grade():\n    calc.grade(1)\n";
const HEALTHY: &str = "import pytest\nimport calc\n\n\ndef test_total():\n    assert calc.total([1, 2]) == 3\n\n\n@pytest.mark.parametrize('points, word', [(49, 'fail'), (50, 'pass')])\ndef test_grade(points, word):\n    assert calc.grade(points) == word\n";

fn codes(reasons: &Value) -> Vec<&str> {
    let reasons = reasons.as_array().unwrap().iter();
    reasons.map(|r| r["code"].as_str().unwrap()).collect()
}

#[test]
fn an_oracle_that_no_product_can_fail_is_dead() {
    let stage = Stage::of(Server::shared(), &repo(DEAD));
    let report = stage.score();
    assert_eq!(words(&stage.out()), ["FAIL", "FAIL", "PASS"], "{report:#}");
    for verdict in &report["verdicts"].as_array().unwrap()[..2] {
        assert_eq!(codes(&verdict["reasons"]), ["oracle-dead"]);
    }
    assert_eq!(report["oracle"]["null_product"], "unnoticed");
    let told = stage.sync();
    assert_eq!(told["oracle"]["state"], "dead", "{told:#}");
}

#[test]
fn a_weak_one_is_warned_of_with_counts_and_only_the_operator_sees_where() {
    let stage = Stage::of(Server::shared(), &repo(WEAK));
    let first = stage.score();
    assert_eq!(words(&stage.out()), ["PASS", "PASS", "PASS"], "{first:#}");
    assert_eq!(first["oracle"]["null_product"], "noticed");
    assert_eq!(first["oracle"]["planted"], Value::Null, "not asked for yet");

    let told = stage.sync();
    let planted = &told["oracle"]["planted"];
    let unnoticed = planted["unnoticed"].as_array().unwrap().len();
    assert_eq!(told["oracle"]["state"], "alive");
    assert_eq!(planted["drawn"], planted["run"], "{planted:#}");
    assert!(unnoticed > 2, "{planted:#}");
    for place in planted["unnoticed"].as_array().unwrap() {
        assert_eq!(
            (&place["path"], &place["function"]),
            (&"src/calc.py".into(), &"grade".into())
        );
    }

    let second = stage.score();
    assert_eq!(words(&stage.out()), ["PASS", "PASS", "PASS"]);
    let warnings = second["warnings"].as_array().unwrap();
    let weak = warnings
        .iter()
        .find(|w| w["code"] == "oracle-weak")
        .unwrap();
    let sentence = format!(
        "{unnoticed} of {} planted changes were noticed by no sealed case",
        planted["run"]
    );
    assert_eq!(weak["detail"], sentence.as_str());
    assert_eq!(second["oracle"]["planted"]["unnoticed"], unnoticed);
    assert!(
        !second["oracle"].to_string().contains("calc.py"),
        "the agent learns where"
    );
    let operator = stage.server.token(Role::Operator, None);
    let seen = stage.score_as(&operator);
    let places = &seen["oracle"]["planted"]["places"];
    assert_eq!(places.as_array().unwrap().len(), unnoticed, "{seen:#}");

    let doctor: Value = {
        let output = stage.server.try_admin(&["doctor", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let mut checks = doctor["checks"].as_array().unwrap().iter();
    let about = format!("{}: the oracle is alive; {sentence}", stage.registered.name);
    assert!(
        checks.any(|c| c["what"] == "oracle" && c["found"] == about.as_str()),
        "{doctor:#}"
    );
}

#[test]
fn a_healthy_one_is_looked_at_while_the_server_is_idle_and_nothing_is_said() {
    let server = Server::with_config("[oracle]\nplant = \"idle\"\n");
    let stage = Stage::of(&server, &repo(HEALTHY));
    assert_eq!(stage.score()["oracle"]["planted"], Value::Null);
    let until = Instant::now() + Duration::from_secs(300);
    let seen = loop {
        // A score would come first, so nothing but the store is asked meanwhile.
        let said = server.admin(&["repo", "sync", &stage.registered.name, "--quick", "--json"]);
        let said: Value = serde_json::from_str(&said).unwrap();
        if said["oracle"]["planted"] != Value::Null {
            break stage.score();
        }
        assert!(Instant::now() < until, "nobody looked: {}", server.log());
        std::thread::sleep(Duration::from_millis(500));
    };
    assert_eq!(seen["oracle"]["planted"]["unnoticed"], 0, "{seen:#}");
    assert!(
        seen["oracle"]["planted"]["run"].as_u64().unwrap() >= 5,
        "{seen:#}"
    );
    assert!(!codes(&seen["warnings"]).contains(&"oracle-weak"));
    server.shutdown();
}

#[test]
fn what_is_red_on_base_does_not_hide_whether_the_others_are_alive() {
    let red = "def test_a_first():\n    assert False\n\n\n";
    let stage = Stage::of(Server::shared(), &repo(&format!("{red}{HEALTHY}")));
    let report = stage.score();
    assert_eq!(report["oracle"]["null_product"], "noticed", "{report:#}");
    let told = stage.sync();
    assert_eq!(
        told["oracle"]["red_on_base"].as_array().unwrap().len(),
        1,
        "{told:#}"
    );
    assert_eq!(told["oracle"]["planted"]["unnoticed"], Value::Array(vec![]));
    let dead = Stage::of(Server::shared(), &repo(&format!("{red}{DEAD}")));
    assert_eq!(dead.score()["oracle"]["null_product"], "unnoticed");
}

#[test]
fn a_server_that_is_down_is_not_needed_for_a_look() {
    let server = Server::own();
    let stage = Stage::of(&server, &repo(HEALTHY));
    server.shutdown();
    let told = stage.sync();
    assert_eq!(told["oracle"]["state"], "alive", "{told:#}");
    assert_eq!(told["oracle"]["planted"]["unnoticed"], Value::Array(vec![]));
    let quick = server.admin(&["repo", "sync", &stage.registered.name, "--quick"]);
    assert!(
        quick.contains("the oracle is alive: it notices when src does nothing"),
        "{quick}"
    );
}

#[test]
fn a_case_that_does_not_end_makes_no_later_file_look_as_if_it_needed_to_be_shared() {
    let base = repo(INSIDE);
    let hangs = "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n\n\ndef test_after():\n    pass\n";
    base.write("tests/sealed/test_a_hangs.py", hangs);
    base.write("tests/sealed/test_listed.py", HEALTHY);
    base.write("tests/sealed/test_more.py", HEALTHY);
    let files = ["a_hangs", "core", "listed", "more"];
    let manifest: String = files
        .iter()
        .map(|f| format!("tests/sealed/test_{f}.py\n"))
        .collect();
    base.write("tests/sealed/MANIFEST.txt", manifest);
    base.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\ncase_timeout = \"5s\"\n[runner]\nshared = [\"tests/sealed/test_listed.py\"]\n",
    );
    base.commit("one that hangs");
    let stage = Stage::of(Server::shared(), &base);
    let (server, registered) = (stage.server, &stage.registered);
    let seen = Client::ci(server, registered, stage.workspace.path()).run(&["modes"]);
    seen.expect_code(1);
    let lines: Vec<&str> = seen.stdout.lines().take(5).collect();
    assert_eq!(
        lines,
        [
            "split  tests/sealed/test_a_hangs.py",
            "needs-shared  tests/sealed/test_core.py",
            "    tests/sealed/test_core.py::test_it_is_the_sum",
            "shared, without need  tests/sealed/test_listed.py",
            "split  tests/sealed/test_more.py",
        ],
        "{}",
        seen.stdout
    );
}

/// Looks at what only one process has: the source text of a function.
const INSIDE: &str = "import inspect\nimport calc\n\n\ndef test_total():\n    assert calc.total([1, 2]) == 3\n\n\ndef test_it_is_the_sum():\n    assert 'sum(' in inspect.getsource(calc.total)\n";

#[test]
fn a_file_that_needs_the_product_beside_it_is_named_until_the_policy_lists_it() {
    let base = repo(INSIDE);
    base.write("tests/sealed/test_more.py", HEALTHY);
    base.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_more.py\n",
    );
    base.write(
        "ci/tribunal.toml",
        "version = 1\n\n[runner] # how\nshared = [\n  \"tests/sealed/test_more.py\", # out of habit\n]\n",
    );
    base.commit("two files");
    let stage = Stage::of(Server::shared(), &base);
    let report = stage.score();
    assert_eq!(words(&stage.out()), ["FAIL", "PASS", "PASS"], "{report:#}");
    let reasons = &report["verdicts"][0]["reasons"];
    assert_eq!(codes(reasons), ["needs-shared"]);
    assert_eq!(reasons[0]["subject"], "tests/sealed/test_core.py");
    assert!(
        reasons[0]["detail"]
            .as_str()
            .unwrap()
            .contains("tribunal modes --write")
    );

    let told = stage.sync();
    assert_eq!(
        told["oracle"]["need_shared"]["tests/sealed/test_core.py"],
        serde_json::json!(["tests/sealed/test_core.py::test_it_is_the_sum"]),
        "{told:#}"
    );
    assert_eq!(told["oracle"]["red_on_base"], Value::Array(vec![]));

    let (server, registered) = (stage.server, &stage.registered);
    let folder = stage.workspace.path();
    Client::agent(server, registered, folder)
        .run(&["modes"])
        .expect_code(77);
    let seen = Client::ci(server, registered, folder).run(&["modes"]);
    seen.expect_code(1);
    for line in [
        "needs-shared  tests/sealed/test_core.py",
        "    tests/sealed/test_core.py::test_it_is_the_sum",
        "shared, without need  tests/sealed/test_more.py",
    ] {
        assert!(
            seen.stdout.lines().any(|l| l == line),
            "{line}: {}",
            seen.stdout
        );
    }

    let maintainer = Client::maintainer(server, registered, folder);
    maintainer.run(&["modes", "--write"]).expect_code(0);
    let policy = std::fs::read_to_string(folder.join("ci/tribunal.toml")).unwrap();
    assert_eq!(
        policy,
        "version = 1\n\n[runner] # how\nshared = [\n  \"tests/sealed/test_core.py\",\n]\n"
    );
    stage.workspace.commit("what needs it is listed");
    let origin = stage.origin.path().to_str().unwrap();
    stage
        .workspace
        .git(&["push", "-q", origin, "HEAD:refs/heads/main"]);
    maintainer.run(&["modes"]).expect_code(0);
    stage.workspace.write("README.md", "still more\n");
    stage.workspace.commit("a word more");
    let report = stage.score();
    assert_eq!(words(&stage.out()), ["PASS", "PASS", "PASS"], "{report:#}");
    assert_eq!(
        report["isolation"],
        serde_json::json!({ "shared": 1, "split": 1 })
    );
}
