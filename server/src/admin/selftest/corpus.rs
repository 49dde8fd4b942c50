//! The cases that the server carries inside itself, and how one becomes a repository: by the same script as in the tests.
//!
//! Never runs anything of a case's tree; `make.sh` of a case, which plays git tricks, is ours. Needs git, sh and python3.

use super::glob;
use crate::admin::AdminError;
use include_dir::{Dir, include_dir};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

static EXPLOITS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../tests/cases/exploits");
static TABLES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../tests/cases/tables");
static MATERIALIZE: &str = include_str!("../../../../tests/cases/materialize");
/// An honest repair of everything that is wrong in the bases of the exploits.
const REPAIR: &str = "_fixed";

/// What is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// It must not merge: N of the last line counts these.
    Stopped,
    /// It must merge.
    Merged,
}

/// One change to be judged.
#[derive(Debug, Clone)]
pub struct Case {
    /// `39-clock-bomb`; `…+fixed` where the change is the repair of its base.
    pub name: String,
    /// What kind of trick it is; `row` of a decision table, or `honest`.
    pub class: String,
    /// What is right.
    pub right: Right,
    /// What the three words must be, in the order of the join, where that is known.
    pub words: [Option<String>; 3],
    /// A code that must be among the reasons of verdicts that stop it.
    pub reason: Option<String>,
    folder: &'static str,
    id: String,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// As the case has it.
    OfCase,
    /// The repair, over the case's base.
    Repair,
}

/// Where a case stands once it is a repository.
#[derive(Debug)]
pub(super) struct Built {
    /// Holds both commits.
    pub(super) workspace: PathBuf,
    /// A bare repository at `base`.
    pub(super) origin: PathBuf,
    /// What an agent would upload.
    pub(super) bundle: PathBuf,
    /// Full id.
    pub(super) base: String,
    /// Full id.
    pub(super) head: String,
}

/// All cases whose names fit one of the patterns, in order; every case without any.
///
/// # Errors
/// Patterns that nothing fits; a case that says nothing of itself.
pub(super) fn cases(only: &[String]) -> Result<Vec<Case>, AdminError> {
    let mut cases = Vec::new();
    for (folder, dir) in [("tables", &TABLES), ("exploits", &EXPLOITS)] {
        let mut dirs: Vec<&Dir<'_>> = dir.dirs().collect();
        dirs.sort_by_key(|dir| dir.path());
        for dir in dirs {
            cases.extend(of(folder, dir)?);
        }
    }
    cases.retain(|case| only.is_empty() || only.iter().any(|p| glob::fits(p, &case.name)));
    if cases.is_empty() {
        return Err(AdminError::Usage(format!(
            "no case is called {}",
            only.join(" or ")
        )));
    }
    Ok(cases)
}

/// A case, and the repair over its base where that base is its own.
fn of(folder: &'static str, dir: &Dir<'_>) -> Result<Vec<Case>, AdminError> {
    let id = dir.path().to_string_lossy().into_owned();
    let Some(about) = dir.get_file(dir.path().join("case.json")) else {
        return Ok(Vec::new());
    };
    let about: Value = serde_json::from_slice(about.contents())
        .map_err(|error| AdminError::file(format!("read case {id}"))(error.into()))?;
    let expect = &about["expect"];
    let right = match expect["merge"].as_bool() {
        Some(true) => Right::Merged,
        Some(false) => Right::Stopped,
        None => return Ok(Vec::new()),
    };
    let words = ["src_score", "oracle_integrity", "flake_lease"].map(|name| {
        let word = expect[name].as_str().filter(|word| *word != "*");
        word.map(str::to_owned)
    });
    let case = Case {
        name: id.clone(),
        class: about["class"].as_str().unwrap_or("row").to_owned(),
        right,
        words,
        reason: expect["reason_contains"].as_str().map(str::to_owned),
        folder,
        id,
        head: Head::OfCase,
    };
    let own_base = dir.get_dir(dir.path().join("base")).is_some();
    let repair = (folder == "exploits" && own_base).then(|| Case {
        name: format!("{}+fixed", case.name),
        class: "honest".to_owned(),
        right: Right::Merged,
        words: [const { None }; 3],
        reason: None,
        head: Head::Repair,
        ..case.clone()
    });
    Ok([Some(case), repair].into_iter().flatten().collect())
}

