//! A cassette from nothing to a green merge: recorded with five client libraries over http and https from a real server on
//! this machine, accepted by a maintainer's SSH key, replayed without that server, and missed when the product asks more.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tribunal_tests::client::report;
use tribunal_tests::{Ran, Repo, Server, Stage, binaries};

const CASE: &str = "tests/sealed/test_rates.py::test_all";
const CASSETTE: &str = "cassettes/test_rates__test_all.json";
const LEDGER: &str = "ci/cassette_ledger.json";
const SECRETS: [&str; 3] = ["hunter2", "abcdefgh-ABCDEFGH", "c2lnbmF0dXJlLW9mLXRoaXM"];
const CLIENTS: [&str; 5] = ["urllib", "curl", "requests", "httpx", "aiohttp"];

const TEST: &str = r#"
import json
import time
import urllib.request

import rates


def test_all():
    assert time.time() > 0
    for client in rates.CLIENTS:
        for site in ("http://plain.example.org", "https://api.example.org"):
            assert rates.usd(client, f"{site}/rates/{client}?day=1") == "1.08", (client, site)
    with urllib.request.urlopen("https://api.example.org/own", timeout=20) as answer:
        assert json.load(answer)["usd"] == "1.08"


def test_sum():
    assert sum([1, 2]) == 3
"#;

