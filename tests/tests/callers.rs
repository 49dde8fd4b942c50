//! Those who ask: they go away, come back, change their mind, ask twice, ask too much, or ask what is not theirs.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::time::{Duration, Instant};
use tribunal_proto::v1::{ScoreEvent, ScoreState, score_event::Kind};
use tribunal_tests::client::{Ran, ended, words};
use tribunal_tests::leftovers::containers;
use tribunal_tests::wire::code;
use tribunal_tests::{Client, Registered, Repo, Role, Server, Stage, Wire, until};

const PASS: [&str; 3] = ["PASS", "PASS", "PASS"];

fn wire(stage: &Stage<'_>) -> Wire {
    Wire::new(stage.server, &stage.registered, &stage.registered.agent)
}

/// The code that a failed `--json` run ends with.
fn reason(ran: &Ran) -> String {
    let last = ran.events().pop().unwrap();
    last["code"].as_str().unwrap_or_default().to_owned()
}

fn attempt_ended(event: &ScoreEvent) -> bool {
    matches!(event.kind, Some(Kind::AttemptEnded(_)))
}

/// Stored events: neither heartbeats nor places in the line, which repeat the last number.
fn stored(events: &[ScoreEvent]) -> Vec<&ScoreEvent> {
    let mut last = 0;
    let mut kept = Vec::new();
    for event in events {
        if event.sequence > last {
            last = event.sequence;
            kept.push(event);
        }
    }
    kept
}

#[test]
fn a_client_that_goes_away_leaves_a_score_that_ends_and_can_be_fetched() {
    let server = Server::shared();
    let stage = Stage::of(server, &Repo::slow(0.5));
    let head = stage.honest_patch("and gone");
    let mut client = stage.agent().spawn(&["score", "--head", &head]);
    let wire = wire(&stage);
    let running = || {
        let scores = wire.list().unwrap();
        scores
            .iter()
            .any(|score| score.state() == ScoreState::Running)
    };
    until("it runs", running);
    client.kill().unwrap();
    client.wait().unwrap();
    assert!(running(), "it was over before the client went");
    let out = stage.out("fetched");
    let args = ["fetch", "--head", &head, "--wait", "2m", "--out"];
    let args = [&args[..], &[out.to_str().unwrap()]].concat();
    stage.ci().run(&args).expect_code(0);
    assert_eq!(words(&out), PASS);
    stage.join("fetched", &["--head", &head]).expect_code(0);
    assert_eq!(wire.list().unwrap().len(), 1, "it was scored once");
}

