//! The mistakes in trees that matter most, under git's own message ids.

use super::super::{RepositoryError, refused};
use gix::ObjectId;
use gix::hash::Kind as Format;
use gix::objs::{CommitRefIter, Kind, TreeRefIter};
use std::collections::HashSet;
use tribunal_core::reason::RefusedCode::BadObject;

/// Refuse an object that git would not take.
pub(super) fn check(
    id: &ObjectId,
    kind: Kind,
    bytes: &[u8],
    format: Format,
) -> Result<(), RepositoryError> {
    let bad = |message: &str| Err(refused(BadObject, format!("object {id}: {message}")));
    match kind {
        Kind::Commit => match CommitRefIter::from_bytes(bytes, format).tree_id() {
            Ok(_) => Ok(()),
            Err(_) => bad("missingTree: invalid format - expected 'tree' line"),
        },
        Kind::Tree => match tree(bytes, format) {
            Some(message) => bad(message),
            None => Ok(()),
        },
        Kind::Blob | Kind::Tag => Ok(()),
    }
}

fn tree(bytes: &[u8], format: Format) -> Option<&'static str> {
    let mut names = HashSet::new();
    for entry in TreeRefIter::from_bytes(bytes, format) {
        let Ok(entry) = entry else {
            return Some("badTree: cannot be parsed as a tree");
        };
        let name: &[u8] = entry.filename;
        let wrong = match name {
            b"" => Some("emptyName: contains empty pathname"),
            b"." => Some("hasDot: contains '.'"),
            b".." => Some("hasDotdot: contains '..'"),
            name if name.eq_ignore_ascii_case(b".git") => Some("hasDotgit: contains '.git'"),
            name if name.contains(&b'/') => Some("fullPathname: contains full pathnames"),
            name if !names.insert(name.to_vec()) => {
                Some("duplicateEntries: contains duplicate file entries")
            }
            _ => None,
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}
