//! A server that is told to leave, and one that is told to read its configuration again.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::Path;
use std::process::Command;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tribunal_proto::v1::{ScoreState, score_event::Kind};
use tribunal_tests::leftovers::containers;
use tribunal_tests::port::get;
use tribunal_tests::wire::code;
use tribunal_tests::{Repo, Server, Stage, Wire, until};

/// Another try is worth it, later: the one status that a leaving server gives.
#[track_caller]
fn worth_another_try(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(code(status), "server-restarted");
    let retry = status.get_details_retry_info().unwrap().retry_delay;
    assert!(retry.unwrap().as_secs() >= 1);
}

/// A score that runs, in a room.
fn running(stage: &Stage<'_>, wire: &Wire, request_id: &str) -> String {
    let head = stage.honest_patch("slow");
    stage.send(&stage.registered.agent, &head);
    let score = wire.create(wire.asking(&head, request_id)).unwrap();
    let begun = wire.watch_until(&score.name, 0, |event| {
        matches!(event.kind, Some(Kind::AttemptStarted(_)))
    });
    begun.unwrap().ended.unwrap();
    score.name
}

#[test]
fn a_running_score_ends_in_peace_while_new_ones_are_sent_away() {
    let server =
        Server::with_config("[admin]\nlisten = \"127.0.0.1:0\"\n[queue]\ndrain = \"2m\"\n");
    let stage = Stage::of(&server, &Repo::slow(1.0));
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let name = running(&stage, &wire, "first");
    assert!(wire.serves("").unwrap());
    server.signal("TERM");
    until("it leaves", || !wire.serves("").unwrap());
    // A connection made now is still answered: health, and what is known.
    let late = Wire::new(&server, &stage.registered, &stage.registered.agent);
    assert!(!late.serves("tribunal.v1.ScoreService").unwrap());
    let leaving = get(&server, "/readyz");
    assert_eq!((leaving.status, leaving.body.as_str()), (503, "leaving\n"));
    assert_eq!(get(&server, "/healthz").status, 200);
    let asked = late.asking(&stage.workspace.head(), "second");
    worth_another_try(&late.create(asked).unwrap_err());
    let bundle = stage
        .workspace
        .bundle(&stage.workspace.head(), &["origin/main"]);
    let sent = late.upload(bundle.len() as u64, std::io::Cursor::new(bundle));
    worth_another_try(&sent.unwrap_err());
    assert_eq!(late.get(&name).unwrap().state(), ScoreState::Running);
    // The same request is the same score, also now.
    let again = late.asking(&stage.workspace.head(), "first");
    assert_eq!(late.create(again).unwrap().name, name);
    let seen = late.watch(&name, 0).unwrap();
    assert!(seen.ended.is_ok(), "{:?}", seen.ended);
    let last = seen.events.last().unwrap();
    assert!(matches!(last.kind, Some(Kind::Completed(_))), "{last:?}");
    until("it has left", || !server.runs());
    assert_eq!(containers(&server), [""; 0]);
    server.shutdown();
}

#[test]
fn a_score_that_takes_too_long_is_marked_and_can_be_asked_for_again() {
    let server = Server::with_config("[queue]\ndrain = \"1s\"\n");
    let stage = Stage::of(&server, &Repo::slow(3.0));
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let name = running(&stage, &wire, "first");
    server.signal("TERM");
    let seen = wire.watch(&name, 0).unwrap();
    worth_another_try(&seen.ended.unwrap_err());
    until("it has left", || !server.runs());
    assert_eq!(containers(&server), [""; 0]);
    server.shutdown();
    assert!(
        server
            .log()
            .contains("leaving: no new scores; running ones have 1s")
    );

    server.start();
    let wire = Wire::new(&server, &stage.registered, &stage.registered.agent);
    let ended = wire.get(&name).unwrap();
    assert_eq!(ended.state(), ScoreState::Aborted);
    assert_eq!(ended.abort.unwrap().code, "server-restarted");
    stage.score(&stage.agent(), "again").expect_code(0);
    server.shutdown();
}

#[test]
fn a_new_configuration_is_taken_up_as_far_as_it_can_be_and_a_bad_one_not_at_all() {
    let server = Server::with_config("log = \"info\"\n[queue]\nworkers = 1\n");
    let rest = "[oracle]\nplant = \"asked\"\n[rooms]\nready = 0\n";
    server.reconfigure(&format!(
        "log = \"debug\"\n[queue]\nworkers = 2\ndrain = \"2s\"\n{rest}"
    ));
    let told = server.reload();
    assert!(told.contains("taken_up=\"log, queue.drain\""), "{told}");
    assert!(told.contains("at_restart=\"queue.workers\""), "{told}");
    let stage = Stage::small(&server);
    stage.honest_patch("debugged");
    assert!(!server.log().contains("CreateScore"));
    stage.score(&stage.agent(), "debugged").expect_code(0);
    assert!(
        server.log().contains("CreateScore"),
        "debug was not taken up"
    );
    // Two mistakes, one line, and everything as before.
    server.reconfigure("log = 5\n[queue]\nworkers = 0\n");
    let told = server.reload();
    assert!(told.contains("ERROR"), "{told}");
    for mistake in [
        "log: must be a string",
        "queue.workers: must be a whole number",
    ] {
        assert!(told.contains(mistake), "{told}");
    }
    stage.honest_patch("still there");
    stage.score(&stage.agent(), "still").expect_code(0);
    server.signal("TERM");
    until("it has left", || !server.runs());
    assert!(server.log().contains("running ones have 2s"));
    server.shutdown();
}

/// A certificate of its own for 127.0.0.1 by this name.
fn certificate(folder: &Path, name: &str) {
    let subject = format!("/CN={name}");
    let status = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj"])
        .args([&subject, "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "chain.pem"])
        .current_dir(folder)
        .status();
    assert!(status.unwrap().success());
}

/// The subject of what the server shows.
fn shown(server: &Server) -> String {
    let address = server.url().replace("http://", "");
    let script = format!(
        "openssl s_client -connect {address} -alpn h2 </dev/null 2>/dev/null | openssl x509 -noout -subject"
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn certificates_are_taken_up_and_what_is_none_is_not() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "first");
    let at = |file: &str| folder.path().join(file).display().to_string();
    let server = Server::with_config(&format!(
        "[listen]\ncertificate = \"{}\"\nkey = \"{}\"\n",
        at("chain.pem"),
        at("key.pem")
    ));
    assert!(shown(&server).ends_with("first"), "{}", shown(&server));
    certificate(folder.path(), "second");
    let told = server.reload();
    assert!(told.contains("were read again"), "{told}");
    assert!(shown(&server).ends_with("second"), "{}", shown(&server));
    std::fs::write(folder.path().join("key.pem"), "no key").unwrap();
    let told = server.reload();
    assert!(
        told.contains("ERROR") && told.contains("listen.key"),
        "{told}"
    );
    assert!(shown(&server).ends_with("second"), "{}", shown(&server));
    server.shutdown();
}
