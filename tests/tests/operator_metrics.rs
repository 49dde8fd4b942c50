//! What an operator sees: numbers that are right, and neither there nor in the log a secret, or text of a candidate's that
//! could pass for a line of ours.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

use tribunal_tests::port::{get, get_as, metrics};
use tribunal_tests::{Repo, Role, Server, Stage};

/// What a candidate writes wherever it can: a line of its own, an escape sequence, a label's end.
const PLANTED: &str =
    "plantedmarker\n2026-01-01T00:00:00Z  INFO plantedline\u{1b}[31mplantedcolour\"} 7\r";

fn config(format: &str) -> String {
    format!(
        "log = \"debug\"\nlog_format = \"{format}\"\n[admin]\nlisten = \"127.0.0.1:0\"\npage = \"off\"\n[queue]\nhourly_per_token = 3\n"
    )
}

/// A repository in whose case ids, messages, names and commits the marker stands.
fn hostile() -> Repo {
    let repo = Repo::small();
    repo.write("src/speaks.py", "def says(text):\n    return text\n");
    let literal = format!("{PLANTED:?}").replace("\\u{1b}", "\\x1b");
    repo.write(
        "tests/sealed/test_speaks.py",
        format!(
            "import pytest\nfrom speaks import says\n\n@pytest.mark.parametrize(\"text\", [{literal}])\ndef test_says(text):\n    print(text)\n    assert says(text) == text, text\n"
        ),
    );
    repo.write(
        "tests/sealed/MANIFEST.txt",
        "tests/sealed/test_core.py\ntests/sealed/test_speaks.py\n",
    );
    repo.commit("speaks");
    repo
}

/// Head lies, prints the marker on both its streams and raises it.
fn lies(stage: &Stage<'_>) {
    let literal = format!("{PLANTED:?}").replace("\\u{1b}", "\\x1b");
    stage.workspace.write(
        "src/speaks.py",
        format!(
            "import os, sys\nMARK = {literal}\nprint(MARK, file=sys.stderr)\ndef says(text):\n    os.write(1, MARK.encode()); os.write(2, MARK.encode())\n    raise ValueError(MARK)\n"
        ),
    );
    stage
        .workspace
        .commit("plantedmarker subject \u{1b}[31mplantedcolour\n\nplantedline");
}

/// Everything of this server's that must never be told.
fn secrets(server: &Server, tokens: &[&str]) -> Vec<String> {
    let key = std::fs::read_to_string(server.data().join("keys/current")).unwrap();
    let mut secrets: Vec<String> = key
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .map(str::to_owned)
        .collect();
    assert!(!secrets.is_empty());
    let held_out = std::fs::read(server.data().join("held_out.secret")).unwrap();
    secrets.push(String::from_utf8_lossy(&held_out).trim().to_owned());
    // A token's first part is its name; the rest is what nobody may know.
    secrets.extend(tokens.iter().map(|token| {
        let (_, secret) = token.rsplit_once(['_', '.', '-']).unwrap();
        assert!(
            secret.len() > 20,
            "a token looks otherwise than was thought"
        );
        secret.to_owned()
    }));
    secrets
}

fn holds_nothing(what: &str, text: &str, secrets: &[String]) {
    for secret in secrets {
        assert!(!text.contains(secret.as_str()), "{what} holds a secret");
    }
    assert!(!text.contains('\u{1b}'), "{what} holds an escape sequence");
    assert!(!text.contains('\r'), "{what} holds a carriage return");
    for line in text.lines() {
        assert!(
            !line.starts_with("2026-01-01") && !line.starts_with("plantedline"),
            "{what} has a line that a candidate wrote: {line}"
        );
    }
}

fn goes_through(format: &str) {
    let server = Server::with_config(&config(format));
    assert_eq!(get(&server, "/healthz").status, 200);
    assert_eq!(get(&server, "/readyz").body, "ready\n");
    assert_eq!(get(&server, "/").status, 404);
    assert_eq!(get_as(&server, "/metrics", "rebound.example").status, 421);
    let stage = Stage::of(&server, &hostile());
    stage.honest_patch("honest");
    stage.score(&stage.agent(), "honest").expect_code(0);
    stage
        .workspace
        .git(&["reset", "-q", "--hard", "origin/main"]);
    lies(&stage);
    stage.score(&stage.agent(), "lies").expect_code(1);
    // Asked again, it is answered from the store; and then that was enough for an hour.
    stage.score(&stage.agent(), "again").expect_code(1);
    stage.score(&stage.agent(), "quota").expect_code(65);
    let seen = metrics(&server);
    let of = |name: &str| {
        *seen
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {seen:#?}"))
    };
    assert_eq!(of("tribunal_scores_total{outcome=\"merge-ok\"}"), 1.0);
    assert_eq!(of("tribunal_scores_total{outcome=\"merge-blocked\"}"), 2.0);
    assert_eq!(of("tribunal_scores_total{outcome=\"aborted\"}"), 0.0);
    assert_eq!(of("tribunal_scores_refused_total{code=\"quota\"}"), 1.0);
    assert_eq!(
        of("tribunal_verdicts_total{kind=\"src_score\",word=\"FAIL\"}"),
        2.0
    );
    assert_eq!(of("tribunal_base_runs_total{from=\"run\"}"), 1.0);
    assert_eq!(of("tribunal_base_runs_total{from=\"stored\"}"), 2.0);
    assert!(of("tribunal_attempts_total{from=\"stored\"}") > 0.0);
    assert!(of("tribunal_attempts_total{from=\"run\"}") > 0.0);
    assert!(of("tribunal_rooms_entered_total{room=\"new\"}") >= 3.0);
    assert_eq!(
        of("tribunal_uploads_total{outcome=\"taken\"}"),
        of("tribunal_upload_size_bytes_count")
    );
    assert!(of("tribunal_upload_size_bytes_sum") > 100.0);
    assert_eq!(of("tribunal_queue_wait_seconds_count"), 3.0);
    assert_eq!(
        of("tribunal_stage_duration_seconds_count{stage=\"total\"}"),
        3.0
    );
    assert_eq!(of("tribunal_queue_running"), 0.0);
    let text = get(&server, "/metrics").body;
    for word in [
        "planted",
        "speaks",
        &stage.registered.name,
        &stage.workspace.head(),
    ] {
        assert!(!text.contains(word), "a metric names {word}");
    }
    let tokens = [
        &stage.registered.agent,
        &stage.registered.ci,
        &stage.registered.maintainer,
        &server.token(Role::Operator, None),
    ];
    let secrets = secrets(&server, &tokens.map(String::as_str));
    holds_nothing("the metrics", &text, &secrets);
    server.shutdown();
    let log = server.log();
    holds_nothing("the log", &log, &secrets);
    assert!(log.contains("leaving"));
    if format == "json" {
        for line in log.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line["level"].is_string() && line["timestamp"].is_string());
        }
    }
}

#[test]
fn numbers_are_right_and_nothing_planted_gets_through_as_text() {
    goes_through("text");
}

#[test]
fn the_same_with_json_logs_which_are_json_line_by_line() {
    goes_through("json");
}
