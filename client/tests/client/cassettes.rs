//! `cassette check`, `diff`, `accept`: offline, in a checkout, with a real ssh-keygen.

use crate::score::Work;
use crate::signed::{Ran, run_in};
use serde_json::Value;
use sha2::Digest as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WHO: &str = "maintainer@example.org";
const RECORD: &str = "cassettes/rates.json";
const BODY: &str = "{\"rate\": 1.25}\n";

/// A checkout whose base lets a maintainer accept.
struct Checkout {
    work: Work,
    keys: tempfile::TempDir,
}

impl Checkout {
    fn new() -> Self {
        let (work, keys) = (Work::new(), tempfile::tempdir().unwrap());
        let this = Self { work, keys };
        let public = this.key("maintainer", "ed25519");
        this.put(
            "ci/allowed_signers",
            &format!("{WHO} namespaces=\"tribunal-cassette\" {public}"),
        );
        this.put("tests/sealed/test_core.py", "def test_two():\n    pass\n");
        this.put("tests/sealed/MANIFEST.txt", "tests/sealed/test_core.py\n");
        this.commit();
        this.git(&["branch", "-f", "base"]);
        this
    }

    fn path(&self) -> &Path {
        self.work.path()
    }

    fn key(&self, name: &str, kind: &str) -> String {
        let file = self.private(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-C", "", "-f"])
            .arg(&file)
            .status()
            .unwrap();
        assert!(made.success());
        fs::read_to_string(file.with_extension("pub")).unwrap()
    }

    fn private(&self, name: &str) -> PathBuf {
        self.keys.path().join(name)
    }

    fn put(&self, path: &str, content: &str) {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    fn git(&self, args: &[&str]) {
        let done = Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .status()
            .unwrap();
        assert!(done.success(), "{args:?}");
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
    }

    fn record(&self, clock: &str) {
        let hash = hex::encode(sha2::Sha256::digest(BODY));
        self.put(&format!("cassettes/bodies/{hash}"), BODY);
        self.put(RECORD, &format!(
            "{{\"schema\": \"cassette.v1\", \"test\": \"tests/sealed/test_core.py::test_two\", \"clock\": \"{clock}\", \
             \"http\": [{{\"method\": \"GET\", \"path\": \"/rates\", \"status\": 200, \"body_sha256\": \"{hash}\"}}]}}\n"
        ));
    }

    fn run(&self, args: &[&str]) -> Ran {
        run_in(self.path(), args)
    }

    fn accept(&self, extra: &[&str]) -> Ran {
        let key = self.private("maintainer");
        let mut args = vec![
            "cassette",
            "accept",
            RECORD,
            "--base",
            "base",
            "--as",
            WHO,
            "--key",
            key.to_str().unwrap(),
        ];
        args.extend_from_slice(extra);
        self.run(&args)
    }

    #[track_caller]
    fn checked(&self, codes: &[&str]) {
        let ran = self.run(&["cassette", "check", "--base", "base"]);
        let told: Vec<&str> = ran
            .stdout
            .lines()
            .filter_map(|line| line.split_once(": ").map(|(code, _)| code))
            .collect();
        assert_eq!(told, codes, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, i32::from(!codes.is_empty()));
    }
}

#[test]
fn from_a_draft_to_an_accepted_change() {
    let here = Checkout::new();
    here.checked(&[]);
    here.record("2026-09-12T00:00:00Z");
    here.checked(&["cassette-drift"]);
    // Without an entry there is nothing to accept, and it is said what to do.
    let unexplained = here.accept(&[]);
    assert_eq!(unexplained.code, 64);
    assert!(
        unexplained.stderr.contains("--why"),
        "{}",
        unexplained.stderr
    );
    let accepted = here.accept(&["--why", "the first record"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    for line in [
        "clock: 2026-09-12T00:00:00Z",
        "http:GET /rates: 200, body",
        "note: clock added: the first record",
    ] {
        assert!(accepted.stdout.contains(line), "{}", accepted.stdout);
    }
    assert!(!accepted.stderr.contains("warning"), "{}", accepted.stderr);
    here.checked(&[]);
    let diff = here.run(&["cassette", "diff", "--base", "base"]);
    assert_eq!(diff.code, 0);
    assert!(diff.stdout.contains("cassette cassettes/rates.json: clock added: the first record (accepted by maintainer@example.org)"), "{}", diff.stdout);
    here.commit();
    here.git(&["branch", "-f", "base"]);
    let quiet = here.run(&["cassette", "diff", "--base", "base", "--json"]);
    let document: Value = serde_json::from_str(&quiet.stdout).unwrap();
    assert_eq!(
        (document["ledger"].clone(), document["cassettes"].clone()),
        (serde_json::json!([]), 1.into())
    );

    here.record("2026-10-01T00:00:00Z");
    here.checked(&["cassette-drift", "cassette-drift"]);
    let again = here.accept(&["--why", "the quarter ended"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    here.checked(&[]);
    // From a folder below, the same file is meant.
    let below = run_in(
        &here.path().join("cassettes"),
        &["cassette", "check", "--base", "base"],
    );
    assert_eq!(below.code, 0, "{}", below.stdout);
}

#[test]
fn whose_word_does_not_count_is_said_at_once() {
    let here = Checkout::new();
    here.record("2026-09-12T00:00:00Z");
    here.key("agent", "ed25519");
    let key = here.private("agent");
    let args = [
        "cassette",
        "accept",
        RECORD,
        "--base",
        "base",
        "--as",
        WHO,
        "--key",
        key.to_str().unwrap(),
        "--why",
        "x",
    ];
    let own = here.run(&args);
    assert_eq!(own.code, 0);
    assert!(own.stderr.contains("cassette-unaccepted"), "{}", own.stderr);
    here.checked(&["cassette-unaccepted"]);
    // A signer that the checkout adds is none of base's.
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    here.put("ci/allowed_signers", &format!("{WHO} {public}"));
    here.checked(&["cassette-unaccepted"]);
    // No key, no agent: a plain failure, and the ledger stays as it was.
    let before = fs::read(here.path().join("ci/cassette_ledger.json")).unwrap();
    let nothing = here.run(&[
        "cassette",
        "accept",
        RECORD,
        "--as",
        WHO,
        "--key",
        "/nonexistent",
        "--why",
        "y",
    ]);
    assert_eq!(nothing.code, 64);
    assert!(
        nothing.stderr.contains("sign the ledger entry"),
        "{}",
        nothing.stderr
    );
    assert_eq!(
        fs::read(here.path().join("ci/cassette_ledger.json")).unwrap(),
        before
    );
}

#[test]
fn other_kinds_of_keys_accept_too() {
    for kind in ["ecdsa", "rsa"] {
        let here = Checkout::new();
        let public = here.key("other", kind);
        here.put("ci/allowed_signers", &format!("{WHO} {public}"));
        here.commit();
        here.git(&["branch", "-f", "base"]);
        here.record("2026-09-12T00:00:00Z");
        let key = here.private("other");
        let ran = here.run(&[
            "cassette",
            "accept",
            RECORD,
            "--base",
            "base",
            "--as",
            WHO,
            "--key",
            key.to_str().unwrap(),
            "--why",
            "x",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        here.checked(&[]);
    }
}

#[test]
fn a_branch_that_is_behind_brings_and_loses_nothing() {
    let here = Checkout::new();
    here.git(&["checkout", "-q", "-b", "work"]);
    here.git(&["checkout", "-q", "-B", "base", "base"]);
    here.record("2026-09-12T00:00:00Z");
    assert_eq!(here.accept(&["--why", "x"]).code, 0);
    here.commit();
    here.git(&["checkout", "-q", "work"]);
    here.checked(&[]);
    assert!(
        here.run(&["cassette", "diff", "--base", "base"])
            .stdout
            .contains("no cassette changed")
    );
}

#[test]
fn a_folder_without_git_is_judged_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("cassettes/deep")).unwrap();
    fs::write(
        folder.path().join("cassettes/deep/a.json"),
        "{\"schema\": \"cassette.v1\", \"tset\": 1}",
    )
    .unwrap();
    let ran = run_in(folder.path(), &["cassette", "check"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains(
            "cassette-invalid: cassettes/deep/a.json: line 1, column 27: `tset` is no key"
        ),
        "{}",
        ran.stdout
    );
    assert_eq!(
        run_in(folder.path(), &["cassette", "check", "--base", "main"]).code,
        64
    );
}
