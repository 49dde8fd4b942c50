//! `init`: an empty place becomes a data directory with a key, a database and one operator's token.

use super::data::{Data, undo};
use super::token::mint;
use super::{AdminError, Answer};
use crate::clock;
use crate::store::{SqliteStore, Store as _};
use serde_json::json;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use tribunal_core::keys::KeyRecord;
use tribunal_core::request::Role;

/// Make a data directory. What was begun and failed is removed again.
///
/// # Errors
/// `DataExists`, the disk, no entropy.
pub fn init(path: &Path) -> Result<Answer, AdminError> {
    let path = std::path::absolute(path).map_err(AdminError::file("find the data directory"))?;
    // An empty directory may be a mount point that somebody prepared.
    let prepared = match fs::read_dir(&path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(AdminError::DataExists(path));
            }
            true
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return Err(AdminError::DataExists(path));
        }
        Err(error) => return Err(AdminError::file("look at the data directory")(error)),
    };
    let what = "make the data directory";
    if prepared {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
            .map_err(AdminError::file(what))?;
    } else {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(AdminError::file(what))?;
    }
    let data = Data::made(path);
    fill(&data).inspect_err(|_| undo(data.path()))
}

fn fill(data: &Data) -> Result<Answer, AdminError> {
    let store = SqliteStore::open(data.path())?;
    data.name_instance(&store)?;
    let keys = data.keys();
    let drawn = keys.draw()?;
    store.add_key(&KeyRecord {
        valid_after: Some(clock::now()),
        ..KeyRecord::undated(drawn.public.clone())
    })?;
    keys.appoint(&drawn)?;
    data.draws()?;
    let token = mint(&store, Role::Operator, None, None)?;
    let text = format!(
        "{} is a data directory\nsigning key {}\nan operator's token, shown this once:\n{}\n",
        data.path().display(),
        drawn.public.id(),
        *token.reveal()
    );
    let json = json!({
        "data": data.path(),
        "key_id": drawn.public.id(),
        "token": *token.reveal(),
    });
    Ok(Answer::lines(text, json))
}
