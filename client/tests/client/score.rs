//! `score`, `fetch`, `list`, `watch`, `cancel` against a scripted server: what is sent, what is printed, how it ends.

use crate::scripted::{Script, Scripted, refused};
use crate::signed::Signed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use tonic::Code;

/// A workspace with one commit, and verdict files that are signed for it.
pub(crate) struct Work {
    pub(crate) dir: tempfile::TempDir,
    head: String,
    pub(crate) signed: Signed,
}

impl Work {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main"]);
        fs::write(dir.path().join("a.py"), "x = 1\n").unwrap();
        git(dir.path(), &["add", "-A"]);
        git(dir.path(), &["commit", "-q", "-m", "head"]);
        let head = git(dir.path(), &["rev-parse", "HEAD"]);
        let signed = Signed::with(&|_, said| said["head"]["id"] = head.clone().into());
        Self { dir, head, signed }
    }
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
    fn key(&self) -> String {
        self.signed.pem().to_str().unwrap().to_owned()
    }
    pub(crate) fn run(&self, server: &Scripted, args: &[&str]) -> crate::signed::Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_tribunal"))
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .env("TRIBUNAL_SERVER", server.url())
            .env("TRIBUNAL_REPO", "app")
            .env("TRIBUNAL_TOKEN", "token-of-the-agent")
            .output()
            .unwrap();
        crate::signed::Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn events(ran: &crate::signed::Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn an_unknown_commit_is_sent_and_scored() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["score", "--key", &work.key()]);
    ran.is(0, "MERGE_OK\n");
    let seen = server.stop();
    assert_eq!(seen.tokens, ["Bearer token-of-the-agent"]);
    assert_eq!(
        seen.request_ids.len(),
        2,
        "asked, sent, asked again: {seen:?}"
    );
    assert_eq!(
        seen.request_ids[0], seen.request_ids[1],
        "a retry is the same request"
    );
    let bundle = String::from_utf8_lossy(&seen.bundles[0]).into_owned();
    assert!(
        bundle.starts_with(&format!("# v2 git bundle\n{} ", work.head)),
        "{bundle}"
    );
    assert_eq!(
        fs::read_to_string(work.path().join("ci_out/src_score.txt")).unwrap(),
        "PASS\n"
    );
    assert!(
        ran.stderr.contains("verified with the key in"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("token-of-the-agent"));
}

#[test]
fn a_commit_that_the_server_has_is_not_sent() {
    let work = Work::new();
    let mut script = Script::new(&work.signed);
    script.knows_head = true;
    let server = Scripted::start(script);
    work.run(&server, &["score", "--key", &work.key()])
        .is(0, "MERGE_OK\n");
    assert!(server.stop().bundles.is_empty());
}

#[test]
fn without_a_key_of_ones_own_it_says_whose_word_it_takes() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["score"]);
    ran.is(0, "MERGE_OK\n");
    assert!(
        ran.stderr
            .contains("warning: verified with keys that http://127.0.0.1"),
        "{}",
        ran.stderr
    );
    server.stop();

    // A server that signs with one key and lists another does not get past either.
    let mut script = Script::new(&work.signed);
    script.keys = Vec::new();
    let server = Scripted::start(script);
    assert_eq!(work.run(&server, &["score"]).code, 5);
    server.stop();
}

#[test]
fn json_is_events_one_a_line_and_nothing_else() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["score", "--json", "--key", &work.key()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let names: Vec<String> = events(&ran)
        .iter()
        .map(|e| e["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "uploading",
            "score",
            "queued",
            "preparing",
            "attempt-started",
            "attempt-ended",
            "judged",
            "result"
        ]
    );
    let result = events(&ran).pop().unwrap();
    assert_eq!(result["decision"], "MERGE_OK");
    assert_eq!(result["key"]["source"], "file");
    server.stop();
}

#[test]
fn a_watch_that_breaks_goes_on_from_the_last_event() {
    let work = Work::new();
    let mut script = Script::new(&work.signed);
    script.breaks_after = vec![2, 3];
    let server = Scripted::start(script);
    let ran = work.run(&server, &["score", "--json", "--key", &work.key()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let sequences: Vec<u64> = events(&ran)
        .iter()
        .filter_map(|e| e["sequence"].as_u64())
        .collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5], "each once, in order");
    assert_eq!(server.stop().watched_after, [0, 2, 3]);
}

#[test]
fn an_abort_is_no_verdict_and_writes_nothing() {
    let work = Work::new();
    let mut script = Script::new(&work.signed);
    script.aborts = Some("engine-unavailable");
    let server = Scripted::start(script);
    let ran = work.run(&server, &["score", "--key", &work.key()]);
    ran.is(4, "");
    assert!(ran.stderr.contains("engine-unavailable"), "{}", ran.stderr);
    assert!(ran.stderr.contains("next: "), "{}", ran.stderr);
    assert!(!work.path().join("ci_out").exists());
    server.stop();
}