/// The service, for as long as this lives.
struct Service {
    child: Child,
    plain: u16,
    secure: u16,
    folder: tempfile::TempDir,
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (
            folder.path().join("cert.pem"),
            folder.path().join("key.pem"),
        );
        run(Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-days", "2", "-subj", "/CN=api.example.org"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-addext", "subjectAltName=DNS:api.example.org", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert));
        let mut child = Command::new("python3")
            .arg(binaries::root().join("tests/cassettes/server.py"))
            .args([&cert, &key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let mut ports = line.split_whitespace().map(|port| port.parse().unwrap());
        Self {
            child,
            plain: ports.next().unwrap(),
            secure: ports.next().unwrap(),
            folder,
        }
    }

    /// What it was asked.
    fn asked(&self) -> Vec<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.plain)).unwrap();
        stream
            .write_all(b"GET /asked HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    }

    fn flags(&self) -> Vec<String> {
        let ca = self.folder.path().join("cert.pem");
        [
            format!("--connect=plain.example.org=127.0.0.1:{}", self.plain),
            format!("--connect=api.example.org=127.0.0.1:{}", self.secure),
            format!("--ca={}", ca.display()),
            "--host=plain.example.org".to_owned(),
        ]
        .to_vec()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn image(server: &Server) -> String {
    let lock = File::create(binaries::cache().join("lock")).unwrap();
    lock.lock().unwrap();
    let requirements = binaries::root().join("images/python/tests/clients/requirements.txt");
    let requirements = requirements.to_str().unwrap();
    let built = server.admin(&["image", "build", "--requirements", requirements, "--json"]);
    let built: Value = serde_json::from_str(&built).unwrap();
    built["tag"].as_str().unwrap().to_owned()
}

fn stage(key: &Path) -> Stage<'static> {
    let server = Server::shared();
    run(Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(key));
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let repo = Repo::empty();
    // Two attempts: what is shown here is not a flake.
    let policy = format!(
        "version = 1\n[runs]\nreruns = 2\nheld_out = 1\n[runner]\nimage = \"{}\"\n",
        image(server)
    );
    repo.write("ci/tribunal.toml", policy);
    repo.write("ci/flake_leases.json", "{\"leases\": []}\n");
    let line = format!("maintainer@example.org namespaces=\"tribunal-cassette\" {public}");
    repo.write("ci/allowed_signers", line);
    repo.write(LEDGER, "{\"entries\": []}\n");
    repo.write("tests/sealed/test_rates.py", TEST);
    repo.write("tests/sealed/MANIFEST.txt", "tests/sealed/test_rates.py\n");
    let product = binaries::root().join("tests/cassettes/rates.py");
    repo.write("src/rates.py", fs::read(product).unwrap());
    repo.commit("rates");
    Stage::of(server, &repo)
}

fn record(stage: &Stage<'_>, flags: &[String]) -> Ran {
    let mut args = vec!["cassette".to_owned(), "record".to_owned(), CASE.to_owned()];
    args.extend_from_slice(flags);
    stage.maintainer().run(&args)
}

#[test]
fn recorded_accepted_replayed_and_missed() {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("id");
    let stage = stage(&key);
    let service = Service::start();
    let mut flags = service.flags();

    // Nobody is asked who was not named: the case is code that nobody has to trust.
    let refused = record(&stage, &flags);
    refused.expect_code(64);
    assert!(
        refused.stderr.contains("--host api.example.org"),
        "{}",
        refused.stderr
    );
    assert!(
        !service
            .asked()
            .iter()
            .any(|asked| asked.contains("api.example.org"))
    );
    assert!(!stage.workspace.path().join(CASSETTE).exists());

    flags.push("--host=api.example.org".to_owned());
    record(&stage, &flags).expect_code(0);
    let asked = service.asked();
    let read = |path: &str| fs::read_to_string(stage.workspace.path().join(path)).unwrap();
    let cassette: Value = serde_json::from_str(&read(CASSETTE)).unwrap();
    let http = cassette["http"].as_array().unwrap();
    let of = |host: &str| http.iter().filter(|one| one["host"] == host).count();
    assert_eq!(
        (of("plain.example.org"), of("api.example.org")),
        (5, 6),
        "{cassette}"
    );
    for client in CLIENTS {
        let path = format!("/rates/{client}");
        assert_eq!(
            http.iter()
                .filter(|one| one["path"] == path.as_str())
                .count(),
            2,
            "{client}"
        );
    }
    assert!(
        http.iter()
            .all(|one| one["query"] == "day=1" || one["path"] == "/own")
    );
    assert_eq!(cassette["test"], CASE);
    assert!(
        cassette["clock"].is_string(),
        "it looked at the clock: {cassette}"
    );
    let ledger: Value = serde_json::from_str(&read(LEDGER)).unwrap();
    assert_eq!(ledger["entries"][0]["path"], CASSETTE);
    assert_eq!(ledger["entries"][0]["accepted_by"], "");
    let bodies = stage.workspace.path().join("cassettes/bodies");
    let mut written = read(CASSETTE) + &read(LEDGER);
    for body in fs::read_dir(bodies).unwrap() {
        written += &fs::read_to_string(body.unwrap().path()).unwrap();
    }
    for secret in SECRETS {
        assert!(!written.contains(secret), "{secret} was written");
    }
    assert!(written.contains("REDACTED") && !written.contains("x-request-id"));

    // A draft is not accepted.
    let offline = stage.maintainer();
    let checked = offline.run(&["cassette", "check"]);
    checked.expect_code(1);
    assert!(
        checked.stdout.contains("cassette-unaccepted"),
        "{}",
        checked.stdout
    );

    // Accepted by whom base says may.
    let accept = [
        "cassette",
        "accept",
        CASSETTE,
        "--as",
        "maintainer@example.org",
        "--key",
        key.to_str().unwrap(),
    ];
    offline.run(&accept).expect_code(0);
    offline.run(&["cassette", "check"]).expect_code(0);
    stage.workspace.commit("accepted");
    stage.score(&stage.agent(), "accepted").expect_code(0);
    stage.expect("accepted", ["PASS", "PASS", "PASS"]);
    assert_eq!(service.asked(), asked, "a score asks nobody");

    // One question more than the record answers.
    let product = read("src/rates.py").replace(
        "json.loads(CLIENTS[client](url))",
        "json.loads(CLIENTS[client](url + \"&x=2\"))",
    );
    stage.workspace.write("src/rates.py", product);
    stage.workspace.commit("asks for more");
    let missed = stage.score(&stage.agent(), "missed");
    missed.expect_code(1);
    assert!(missed.stdout.contains("cassette-miss"), "{}", missed.stdout);
    let told = report(&stage.out("missed")).to_string();
    assert!(
        told.contains("http:GET plain.example.org/rates/urllib?day=1&x=2"),
        "{told}"
    );
    assert_eq!(service.asked(), asked);
}

#[test]
fn who_may_not_record() {
    let stage = Stage::small(Server::shared());
    for client in [stage.agent(), stage.ci()] {
        client
            .run(&["cassette", "record", "tests/sealed/test_a.py::test_x"])
            .expect_code(77);
    }
}