#[test]
fn a_cancel_ends_the_room_at_once_and_signs_nothing() {
    let server = Server::own();
    let stage = Stage::of(&server, &Repo::slow(20.0));
    let head = stage.honest_patch("too slow");
    let out = stage.out("cancelled");
    let agent = stage.agent();
    let asked = [
        "score",
        "--json",
        "--head",
        &head,
        "--out",
        out.to_str().unwrap(),
    ];
    let client = agent.spawn(&asked);
    let wire = wire(&stage);
    until("a room", || !containers(&server).is_empty());
    let score = wire.list().unwrap().remove(0);
    let begun = wire.watch_until(&score.name, 0, |event| {
        matches!(event.kind, Some(Kind::AttemptStarted(_)))
    });
    begun.unwrap().ended.unwrap();
    let at = Instant::now();
    agent.run(&["cancel", &score.name]).expect_code(0);
    while !containers(&server).is_empty() {
        assert!(
            at.elapsed() < Duration::from_secs(3),
            "the room is still there"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = ended(client);
    ran.expect_code(4);
    assert_eq!(reason(&ran), "cancelled");
    assert!(!out.exists());
    let score = wire.get(&score.name).unwrap();
    assert_eq!(score.state(), ScoreState::Aborted);
    assert_eq!(score.abort.unwrap().code, "cancelled");
    assert_eq!(score.words, None);
    assert_eq!(code(&wire.verdicts(&score.name).unwrap_err()), "cancelled");
    // It stays as it ended.
    assert_eq!(
        wire.cancel(&score.name).unwrap().state(),
        ScoreState::Aborted
    );
    server.shutdown();
}

#[test]
fn a_watch_goes_on_after_the_last_event_that_was_seen() {
    let stage = Stage::of(Server::shared(), &Repo::slow(0.2));
    let head = stage.honest_patch("watched");
    stage.send(&stage.registered.agent, &head);
    let first = wire(&stage);
    let score = first.create(first.asking(&head, "watched")).unwrap();
    let mut seen = first
        .watch_until(&score.name, 0, attempt_ended)
        .unwrap()
        .events;
    drop(first);
    let last = seen.last().unwrap().sequence;
    let second = wire(&stage);
    let rest = second.watch(&score.name, last).unwrap();
    rest.ended.unwrap();
    assert!(rest.events.iter().all(|event| event.sequence >= last));
    seen.extend(rest.events);
    let numbers: Vec<u64> = stored(&seen).iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(matches!(
        seen.last().unwrap().kind,
        Some(Kind::Completed(_))
    ));
    // Whoever comes later sees the same.
    let later = second.watch(&score.name, 0).unwrap().events;
    assert_eq!(stored(&later), stored(&seen));
    // And who has seen the end already gets it again, not silence.
    let end = second.watch(&score.name, *numbers.last().unwrap()).unwrap();
    assert!(matches!(
        end.events.last().unwrap().kind,
        Some(Kind::Completed(_))
    ));
}

#[test]
fn one_request_id_is_one_score() {
    let stage = Stage::small(Server::shared());
    let (one, two) = (stage.honest_patch("one"), stage.honest_patch("two"));
    stage.send(&stage.registered.agent, &two);
    let names: Vec<String> = std::thread::scope(|scope| {
        let (stage, one) = (&stage, &one);
        let asking = (0..5).map(|_| {
            scope.spawn(move || {
                let wire = wire(stage);
                wire.create(wire.asking(one, "same")).unwrap().name
            })
        });
        let asking: Vec<_> = asking.collect();
        asking
            .into_iter()
            .map(|name| name.join().unwrap())
            .collect()
    });
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    let wire = wire(&stage);
    wire.watch(&names[0], 0).unwrap().ended.unwrap();
    let again = wire.create(wire.asking(&one, "same")).unwrap();
    assert_eq!(
        (&again.name, again.state()),
        (&names[0], ScoreState::Completed)
    );
    let other = wire.create(wire.asking(&two, "same")).unwrap_err();
    assert_eq!(code(&other), "invalid-argument", "{other:?}");
    // The key is the token's own.
    let token = stage
        .server
        .token(Role::Maintainer, Some(&stage.registered.name));
    let another = Wire::new(stage.server, &stage.registered, &token);
    let theirs = another.create(another.asking(&one, "same")).unwrap();
    assert_ne!(theirs.name, names[0]);
    assert_eq!(wire.list().unwrap().len(), 1);
}

#[test]
fn who_waits_is_told_the_place_and_moves_up() {
    let server = Server::with_config("[queue]\nworkers = 1\n");
    let stage = Stage::of(&server, &Repo::slow(3.0));
    let heads: Vec<String> = (0..4)
        .map(|n| stage.honest_patch(&format!("{n}")))
        .collect();
    stage.send(&stage.registered.agent, &heads[3]);
    let wire = wire(&stage);
    let ask = |head: &String| wire.create(wire.asking(head, "")).unwrap().name;
    let names: Vec<String> = heads.iter().map(ask).collect();
    until("the first runs", || {
        wire.state(&names[0]) == ScoreState::Running
    });
    let places = || -> Vec<u32> {
        let place = |name: &String| wire.get(name).unwrap().queue_position;
        names.iter().map(place).collect()
    };
    assert_eq!(places(), [0, 1, 2, 3]);
    let told = |events: &[ScoreEvent]| -> Vec<u32> {
        let position = |event: &ScoreEvent| match &event.kind {
            Some(Kind::Queued(queued)) => Some(queued.position),
            _ => None,
        };
        events.iter().filter_map(position).collect()
    };
    std::thread::scope(|scope| {
        let watcher = Wire::new(&server, &stage.registered, &stage.registered.agent);
        let name = &names[3];
        let watched = scope.spawn(move || {
            let moved_up = |event: &ScoreEvent| told(std::slice::from_ref(event)) == [2];
            watcher.watch_until(name, 0, moved_up).unwrap()
        });
        wire.cancel(&names[1]).unwrap();
        let events = watched.join().unwrap().events;
        assert_eq!(told(&events).first(), Some(&3), "{events:?}");
    });
    assert_eq!(places(), [0, 0, 1, 2]);
    let listed = stage.agent().run(&["list"]);
    listed.expect_code(0);
    assert!(
        listed.stdout.contains("queued:1") && listed.stdout.contains("queued:2"),
        "{}",
        listed.stdout
    );
    for name in &names {
        wire.cancel(name).unwrap();
    }
    until("all are over", || {
        names
            .iter()
            .all(|name| wire.state(name) == ScoreState::Aborted)
    });
    server.shutdown();
}

#[test]
fn a_token_has_limits_and_they_are_its_own() {
    let config = "[queue]\nworkers = 1\ncapacity = 3\nopen_per_token = 2\nhourly_per_token = 4\n[calls]\nper_second = 1\nburst = 40\n";
    let server = Server::with_config(config);
    let stage = Stage::of(&server, &Repo::slow(20.0));
    let name = stage.registered.name.clone();
    let heads: Vec<String> = (0..4)
        .map(|n| stage.honest_patch(&format!("{n}")))
        .collect();
    stage.send(&stage.registered.agent, &heads[3]);
    let first = wire(&stage);
    let ask = |wire: &Wire, n: usize| wire.create(wire.asking(&heads[n], ""));
    let cancelled: Vec<String> = (0..2).map(|n| ask(&first, n).unwrap().name).collect();
    let refused = ask(&first, 2).unwrap_err();
    assert_eq!(code(&refused), "quota", "open scores: {refused:?}");
    let ran = stage.agent().run(&["score", "--json", "--head", &heads[2]]);
    ran.expect_code(65);
    assert_eq!(reason(&ran), "quota");
    // Others have their own places, until all are taken.
    until("one runs", || {
        first.state(&cancelled[0]) == ScoreState::Running
    });
    let other = |role| Wire::new(&server, &stage.registered, &server.token(role, Some(&name)));
    let (second, third) = (other(Role::Maintainer), other(Role::Operator));
    for n in [0, 1] {
        ask(&second, n).unwrap();
    }
    let refused = ask(&third, 2).unwrap_err();
    assert_eq!(code(&refused), "queue-full", "{refused:?}");
    // A cancel makes room, and costs the caller what it asked for.
    for name in &cancelled {
        first.cancel(name).unwrap();
        until("it is over", || first.state(name) == ScoreState::Aborted);
    }
    for n in [2, 3] {
        let score = ask(&first, n).unwrap();
        first.cancel(&score.name).unwrap();
        until("it is over", || {
            first.state(&score.name) == ScoreState::Aborted
        });
    }
    let refused = ask(&first, 0).unwrap_err();
    assert_eq!(code(&refused), "quota", "scores in an hour: {refused:?}");
    // And calls of any kind run out, for this token alone.
    let flood = (0..200).find_map(|_| third.list().err());
    assert_eq!(code(&flood.unwrap()), "quota");
    second.list().unwrap();
    drop(first);
    server.kill();
    server.start();
    server.shutdown();
}

#[test]
fn each_role_does_what_is_its_own() {
    let server = Server::shared();
    let stage = Stage::small(server);
    let name = stage.registered.name.clone();
    let head = stage.honest_patch("mine");
    stage.score(&stage.agent(), "mine").expect_code(0);
    let mine = wire(&stage).list().unwrap().remove(0).name;

    // An agent may not have stored attempts left aside, a maintainer may.
    let fresh = ["score", "--json", "--fresh", "--head", &head];
    let ran = stage.agent().run(&fresh);
    ran.expect_code(77);
    assert_eq!(reason(&ran), "forbidden");
    let out = stage.out("fresh");
    let args = [&fresh[..], &["--out", out.to_str().unwrap()]].concat();
    let ran = stage.maintainer().run(&args);
    ran.expect_code(0);
    let anew = |event: &Value| event["event"] == "attempt-ended" && event["stored"] == false;
    assert!(ran.events().iter().any(anew), "nothing ran anew");

    // Another agent sees nothing of it: neither the score, nor the commit that was sent.
    let token = server.token(Role::Agent, Some(&name));
    let stranger = Wire::new(server, &stage.registered, &token);
    assert_eq!(stranger.list().unwrap(), []);
    assert_eq!(code(&stranger.get(&mine).unwrap_err()), "not-found");
    assert_eq!(code(&stranger.verdicts(&mine).unwrap_err()), "not-found");
    assert_eq!(code(&stranger.cancel(&mine).unwrap_err()), "not-found");
    assert_eq!(code(&stranger.watch(&mine, 0).unwrap_err()), "not-found");
    let unknown = stranger.create(stranger.asking(&head, "")).unwrap_err();
    assert_eq!(code(&unknown), "unknown-commit", "{unknown:?}");

    // CI reads what any agent asked for; a maintainer sees and ends it.
    let ci = Wire::new(server, &stage.registered, &stage.registered.ci);
    assert!(ci.list().unwrap().iter().any(|score| score.name == mine));
    assert!(!ci.verdicts(&mine).unwrap().is_empty());
    assert_eq!(code(&ci.cancel(&mine).unwrap_err()), "forbidden");
    let maintainer = Wire::new(server, &stage.registered, &stage.registered.maintainer);
    assert_eq!(
        maintainer.cancel(&mine).unwrap().state(),
        ScoreState::Completed
    );

    // A token of another repository cannot tell whether there is such a one.
    let elsewhere = Stage::small(server);
    let outsider = Wire::new(server, &stage.registered, &elsewhere.registered.maintainer);
    assert_eq!(code(&outsider.list().unwrap_err()), "forbidden");
    let nobody = Registered {
        name: "nobody".to_owned(),
        ..stage.registered.clone()
    };
    let nothing = Wire::new(server, &nobody, &elsewhere.registered.maintainer);
    assert_eq!(code(&nothing.list().unwrap_err()), "forbidden");
    assert_eq!(code(&outsider.get(&mine).unwrap_err()), "not-found");
}

#[test]
fn a_token_that_is_not_valid_is_77() {
    let server = Server::shared();
    let stage = Stage::small(server);
    let head = stage.honest_patch("mine");
    let args = ["score", "--json", "--head", &head];
    let token = stage.registered.agent.clone();
    let mut forged = token.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'a' { 'b' } else { 'a' });
    let revoked = server.token(Role::Agent, None);
    let list = server.admin(&["token", "list"]);
    // Its public part is a word of both.
    let id = list
        .split_whitespace()
        .filter(|word| word.len() >= 8)
        .find(|word| revoked.contains(word))
        .unwrap();
    let client =
        |token: &str| Client::with_token(server, &stage.registered, token, stage.workspace.path());
    client(&revoked).run(&["list"]).expect_code(0);
    server.admin(&["token", "revoke", id]);
    for token in ["", "nonsense", &forged, &revoked] {
        let ran = client(token).run(&args);
        ran.expect_code(77);
        assert!(!ran.stdout.contains(&revoked) && !ran.stderr.contains(&revoked));
    }
    client(&token).run(&["list"]).expect_code(0);
}

#[test]
fn what_is_wrong_has_its_exit_code() {
    let server = Server::own();
    let stage = Stage::small(&server);
    let head = stage.honest_patch("good");
    let agent = stage.agent();
    // 64: what the command line or the workspace says cannot be asked for.
    for args in [
        &["score", "--nonsense"][..],
        &["score", "--head", "no-such-revision"],
        &["fetch", "--head", &head[..12]],
        &["join", "."],
        &["frobnicate"],
    ] {
        agent.run(args).expect_code(64);
    }
    // 65: it can be asked for, and is refused.
    let wire = wire(&stage);
    for (asked, wanted) in [
        (&head[..12], "short-sha"),
        ("HEAD", "short-sha"),
        (&"1".repeat(40)[..], "unknown-commit"),
    ] {
        let status = wire.create(wire.asking(asked, "")).unwrap_err();
        let code = code(&status);
        assert!(
            code == wanted || (asked == "HEAD" && code == "invalid-argument"),
            "{asked}: {status:?}"
        );
    }
    let ran = agent.run(&["score", "--json", "--head", &head, "--base", &head]);
    ran.expect_code(65);
    assert_eq!(reason(&ran), "base-not-protected");
    let anywhere = server.token(Role::Agent, None);
    let ran = Client::with_token(
        &server,
        &stage.registered,
        &anywhere,
        stage.workspace.path(),
    )
    .env("TRIBUNAL_REPO", "nobody")
    .run(&["score", "--json", "--head", &head]);
    ran.expect_code(65);
    assert_eq!(reason(&ran), "unknown-repository");
    // 69: nobody is there. It does not take for ever to say so.
    let agent = stage.agent();
    server.shutdown();
    let begun = Instant::now();
    agent.run(&["score", "--head", &head]).expect_code(69);
    agent.run(&["list"]).expect_code(69);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_score_is_found_again_by_its_name() {
    let stage = Stage::small(Server::shared());
    stage.honest_patch("named");
    let ran = stage
        .agent()
        .run(&["score", "--json", "--out", stage.out("x").to_str().unwrap()]);
    ran.expect_code(0);
    let name = ran.events().pop().unwrap()["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let watched = stage.agent().run(&["watch", "--json", &name]);
    watched.expect_code(0);
    assert_eq!(watched.events().pop().unwrap()["decision"], "MERGE_OK");
    let explained = stage.agent().run(&["explain", &name]);
    explained.expect_code(0);
}
