//! Single files of a checkout: the policy as it lies there, bytes in, bytes out.
//!
//! Never looks at git, never follows anything that a candidate names; a file that is not there is no failure.

use crate::failure::Failure;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use tribunal_core::policy::{POLICY_PATH, Policy};
use tribunal_core::text::shown;

/// The policy of a work tree; the defaults where it has none.
///
/// # Errors
/// It does not hold, or cannot be read.
pub fn policy_in(top: &Path) -> Result<Policy, Failure> {
    let Some(bytes) = read(&top.join(POLICY_PATH))? else {
        return Ok(Policy::default());
    };
    Policy::parse(&bytes)
        .map_err(|e| Failure::usage(format!("read {POLICY_PATH}"), e, "mend what is listed"))
}

/// A file's bytes; `None` where it is not there.
///
/// # Errors
/// It is there and cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(local(path, &e)),
    }
}

/// Write a file, whole or not at all, folders and all.
///
/// # Errors
/// The system says no.
pub fn write(top: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let target = top.join(path);
    let folder = target.parent().unwrap_or(top);
    let written = fs::create_dir_all(folder)
        .and_then(|()| {
            tempfile::Builder::new()
                .prefix(".tribunal-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
                .tempfile_in(folder)
        })
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.persist(&target).map_err(|e| e.error)
        });
    written.map(drop).map_err(|e| local(&target, &e))
}

fn local(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(
        format!("use {}", shown(&path.to_string_lossy(), 300)),
        error,
        "make it readable and writable",
    )
}
