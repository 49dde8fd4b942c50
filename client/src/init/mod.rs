//! `init`: what a repository needs to be scored, laid into it file by file.
//!
//! Never overwrites: a path that exists is left as it is and told; of AGENTS.md only the part between our marks is ours. The manifest it writes is the list that
//! `tribunal manifest` would write.

mod agents;

pub use agents::{agents, skill};

use crate::cli::Ci;
use crate::failure::Failure;
use crate::workspace::{Workspace, WorkspaceError};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use tribunal_core::git::GitPath;
use tribunal_core::manifest;
use tribunal_core::policy::Policy;

const POLICY: &str = include_str!("tribunal.toml");

/// A gate for one kind of CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Github,
    Gitlab,
}

impl Gate {
    const fn path(self) -> &'static str {
        match self {
            Self::Github => ".github/workflows/tribunal.yml",
            Self::Gitlab => ".gitlab-ci.yml",
        }
    }
    const fn text(self) -> &'static str {
        match self {
            Self::Github => include_str!("../../../deploy/ci/github.yml"),
            Self::Gitlab => include_str!("../../../deploy/ci/gitlab.yml"),
        }
    }
}

/// What can go wrong here.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is no checked-out tree.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A sealed file cannot be named in a manifest.
    #[error("{0}")]
    Manifest(String),
    /// A src root that no policy can hold.
    #[error("{0} is no path within the repository")]
    Src(String),
    /// AGENTS.md is not one that has room for our part.
    #[error("AGENTS.md: {0}")]
    Part(String),
    /// A file could not be written.
    #[error("{path}: {source}")]
    Write {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Workspace(error) => error.into(),
            InitError::Manifest(why) => Self::usage("make the manifest", why, "rename that file"),
            error @ InitError::Src(_) => {
                Self::usage("read the folders", error, "name folders as in --src lib/")
            }
            error @ InitError::Part(_) => {
                let next = "let the two marks stand once, one before the other, or take both out";
                Self::usage("write our part", error, next)
            }
            error @ InitError::Write { .. } => Self::usage(
                "lay the files",
                error,
                "make the path writable, then run it again",
            ),
        }
    }
}

/// What became of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Laid {
    /// Written now.
    New,
    /// It was there; it is as it was.
    LeftAlone,
    /// It was there; our part of it is new.
    Added,
    /// It was there; our part of it is another one now.
    Renewed,
}

fn top_of(workspace: &Workspace) -> Result<&Path, InitError> {
    let top = workspace.top();
    top.ok_or_else(|| WorkspaceError::Outside("a bare repository".to_owned()).into())
}

/// Lay everything into the workspace; each path with what became of it, in the order of laying.
///
/// # Errors
/// A path cannot be written; what was laid before it stays.
pub fn lay(
    workspace: &Workspace,
    src: &[String],
    ci: Ci,
) -> Result<Vec<(&'static str, Laid)>, InitError> {
    let top = top_of(workspace)?;
    let gates = wanted_gates(workspace, top, ci)?;
    let src = src_roots(top, src)?;
    let policy = Policy::default();
    let manifest = {
        let paths: Vec<GitPath> = workspace.paths()?.into_iter().map(GitPath::new).collect();
        manifest::render(&policy.paths.manifest, &paths)
            .map_err(|finding| InitError::Manifest(finding.detail))?
    };
    let mut files: Vec<(&'static str, String)> = vec![
        ("ci/tribunal.toml", policy_text(&src, &gates)),
        (
            "ci/flake_leases.json",
            "{\n  \"leases\": []\n}\n".to_owned(),
        ),
        ("tests/sealed/MANIFEST.txt", manifest),
        ("tests/proposed/.gitkeep", String::new()),
        ("fixtures/sealed/.gitkeep", String::new()),
        // What a score hands out is not to be committed with the next patch.
        (".gitignore", "/ci_out/\n".to_owned()),
    ];
    files.extend(
        gates
            .iter()
            .map(|gate| (gate.path(), gate.text().to_owned())),
    );
    let mut laid = Vec::new();
    for (path, text) in files {
        laid.push((path, lay_one(top, path, &text)?));
    }
    Ok(laid)
}

fn lay_one(top: &Path, path: &str, text: &str) -> Result<Laid, InitError> {
    let write = |source| InitError::Write {
        path: path.to_owned(),
        source,
    };
    let target = top.join(path);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(write)?;
    }
    match File::create_new(&target) {
        Ok(mut file) => {
            file.write_all(text.as_bytes()).map_err(write)?;
            Ok(Laid::New)
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Laid::LeftAlone),
        Err(e) => Err(write(e)),
    }
}

fn policy_text(src: &[String], gates: &[Gate]) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items
            .iter()
            .map(|i| toml::Value::from(i.as_str()).to_string())
            .collect();
        format!("[{}]", items.join(", "))
    };
    let mut pythonpath = vec![".".to_owned()];
    if src.iter().any(|root| root == "src/") {
        pythonpath.push("src".to_owned());
    }
    let protect: Vec<String> = gates.iter().map(|g| g.path().to_owned()).collect();
    POLICY
        .replace("@SRC@", &list(src))
        .replace("@PROTECT@", &list(&protect))
        .replace("@PYTHONPATH@", &list(&pythonpath))
}

/// The roots that were named, or what the tree looks like: `src/`, else packages at the top.
fn src_roots(top: &Path, named: &[String]) -> Result<Vec<String>, InitError> {
    if !named.is_empty() {
        return named
            .iter()
            .map(|root| {
                let plain = root.trim_end_matches('/');
                plain
                    .parse::<tribunal_core::id::RepoPath>()
                    .map_err(|_| InitError::Src(tribunal_core::text::shown(root, 200)))?;
                let is_file = top.join(plain).is_file();
                Ok(if is_file {
                    plain.to_owned()
                } else {
                    format!("{plain}/")
                })
            })
            .collect();
    }
    if top.join("src").is_dir() {
        return Ok(vec!["src/".to_owned()]);
    }
    let mut packages: Vec<String> = fs::read_dir(top)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("__init__.py").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !matches!(name.as_str(), "tests" | "test" | "docs" | "examples"))
        .map(|name| format!("{name}/"))
        .collect();
    packages.sort();
    Ok(if packages.is_empty() {
        vec!["src/".to_owned()]
    } else {
        packages
    })
}

fn wanted_gates(workspace: &Workspace, top: &Path, ci: Ci) -> Result<Vec<Gate>, InitError> {
    Ok(match ci {
        Ci::Github => vec![Gate::Github],
        Ci::Gitlab => vec![Gate::Gitlab],
        Ci::Both => vec![Gate::Github, Gate::Gitlab],
        Ci::None => Vec::new(),
        Ci::Auto => {
            let looks_like_gitlab = top.join(Gate::Gitlab.path()).exists()
                || workspace
                    .remote_urls()?
                    .iter()
                    .any(|url| url.contains("gitlab"));
            if looks_like_gitlab && !top.join(".github").is_dir() {
                vec![Gate::Gitlab]
            } else {
                vec![Gate::Github]
            }
        }
    })
}

#[cfg(test)]
mod tests;
