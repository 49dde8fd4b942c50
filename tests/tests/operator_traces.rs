//! A caller's trace goes on in the server: its id stands in the log.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use tribunal_tests::{Server, Stage, Wire, until};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The lines that were logged inside of the score of this name.
fn lines(server: &Server, score: &str) -> Vec<Value> {
    let id = score.rsplit('/').next().unwrap();
    let log = server.log();
    let all = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_score = |line: &Value| line["spans"].to_string().contains(id);
    all.filter(of_score).collect()
}

#[test]
fn the_log_names_the_trace_of_whoever_asked_and_only_a_sound_one() {
    let server = Server::with_config("log_format = \"json\"\n");
    let stage = Stage::small(&server);
    let mut wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let head = stage.honest_patch("traced");
    stage.send(&stage.registered.agent, &head);
    let mut scored = |parents: &[&str], key: &str| {
        wire.traced(parents);
        let score = wire.create(wire.asking(&head, key)).unwrap();
        wire.watch(&score.name, 0).unwrap().ended.unwrap();
        until("its end is logged", || {
            !lines(&server, &score.name).is_empty()
        });
        lines(&server, &score.name)
    };
    for line in scored(&[PARENT], "traced") {
        assert_eq!(line["spans"][0]["name"], "call", "{line}");
        assert_eq!(line["spans"][0]["trace_id"], TRACE, "{line}");
        assert_eq!(line["spans"][1]["name"], "score", "{line}");
    }
    let upper = PARENT.to_uppercase();
    for (number, bad) in [&[&*upper][..], &[PARENT, PARENT]].iter().enumerate() {
        for line in scored(bad, &format!("bad-{number}")) {
            assert_eq!(line["spans"][0]["name"], "score", "{bad:?}: {line}");
        }
    }
    server.shutdown();
}
