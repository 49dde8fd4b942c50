//! `join` and `verify` as a gate runs them: the binary, a folder, a key; every way to present another score's files.

use crate::signed::{BASE, HEAD, OTHER, Signed, run_in};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use tribunal_core::judge::VerdictKind;

const BLOCKED_BUT_PASS: &str =
    "MERGE_BLOCKED: src_score=PASS oracle_integrity=PASS flake_lease=PASS\n";

#[test]
fn pass_pass_pass_is_merge_ok_and_nothing_else_on_stdout() {
    let signed = Signed::pass();
    signed.join(&[]).is(0, "MERGE_OK\n");
    signed.join(&["--base", BASE]).is(0, "MERGE_OK\n");
    let with_signers = [
        "join",
        "ci_out",
        "--key",
        "allowed_signers",
        "--repo",
        "app",
        "--head",
        HEAD,
    ];
    signed.run(&with_signers).is(0, "MERGE_OK\n");
}

#[test]
fn replayed_for_another_subject() {
    let signed = Signed::pass();
    for (more, code) in [
        (["--head", OTHER], 5),
        (["--base", OTHER], 1),
        (["--repo", "other"], 5),
        (["--change-set", "human"], 1),
    ] {
        let args: Vec<&str> = ["join", "ci_out", "--key", "key.pem"]
            .into_iter()
            .chain(more)
            .collect();
        let args: Vec<&str> = if more[0] == "--head" {
            args
        } else {
            [&args[..], &["--head", HEAD]].concat()
        };
        let ran = signed.run(&args);
        ran.is(code, BLOCKED_BUT_PASS);
        assert!(ran.stderr.contains("next:"), "{}", ran.stderr);
    }
}

