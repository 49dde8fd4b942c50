//! Verdict files are good without us: ssh-keygen, openssl, cosign, securesystemslib and @sigstore/verify read what we sign,
//! and refuse what we would refuse.
//!
//! What cannot be installed here is said on stderr, past the test harness, and the rest is tested.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;
use tribunal_core::keys::PublicKey;
use tribunal_tests::plain::{STEMS, Says, openssl, ssh_keygen};
use tribunal_tests::{Client, Server, Stage, binaries, loudly};

/// Every bundle of a score that passed: the three verdicts, and the copy for gates that know the standard predicate.
const BUNDLES: [&str; 4] = [
    "src_score",
    "oracle_integrity",
    "flake_lease",
    "src_score.test-result",
];

/// One score of one commit, and keys: the server's, and one that signed nothing.
struct Signed {
    stage: Stage<'static>,
    key: PathBuf,
    other: PathBuf,
    /// The raw commit objects: the one that is signed, and its parent.
    blobs: [PathBuf; 2],
    _work: TempDir,
}

fn signed() -> &'static Signed {
    static SIGNED: OnceLock<Signed> = OnceLock::new();
    SIGNED.get_or_init(|| {
        let server = Server::shared();
        let stage = Stage::small(server);
        stage.honest_patch("signed");
        stage.score(&stage.agent(), "x").expect_code(0);
        let work = tempfile::tempdir().unwrap();
        let other = work.path().join("other.pem");
        let private = work.path().join("other.key");
        let made = |args: &[&str]| {
            let status = Command::new("openssl").args(args).status().unwrap();
            assert!(status.success());
        };
        let (private, public) = (private.to_str().unwrap(), other.to_str().unwrap());
        made(&["genpkey", "-algorithm", "ed25519", "-out", private]);
        made(&["pkey", "-in", private, "-pubout", "-out", public]);
        let blobs = ["HEAD", "HEAD^"].map(|revision| {
            let output = stage.workspace.try_git(&["cat-file", "commit", revision]);
            let path = work.path().join(format!("{revision}.commit"));
            fs::write(&path, output.stdout).unwrap();
            path
        });
        Signed {
            stage,
            key: server.key_file(),
            other,
            blobs,
            _work: work,
        }
    })
}

impl Signed {
    fn out(&self) -> PathBuf {
        self.stage.out("x")
    }

    fn bundle(&self, stem: &str) -> PathBuf {
        self.out().join(format!("{stem}.sigstore.json"))
    }

    /// A copy of a bundle whose payload says something else; the signature is as it was.
    fn forged(&self, stem: &str, folder: &Path) -> PathBuf {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        let mut bundle: Value =
            serde_json::from_slice(&fs::read(self.bundle(stem)).unwrap()).unwrap();
        let payload = &mut bundle["dsseEnvelope"]["payload"];
        let text = STANDARD.decode(payload.as_str().unwrap()).unwrap();
        let text = String::from_utf8(text).unwrap().replace("PASSED", "passed");
        *payload = STANDARD.encode(text).into();
        let path = folder.join("forged.sigstore.json");
        fs::write(&path, bundle.to_string()).unwrap();
        path
    }
}

#[track_caller]
fn accepts(output: &Output, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}");
}

/// Not accepted, and for the reason that is meant: a tool that could not start refuses everything.
#[track_caller]
fn refuses(output: &Output, what: &str, because: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{what} was accepted");
    let meant = because.iter().any(|part| said.contains(part));
    assert!(meant, "{what} was refused for another reason: {said}");
}

#[test]
fn ssh_keygen_and_openssl() {
    let signed = signed();
    let signers = signed.stage.server.signers_file();
    let other = signed.other.with_extension("signers");
    let key = PublicKey::from_pem(&fs::read_to_string(&signed.other).unwrap()).unwrap();
    fs::write(&other, format!("tribunal {}\n", key.to_openssh())).unwrap();
    for stem in STEMS {
        assert_eq!(ssh_keygen(&signed.out(), stem, &signers), Says::Good);
        assert_eq!(ssh_keygen(&signed.out(), stem, &other), Says::Bad);
        assert_eq!(openssl(&signed.out(), stem, &signed.key), Says::Good);
        assert_eq!(openssl(&signed.out(), stem, &signed.other), Says::Bad);
    }
}

const NO_ROOTS: &str =
    r#"{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}"#;

