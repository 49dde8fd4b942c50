//! The folder with a score's files: written beside and exchanged in one step, so that it is never a mix of two scores.
//!
//! Never writes a name that could lead elsewhere (the server chose it), never replaces a folder that holds anything
//! but such files. A process that dies half-way leaves the old folder or the new one, and at most a hidden sibling
//! that the next call removes.

use crate::failure::Failure;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tribunal_core::text::shown;

/// One file of a score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its exact bytes.
    pub content: Vec<u8>,
}

/// What can go wrong with the folder.
#[derive(Debug, thiserror::Error)]
pub enum OutError {
    /// A name that leads out of the folder or hides in it.
    #[error("the server sent a file named {0}")]
    Name(String),
    /// The folder is used for something else.
    #[error("{folder} holds {entry}, which no score writes; it is left as it is")]
    Foreign {
        /// The folder.
        folder: String,
        /// The entry in it.
        entry: String,
    },
    /// There is something, but no folder.
    #[error("{0} is not a directory")]
    NotAFolder(String),
    /// The system says no.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl From<OutError> for Failure {
    fn from(error: OutError) -> Self {
        let next = match &error {
            OutError::Name(_) => "do not use this server; tell its operator",
            OutError::Foreign { .. } | OutError::NotAFolder(_) => {
                "name another folder with --out, or remove this one"
            }
            OutError::Io { .. } => "make room or name another folder with --out",
        };
        Self::usage("write the verdict files", error, next)
    }
}

/// Make `folder` hold exactly these files.
///
/// # Errors
/// Nothing is changed then, but for a hidden sibling that may stay.
pub fn publish(folder: &Path, files: &[OutFile]) -> Result<(), OutError> {
    for file in files {
        if !is_plain(&file.name) {
            return Err(OutError::Name(shown(&file.name, 100)));
        }
    }
    let target = resolve(folder)?;
    let existing = inspect(&target)?;
    let parent = target.parent().unwrap_or(Path::new("/"));
    let prefix = format!(".{}.tribunal-", name_of(&target));
    sweep(parent, &prefix);

    let (fresh, held) = folder_beside(parent, &prefix)?;
    for file in files {
        let mut out = File::create_new(fresh.path().join(&file.name))
            .map_err(io_error(&format!("create {}", file.name)))?;
        out.write_all(&file.content)
            .and_then(|()| out.sync_all())
            .map_err(io_error(&format!("write {}", file.name)))?;
    }
    held.sync_all().map_err(io_error("flush the new folder"))?;
    match existing {
        Existing::Nothing => {
            let path = fresh.keep();
            fs::rename(&path, &target).map_err(|e| {
                discard(&path);
                io_error("put the new folder in place")(e)
            })?;
        }
        Existing::OurFolder => exchange(fresh, &target)?,
    }
    if let Ok(parent) = File::open(parent) {
        // The exchange has happened; whether it is on disk already is not worth failing for.
        let _ = parent.sync_all();
    }
    Ok(())
}

/// A new hidden folder and its lock, held until the exchange is over: a sweep takes only what nobody holds.
fn folder_beside(parent: &Path, prefix: &str) -> Result<(tempfile::TempDir, File), OutError> {
    loop {
        let fresh = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in(parent)
            .map_err(io_error("make a folder beside it"))?;
        let held = match File::open(fresh.path()) {
            Ok(held) => held,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(io_error("open the new folder")(e)),
        };
        flock(&held, FlockOperation::LockExclusive).map_err(errno("lock the new folder"))?;
        // Another process's sweep may have been faster than the lock; then begin again.
        if fresh.path().exists() {
            return Ok((fresh, held));
        }
    }
}

/// Swap, then remove what is now the old one.
fn exchange(fresh: tempfile::TempDir, target: &Path) -> Result<(), OutError> {
    match renameat_with(CWD, fresh.path(), CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => {
            discard(fresh.path());
            Ok(())
        }
        // Not every file system can swap. Then there is a moment without the folder, but never a mixed one.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => replace_in_two_steps(fresh, target),
        Err(e) => Err(errno("exchange the folders")(e)),
    }
}

fn replace_in_two_steps(fresh: tempfile::TempDir, target: &Path) -> Result<(), OutError> {
    let fresh = fresh.keep();
    let mut old = fresh.clone().into_os_string();
    old.push("-old");
    let old = PathBuf::from(old);
    if let Err(e) = fs::rename(target, &old) {
        discard(&fresh);
        return Err(io_error("set the old folder aside")(e));
    }
    if let Err(e) = fs::rename(&fresh, target) {
        let put_back = fs::rename(&old, target);
        discard(&fresh);
        put_back.map_err(io_error("put the old folder back"))?;
        return Err(io_error("put the new folder in place")(e));
    }
    discard(&old);
    Ok(())
}

enum Existing {
    Nothing,
    OurFolder,
}

fn inspect(target: &Path) -> Result<Existing, OutError> {
    let shown_target = shown(&target.to_string_lossy(), 300);
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Existing::Nothing),
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
            return Err(OutError::NotAFolder(shown_target));
        }
        Err(e) => return Err(io_error(&format!("read {shown_target}"))(e)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error(&format!("read {shown_target}")))?;
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|t| t.is_file());
        if !is_file || !name.to_str().is_some_and(is_ours) {
            return Err(OutError::Foreign {
                folder: shown_target,
                entry: shown(&name.to_string_lossy(), 100),
            });
        }
    }
    Ok(Existing::OurFolder)
}

/// Through symlinks to the real folder, whose parent must exist or be made.
fn resolve(folder: &Path) -> Result<PathBuf, OutError> {
    let absolute = std::path::absolute(folder).map_err(io_error("find the folder"))?;
    if let Ok(real) = absolute.canonicalize() {
        return Ok(real);
    }
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(OutError::NotAFolder(shown(&folder.to_string_lossy(), 300)));
    };
    fs::create_dir_all(parent).map_err(io_error("make the parent folder"))?;
    let parent = parent
        .canonicalize()
        .map_err(io_error("find the parent folder"))?;
    Ok(parent.join(name))
}

/// Folders that a killed process left behind: nobody holds their lock.
fn sweep(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            discard(&entry.path());
        }
    }
}

/// Remove a folder of ours, best effort: what stays is swept by the next call.
fn discard(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let _ = fs::remove_file(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

fn is_plain(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Whether a file of this name may be replaced: only kinds of files that scores hand out.
fn is_ours(name: &str) -> bool {
    is_plain(name)
        && (name == "junit.xml"
            || name == "report.json"
            || ["src_score.", "oracle_integrity.", "flake_lease."]
                .iter()
                .any(|stem| name.starts_with(stem)))
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn io_error(what: &str) -> impl FnOnce(io::Error) -> OutError {
    let what = format!("cannot {what}");
    move |source| OutError::Io { what, source }
}

fn errno(what: &str) -> impl FnOnce(Errno) -> OutError {
    let what = format!("cannot {what}");
    move |e| OutError::Io {
        what,
        source: e.into(),
    }
}

#[cfg(test)]
mod tests;
