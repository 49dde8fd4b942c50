//! Many at once, and a server that dies in the middle: every answer is right, nothing is lost, nothing is left behind.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;
use tribunal_proto::v1::ScoreState;
use tribunal_tests::client::{ended, report, words};
use tribunal_tests::leftovers::{containers, descendants, entries, processes_about, volumes};
use tribunal_tests::wire::code;
use tribunal_tests::{Repo, Server, Stage, Wire, until};

const PASS: [&str; 3] = ["PASS", "PASS", "PASS"];

/// The small repository, told from others by a file that nobody reads.
fn named(name: &str) -> Repo {
    let repo = Repo::small();
    repo.write("fixtures/sealed/name.txt", name);
    repo.commit(name);
    repo
}

/// Every file of a folder, byte for byte.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = entries(folder).into_iter();
    names
        .map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap()))
        .collect()
}

/// Nothing of this server runs or lies about but the server itself and the sealed trees it keeps.
#[track_caller]
fn nothing_but(server: &Server, trees: usize) {
    until("no container is left", || containers(server).is_empty());
    let kept = volumes(server);
    assert_eq!(kept.len(), trees, "{kept:?}");
    until("no process is left", || {
        descendants(server.pid()).is_empty()
    });
    let about = processes_about(&server.data());
    // The server, and the shell that waits for it.
    assert_eq!(about.len(), 2, "{about:#?}");
    assert_eq!(entries(&server.data().join("scratch")), [""; 0]);
    assert_eq!(entries(&server.temporary()), [""; 0]);
}

#[test]
fn ten_scores_of_three_repositories_at_once() {
    let server = Server::own();
    let stages = ["one", "two", "three"].map(|name| Stage::of(&server, &named(name)));
    let asked: Vec<(&Stage<'_>, String, bool)> = (0..10)
        .map(|number| {
            let stage = &stages[number % 3];
            let note = format!("number {number}");
            let right = number % 4 != 3;
            let head = if right {
                stage.honest_patch(&note)
            } else {
                stage.wrong_patch(&note)
            };
            (stage, head, right)
        })
        .collect();
    std::thread::scope(|scope| {
        for (stage, head, right) in &asked {
            scope.spawn(move || {
                let out = stage.out(head);
                let out = out.to_str().unwrap();
                let ran = stage.agent().run(&["score", "--head", head, "--out", out]);
                ran.expect_code(if *right { 0 } else { 1 });
            });
        }
    });
    for (stage, head, right) in &asked {
        let src_score = if *right { "PASS" } else { "FAIL" };
        stage.expect(head, [src_score, "PASS", "PASS"]);
        let report = report(&stage.out(head));
        assert!(
            report.to_string().contains(head.as_str()),
            "another's report"
        );
        let joined = stage.join(head, &["--head", head, "--repo", &stage.registered.name]);
        joined.expect_code(if *right { 0 } else { 1 });
    }
    nothing_but(&server, 3);
    let (data, temporary) = (server.data(), server.temporary());
    server.shutdown();
    assert_eq!(processes_about(&data), [""; 0]);
    assert_eq!(entries(&data.join("scratch")), [""; 0]);
    assert_eq!(entries(&temporary), [""; 0]);
    assert_eq!(containers(&server), [""; 0]);
}

/// Four scores: one is there, one runs, two wait. Then `kill -9`.
#[test]
fn a_killed_server_loses_nothing_and_signs_nothing_that_was_not_judged() {
    let server = Server::with_config("[queue]\nworkers = 1\n");
    let stage = Stage::of(&server, &Repo::slow(1.0));
    let agent = stage.agent();
    let done = stage.honest_patch("done before");
    stage.score(&agent, "before").expect_code(0);
    let cut: Vec<String> = (0..3)
        .map(|n| stage.honest_patch(&format!("cut {n}")))
        .collect();
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let mut clients = Vec::new();
    for (number, head) in cut.iter().enumerate() {
        let out = stage.out(head);
        clients.push(agent.spawn(&[
            "score",
            "--json",
            "--head",
            head,
            "--out",
            out.to_str().unwrap(),
        ]));
        until("it was asked for", || {
            wire.list().unwrap().len() == number + 2
        });
    }
    let state = |head: &str| {
        let scores = wire.list().unwrap();
        scores.into_iter().find(|score| score.head == head).unwrap()
    };
    until("a room", || !containers(&server).is_empty());
    assert_eq!(state(&cut[0]).state(), ScoreState::Running);
    assert_eq!(state(&cut[1]).state(), ScoreState::Queued);
    server.kill();
    assert_ne!(
        containers(&server),
        [""; 0],
        "the kill left nothing to sweep"
    );
    server.start();
    nothing_but(&server, 1);

    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    for (head, client) in cut.iter().zip(clients) {
        let ran = ended(client);
        ran.expect_code(4);
        let last = ran.events().pop().unwrap();
        assert_eq!(last["code"], "server-restarted", "{last}");
        assert!(
            !stage.out(head).exists(),
            "a file of a score without verdict"
        );
        let scores = wire.list().unwrap();
        let score = scores.iter().find(|score| &score.head == head).unwrap();
        assert_eq!(score.state(), ScoreState::Aborted);
        assert_eq!(score.abort.as_ref().unwrap().code, "server-restarted");
        assert_eq!(score.words, None);
        let status = wire.verdicts(&score.name).unwrap_err();
        assert_eq!(code(&status), "server-restarted", "{status:?}");
    }
    // What was there is there, byte for byte.
    let again = stage.out("again");
    let fetch = ["fetch", "--head", &done, "--out", again.to_str().unwrap()];
    stage.ci().run(&fetch).expect_code(0);
    assert_eq!(content(&again), content(&stage.out("before")));
    // And what was cut short succeeds when it is asked for again.
    stage.workspace.git(&["checkout", "-q", &cut[0]]);
    stage.score(&agent, &cut[0]).expect_code(0);
    assert_eq!(words(&stage.out(&cut[0])), PASS);
    nothing_but(&server, 1);
    server.shutdown();
}

/// It is told to leave while something runs: what runs may end, what waits is told, and nothing stays.
#[test]
fn a_server_that_leaves_lets_the_running_score_end() {
    let server = Server::with_config("[queue]\nworkers = 1\n");
    let stage = Stage::of(&server, &Repo::slow(0.5));
    let agent = stage.agent();
    let (first, second) = (stage.honest_patch("first"), stage.honest_patch("second"));
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let key = server.key_file();
    let asking = |head: &str, out: &str| {
        let (key, out) = (key.to_str().unwrap(), stage.out(out));
        let out = out.to_str().unwrap();
        agent.spawn(&[
            "score", "--json", "--head", head, "--out", out, "--key", key,
        ])
    };
    let running = asking(&first, "first");
    until("it runs", || !containers(&server).is_empty());
    let waiting = asking(&second, "second");
    until("the other waits", || wire.list().unwrap().len() == 2);
    drop(wire);
    server.shutdown();
    assert_eq!(containers(&server), [""; 0]);
    ended(running).expect_code(0);
    assert_eq!(words(&stage.out("first")), PASS);
    let ran = ended(waiting);
    ran.expect_code(4);
    assert!(!stage.out("second").exists());
    server.start();
    stage.workspace.git(&["checkout", "-q", &second]);
    stage.score(&agent, "second").expect_code(0);
    server.shutdown();
}
