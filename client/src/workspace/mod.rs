//! The caller's git workspace: revisions become full ids, missing commits become a bundle.
//!
//! Never writes a ref, an index, HEAD or an object of the workspace, and never runs what the workspace configures
//! (hooks, file-system monitors). Fails with `WorkspaceError`.

mod bundle;
mod git;
mod worktree;

pub use bundle::{Bundle, Exclude};
pub use git::Git;
pub use worktree::Worktree;

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use tribunal_core::id::CommitId;
use tribunal_core::text::shown;

/// What can go wrong with a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Git cannot be started.
    #[error("git cannot be started: {0}")]
    NoGit(std::io::Error),
    /// Git says no.
    #[error("git {command}: {message}")]
    Git {
        /// Its subcommand.
        command: String,
        /// What it said, escaped.
        message: String,
    },
    /// The folder belongs to somebody else and git will not read it.
    #[error("git does not trust {0}: it belongs to another user")]
    Untrusted(String),
    /// This is no workspace.
    #[error("{0} is not in a git repository")]
    Outside(String),
    /// The revision names no commit here.
    #[error("{0} names no commit here")]
    NoCommit(String),
    /// The index is in the middle of a merge.
    #[error("a merge is not finished: {0}")]
    Unmerged(String),
    /// A temporary file could not be written.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        let next = match &error {
            WorkspaceError::NoGit(_) => "install git".to_owned(),
            WorkspaceError::Git { .. } => "mend what git says".to_owned(),
            WorkspaceError::Untrusted(folder) => {
                format!("git config --global --add safe.directory '{folder}'")
            }
            WorkspaceError::Outside(_) => "run this inside the repository".to_owned(),
            WorkspaceError::NoCommit(_) => {
                "commit first, or name another revision with --head".to_owned()
            }
            WorkspaceError::Unmerged(_) => "resolve the merge, then ask again".to_owned(),
            WorkspaceError::Io(..) => "make room in the temporary directory".to_owned(),
        };
        Self::usage("read the git workspace", error, next)
    }
}

/// A git repository with the caller in it.
#[derive(Debug, Clone)]
pub struct Workspace {
    git: Git,
    top: Option<PathBuf>,
    git_dir: PathBuf,
    objects: PathBuf,
}

/// Paths that a score of HEAD would not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Changed and tracked.
    pub changed: Vec<String>,
    /// Not tracked, not ignored.
    pub untracked: Vec<String>,
}

impl Uncommitted {
    /// Whether HEAD is all there is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.untracked.is_empty()
    }
}

impl Workspace {
    /// The workspace that this folder is in; `None` where it is in none.
    ///
    /// # Errors
    /// There is one, but git will not read it; or there is no git.
    pub fn discover(folder: &Path) -> Result<Option<Self>, WorkspaceError> {
        let git = Git::in_folder(folder);
        let args = [
            "rev-parse",
            "--absolute-git-dir",
            "--is-bare-repository",
            "--git-path",
            "objects",
        ];
        let output = git.output(&args)?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return if message.contains("not a git repository") {
                Ok(None)
            } else if message.contains("dubious ownership") {
                Err(WorkspaceError::Untrusted(shown(
                    &folder.to_string_lossy(),
                    300,
                )))
            } else {
                Err(git::said_no(&args, &output))
            };
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines();
        let (Some(git_dir), Some(bare), Some(objects)) = (lines.next(), lines.next(), lines.next())
        else {
            return Err(git::said_no(&args, &output));
        };
        let top = match bare {
            "true" => None,
            _ => Some(PathBuf::from(git.text(&["rev-parse", "--show-toplevel"])?)),
        };
        Ok(Some(Self {
            git: Git::in_folder(top.as_deref().unwrap_or(folder)),
            top,
            git_dir: PathBuf::from(git_dir),
            objects: folder.join(objects),
        }))
    }

    /// The workspace that this folder is in.
    ///
    /// # Errors
    /// There is none.
    pub fn require(folder: &Path) -> Result<Self, WorkspaceError> {
        Self::discover(folder)?
            .ok_or_else(|| WorkspaceError::Outside(shown(&folder.to_string_lossy(), 300)))
    }

