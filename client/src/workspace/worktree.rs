//! Uncommitted work becomes a temporary commit, written beside the repository and never into it.
//!
//! A copy of the index and an object directory of its own, with the real one as alternate, live in a temporary folder
//! that is gone with this value: HEAD, the index, refs and objects of the workspace stay byte for byte as they were.

use super::git::Git;
use super::status::exclude_pathspec;
use super::{Uncommitted, Workspace, WorkspaceError};
use std::path::Path;
use tempfile::TempDir;
use tribunal_core::id::CommitId;
use tribunal_core::text::shown;

/// A temporary commit on top of another one; its objects live as long as this does.
#[derive(Debug)]
pub struct Worktree {
    folder: TempDir,
    commit: CommitId,
    uncommitted: Uncommitted,
}

impl Worktree {
    /// Commit what the tree holds, as `git add --all` would, on top of `head`. The same content gives the same commit.
    ///
    /// # Errors
    /// A merge is not finished, the repository is bare, or git says no.
    pub fn commit(
        workspace: &Workspace,
        head: &CommitId,
        except: &Path,
    ) -> Result<Self, WorkspaceError> {
        let top = workspace
            .top
            .as_deref()
            .ok_or_else(|| WorkspaceError::Outside("a bare repository".to_owned()))?;
        let unmerged = workspace.git.bytes(&["ls-files", "--unmerged", "-z"])?;
        if !unmerged.is_empty() {
            let first = unmerged.split(|b| *b == 0).next().unwrap_or_default();
            let path = first.rsplit(|b| *b == b'\t').next().unwrap_or_default();
            return Err(WorkspaceError::Unmerged(shown(
                &String::from_utf8_lossy(path),
                200,
            )));
        }
        let uncommitted = workspace.uncommitted(except)?;
        let folder = tempfile::Builder::new()
            .prefix("tribunal-worktree-")
            .tempdir()
            .map_err(|e| WorkspaceError::Io("a temporary directory".to_owned(), e))?;
        let git = beside(workspace, folder.path())?;

        let mut add = vec![
            "add".to_owned(),
            "--all".to_owned(),
            "--".to_owned(),
            ".".to_owned(),
        ];
        add.extend(exclude_pathspec(top, except));
        git.bytes(&add.iter().map(String::as_str).collect::<Vec<_>>())?;
        let tree = git.text(&["write-tree"])?;
        let when = git.text(&["show", "-s", "--format=%ct", head.as_str()])?;
        let args = [
            "commit-tree",
            "--no-gpg-sign",
            &tree,
            "-p",
            head.as_str(),
            "-m",
            "uncommitted work",
        ];
        let output = git
            .command(args)
            .env("GIT_AUTHOR_NAME", "tribunal --worktree")
            .env("GIT_AUTHOR_EMAIL", "worktree@tribunal.invalid")
            .env("GIT_COMMITTER_NAME", "tribunal --worktree")
            .env("GIT_COMMITTER_EMAIL", "worktree@tribunal.invalid")
            .env("GIT_AUTHOR_DATE", format!("{when} +0000"))
            .env("GIT_COMMITTER_DATE", format!("{when} +0000"))
            .output()
            .map_err(super::git::no_git)?;
        let commit = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .map_err(|_| super::git::said_no(&args, &output))?;
        Ok(Self {
            folder,
            commit,
            uncommitted,
        })
    }

    /// The temporary commit.
    #[must_use]
    pub fn id(&self) -> &CommitId {
        &self.commit
    }

    /// What it holds beside HEAD.
    #[must_use]
    pub fn uncommitted(&self) -> &Uncommitted {
        &self.uncommitted
    }

    /// The workspace, with the temporary objects in view.
    #[must_use]
    pub fn view(&self, workspace: &Workspace) -> Workspace {
        Workspace {
            git: workspace
                .git
                .clone()
                .with_objects(&self.folder.path().join("objects")),
            ..workspace.clone()
        }
    }
}

/// Git over a copied index and an object directory of its own.
fn beside(workspace: &Workspace, folder: &Path) -> Result<Git, WorkspaceError> {
    use std::os::unix::ffi::OsStrExt as _;
    let io = |what: &str| {
        let what = what.to_owned();
        move |e| WorkspaceError::Io(what, e)
    };
    let objects = folder.join("objects");
    std::fs::create_dir_all(objects.join("info")).map_err(io("the temporary objects"))?;
    let mut alternates = workspace
        .objects
        .canonicalize()
        .map_err(io("the repository's objects"))?
        .as_os_str()
        .as_bytes()
        .to_vec();
    alternates.push(b'\n');
    std::fs::write(objects.join("info/alternates"), alternates)
        .map_err(io("the temporary objects"))?;
    let index = folder.join("index");
    // The copy keeps the stat cache and sparse-checkout bits; without an index everything counts as new.
    match std::fs::copy(workspace.git_dir.join("index"), &index) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(WorkspaceError::Io("a copy of the index".to_owned(), e)),
    }
    Ok(workspace
        .git
        .clone()
        .with_index(&index)
        .with_objects(&objects))
}
