//! Files of the image cache: written beside their place and moved there whole, named or checked by digest.

use super::ImageError;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tribunal_core::id::Digest;

/// A file by the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) path: PathBuf,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// Counts and hashes what goes through it.
pub(super) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Hashing<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            size: 0,
        }
    }

    pub(super) fn finish(self) -> (W, Digest, u64) {
        let text = format!("sha256:{}", hex::encode(self.hash.finalize()));
        // The text has the shape of a digest by construction; the other branch cannot be taken.
        let digest = text.parse().unwrap_or_else(|_| Digest::of(text.as_bytes()));
        (self.inner, digest, self.size)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub(super) fn folder(path: &Path) -> Result<(), ImageError> {
    fs::create_dir_all(path).map_err(|error| ImageError::file("create", path, error))
}

/// The digest of a whole file.
pub(super) fn digest(path: &Path) -> io::Result<Digest> {
    let mut hashing = Hashing::new(io::sink());
    io::copy(&mut File::open(path)?, &mut hashing)?;
    Ok(hashing.finish().1)
}

/// Keeps what `write` writes as `folder/<hex><suffix>`. Nothing stays behind when it fails.
pub(super) fn keep_blob<E: From<ImageError>>(
    folder_path: &Path,
    suffix: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Blob, E> {
    folder(folder_path)?;
    let failed = |error| ImageError::file("write", folder_path, error);
    let partial = tempfile::NamedTempFile::new_in(folder_path).map_err(failed)?;
    let mut hashing = Hashing::new(io::BufWriter::with_capacity(1 << 20, partial));
    write(&mut hashing)?;
    let (buffer, digest, size) = hashing.finish();
    let partial = buffer
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    partial.as_file().sync_all().map_err(failed)?;
    let path = folder_path.join(format!("{}{suffix}", digest.hex()));
    partial
        .persist(&path)
        .map_err(|error| ImageError::file("write", &path, error.error))?;
    Ok(Blob { path, digest, size })
}

/// Replaces a small file whole.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    let failed = |error| ImageError::file("write", path, error);
    let parent = path.parent().unwrap_or(Path::new("."));
    folder(parent)?;
    let mut partial = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
    partial.write_all(bytes).map_err(failed)?;
    partial.as_file().sync_all().map_err(failed)?;
    partial.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A file's bytes, `None` when there is no such file.
pub(super) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, ImageError> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ImageError::file("read", path, error)),
    }
}
