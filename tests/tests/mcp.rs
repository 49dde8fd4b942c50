//! `tribunal mcp` as a coding agent uses it: a scripted client, the real server, real containers.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::{Value, json};
use tribunal_tests::client::words;
use tribunal_tests::{Agent, Client, Repo, Server, Stage};

/// A score of this content takes a few seconds.
fn quick() -> Repo {
    let repo = Repo::small();
    repo.write("ci/tribunal.toml", "version = 1\n[runs]\nreruns = 3\n");
    repo.commit("three attempts");
    repo
}

/// A client of the stage's agent that trusts the server's key as it was handed out, not as the server names it.
fn trusting(stage: &Stage<'_>) -> Client {
    let key = stage.server.key_file();
    stage.agent().env("TRIBUNAL_KEY", key.to_str().unwrap())
}

fn path(stage: &Stage<'_>) -> String {
    stage.workspace.path().to_str().unwrap().to_owned()
}

const THREE: &str = "tests/sealed/test_core.py::test_three";

#[test]
fn what_the_server_says_of_itself_and_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let agent = Agent::start(&Client::offline(folder.path()));
    let us = &agent.about["serverInfo"];
    assert_eq!(us["name"], "tribunal");
    assert_eq!(us["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        agent.about["instructions"]
            .as_str()
            .unwrap()
            .contains("MERGE_OK")
    );
    let names: Vec<&Value> = agent.tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        ["score", "score_status", "explain", "verify", "leases"]
    );
    for tool in &agent.tools {
        let hints = &tool["annotations"];
        let reads = tool["name"] != "score";
        assert_eq!(hints["readOnlyHint"], reads, "{tool:#}");
        assert_eq!(hints["idempotentHint"], reads);
        assert_eq!(hints["destructiveHint"], false);
        assert_eq!(hints["openWorldHint"], false);
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{tool:#}");
            let described = tool[schema]["properties"].as_object().unwrap().values();
            assert!(
                described
                    .clone()
                    .all(|field| field["description"].is_string()),
                "{tool:#}"
            );
        }
    }
    // All of it together is what an agent's context pays before the first call.
    let listed = Value::from(agent.tools.clone()).to_string().len();
    assert!(listed < 20_000, "{listed}");
    agent.close();
}

#[test]
fn fail_explain_fix_pass() {
    let stage = Stage::of(Server::shared(), &quick());
    let mut agent = Agent::start(&trusting(&stage));
    let workspace = path(&stage);
    let score = json!({"workspace": workspace, "wait_seconds": 200});

    let head = stage.wrong_patch("to be explained");
    stage.workspace.write("notes.txt", "not committed");
    let failed = agent.call("score", score.clone());
    failed.expect_ok();
    let fields = failed.fields();
    let name = failed.name();
    assert_eq!(fields["state"], "completed");
    assert_eq!(fields["decision"], "MERGE_BLOCKED");
    assert_eq!(fields["head"], head);
    assert_eq!(fields["key"], "file");
    assert_eq!(fields["words"]["src_score"], "FAIL");
    assert_eq!(fields["words"]["oracle_integrity"], "PASS");
    let finding = &fields["findings"][0];
    assert_eq!(finding["code"], "case-failed");
    assert_eq!(finding["case"], THREE);
    assert_eq!(finding["attempts"], "F F F (F failed)");
    let assertion = finding["assertion"].to_string();
    assert!(
        assertion.contains("assert 3 == 6"),
        "with its values: {assertion}"
    );
    assert!(
        assertion.contains("tests/sealed/test_core.py:9"),
        "{assertion}"
    );
    assert!(
        fields["warnings"][0]
            .as_str()
            .unwrap()
            .contains("notes.txt")
    );
    for part in [
        THREE,
        "case-failed",
        "assert 3 == 6",
        "F F F",
        &name,
        "next: ",
    ] {
        assert!(failed.text().contains(part), "{part}: {}", failed.text());
    }
    // The first step that could be told has the name, and the attempts are counted.
    assert!(
        failed.progress.contains(&format!("asked for {name}")),
        "{:?}",
        failed.progress
    );
    assert!(
        failed
            .progress
            .iter()
            .any(|line| line.ends_with("attempt 3 of 3 is over")),
        "{:?}",
        failed.progress
    );
    let out = stage.workspace.path().join("ci_out");
    assert_eq!(words(&out), ["FAIL", "PASS", "PASS"]);

    let explained = agent.call("explain", json!({"score": name, "case": THREE}));
    explained.expect_ok();
    assert_eq!(explained.fields()["pages"], 1);
    let text = explained.fields()["text"].as_str().unwrap();
    assert!(
        text.contains("attempts: 1-3 failed") && text.contains("on base it passes"),
        "{text}"
    );
    let blocked = agent.call("verify", json!({"workspace": workspace}));
    blocked.expect_ok();
    assert_eq!(blocked.fields()["decision"], "MERGE_BLOCKED");
    assert_eq!(
        blocked.fields()["checks"],
        json!([]),
        "only the words block"
    );

    stage.honest_patch("explained");
    let passed = agent.call("score", score);
    passed.expect_ok();
    assert_eq!(
        passed.fields()["decision"],
        "MERGE_OK",
        "{:#}",
        passed.result
    );
    assert_eq!(passed.fields()["findings"], json!([]));
    assert!(passed.text().starts_with("MERGE_OK: src_score=PASS"));
    assert_eq!(words(&out), ["PASS", "PASS", "PASS"]);
    let verified = agent.call("verify", json!({"workspace": workspace}));
    assert_eq!(verified.fields()["decision"], "MERGE_OK");
    assert!(verified.fields()["held"].as_u64().unwrap() > 10);
    // The old score is still there, and says what it said.
    let again = agent.call("score_status", json!({"score": name}));
    again.expect_ok();
    assert_eq!(again.fields()["findings"], *fields.get("findings").unwrap());
    assert_eq!(again.fields()["decision"], "MERGE_BLOCKED");
    let other = agent.call("verify", json!({"workspace": workspace, "head": head}));
    assert_eq!(other.fields()["decision"], "MERGE_BLOCKED");
    assert_eq!(
        other.fields()["checks"][0]["check"],
        "head",
        "{:#}",
        other.result
    );
    agent.close();
}

