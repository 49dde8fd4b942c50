//! What a caller would run instead: the same suite, the same interpreter, no server.

use super::{Suite, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const WORDS: [&str; 5] = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
/// Times a process where it runs, so that the engine's own round trip is in no figure of a single process.
const STOPWATCH: &str = "import subprocess, sys, time; begun = time.perf_counter(); code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; print(time.perf_counter() - begun); sys.exit(code)";

const PACKAGES: &str =
    "PYTHONPATH=/plugins/packages/runner/site-packages:/plugins/packages/deps/site-packages";

/// A suite's head in a folder, and a container that stands by with it mounted.
pub(super) struct Peers {
    tree: TempDir,
    plugins: TempDir,
    image: String,
    standing: String,
}

impl Peers {
    pub(super) fn of(suite: &Suite, image: &str) -> Self {
        let tree = tempfile::tempdir().unwrap();
        suite.lay(tree.path());
        run(Command::new("chmod").arg("-R").arg("a+rX").arg(tree.path()));
        let plugins = tempfile::tempdir().unwrap();
        run(Command::new("chmod").arg("755").arg(plugins.path()));
        run(Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .arg(plugins.path())
            .arg("pytest-repeat==0.9.4"));
        // As an installed package lies: Hypothesis and others look at this name to tell a dependency from the project.
        for room in ["runner", "deps"] {
            let place = plugins.path().join("packages").join(room);
            fs::create_dir_all(&place).unwrap();
            symlink(format!("/opt/tribunal/{room}"), place.join("site-packages")).unwrap();
        }
        let mut peers = Self {
            tree,
            plugins,
            image: image.to_owned(),
            standing: String::new(),
        };
        peers.standing = peers.said(&["run", "-d"], "sleep", &["7200"]);
        peers
    }

    /// One `docker run … pytest` after the other.
    pub(super) fn docker_runs(&self, times: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..times {
            self.said(&["run", "--rm"], "python3", &self.pytest(&[]));
        }
        begun.elapsed()
    }

    /// As the harness of the SWE benchmark does: a fresh container a run, the patch copied in, tests by exec, removed.
    pub(super) fn fresh_containers(&self, times: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..times {
            let mut create = Command::new("docker");
            create.args(["create", "--network", "none", "-w", "/project"]);
            create.args(["-v", &mount(&self.plugins, "/plugins")]);
            create.args(["-e", &format!("{PACKAGES}:/project:/project/src")]);
            create.args(["--entrypoint", "sleep", &self.image, "3600"]);
            let name = said(&mut create);
            let from = format!("{}/.", self.tree.path().display());
            run(&mut docker(&["start", &name]));
            run(&mut docker(&["cp", &from, &format!("{name}:/project")]));
            let mut exec = docker(&["exec", &name, "python3"]);
            run(exec.args(self.pytest(&[])));
            run(&mut docker(&["rm", "-f", &name]));
        }
        begun.elapsed()
    }

    /// Processes in one container that stands already.
    pub(super) fn processes(&self, times: usize) -> Duration {
        (0..times).map(|_| self.inside(&[])).sum()
    }

    /// One process that runs every case so many times, nothing isolated.
    pub(super) fn repeated(&self, times: usize) -> Duration {
        self.inside(&["--count", &times.to_string()])
    }

    fn inside(&self, more: &[&str]) -> Duration {
        let mut exec = docker(&[
            "exec",
            &self.standing,
            "python3",
            "-c",
            STOPWATCH,
            "python3",
        ]);
        exec.args(self.pytest(more));
        Duration::from_secs_f64(said(&mut exec).parse().unwrap())
    }

    fn pytest<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
        [&WORDS[..], more, &["tests/sealed"]].concat()
    }

    fn said(&self, how: &[&str], what: &str, words: &[&str]) -> String {
        let mut docker = docker(how);
        docker.args(["--network", "none", "-w", "/tree"]);
        docker.args([
            "-v",
            &mount(&self.tree, "/tree"),
            "-v",
            &mount(&self.plugins, "/plugins"),
        ]);
        docker.args(["-e", "PYTHONDONTWRITEBYTECODE=1"]);
        docker.args(["-e", &format!("{PACKAGES}:/plugins:/tree:/tree/src")]);
        docker.args(["--entrypoint", what, &self.image]);
        said(docker.args(words))
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = docker(&["rm", "-f", &self.standing]).output();
    }
}

fn mount(from: &TempDir, to: &str) -> String {
    format!("{}:{to}:ro", from.path().display())
}

fn docker(words: &[&str]) -> Command {
    let mut docker = Command::new("docker");
    docker.args(words);
    docker
}

fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    text.trim().to_owned()
}
