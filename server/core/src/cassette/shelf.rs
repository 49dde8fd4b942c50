//! What the two trees hold of cassettes, read by the repository room or by a client from a checkout.

use super::schema::is_sha256;
use crate::classify::{PathClass, class_of};
use crate::git::GitPath;
use crate::policy::Paths;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a Git LFS pointer begins.
const POINTERS: [&[u8]; 2] = [
    b"version https://git-lfs.github.com/spec/",
    b"version https://hawser.github.com/spec/",
];

/// One leaf of class cassette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// A file's bytes.
    File(Arc<[u8]>),
    /// A Git LFS pointer: the record is not there.
    Pointer,
    /// A symlink or a submodule.
    NoFile,
}

impl Leaf {
    /// Of a file with these bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        // By its specification a pointer is shorter than 1024 bytes.
        if bytes.len() < 1024 && POINTERS.iter().any(|first| bytes.starts_with(first)) {
            return Self::Pointer;
        }
        Self::File(bytes.into())
    }

    /// A file's bytes.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File(bytes) => Some(bytes),
            Self::Pointer | Self::NoFile => None,
        }
    }
}

/// All cassettes of one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shelf {
    /// The ledger.
    pub ledger: Option<Leaf>,
    /// Records and bodies, by path.
    pub files: BTreeMap<GitPath, Leaf>,
}

/// What is known of both trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CassetteFacts {
    /// Base's.
    pub base: Shelf,
    /// Base's with the patch laid over it: what would be merged.
    pub head: Shelf,
    /// Base's `ci/allowed_signers`.
    pub signers: Option<Vec<u8>>,
    /// Text of the test files that head's records name, as far as they are there.
    pub tests: BTreeMap<String, Vec<u8>>,
}

/// What a path of class cassette holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The ledger.
    Ledger,
    /// A record.
    Record,
    /// A body, by the hash that its name claims.
    Body(String),
    /// Something else in the bodies' folder.
    Stray,
    /// A file that is neither: read by nobody.
    Other,
}

impl Kind {
    /// Of this path; `None` where it is of another class.
    #[must_use]
    pub fn of(paths: &Paths, path: &GitPath) -> Option<Self> {
        if class_of(paths, path) != PathClass::Cassette {
            return None;
        }
        if path.as_bytes() == paths.ledger.as_str().as_bytes() {
            return Some(Self::Ledger);
        }
        let Some(name) = path
            .as_utf8()
            .and_then(|path| path.strip_prefix(&paths.cassettes))
        else {
            return Some(Self::Other);
        };
        Some(match name.strip_prefix("bodies/") {
            Some(hash) if is_sha256(hash) => Self::Body(hash.to_owned()),
            Some(_) => Self::Stray,
            None if name.ends_with(".json") => Self::Record,
            None => Self::Other,
        })
    }
}