#[test]
fn what_cannot_be_done_has_a_code() {
    let stage = Stage::of(Server::shared(), &quick());
    let workspace = path(&stage);
    let score = json!({"workspace": workspace});
    let unknown = format!(
        "repositories/{}/scores/{}",
        stage.registered.name,
        "0".repeat(32)
    );

    // Nothing is configured, or nobody is there.
    let mut alone = Agent::start(&Client::offline(stage.workspace.path()));
    let nothing = alone.call("score", score.clone());
    nothing.expect_error("usage");
    assert!(
        nothing.text().contains("no server is configured"),
        "{}",
        nothing.text()
    );
    alone.call("verify", json!({})).expect_error("usage");
    alone.close();
    let nowhere = Client::offline(stage.workspace.path())
        .env("TRIBUNAL_SERVER", "http://127.0.0.1:9")
        .env("TRIBUNAL_REPO", &stage.registered.name)
        .env("TRIBUNAL_TOKEN", "t");
    let mut lonely = Agent::start(&nowhere);
    lonely
        .call("score", score.clone())
        .expect_error("unreachable");
    for tool in ["score_status", "explain"] {
        let lost = lonely.call(tool, json!({"score": unknown}));
        lost.expect_error("unreachable");
        assert_eq!(lost.name(), unknown, "the name is never lost");
    }
    lonely.close();

    let mut agent = Agent::start(&stage.agent());
    for tool in ["score", "leases", "verify"] {
        for bad in ["/nowhere/at/all", "/"] {
            agent
                .call(tool, json!({"workspace": bad}))
                .expect_error("bad-workspace");
        }
    }
    for tool in ["score_status", "explain"] {
        let absent = agent.call(tool, json!({"score": unknown}));
        absent.expect_error("not-found");
        assert_eq!(absent.name(), unknown);
        agent
            .call(tool, json!({"score": "../.."}))
            .expect_error("usage");
    }
    agent
        .call("leases", json!({"score": unknown}))
        .expect_error("not-found");
    for bad in [
        json!({"workspace": workspace, "max_chars": 10}),
        json!({"workspace": workspace, "wait_seconds": 100_000}),
        json!({"workspace": workspace, "wait_seconds": "soon"}),
        json!({"workspace": workspace, "fresh": true}),
        json!({"workspace": workspace, "base": "main"}),
    ] {
        agent.call("score", bad).expect_error("usage");
    }
    let far = json!({"workspace": workspace, "base": "1".repeat(40)});
    agent.call("score", far).expect_error("unknown-commit");
    let answer = agent.request("tools/call", json!({"name": "rm", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602);
    agent.close();

    let impostor = Client::with_token(stage.server, &stage.registered, "t", stage.workspace.path());
    let mut impostor = Agent::start(&impostor);
    impostor
        .call("score", score)
        .expect_error("unauthenticated");
}

#[test]
fn a_call_that_is_over_before_its_score_names_it() {
    let repo = Repo::slow(2.0);
    repo.write("ci/tribunal.toml", "version = 1\n[runs]\nreruns = 3\n");
    repo.commit("three slow attempts");
    let server = Server::own();
    let stage = Stage::of(&server, &repo);
    let mut agent = Agent::start(&stage.agent());
    let workspace = path(&stage);

    stage.honest_patch("one");
    let early = agent.call("score", json!({"workspace": workspace, "wait_seconds": 1}));
    early.expect_ok();
    assert!(["queued", "running"].contains(&early.fields()["state"].as_str().unwrap()));
    assert_eq!(early.fields()["decision"], Value::Null);
    assert!(
        early.fields()["next"]
            .as_str()
            .unwrap()
            .contains("score_status")
    );
    let name = early.name();
    let late = agent.call("score_status", json!({"score": name, "wait_seconds": 200}));
    late.expect_ok();
    assert_eq!(late.fields()["decision"], "MERGE_OK", "{:#}", late.result);
    assert_eq!(late.name(), name);
    assert!(
        late.progress.iter().any(|line| line.contains("attempt")),
        "{:?}",
        late.progress
    );

    // The server goes away in the middle of a call.
    stage.honest_patch("two");
    let begun = agent.begin("score", json!({"workspace": workspace, "wait_seconds": 15}));
    let asked = loop {
        let line = agent.progress(&begun);
        if let Some(name) = line.strip_prefix("asked for ") {
            break name.to_owned();
        }
    };
    server.kill();
    let lost = agent.end(&begun);
    lost.expect_error("unreachable");
    assert_eq!(lost.name(), asked);
    server.start();
    let found = agent.call("score_status", json!({"score": asked, "wait_seconds": 100}));
    found.expect_error("server-restarted");
    assert_eq!(found.fields()["state"], "aborted");
    assert_eq!(found.name(), asked);
    agent.close();
    server.shutdown();
}

/// A case that says much, and many that say much each.
fn loud() -> Repo {
    let repo = Repo::small();
    repo.write(
        "tests/sealed/test_core.py",
        "import pytest\nfrom calc import total\n\n\n@pytest.mark.parametrize('n', range(60))\ndef test_many(n):\n    \
         assert total([n]) == n, f'{n} \\x1b[31m\"quoted\" \\\\ ' + 'loud ' * 200\n\n\ndef test_answers():\n    assert total([]) is not None\n",
    );
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 2\nheld_out = 0\n",
    );
    repo.commit("loud");
    repo
}

#[test]
fn no_answer_is_longer_than_it_may_be() {
    let stage = Stage::of(Server::shared(), &loud());
    let mut agent = Agent::start(&stage.agent());
    stage
        .workspace
        .write("src/calc.py", "def total(xs):\n    return -1\n");
    stage.workspace.commit("wrong");
    let workspace = path(&stage);
    let name = agent
        .call(
            "score",
            json!({"workspace": workspace, "wait_seconds": 200}),
        )
        .name();
    let mut told = Vec::new();
    for max in [1500, 2500, 4000, 20_000] {
        let answer = agent.call("score_status", json!({"score": name, "max_chars": max}));
        answer.expect_ok();
        for text in [answer.text(), &answer.fields().to_string()] {
            assert!(
                text.chars().count() <= max,
                "{max}: {} {text}",
                text.chars().count()
            );
            assert!(!text.contains('\u{1b}'), "candidate text is escaped");
        }
        let finding = &answer.fields()["findings"][0];
        assert_eq!(finding["code"], "case-failed");
        assert!(finding["assertion"][0].is_string(), "{max}: {finding:#}");
        let findings = answer.fields()["findings"].as_array().unwrap();
        told.push(findings.len());
        let alike = |finding: &Value| 1 + finding["alike"].as_u64().unwrap();
        let all =
            findings.iter().map(alike).sum::<u64>() + answer.fields()["more"].as_u64().unwrap();
        assert_eq!(all, 60, "{max}: what has no room is counted");
        assert!(
            answer.text().contains(" more: explain"),
            "{}",
            answer.text()
        );
    }
    assert!(told.is_sorted() && told.first() < told.last(), "{told:?}");

    let whole = stage.agent().run(&["explain", &name]).stdout;
    for max in [1500, 6000] {
        let mut text = String::new();
        let mut page = 1;
        loop {
            let answer = agent.call(
                "explain",
                json!({"score": name, "page": page, "max_chars": max}),
            );
            answer.expect_ok();
            for text in [answer.text(), &answer.fields().to_string()] {
                assert!(
                    text.chars().count() <= max,
                    "{max}: {}",
                    text.chars().count()
                );
            }
            text.push_str(answer.fields()["text"].as_str().unwrap());
            if answer.fields()["pages"] == page {
                break;
            }
            page += 1;
        }
        let squeezed = |text: &str| text.replace('\n', "");
        assert_eq!(squeezed(&text), squeezed(&whole), "the pages are the whole");
        let beyond = json!({"score": name, "page": page + 1, "max_chars": max});
        agent.call("explain", beyond).expect_error("usage");
    }
    // The command line keeps to the same.
    for (page, max) in [(1, 500), (2, 500), (3, 3000)] {
        let (page, limit) = (page.to_string(), max.to_string());
        let ran = stage
            .agent()
            .run(&["explain", &name, "--max-chars", &limit, "--page", &page]);
        ran.expect_code(0);
        assert!(
            ran.stdout.trim_end().chars().count() <= max,
            "{}",
            ran.stdout
        );
        assert!(
            ran.stdout.contains(&format!("… page {page} of ")),
            "{}",
            ran.stdout
        );
    }
    let ran = stage.agent().run(&["score", "--max-chars", "700"]);
    ran.expect_code(1);
    let (_, fix) = ran.stdout.split_once('\n').unwrap();
    assert!(
        fix.trim_end().chars().count() <= 700 && fix.contains("attempts: F F"),
        "{fix}"
    );
    agent.close();
}

#[test]
fn a_mixed_case_comes_with_its_pattern_what_it_owes_and_what_to_do() {
    let repo = Repo::small();
    repo.write(
        "tests/sealed/test_core.py",
        "from calc import total\n\n\ndef test_draws():\n    with open('/dev/urandom', 'rb') as device:\n        \
         assert device.read(1)[0] < 128, total([])\n\n\ndef test_three():\n    assert total([1, 2, 3]) == 6\n",
    );
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 20\nheld_out = 0\n",
    );
    repo.commit("a coin");
    let stage = Stage::of(Server::shared(), &repo);
    let mut agent = Agent::start(&stage.agent());
    stage.honest_patch("mixed for an agent");
    let score = json!({"workspace": path(&stage), "wait_seconds": 200});
    let mixed = agent.call("score", score);
    mixed.expect_ok();
    let finding = &mixed.fields()["findings"][0];
    assert_eq!(
        finding["case"], "tests/sealed/test_core.py::test_draws",
        "{:#}",
        mixed.result
    );
    // As the report has it, letter by letter.
    let report = tribunal_tests::client::report(&stage.workspace.path().join("ci_out"));
    let cases = report["cases"].as_array().unwrap().iter();
    let case = cases
        .clone()
        .find(|case| case["node"] == finding["case"])
        .unwrap();
    let outcomes = case["outcomes"].as_array().unwrap().iter();
    let letters: Vec<&str> = outcomes
        .map(|outcome| if outcome == "passed" { "P" } else { "F" })
        .collect();
    let pattern = finding["attempts"].as_str().unwrap();
    assert!(
        pattern.starts_with(&format!("{} (", letters.join(" "))),
        "{pattern}"
    );
    assert!(letters.contains(&"P") && letters.contains(&"F"));
    let owed = finding["owed"].as_str().unwrap();
    assert!(owed.starts_with("neither a pin nor a property"), "{owed}");
    let next = finding["next"].as_str().unwrap();
    assert!(next.starts_with("let the product do without"), "{next}");
    for part in [pattern, owed, next] {
        assert!(mixed.text().contains(part), "{part}: {}", mixed.text());
    }
    agent.close();
}

