//! `gc` and `backup`.

use super::{AdminError, Answer, Data};
use crate::clock;
use crate::draws;
use crate::repository::RepositorySettings;
use crate::sandbox::Sandbox as _;
use crate::serve;
use crate::store::{SqliteStore, Store};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::id::UnixTime;

/// Forget ended scores, evidence, uploads and, while no server runs, sealed trees older than this.
///
/// # Errors
/// The store, the disk.
pub async fn gc(
    data: &Data,
    settings: RepositorySettings,
    engine: Option<String>,
    older_than: Duration,
) -> Result<Answer, AdminError> {
    let seconds = i64::try_from(older_than.as_secs()).unwrap_or(i64::MAX);
    // What is exactly this old is old enough: `0s` means all that has ended, in this second too.
    let before = UnixTime(clock::now().0.saturating_sub(seconds).saturating_add(1));
    let room = data.repository(settings)?;
    let uploads = room
        .gc(older_than)
        .map_err(AdminError::repository("remove old uploads"))?;
    let scratch = room
        .sweep()
        .map_err(AdminError::repository("sweep what was left behind"))?;
    let gone = data.store()?.gc(before)?;
    let trees = trees(data, engine, before).await?;
    let text = format!(
        "removed {} scores, {} attempts, {} collections, {} files, {} uploads ({} bytes), {scratch} leftovers; {trees}\n",
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
        "trees": trees,
    });
    Ok(Answer::lines(text, json))
}

/// Only a server knows which of its trees and rooms are in use, so this waits for none to run.
async fn trees(
    data: &Data,
    engine: Option<String>,
    before: UnixTime,
) -> Result<String, AdminError> {
    let _alone = match data.serve() {
        Ok(alone) => alone,
        Err(AdminError::Serving(_)) => {
            return Ok("sealed trees are the running server's own upkeep".to_owned());
        }
        Err(other) => return Err(other),
    };
    let store: Arc<dyn Store> = Arc::new(data.store()?);
    let keep: Vec<_> = store
        .sealed_trees()?
        .into_iter()
        .filter(|(_, used)| *used >= before)
        .map(|(digest, _)| digest)
        .collect();
    let sandbox = serve::sandbox(data, engine, 0, &store, crate::metrics::nobody())?;
    Ok(match sandbox.sweep(Some(&keep)).await {
        Ok(swept) => format!("{} sealed trees, {} rooms", swept.trees, swept.rooms),
        Err(error) => format!("sealed trees were not looked at: {error}"),
    })
}

/// One tar of the store as of one moment, the files it names, and the keys. Unpacked into an empty directory it is a data
/// directory; repositories are added to it anew, uploads are not in it.
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
    let mut text = format!(
        "{} holds the store and the signing keys: keep it as you keep a private key\n",
        file.display()
    );
    if let Some(key) = data.keys().outside() {
        text.push_str(&format!("the key that signs is not in it: {key}\n"));
    }
    Ok(Answer::lines(text, json!({ "file": file, "bytes": bytes })))
}

fn write_backup(data: &Data, target: &File) -> Result<(), AdminError> {
    let failed = || AdminError::file("write the backup");
    let scratch = tempfile::tempdir_in(data.path()).map_err(failed())?;
    let copy = scratch.path().join("tribunal.db");
    // Rows first: every file that this moment's rows name is on the disk already.
    data.store()?.copy_to(&copy)?;
    let mut tar = tar::Builder::new(target);
    tar.follow_symlinks(false);
    tar.append_path_with_name(&copy, "tribunal.db")
        .map_err(failed())?;
    tar.append_dir_all("keys", data.path().join("keys"))
        .map_err(failed())?;
    // A server that never drew gets its secret now: the copy must draw as this one will.
    data.draws()?;
    tar.append_path_with_name(data.path().join(draws::FILE), draws::FILE)
        .map_err(failed())?;
    for file in SqliteStore::open(scratch.path())?.named_files()? {
        tar.append_path_with_name(data.path().join(&file), &file)
            .map_err(failed())?;
    }
    tar.into_inner()
        .and_then(|file| file.sync_all())
        .map_err(failed())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;
    use crate::admin::init;
    use crate::sign::Signer as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_backup_unpacks_to_a_data_directory_with_the_same_keys_and_tokens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        init(&path).unwrap();
        let data = Data::open(&path).unwrap();
        let tar = dir.path().join("backup.tar");
        backup(&data, &tar).unwrap();
        assert_eq!(tar.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(backup(&data, &tar).is_err(), "never overwrites");

        let other = dir.path().join("other");
        tar::Archive::new(File::open(&tar).unwrap())
            .unpack(&other)
            .unwrap();
        let restored = Data::open(&other).unwrap();
        assert_eq!(
            restored.keys().signer().unwrap().public(),
            data.keys().signer().unwrap().public()
        );
        let tokens = |data: &Data| data.store().unwrap().tokens().unwrap();
        assert_eq!(tokens(&restored), tokens(&data));
        let secret = |data: &Data| fs::read(data.path().join(draws::FILE)).unwrap();
        assert_eq!(secret(&restored), secret(&data));
        restored.draws().unwrap();
    }
}