    /// The root of the checked-out tree; `None` in a bare repository.
    #[must_use]
    pub fn top(&self) -> Option<&Path> {
        self.top.as_deref()
    }

    /// The commit that a revision names, by its full id.
    ///
    /// # Errors
    /// It names none.
    pub fn commit(&self, revision: &str) -> Result<CommitId, WorkspaceError> {
        let no_commit = || WorkspaceError::NoCommit(shown(revision, 200));
        let output = self.git.output(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &format!("{revision}^{{commit}}"),
        ])?;
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .map_err(|_| no_commit())
    }

    /// Whether this commit and what it leads to are here.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn has(&self, commit: &CommitId) -> Result<Presence, WorkspaceError> {
        let output = self
            .git
            .output(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?;
        Ok(if output.status.success() {
            Presence::Here
        } else {
            Presence::Absent
        })
    }

    /// Whether the whole history is here.
    ///
    /// # Errors
    /// Git says no.
    pub fn depth(&self) -> Result<Depth, WorkspaceError> {
        Ok(
            match self
                .git
                .text(&["rev-parse", "--is-shallow-repository"])?
                .as_str()
            {
                "true" => Depth::Shallow,
                _ => Depth::Whole,
            },
        )
    }

    /// What a score of HEAD would not see, leaving aside the folder that verdicts are written to.
    ///
    /// # Errors
    /// Git says no.
    pub fn uncommitted(&self, except: &Path) -> Result<Uncommitted, WorkspaceError> {
        let mut found = Uncommitted::default();
        let Some(top) = &self.top else {
            return Ok(found);
        };
        let mut args = vec![
            "status".to_owned(),
            "--porcelain=v1".to_owned(),
            "-z".to_owned(),
            "--no-renames".to_owned(),
            "--untracked-files=normal".to_owned(),
            "--".to_owned(),
            ".".to_owned(),
        ];
        args.extend(exclude_pathspec(top, except));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let listing = self.git.bytes(&args)?;
        for entry in listing.split(|b| *b == 0).filter(|e| e.len() > 3) {
            let path = String::from_utf8_lossy(&entry[3..]).into_owned();
            if entry.starts_with(b"??") {
                found.untracked.push(path);
            } else {
                found.changed.push(path);
            }
        }
        Ok(found)
    }

    /// Where its remotes are.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn remote_urls(&self) -> Result<Vec<String>, WorkspaceError> {
        // No remote at all is an exit code of git's own, and no error.
        let output = self
            .git
            .output(&["config", "--get-regexp", r"^remote\..*\.url$"])?;
        Ok(String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(_, url)| url.to_owned())
            .collect())
    }

    /// Tracked and untracked paths that exist, ignored ones left out, as raw bytes from the top.
    ///
    /// # Errors
    /// Git says no, or the repository is bare.
    pub fn paths(&self) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let top = self
            .top
            .as_deref()
            .ok_or_else(|| WorkspaceError::Outside("a bare repository".to_owned()))?;
        let listing = self.git.bytes(&[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])?;
        let mut paths: Vec<Vec<u8>> = listing
            .split(|b| *b == 0)
            .filter(|p| !p.is_empty())
            .map(<[u8]>::to_vec)
            .filter(|p| top.join(os_path(p)).symlink_metadata().is_ok())
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// Whether a workspace has the whole history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// It has.
    Whole,
    /// It was cloned with a depth.
    Shallow,
}

/// Whether a commit is in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Here,
    /// It is not.
    Absent,
}

fn os_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// A pathspec that leaves `folder` out, where it lies under `top`.
fn exclude_pathspec(top: &Path, folder: &Path) -> Option<String> {
    let folder = std::path::absolute(folder).ok()?;
    let inside = match folder.strip_prefix(top) {
        Ok(inside) => inside.to_owned(),
        // The top is canonical and the folder may not be; its parent exists more often than it does itself.
        Err(_) => {
            let parent = folder.parent()?.canonicalize().ok()?;
            parent
                .join(folder.file_name()?)
                .strip_prefix(top)
                .ok()?
                .to_owned()
        }
    };
    let text = inside.to_str().filter(|t| !t.is_empty())?;
    Some(format!(":(top,exclude,literal){text}"))
}

#[cfg(test)]
mod tests;
