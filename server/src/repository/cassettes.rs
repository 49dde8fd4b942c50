//! What plan needs to know of cassettes: those of base, those that would be merged, who may accept them.
//!
//! The patch's changes are laid over base's set, so that a branch which is merely behind brings and loses nothing. Only
//! reads; what a difference means is core's question.

use super::facts::Listing;
use super::walk::Finder;
use super::{Objects, RepositoryError, refused};
use std::collections::BTreeMap;
use tribunal_core::cassette::{Cassette, CassetteFacts, Kind, Leaf, Shelf};
use tribunal_core::classify::DiffClass;
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::{ObjectId, TreeId};
use tribunal_core::policy::{Paths, Policy};
use tribunal_core::reason::RefusedCode::TooLarge;

/// Who may accept a ledger entry.
const SIGNERS: &str = "ci/allowed_signers";
/// Bytes of all cassettes, bodies and the ledger, of both trees; equal objects count once.
const ALL_BYTES: u64 = 128 << 20;
/// Bytes of one test file that a record names.
const TEST_BYTES: u64 = 4 << 20;

/// Both shelves. `merged` is the root tree of the merge where base has moved on.
///
/// # Errors
/// `too-large`; objects that cannot be read.
pub(super) fn cassette_facts(
    objects: &dyn Objects,
    diff: &DiffClass,
    base: &Listing,
    merged: Option<&TreeId>,
) -> Result<CassetteFacts, RepositoryError> {
    let policy = diff.policy();
    let mut reader = Reader {
        objects,
        left: ALL_BYTES,
        known: BTreeMap::new(),
    };
    let paths = &policy.paths;
    let mut entries: BTreeMap<GitPath, Entry> = base
        .iter()
        .filter(|(path, _)| Kind::of(paths, path).is_some())
        .cloned()
        .collect();
    let of_base = reader.shelf(paths, &entries)?;
    let mut merge = merged.map(|tree| Finder::new(objects, tree));
    for (change, _) in diff.changes() {
        if Kind::of(paths, &change.path).is_none() {
            continue;
        }
        let mut entry = change.head.clone();
        if let (Some(merge), Some(_)) = (&mut merge, &entry) {
            let found = merge.find(change.path.as_bytes())?;
            entry = found
                .filter(|found| Some(found) != change.base.as_ref())
                .or(entry);
        }
        match entry {
            Some(entry) => entries.insert(change.path.clone(), entry),
            None => entries.remove(&change.path),
        };
    }
    let of_head = reader.shelf(paths, &entries)?;
    Ok(CassetteFacts {
        signers: signers(objects, diff)?,
        tests: tests(objects, diff, base, &of_head, policy)?,
        base: of_base,
        head: of_head,
    })
}

fn signers(objects: &dyn Objects, diff: &DiffClass) -> Result<Option<Vec<u8>>, RepositoryError> {
    let tree = &diff.commits().base.tree;
    let found = Finder::new(objects, tree).find(SIGNERS.as_bytes())?;
    text(objects, found)
}

/// The files of the tests that records name, as they would be merged.
fn tests(
    objects: &dyn Objects,
    diff: &DiffClass,
    base: &Listing,
    shelf: &Shelf,
    policy: &Policy,
) -> Result<BTreeMap<String, Vec<u8>>, RepositoryError> {
    let mut tests = BTreeMap::new();
    for (path, leaf) in &shelf.files {
        let record = (Kind::of(&policy.paths, path) == Some(Kind::Record)).then(|| leaf.bytes());
        let Some(cassette) = record
            .flatten()
            .and_then(|bytes| Cassette::parse(bytes).ok())
        else {
            continue;
        };
        let file = GitPath::from(cassette.file());
        let changed = diff
            .changes()
            .iter()
            .find(|(change, _)| change.path == file);
        let entry = match changed {
            Some((change, _)) => change.head.clone(),
            None => base
                .binary_search_by(|(path, _)| path.cmp(&file))
                .ok()
                .and_then(|at| base.get(at))
                .map(|(_, entry)| entry.clone()),
        };
        if let Some(text) = text(objects, entry)? {
            tests.insert(cassette.file().to_owned(), text);
        }
    }
    Ok(tests)
}

fn text(objects: &dyn Objects, entry: Option<Entry>) -> Result<Option<Vec<u8>>, RepositoryError> {
    match entry {
        Some(Entry {
            mode: Mode::File | Mode::Executable,
            id,
        }) => objects.blob(&id, TEST_BYTES).map(Some),
        Some(Entry {
            mode: Mode::Symlink | Mode::Gitlink | Mode::Tree,
            ..
        })
        | None => Ok(None),
    }
}

struct Reader<'a> {
    objects: &'a dyn Objects,
    left: u64,
    known: BTreeMap<ObjectId, Leaf>,
}

impl Reader<'_> {
    fn shelf(
        &mut self,
        paths: &Paths,
        entries: &BTreeMap<GitPath, Entry>,
    ) -> Result<Shelf, RepositoryError> {
        let mut shelf = Shelf::default();
        for (path, entry) in entries {
            match Kind::of(paths, path) {
                Some(Kind::Ledger) => shelf.ledger = Some(self.leaf(entry)?),
                Some(Kind::Record | Kind::Body(_) | Kind::Stray) => {
                    shelf.files.insert(path.clone(), self.leaf(entry)?);
                }
                Some(Kind::Other) | None => {}
            }
        }
        Ok(shelf)
    }

    fn leaf(&mut self, entry: &Entry) -> Result<Leaf, RepositoryError> {
        match entry.mode {
            Mode::File | Mode::Executable => {}
            Mode::Symlink | Mode::Gitlink | Mode::Tree => return Ok(Leaf::NoFile),
        }
        if let Some(known) = self.known.get(&entry.id) {
            return Ok(known.clone());
        }
        let size = self.objects.blob_size(&entry.id)?;
        self.left = self.left.checked_sub(size).ok_or_else(|| {
            refused(
                TooLarge,
                format!("cassettes and their bodies hold more than {ALL_BYTES} bytes"),
            )
        })?;
        let leaf = Leaf::of(self.objects.blob(&entry.id, size)?);
        self.known.insert(entry.id.clone(), leaf.clone());
        Ok(leaf)
    }
}
