//! Going through trees with a budget: few objects can spell ten thousand million paths.

use super::{Objects, RepositoryError, TreeEntry, refused};
use std::collections::BTreeMap;
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::TreeId;
use tribunal_core::reason::RefusedCode::TooLarge;

/// No path is longer, in bytes; beyond this no file system takes it.
const PATH_BYTES: usize = 4096;
/// No tree lies deeper.
const DEPTH: usize = 256;

/// How many entries may still be looked at, empty directories and all.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    all: u64,
}

impl Budget {
    /// This many.
    #[must_use]
    pub fn of(entries: u64) -> Self {
        Self {
            left: entries,
            all: entries,
        }
    }

    /// Take `count` entries.
    ///
    /// # Errors
    /// `too-large`.
    pub fn spend(&mut self, count: usize) -> Result<(), RepositoryError> {
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(refused(
                TooLarge,
                format!("a tree spells more than {} entries", self.all),
            )),
        }
    }
}

/// Give every leaf below `tree` to `visit`, in git's order, with its whole path.
///
/// # Errors
/// `too-large` when the budget, the depth or a path's length runs out; whatever `visit` says.
pub fn leaves(
    objects: &dyn Objects,
    tree: &TreeId,
    path: &GitPath,
    budget: &mut Budget,
    visit: &mut dyn FnMut(GitPath, Entry) -> Result<(), RepositoryError>,
) -> Result<(), RepositoryError> {
    walk(objects, tree, path, 0, budget, visit)
}

fn walk(
    objects: &dyn Objects,
    tree: &TreeId,
    path: &GitPath,
    depth: usize,
    budget: &mut Budget,
    visit: &mut dyn FnMut(GitPath, Entry) -> Result<(), RepositoryError>,
) -> Result<(), RepositoryError> {
    check_depth(path, depth)?;
    let entries = objects.tree(tree)?;
    budget.spend(entries.len())?;
    for entry in entries {
        let below = path.join(&entry.name);
        match entry.mode {
            Mode::Tree => walk(objects, &entry.tree_id()?, &below, depth + 1, budget, visit)?,
            Mode::File | Mode::Executable | Mode::Symlink | Mode::Gitlink => {
                check_depth(&below, depth)?;
                visit(below, entry.without_name())?;
            }
        }
    }
    Ok(())
}

/// Refuse what is nested too deep or named too long.
pub(crate) fn check_depth(path: &GitPath, depth: usize) -> Result<(), RepositoryError> {
    if depth > DEPTH {
        return Err(refused(
            TooLarge,
            format!("{path} lies deeper than {DEPTH} directories"),
        ));
    }
    if path.as_bytes().len() > PATH_BYTES {
        return Err(refused(
            TooLarge,
            format!("the path {path} is longer than {PATH_BYTES} bytes"),
        ));
    }
    Ok(())
}

/// Looks single paths up in one tree, reading each directory once.
pub struct Finder<'a> {
    objects: &'a dyn Objects,
    root: TreeId,
    seen: BTreeMap<Vec<u8>, Option<BTreeMap<Vec<u8>, Entry>>>,
}

impl<'a> Finder<'a> {
    /// A finder in this root tree.
    #[must_use]
    pub fn new(objects: &'a dyn Objects, root: &TreeId) -> Self {
        Self {
            objects,
            root: root.clone(),
            seen: BTreeMap::new(),
        }
    }

    /// What the tree has at `path`, a tree included; `None` where it has nothing.
    ///
    /// # Errors
    /// A tree that cannot be read.
    pub fn find(&mut self, path: &[u8]) -> Result<Option<Entry>, RepositoryError> {
        let (directory, name) = match path.iter().rposition(|b| *b == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&b""[..], path),
        };
        let listing = self.directory(directory)?;
        Ok(listing.and_then(|entries| entries.get(name)).cloned())
    }

    fn directory(
        &mut self,
        path: &[u8],
    ) -> Result<Option<&BTreeMap<Vec<u8>, Entry>>, RepositoryError> {
        if !self.seen.contains_key(path) {
            let tree = if path.is_empty() {
                Some(self.root.clone())
            } else {
                match self.find(path)? {
                    Some(entry) if entry.mode == Mode::Tree => Some(tree_id(&entry)?),
                    Some(_) | None => None,
                }
            };
            let listing = tree.map(|id| self.objects.tree(&id)).transpose()?;
            self.seen.insert(path.to_vec(), listing.map(by_name));
        }
        Ok(self.seen.get(path).and_then(Option::as_ref))
    }
}

/// Entries by name. Of two with one name (only an old base can hold such a tree) the first counts, as it does for git.
pub(crate) fn by_name(entries: Vec<TreeEntry>) -> BTreeMap<Vec<u8>, Entry> {
    let mut map = BTreeMap::new();
    for entry in entries {
        let (name, entry) = entry.split();
        map.entry(name).or_insert(entry);
    }
    map
}

/// The id of an entry that is a tree.
pub(crate) fn tree_id(entry: &Entry) -> Result<TreeId, RepositoryError> {
    let parsed = entry.id.as_str().parse();
    parsed.map_err(|error: tribunal_core::id::IdError| super::internal(error.to_string()))
}

impl TreeEntry {
    /// The entry alone.
    #[must_use]
    pub fn without_name(self) -> Entry {
        self.split().1
    }

    /// Name and entry.
    #[must_use]
    pub fn split(self) -> (Vec<u8>, Entry) {
        let entry = Entry {
            mode: self.mode,
            id: self.id,
        };
        (self.name, entry)
    }

    /// The tree this entry names.
    fn tree_id(&self) -> Result<TreeId, RepositoryError> {
        let parsed = self.id.as_str().parse();
        parsed.map_err(|error: tribunal_core::id::IdError| super::internal(error.to_string()))
    }
}
