//! The contract as others meet it: the examples of docs/WIRE.md, run as they stand there with buf, and the look at what a
//! release promised.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tribunal_tests::{Server, Stage, binaries};

fn deploy(script: &str) -> Command {
    Command::new(binaries::root().join("deploy").join(script))
}

/// The folder of the program that the examples call.
fn buf() -> PathBuf {
    let output = deploy("buf.sh").arg("--path").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let path = String::from_utf8(output.stdout).unwrap();
    PathBuf::from(path.trim()).parent().unwrap().to_owned()
}

/// Every example, by the heading it stands under.
fn examples() -> BTreeMap<String, String> {
    let page = fs::read_to_string(binaries::root().join("docs/WIRE.md")).unwrap();
    let sections = page.split("\n## ").skip(1);
    sections
        .filter_map(|section| {
            let heading = section.lines().next()?.to_owned();
            let mut blocks = section.split("```sh\n").skip(1);
            let block = blocks.next()?.split("```").next()?.to_owned();
            assert!(blocks.next().is_none(), "two examples under {heading}");
            Some((heading, block))
        })
        .collect()
}

fn documents(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let all = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    all.map(Result::unwrap).collect()
}

#[test]
fn the_examples_do_what_the_page_says() {
    let server = Server::own();
    let stage = Stage::small(&server);
    let head = stage.honest_patch("scored");
    stage.score(&stage.agent(), "scored").expect_code(0);
    let mut path = buf().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut examples = examples();
    let mut run = |heading: &str| {
        let text = examples.remove(heading);
        let text = text
            .ok_or_else(|| format!("no example under {heading}"))
            .unwrap();
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", &text])
            .env("PATH", &path)
            .env("TRIBUNAL_SERVER", server.url())
            .env("TRIBUNAL_TOKEN", &stage.registered.agent)
            .env("TRIBUNAL_REPO", &stage.registered.name)
            .output()
            .unwrap()
    };
    let lives = run("Does it live?");
    assert_eq!(documents(&lives)[0]["status"], "SERVING");
    let offered = run("What does it offer?");
    let offered = String::from_utf8_lossy(&offered.stdout).into_owned();
    for method in [
        "tribunal.v1.ScoreService/CreateScore",
        "tribunal.v1.KeyService/ListKeys",
        "grpc.health.v1.Health/Check",
    ] {
        assert!(offered.lines().any(|line| line == method), "{offered}");
    }
    let keys = documents(&run("Which keys does it sign with?"));
    let pem = server.admin(&["key", "show", "--format", "pem"]);
    let shown = keys[0]["keys"].as_array().unwrap();
    assert!(
        shown
            .iter()
            .any(|key| key.to_string().contains(&pem.replace('\n', "\\n"))),
        "{keys:?}"
    );
    let scored = documents(&run("What was scored?"));
    let scores = scored[0]["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 1);
    assert_eq!(scores[0]["head"], head.as_str());
    let events = documents(&run("Follow one"));
    assert!(events.len() > 3, "{events:?}");
    assert!(events[0]["event"]["queued"].is_object(), "{:?}", events[0]);
    let last = events.last().unwrap();
    assert!(last["event"]["completed"].is_object(), "{last}");
    let refused = run("What is refused, and how");
    assert!(!refused.status.success());
    let said: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(said["code"], "permission_denied");
    assert!(
        said["details"].to_string().contains("google.rpc.ErrorInfo"),
        "{said}"
    );
    assert!(examples.is_empty(), "nobody ran {:?}", examples.keys());
    server.shutdown();
}

#[test]
fn a_tree_that_breaks_what_was_released_is_told() {
    let proto = binaries::root().join("proto");
    let lint = |folder: &PathBuf| {
        let output = deploy("lint-proto.sh").arg(folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        (
            output.status.success(),
            said + &String::from_utf8_lossy(&output.stderr),
        )
    };
    assert_eq!(lint(&proto), (true, String::new()));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("proto");
    let copied = Command::new("cp").arg("-r").args([&proto, &copy]).status();
    assert!(copied.unwrap().success());
    let file = copy.join("tribunal/v1/score_service.proto");
    let text = fs::read_to_string(&file).unwrap();
    let ways = [
        ("  bool fresh = 5;", "  bool fresh = 15;", "field \"5\""),
        ("  bool fresh = 5;", "  string fresh = 5;", "changed type"),
        ("  rpc CancelScore(", "  rpc StopScore(", "CancelScore"),
        ("  bool fresh = 5;", "  bool Fresh = 5;", "Fresh"),
    ];
    for (from, to, told) in ways {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let (held, said) = lint(&copy);
        assert!(!held && said.contains(told), "{to}: {said}");
    }
    // What is added breaks nothing.
    let more = "  bool fresh = 5;\n  // New.\n  bool newer = 99;";
    fs::write(&file, text.replacen("  bool fresh = 5;", more, 1)).unwrap();
    assert_eq!(lint(&copy), (true, String::new()));
}
