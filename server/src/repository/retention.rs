//! Uploads do not stay for ever: what no one needed for long enough goes.

use super::git::{GitRepository, subdirectories};
use super::quarantine::{ends_with, files_in};
use super::{RepositoryError, disk};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Uploads.
    pub uploads: u32,
    /// Bytes on disk.
    pub bytes: u64,
}

impl GitRepository {
    /// Remove uploads that were sent, or last built upon, longer ago than this.
    ///
    /// # Errors
    /// Ours.
    pub fn gc(&self, older_than: Duration) -> Result<Removed, RepositoryError> {
        let mut removed = Removed::default();
        // An age that reaches back before time began keeps everything.
        let Some(limit) = SystemTime::now().checked_sub(older_than) else {
            return Ok(removed);
        };
        for repository in subdirectories(&self.layout.all_uploads())? {
            for token in subdirectories(&repository)? {
                let files = files_in(&token.join("objects").join("pack"))?;
                for index in files.iter().filter(|file| ends_with(file, "idx")) {
                    if is_older(index, limit) {
                        remove(index, &mut removed)
                            .map_err(|error| disk("remove an upload", &error))?;
                    }
                }
            }
        }
        Ok(removed)
    }
}

fn is_older(path: &Path, limit: SystemTime) -> bool {
    let modified = path.metadata().and_then(|data| data.modified());
    modified.is_ok_and(|modified| modified < limit)
}

/// The index goes first: a pack without one is seen by no reader.
fn remove(index: &Path, removed: &mut Removed) -> std::io::Result<()> {
    for extension in ["idx", "rev", "pack"] {
        let file = index.with_extension(extension);
        match file.metadata() {
            Ok(data) => {
                fs::remove_file(&file)?;
                removed.bytes += data.len();
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    removed.uploads += 1;
    Ok(())
}