/// All of it as files.
pub(super) struct Corpus {
    folder: PathBuf,
}

impl Corpus {
    /// Unpack.
    ///
    /// # Errors
    /// The disk.
    pub(super) fn unpack(folder: &Path) -> Result<Self, AdminError> {
        let what = "unpack the cases";
        for (name, dir) in [("tables", &TABLES), ("exploits", &EXPLOITS)] {
            let place = folder.join(name);
            std::fs::create_dir_all(&place)
                .and_then(|()| dir.extract(&place))
                .map_err(AdminError::file(what))?;
        }
        std::fs::write(folder.join("materialize"), MATERIALIZE).map_err(AdminError::file(what))?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Build a case's repository, its remote and the bundle of what its agent sends.
    ///
    /// # Errors
    /// git, sh or python3 is not there, or did not do it.
    pub(super) async fn build(&self, case: &Case, place: &Path) -> Result<Built, AdminError> {
        let (folder, case, place) = (self.folder.clone(), case.clone(), place.to_owned());
        let what = format!("build the repository of {}", case.name);
        tokio::task::spawn_blocking(move || built(&folder, &case, &place))
            .await
            .map_err(io::Error::other)
            .and_then(|built| built)
            .map_err(AdminError::file(what))
    }
}

fn built(corpus: &Path, case: &Case, place: &Path) -> io::Result<Built> {
    std::fs::create_dir_all(place)?;
    let workspace = place.join("repo");
    let mut script = clean("python3");
    script
        .arg(corpus.join("materialize"))
        .arg(corpus.join(case.folder).join(&case.id))
        .arg(&workspace);
    let said = run(script)?;
    let id = |key: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(key));
        found
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("materialize did not tell {key}")))
    };
    let (base, mut head) = (id("BASE=")?, id("HEAD=")?);
    let git = |args: &[&str]| run_in(&workspace, args);
    if case.head == Head::Repair {
        git(&["checkout", "-q", "-f", "-B", "repair", &base])?;
        copy(&corpus.join(case.folder).join(REPAIR), &workspace)?;
        git(&["add", "-A", "-f"])?;
        git(&["commit", "-q", "-m", "repair"])?;
        head = git(&["rev-parse", "HEAD"])?;
    }
    let (origin, bundle) = (place.join("origin.git"), place.join("bundle"));
    let remote = origin.to_string_lossy().into_owned();
    git(&["init", "-q", "--bare", "-b", "main", &remote])?;
    git(&["push", "-q", &remote, &format!("{base}:refs/heads/main")])?;
    git(&["update-ref", "refs/heads/selftest", &head])?;
    let file = bundle.to_string_lossy().into_owned();
    let without = format!("^{base}");
    let wanted = [
        "bundle",
        "create",
        "-q",
        &file,
        "refs/heads/selftest",
        &without,
    ];
    git(&wanted)?;
    Ok(Built {
        workspace,
        origin,
        bundle,
        base,
        head,
    })
}

/// A program that knows nothing of this machine's git configuration.
pub(super) fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C.UTF-8")
        .stdin(std::process::Stdio::null());
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "selftest")
            .env(format!("GIT_{who}_EMAIL"), "selftest@example.invalid")
            .env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
    }
    command
}

fn run_in(folder: &Path, args: &[&str]) -> io::Result<String> {
    let mut git = clean("git");
    git.current_dir(folder).args(args);
    run(git)
}

/// It must succeed; its trimmed output.
pub(super) fn run(mut command: Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!(
            "{:?} ended with {}: {}",
            command.get_program(),
            output.status,
            tribunal_core::text::shown(said.trim_end(), 400)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// A folder's files over another's.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn every_exploit_is_inside_and_says_what_is_right() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/exploits");
        let mut wanted: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("case.json").is_file())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        wanted.sort();
        let all = cases(&[]).unwrap();
        let inside: Vec<&str> = all
            .iter()
            .filter(|case| case.folder == "exploits" && case.head == Head::OfCase)
            .map(|case| case.name.as_str())
            .collect();
        assert_eq!(inside, wanted);
        let honest = all.iter().filter(|case| case.right == Right::Merged);
        assert!(honest.count() >= 5);
        assert!(matches!(
            cases(&["nothing*".to_owned()]),
            Err(AdminError::Usage(_))
        ));
    }
}
