//! A server under a service manager: what it tells it, the key it is handed, and the unit that says what it may do.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tribunal_tests::client::ended;
use tribunal_tests::{Server, Stage, binaries, until};

/// The manager's end of `NOTIFY_SOCKET`.
struct Manager {
    socket: UnixDatagram,
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let patience = Duration::from_secs(20);
        socket.set_read_timeout(Some(patience)).unwrap();
        Self {
            socket,
            _folder: folder,
            path,
        }
    }

    fn address(&self) -> String {
        self.path.display().to_string()
    }

    fn next(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        // A call with a time limit is not taken up again by itself where the process was stopped for a moment.
        let length = loop {
            match self.socket.recv(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                heard => break heard.unwrap(),
            }
        };
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The next message that has this line; what came before it is dropped.
    fn next_with(&self, line: &str) -> Vec<String> {
        loop {
            let message = self.next();
            if message.iter().any(|l| l == line) {
                return message;
            }
        }
    }
}

fn value<'a>(message: &'a [String], name: &str) -> &'a str {
    let found = message
        .iter()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
    found
        .ok_or_else(|| format!("no {name} in {message:?}"))
        .unwrap()
}

/// Microseconds since the machine started, as the kernel counts them for everybody.
fn uptime() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    (seconds * 1e6) as u64
}

#[test]
fn a_service_manager_hears_that_it_is_ready_lives_reloads_and_leaves() {
    let manager = Manager::new();
    let server = Server::with_environment(
        "[queue]\ndrain = \"3s\"\n",
        vec![
            ("NOTIFY_SOCKET", manager.address()),
            ("WATCHDOG_USEC", "2000000".to_owned()),
        ],
    );
    let ready = manager.next_with("READY=1");
    let address = server.url().replace("http://", "");
    assert!(value(&ready, "STATUS").ends_with(&address), "{ready:?}");
    // Twice in its patience of two seconds, each with what goes on.
    let begin = Instant::now();
    for _ in 0..4 {
        let beat = manager.next_with("WATCHDOG=1");
        assert_eq!(
            value(&beat, "STATUS"),
            "0 scores run, 0 wait, 0 messages are owed"
        );
    }
    let took = begin.elapsed().as_secs_f32();
    assert!((2.0..6.0).contains(&took), "four beats took {took} s");

    let before = uptime();
    assert!(server.reload().contains("were read again"));
    let reloading = manager.next_with("RELOADING=1");
    let since: u64 = value(&reloading, "MONOTONIC_USEC").parse().unwrap();
    assert!(
        since + 20_000 >= before && since <= uptime() + 20_000,
        "{since}"
    );
    let again = manager.next_with("READY=1");
    assert_eq!(value(&again, "STATUS"), "the configuration was read again");
    server.reconfigure("log = 5\n");
    assert!(server.reload().contains("nothing was reloaded"));
    manager.next_with("RELOADING=1");
    let still = manager.next_with("READY=1");
    assert!(value(&still, "STATUS").starts_with("nothing was reloaded"));

    server.signal("TERM");
    let leaving = manager.next_with("STOPPING=1");
    assert_eq!(value(&leaving, "EXTEND_TIMEOUT_USEC"), "33000000");
    until("it has left", || !server.runs());
    server.shutdown();
}

#[test]
fn a_server_that_stands_still_gives_no_sign_of_life_and_a_busy_one_does() {
    let manager = Manager::new();
    let server = Server::with_environment(
        "",
        vec![
            ("NOTIFY_SOCKET", manager.address()),
            ("WATCHDOG_USEC", "1000000".to_owned()),
        ],
    );
    let stage = Stage::small(&server);
    stage.honest_patch("watched");
    let client = stage.agent().spawn(&["score"]);
    while !value(&manager.next_with("WATCHDOG=1"), "STATUS").starts_with("1 scores run") {}
    // Heard to its end: what nobody reads is lost.
    while !value(&manager.next_with("WATCHDOG=1"), "STATUS").starts_with("0 scores run") {}
    assert_eq!(ended(client).code, 0);
    manager.socket.set_nonblocking(true).unwrap();
    let mut bytes = [0; 4096];
    server.signal("STOP");
    until("the last beat has come", || {
        while manager.socket.recv(&mut bytes).is_ok() {}
        std::thread::sleep(Duration::from_millis(1500));
        manager.socket.recv(&mut bytes).is_err()
    });
    server.signal("CONT");
    manager.socket.set_nonblocking(false).unwrap();
    manager.next_with("WATCHDOG=1");
    server.shutdown();
}

