//! The folder of signing keys: one file a key, and a link to the one that signs now.
//!
//! Or one key outside of it, which others bring and exchange; then nothing is drawn here.
//!
//! Rotation adds a key and moves the link in one step; old private halves stay until the operator removes them, nothing
//! signs with them. Another process may rotate while the server runs: the next score signs with the new key.

use super::file::{FileSigner, KeyFileError, KeyKind};
use super::{Signer, SignerError};
use crate::config::{SecretError, SecretFile};
use crate::pipeline::SigningKey;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tribunal_core::keys::PublicKey;
use tribunal_core::reason::{Aborted, AbortedCode};

/// The link's name.
const CURRENT: &str = "current";

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFolderError {
    /// One of its files.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The folder itself.
    #[error("{what} in the folder of keys {folder}: {source}")]
    Folder {
        /// What was tried.
        what: &'static str,
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No entropy.
    #[error(transparent)]
    Entropy(#[from] SignerError),
    /// A key from outside that is nowhere.
    #[error("find the signing key {place}: {source}")]
    Nowhere {
        /// What the configuration says.
        place: SecretFile,
        /// Why.
        source: SecretError,
    },
    /// It is for others to exchange.
    #[error(
        "draw a key: {0} of the configuration signs; put another one there and restart the server"
    )]
    Outside(SecretFile),
}

/// A folder of keys.
pub struct KeyFolder {
    folder: PathBuf,
    outside: Option<SecretFile>,
    /// The key that was read last, with the file it came from.
    read: Mutex<Option<(PathBuf, Arc<FileSigner>)>>,
}

impl KeyFolder {
    /// The keys in this folder.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            outside: None,
            read: Mutex::new(None),
        }
    }

    /// The same folder, where a key from outside signs if there is one.
    #[must_use]
    pub fn with(mut self, outside: Option<SecretFile>) -> Self {
        self.outside = outside;
        self
    }

    /// The key from outside, if one signs.
    #[must_use]
    pub const fn outside(&self) -> Option<&SecretFile> {
        self.outside.as_ref()
    }

    fn error(&self, what: &'static str) -> impl FnOnce(std::io::Error) -> KeyFolderError + '_ {
        move |source| KeyFolderError::Folder {
            what,
            folder: self.folder.clone(),
            source,
        }
    }

    /// Draw a key and write it. It does not sign yet.
    ///
    /// # Errors
    /// The disk, or no entropy.
    pub fn draw(&self) -> Result<Drawn, KeyFolderError> {
        if let Some(outside) = &self.outside {
            return Err(KeyFolderError::Outside(outside.clone()));
        }
        fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.folder)
            .map_err(self.error("make room"))?;
        let mut name = [0; 8];
        getrandom::fill(&mut name)
            .map_err(|_| SignerError("the system gives no entropy".to_owned()))?;
        let file = format!("{}.pem", hex::encode(name));
        let signer = FileSigner::create(&self.folder.join(&file))?;
        Ok(Drawn {
            file,
            public: signer.public().clone(),
        })
    }

    /// From now on this one signs.
    ///
    /// # Errors
    /// The disk.
    pub fn appoint(&self, drawn: &Drawn) -> Result<(), KeyFolderError> {
        let beside = self.folder.join(format!("{}.link", drawn.file));
        symlink(&drawn.file, &beside).map_err(self.error("name the new key"))?;
        fs::rename(&beside, self.folder.join(CURRENT)).map_err(self.error("appoint a key"))?;
        fs::File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(self.error("sync"))
    }

    /// The key that signs now.
    ///
    /// # Errors
    /// The disk, or a file that is no key.
    pub fn signer(&self) -> Result<Arc<FileSigner>, KeyFolderError> {
        let (kind, file) = self.place()?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, signer)) = &*read
            && *known == file
        {
            return Ok(Arc::clone(signer));
        }
        let signer = Arc::new(FileSigner::open_as(kind, &file)?);
        *read = Some((file, Arc::clone(&signer)));
        Ok(signer)
    }

    fn place(&self) -> Result<(KeyKind, PathBuf), KeyFolderError> {
        if let Some(outside) = &self.outside {
            let file = outside.locate();
            let file = file.map_err(|source| KeyFolderError::Nowhere {
                place: outside.clone(),
                source,
            })?;
            let kind = match outside {
                SecretFile::Path(_) => KeyKind::Own,
                SecretFile::Credential(_) => KeyKind::Credential,
            };
            return Ok((kind, file));
        }
        let name = fs::read_link(self.folder.join(CURRENT))
            .map_err(self.error("find the key that signs"))?;
        // Only the last part: a link never leads out of the folder.
        let file = self.folder.join(name.file_name().unwrap_or_default());
        Ok((KeyKind::Own, file))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// A key that was drawn.
pub struct Drawn {
    file: String,
    /// Its public half.
    pub public: PublicKey,
}

impl SigningKey for KeyFolder {
    fn current(&self) -> Result<Arc<dyn Signer>, Aborted> {
        match self.signer() {
            Ok(signer) => Ok(signer),
            Err(error) => {
                tracing::error!(%error, "the signing key cannot be read");
                let message = "the signing key cannot be read";
                Err(Aborted::new(AbortedCode::Internal, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn the_appointed_key_signs_and_a_rotation_is_seen_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let keys = KeyFolder::at(dir.path().join("keys"));
        let running = KeyFolder::at(dir.path().join("keys"));
        assert!(keys.signer().is_err());
        let first = keys.draw().unwrap();
        assert!(keys.signer().is_err());
        keys.appoint(&first).unwrap();
        assert_eq!(running.signer().unwrap().public(), &first.public);
        let second = keys.draw().unwrap();
        assert_eq!(running.signer().unwrap().public(), &first.public);
        keys.appoint(&second).unwrap();
        assert_eq!(running.signer().unwrap().public(), &second.public);
        assert_ne!(first.public, second.public);
    }
}
