//! The manifest: bytes in, the sealed test files in order out, or the first place where the two part.
//!
//! It must equal, line by line, the byte-sorted list of test files under its own folder, so that no file joins or leaves
//! the sealed suite unseen. Line ends, blank lines and a missing last newline are forgiven; nothing else is, because every
//! other freedom (comments, globs, `./`) is a second way to say what is scored.

use crate::git::GitPath;
use crate::id::RepoPath;
use crate::plan::Finding;
use crate::reason::Reason;
use crate::text::{shown, shown_bytes};
use std::collections::BTreeSet;

/// A sealed test file, in manifest order.
pub type SealedFile = RepoPath;

/// The folder of the manifest, with its final slash: the root of the sealed tests.
#[must_use]
pub fn sealed_root(manifest: &RepoPath) -> &str {
    let path = manifest.as_str();
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// The sealed test files among these paths, byte-sorted.
///
/// # Errors
/// A sealed file whose name no manifest line can hold.
pub fn expected(manifest: &RepoPath, paths: &[GitPath]) -> Result<Vec<SealedFile>, Finding> {
    let root = sealed_root(manifest).as_bytes();
    let sorted: BTreeSet<&[u8]> = paths
        .iter()
        .map(GitPath::as_bytes)
        .filter(|path| path.starts_with(root) && is_test_file(path))
        .collect();
    sorted.into_iter().map(nameable).collect()
}

/// The manifest's bytes as they ought to be.
///
/// # Errors
/// A sealed file whose name no manifest line can hold.
pub fn render(manifest: &RepoPath, paths: &[GitPath]) -> Result<String, Finding> {
    let files = expected(manifest, paths)?;
    Ok(files.iter().map(|file| format!("{file}\n")).collect())
}

/// The sealed test files, if the manifest names exactly them in order.
///
/// # Errors
/// `manifest-drift` with the first difference; a missing manifest is one.
pub fn check(
    manifest: &RepoPath,
    bytes: Option<&[u8]>,
    paths: &[GitPath],
) -> Result<Vec<SealedFile>, Finding> {
    let files = expected(manifest, paths)?;
    let Some(bytes) = bytes else {
        return Err(drift(
            Some(manifest.as_str()),
            "there is no manifest".to_owned(),
        ));
    };
    let mut seen = BTreeSet::new();
    let mut wanted = files.iter();
    for (number, line) in lines(bytes) {
        let next = wanted.next().map(RepoPath::as_str);
        if next.map(str::as_bytes) == Some(line) {
            seen.insert(line);
            continue;
        }
        let told = difference(line, next, &seen, &files);
        return Err(drift(
            Some(manifest.as_str()),
            format!("line {number}: {told}"),
        ));
    }
    match wanted.next() {
        None => Ok(files),
        Some(file) => Err(drift(
            Some(manifest.as_str()),
            format!("it ends without {}", shown(file.as_str(), 300)),
        )),
    }
}

/// Lines that say something, with their numbers from 1.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(n, line)| (n + 1, line))
}

fn difference(
    line: &[u8],
    next: Option<&str>,
    seen: &BTreeSet<&[u8]>,
    files: &[SealedFile],
) -> String {
    let got = shown_bytes(line, 300);
    let known = files.iter().any(|file| file.as_str().as_bytes() == line);
    let why = if line.starts_with(b"\xef\xbb\xbf") {
        "begins with a byte order mark"
    } else if seen.contains(line) {
        "stands there twice"
    } else if known {
        "is not in byte order"
    } else if line.trim_ascii().starts_with(b"#") {
        "is a comment, which a manifest cannot have"
    } else if line.starts_with(b"./") {
        "begins with ./"
    } else if line.trim_ascii() != line {
        "has white space around it"
    } else if line.iter().any(|b| b"*?[".contains(b)) {
        "is a pattern, which a manifest cannot have"
    } else {
        "is no sealed test file"
    };
    match next {
        Some(next) => format!("{got} {why}; {} belongs here", shown(next, 300)),
        None => format!("{got} {why}; nothing more belongs here"),
    }
}

pub(crate) fn is_test_file(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    name.strip_suffix(b".py")
        .is_some_and(|stem| stem.starts_with(b"test_") || stem.ends_with(b"_test"))
}

fn nameable(path: &[u8]) -> Result<SealedFile, Finding> {
    std::str::from_utf8(path)
        .ok()
        .filter(|text| !text.contains(['\n', '\r']) && text.trim() == *text)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            let told = format!("{} cannot be named in a manifest", shown_bytes(path, 300));
            drift(None, told)
        })
}

fn drift(subject: Option<&str>, detail: String) -> Finding {
    Finding {
        reason: Reason::ManifestDrift,
        subject: subject.map(str::to_owned),
        detail,
    }
}

#[cfg(test)]
mod tests;
