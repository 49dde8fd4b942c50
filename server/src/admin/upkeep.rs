//! `gc` and `backup`.

use super::{AdminError, Answer, Data};
use crate::clock;
use crate::repository::RepositorySettings;
use crate::store::Store as _;
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use tribunal_core::id::UnixTime;

/// Forget ended scores, evidence and uploads older than this. Sealed trees are the running server's own upkeep.
///
/// # Errors
/// The store, the disk.
pub fn gc(
    data: &Data,
    settings: RepositorySettings,
    older_than: Duration,
) -> Result<Answer, AdminError> {
    let seconds = i64::try_from(older_than.as_secs()).unwrap_or(i64::MAX);
    let before = UnixTime(clock::now().0.saturating_sub(seconds));
    let room = data.repository(settings)?;
    let uploads = room
        .gc(older_than)
        .map_err(AdminError::repository("remove old uploads"))?;
    let scratch = room
        .sweep()
        .map_err(AdminError::repository("sweep what was left behind"))?;
    let gone = data.store()?.gc(before)?;
    let text = format!(
        "removed {} scores, {} attempts, {} collections, {} files, {} uploads ({} bytes), {scratch} leftovers\n",
        gone.scores, gone.attempts, gone.collections, gone.blobs, uploads.uploads, uploads.bytes
    );
    let json = json!({
        "before": before.rfc3339(),
        "scores": gone.scores,
        "attempts": gone.attempts,
        "collections": gone.collections,
        "files": gone.blobs,
        "uploads": uploads.uploads,
        "upload_bytes": uploads.bytes,
        "leftovers": scratch,
    });
    Ok(Answer::lines(text, json))
}

/// One tar of the store as of one moment, the files it names, the keys and the registrations. Unpacked into an empty
/// directory it is a data directory; mirrors are fetched anew by `repo sync`, uploads are not in it.
///
/// # Errors
/// A file that exists, the disk.
pub fn backup(data: &Data, file: &Path) -> Result<Answer, AdminError> {
    let what = || format!("write {}", file.display());
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(AdminError::file(what()))?;
    let written = write_backup(data, &target);
    if let Err(error) = written {
        // Half a backup must not be taken for one.
        let _ = fs::remove_file(file);
        return Err(error);
    }
    let bytes = target.metadata().map_err(AdminError::file(what()))?.len();
    let text = format!(
        "{} holds the store and the signing keys: keep it as you keep a private key\n",
        file.display()
    );
    Ok(Answer::lines(text, json!({ "file": file, "bytes": bytes })))
}

fn write_backup(data: &Data, target: &File) -> Result<(), AdminError> {
    let failed = || AdminError::file("write the backup");
    let scratch = tempfile::tempdir_in(data.path()).map_err(failed())?;
    let copy = scratch.path().join("tribunal.db");
    // Rows first: a blob that came later is not named, one that is named is there.
    data.store()?.copy_to(&copy)?;
    let mut tar = tar::Builder::new(target);
    tar.follow_symlinks(false);
    tar.append_path_with_name(&copy, "tribunal.db")
        .map_err(failed())?;
    for folder in ["keys", "blobs"] {
        let path = data.path().join(folder);
        if path.is_dir() {
            tar.append_dir_all(folder, path).map_err(failed())?;
        }
    }
    tar.into_inner()
        .and_then(|file| file.sync_all())
        .map_err(failed())
}
