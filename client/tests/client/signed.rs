//! A verdict folder signed by a key in memory, and the client run against it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tribunal_core::envelope::{BUNDLE_TYPE, pae};
use tribunal_core::id::{Digest, UnixTime};
use tribunal_core::judge::VerdictKind;
use tribunal_core::keys::{KeyRecord, PublicKey};
use tribunal_core::sshsig;
use tribunal_core::statement::{
    PAYLOAD_TYPE, Predicate, STATEMENT_TYPE, Statement, Subject, predicate_type,
};

pub(crate) const HEAD: &str = "1111111111111111111111111111111111111111";
pub(crate) const BASE: &str = "2222222222222222222222222222222222222222";
pub(crate) const OTHER: &str = "3333333333333333333333333333333333333333";

/// Which of the three files a change is for.
pub(crate) type Change<'a> = &'a dyn Fn(VerdictKind, &mut Value);

/// A folder of its own with a key beside it.
pub(crate) struct Signed {
    dir: TempDir,
    key: SigningKey,
}

impl Signed {
    /// PASS PASS PASS for HEAD against BASE, signed now.
    pub(crate) fn pass() -> Self {
        Self::with(&|_, _| {})
    }

    /// The same after these changes of what is signed.
    pub(crate) fn with(change: Change<'_>) -> Self {
        let signed = Self {
            dir: tempfile::tempdir().unwrap(),
            key: SigningKey::from_bytes(&[7; 32]),
        };
        fs::create_dir(signed.out()).unwrap();
        fs::write(signed.pem(), signed.public().to_pem()).unwrap();
        fs::write(
            signed.signers(),
            KeyRecord::undated(signed.public()).allowed_signers_line() + "\n",
        )
        .unwrap();
        // One for all three: a second later it would be of another time.
        let said = predicate();
        for kind in VerdictKind::ALL {
            let mut said = said.clone();
            change(kind, &mut said);
            signed.sign(kind, said);
        }
        signed
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("ci_out")
    }
    pub(crate) fn pem(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }
    pub(crate) fn signers(&self) -> PathBuf {
        self.dir.path().join("allowed_signers")
    }
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }
    pub(crate) fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.key.verifying_key().as_bytes()).unwrap()
    }

    fn sign(&self, kind: VerdictKind, said: Value) {
        let predicate: Predicate = serde_json::from_value(said).unwrap();
        let word = match predicate.result {
            tribunal_core::statement::Result::Passed => "PASS",
            tribunal_core::statement::Result::Failed => "FAIL",
            tribunal_core::statement::Result::NotRun => "NOT_RUN",
        };
        let statement = Statement {
            kind: STATEMENT_TYPE.to_owned(),
            subject: subjects(&predicate),
            predicate_type: predicate_type(kind).to_owned(),
            predicate,
        };
        let mut payload = serde_json::to_vec_pretty(&statement).unwrap();
        payload.push(b'\n');
        let public = self.public();
        let dsse = self.key.sign(&pae(&payload)).to_bytes();
        // Spelled out: the verifier wants exactly these bytes.
        let bundle = format!(
            "{{\"mediaType\":\"{BUNDLE_TYPE}\",\"verificationMaterial\":{{\"publicKey\":{{\"hint\":\"{id}\"}}}},\"dsseEnvelope\":{{\"payload\":\"{}\",\"payloadType\":\"{PAYLOAD_TYPE}\",\"signatures\":[{{\"sig\":\"{}\",\"keyid\":\"{id}\"}}]}}}}\n",
            STANDARD.encode(&payload),
            STANDARD.encode(dsse),
            id = public.id(),
        );
        let ssh = self
            .key
            .sign(&sshsig::to_be_signed(&payload).unwrap())
            .to_bytes();
        let stem = self.out().join(kind.file_stem());
        let write = |ending: &str, bytes: &[u8]| {
            fs::write(format!("{}{ending}", stem.display()), bytes).unwrap();
        };
        write(".txt", format!("{word}\n").as_bytes());
        write(".sigstore.json", bundle.as_bytes());
        write(".json", &payload);
        write(".json.sig", sshsig::file(&public, &ssh).unwrap().as_bytes());
    }

    /// Run the client beside the folder, outside any repository, with a clean environment.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run_in(self.folder(), args)
    }

    /// `join ci_out` for HEAD of repository `app` with the PEM key, and more arguments.
    pub(crate) fn join(&self, more: &[&str]) -> Ran {
        let mut args = vec!["join", "ci_out", "--key", "key.pem", "--repo", "app"];
        if !more.contains(&"--head") {
            args.extend(["--head", HEAD]);
        }
        args.extend(more);
        self.run(&args)
    }
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn is(&self, code: i32, stdout: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (code, stdout),
            "\n--- stderr\n{}",
            self.stderr
        );
    }
}

pub(crate) fn run_in(folder: &Path, args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_tribunal"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", folder)
        .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
        .output()
        .unwrap();
    Ran {
        code: output.status.code().unwrap_or_else(|| panic!("killed")),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// An hour ago, good for a day.
fn predicate() -> Value {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    let digest = Digest::of(b"x").to_string();
    let commit = |id: &str| json!({"id": id, "tree": OTHER, "sha256": digest});
    json!({
        "result": "PASSED",
        "reasons": [],
        "warnings": [],
        "score": "repositories/app/scores/0123456789abcdef0123456789abcdef",
        "scorer": {"id": "test", "version": "0"},
        "repository": "app",
        "protectedRef": "refs/heads/main",
        "changeSet": "agent",
        "head": commit(HEAD),
        "base": commit(BASE),
        "baseTipAtScoring": BASE,
        "mergeBases": [BASE],
        "srcTrees": [{"root": "src/", "tree": OTHER}],
        "inputs": {
            "oracle": digest, "policy": digest, "pins": digest, "overlay": digest,
            "image": "image", "runner": "runner", "ledger": null,
        },
        "attempts": {"planned": 7, "seen": 7, "heldOutPlanned": 0, "heldOut": 0, "heldOutFailures": []},
        "isolation": {},
        "reports": {"operator": digest, "full": digest, "agent": digest},
        "gateTime": UnixTime(now - 3600).rfc3339(),
        "issuedAt": UnixTime(now - 3600).rfc3339(),
        "validUntil": UnixTime(now + 86400).rfc3339(),
    })
}

fn subjects(predicate: &Predicate) -> Vec<Subject> {
    let subject = |name: String, digests: &[(&str, &str)]| Subject {
        name,
        digest: digests
            .iter()
            .map(|(a, d)| ((*a).to_owned(), (*d).to_owned()))
            .collect(),
    };
    let mut subjects = vec![
        subject(
            "head".to_owned(),
            &[
                ("gitCommit", predicate.head.id.as_str()),
                ("sha256", predicate.head.sha256.hex()),
            ],
        ),
        subject(
            "base".to_owned(),
            &[("gitCommit", predicate.base.id.as_str())],
        ),
    ];
    for src in &predicate.src_trees {
        subjects.push(subject(
            format!("src:{}", src.root),
            &[("gitTree", src.tree.as_str())],
        ));
    }
    subjects
}
