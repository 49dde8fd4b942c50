//! Uploads that are made to hurt: each is refused with one clear error, within its limits, and leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Cursor, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tonic::Status;
use tribunal_tests::leftovers::{Memory, descendants, entries};
use tribunal_tests::wire::{CHUNK, code};
use tribunal_tests::{Repo, Server, Stage, Wire, until};

const MIB: u64 = 1 << 20;
/// The indexer's limit by default, and what it holds of our own.
const INDEXER: u64 = 1100 * MIB;
/// An upload passes through the server in a few chunks; it never holds one.
const SERVER: u64 = 256 * MIB;
/// The ingest's own limit by default.
const TIME: Duration = Duration::from_secs(120);

/// Uploads of one file of tests one after another: what a quarantine holds is counted.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the bundles that `bundles.py` makes.
fn made(kind: &str) -> (TempDir, File) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(kind);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/uploads/bundles.py");
    let status = Command::new("python3")
        .args([script, kind])
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    (folder, File::open(file).unwrap())
}

/// The server while something is sent to it: how long that took, how much memory, what it left.
struct Ward<'a> {
    stage: Stage<'a>,
    memory: Memory,
    begun: Instant,
}

impl<'a> Ward<'a> {
    fn of(server: &'a Server) -> Self {
        Self {
            stage: Stage::small(server),
            memory: Memory::of(server),
            begun: Instant::now(),
        }
    }

    fn wire(&self) -> Wire {
        Wire::new(
            self.stage.server,
            &self.stage.registered,
            &self.stage.registered.agent,
        )
    }

    /// Send a bundle that `bundles.py` makes; how it is refused.
    #[track_caller]
    fn refusal(&mut self, kind: &str) -> Status {
        let (_folder, file) = made(kind);
        let size = file.metadata().unwrap().len();
        self.begun = Instant::now();
        self.wire().upload(size, file).unwrap_err()
    }

    /// The code, one message that a person can read, the limits kept, nothing left, and the server goes on.
    #[track_caller]
    fn refused(self, status: &Status, wanted: &str, within: Duration) {
        let took = self.begun.elapsed();
        assert!(took < within, "took {took:?}");
        assert_eq!(code(status), wanted, "{status:?}");
        let message = status.message();
        assert!(!message.is_empty() && message.len() < 1100, "{message}");
        assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
        self.unharmed();
    }

    #[track_caller]
    fn unharmed(self) {
        let server = self.stage.server;
        let held = self.memory.server();
        assert!(held < SERVER, "the server held {} MiB", held / MIB);
        let held = self.memory.children();
        assert!(held < INDEXER, "a child held {} MiB", held / MIB);
        let scratch = server.data().join("scratch");
        assert_eq!(entries(&scratch), [""; 0], "the quarantine is not gone");
        until("no process is left", || {
            descendants(server.pid()).is_empty()
        });
        let sent = server
            .data()
            .join("uploads")
            .join(&self.stage.registered.name);
        let kept: Vec<_> = walk(&sent);
        assert!(kept.is_empty(), "kept of a refused upload: {kept:?}");
        self.stage.honest_patch("after the attack");
        self.stage
            .score(&self.stage.agent(), "after")
            .expect_code(0);
    }
}

/// Every file under a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn a_delta_bomb_is_too_large() {
    let _one = alone();
    let mut ward = Ward::of(Server::shared());
    let status = ward.refusal("delta_bomb");
    ward.refused(&status, "too-large", Duration::from_secs(30));
}

#[test]
fn a_flood_of_deltas_ends_with_its_time() {
    let _one = alone();
    let server = Server::with_config("[uploads]\ntime = \"4s\"\n");
    let mut ward = Ward::of(&server);
    let status = ward.refusal("delta_flood");
    ward.refused(&status, "too-large", Duration::from_secs(20));
    server.shutdown();
}

#[test]
fn a_blob_of_200_megabytes_is_too_large() {
    let _one = alone();
    let mut ward = Ward::of(Server::shared());
    let status = ward.refusal("large_blob");
    assert!(status.message().contains("200000000"), "{status:?}");
    ward.refused(&status, "too-large", TIME);
}

