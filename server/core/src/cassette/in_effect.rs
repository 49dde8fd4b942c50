//! Which record is replayed: head's where it can be, else base's. Whether head's may be is told by the findings.

use super::schema::Cassette;
use super::shelf::{CassetteFacts, Kind, Shelf};
use crate::git::GitPath;
use crate::id::{Digest, RepoPath};
use crate::policy::Paths;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A record that is replayed, with all that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InEffect {
    /// Its file.
    pub path: RepoPath,
    /// The file's digest.
    pub sha256: Digest,
    /// The record.
    pub cassette: Cassette,
    /// Its bodies by their hash in hex; the empty body is left out.
    pub bodies: BTreeMap<String, Vec<u8>>,
}

/// The records in effect, one a test, by path.
pub(crate) fn in_effect(paths: &Paths, facts: &CassetteFacts) -> Vec<InEffect> {
    let names: BTreeSet<&GitPath> = facts
        .head
        .files
        .keys()
        .chain(facts.base.files.keys())
        .collect();
    let mut seen = BTreeSet::new();
    let mut found: Vec<InEffect> = names
        .into_iter()
        .filter(|path| Kind::of(paths, path) == Some(Kind::Record))
        .filter_map(|path| {
            held(paths, &facts.head, path).or_else(|| held(paths, &facts.base, path))
        })
        .collect();
    // Of two for one test, base's own goes on: a second one changes nothing but the verdict.
    found.sort_by_key(|record| {
        !facts
            .base
            .files
            .contains_key(&GitPath::from(record.path.as_str()))
    });
    found.retain(|record| seen.insert(record.cassette.test.clone()));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// A record that parses and whose bodies are what they claim to be.
fn held(paths: &Paths, shelf: &Shelf, path: &GitPath) -> Option<InEffect> {
    let bytes = shelf.files.get(path)?.bytes()?;
    let cassette = Cassette::parse(bytes).ok()?;
    let mut bodies = BTreeMap::new();
    for hash in cassette.bodies() {
        let body = shelf.body(paths, hash)?;
        if Digest::of(body).hex() != hash {
            return None;
        }
        bodies.insert(hash.to_owned(), body.to_vec());
    }
    Some(InEffect {
        path: path.as_utf8()?.parse().ok()?,
        sha256: Digest::of(bytes),
        cassette,
        bodies,
    })
}

impl Shelf {
    /// The bytes under this hash, whatever they are.
    pub(super) fn body(&self, paths: &Paths, hash: &str) -> Option<&[u8]> {
        let path = format!("{}bodies/{hash}", paths.cassettes);
        self.files.get(&GitPath::from(path.as_str()))?.bytes()
    }
}

/// The digest of what is replayed; `None` where nothing is. Bodies are in it by the hashes that the records hold.
pub(crate) fn digest(records: &[InEffect]) -> Option<Digest> {
    if records.is_empty() {
        return None;
    }
    let mut digested = b"tribunal cassettes 1\n".to_vec();
    for record in records {
        digested.extend_from_slice(record.sha256.hex().as_bytes());
        digested.push(b' ');
        digested.extend_from_slice(record.path.as_str().as_bytes());
        digested.push(0);
    }
    Some(Digest::of(&digested))
}
