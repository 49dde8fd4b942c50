//! `tribunal score --watch`: each commit that HEAD moves to is scored while somebody works, the latest first.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tribunal_tests::client::words;
use tribunal_tests::{Client, Repo, Server, Stage};

/// A client that watches, and its events as they come.
struct Watching {
    child: Child,
    events: Receiver<Value>,
}

impl Watching {
    fn start(client: &Client, out: &str) -> Self {
        let mut child = client.spawn(&["--json", "score", "--watch", "--out", out]);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, events }
    }

    /// The next event of this kind; the others are passed over.
    #[track_caller]
    fn next(&self, kind: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left);
            let event = event.unwrap_or_else(|_| panic!("no {kind} comes"));
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Interrupt it; its exit code, and what it said beside its events.
    fn interrupt(mut self) -> (i32, String) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &pid]).status();
        assert!(sent.unwrap().success());
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (status.code().unwrap(), said)
    }
}

#[test]
fn each_commit_is_scored_and_of_many_the_latest() {
    let repo = Repo::slow(1.5);
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 2\nheld_out = 0\n",
    );
    repo.commit("two attempts");
    let stage = Stage::of(Server::shared(), &repo);
    let first = stage.wrong_patch("watched, one");
    let out = stage.out("watched");
    let watching = Watching::start(&stage.agent(), out.to_str().unwrap());
    assert_eq!(watching.next("score")["head"], first);
    // While this one is at work, two more come; the one in the middle is nobody's any more.
    stage.honest_patch("watched, two");
    let third = stage.honest_patch("watched, three");
    let failed = watching.next("result");
    assert_eq!(failed["decision"], "MERGE_BLOCKED", "{failed:#}");
    assert!(failed["fix"].as_str().unwrap().contains("case-failed"));
    assert_eq!(watching.next("score")["head"], third);
    let passed = watching.next("result");
    assert_eq!(passed["decision"], "MERGE_OK", "{passed:#}");
    assert_eq!(words(&out), ["PASS", "PASS", "PASS"]);
    // Nothing new is nothing to score; a new commit is.
    let fourth = stage.wrong_patch("watched, four");
    assert_eq!(watching.next("score")["head"], fourth);
    watching.next("result");
    let (code, said) = watching.interrupt();
    assert_eq!(code, 1, "as the last score ended: {said}");
    assert!(said.contains("stopped watching"), "{said}");
}

#[test]
fn an_interrupt_in_the_middle_leaves_the_score_alone() {
    let repo = Repo::slow(3.0);
    repo.write(
        "ci/tribunal.toml",
        "version = 1\n[runs]\nreruns = 2\nheld_out = 0\n",
    );
    repo.commit("two slow attempts");
    let stage = Stage::of(Server::shared(), &repo);
    stage.honest_patch("interrupted");
    let out = stage.out("interrupted");
    let watching = Watching::start(&stage.agent(), out.to_str().unwrap());
    let name = watching.next("score")["name"].as_str().unwrap().to_owned();
    watching.next("attempt-started");
    let (code, said) = watching.interrupt();
    assert_eq!(code, 4, "there was no verdict yet: {said}");
    assert!(!out.exists() && !said.contains("error:"), "{said}");
    stage.agent().run(&["watch", &name]).expect_code(0);
}

#[test]
fn what_no_commit_mends_ends_it_and_a_refusal_does_not() {
    let stage = Stage::small(Server::shared());
    stage.honest_patch("watched by nobody");
    let alone = Client::offline(stage.workspace.path()).run(&["score", "--watch"]);
    alone.expect_code(64);
    let impostor = Client::with_token(stage.server, &stage.registered, "t", stage.workspace.path());
    impostor.run(&["score", "--watch"]).expect_code(77);

    // A commit without a common history is refused; the next one is scored.
    let out = stage.out("refused");
    stage
        .workspace
        .git(&["checkout", "-q", "--orphan", "alone"]);
    stage.workspace.commit("alone");
    let watching = Watching::start(&stage.agent(), out.to_str().unwrap());
    assert_eq!(watching.next("error")["code"], "no-merge-base");
    stage.workspace.git(&["checkout", "-q", "main"]);
    assert_eq!(watching.next("result")["decision"], "MERGE_OK");
    assert_eq!(watching.interrupt().0, 0);
}
