//! What commits hold: entries below some paths, the bytes of blobs, and where two histories part.

use super::{Workspace, WorkspaceError};
use tribunal_core::id::CommitId;

/// One entry of a commit's tree that is no directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Its whole path, raw.
    pub path: Vec<u8>,
    /// Its bytes; `None` for a symlink or a submodule.
    pub bytes: Option<Vec<u8>>,
}

impl Workspace {
    /// Every entry of a commit at or below these paths.
    ///
    /// # Errors
    /// Git says no.
    pub fn blobs(&self, commit: &CommitId, paths: &[&str]) -> Result<Vec<Blob>, WorkspaceError> {
        let mut args = vec![
            "--literal-pathspecs",
            "ls-tree",
            "-r",
            "-z",
            "--full-tree",
            commit.as_str(),
            "--",
        ];
        args.extend(paths.iter().map(|path| path.trim_end_matches('/')));
        let listing = self.git.bytes(&args)?;
        let entries = listing.split(|b| *b == 0).filter(|entry| !entry.is_empty());
        entries
            .filter_map(|entry| {
                let tab = entry.iter().position(|b| *b == b'\t')?;
                let (meta, path) = entry.split_at(tab);
                Some((
                    String::from_utf8_lossy(meta).into_owned(),
                    path.get(1..)?.to_vec(),
                ))
            })
            .map(|(meta, path)| {
                let words: Vec<&str> = meta.split(' ').collect();
                let bytes = match words.as_slice() {
                    ["100644" | "100755" | "100664", "blob", id] => {
                        Some(self.git.bytes(&["cat-file", "blob", id])?)
                    }
                    _ => None,
                };
                Ok(Blob { path, bytes })
            })
            .collect()
    }

    /// All merge bases of two commits; none where they share nothing.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn merge_bases(&self, a: &CommitId, b: &CommitId) -> Result<Vec<CommitId>, WorkspaceError> {
        let output = self
            .git
            .output(&["merge-base", "--all", a.as_str(), b.as_str()])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text
            .lines()
            .filter_map(|line| line.trim().parse().ok())
            .collect())
    }

    /// A setting of git's, as it holds here.
    ///
    /// # Errors
    /// Git cannot be started.
    pub fn setting(&self, name: &str) -> Result<Option<String>, WorkspaceError> {
        let output = self.git.output(&["config", "--get", name])?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !text.is_empty()).then_some(text))
    }
}
