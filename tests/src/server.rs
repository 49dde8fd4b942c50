//! A real server process with a data folder of its own, on a port of its own.
//!
//! It is started behind a small shell that waits on a pipe held by this process: however a test ends, the server gets
//! its SIGTERM and drains. A server that a test owns must be shut down by it; one that is dropped instead is a panic.

use crate::binaries;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tribunal_server::store::{SqliteStore, Store as _};

/// Starts the server in the background, tells its pid, leaves stdout to it alone (so that its death is the end of it),
/// ends it politely when stdin closes, and passes its status on. What stdin says before it closes is done at the end: a
/// shared server has no other end than the process, and nobody else would clean up after it.
const KEEPER: &str = r#""$@" & pid=$!; echo "pid $pid"; exec >&-
while read -r line; do last=$line; done
kill -TERM "$pid" 2>/dev/null; wait "$pid"; status=$?; eval "$last"; exit $status"#;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Uploads and scores.
    Agent,
    /// Reads verdicts.
    Ci,
    /// Owns the oracle.
    Maintainer,
    /// Runs the server.
    Operator,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Ci => "ci",
            Self::Maintainer => "maintainer",
            Self::Operator => "operator",
        }
    }
}

/// A repository as it is registered, with a token for each role.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Its name on the server.
    pub name: String,
    /// Of role agent, for this repository.
    pub agent: String,
    /// Of role ci.
    pub ci: String,
    /// Of role maintainer.
    pub maintainer: String,
}

