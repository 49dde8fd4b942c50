//! Held-out pins against real containers: what is right only under the announced pins fails, nothing of it leaks, grinding
//! gets dearer, and an operator can see it fail.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use serde_json::Value;
use tribunal_tests::client::{report, words};
use tribunal_tests::server::Role;
use tribunal_tests::{Client, Ran, Repo, Server, Stage};

/// A small product whose sealed case draws its own inputs, as a property does.
const SEALED: &str = "\
import os
import random

from calc import mean, stamp


def test_mean():
    rng = random.Random(int(os.environ['TRIBUNAL_SEED']))
    for _ in range(20):
        xs = [rng.randrange(1000) for _ in range(5)]
        assert mean(xs) == sum(xs) / 5, 'SENTINEL-OF-THE-ORACLE'


def test_stamp():
    assert stamp(1000) == 1001


def test_last():
    assert mean([1]) == 1
";

const HONEST: &str = "\
def mean(xs):
    return sum(xs) / len(xs)


def stamp(seconds):
    return seconds + 1
";

fn base() -> Repo {
    let repo = Repo::small();
    repo.write("src/calc.py", HONEST);
    repo.write("tests/sealed/test_core.py", SEALED);
    repo.write("ci/tribunal.toml", "version = 1\n[runs]\nreruns = 3\n");
    repo.commit("base");
    repo
}

/// Score this product; what the client said, and the report.
fn score(stage: &Stage<'_>, client: &Client, name: &str, product: &str) -> (Ran, Value) {
    stage.workspace.write("src/calc.py", product);
    stage.workspace.commit(name);
    let ran = stage.score(client, name);
    let report = report(&stage.out(name));
    (ran, report)
}

/// `code subject` of every reason of `src_score`.
fn reasons(report: &Value) -> Vec<String> {
    let verdicts = report["verdicts"].as_array().unwrap();
    let verdict = verdicts.iter().find(|v| v["name"] == "src_score").unwrap();
    let reasons = verdict["reasons"].as_array().unwrap().iter();
    reasons
        .map(|r| {
            let subject = r["subject"].as_str().unwrap_or("-");
            format!("{} {subject}", r["code"].as_str().unwrap())
        })
        .collect()
}

/// A mean that is right only where this expression holds.
fn right_where(condition: &str) -> String {
    format!(
        "import os, random, time, datetime\n{HONEST}\n\ndef mean(xs):\n    if {condition}:\n        return sum(xs) / len(xs)\n    print('ECHO', xs, os.environ.get('TRIBUNAL_SEED'), time.time())\n    raise ValueError(f'ECHO {{xs}} {{dict(os.environ)}} {{time.time()}}')\n"
    )
}

const MEAN: &str = "tests/sealed/test_core.py::test_mean";

#[test]
fn honest_code_holds_under_any_pins() {
    let stage = Stage::of(Server::shared(), &base());
    let (ran, report) = score(
        &stage,
        &stage.agent(),
        "honest",
        &format!("# tidier\n{HONEST}"),
    );
    ran.expect_code(0);
    assert_eq!(report["held_out"]["planned"], 2);
    assert_eq!(report["held_out"]["seen"], 2);
    let statement = std::fs::read(stage.out("honest").join("src_score.json")).unwrap();
    let statement: Value = serde_json::from_slice(&statement).unwrap();
    let attempts = &statement["predicate"]["attempts"];
    assert_eq!(
        (&attempts["heldOutPlanned"], &attempts["heldOut"]),
        (&2.into(), &2.into())
    );
    // The same content again costs no attempt, held-out ones included.
    let again = stage.score(&stage.agent(), "again");
    again.expect_code(0);
    let operator = operators(&stage, &report);
    assert_eq!(lanes(&operator, "held-out").len(), 2);
}

#[test]
fn pins_that_were_learned_by_heart_do_not_pass() {
    let stage = Stage::of(Server::shared(), &base());
    for (name, condition) in [
        ("seed", "os.environ.get('TRIBUNAL_SEED') == '20260912'"),
        ("hash-seed", "os.environ.get('PYTHONHASHSEED') == '0'"),
        (
            "epoch",
            "os.environ.get('SOURCE_DATE_EPOCH') == '1700000000'",
        ),
        ("year", "time.gmtime().tm_year == 2026"),
        (
            "date",
            "datetime.date.today() == datetime.date(2026, 9, 12)",
        ),
    ] {
        let (ran, report) = score(&stage, &stage.agent(), name, &right_where(condition));
        ran.expect_code(1);
        assert_eq!(words(&stage.out(name)), ["FAIL", "PASS", "PASS"], "{name}");
        let found = reasons(&report);
        assert!(
            found.contains(&format!("held-out-pins {MEAN}")),
            "{name}: {found:?}"
        );
    }
}

fn operators_client(stage: &Stage<'_>) -> Client {
    let token = stage.server.token(Role::Operator, None);
    let folder = stage.workspace.path();
    Client::with_token(stage.server, &stage.registered, &token, folder)
}

fn operators(stage: &Stage<'_>, report: &Value) -> Value {
    let ran =
        operators_client(stage).run(&["--json", "explain", report["score"].as_str().unwrap()]);
    ran.expect_code(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn lanes<'a>(report: &'a Value, lane: &str) -> Vec<&'a Value> {
    let attempts = report["attempts"].as_array().unwrap().iter();
    attempts.filter(|attempt| attempt["lane"] == lane).collect()
}