#[test]
fn every_kind_of_refusal_has_its_exit_code() {
    let work = Work::new();
    for (status, code, word) in [
        (
            refused(Code::FailedPrecondition, "POLICY_INVALID"),
            65,
            "policy-invalid",
        ),
        (refused(Code::ResourceExhausted, "QUOTA"), 65, "quota"),
        (
            refused(Code::Unauthenticated, "UNAUTHENTICATED"),
            77,
            "unauthenticated",
        ),
        (
            refused(Code::PermissionDenied, "FORBIDDEN"),
            77,
            "forbidden",
        ),
        (refused(Code::Unavailable, "DISK_FULL"), 4, "disk-full"),
    ] {
        let mut script = Script::new(&work.signed);
        script.refuses = Some(status);
        let server = Scripted::start(script);
        let ran = work.run(&server, &["score", "--json"]);
        assert_eq!(ran.code, code, "{word}: {}", ran.stderr);
        let told = events(&ran).pop().unwrap();
        assert_eq!(
            (&told["event"], &told["code"]),
            (&"error".into(), &word.into())
        );
        server.stop();
    }
}

#[test]
fn nobody_there_no_token_and_no_server_are_told_apart() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let url = server.url();
    server.stop();
    let run = |env: &[(&str, &str)]| {
        Command::new(env!("CARGO_BIN_EXE_tribunal"))
            .arg("score")
            .current_dir(work.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TRIBUNAL_REPO", "app")
            .envs(env.iter().copied())
            .output()
            .unwrap()
            .status
            .code()
            .unwrap()
    };
    assert_eq!(
        run(&[("TRIBUNAL_SERVER", &url), ("TRIBUNAL_TOKEN", "x")]),
        69
    );
    assert_eq!(run(&[("TRIBUNAL_SERVER", &url)]), 77);
    assert_eq!(run(&[("TRIBUNAL_TOKEN", "x")]), 64);
    assert_eq!(
        run(&[
            ("TRIBUNAL_SERVER", "http://10.0.0.1:1"),
            ("TRIBUNAL_TOKEN", "x")
        ]),
        64
    );
}

#[test]
fn uncommitted_work_is_warned_of_or_scored() {
    let work = Work::new();
    fs::write(work.path().join("a.py"), "x = 2\n").unwrap();
    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["score", "--key", &work.key()]);
    ran.is(0, "MERGE_OK\n");
    assert!(
        ran.stderr
            .contains("warning: what is not committed is not scored: 1 changed (a.py)"),
        "{}",
        ran.stderr
    );
    server.stop();

    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["score", "--worktree", "--key", &work.key()]);
    // The scripted server hands out verdicts on HEAD, and the temporary commit is another one.
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let seen = server.stop();
    assert_ne!(seen.heads[0], work.head);
    assert!(ran.stderr.contains(&seen.heads[0]), "{}", ran.stderr);
    assert_eq!(git(work.path(), &["rev-parse", "HEAD"]), work.head);
    assert_eq!(
        git(work.path(), &["status", "--porcelain"]),
        "M a.py\n?? ci_out/"
    );
}

#[test]
fn a_guess_at_what_the_server_has_falls_back_to_everything() {
    let work = Work::new();
    // As if a remote had shown a tip that this server does not have.
    git(
        work.path(),
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    );
    git(
        work.path(),
        &["commit", "-q", "--allow-empty", "-m", "more"],
    );
    let head = git(work.path(), &["rev-parse", "HEAD"]);
    let signed = Signed::with(&|_, said| said["head"]["id"] = head.clone().into());
    let mut script = Script::new(&signed);
    script.tip = "9".repeat(40);
    script.has_nothing = true;
    let server = Scripted::start(script);
    let key = signed.pem();
    work.run(&server, &["score", "--key", key.to_str().unwrap()])
        .is(0, "MERGE_OK\n");
    let seen = server.stop();
    assert_eq!(seen.bundles.len(), 2);
    assert!(seen.bundles[0].starts_with(format!("# v2 git bundle\n-{}", work.head).as_bytes()));
    assert!(seen.bundles[1].starts_with(format!("# v2 git bundle\n{head} ").as_bytes()));
}

#[test]
fn a_guess_that_leaves_head_itself_out_is_no_reason_to_send_nothing() {
    let work = Work::new();
    git(
        work.path(),
        &["update-ref", "refs/remotes/fork/main", "HEAD"],
    );
    let mut script = Script::new(&work.signed);
    script.tip = "9".repeat(40);
    let server = Scripted::start(script);
    work.run(&server, &["score", "--key", &work.key()])
        .is(0, "MERGE_OK\n");
    assert_eq!(server.stop().bundles.len(), 1);
}

