//! New names must be portable: one tree must mean the same on every file system, to every tool and to every reader.
//!
//! A name is new where base has no leaf at that very path. What base itself has is not the patch's fault, and deleting or
//! mending it must stay possible.

use crate::git::{Change, GitPath};
use crate::reason::{Refused, RefusedCode};
use crate::text::shown_bytes;
use std::collections::{BTreeMap, BTreeSet};
use unicode_normalization::UnicodeNormalization;

/// Longest name and longest path that every place they go to can hold, the sealed room's file system first of all.
const NAME_BYTES: usize = 255;
const PATH_BYTES: usize = 2048;

/// How many bad names are told.
const NAMED: usize = 20;

/// Every new name of the patch, by itself and against the tree that the patch makes.
pub(super) fn check(base_paths: &[GitPath], changes: &[Change]) -> Result<(), Refused> {
    let mut bad: Vec<String> = Vec::new();
    let mut fit: Vec<&GitPath> = Vec::new();
    for change in changes {
        if change.base.is_some() || change.head.is_none() {
            continue;
        }
        match unportable(change.path.as_bytes()) {
            Some(why) => bad.push(format!(
                "{} {why}",
                shown_bytes(change.path.as_bytes(), 300)
            )),
            None => fit.push(&change.path),
        }
    }
    bad.extend(collisions(base_paths, changes, &fit));
    if bad.is_empty() {
        return Ok(());
    }
    let rest = bad.len().saturating_sub(NAMED);
    bad.truncate(NAMED);
    if rest > 0 {
        bad.push(format!("names beside these: {rest}"));
    }
    Err(Refused::new(RefusedCode::BadPath, bad.join("; ")))
}

/// What is wrong with the path in itself.
fn unportable(path: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(path) else {
        return Some("is not UTF-8");
    };
    if text.len() > PATH_BYTES {
        return Some("is too long");
    }
    text.split('/').find_map(|name| {
        if matches!(name, "" | "." | "..") {
            Some("has an empty, `.` or `..` part")
        } else if name.len() > NAME_BYTES {
            Some("has a part that is too long")
        } else if name.contains(char::is_control) {
            Some("holds a control character")
        } else if name.contains(['\\', ':']) {
            Some("holds a backslash or colon")
        } else if name.ends_with(['.', ' ']) {
            Some("has a part that ends in a dot or space")
        } else {
            None
        }
    })
}

/// New names, directories included, that some file system would take for another name of the resulting tree.
fn collisions(base_paths: &[GitPath], changes: &[Change], fit: &[&GitPath]) -> Vec<String> {
    if fit.is_empty() {
        return Vec::new();
    }
    let gone: BTreeSet<&GitPath> = changes
        .iter()
        .filter(|change| change.head.is_none())
        .map(|change| &change.path)
        .collect();
    let base: BTreeSet<&[u8]> = base_paths
        .iter()
        .filter(|path| !gone.contains(path))
        .flat_map(|path| upwards(path.as_bytes()))
        .collect();
    // What base has comes first, so that the new name is the one that is told.
    let new: BTreeSet<&[u8]> = fit
        .iter()
        .flat_map(|path| upwards(path.as_bytes()))
        .filter(|path| !base.contains(path))
        .collect();
    let mut taken: BTreeMap<String, &[u8]> = BTreeMap::new();
    for path in base {
        taken.entry(folded(path)).or_insert(path);
    }
    let mut told = Vec::new();
    for path in new {
        match taken.get(&folded(path)) {
            Some(other) => told.push(format!(
                "{} is the same name as {} on some file systems",
                shown_bytes(path, 300),
                shown_bytes(other, 300)
            )),
            None => {
                taken.insert(folded(path), path);
            }
        }
    }
    told
}

/// The path and every directory above it.
fn upwards(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(end, _)| end)
        .chain([path.len()]);
    ends.map(move |end| &path[..end])
}

/// Equal for two names that differ only in case, in Unicode composition, or by characters that HFS+ ignores.
pub(crate) fn folded(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let decomposed = text.nfd().filter(|c| !ignored(*c));
    // Lower, upper, lower, letter by letter: full case folding or coarser (`ẞ`, `ß` and `ss`; `Σ`, `σ` and `ς`) without
    // a table of our own. The dotless i alone must not meet i, which no file system takes for it.
    let folded =
        decomposed
            .flat_map(char::to_lowercase)
            .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
                match c {
                    'ı' => Box::new(std::iter::once(c)),
                    c => Box::new(c.to_uppercase().flat_map(char::to_lowercase)),
                }
            });
    folded.collect::<String>().nfd().collect()
}

/// Characters that HFS+ leaves out when it compares names.
fn ignored(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
    )
}
