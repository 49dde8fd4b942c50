//! Commits that the server lacks become one git bundle, spooled to an unnamed temporary file.
//!
//! The header is written here and the pack by `git pack-objects`, because `git bundle` wants a ref and this room makes
//! none. Thin: deltas may build on what the server has. A shallow clone's cut is told as a prerequisite, so that the
//! server can say what is missing instead of finding a broken history.

use super::{Workspace, WorkspaceError};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Cursor, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Output};
use tribunal_core::id::CommitId;

/// A bundle on disk, gone with this value.
#[derive(Debug)]
pub struct Bundle {
    header: Vec<u8>,
    pack: File,
    size: u64,
    commits: u64,
}

/// What a bundle leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclude {
    /// These commits and all they lead to; they are in the workspace.
    History(Vec<CommitId>),
    /// Nothing: the whole history of head.
    Nothing,
}

impl Exclude {
    /// Leave out those of `known` that the workspace has.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn of_known(workspace: &Workspace, known: &[CommitId]) -> Result<Self, WorkspaceError> {
        let here = workspace.known(known)?;
        Ok(if here.is_empty() {
            Self::Nothing
        } else {
            Self::History(here)
        })
    }

    /// Leave out what remotes showed of this branch when they were last asked: a guess at what the server has.
    ///
    /// # Errors
    /// Git says no.
    pub fn guessed(workspace: &Workspace, branch: &str) -> Result<Self, WorkspaceError> {
        let listing = workspace.git.text(&[
            "for-each-ref",
            "--format=%(objectname) %(refname)",
            "refs/remotes",
        ])?;
        let ending = format!("/{branch}");
        let seen: Vec<CommitId> = listing
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, name)| name.ends_with(&ending))
            .filter_map(|(id, _)| id.parse().ok())
            .collect();
        Ok(if seen.is_empty() {
            Self::Nothing
        } else {
            Self::History(seen)
        })
    }

    /// Whether this commit is left out by name.
    #[must_use]
    pub fn holds(&self, commit: &CommitId) -> bool {
        match self {
            Self::History(commits) => commits.contains(commit),
            Self::Nothing => false,
        }
    }

    /// What either leaves out.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::History(mut commits), Self::History(more)) => {
                commits.extend(more);
                Self::History(commits)
            }
            (one, Self::Nothing) | (Self::Nothing, one) => one,
        }
    }

    fn revisions(&self, head: &CommitId) -> Vec<String> {
        let mut revisions = vec![head.to_string()];
        match self {
            Self::History(commits) => revisions.extend(commits.iter().map(|c| format!("^{c}"))),
            Self::Nothing => {}
        }
        revisions
    }
}

impl Bundle {
    /// The commits of `head` that are not in `exclude`; `None` where there are none.
    ///
    /// # Errors
    /// Git says no, or the temporary file cannot be written.
    pub fn make(
        workspace: &Workspace,
        head: &CommitId,
        exclude: &Exclude,
    ) -> Result<Option<Self>, WorkspaceError> {
        let revisions = exclude.revisions(head);
        // Both walk the history, side by side; the pack is thrown away where there is nothing to send.
        let packing = Packing::start(workspace, &revisions)?;
        let mut prerequisites = BTreeSet::new();
        let mut sent = BTreeSet::new();
        let mut args = vec!["rev-list", "--boundary"];
        args.extend(revisions.iter().map(String::as_str));
        args.push("--");
        for line in workspace.git.text(&args)?.lines() {
            match line.strip_prefix('-') {
                Some(id) => prerequisites.insert(id.to_owned()),
                None => sent.insert(line.to_owned()),
            };
        }
        if sent.is_empty() {
            return Ok(None);
        }
        prerequisites.extend(parents_cut_off(workspace, &sent)?);
        let header = header(head, &prerequisites);
        let (pack, size) = packing.end()?;
        Ok(Some(Self {
            size: size + header.len() as u64,
            header,
            pack,
            commits: sent.len() as u64,
        }))
    }

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many commits it holds.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Read it from the beginning.
    ///
    /// # Errors
    /// The temporary file is broken.
    pub fn reader(&self) -> std::io::Result<impl std::io::Read + use<>> {
        let mut pack = self.pack.try_clone()?;
        pack.seek(SeekFrom::Start(0))?;
        let header = Cursor::new(self.header.clone());
        Ok(header.chain(pack).take(self.size))
    }
}

fn header(head: &CommitId, prerequisites: &BTreeSet<String>) -> Vec<u8> {
    let mut text = if head.as_str().len() == 64 {
        "# v3 git bundle\n@object-format=sha256\n".to_owned()
    } else {
        "# v2 git bundle\n".to_owned()
    };
    for id in prerequisites {
        text.push_str(&format!("-{id} \n"));
    }
    text.push_str(&format!("{head} refs/tribunal/head\n\n"));
    text.into_bytes()
}

/// In a shallow clone: the real parents of the sent commits at the cut, which this workspace does not have.
fn parents_cut_off(
    workspace: &Workspace,
    sent: &BTreeSet<String>,
) -> Result<BTreeSet<String>, WorkspaceError> {
    let mut parents = BTreeSet::new();
    let Ok(cuts) = std::fs::read_to_string(&workspace.shallow) else {
        return Ok(parents);
    };
    for cut in cuts.lines().filter(|c| sent.contains(*c)) {
        let commit = workspace.git.text(&["cat-file", "commit", cut])?;
        parents.extend(
            commit
                .lines()
                .take_while(|l| !l.is_empty())
                .filter_map(|l| l.strip_prefix("parent "))
                .map(str::to_owned),
        );
    }
    Ok(parents)
}

/// `git pack-objects` at work.
struct Packing {
    git: Running,
    pack: File,
}

/// A git that is killed where nobody waits for its end.
struct Running(Child);

const PACK: [&str; 6] = [
    "pack-objects",
    "--stdout",
    "--revs",
    "--thin",
    "--delta-base-offset",
    "--quiet",
];

impl Packing {
    fn start(workspace: &Workspace, revisions: &[String]) -> Result<Self, WorkspaceError> {
        let pack = tempfile::tempfile().map_err(spool)?;
        let out = pack.try_clone().map_err(spool)?;
        let order = revisions.join("\n") + "\n";
        let git = workspace.git.start(&PACK, &order, out.into())?;
        Ok(Self {
            git: Running(git),
            pack,
        })
    }

    /// The whole pack, and its bytes.
    fn end(mut self) -> Result<(File, u64), WorkspaceError> {
        let child = &mut self.git.0;
        let mut stderr = Vec::new();
        if let Some(mut said) = child.stderr.take() {
            said.read_to_end(&mut stderr).map_err(spool)?;
        }
        let status = child.wait().map_err(super::git::no_git)?;
        if !status.success() {
            let output = Output {
                status,
                stdout: Vec::new(),
                stderr,
            };
            return Err(super::git::said_no(&PACK, &output));
        }
        let size = self.pack.seek(SeekFrom::End(0)).map_err(spool)?;
        Ok((self.pack, size))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After its end both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spool(error: std::io::Error) -> WorkspaceError {
    WorkspaceError::Io("the temporary bundle".to_owned(), error)
}
