//! One suite that every signer passes, and what is the file's alone.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::{FileSigner, KeyFileError, MemorySigner, Signer, SignerError, sign};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use tribunal_core::cassette::CassetteFacts;
use tribunal_core::classify::{Patch, classify};
use tribunal_core::git::{Change, Commit, Entry, GitPath, Mode, Relation, ResolvedCommits};
use tribunal_core::id::{Digest, UnixTime};
use tribunal_core::judge::judge_decided;
use tribunal_core::keys::{PublicKey, Valid};
use tribunal_core::plan::{Course, OracleFacts};
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::Role;
use tribunal_core::statement::{Reports, Scored, Scorer, Statements};

/// What every signer holds to.
fn conforms(signer: &dyn Signer) {
    let public = signer.public();
    assert_eq!(public.id().as_str().len(), "SHA256:".len() + 43);
    for message in [b"".as_slice(), b"a", &[0xff; 70_000]] {
        let signature = signer.sign(message).unwrap();
        assert_eq!(public.verifies(message, &signature), Valid::Yes);
        assert_eq!(
            signer.sign(message).unwrap(),
            signature,
            "ed25519 has one signature per message"
        );
        let mut other = message.to_vec();
        other.push(b'\n');
        assert_eq!(public.verifies(&other, &signature), Valid::No);
        let mut broken = signature;
        broken[63] ^= 1;
        assert_eq!(public.verifies(message, &broken), Valid::No);
    }
}

#[test]
fn a_key_in_memory_conforms() {
    conforms(&MemorySigner::from_secret(&[7; 32]).unwrap());
}

#[test]
fn a_key_file_conforms_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    conforms(&made);
    let read = FileSigner::open(&path).unwrap();
    conforms(&read);
    assert_eq!(made.public(), read.public());
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        format!("{made:?}"),
        format!("FileSigner({})", made.public().id())
    );
}

#[test]
fn a_key_file_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    assert!(matches!(
        FileSigner::create(&path),
        Err(KeyFileError::Io { act: "create", .. })
    ));
    assert_eq!(FileSigner::open(&path).unwrap().public(), made.public());
}

#[test]
fn an_exposed_or_broken_key_file_is_refused_without_telling_what_it_holds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    FileSigner::create(&path).unwrap();
    let link = dir.path().join("link.pem");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(
        FileSigner::open(&link),
        Err(KeyFileError::Io { act: "open", .. })
    ));
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            matches!(FileSigner::open(&path), Err(KeyFileError::Exposed { .. })),
            "{mode:o}"
        );
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(
        &path,
        "-----BEGIN PRIVATE KEY-----\nsecretsecret\n-----END PRIVATE KEY-----\n",
    )
    .unwrap();
    let error = FileSigner::open(&path).unwrap_err();
    assert!(matches!(error, KeyFileError::Form { .. }));
    assert!(!error.to_string().contains("secret"));
    assert!(matches!(
        FileSigner::open(dir.path()),
        Err(KeyFileError::Exposed { .. })
    ));
}

#[test]
fn openssl_reads_the_key_file_and_names_the_same_public_half() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("signing.pem");
    let made = FileSigner::create(&path).unwrap();
    let out = Command::new("openssl")
        .arg("pkey")
        .arg("-pubout")
        .arg("-in")
        .arg(&path)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert_eq!(
        String::from_utf8(out.stdout).unwrap(),
        made.public().to_pem()
    );
}

/// A signer that fails at its n-th signature, or signs with another key than it names.
struct Broken {
    named: MemorySigner,
    used: MemorySigner,
    left: std::sync::Mutex<u32>,
}

impl Signer for Broken {
    fn public(&self) -> &PublicKey {
        self.named.public()
    }
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], SignerError> {
        let mut left = self.left.lock().unwrap();
        *left = left
            .checked_sub(1)
            .ok_or_else(|| SignerError("the token was pulled out".into()))?;
        self.used.sign(message)
    }
}

/// The statements of a patch that is decided without a run.
fn statements() -> Statements {
    let commit = |digit: &str| Commit {
        id: digit.repeat(40).parse().unwrap(),
        tree: "7".repeat(40).parse().unwrap(),
        sha256: Digest::of(digit.as_bytes()),
    };
    let base = commit("b");
    let path = GitPath::from("ci/flake_leases.json");
    let entry = |digit: &str| Entry {
        mode: Mode::File,
        id: digit.repeat(40).parse().unwrap(),
    };
    let patch = Patch {
        commits: ResolvedCommits {
            repository: "demo".parse().unwrap(),
            protected_ref: "refs/heads/main".into(),
            head: commit("a"),
            base_tip: base.id.clone(),
            merge_bases: vec![base.id.clone()],
            base,
            relation: Relation::Contains,
        },
        changes: vec![Change {
            path: path.clone(),
            base: Some(entry("1")),
            head: Some(entry("2")),
            contents: None,
        }],
        base_paths: vec![path],
    };
    let Course::Barred(barred) =
        Course::of(classify(patch, Policy::default(), Role::Agent).unwrap())
    else {
        unreachable!("an agent's lease edit is barred");
    };
    let decided = barred.decide(OracleFacts {
        tree: "7".repeat(40).parse().unwrap(),
        manifest: None,
        leases: None,
        ledger: None,
        sealed_paths: vec![],
        lfs_pointers: vec![],
        oracle_digest: Digest::of(b"oracle"),
        cassettes: CassetteFacts::default(),
    });
    let judged = judge_decided(&decided, UnixTime(1_796_083_200));
    let scorer = Scorer {
        id: "here".into(),
        version: "0".into(),
    };
    let scored = Scored::of(
        "0".repeat(32).parse().unwrap(),
        scorer,
        decided.patch(),
        None,
    );
    let reports = Reports {
        operator: Digest::of(b"o"),
        full: Digest::of(b"f"),
        agent: Digest::of(b"a"),
    };
    Statements::of(&judged, &scored, &reports, UnixTime(1_796_083_201)).unwrap()
}

#[test]
fn a_score_is_signed_whole_or_not_at_all() {
    let key = |seed: u8| MemorySigner::from_secret(&[seed; 32]).unwrap();
    let envelopes = sign(statements(), &key(7)).unwrap();
    assert_eq!(
        (envelopes.files().len(), envelopes.key()),
        (12, key(7).public().id())
    );
    for left in 0..6 {
        let broken = Broken {
            named: key(7),
            used: key(7),
            left: left.into(),
        };
        let aborted = Aborted::from(sign(statements(), &broken).unwrap_err());
        assert_eq!(aborted.code, AbortedCode::Internal);
        assert!(aborted.message.contains("failed to sign"), "{aborted}");
    }
    let lying = Broken {
        named: key(7),
        used: key(8),
        left: 99.into(),
    };
    assert!(
        sign(statements(), &lying)
            .unwrap_err()
            .to_string()
            .contains("does not verify")
    );
}