#[test]
fn another_word_blocks_and_the_reason_chooses_the_code() {
    for (kind, result, reason, code, line) in [
        (
            "src_score",
            "FAILED",
            "case-failed",
            1,
            "src_score=FAIL oracle_integrity=PASS flake_lease=PASS",
        ),
        (
            "oracle_integrity",
            "FAILED",
            "oracle-edit",
            1,
            "src_score=PASS oracle_integrity=FAIL flake_lease=PASS",
        ),
        (
            "flake_lease",
            "FAILED",
            "forbidden-mark",
            2,
            "src_score=PASS oracle_integrity=PASS flake_lease=FAIL",
        ),
        (
            "src_score",
            "FAILED",
            "cassette-gap",
            3,
            "src_score=FAIL oracle_integrity=PASS flake_lease=PASS",
        ),
        (
            "src_score",
            "NOT_RUN",
            "oracle-edit",
            1,
            "src_score=NOT_RUN oracle_integrity=PASS flake_lease=PASS",
        ),
    ] {
        let signed = Signed::with(&|which, said| {
            if which.file_stem() == kind {
                said["result"] = result.into();
                said["reasons"] = json!([reason]);
            }
        });
        let ran = signed.join(&[]);
        ran.is(code, &format!("MERGE_BLOCKED: {line}\n"));
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn age_base_and_change_set_are_what_is_signed() {
    let expired = Signed::with(&|_, said| {
        said["issuedAt"] = "2020-01-01T00:00:00Z".into();
        said["validUntil"] = "2020-01-02T00:00:00Z".into();
    });
    expired.join(&[]).is(5, BLOCKED_BUT_PASS);
    let from_the_future = Signed::with(&|_, said| {
        said["issuedAt"] = "2120-01-01T00:00:00Z".into();
        said["validUntil"] = "2120-01-02T00:00:00Z".into();
    });
    from_the_future.join(&[]).is(5, BLOCKED_BUT_PASS);
    let stale = Signed::with(&|_, said| said["baseTipAtScoring"] = OTHER.into());
    stale.join(&[]).is(1, BLOCKED_BUT_PASS);
    let human = Signed::with(&|_, said| said["changeSet"] = "human".into());
    human.join(&[]).is(1, BLOCKED_BUT_PASS);
    human.join(&["--change-set", "human"]).is(0, "MERGE_OK\n");
}

#[test]
fn three_files_that_are_not_one_set() {
    let torn = |key: &'static str, value: Value| {
        let signed = Signed::with(&|kind, said| {
            if kind == VerdictKind::FlakeLease {
                said[key] = value.clone();
            }
        });
        signed.join(&[]).is(5, BLOCKED_BUT_PASS);
    };
    torn(
        "score",
        "repositories/app/scores/ffffffffffffffffffffffffffffffff".into(),
    );
    torn("repository", "other".into());
    torn("baseTipAtScoring", OTHER.into());
    torn("changeSet", "human".into());
    torn("validUntil", "2120-01-01T00:00:00Z".into());
}

#[test]
fn files_that_were_touched_after_they_were_signed() {
    type Touch = fn(&std::path::Path);
    let cases: [(&str, Touch); 6] = [
        ("an edited word", |out| {
            fs::write(out.join("src_score.txt"), "FAIL\n").unwrap()
        }),
        ("a word with more behind it", |out| {
            fs::write(out.join("src_score.txt"), "PASS\nPASS\n").unwrap()
        }),
        ("kinds swapped by renaming", |out| {
            for ending in [".txt", ".json", ".json.sig", ".sigstore.json"] {
                let (a, b) = (
                    out.join(format!("src_score{ending}")),
                    out.join(format!("flake_lease{ending}")),
                );
                fs::rename(&a, out.join("x")).unwrap();
                fs::rename(&b, &a).unwrap();
                fs::rename(out.join("x"), &b).unwrap();
            }
        }),
        ("an edited payload", |out| {
            let path = out.join("src_score.json");
            let text = fs::read_to_string(&path)
                .unwrap()
                .replace("\"seen\": 7", "\"seen\": 8");
            fs::write(path, text).unwrap();
        }),
        ("an edited envelope", |out| {
            let path = out.join("src_score.sigstore.json");
            let text = fs::read_to_string(&path)
                .unwrap()
                .replace("\"sig\":\"", "\"sig\":\"A");
            fs::write(path, text).unwrap();
        }),
        ("another file's SSH signature", |out| {
            fs::copy(
                out.join("flake_lease.json.sig"),
                out.join("src_score.json.sig"),
            )
            .unwrap();
        }),
    ];
    for (what, touch) in cases {
        let signed = Signed::pass();
        touch(&signed.out());
        let ran = signed.join(&[]);
        assert_eq!(ran.code, 5, "{what}: {}", ran.stderr);
        assert!(
            ran.stdout.starts_with("MERGE_BLOCKED: "),
            "{what}: {}",
            ran.stdout
        );
        assert_eq!(ran.stdout.lines().count(), 1);
    }
}

#[test]
fn missing_files_and_folders() {
    let signed = Signed::pass();
    fs::remove_file(signed.out().join("oracle_integrity.json.sig")).unwrap();
    signed.join(&[]).is(
        5,
        "MERGE_BLOCKED: src_score=PASS oracle_integrity=MISSING flake_lease=PASS\n",
    );
    fs::remove_dir_all(signed.out()).unwrap();
    signed.join(&[]).is(
        5,
        "MERGE_BLOCKED: src_score=MISSING oracle_integrity=MISSING flake_lease=MISSING\n",
    );
}

#[test]
fn keys_that_do_not_serve() {
    let signed = Signed::pass();
    let other = ed25519_dalek::SigningKey::from_bytes(&[8; 32]);
    let other =
        tribunal_core::keys::PublicKey::from_bytes(other.verifying_key().as_bytes()).unwrap();
    fs::write(signed.pem(), other.to_pem()).unwrap();
    assert_eq!(signed.join(&[]).code, 5);

    let revoked = tribunal_core::keys::KeyRecord {
        revoked_since: Some(tribunal_core::id::UnixTime(1_000_000_000)),
        ..tribunal_core::keys::KeyRecord::undated(signed.public())
    };
    fs::write(signed.pem(), revoked.allowed_signers_line() + "\n").unwrap();
    assert_eq!(signed.join(&[]).code, 5);

    fs::write(signed.pem(), "no key\n").unwrap();
    signed.join(&[]).is(64, "");
    fs::remove_file(signed.pem()).unwrap();
    signed.join(&[]).is(64, "");
    signed.run(&["join", "ci_out", "--head", HEAD]).is(64, "");
}

#[test]
fn head_is_the_workspaces_and_a_join_without_a_subject_is_a_mistake() {
    let signed = Signed::pass();
    let key = signed.pem();
    let ran = signed.run(&["join", "ci_out", "--key", "key.pem"]);
    ran.is(64, "");
    assert!(ran.stderr.contains("--head"), "{}", ran.stderr);

    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(args)
            .current_dir(signed.folder())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let head = git(&["rev-parse", "HEAD"]);
    signed
        .run(&["join", "ci_out", "--key", "key.pem"])
        .is(5, BLOCKED_BUT_PASS);
    let mine = Signed::with(&|_, said| said["head"]["id"] = head.clone().into());
    let out = mine.out();
    let args = [
        "join",
        out.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    run_in(signed.folder(), &args).is(0, "MERGE_OK\n");
}

#[test]
fn without_a_repository_it_says_that_it_did_not_ask() {
    let signed = Signed::pass();
    let ran = signed.run(&["join", "ci_out", "--key", "key.pem", "--head", HEAD]);
    ran.is(0, "MERGE_OK\n");
    assert!(ran.stderr.contains("--repo"), "{}", ran.stderr);
}

#[test]
fn json_is_one_document() {
    let signed = Signed::pass();
    for command in ["join", "verify"] {
        let ran = signed.run(&[
            command, "ci_out", "--key", "key.pem", "--head", OTHER, "--json",
        ]);
        assert_eq!(ran.code, 5);
        assert_eq!(ran.stdout.lines().count(), 1);
        let document: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(document["decision"], "MERGE_BLOCKED");
        assert_eq!(document["exit"], 5);
        assert_eq!(document["words"]["src_score"], "PASS");
        let failed: Vec<&Value> = document["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["result"] == "failed")
            .collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["check"], "head");
    }
}

#[test]
fn verify_spells_every_check_out_and_its_lines_work() {
    let signed = Signed::pass();
    let ran = signed.run(&[
        "verify", "ci_out", "--key", "key.pem", "--head", HEAD, "--repo", "app",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("\nMERGE_OK\n"));
    for step in [
        "signature: src_score",
        "ssh-signature: flake_lease",
        "one-set",
        "age",
        "head",
    ] {
        assert!(ran.stdout.contains(step), "{step}: {}", ran.stdout);
    }
    // What it prints is pasted into a shell, but for cosign, which wants the real commit.
    let (_, script) = ran
        .stdout
        .split_once("# The same without tribunal:\n")
        .unwrap();
    let (script, _) = script
        .split_once("# the envelope as cosign reads it")
        .unwrap();
    let good = bash(signed.folder(), script);
    assert!(
        good.status.success(),
        "{}",
        String::from_utf8_lossy(&good.stderr)
    );
    let said = String::from_utf8(good.stdout).unwrap();
    assert_eq!(
        said.matches("Good \"tribunal-verdict\" signature").count(),
        3,
        "{said}"
    );
    assert_eq!(
        said.matches("Signature Verified Successfully").count(),
        3,
        "{said}"
    );

    // And they notice what they ought to notice.
    let path = signed.out().join("src_score.json");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("PASSED", "FAILED");
    fs::write(path, text).unwrap();
    assert!(!bash(signed.folder(), script).status.success());
}

#[test]
fn the_line_for_cosign_works_where_there_is_one() {
    let repo = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(args)
            .current_dir(repo.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        output.stdout
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let head = String::from_utf8(git(&["rev-parse", "HEAD"])).unwrap();
    let head = head.trim().to_owned();
    let raw = tribunal_core::id::Digest::of(&git(&["cat-file", "commit", "HEAD"]));
    let signed = Signed::with(&|_, said| {
        said["head"]["id"] = head.clone().into();
        said["head"]["sha256"] = raw.to_string().into();
    });
    let (out, key) = (signed.out(), signed.pem());
    let args = [
        "verify",
        out.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let ran = run_in(repo.path(), &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (_, lines) = ran
        .stdout
        .split_once("# The same without tribunal:\n")
        .unwrap();
    assert_eq!(
        lines.matches("\ncosign verify-blob-attestation ").count(),
        3
    );

    // deploy/cosign.sh puts it there for those who want it.
    let fetched = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/tools/cosign/usr/bin"
    );
    let lines = format!("PATH=$PATH:{fetched}\n{lines}");
    if !bash(
        repo.path(),
        &format!("PATH=$PATH:{fetched}; command -v cosign"),
    )
    .status
    .success()
    {
        eprintln!("NOT TESTED: there is no cosign here; deploy/cosign.sh fetches it");
        return;
    }
    let said = bash(repo.path(), &lines);
    let stderr = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.success(), "{stderr}");
    assert_eq!(stderr.matches("Verified OK").count(), 3, "{stderr}");
    // Over another commit it says no.
    git(&["commit", "-q", "--allow-empty", "-m", "y"]);
    let other = lines.replace(&format!("commit {head} >"), "commit HEAD >");
    assert!(!bash(repo.path(), &other).status.success());
}

fn bash(folder: &std::path::Path, script: &str) -> std::process::Output {
    Command::new("bash")
        .args(["-ec", script])
        .current_dir(folder)
        .output()
        .unwrap()
}