/// Small objects, so the upload itself is in order; what is too much is the tree that it asks to have run.
#[test]
fn a_hundred_thousand_files_are_too_many() {
    let _one = alone();
    let ward = Ward::of(Server::shared());
    let head = a_commit_of(100_000, &ward.stage.workspace);
    let agent = ward.stage.agent();
    let ran = agent.run(&["score", "--head", &head, "--json"]);
    ran.expect_code(65);
    let last = ran.events().pop().unwrap();
    assert_eq!(last["code"], "too-large", "{last}");
    assert!(ward.begun.elapsed() < TIME, "{:?}", ward.begun.elapsed());
    assert!(
        ward.memory.server() < 2 * SERVER,
        "{}",
        ward.memory.server()
    );
    assert!(
        ward.memory.children() < INDEXER,
        "{}",
        ward.memory.children()
    );
    assert_eq!(entries(&ward.stage.server.data().join("scratch")), [""; 0]);
    ward.stage.honest_patch("after the attack");
    ward.stage.score(&agent, "after").expect_code(0);
}

/// A commit on top of the workspace's HEAD with so many different files under src.
fn a_commit_of(files: usize, workspace: &Repo) -> String {
    let mut stream = format!(
        "commit refs/heads/many\ncommitter test <test@example.invalid> 1767225600 +0000\ndata 5\nmany\n\nfrom {}\n",
        workspace.head()
    );
    for number in 0..files {
        let text = format!("X = {number}\n");
        let path = format!("src/generated/m{:03}/f{number}.py", number / 500);
        let _ = write!(
            stream,
            "M 100644 inline {path}\ndata {}\n{text}\n",
            text.len()
        );
    }
    let mut import = tribunal_tests::repo::git(workspace.path())
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    stdin.write_all(stream.as_bytes()).unwrap();
    drop(stdin);
    assert!(import.wait().unwrap().success());
    workspace.git(&["rev-parse", "refs/heads/many"])
}

#[test]
fn a_gibibyte_is_refused_by_its_size_before_it_is_sent() {
    let _one = alone();
    let mut ward = Ward::of(Server::shared());
    ward.begun = Instant::now();
    let status = ward
        .wire()
        .upload(1 << 30, Cursor::new(b"# v2 git bundle\n"))
        .unwrap_err();
    ward.refused(&status, "too-large", Duration::from_secs(10));
}

#[test]
fn a_gibibyte_that_stops_half_way_is_incomplete() {
    let _one = alone();
    let server = Server::with_config("[uploads]\nbytes = \"2GiB\"\n");
    let mut ward = Ward::of(&server);
    let (_folder, mut file) = made("half_a_stream");
    assert!(file.metadata().unwrap().len() > 512 * MIB);
    // The stream ends politely, but early.
    ward.begun = Instant::now();
    let status = ward
        .wire()
        .upload(1 << 30, file.try_clone().unwrap())
        .unwrap_err();
    assert!(
        status.message().contains("of 1073741824 bytes"),
        "{status:?}"
    );
    ward.refused(&status, "upload-incomplete", TIME);
    // And the connection goes without a word.
    let ward = Ward::of(&server);
    std::io::Seek::rewind(&mut file).unwrap();
    let scratch = server.data().join("scratch");
    ward.wire()
        .upload_and_vanish(1 << 30, file.take(40 * CHUNK as u64), || {
            until("a quarantine", || !entries(&scratch).is_empty());
            until("the indexer", || !descendants(server.pid()).is_empty());
        });
    until("the quarantine is gone", || entries(&scratch).is_empty());
    ward.unharmed();
    server.shutdown();
}

macro_rules! refusals {
    ($($kind:ident => $code:literal),+ $(,)?) => {
        $(#[test]
        fn $kind() {
            let _one = alone();
            let mut ward = Ward::of(Server::shared());
            let status = ward.refusal(stringify!($kind));
            ward.refused(&status, $code, Duration::from_secs(20));
        })+
    };
}

refusals! {
    missing_prerequisite => "missing-prerequisite",
    missing_tree => "missing-prerequisite",
    garbage => "invalid-argument",
    garbage_pack => "bad-object",
    cut_pack => "upload-incomplete",
    names_a_tag => "not-a-commit",
    names_a_tree => "not-a-commit",
    names_a_blob => "not-a-commit",
    no_author => "bad-object",
    dot_git => "bad-object",
    twice_the_same_name => "bad-object",
}

/// What a refused upload holds is not there afterwards, whoever asks.
#[test]
fn a_commit_of_a_refused_upload_is_unknown() {
    let _one = alone();
    let ward = Ward::of(Server::shared());
    let (_folder, mut file) = made("dot_git");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    let head = String::from_utf8_lossy(&bytes[16..56]).into_owned();
    let wire = ward.wire();
    wire.upload(bytes.len() as u64, Cursor::new(bytes))
        .unwrap_err();
    let status = wire.create(wire.asking(&head, "")).unwrap_err();
    assert_eq!(code(&status), "unknown-commit", "{status:?}");
    ward.unharmed();
}
