//! The corpora: one folder a case, materialised into a repository, with what is expected of it.

use crate::binaries::root;
use crate::repo::Repo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One case of `tests/cases/exploits` or `tests/cases/field`.
#[derive(Debug, Clone)]
pub struct Case {
    folder: PathBuf,
    about: Value,
}

/// A case's repository: the agent's workspace with `head` checked out nowhere in particular, and both ids.
#[derive(Debug)]
pub struct Materialized {
    /// Holds both commits.
    pub workspace: Repo,
    /// The protected branch, at `base`.
    pub origin: Repo,
    /// Full id.
    pub base: String,
    /// Full id, as the case wants it submitted: it may name a tag object.
    pub head: String,
}

impl Case {
    /// The case in `tests/cases/{corpus}/{name}`; `name` may be its number alone.
    #[must_use]
    pub fn named(corpus: &str, name: &str) -> Self {
        let wanted = |case: &Self| case.id() == name || case.id().split('-').next() == Some(name);
        Self::all(corpus)
            .into_iter()
            .find(wanted)
            .unwrap_or_else(|| panic!("no case {corpus}/{name}"))
    }

    /// Every case of a corpus, in order.
    #[must_use]
    pub fn all(corpus: &str) -> Vec<Self> {
        let folder = root().join("tests/cases").join(corpus);
        let mut cases: Vec<Self> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("case.json").is_file())
            .map(|folder| {
                let text = std::fs::read(folder.join("case.json")).unwrap();
                let about = serde_json::from_slice(&text).unwrap();
                Self { folder, about }
            })
            .collect();
        cases.sort_by(|a, b| a.folder.cmp(&b.folder));
        assert!(!cases.is_empty(), "{} holds no cases", folder.display());
        cases
    }

    /// `NN-name`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.folder.file_name().unwrap().to_str().unwrap()
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `class` of an exploit: git-trick, path-trick, resource, env, …; empty for a field case.
    #[must_use]
    pub fn class(&self) -> &str {
        self.about["class"].as_str().unwrap_or_default()
    }

    /// What is expected; an absent key is not asserted.
    #[must_use]
    pub fn expect(&self) -> &Value {
        &self.about["expect"]
    }

    /// The honest repair of everything that is wrong, over this exploit's base; only where that base is its own. It lives
    /// as long as `place` does.
    #[must_use]
    pub fn repaired(&self, place: &Path) -> Option<Self> {
        let own = self.folder.join("base");
        let corpus = self.folder.parent()?;
        if !own.is_dir() {
            return None;
        }
        let folder = place.join("exploits").join(self.id());
        std::fs::create_dir_all(&folder).unwrap();
        for (from, to) in [
            (corpus.join("_base"), place.join("exploits/_base")),
            (own, folder.join("base")),
            (corpus.join("_fixed"), folder.join("head")),
        ] {
            let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
            assert!(copied.unwrap().success());
        }
        let about = serde_json::json!({ "class": "control", "expect": {
            "merge": true, "src_score": "PASS", "oracle_integrity": "PASS", "flake_lease": "PASS"
        }});
        Some(Self { folder, about })
    }

    /// Every file of its own base with its content; empty where it has none.
    #[must_use]
    pub fn own_base(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.join("base")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else if let Ok(content) = std::fs::read(&path) {
                    found.push((path.strip_prefix(&self.folder).unwrap().into(), content));
                }
            }
        }
        found.sort();
        found
    }

    /// Build its repository.
    #[must_use]
    pub fn materialize(&self) -> Materialized {
        self.materialize_with(&[])
    }

    /// The same case with every sealed file of base's manifest on the policy's `shared` list. The folder goes with the
    /// second value.
    #[must_use]
    pub fn shared(&self) -> (Self, tempfile::TempDir) {
        let owned = tempfile::tempdir().unwrap();
        // `materialize` looks at the name of the corpus, and for `_base` beside the case.
        let corpus = owned.path().join("exploits");
        std::fs::create_dir(&corpus).unwrap();
        for name in ["_base", self.id()] {
            let from = self.folder.parent().unwrap().join(name);
            let mut copy = Command::new("cp");
            let status = copy.arg("-a").arg(from).arg(&corpus).status().unwrap();
            assert!(status.success(), "cp of {name}");
        }
        let latest = |path: &str| {
            let own = corpus.join(self.id()).join("base").join(path);
            let common = corpus.join("_base").join(path);
            [own, common].into_iter().find(|p| p.is_file()).unwrap()
        };
        let manifest = std::fs::read_to_string(latest("tests/sealed/MANIFEST.txt")).unwrap();
        let files: Vec<&str> = manifest.lines().collect();
        let policy = latest("ci/tribunal.toml");
        let mut text = std::fs::read_to_string(&policy).unwrap();
        assert!(
            !text.contains("[runner]"),
            "{} has a runner table",
            self.id()
        );
        text.push_str(&format!("\n[runner]\nshared = {files:?}\n"));
        std::fs::write(&policy, text).unwrap();
        let folder = corpus.join(self.id());
        let about = self.about.clone();
        (Self { folder, about }, owned)
    }

    /// Build its repository under these environment variables.
    #[must_use]
    pub fn materialize_with(&self, env: &[(&str, &str)]) -> Materialized {
        let owned = tempfile::tempdir().unwrap();
        let folder = owned.path().join("repo");
        let output = Command::new("python3")
            .arg(root().join("tests/cases/materialize"))
            .arg(&self.folder)
            .arg(&folder)
            .envs(env.iter().copied())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let id = |key: &str| {
            stdout
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .map(str::to_owned)
        };
        let (Some(base), Some(head)) = (id("BASE="), id("HEAD=")) else {
            panic!("{}: {}", self.id(), String::from_utf8_lossy(&output.stderr));
        };
        let workspace = Repo::made(folder, owned);
        let origin = workspace.origin_at(&base);
        Materialized {
            workspace,
            origin,
            base,
            head,
        }
    }
}