#[test]
fn a_shallow_clone_is_told_what_it_lacks() {
    let work = Work::new();
    git(
        work.path(),
        &["commit", "-q", "--allow-empty", "-m", "more"],
    );
    let clone = tempfile::tempdir().unwrap();
    let url = format!("file://{}", work.path().display());
    git(clone.path(), &["clone", "-q", "--depth", "1", &url, "."]);
    let mut script = Script::new(&work.signed);
    script.has_nothing = true;
    let server = Scripted::start(script);
    let shallow = Work { dir: clone, ..work };
    let ran = shallow.run(&server, &["score"]);
    assert_eq!(ran.code, 65, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("git fetch --unshallow"),
        "{}",
        ran.stderr
    );
    server.stop();
}

#[test]
fn fetch_takes_what_is_there_waits_or_asks() {
    let work = Work::new();
    let head = work.head.clone();
    let key = work.key();
    let fetch = |script: Script, more: &[&str]| {
        let server = Scripted::start(script);
        let args = [&["fetch", "--head", &head, "--key", &key], more].concat();
        (work.run(&server, &args), server.stop())
    };
    let mut there = Script::new(&work.signed);
    there.completed = true;
    let (ran, seen) = fetch(there, &[]);
    ran.is(0, "MERGE_OK\n");
    assert!(seen.request_ids.is_empty(), "nothing was asked for");

    let (ran, _) = fetch(Script::new(&work.signed), &[]);
    ran.is(4, "");
    let (ran, _) = fetch(Script::new(&work.signed), &["--wait", "1s"]);
    ran.is(4, "");
    assert!(ran.stderr.contains("after 1 s"), "{}", ran.stderr);
    let (ran, seen) = fetch(Script::new(&work.signed), &["--or-score", "--wait", "60s"]);
    ran.is(0, "MERGE_OK\n");
    assert_eq!(seen.bundles.len(), 1, "the commit came from this workspace");
}

#[test]
fn list_watch_and_cancel() {
    let work = Work::new();
    let mut script = Script::new(&work.signed);
    script.completed = true;
    let server = Scripted::start(script);
    let ran = work.run(&server, &["list"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let columns: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert_eq!(columns[0], crate::scripted::ID);
    assert_eq!(columns[1..3], ["completed", "PASS,PASS,PASS"]);
    let ran = work.run(&server, &["list", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["scores"][0]["state"], "completed");
    work.run(
        &server,
        &["watch", crate::scripted::ID, "--key", &work.key()],
    )
    .is(0, "MERGE_OK\n");
    let ran = work.run(&server, &["cancel", crate::scripted::ID]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = work.run(&server, &["watch", "nonsense"]);
    assert_eq!(ran.code, 64);
    server.stop();
}

#[test]
fn mixed_cases_are_listed_over_pages_and_within_a_limit() {
    let work = Work::new();
    let server = Scripted::start(Script::new(&work.signed));
    let ran = work.run(&server, &["list", "--flaky"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let (zero, one) = ("0".repeat(32), format!("{:032x}", 1));
    let two = format!("{:032x}", 2);
    let scores = format!("{zero},{one},{two},+22");
    assert_eq!(
        lines[0],
        [
            "abababababab",
            "2026-09-21T14:13:20Z",
            "2026-09-22T14:13:20Z",
            "3/19",
            "42.8%",
            "threads",
            "neither",
            &scores,
            "tests/sealed/test_core.py::test_two[a",
            "b]"
        ]
    );
    assert_eq!(lines[1][0], "-", "no digest");
    assert_eq!(lines[1][5..7], ["order", "property"], "what settled it");
    assert_eq!(lines[1][7], zero);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
    let ran = work.run(&server, &["list", "--flaky", "--json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    assert_eq!(cases[0]["failures"], 3);
    assert_eq!(cases[0]["scores"].as_array().unwrap().len(), 20);
    assert_eq!(cases[1]["source"], Value::Null);
    assert_eq!(cases[1]["settled_by"], "order");
    let ran = work.run(&server, &["list", "--flaky", "--limit", "1"]);
    assert_eq!(ran.stdout.lines().count(), 1);
    server.stop();
}

#[test]
fn a_terminal_gets_a_bar_and_colour_unless_it_objects() {
    let work = Work::new();
    let on_terminal = |no_color: &str| {
        let server = Scripted::start(Script::new(&work.signed));
        // `script` gives the command a terminal of its own.
        let line = format!(
            "{} score --key {}",
            env!("CARGO_BIN_EXE_tribunal"),
            work.key()
        );
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(work.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TERM", "xterm-256color")
            .env("NO_COLOR", no_color)
            .env("TRIBUNAL_SERVER", server.url())
            .env("TRIBUNAL_REPO", "app")
            .env("TRIBUNAL_TOKEN", "x")
            .output()
            .unwrap();
        server.stop();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let coloured = on_terminal("");
    assert!(
        coloured.contains("\u{1b}[32mMERGE_OK\u{1b}[0m"),
        "{coloured:?}"
    );
    assert!(coloured.contains("sealed cases"), "{coloured:?}");
    let plain = on_terminal("1");
    assert!(plain.contains("MERGE_OK\r\n"), "{plain:?}");
    assert!(
        !plain.contains("\u{1b}[32m") && !plain.contains("\u{1b}[33m"),
        "{plain:?}"
    );
}
