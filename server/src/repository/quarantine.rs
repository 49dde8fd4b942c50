//! Where an upload waits until it is known to be whole: an object directory of its own that borrows from the mirror and
//! from what the same token sent before.
//!
//! Gone whatever happens. What passes moves to the token's own objects, pack before index, so that a reader sees all of it
//! or nothing.

use super::git::write_alternates;
use super::scratch::Scratch;
use super::{RepositoryError, disk};
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// One upload's objects.
#[derive(Debug)]
pub(super) struct Quarantine {
    scratch: Scratch,
}

impl Quarantine {
    /// An empty one that borrows from these object directories.
    pub(super) fn new(scratch: Scratch, borrowed: &[PathBuf]) -> Result<Self, RepositoryError> {
        let new = Self { scratch };
        new.borrow(borrowed)?;
        Ok(new)
    }

    /// Borrow from these instead.
    pub(super) fn borrow(&self, borrowed: &[PathBuf]) -> Result<(), RepositoryError> {
        write_alternates(&self.objects(), borrowed)
            .map_err(|error| disk("make a quarantine", &error))
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.scratch.path().join("objects")
    }

    pub(super) fn temporary(&self) -> &Path {
        self.scratch.path()
    }

    /// The index of the one pack it holds.
    pub(super) fn index(&self) -> Result<Option<PathBuf>, RepositoryError> {
        let files = self.files()?;
        Ok(files.into_iter().find(|path| ends_with(path, "idx")))
    }

    /// Move everything to `kept`, the token's object directory.
    pub(super) fn release(&self, kept: &Path) -> Result<(), RepositoryError> {
        let pack = kept.join("pack");
        let mut files = self.files()?;
        // The index makes a pack visible.
        files.sort_by_key(|path| ends_with(path, "idx"));
        let release = || -> std::io::Result<()> {
            fs::create_dir_all(&pack)?;
            for file in &files {
                if let Some(name) = file.file_name() {
                    fs::rename(file, pack.join(name))?;
                    touch(&pack.join(name))?;
                }
            }
            File::open(&pack)?.sync_all()
        };
        release().map_err(|error| disk("keep an upload", &error))
    }

    fn files(&self) -> Result<Vec<PathBuf>, RepositoryError> {
        files_in(&self.objects().join("pack"))
    }
}

/// The files in a directory, sorted; none where it is missing.
pub(super) fn files_in(directory: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(disk("read a pack directory", &error)),
    };
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    files.sort();
    Ok(files)
}

pub(super) fn ends_with(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// An upload's age counts from when it was last needed.
pub(super) fn touch(path: &Path) -> std::io::Result<()> {
    let now = FileTimes::new().set_modified(SystemTime::now());
    File::open(path)?.set_times(now)
}
