//! Frozen bytes of everything that is signed, and what other people's tools say of them.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::judge::Judged;
use crate::keys::{KeyRecord, KeyRing, NAMESPACE, PRINCIPAL};
use crate::reason::Reason;
use crate::signed_sample::{GATE, PASSES, UNTIL, public, scored, sealed, signing, statements};
use ed25519_dalek::Signer as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the frozen bytes lie.
fn frozen(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("frozen")
        .join(name)
}

/// A change of these bytes is a change of what was promised: a new predicate version, or a mistake. To freeze new ones,
/// take the old files away and run the test once.
#[test]
fn every_signed_byte_is_frozen() {
    let words = [Word::Fail, Word::Pass, Word::Pass];
    let files = sealed(7, words, Reason::CassetteGap, &scored()).into_files();
    assert_eq!(files.len(), 13);
    let mut fresh = Vec::new();
    for file in files.iter().filter(|file| !frozen(&file.name).exists()) {
        std::fs::create_dir_all(frozen("")).unwrap();
        std::fs::write(frozen(&file.name), &file.bytes).unwrap();
        fresh.push(file.name.as_str());
    }
    assert!(
        fresh.is_empty(),
        "frozen from now on, look at them and run again: {fresh:?}"
    );
    for file in files {
        let right = std::fs::read(frozen(&file.name)).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&file.bytes),
            String::from_utf8_lossy(&right),
            "{}",
            file.name
        );
        assert_eq!(file.bytes, right, "{}", file.name);
    }
}

#[test]
fn the_encoding_that_is_signed_is_that_of_the_dsse_protocol() {
    assert_eq!(
        pae(b"hello"),
        b"DSSEv1 28 application/vnd.in-toto+json 5 hello"
    );
}

#[test]
fn not_run_has_no_test_result() {
    let words = [Word::NotRun, Word::Fail, Word::NotRun];
    let envelopes = sealed(7, words, Reason::OracleEdit, &scored());
    assert_eq!(envelopes.files().len(), 12);
    assert_eq!(envelopes.words(), &words);
    assert_eq!(envelopes.word(VerdictKind::FlakeLease), Word::NotRun);
    assert!(
        !envelopes
            .files()
            .iter()
            .any(|file| file.name.contains("test-result"))
    );
}

#[test]
fn a_signer_that_fails_or_lies_seals_nothing() {
    let statements = || {
        statements(
            &Judged::sample(PASSES, Reason::CaseFailed, GATE, UNTIL),
            &scored(),
        )
    };
    let mut calls = 0;
    let failed = seal(statements(), &public(7), |message| {
        calls += 1;
        if calls == 5 {
            Err("the token was pulled out")
        } else {
            Ok(signing(7).sign(message).to_bytes())
        }
    });
    assert!(matches!(
        failed,
        Err(SealError::Signer {
            stem: "flake_lease",
            source: "the token was pulled out"
        })
    ));
    let wrong_key = seal::<()>(statements(), &public(7), |message| {
        Ok(signing(8).sign(message).to_bytes())
    });
    assert!(matches!(
        wrong_key,
        Err(SealError::Unverifiable {
            stem: "src_score",
            ..
        })
    ));
    let garbage = seal::<()>(statements(), &public(7), |_| Ok([0; 64]));
    assert!(matches!(garbage, Err(SealError::Unverifiable { .. })));
}

fn installed(tool: &str) -> Option<()> {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {tool}")])
        .output()
        .unwrap();
    if found.status.success() {
        return Some(());
    }
    eprintln!("SKIPPED: {tool} is not installed, so its word on our files was not asked");
    None
}

/// A folder with the files of a passing score, the PEM key and the allowed signers.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    for file in sealed(7, PASSES, Reason::CaseFailed, &scored()).into_files() {
        write(&file.name, &file.bytes);
    }
    write("key.pem", public(7).to_pem().as_bytes());
    let record = KeyRecord {
        valid_after: Some(crate::id::UnixTime(1_000_000_000)),
        ..KeyRecord::undated(public(7))
    };
    write(
        "allowed_signers",
        KeyRing::new(vec![record]).allowed_signers().as_bytes(),
    );
    dir
}

#[test]
fn ssh_keygen_verifies_each_payload_and_no_other() {
    let Some(()) = installed("ssh-keygen") else {
        return;
    };
    let dir = folder();
    let verifies = |payload: &Path, signature: &str| {
        let out = Command::new("ssh-keygen")
            .args([
                "-Y",
                "verify",
                "-f",
                "allowed_signers",
                "-I",
                PRINCIPAL,
                "-n",
                NAMESPACE,
                "-s",
                signature,
            ])
            .current_dir(dir.path())
            .stdin(Stdio::from(std::fs::File::open(payload).unwrap()))
            .output()
            .unwrap();
        out.status.success()
    };
    for kind in VerdictKind::ALL {
        let stem = kind.file_stem();
        let payload = dir.path().join(format!("{stem}.json"));
        assert!(verifies(&payload, &format!("{stem}.json.sig")), "{stem}");
        let mut bytes = std::fs::read(&payload).unwrap();
        bytes.push(b'\n');
        std::fs::write(dir.path().join("other.json"), bytes).unwrap();
        assert!(
            !verifies(&dir.path().join("other.json"), &format!("{stem}.json.sig")),
            "{stem}"
        );
    }
    assert!(!verifies(
        &dir.path().join("src_score.json"),
        "flake_lease.json.sig"
    ));
}

#[test]
fn openssl_verifies_each_envelope_and_no_other() {
    let Some(()) = installed("openssl") else {
        return;
    };
    let dir = folder();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    let verifies = || {
        let out = Command::new("openssl")
            .args([
                "pkeyutl", "-verify", "-pubin", "-inkey", "key.pem", "-rawin", "-in", "pae",
                "-sigfile", "sig",
            ])
            .current_dir(dir.path())
            .output()
            .unwrap();
        out.status.success()
    };
    for stem in [
        "src_score",
        "oracle_integrity",
        "flake_lease",
        "src_score.test-result",
    ] {
        let bundle = std::fs::read(dir.path().join(format!("{stem}.sigstore.json"))).unwrap();
        let bundle: Bundle = serde_json::from_slice(&bundle).unwrap();
        let signature = &bundle.dsse_envelope.signatures.first().unwrap().sig;
        let payload = STANDARD.decode(&bundle.dsse_envelope.payload).unwrap();
        write("sig", &STANDARD.decode(signature).unwrap());
        write("pae", &pae(&payload));
        assert!(verifies(), "{stem}");
        write("pae", &payload);
        assert!(
            !verifies(),
            "{stem}: the signature is over the encoding, not over the bare payload"
        );
    }
}
