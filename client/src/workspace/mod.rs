//! The caller's git workspace: revisions become full ids, missing commits become a bundle.
//!
//! Never writes a ref, an index, HEAD or an object of the workspace, and never runs its hooks or file-system monitors;
//! only `--worktree` runs the content filters that a commit would run. Fails with `WorkspaceError`.

mod bundle;
mod error;
mod git;
mod status;
mod trees;
mod worktree;

pub use bundle::{Bundle, Exclude};
pub use error::WorkspaceError;
pub use git::Git;
pub use status::Uncommitted;
pub use trees::Blob;
pub use worktree::Worktree;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use tribunal_core::id::CommitId;
use tribunal_core::text::shown;

/// A git repository with the caller in it.
#[derive(Debug, Clone)]
pub struct Workspace {
    git: Git,
    top: Option<PathBuf>,
    git_dir: PathBuf,
    objects: PathBuf,
    /// Where a shallow clone lists its cuts.
    shallow: PathBuf,
}

impl Workspace {
    /// The workspace that this folder is in; `None` where it is in none.
    ///
    /// # Errors
    /// There is one, but git will not read it; or there is no git.
    pub fn discover(folder: &Path) -> Result<Option<Self>, WorkspaceError> {
        let git = Git::in_folder(folder);
        // All in one process. In a bare repository the last one fails, when the others have been answered.
        let args = [
            "rev-parse",
            "--absolute-git-dir",
            "--is-bare-repository",
            "--git-path",
            "objects",
            "--git-path",
            "shallow",
            "--show-toplevel",
        ];
        let output = git.output(&args)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines();
        let answers = [lines.next(), lines.next(), lines.next(), lines.next()];
        let bare = answers[1] == Some("true") && answers[3].is_some();
        if !output.status.success() && !bare {
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
        let [Some(git_dir), _, Some(objects), Some(shallow)] = answers else {
            return Err(git::said_no(&args, &output));
        };
        let top = match (bare, lines.next()) {
            (true, _) => None,
            (false, Some(top)) => Some(PathBuf::from(top)),
            (false, None) => return Err(git::said_no(&args, &output)),
        };
        Ok(Some(Self {
            git: Git::in_folder(top.as_deref().unwrap_or(folder)),
            top,
            git_dir: PathBuf::from(git_dir),
            objects: folder.join(objects),
            shallow: folder.join(shallow),
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
        if let Ok(id) = revision.parse::<CommitId>() {
            let output = self.git.output(&["cat-file", "-t", id.as_str()])?;
            let kind = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            return match kind.as_str() {
                "commit" => Ok(id),
                "" => Err(no_commit()),
                _ => Err(WorkspaceError::NotACommit {
                    id: id.to_string(),
                    kind,
                }),
            };
        }
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

    /// Whether this commit is here.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn has(&self, commit: &CommitId) -> Result<Presence, WorkspaceError> {
        Ok(match self.known(std::slice::from_ref(commit))?.is_empty() {
            true => Presence::Absent,
            false => Presence::Here,
        })
    }

    /// Those of these commits that are here, in their order.
    ///
    /// # Errors
    /// Git says no.
    pub fn known(&self, commits: &[CommitId]) -> Result<Vec<CommitId>, WorkspaceError> {
        let args = ["cat-file", "--batch-check=%(objecttype)"];
        let asked: String = commits
            .iter()
            .map(|id| format!("{id}^{{commit}}\n"))
            .collect();
        let child = self.git.start(&args, &asked, Stdio::piped())?;
        let output = child.wait_with_output().map_err(git::no_git)?;
        let answers = String::from_utf8_lossy(&output.stdout).into_owned();
        // Of what is not there, or is no commit, it says so in more words.
        let here = commits.iter().zip(answers.lines());
        let here: Vec<CommitId> = here
            .filter(|(_, answer)| *answer == "commit")
            .map(|(id, _)| id.clone())
            .collect();
        match output.status.success() {
            true => Ok(here),
            false => Err(git::said_no(&args, &output)),
        }
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

#[cfg(test)]
mod tests;