#[test]
fn a_manager_that_has_stopped_reading_holds_up_nothing() {
    let manager = Manager::new();
    let server = Server::with_environment(
        "",
        vec![
            ("NOTIFY_SOCKET", manager.address()),
            ("WATCHDOG_USEC", "2000".to_owned()),
        ],
    );
    // Its queue is full, whatever this machine's limit is.
    until("it is full", || {
        server.log().contains("the service manager was not told")
    });
    let stage = Stage::small(&server);
    stage.honest_patch("unheard");
    stage.score(&stage.agent(), "unheard").expect_code(0);
    server.shutdown();
}

fn openssl_key(file: &Path) {
    let status = Command::new("openssl")
        .args(["genpkey", "-algorithm", "ed25519", "-out"])
        .arg(file)
        .status();
    assert!(status.unwrap().success());
}

fn public_half(file: &Path) -> String {
    let output = Command::new("openssl")
        .args(["pkey", "-pubout", "-in"])
        .arg(file)
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_key_that_the_manager_hands_over_signs_and_is_nowhere_in_the_data() {
    let credentials = tempfile::tempdir().unwrap();
    let key = credentials.path().join("signing-key");
    openssl_key(&key);
    let folder = credentials.path().display().to_string();
    let server = Server::with_environment(
        "[signing]\nkey = \"credential:signing-key\"\n",
        vec![("CREDENTIALS_DIRECTORY", folder.clone())],
    );
    let public = public_half(&key);
    let config = server.config_file().to_str().unwrap();
    let show = ["key", "show", "--format", "pem", "--config", config];
    // Whoever has no credentials is told what the store knows.
    assert_eq!(server.admin(&show), public);
    let stage = Stage::small(&server);
    stage.honest_patch("signed");
    let (own, out) = (credentials.path().join("key.pem"), stage.out("signed"));
    std::fs::write(&own, &public).unwrap();
    let (own, out) = (own.to_str().unwrap(), out.to_str().unwrap());
    let agent = stage.agent();
    agent.run(&["score", "--out", out]).expect_code(0);
    agent.run(&["join", out, "--key", own]).expect_code(0);

    let said = |output: Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let rotated = server.try_admin(&["key", "rotate", "--config", config]);
    assert_eq!(rotated.status.code(), Some(1));
    assert!(said(rotated).contains("credential:signing-key of the configuration signs"));
    // The manager brings another one: from the next start on it signs, and the first one's time is over.
    std::fs::rename(&key, credentials.path().join("first")).unwrap();
    openssl_key(&key);
    server.shutdown();
    server.start();
    let second = public_half(&key);
    assert_eq!(server.admin(&show), second);
    let listed = server.admin(&["key", "show", "--json", "--config", config]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let lasting: Vec<&str> = listed["keys"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["valid_before"].is_null())
        .map(|key| key["pem"].as_str().unwrap())
        .collect();
    assert_eq!(lasting, [second.as_str()]);
    server.shutdown();
    let secret = std::fs::read_to_string(&key).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    let found = Command::new("grep")
        .args(["-rlF", secret])
        .arg(server.data())
        .output();
    assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "");
    assert!(!server.log().contains(secret));

    let without = |folder: &str| {
        Command::new(binaries::server())
            .args(["serve", "--config", config, "--data"])
            .arg(server.data())
            .env("CREDENTIALS_DIRECTORY", folder)
            .output()
            .unwrap()
    };
    for folder in ["", "/nonexistent"] {
        let output = without(folder);
        assert_eq!(output.status.code(), Some(64));
        assert!(said(output).contains("signing.key: credential:signing-key cannot be read"));
    }
    std::fs::write(&key, "no key").unwrap();
    let output = without(&folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(output).contains("holds no PKCS#8 PEM ed25519 key"));
}

fn lint(unit: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd/lint.sh");
    let mut command = Command::new(script);
    command.arg(unit).arg(binaries::server()).output().unwrap()
}

#[test]
fn the_unit_parses_and_exposes_little() {
    let unit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd/tribunal-server.service");
    let holds = lint(&unit);
    let said = String::from_utf8_lossy(&holds.stderr);
    assert!(holds.status.success(), "{said}");
    // The lint itself sees a unit that holds less back, and one that does not parse.
    let text = std::fs::read_to_string(&unit).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let worse = folder.path().join("tribunal-server.service");
    for (from, to) in [
        ("CapabilityBoundingSet=\n", ""),
        ("WatchdogSec=30s", "WatchdogSec=soon"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&worse, text.replace(from, to)).unwrap();
        assert!(!lint(&worse).status.success(), "{from}");
    }
}