#[test]
fn no_tool_tells_more_than_the_agents_level() {
    for (level, named) in [("verdict", false), ("names", true)] {
        let repo = quick();
        let policy = format!("version = 1\n[runs]\nreruns = 2\n[feedback]\nagent = \"{level}\"\n");
        repo.write("ci/tribunal.toml", &policy);
        repo.commit(level);
        let stage = Stage::of(Server::shared(), &repo);
        stage.wrong_patch("wrong");
        let mut agent = Agent::start(&stage.agent());
        let answer = agent.call(
            "score",
            json!({"workspace": path(&stage), "wait_seconds": 200}),
        );
        let name = answer.name();
        let mut seen = answer.result.to_string();
        for (tool, arguments) in [
            ("score_status", json!({"score": name})),
            ("explain", json!({"score": name, "max_chars": 20_000})),
            ("explain", json!({"score": name, "case": THREE})),
            ("leases", json!({"score": name})),
        ] {
            let answer = agent.call(tool, arguments).result.to_string();
            // An agent that asks for a case by its name has that from itself.
            seen.push_str(&answer.replace("no case tests/sealed/test_core.py::test_three", ""));
        }
        assert!(
            seen.contains("case-failed"),
            "the code is always told: {seen}"
        );
        assert_eq!(seen.contains("::test_three"), named, "{level}: {seen}");
        assert!(!seen.contains("assert 3 == 6"), "{level}: {seen}");
        agent.close();
    }
}

