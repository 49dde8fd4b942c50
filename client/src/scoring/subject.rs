//! What is to be scored: a folder and a revision become a commit, and the workspace whose objects have it.

use crate::failure::Failure;
use crate::workspace::{Uncommitted, Workspace, Worktree};
use std::path::Path;
use tribunal_core::id::CommitId;
use tribunal_core::text::shown;

/// Which commit of a workspace is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which<'a> {
    /// What this revision names.
    Revision(&'a str),
    /// A temporary commit of the uncommitted work on top of this revision.
    Worktree(&'a str),
}

/// A commit to score, and where its objects are. A temporary commit lives as long as this.
#[derive(Debug)]
pub struct Subject {
    workspace: Workspace,
    head: CommitId,
    uncommitted: Uncommitted,
    worktree: Option<Worktree>,
}

impl Subject {
    /// Find it in this workspace; `except` is the folder that verdicts are written to.
    ///
    /// # Errors
    /// The revision names no commit, or git says no.
    pub fn of(workspace: Workspace, which: Which<'_>, except: &Path) -> Result<Self, Failure> {
        match which {
            Which::Worktree(revision) => {
                let worktree = Worktree::commit(&workspace, &workspace.commit(revision)?, except)?;
                Ok(Self {
                    workspace: worktree.view(&workspace),
                    head: worktree.id().clone(),
                    uncommitted: worktree.uncommitted().clone(),
                    worktree: Some(worktree),
                })
            }
            Which::Revision(revision) => Ok(Self {
                head: workspace.commit(revision)?,
                uncommitted: match revision {
                    "HEAD" => workspace.uncommitted(except)?,
                    _ => Uncommitted::default(),
                },
                workspace,
                worktree: None,
            }),
        }
    }

    /// The commit.
    #[must_use]
    pub fn head(&self) -> &CommitId {
        &self.head
    }

    /// Where its objects are.
    #[must_use]
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// That the score is of a temporary commit, and of what.
    #[must_use]
    pub fn temporary(&self) -> Option<String> {
        self.worktree.as_ref().map(|worktree| {
            format!(
                "scoring {}, a temporary commit of HEAD and {}",
                worktree.id(),
                listed(&self.uncommitted)
            )
        })
    }

    /// What lies in the work tree and is not scored, where there is anything.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let left_out = self.worktree.is_none() && !self.uncommitted.is_empty();
        left_out.then(|| {
            format!(
                "what is not committed is not scored: {}",
                listed(&self.uncommitted)
            )
        })
    }
}

fn listed(uncommitted: &Uncommitted) -> String {
    let some = |what: &str, paths: &[String]| {
        let mut names: Vec<String> = paths.iter().take(3).map(|p| shown(p, 120)).collect();
        if paths.len() > names.len() {
            names.push("…".to_owned());
        }
        format!("{} {what} ({})", paths.len(), names.join(", "))
    };
    let mut parts = Vec::new();
    if !uncommitted.changed.is_empty() {
        parts.push(some("changed", &uncommitted.changed));
    }
    if !uncommitted.untracked.is_empty() {
        parts.push(some("untracked", &uncommitted.untracked));
    }
    if parts.is_empty() {
        "nothing else".to_owned()
    } else {
        parts.join(", ")
    }
}
