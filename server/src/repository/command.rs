//! One run of git: an environment made from nothing, a process group of its own, limits, a deadline.
//!
//! Arguments are never interpolated into a shell. Whatever git starts ends with it.

use super::{RepositoryError, disk};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Where git, prlimit and ssh are looked for.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Nothing of the server's own environment reaches git; nothing of the machine's or a user's configuration either.
const ENVIRONMENT: [(&str, &str); 17] = [
    ("PATH", PATH),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
];

/// Hooks and upkeep off; packs mapped in windows small enough for a limited address space.
const CONFIGURATION: [&str; 12] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.commitGraph=false",
    "core.packedGitWindowSize=16m",
    "core.packedGitLimit=256m",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.graftFileDeprecated=false",
    "pack.threads=1",
    "transfer.bundleURI=false",
];

/// What is kept of either output, unless a caller needs more.
const OUTPUT_BYTES: u64 = 256 << 10;

/// What one process may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessLimits {
    /// Bytes of address space.
    pub(super) memory: u64,
    /// Seconds of CPU.
    pub(super) cpu_seconds: u64,
    /// Bytes of any file it writes.
    pub(super) file_bytes: u64,
}

/// A git command in the making.
#[derive(Debug)]
pub(super) struct Git {
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    limits: Option<ProcessLimits>,
    deadline: Duration,
    output_bytes: u64,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that we did not send.
    Killed(i32),
    /// By us, when its time was over.
    Expired,
}

/// What it left behind.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Git {
    /// `git VERB` in this bare repository.
    pub(super) fn new(directory: &Path, verb: &str) -> Self {
        let mut git = Self::outside(verb);
        git.environment
            .push(("GIT_DIR".into(), directory.as_os_str().to_owned()));
        git
    }

    /// `git VERB` in no repository.
    pub(super) fn outside(verb: &str) -> Self {
        let pairs = CONFIGURATION.iter();
        let mut args: Vec<OsString> = pairs.flat_map(|pair| ["-c".into(), pair.into()]).collect();
        args.push(verb.into());
        let environment = ENVIRONMENT.iter();
        Self {
            args,
            environment: environment.map(|(k, v)| (k.into(), v.into())).collect(),
            limits: None,
            deadline: Duration::from_secs(60),
            output_bytes: OUTPUT_BYTES,
        }
    }

    pub(super) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(super) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.args.extend(args);
        self
    }

    /// Later ones win.
    pub(super) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.environment.push(pair);
        self
    }

    /// Objects are written here; the directory's own `info/alternates` says where else they are read from.
    pub(super) fn objects(self, directory: &Path) -> Self {
        self.env("GIT_OBJECT_DIRECTORY", directory)
    }

    pub(super) fn limits(mut self, limits: ProcessLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    pub(super) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(super) fn output_bytes(mut self, bytes: u64) -> Self {
        self.output_bytes = bytes;
        self
    }

    /// Run it without input.
    pub(super) fn run(self) -> Result<Finished, RepositoryError> {
        self.run_fed(|_| ()).map(|((), finished)| finished)
    }

    /// Run it, and give what `feed` writes to its standard input. When its time is over it is killed, so that a write
    /// fails; a read inside `feed` has to have a time-out of its own.
    pub(super) fn run_fed<T>(
        self,
        feed: impl FnOnce(&mut dyn Write) -> T,
    ) -> Result<(T, Finished), RepositoryError> {
        let (output_bytes, deadline) = (self.output_bytes, self.deadline);
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| disk("start git", &error))?;
        let group = Pid::from_child(&child);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (over, watch) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let out = scope.spawn(move || capped(stdout, output_bytes));
            let err = scope.spawn(move || capped(stderr, OUTPUT_BYTES));
            let watchdog = scope.spawn(move || {
                let expired = watch.recv_timeout(deadline) == Err(mpsc::RecvTimeoutError::Timeout);
                if expired {
                    // Its leader is not reaped before this thread has ended, so the number is still its own.
                    let _gone = kill_process_group(group, Signal::KILL);
                }
                expired
            });
            let fed = match stdin {
                Some(mut stdin) => feed(&mut stdin),
                None => feed(&mut std::io::sink()),
            };
            wait_without_reaping(group);
            // What it started and left behind holds the pipes open.
            let _none_left = kill_process_group(group, Signal::KILL);
            drop(over);
            let expired = watchdog.join().unwrap_or(false);
            let (stdout, stderr) = (
                out.join().unwrap_or_default(),
                err.join().unwrap_or_default(),
            );
            let ending = reap(&mut child, expired)?;
            Ok((
                fed,
                Finished {
                    ending,
                    stdout,
                    stderr,
                },
            ))
        })
    }

    fn command(&self) -> Command {
        let mut command = match self.limits {
            None => Command::new("git"),
            Some(limits) => {
                let mut command = Command::new("prlimit");
                command
                    .arg(format!("--as={}", limits.memory))
                    .arg(format!("--cpu={}", limits.cpu_seconds))
                    .arg(format!("--fsize={}", limits.file_bytes))
                    .args(["--nofile=256", "--core=0", "--", "git"]);
                command
            }
        };
        command
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(k, v)| (k, v)))
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn wait_without_reaping(group: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(group), options).is_err_and(|e| e == rustix::io::Errno::INTR) {}
}

