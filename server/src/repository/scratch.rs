//! Directories that live as long as one piece of work: quarantines of uploads, views of readers, mirrors being made.
//!
//! Each holds a locked file. The lock ends with the process however it ends, so a sweep can tell what was left behind
//! from what another process works in right now.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Held shared while a directory is made, exclusively while leftovers are swept: in between it has no lock yet.
const GATE: &str = ".gate";
const LOCK: &str = ".lock";

/// A directory of our own, gone when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// A fresh one under `root`; `kind` only helps a person who looks.
    pub(super) fn new(root: &Path, kind: &str) -> io::Result<Self> {
        let gate = File::create(root.join(GATE))?;
        gate.lock_shared()?;
        let path = tempfile::Builder::new()
            .prefix(&format!("{kind}-"))
            .rand_bytes(12)
            .tempdir_in(root)?
            .keep();
        let lock = File::create(path.join(LOCK))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a scratch directory stays behind");
        }
    }
}

/// Remove what ended processes left behind; says how many.
pub(super) fn sweep(root: &Path) -> io::Result<u32> {
    let gate = File::create(root.join(GATE))?;
    gate.lock()?;
    let mut swept = 0;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() && !is_in_use(&path)? {
            match fs::remove_dir_all(&path) {
                Ok(()) => swept += 1,
                // Its owner was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(swept)
}

fn is_in_use(path: &Path) -> io::Result<bool> {
    match File::open(path.join(LOCK)) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn goes_with_its_owner_and_leftovers_are_swept() {
        let root = tempfile::tempdir().unwrap();
        let used = Scratch::new(root.path(), "view").unwrap();
        fs::create_dir(root.path().join("left-over")).unwrap();
        fs::write(root.path().join("left-over").join(LOCK), "").unwrap();
        fs::create_dir(root.path().join("cut-short")).unwrap();
        assert_eq!(sweep(root.path()).unwrap(), 2);
        assert!(used.path().is_dir());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
        assert_eq!(sweep(root.path()).unwrap(), 0);
    }
}