/// Where Debian's cosign is.
fn cosign() -> Option<PathBuf> {
    let script = binaries::root().join("deploy/cosign.sh");
    let output = Command::new(script).output().unwrap();
    if !output.status.success() {
        loudly(&format!(
            "NOT TESTED WITH cosign: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
        return None;
    }
    let path = String::from_utf8(output.stdout).unwrap();
    Some(PathBuf::from(path.trim()))
}

#[test]
fn cosign_verifies_bundles_over_the_raw_commit() {
    let Some(cosign) = cosign() else { return };
    let signed = signed();
    let home = tempfile::tempdir().unwrap();
    // Nobody's roots are trusted, so none are fetched: the key is all there is.
    let roots = home.path().join("no-roots.json");
    fs::write(&roots, NO_ROOTS).unwrap();
    let verify = |key: &Path, bundle: &Path, kind: &str, blob: &Path| {
        Command::new(&cosign)
            .env("HOME", home.path())
            .args([
                "verify-blob-attestation",
                "--insecure-ignore-tlog",
                "--type",
                kind,
            ])
            .arg("--trusted-root")
            .arg(&roots)
            .arg("--key")
            .arg(key)
            .arg("--bundle")
            .arg(bundle)
            .arg(blob)
            .output()
            .unwrap()
    };
    let [head, parent] = &signed.blobs;
    let mut kinds = Vec::new();
    for stem in BUNDLES {
        let bundle = signed.bundle(stem);
        let kind = predicate_type(&bundle);
        accepts(&verify(&signed.key, &bundle, &kind, head), stem);
        let forged = signed.forged(stem, home.path());
        refuses(
            &verify(&signed.key, &forged, &kind, head),
            "a forged payload",
            &["signature"],
        );
        refuses(
            &verify(&signed.other, &bundle, &kind, head),
            "another key",
            &["signature"],
        );
        refuses(
            &verify(&signed.key, &bundle, &kind, parent),
            "another commit",
            &["digest"],
        );
        kinds.push(kind);
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(
        kinds.len(),
        BUNDLES.len(),
        "each verdict has a kind of its own"
    );
}

fn predicate_type(bundle: &Path) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let bundle: Value = serde_json::from_slice(&fs::read(bundle).unwrap()).unwrap();
    let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
    let statement: Value = serde_json::from_slice(&STANDARD.decode(payload).unwrap()).unwrap();
    statement["predicateType"].as_str().unwrap().to_owned()
}

/// What `verify` prints is there to be pasted: pasted, every line of it holds.
#[test]
fn the_lines_that_verify_prints_hold() {
    let Some(cosign) = cosign() else { return };
    let signed = signed();
    let keys = signed.stage.server.signers_file();
    let out = signed.out();
    let ran = Client::offline(signed.stage.workspace.path()).run(&[
        "verify",
        out.to_str().unwrap(),
        "--key",
        keys.to_str().unwrap(),
        "--repo",
        &signed.stage.registered.name,
    ]);
    ran.expect_code(0);
    let (_, lines) = ran
        .stdout
        .split_once("# The same without tribunal:\n")
        .unwrap();
    for tool in [
        "ssh-keygen -Y verify",
        "openssl pkeyutl -verify",
        "cosign verify-blob-attestation",
    ] {
        assert_eq!(lines.matches(tool).count(), 3, "{tool} in {lines}");
    }
    let run = |lines: &str| {
        let tools = format!(
            "{}:{}",
            cosign.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let home = tempfile::tempdir().unwrap();
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", lines])
            .current_dir(signed.stage.workspace.path())
            .env("PATH", tools)
            .env("HOME", home.path())
            .output()
            .unwrap()
    };
    accepts(&run(lines), lines);
    // They do look at the files, and at which of them it is: cosign takes a bundle's kind as it comes.
    let harmed = tempfile::tempdir().unwrap();
    let folder = harmed.path().to_str().unwrap();
    let lines = lines.replace(out.to_str().unwrap(), folder);
    let fresh = || {
        for entry in fs::read_dir(&out).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, harmed.path().join(path.file_name().unwrap())).unwrap();
        }
    };
    fresh();
    accepts(&run(&lines), &lines);
    for ending in [".json", ".json.sig", ".sigstore.json", ".txt"] {
        let from = harmed.path().join(format!("flake_lease{ending}"));
        fs::copy(from, harmed.path().join(format!("src_score{ending}"))).unwrap();
    }
    assert!(
        !run(&lines).status.success(),
        "a renamed verdict was accepted"
    );
    for (name, content) in [("src_score.txt", "FAIL\n"), ("flake_lease.json", "{}")] {
        fresh();
        fs::write(harmed.path().join(name), content).unwrap();
        assert!(
            !run(&lines).status.success(),
            "an edited {name} was accepted"
        );
    }
}

/// What `make verify` runs looks at the same things.
#[test]
fn the_script_of_make_verify() {
    let signed = signed();
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("honest");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(signed.out()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(&signed.key, work.path().join("key.pem")).unwrap();
    let signers = signed.stage.server.signers_file();
    fs::copy(signers, work.path().join("allowed_signers")).unwrap();
    fs::copy(&signed.blobs[0], work.path().join("honest.commit")).unwrap();
    let run = || {
        let script = binaries::root().join("deploy/verify.sh");
        Command::new(script).arg(&folder).output().unwrap()
    };
    accepts(&run(), "deploy/verify.sh");
    for ending in [".json", ".json.sig", ".sigstore.json", ".txt"] {
        let from = folder.join(format!("flake_lease{ending}"));
        fs::copy(from, folder.join(format!("src_score{ending}"))).unwrap();
    }
    refuses(
        &run(),
        "a renamed verdict",
        &["another verdict than its file's name says"],
    );
}

/// A folder beside the target folder with a tool of that name in it, installed once.
fn installed(name: &str, file: &str, commands: &[&[&str]]) -> Option<PathBuf> {
    let folder = binaries::cache().join(name);
    let wanted = fs::read(sources().join(file)).unwrap();
    let stamp = folder.join("installed");
    if fs::read(&stamp).ok().as_ref() == Some(&wanted) {
        return Some(folder);
    }
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(sources()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    for command in commands {
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(&folder)
            .output();
        let trouble = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        loudly(&format!(
            "NOT TESTED WITH {name}: {}: {trouble}",
            command.join(" ")
        ));
        return None;
    }
    fs::write(stamp, wanted).unwrap();
    Some(folder)
}

fn sources() -> PathBuf {
    binaries::root().join("tests/tests/verifiers")
}

#[test]
fn securesystemslib_of_pypi() {
    let install = [
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        "site",
    ];
    let install = [
        &["python3"],
        &install[..],
        &["--require-hashes", "-r", "requirements.txt"],
    ]
    .concat();
    let Some(folder) = installed("securesystemslib", "requirements.txt", &[&install]) else {
        return;
    };
    let signed = signed();
    let hex = |pem: &Path| {
        let key = PublicKey::from_pem(&fs::read_to_string(pem).unwrap()).unwrap();
        let path = pem.with_extension("hex");
        fs::write(&path, hex::encode(key.as_bytes())).unwrap();
        path
    };
    let (key, other) = (hex(&signed.key), hex(&signed.other));
    let verify = |key: &Path, bundle: &Path| {
        Command::new("python3")
            .arg(sources().join("verify.py"))
            .args([key, bundle])
            .env("PYTHONPATH", folder.join("site"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap()
    };
    let work = tempfile::tempdir().unwrap();
    for stem in BUNDLES {
        accepts(&verify(&key, &signed.bundle(stem)), stem);
        refuses(
            &verify(&other, &signed.bundle(stem)),
            "another key",
            &["VerificationError"],
        );
        let forged = signed.forged(stem, work.path());
        refuses(
            &verify(&key, &forged),
            "a forged payload",
            &["VerificationError"],
        );
    }
}

#[test]
fn sigstore_verify_of_npm() {
    let install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let Some(folder) = installed("sigstore-verify", "package-lock.json", &[&install]) else {
        return;
    };
    let signed = signed();
    let verify = |key: &Path, bundle: &Path| {
        Command::new("node")
            .arg(folder.join("verify.mjs"))
            .args([key, bundle])
            .output()
            .unwrap()
    };
    let work = tempfile::tempdir().unwrap();
    for stem in BUNDLES {
        accepts(&verify(&signed.key, &signed.bundle(stem)), stem);
        refuses(
            &verify(&signed.other, &signed.bundle(stem)),
            "another key",
            &["SIGNATURE_ERROR"],
        );
        let forged = signed.forged(stem, work.path());
        refuses(
            &verify(&signed.key, &forged),
            "a forged payload",
            &["SIGNATURE_ERROR"],
        );
    }
}
