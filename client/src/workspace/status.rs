//! What is in the work tree: paths that a score of HEAD would not see, and all paths that are not ignored.

use super::{Workspace, WorkspaceError};
use std::path::Path;

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

fn os_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// A pathspec that leaves `folder` out, where it lies under `top`.
pub(super) fn exclude_pathspec(top: &Path, folder: &Path) -> Option<String> {
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
