//! The engine goes away in the middle of a score: that is our trouble and never a verdict, and it passes.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::time::{Duration, Instant};
use tribunal_proto::v1::{ScoreState, score_event::Kind};
use tribunal_tests::client::{ended, words};
use tribunal_tests::leftovers::{containers, volumes};
use tribunal_tests::wire::code;
use tribunal_tests::{Cable, Repo, Server, Stage, Wire, until};

/// A server behind a cable; one score in an hour for each token, so that whatever costs one shows.
fn behind(cable: &Cable, more: &str) -> Server {
    let host = cable.host();
    Server::with_config(&format!("{more}\n[engine]\nhost = \"{host}\"\n"))
}

#[test]
fn an_engine_that_stops_aborts_the_score_and_the_same_call_succeeds_later() {
    let cable = Cable::new();
    let server = behind(&cable, "[queue]\nhourly_per_token = 1");
    let stage = Stage::of(&server, &Repo::slow(1.0));
    let head = stage.honest_patch("unlucky");
    let out = stage.out("x");
    let asked = [
        "score",
        "--json",
        "--head",
        &head,
        "--out",
        out.to_str().unwrap(),
    ];
    let agent = stage.agent();
    let client = agent.spawn(&asked);
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    until("it is asked for", || !wire.list().unwrap().is_empty());
    let name = wire.list().unwrap().remove(0).name;
    // In the middle: one attempt is over, others are not.
    let seen = wire.watch_until(&name, 0, |event| {
        matches!(event.kind, Some(Kind::AttemptEnded(_)))
    });
    seen.unwrap().ended.unwrap();
    cable.cut();
    let begun = Instant::now();
    let ran = ended(client);
    ran.expect_code(4);
    assert!(
        begun.elapsed() < Duration::from_secs(90),
        "{:?}",
        begun.elapsed()
    );
    let last = ran.events().pop().unwrap();
    assert_eq!(last["code"], "engine-unavailable", "{last}");
    assert!(!out.exists(), "a file of a score without verdict");
    let score = wire.get(&name).unwrap();
    assert_eq!(score.state(), ScoreState::Aborted);
    assert_eq!(
        (score.words, score.abort.unwrap().code.as_str()),
        (None, "engine-unavailable")
    );
    assert_eq!(
        code(&wire.verdicts(&name).unwrap_err()),
        "engine-unavailable"
    );

    cable.mend();
    agent.run(&asked).expect_code(0);
    assert_eq!(words(&out), ["PASS", "PASS", "PASS"]);
    until("no container is left", || containers(&server).is_empty());
    assert_eq!(volumes(&server).len(), 1);
    server.shutdown();
}

#[test]
fn an_engine_that_is_gone_before_a_score_begins_aborts_it_too() {
    let cable = Cable::new();
    let server = behind(&cable, "");
    let stage = Stage::small(&server);
    let head = stage.honest_patch("too early");
    let out = stage.out("x");
    let asked = [
        "score",
        "--json",
        "--head",
        &head,
        "--out",
        out.to_str().unwrap(),
    ];
    cable.cut();
    let ran = stage.agent().run(&asked);
    ran.expect_code(4);
    assert_eq!(ran.events().pop().unwrap()["code"], "engine-unavailable");
    assert!(!out.exists());
    // What needs no engine goes on meanwhile.
    stage.agent().run(&["list"]).expect_code(0);
    cable.mend();
    stage.agent().run(&asked).expect_code(0);
    until("no container is left", || containers(&server).is_empty());
    server.shutdown();
}