fn reap(child: &mut Child, expired: bool) -> Result<Ending, RepositoryError> {
    let status = child.wait().map_err(|error| disk("wait for git", &error))?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, _) if expired => Ending::Expired,
        (None, signal) => Ending::Killed(signal.unwrap_or_default()),
    })
}

/// The first bytes of a stream; the rest is read and dropped, so that the writer never blocks.
fn capped(stream: Option<impl Read>, bytes: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        let _cut = stream.by_ref().take(bytes).read_to_end(&mut kept);
        let _rest = std::io::copy(&mut stream, &mut std::io::sink());
    }
    kept
}

impl Finished {
    /// It ended by itself, with code 0.
    pub(super) fn succeeded(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// What it complained of: the first line that says so, escaped and capped.
    pub(super) fn complaint(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let says = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
        let line = lines.clone().find(says).or_else(|| lines.next());
        match (line, self.ending) {
            (Some(line), _) => tribunal_core::text::shown(line.trim(), 300),
            (None, Ending::Exited(code)) => format!("exit code {code}"),
            (None, Ending::Killed(signal)) => format!("signal {signal}"),
            (None, Ending::Expired) => "out of time".to_owned(),
        }
    }

    /// Whether its disk was full: then the trouble is ours whatever else it said.
    pub(super) fn disk_was_full(&self) -> bool {
        let text = String::from_utf8_lossy(&self.stderr);
        text.contains("No space left on device") || text.contains("Disk quota exceeded")
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::time::Instant;

    fn alias(script: &str) -> Git {
        let mut git = Git::outside("run");
        git.args.insert(0, format!("alias.run=!{script}").into());
        git.args.insert(0, "-c".into());
        git
    }

    #[test]
    fn starts_from_an_empty_environment_and_ends_with_its_children() {
        let seen = alias("env").run().unwrap();
        let text = String::from_utf8(seen.stdout).unwrap();
        let inherited = |line: &str| {
            ["CARGO", "USER=", "RUST"]
                .iter()
                .any(|n| line.starts_with(n))
        };
        assert!(!text.lines().any(inherited), "{text}");
        assert!(text.contains("GIT_CONFIG_GLOBAL=/dev/null"), "{text}");

        let begun = Instant::now();
        let finished = alias("sleep 30 & echo started").run().unwrap();
        assert_eq!(finished.stdout, b"started\n");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn is_killed_when_its_time_is_over_even_while_it_is_fed() {
        let git = alias("sleep 30").deadline(Duration::from_millis(200));
        let ((), finished) = git
            .run_fed(|stdin| while stdin.write_all(&[0; 65536]).is_ok() {})
            .unwrap();
        assert_eq!(finished.ending, Ending::Expired);
    }

    #[test]
    fn has_its_limits_from_the_first_instruction() {
        let limits = ProcessLimits {
            memory: 1 << 30,
            cpu_seconds: 7,
            file_bytes: 4096,
        };
        let finished = alias("cat /proc/self/limits").limits(limits).run().unwrap();
        let text = String::from_utf8(finished.stdout).unwrap();
        let line = |name: &str| {
            text.lines()
                .find(|l| l.starts_with(name))
                .unwrap()
                .to_owned()
        };
        assert!(line("Max address space").contains("1073741824"));
        assert!(line("Max cpu time").contains(" 7 "));
        assert!(line("Max file size").contains(" 4096 "));
        assert!(line("Max core file size").contains(" 0 "));
    }
}
