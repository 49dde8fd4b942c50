//! The data directory: what is where in it, and who may use it.

use super::AdminError;
use crate::config::SecretFile;
use crate::draws::Draws;
use crate::repository::{GitRepository, RepositorySettings};
use crate::sign::KeyFolder;
use crate::store::{SqliteStore, Store};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Its own name in the store: what the engine's things of this server are labelled with.
const INSTANCE: &str = "instance";

/// A data directory that `init` made.
pub struct Data {
    path: PathBuf,
    key: Option<SecretFile>,
}

/// The right to serve a data directory: one server at a time.
pub struct Serving {
    _lock: File,
}

impl Data {
    /// Open it.
    ///
    /// # Errors
    /// `NoData` where `init` never was.
    pub fn open(path: &Path) -> Result<Self, AdminError> {
        let path =
            std::path::absolute(path).map_err(AdminError::file("find the data directory"))?;
        // One whose keys were lost is one all the same: `key rotate` and `doctor` have to get in.
        if path.join("tribunal.db").is_file() {
            Ok(Self { path, key: None })
        } else {
            Err(AdminError::NoData(path))
        }
    }

    /// One that `init` just made.
    pub(super) const fn made(path: PathBuf) -> Self {
        Self { path, key: None }
    }

    /// The same, where a key from outside signs if the configuration names one.
    #[must_use]
    pub fn signing_with(mut self, key: Option<SecretFile>) -> Self {
        self.key = key;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its store.
    ///
    /// # Errors
    /// The disk or the database.
    pub fn store(&self) -> Result<SqliteStore, AdminError> {
        Ok(SqliteStore::open(&self.path)?)
    }

    /// Its keys.
    #[must_use]
    pub fn keys(&self) -> KeyFolder {
        KeyFolder::at(self.path.join("keys")).with(self.key.clone())
    }

    /// What its held-out pins are drawn from, made where it has nothing yet.
    ///
    /// # Errors
    /// The disk, no entropy, or a file that others can read.
    pub fn draws(&self) -> Result<Draws, AdminError> {
        Ok(Draws::of(&self.path)?)
    }

    /// Its mirrors and uploads, with the defaults for fetching.
    ///
    /// # Errors
    /// The disk.
    pub fn repository(&self, settings: RepositorySettings) -> Result<GitRepository, AdminError> {
        GitRepository::open(settings).map_err(AdminError::repository("open the mirrors"))
    }

    /// What the engine's things of this server are labelled with.
    ///
    /// # Errors
    /// The store, or one that `init` did not finish.
    pub fn instance(&self, store: &dyn Store) -> Result<String, AdminError> {
        store
            .meta(INSTANCE)?
            .ok_or_else(|| AdminError::NoData(self.path.clone()))
    }

    pub(super) fn name_instance(&self, store: &SqliteStore) -> Result<(), AdminError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| crate::wire::token::NoEntropy)?;
        Ok(store.set_meta(INSTANCE, &hex::encode(bytes))?)
    }

    /// The right to serve it, until it is dropped or the process ends.
    ///
    /// # Errors
    /// `Serving` where another process has it.
    pub fn serve(&self) -> Result<Serving, AdminError> {
        let what = "lock the data directory";
        let file = File::create(self.path.join("serve.lock")).map_err(AdminError::file(what))?;
        match file.try_lock() {
            Ok(()) => Ok(Serving { _lock: file }),
            Err(TryLockError::WouldBlock) => Err(AdminError::Serving(self.path.clone())),
            Err(TryLockError::Error(error)) => Err(AdminError::file(what)(error)),
        }
    }
}

/// Remove what a failed `init` left.
pub(super) fn undo(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::warn!(%error, "what was made could not be removed again");
    }
}
