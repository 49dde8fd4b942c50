//! `tribunal list --flaky` over real scores: a case that differs between attempts, scored again and again.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::Value;
use tribunal_tests::{Client, Repo, Server, Stage};

/// One case is a coin that nothing pins.
const SEALED: &str = "\
from calc import total


def test_draws():
    with open('/dev/urandom', 'rb') as device:
        assert device.read(1)[0] < 128, total([])


def test_holds():
    assert total([1, 2]) == 3
";

fn stage(level: &str) -> Stage<'static> {
    let repo = Repo::small();
    repo.write("tests/sealed/test_core.py", SEALED);
    repo.write(
        "ci/tribunal.toml",
        format!(
            "version = 1\n[runs]\nreruns = 20\nheld_out = 0\n[feedback]\nagent = \"{level}\"\n"
        ),
    );
    repo.commit("base");
    Stage::of(Server::shared(), &repo)
}

fn listed(client: &Client) -> Vec<Value> {
    let ran = client.run(&["--json", "list", "--flaky"]);
    ran.expect_code(0);
    ran.events()[0]["cases"].as_array().unwrap().clone()
}

/// The case of that name.
#[track_caller]
fn case<'a>(cases: &'a [Value], name: &str) -> &'a Value {
    let found = cases.iter().find(|case| case["node"] == name);
    assert!(found.is_some(), "{cases:#?}");
    found.unwrap()
}

const DRAWS: &str = "tests/sealed/test_core.py::test_draws";
const NEW: &str = "tests/test_new.py::test_new";

#[test]
fn a_mixed_case_is_listed_with_all_that_was_seen_of_it() {
    let stage = stage("full");
    let maintainer = stage.maintainer();
    assert_eq!(listed(&maintainer), Vec::<Value>::new());
    stage.honest_patch("one");
    stage.score(&stage.agent(), "first").expect_code(3);
    let once = listed(&stage.agent());
    assert_eq!(once.len(), 1, "what holds is not listed: {once:#?}");
    let seen = case(&once, DRAWS);
    assert_eq!(seen["attempts"], 20);
    let failures = seen["failures"].as_u64().unwrap();
    assert!((1..20).contains(&failures), "{seen:#}");
    let report = tribunal_tests::client::report(&stage.out("first"));
    let of_report = &report["cases"].as_array().unwrap()[0];
    let red = of_report["outcomes"].as_array().unwrap();
    let red = red.iter().filter(|word| *word != "passed").count();
    assert_eq!(failures, red as u64, "as the report has it: {of_report:#}");
    assert_eq!(seen["source"], "random-device");
    assert_eq!(seen["owed"], "neither");
    assert_eq!(seen["lane"], "property");
    let digest = seen["digest"].as_str().unwrap();
    assert!(digest.starts_with("v2:cp313:"), "{digest}");
    assert_eq!(seen["scores"], serde_json::json!([report["score"]]));
    assert_eq!(seen["first_seen"], seen["last_seen"]);

    // The same content for somebody else: the attempts are those that there were, the score is another.
    stage.score(&maintainer, "stored").expect_code(3);
    let again = listed(&maintainer);
    let again = case(&again, DRAWS);
    assert_eq!(again["attempts"], 20, "stored attempts count once");
    assert_eq!(again["failures"], failures);
    assert_eq!(again["score_count"], 2);
    assert_eq!(listed(&stage.agent()), once, "an agent sees its own");

    // Another src: new attempts of the same case, whose text is not another.
    stage.honest_patch("two");
    stage.score(&stage.agent(), "second").expect_code(3);
    let twice = listed(&maintainer);
    let twice = case(&twice, DRAWS);
    assert_eq!(twice["attempts"], 40);
    assert!(twice["failures"].as_u64().unwrap() > failures);
    assert_eq!(twice["digest"], digest);
    assert_eq!(twice["score_count"], 3);
    assert!(twice["upper_bound"].as_f64() < Some(1.0));
    let table = maintainer.run(&["list", "--flaky"]);
    table.expect_code(0);
    let row: Vec<&str> = table.stdout.split_whitespace().collect();
    assert_eq!(row.last(), Some(&DRAWS), "{}", table.stdout);
    assert!(row.contains(&"random-device"), "{}", table.stdout);
}

#[test]
fn touched_tests_are_listed_by_their_text_and_agents_hear_what_their_level_says() {
    for (level, names) in [("verdict", None), ("names", Some(NEW)), ("full", Some(NEW))] {
        let stage = stage(level);
        stage.workspace.write(
            "tests/test_new.py",
            SEALED.replace("test_draws", "test_new"),
        );
        stage.honest_patch("with a test");
        stage.score(&stage.agent(), "out").expect_code(3);
        let all = listed(&stage.ci());
        let new = case(&all, NEW);
        assert_eq!(new["lane"], "merge");
        let blob = stage
            .workspace
            .git(&["rev-parse", "HEAD:tests/test_new.py"]);
        assert_eq!(new["digest"], format!("blob:{}", blob.trim()));
        case(&all, DRAWS);
        let heard = listed(&stage.agent());
        let heard: Vec<&Value> = heard.iter().map(|case| &case["node"]).collect();
        assert_eq!(
            heard.contains(&&Value::from(NEW)),
            names.is_some(),
            "{level}: {heard:?}"
        );
        assert_eq!(
            heard.len(),
            if names.is_some() { 2 } else { 0 },
            "{level}: {heard:?}"
        );
    }
}