#[test]
fn nothing_of_a_held_out_attempt_leaks_and_the_operator_sees_all() {
    let stage = Stage::of(Server::shared(), &base());
    let product = right_where("os.environ.get('TRIBUNAL_SEED') == '20260912'");
    let (ran, report) = score(&stage, &stage.agent(), "echo", &product);
    let operator = operators(&stage, &report);
    let drawn = lanes(&operator, "held-out");
    assert_eq!(drawn.len(), 2);
    // Base was asked under the draws in which the case failed.
    assert_eq!(lanes(&operator, "base-collection").len(), 2);
    let case = operator["cases"].as_array().unwrap().iter();
    let case = case.clone().find(|case| case["node"] == MEAN).unwrap();
    let failure = &case["held_out_failure"];
    assert!(
        failure["message"].as_str().unwrap().contains("ECHO"),
        "{case:#}"
    );
    assert_eq!(case["held_out"].as_array().unwrap().len(), 2);
    let told = operators_client(&stage).run(&["explain", report["score"].as_str().unwrap()]);
    assert!(told.stdout.contains("held-out draw 1, call:") && told.stdout.contains("ECHO"));

    for client in [stage.agent(), stage.ci(), stage.maintainer()] {
        let seen = stage.everything(&client, "echo", &ran);
        for attempt in &drawn {
            let pins = &attempt["pins"];
            for secret in [
                pins["seed"].to_string(),
                pins["hash_seed"].to_string(),
                pins["source_date_epoch"].to_string(),
                pins["clock"].as_str().unwrap().to_owned(),
            ] {
                assert!(!seen.contains(&secret), "{secret} leaked");
            }
        }
        for text in ["ECHO", "SENTINEL-OF-THE-ORACLE", "held_out_failure\""] {
            assert!(!seen.contains(text), "{text} leaked");
        }
        assert!(seen.contains("held-out-pins") && seen.contains(MEAN));
    }
    assert!(lanes(&report, "held-out").is_empty());
    assert!(lanes(&report, "base-collection").is_empty());

    // An operator sees it fail again, and nothing of that is evidence.
    let id = report["score"].as_str().unwrap();
    let replayed = stage.server.admin(&["--json", "replay", id]);
    let replayed: Value = serde_json::from_str(&replayed).unwrap();
    let attempts = replayed["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 5);
    for (attempt, drawn) in attempts[3..].iter().zip(&drawn) {
        assert_eq!(attempt["pins"], drawn["pins"]);
        let cases = attempt["cases"].as_array().unwrap().iter();
        let red: Vec<&Value> = cases.filter(|case| case["outcome"] == "failed").collect();
        assert_eq!(red[0]["node"], MEAN);
    }
    let text = stage.server.admin(&["replay", id]);
    assert!(text.contains("nothing of this is evidence") && text.contains("ECHO"));
    // The secret is nobody's but the server's.
    let secret = std::fs::read(stage.server.data().join("held_out.secret")).unwrap();
    let everywhere = format!("{}{text}{replayed}", stage.server.log());
    let hidden = |form: String| !everywhere.to_lowercase().contains(&form);
    assert!(hidden(
        secret.iter().map(|byte| format!("{byte:02x}")).collect()
    ));
}

#[test]
fn a_case_that_depends_on_the_pins_on_base_too_is_a_warning() {
    let repo = base();
    let sealed = format!(
        "{SEALED}\n\ndef test_year():\n    import time\n    assert time.gmtime().tm_year == 2026\n"
    );
    repo.write("tests/sealed/test_core.py", &sealed);
    repo.commit("a case that knows the year");
    let stage = Stage::of(Server::shared(), &repo);
    let (ran, report) = score(&stage, &stage.agent(), "year", &format!("# x\n{HONEST}"));
    ran.expect_code(0);
    let warnings = report["warnings"].as_array().unwrap().iter();
    let warning = warnings.clone().find(|w| w["code"] == "pin-sensitive");
    let warning = warning.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(warning["subject"], "tests/sealed/test_core.py::test_year");
    assert!(warning.get("detail").is_none() && warning.get("seen").is_none());
}

#[test]
fn grinding_gets_dearer() {
    let stage = Stage::of(Server::shared(), &base());
    let mut planned = Vec::new();
    for n in 0..4 {
        let product = format!("# {n}\n{}", right_where("time.gmtime().tm_year == 2026"));
        let (_, report) = score(&stage, &stage.agent(), &format!("grind-{n}"), &product);
        let held_out = &report["held_out"];
        planned.push(held_out["planned"].as_u64().unwrap());
        let mean = held_out["failures"].as_array().unwrap().iter();
        let mean = mean.clone().find(|f| f["case"] == MEAN).unwrap();
        assert_eq!(mean["overlays"], n + 1);
    }
    assert_eq!(planned, [2, 2, 2, 4]);
    // Whoever comes next pays as well, and passes; the counts are in what is signed.
    let (ran, report) = score(&stage, &stage.agent(), "honest", &format!("# y\n{HONEST}"));
    ran.expect_code(0);
    assert_eq!(report["held_out"]["seen"], 8);
    let statement = std::fs::read(stage.out("honest").join("src_score.json")).unwrap();
    let statement: Value = serde_json::from_slice(&statement).unwrap();
    let attempts = &statement["predicate"]["attempts"];
    assert_eq!(attempts["heldOutFailures"][0], 4);
}
