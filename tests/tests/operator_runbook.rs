//! The runbook of docs/OPERATIONS.md, walked through: what it says to type is typed, and what it promises is there.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs;
use std::process::Command;
use tribunal_proto::v1::ScoreState;
use tribunal_tests::client::words;
use tribunal_tests::leftovers::containers;
use tribunal_tests::{Client, Repo, Role, Server, Stage, Wire, until};

const PASS: [&str; 3] = ["PASS", "PASS", "PASS"];

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_lost_machine_comes_back_from_its_backup() {
    let server = Server::own();
    let stage = Stage::small(&server);
    let head = stage.honest_patch("before");
    let ran = stage.score(&stage.agent(), "before");
    ran.expect_code(0);
    let key = fs::read(server.key_file()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("backup.tar");
    server.admin(&["backup", tar.to_str().unwrap()]);
    server.shutdown();

    // The disk is gone; the images, which are only built again, are kept for the test's sake.
    let images = fs::read_link(server.data().join("images")).unwrap();
    fs::remove_dir_all(server.data()).unwrap();
    fs::create_dir(server.data()).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xf")
        .arg(&tar)
        .arg("-C")
        .arg(server.data())
        .status();
    assert!(unpacked.unwrap().success());
    std::os::unix::fs::symlink(images, server.data().join("images")).unwrap();
    let (name, remote) = (&stage.registered.name, stage.origin.path());
    let remote = remote.to_str().unwrap();
    server.admin(&[
        "repo",
        "add",
        name,
        "--remote",
        remote,
        "--protect",
        "main",
        "--quick",
    ]);
    server.start();

    // What was signed is there, under the key of then, for the tokens of then.
    assert_eq!(fs::read(server.key_file()).unwrap(), key);
    let out = stage.out("fetched");
    let fetch = ["fetch", "--head", &head, "--out", out.to_str().unwrap()];
    stage.ci().run(&fetch).expect_code(0);
    assert_eq!(words(&out), PASS);
    stage.join("fetched", &["--head", &head]).expect_code(0);
    // So is what held-out pins are drawn from, and evidence: nothing is run for the same tree.
    let again = stage.score(&stage.agent(), "again");
    again.expect_code(0);
    assert!(again.stderr.contains("stored"), "{}", again.stderr);
    let report = json(&fs::read_to_string(stage.out("before").join("report.json")).unwrap());
    let replayed = server.admin(&["replay", report["score"].as_str().unwrap()]);
    assert!(!replayed.contains("not the one of then"), "{replayed}");
    stage.honest_patch("after");
    stage.score(&stage.agent(), "after").expect_code(0);
    server.shutdown();
}

#[test]
fn a_lost_key_is_followed_by_a_new_one_and_the_old_word_is_ended() {
    let server = Server::own();
    let stage = Stage::small(&server);
    stage.honest_patch("old");
    stage.score(&stage.agent(), "old").expect_code(0);
    let old = server.key_file();
    let known = json(&server.admin(&["key", "show", "--format", "allowed-signers", "--json"]));
    let old_id = known["keys"][0]["key_id"].as_str().unwrap().to_owned();
    fs::remove_dir_all(server.data().join("keys")).unwrap();
    let doctor = server.try_admin(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("find the key that signs"), "{said}");
    server.admin(&["key", "rotate"]);
    stage.honest_patch("new");
    stage.score(&stage.agent(), "new").expect_code(0);
    stage.join("new", &[]).expect_code(0);
    // It may be in other hands: from the epoch on nothing of it is believed.
    server.admin(&["key", "revoke", &old_id, "--since", "2020-01-01T00:00:00Z"]);
    let signers = server.signers_file();
    let join = |out: &str| {
        let out = stage.out(out);
        let args = [
            "join",
            out.to_str().unwrap(),
            "--key",
            signers.to_str().unwrap(),
        ];
        Client::offline(stage.workspace.path()).run(&args)
    };
    join("old").expect_code(5);
    join("new").expect_code(0);
    assert!(old.exists());
    server.shutdown();
}

#[test]
fn a_repository_that_turned_hostile_is_put_out_and_others_go_on() {
    let server = Server::with_config("[queue]\nworkers = 1\n");
    let hostile = Stage::of(&server, &Repo::slow(20.0));
    let other = Stage::small(&server);
    let wire = Wire::new(&server, &hostile.registered, &hostile.registered.agent);
    for name in ["runs", "waits"] {
        let head = hostile.honest_patch(name);
        hostile.send(&hostile.registered.agent, &head);
        wire.create(wire.asking(&head, name)).unwrap();
    }
    until("a room", || !containers(&server).is_empty());
    let operator = server.token(Role::Operator, None);

    let name = hostile.registered.name.as_str();
    let tokens = json(&server.admin(&["token", "list", "--json"]));
    let own: Vec<&str> = tokens["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|token| token["repository"] == name)
        .map(|token| token["id"].as_str().unwrap())
        .collect();
    assert_eq!(own.len(), 3, "{tokens}");
    for id in own {
        server.admin(&["token", "revoke", id]);
    }
    assert_eq!(
        wire.list().unwrap_err().code(),
        tonic::Code::Unauthenticated
    );
    let sees = Wire::new(&server, &hostile.registered, &operator);
    let client = Client::with_token(
        &server,
        &hostile.registered,
        &operator,
        hostile.workspace.path(),
    );
    for score in sees.list().unwrap() {
        client.run(&["cancel", &score.name]).expect_code(0);
    }
    let ended = || {
        let scores = sees.list().unwrap();
        scores.iter().all(|s| s.state() == ScoreState::Aborted)
    };
    until("all of it has ended", ended);
    until("its rooms are gone", || containers(&server).is_empty());
    server.admin(&["repo", "remove", name]);
    let listed = server.admin(&["repo", "list"]);
    assert!(!listed.contains(name), "{listed}");
    let head = hostile.workspace.head();
    let refused = sees.create(sees.asking(&head, "later")).unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound, "{refused:?}");

    other.honest_patch("goes on");
    other.score(&other.agent(), "goes-on").expect_code(0);
    server.shutdown();
}
