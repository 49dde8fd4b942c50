//! Content-addressed files: `blobs/ab/cdef…`, written beside, synced, renamed. Never half a file under its name.

use super::StoreError;
use bytes::Bytes;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tribunal_core::id::Digest;

/// A blob that no row names yet may belong to a score that is just being stored.
const YOUNG: Duration = Duration::from_secs(3600);

/// The folder of blobs.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    root: PathBuf,
}

impl Blobs {
    pub(super) fn open(root: PathBuf) -> Result<Self, StoreError> {
        fs::create_dir_all(&root).map_err(|e| file_error("create the folder of blobs", e))?;
        Ok(Self { root })
    }

    /// Where a blob stands below the folder.
    pub(super) fn place(digest: &Digest) -> PathBuf {
        let (folder, name) = digest.hex().split_at(2);
        Path::new(folder).join(name)
    }

    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join(Self::place(digest))
    }

    /// Keep these bytes; on the disk when this returns.
    pub(super) fn put(&self, content: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(content);
        let path = self.path(&digest);
        self.write(&path, content)
            .map_err(|e| file_error("write a blob", e))?;
        Ok(digest)
    }

    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        if let Ok(present) = fs::File::options().append(true).open(path)
            && present.metadata()?.len() == content.len() as u64
        {
            // Made young again, or a collection that runs now could take it before the row is in.
            return present.set_modified(SystemTime::now());
        }
        let mut beside = tempfile::NamedTempFile::new_in(folder)?;
        beside.write_all(content)?;
        beside.as_file().sync_all()?;
        beside.persist(path).map_err(|e| e.error)?;
        fs::File::open(folder)?.sync_all()?;
        fs::File::open(&self.root)?.sync_all()
    }

    /// The bytes of a blob, checked against their name.
    pub(super) fn get(&self, digest: &Digest) -> Result<Bytes, StoreError> {
        let content = fs::read(self.path(digest))
            .map_err(|e| file_error(&format!("read blob {digest}"), e))?;
        if Digest::of(&content) == *digest {
            Ok(Bytes::from(content))
        } else {
            Err(StoreError::Corrupt(format!("blob {digest}")))
        }
    }

    /// Remove what is not in `keep` and is not young.
    pub(super) fn sweep(&self, keep: &HashSet<String>) -> Result<u64, StoreError> {
        self.sweep_older(keep, SystemTime::now() - YOUNG)
            .map_err(|e| file_error("collect blobs", e))
    }

    fn sweep_older(&self, keep: &HashSet<String>, limit: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for blob in fs::read_dir(folder.path())? {
                let blob = blob?;
                let name = format!(
                    "sha256:{}{}",
                    folder.file_name().to_string_lossy(),
                    blob.file_name().to_string_lossy()
                );
                if !keep.contains(&name) && blob.metadata()?.modified()? < limit {
                    fs::remove_file(blob.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

/// A file's error, told apart where the disk is full.
pub(super) fn file_error(what: &str, source: io::Error) -> StoreError {
    if matches!(
        source.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    ) {
        StoreError::DiskFull
    } else {
        StoreError::File {
            what: what.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn a_changed_blob_is_not_handed_out() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path().join("blobs")).unwrap();
        let digest = blobs.put(b"PASS\n").unwrap();
        assert_eq!(&blobs.get(&digest).unwrap()[..], b"PASS\n");
        fs::write(blobs.path(&digest), b"FAIL\n").unwrap();
        assert!(matches!(blobs.get(&digest), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn a_sweep_takes_old_and_unnamed_blobs_only() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path().join("blobs")).unwrap();
        let kept = blobs.put(b"kept").unwrap();
        let young = blobs.put(b"young").unwrap();
        let keep = HashSet::from([kept.to_string()]);
        assert_eq!(blobs.sweep(&keep).unwrap(), 0);
        let later = SystemTime::now() + Duration::from_secs(1);
        assert_eq!(blobs.sweep_older(&keep, later).unwrap(), 1);
        assert!(blobs.get(&kept).is_ok());
        assert!(blobs.get(&young).is_err());
    }
}