/// A data folder, and the process that serves it while it is up.
pub struct Server {
    folder: TempDir,
    up: Mutex<Option<Up>>,
    /// Where it listened last: one that is started again is found where it was.
    address: Mutex<Option<String>>,
    config: PathBuf,
    /// What the process sees beside this one's own environment.
    environment: Vec<(&'static str, String)>,
    kind: Kind,
}

struct Up {
    keeper: Child,
    stdin: Option<ChildStdin>,
    pid: u32,
    address: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One test's: it must be shut down.
    Owned,
    /// A whole test binary's: it ends with the process.
    Shared,
}

impl Server {
    /// The server that all tests of this binary share. Use a repository of your own.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = Self::started(Kind::Shared, None, Vec::new());
            // What statics hold is never dropped; so whatever tests keep for a while lies where the server's end removes it.
            let work = server.folder.path().join("work");
            fs::create_dir_all(&work).unwrap();
            let _ = tempfile::env::override_temp_dir(&work);
            server
        })
    }

    /// A server of this test's own, with a configuration file of this content.
    #[must_use]
    pub fn with_config(config: &str) -> Self {
        Self::with_environment(config, Vec::new())
    }

    /// The same, where the process sees these variables.
    #[must_use]
    pub fn with_environment(config: &str, environment: Vec<(&'static str, String)>) -> Self {
        Self::started(Kind::Owned, Some(config), environment)
    }

    /// A server of this test's own.
    #[must_use]
    pub fn own() -> Self {
        Self::started(Kind::Owned, None, Vec::new())
    }

    fn started(kind: Kind, config: Option<&str>, environment: Vec<(&'static str, String)>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tribunal-server-")
            .tempdir()
            .unwrap();
        // Rooms that are there for no score would be found where tests count rooms.
        let mut text = config.unwrap_or_default().to_owned();
        if !text.contains("[oracle]") {
            text.push_str("\n[oracle]\nplant = \"asked\"\n");
        }
        if !text.contains("[rooms]") {
            text.push_str("\n[rooms]\nready = 0\n");
        }
        let config = folder.path().join("server.toml");
        fs::write(&config, text).unwrap();
        let server = Self {
            folder,
            up: Mutex::new(None),
            address: Mutex::new(None),
            config,
            environment,
            kind,
        };
        server.admin(&["init"]);
        // Images are dear and depend on content only: all servers of a target folder share them.
        let images = binaries::cache().join("images");
        fs::create_dir_all(&images).unwrap();
        let own = server.data().join("images");
        let _ = fs::remove_dir_all(&own);
        std::os::unix::fs::symlink(&images, own).unwrap();
        server.start();
        server
    }

    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// What its containers and volumes are labelled with.
    #[must_use]
    pub fn instance(&self) -> String {
        let store = SqliteStore::open(&self.data()).unwrap();
        store.meta("instance").unwrap().unwrap()
    }

    /// Where it puts what it needs for a moment.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        let up = self.up.lock().unwrap();
        let up = up.as_ref().unwrap_or_else(|| panic!("the server is down"));
        format!("http://{}", up.address)
    }

    /// The server process itself.
    #[must_use]
    pub fn pid(&self) -> u32 {
        let up = self.up.lock().unwrap();
        up.as_ref()
            .unwrap_or_else(|| panic!("the server is down"))
            .pid
    }

    /// Everything it logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// Start it and wait until it is ready to score.
    pub fn start(&self) {
        let mut up = self.up.lock().unwrap();
        assert!(up.is_none(), "the server is up already");
        // The first one builds the image; the others wait for it here and find it.
        let lock = File::create(binaries::cache().join("lock")).unwrap();
        lock.lock().unwrap();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())
            .unwrap();
        let mut listen = self.address.lock().unwrap();
        fs::create_dir_all(self.temporary()).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", KEEPER, "keeper"])
            .arg(binaries::server())
            .args(["serve", "--listen"])
            .arg(listen.as_deref().unwrap_or("127.0.0.1:0"))
            .arg("--data")
            .arg(self.data())
            .env("TMPDIR", self.temporary())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        command.arg("--config").arg(&self.config);
        let mut keeper = command.spawn().unwrap();
        let mut stdin = keeper.stdin.take();
        let mut lines = BufReader::new(keeper.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let pid = lines
            .next()
            .unwrap()
            .trim_start_matches("pid ")
            .parse()
            .unwrap();
        let address = lines.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
        let Some(address) = address else {
            panic!("the server did not start:\n{}", self.log());
        };
        // Whatever else it prints must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        *listen = Some(address.clone());
        if self.kind == Kind::Shared {
            let mut line = self.cleaning();
            line.push('\n');
            stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        }
        *up = Some(Up {
            keeper,
            stdin,
            pid,
            address,
        });
    }

    /// Send it a signal.
    pub fn signal(&self, name: &str) {
        kill(self.pid(), name);
    }

    /// Its configuration file.
    #[must_use]
    pub fn config_file(&self) -> &Path {
        &self.config
    }

    /// Its configuration file has this content from now on; whoever reads it is told otherwise.
    pub fn reconfigure(&self, config: &str) {
        fs::write(&self.config, config).unwrap();
    }

    /// Have it read its configuration and certificates again; the line of the log that says what came of it.
    #[must_use]
    pub fn reload(&self) -> String {
        let told = || -> Vec<String> {
            let log = self.log();
            let lines = log.lines().filter(|line| {
                line.contains("were read again") || line.contains("nothing was reloaded")
            });
            lines.map(str::to_owned).collect()
        };
        let before = told().len();
        self.signal("HUP");
        crate::until("it was reloaded", || told().len() > before);
        told().pop().unwrap()
    }

    /// Whether the process runs: not once it has ended, whether or not somebody has asked for its status.
    #[must_use]
    pub fn runs(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| {
            let state = rest.trim_start().chars().next();
            state.is_some_and(|state| state != 'Z')
        })
    }

    /// End it politely; it must end by itself, with status 0.
    pub fn shutdown(&self) {
        let mut up = self.taken();
        drop(up.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            if let Some(status) = up.keeper.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                kill(up.pid, "KILL");
                panic!("the server did not shut down:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(
            status.success(),
            "the server ended with {status}:\n{}",
            self.log()
        );
    }

    /// `kill -9`: nothing of it runs any more when this returns.
    pub fn kill(&self) {
        let mut up = self.taken();
        kill(up.pid, "KILL");
        drop(up.stdin.take());
        up.keeper.wait().unwrap();
    }

    fn taken(&self) -> Up {
        let up = self.up.lock().unwrap().take();
        up.unwrap_or_else(|| panic!("the server is down"))
    }

    /// Run an administrative command, which must succeed; its stdout.
    pub fn admin(&self, args: &[&str]) -> String {
        let output = self.try_admin(args);
        assert!(
            output.status.success(),
            "tribunal-server {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Run an administrative command, whatever comes of it.
    pub fn try_admin(&self, args: &[&str]) -> Output {
        Command::new(binaries::server())
            .args(args)
            .arg("--data")
            .arg(self.data())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// A new token, for one repository or for all.
    #[must_use]
    pub fn token(&self, role: Role, repo: Option<&str>) -> String {
        let mut args = vec!["token", "new", "--role", role.name()];
        if let Some(repo) = repo {
            args.extend(["--repo", repo]);
        }
        self.admin(&args).lines().last().unwrap().to_owned()
    }

    /// Register this remote under a name of its own, its branch `main` protected.
    #[must_use]
    pub fn register(&self, remote: &Path) -> Registered {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("repo-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.register_as(&name, remote)
    }

    /// The same under this name.
    #[must_use]
    pub fn register_as(&self, name: &str, remote: &Path) -> Registered {
        let remote = remote.to_str().unwrap();
        self.admin(&[
            "repo",
            "add",
            name,
            "--remote",
            remote,
            "--protect",
            "main",
            "--quick",
        ]);
        Registered {
            agent: self.token(Role::Agent, Some(name)),
            ci: self.token(Role::Ci, Some(name)),
            maintainer: self.token(Role::Maintainer, Some(name)),
            name: name.to_owned(),
        }
    }

    /// All its public keys with their dates, as OpenSSH wants them, in a file that lives as long as the server.
    #[must_use]
    pub fn signers_file(&self) -> PathBuf {
        let path = self.folder.path().join("allowed_signers");
        let text = self.admin(&["key", "show", "--format", "allowed-signers"]);
        fs::write(&path, text).unwrap();
        path
    }

    /// Its public key as PEM, in a file that lives as long as the server.
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        let path = self.folder.path().join("key.pem");
        fs::write(&path, self.admin(&["key", "show", "--format", "pem"])).unwrap();
        path
    }
}

impl Server {
    /// A shell's line that removes what outlives the server on purpose: its folder, and the sealed trees.
    fn cleaning(&self) -> String {
        let store = SqliteStore::open(&self.data()).ok();
        let instance = store.and_then(|store| store.meta("instance").ok().flatten());
        // Without a name there is nothing in the engine.
        let label = format!("label=tribunal.instance={}", instance.unwrap_or_default());
        format!(
            "for v in $(docker volume ls -q --filter {label}); do docker volume rm $v; done >/dev/null; rm -rf '{}'",
            self.folder.path().display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let up = self.up.get_mut().map(Option::take);
        if let Ok(Some(mut up)) = up {
            drop(up.stdin.take());
            let _ = up.keeper.wait();
            if self.kind == Kind::Owned && !std::thread::panicking() {
                panic!("a server that a test owns is shut down by it");
            }
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!(
                "the server's last words:\n{}",
                lines[lines.len().saturating_sub(40)..].join("\n")
            );
        }
        let _ = Command::new("sh").arg("-c").arg(self.cleaning()).status();
    }
}

/// Send a signal to a process that we started.
fn kill(pid: u32, signal: &str) {
    let _ = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status();
}
