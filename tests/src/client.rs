//! The real client, run in a workspace with a clean environment.

use crate::binaries;
use crate::server::{Registered, Server};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// How to run it: as whom, where, against what.
pub struct Client {
    folder: PathBuf,
    home: TempDir,
    env: BTreeMap<String, String>,
}

/// What a run of it left behind.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// What it printed as its result.
    pub stdout: String,
    /// What it said beside it.
    pub stderr: String,
}

impl Client {
    /// In this folder, offline: no server, no token.
    #[must_use]
    pub fn offline(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            home: tempfile::tempdir().unwrap(),
            env: BTreeMap::new(),
        }
    }

    /// In this folder, as the repository's agent.
    #[must_use]
    pub fn agent(server: &Server, repo: &Registered, folder: &Path) -> Self {
        Self::with_token(server, repo, &repo.agent, folder)
    }

    /// In this folder, as one of its maintainers.
    #[must_use]
    pub fn maintainer(server: &Server, repo: &Registered, folder: &Path) -> Self {
        Self::with_token(server, repo, &repo.maintainer, folder)
    }

    /// In this folder, as its CI.
    #[must_use]
    pub fn ci(server: &Server, repo: &Registered, folder: &Path) -> Self {
        Self::with_token(server, repo, &repo.ci, folder)
    }

    /// In this folder, with this token.
    #[must_use]
    pub fn with_token(server: &Server, repo: &Registered, token: &str, folder: &Path) -> Self {
        Self::offline(folder)
            .env("TRIBUNAL_SERVER", &server.url())
            .env("TRIBUNAL_REPO", &repo.name)
            .env("TRIBUNAL_TOKEN", token)
    }

    /// The same with one more variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The command, not yet started.
    #[must_use]
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(binaries::client());
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .envs(&self.env)
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// Run it to its end.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// Start it and let it run.
    #[must_use]
    pub fn spawn<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Child {
        self.command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// It ended with this code; otherwise everything it said is in the panic.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(
            self.code, code,
            "\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Its stdout as JSON, one value a line, and nothing else.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?} is not JSON: {e}"))
            })
            .collect()
    }
}

/// What a client that was started came to.
#[must_use]
pub fn ended(client: Child) -> Ran {
    Ran::of(client.wait_with_output().unwrap())
}

/// The three words in a folder, in the order of the join, as the files have them.
#[must_use]
pub fn words(out: &Path) -> [String; 3] {
    ["src_score", "oracle_integrity", "flake_lease"].map(|stem| {
        let text = std::fs::read_to_string(out.join(format!("{stem}.txt"))).unwrap();
        text.strip_suffix('\n').unwrap().to_owned()
    })
}

/// The report in a folder.
#[must_use]
pub fn report(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap()
}
