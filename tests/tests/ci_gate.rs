//! What a CI job runs, run as a CI job runs it: the gate's shell against a real server, and how the client is installed.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tribunal_tests::{Server, Stage, binaries};

fn ci(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/ci")
        .join(file)
}

/// The gate over HEAD of the stage's workspace; its exit code, what it printed, and its page.
fn gate(stage: &Stage<'_>, key: &Path, name: &str) -> (i32, String, String) {
    let base = stage.workspace.git(&["rev-parse", "origin/main"]);
    let (out, page) = (stage.out(name), stage.out(&format!("{name}.md")));
    let bin = binaries::client();
    let path = format!(
        "{}:{}",
        bin.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let home = tempfile::tempdir().unwrap();
    let ran = Command::new("sh")
        .arg(ci("gate.sh"))
        .current_dir(stage.workspace.path())
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("TRIBUNAL_SERVER", stage.server.url())
        .env("TRIBUNAL_REPO", &stage.registered.name)
        .env("TRIBUNAL_TOKEN", &stage.registered.ci)
        .env("HEAD", stage.workspace.head())
        .env("BASE", base.trim())
        .env("KEY", key)
        .env("OUT", &out)
        .env("SUMMARY", &page)
        .env("WAIT", "5m")
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    let page = fs::read_to_string(page).unwrap_or_default();
    (ran.status.code().unwrap(), said, page)
}

#[test]
fn an_allowed_and_a_blocked_merge() {
    let stage = Stage::small(Server::shared());
    let key = stage.server.key_file();
    stage.honest_patch("allowed");
    let (code, said, page) = gate(&stage, &key, "allowed");
    assert_eq!(code, 0, "{said}");
    assert!(said.ends_with("MERGE_OK\n"), "{said}");
    assert!(page.starts_with("### Tribunal: MERGE_OK\n"), "{page}");
    assert_eq!(page.matches("✅ PASS").count(), 3, "{page}");

    stage
        .workspace
        .git(&["reset", "-q", "--hard", "origin/main"]);
    stage.wrong_patch("blocked");
    let (code, said, page) = gate(&stage, &key, "blocked");
    assert_eq!(code, 1, "{said}");
    let line = "MERGE_BLOCKED: src_score=FAIL oracle_integrity=PASS flake_lease=PASS";
    assert!(said.trim_end().ends_with(line), "{said}");
    assert!(page.starts_with("### Tribunal: MERGE_BLOCKED\n"), "{page}");
    assert!(page.contains("| `src_score` | ❌ FAIL |"), "{page}");
    assert!(page.contains("#### What to do"), "{page}");
    assert!(page.contains("tests/sealed/"), "{page}");
}

#[test]
fn only_the_pinned_key_opens_it() {
    let stage = Stage::small(Server::shared());
    stage.honest_patch("another key");
    let other = Server::own();
    let (code, said, page) = gate(&stage, &other.key_file(), "unpinned");
    assert_eq!(code, 5, "{said}");
    assert!(page.starts_with("### Tribunal: MERGE_BLOCKED\n"), "{page}");
    assert!(!page.contains("✅"), "{page}");
    other.shutdown();
}

fn install(url: &str, sha256: &str, folder: &Path) -> Output {
    let mut command = Command::new("sh");
    command
        .arg(ci("install.sh"))
        .args([url, sha256])
        .arg(folder);
    command.output().unwrap()
}

#[test]
fn a_client_that_is_not_the_pinned_one_is_not_installed() {
    use sha2::{Digest as _, Sha256};
    let place = tempfile::tempdir().unwrap();
    let client = place.path().join("client");
    fs::write(&client, "#!/bin/sh\necho here\n").unwrap();
    let sha256 = hex::encode(Sha256::digest(fs::read(&client).unwrap()));
    let url = format!("file://{}", client.display());
    let folder = place.path().join("bin");

    let other = install(&url, &"0".repeat(64), &folder);
    assert_eq!(other.status.code(), Some(5));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(
        said.contains(&sha256) && said.contains("not installed"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

    assert!(install(&url, &sha256, &folder).status.success());
    let ran = Command::new(folder.join("tribunal")).output().unwrap();
    assert_eq!(ran.stdout, b"here\n");
    // What is there already is taken without a download.
    fs::remove_file(&client).unwrap();
    assert!(install(&url, &sha256, &folder).status.success());
}
