//! Git repositories for tests: real git, no configuration of the machine, ids that repeat.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A repository with a work tree, gone with this value.
#[derive(Debug)]
pub struct Repo {
    folder: PathBuf,
    _owned: TempDir,
}

/// `git` as every test wants it.
#[must_use]
pub fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "test")
            .env(format!("GIT_{who}_EMAIL"), "test@example.invalid")
            .env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
    }
    command
}

impl Repo {
    /// An empty one on branch `main`.
    #[must_use]
    pub fn empty() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let repo = Self {
            folder: owned.path().join("repo"),
            _owned: owned,
        };
        fs::create_dir(&repo.folder).unwrap();
        repo.git(&["init", "-q", "-b", "main"]);
        repo
    }

    /// One whose first commit holds a small product, one sealed file with two cases, and the manifest.
    #[must_use]
    pub fn small() -> Self {
        let repo = Self::empty();
        repo.write("src/calc.py", "def total(xs):\n    return sum(xs)\n");
        repo.write(
            "tests/sealed/test_core.py",
            "from calc import total\n\n\ndef test_empty():\n    assert total([]) == 0\n\n\ndef test_three():\n    assert total([1, 2, 3]) == 6\n",
        );
        repo.write("tests/sealed/MANIFEST.txt", "tests/sealed/test_core.py\n");
        repo.write("ci/flake_leases.json", "{\n  \"leases\": []\n}\n");
        repo.commit("base");
        repo
    }

    /// The small one with one more sealed case that takes so long, so that there is a middle to interfere with.
    #[must_use]
    pub fn slow(seconds: f32) -> Self {
        let repo = Self::small();
        repo.write(
            "tests/sealed/test_slow.py",
            format!("import time\n\n\ndef test_slow():\n    time.sleep({seconds})\n"),
        );
        repo.write(
            "tests/sealed/MANIFEST.txt",
            "tests/sealed/test_core.py\ntests/sealed/test_slow.py\n",
        );
        repo.commit("slow");
        repo
    }

    /// A clone of this one, `origin` and all: what an agent works in.
    #[must_use]
    pub fn cloned(&self) -> Self {
        let owned = tempfile::tempdir().unwrap();
        let folder = owned.path().join("repo");
        let url = format!("file://{}", self.folder.display());
        self.git(&["clone", "-q", &url, folder.to_str().unwrap()]);
        Self {
            folder,
            _owned: owned,
        }
    }

    /// A repository that something else made, with the folder it stands in.
    #[must_use]
    pub fn made(folder: PathBuf, owned: TempDir) -> Self {
        Self {
            folder,
            _owned: owned,
        }
    }

    /// Its work tree.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Run git, which must succeed; its trimmed stdout.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Run git, whatever comes of it.
    pub fn try_git(&self, args: &[&str]) -> Output {
        git(&self.folder).args(args).output().unwrap()
    }

    /// Write a file, folders and all.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commit everything there is; the full id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// A bundle of everything that `commit` (any object's id) reaches and `without` does not.
    #[must_use]
    pub fn bundle(&self, commit: &str, without: &[&str]) -> Vec<u8> {
        // A bundle holds refs, not ids.
        self.git(&["update-ref", "refs/bundled/head", commit]);
        let mut command = git(&self.folder);
        command.args(["bundle", "create", "-q", "-", "refs/bundled/head"]);
        command.args(without.iter().map(|id| format!("^{id}")));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git bundle: {said}");
        output.stdout
    }

    /// The full id of HEAD.
    #[must_use]
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// A bare repository whose only branch `main` is at `commit`: the protected branch as a remote would have it.
    #[must_use]
    pub fn origin_at(&self, commit: &str) -> Self {
        let owned = tempfile::tempdir().unwrap();
        let folder = owned.path().join("origin.git");
        self.git(&[
            "init",
            "-q",
            "--bare",
            "-b",
            "main",
            folder.to_str().unwrap(),
        ]);
        let refspec = format!("{commit}:refs/heads/main");
        self.git(&["push", "-q", folder.to_str().unwrap(), &refspec]);
        Self {
            folder,
            _owned: owned,
        }
    }
}

/// Mode and content of one leaf.
pub type Leaf = (&'static str, Vec<u8>);

impl Repo {
    /// A commit of exactly these leaves, whatever their names: nothing passes through a work tree or an index.
    pub fn commit_of(&self, parents: &[&str], leaves: &BTreeMap<Vec<u8>, Leaf>) -> String {
        let mut stream = b"feature done\ncommit refs/made/commit\ncommitter t <t@example.invalid> 1767225600 +0000\ndata 1\nx\n".to_vec();
        for (n, parent) in parents.iter().enumerate() {
            let word = if n == 0 { "from" } else { "merge" };
            stream.extend_from_slice(format!("{word} {parent}\n").as_bytes());
        }
        stream.extend_from_slice(b"deleteall\n");
        for (path, (mode, content)) in leaves {
            let quoted: String = path.iter().map(|b| format!("\\{b:03o}")).collect();
            let head = match *mode {
                "160000" => format!(
                    "M 160000 {} \"{quoted}\"\n",
                    String::from_utf8_lossy(content)
                ),
                mode => format!("M {mode} inline \"{quoted}\"\ndata {}\n", content.len()),
            };
            stream.extend_from_slice(head.as_bytes());
            if *mode != "160000" {
                stream.extend_from_slice(content);
                stream.push(b'\n');
            }
        }
        stream.extend_from_slice(b"done\n");
        // Without a ref of that name the first parent is what `from` says.
        let _none = self.try_git(&["update-ref", "-d", "refs/made/commit"]);
        let mut child = git(&self.folder)
            .args(["fast-import", "--quiet", "--force"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&stream).unwrap();
        assert!(child.wait().unwrap().success(), "git fast-import");
        self.git(&["rev-parse", "refs/made/commit"])
    }
}