#[test]
fn a_client_that_knows_tasks_gets_one() {
    let stage = Stage::of(Server::shared(), &quick());
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut agent = Agent::with_capabilities(&stage.agent(), &capabilities);
    stage.wrong_patch("as a task");
    let call = json!({"name": "score", "arguments": {"workspace": path(&stage)}});
    let task = agent.request("tools/call", call)["result"].clone();
    assert_eq!(task["resultType"], "task", "{task:#}");
    assert_eq!(task["status"], "working");
    let id = json!({"taskId": task["taskId"]});
    let mut said = String::new();
    let mut done = Value::Null;
    tribunal_tests::until("the task is completed", || {
        done = agent.request("tasks/get", id.clone())["result"].clone();
        let message = done["statusMessage"].as_str().unwrap_or_default();
        if message.starts_with("repositories/") {
            said = message.to_owned();
        }
        done["status"] == "completed"
    });
    agent.hold("score", &done["result"]);
    let fields = &done["result"]["structuredContent"];
    assert_eq!(fields["decision"], "MERGE_BLOCKED", "{done:#}");
    let name = fields["name"].as_str().unwrap();
    assert!(
        said.starts_with(&format!("{name}: ")),
        "the name was there before: {said}"
    );

    // One that is given up ends at once; its score goes on by itself.
    stage.honest_patch("right");
    let call = json!({"name": "score", "arguments": {"workspace": path(&stage)}});
    let task = agent.request("tools/call", call)["result"].clone();
    let id = json!({"taskId": task["taskId"]});
    agent.request("tasks/cancel", id.clone());
    tribunal_tests::until("the task is cancelled", || {
        agent.request("tasks/get", id.clone())["result"]["status"] == "cancelled"
    });
    let unknown = agent.request("tasks/get", json!({"taskId": "nope"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
    let bad = json!({"name": "score", "arguments": {"workspace": 1}});
    let bad = agent.request("tools/call", bad)["result"].clone();
    assert_eq!(
        bad["structuredContent"]["error"]["code"], "usage",
        "{bad:#}"
    );
    agent.close();
}

#[test]
fn leases_are_listed_as_written_and_as_judged() {
    let repo = quick();
    let lease = |name: &str, until: &str| {
        json!({
            "qualname": name, "bytecode_hash": "0".repeat(16), "failure_signature": "E: x",
            "expires_at": until, "owner": "o@example.org", "reason": "why",
        })
    };
    let leases = json!({"leases": [
        lease("tests/sealed/test_core.py::test_three", "2099-01-01T00:00:00Z"),
        lease("tests/sealed/test_core.py::test_empty", "2020-01-01T00:00:00Z"),
    ]});
    repo.write("ci/flake_leases.json", leases.to_string());
    repo.commit("leases");
    let stage = Stage::of(Server::shared(), &repo);
    let mut agent = Agent::start(&stage.agent());
    let written = agent.call("leases", json!({"workspace": path(&stage)}));
    written.expect_ok();
    assert_eq!(written.fields()["source"], "ci/flake_leases.json");
    let standing = |called: &tribunal_tests::agent::Called| {
        let leases = called.fields()["leases"].as_array().unwrap().clone();
        let told = leases
            .iter()
            .map(|lease| lease["standing"].as_str().unwrap().to_owned());
        told.collect::<Vec<_>>()
    };
    assert_eq!(
        standing(&written),
        ["expired", "in-date"],
        "the next to end comes first"
    );
    stage.honest_patch("right");
    let score = json!({"workspace": path(&stage), "wait_seconds": 200});
    let name = agent.call("score", score).name();
    let judged = agent.call("leases", json!({"score": name}));
    judged.expect_ok();
    assert_eq!(judged.fields()["source"], name);
    assert_eq!(standing(&judged).len(), 2);
    stage.workspace.write("ci/flake_leases.json", "{");
    let broken = agent.call("leases", json!({"workspace": path(&stage)}));
    broken.expect_error("lease-file-invalid");
    agent.close();
}

#[test]
fn it_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let agent = Agent::start(&Client::offline(folder.path()));
        let pid = agent.pid().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &pid])
            .status();
        assert!(sent.unwrap().success());
        // Its stdin stays open meanwhile.
        agent.ends();
    }
}
