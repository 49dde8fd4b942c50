//! Which entries a tar gets, in which order, before any content is read.
//!
//! Names stay raw bytes. Directories come before what is in them; order is by name within each directory, so the same
//! tree always gives the same list.

use super::roots::{Place, Roots};
use super::{OverlayError, broken};
use crate::repository::Objects;
use crate::repository::walk::{Budget, by_name, check_depth, leaves, tree_id};
use std::collections::{BTreeMap, BTreeSet};
use tribunal_core::classify::{PathClass, class_of};
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::{Digest, ObjectId, TreeId};
use tribunal_core::policy::Paths;

/// Entries of one whole tree.
const ENTRIES: u64 = 2_000_000;
/// The group that reads the sealed tests; the runner's `layout.py` has the same.
pub(super) const ORACLE_GROUP: u64 = 990;
/// Bytes of a symlink's target.
const LINK_BYTES: u64 = 4095;

/// One entry of a tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) path: GitPath,
    pub(super) readers: Readers,
    pub(super) content: Content,
}

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// The oracle's process and the product's.
    Everyone,
    /// The oracle's alone: its group has it, others nothing.
    Oracle,
    /// A directory of the oracle's alone with a src root below: others pass through, and see nothing.
    Through,
}

impl Readers {
    /// What is left of a mode that everyone would have.
    pub(super) fn mode(self, everyones: u32) -> u32 {
        match self {
            Self::Everyone => everyones,
            Self::Oracle => everyones & !0o007,
            Self::Through => everyones & !0o006,
        }
    }

    /// The group that owns the entry.
    pub(super) fn group(self) -> u64 {
        match self {
            Self::Everyone => 0,
            Self::Oracle | Self::Through => ORACLE_GROUP,
        }
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A directory.
    Directory,
    /// A blob's bytes.
    File(ObjectId),
    /// The same, executable.
    Executable(ObjectId),
    /// A symlink to this.
    Link(Vec<u8>),
}

/// A tree with its src roots taken out.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    pub(super) items: Vec<Item>,
    /// Leaves under a src root that are not src, such as sealed tests beside the product.
    pub(super) under_roots: Vec<(GitPath, Entry)>,
    /// What is not built as it stands in the tree.
    pub(super) left_out: Vec<(GitPath, &'static str)>,
}

/// The sealed side is the oracle's alone, but for what lies in a folder called `fixtures` outside of the sealed tests:
/// that is data for both sides. A `conftest.py` of the oracle's is closed wherever it is; its other names (pytest's and
/// the interpreter's own files) say nothing that a product could use.
pub(super) fn readers(paths: &Paths, path: &GitPath) -> Readers {
    if class_of(paths, path) != PathClass::Oracle {
        return Readers::Everyone;
    }
    let path = path.as_bytes();
    let manifest = paths.manifest.as_str();
    let tests = manifest.rfind('/').map_or("", |at| &manifest[..=at]);
    let in_tests = !tests.is_empty() && path.starts_with(tests.as_bytes());
    let sealed = paths.sealed.iter().any(|prefix| {
        let prefix = prefix.as_bytes();
        path == prefix || (prefix.ends_with(b"/") && path.starts_with(prefix))
    });
    let name = path.rsplit(|b| *b == b'/').next();
    let for_both = path.split(|b| *b == b'/').any(|part| part == b"fixtures");
    if in_tests || name == Some(b"conftest.py") || (sealed && !for_both) {
        Readers::Oracle
    } else {
        Readers::Everyone
    }
}

/// The same for a directory: as a file in it would be.
pub(super) fn directory_readers(paths: &Paths, path: &GitPath) -> Readers {
    readers(paths, &path.join(b"x"))
}

/// The tree that supplies the oracle, each src root an empty directory or a link to where its one file will be.
pub(super) fn sealed(
    objects: &dyn Objects,
    tree: &TreeId,
    roots: &Roots,
    paths: &Paths,
) -> Result<Sealed, OverlayError> {
    let mut walk = Walk {
        objects,
        paths,
        budget: Budget::of(ENTRIES),
        sealed: Sealed::default(),
    };
    walk.directory(Some(tree), &GitPath::new(Vec::new()), Some(roots), 0)?;
    Ok(walk.sealed)
}

struct Walk<'a> {
    objects: &'a dyn Objects,
    paths: &'a Paths,
    budget: Budget,
    sealed: Sealed,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        tree: Option<&TreeId>,
        path: &GitPath,
        roots: Option<&Roots>,
        depth: usize,
    ) -> Result<(), OverlayError> {
        check_depth(path, depth)?;
        let listed = tree.map(|tree| self.objects.tree(tree)).transpose()?;
        let listed = listed.unwrap_or_default();
        self.budget.spend(listed.len())?;
        let mut entries: BTreeMap<Vec<u8>, Option<Entry>> = by_name(listed)
            .into_iter()
            .map(|(name, entry)| (name, Some(entry)))
            .collect();
        // A root that the tree lacks is made all the same: nothing can be mounted where nothing is.
        for name in roots.into_iter().flat_map(Roots::names) {
            entries.entry(name.clone()).or_insert(None);
        }
        for (name, entry) in entries {
            let below = path.join(&name);
            match roots.and_then(|roots| roots.at(&name)) {
                Some(Place::Directory) => self.root(below, entry)?,
                Some(Place::File) => {
                    let target = [b"/srcfiles/", below.as_bytes()].concat();
                    self.push(below, Readers::Everyone, Content::Link(target));
                }
                Some(Place::Above(roots)) => self.above(&below, entry, roots, depth)?,
                None => {
                    if let Some(entry) = entry {
                        self.entry(&name, below, &entry, depth)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn root(&mut self, path: GitPath, entry: Option<Entry>) -> Result<(), OverlayError> {
        if let Some(entry) = entry.filter(|entry| entry.mode == Mode::Tree) {
            let (paths, found) = (self.paths, &mut self.sealed.under_roots);
            let tree = tree_id(&entry)?;
            leaves(
                self.objects,
                &tree,
                &path,
                &mut self.budget,
                &mut |path, entry| {
                    if class_of(paths, &path) != PathClass::Src {
                        found.push((path, entry));
                    }
                    Ok(())
                },
            )?;
        }
        self.push(path, Readers::Everyone, Content::Directory);
        Ok(())
    }

    fn above(
        &mut self,
        path: &GitPath,
        entry: Option<Entry>,
        roots: &Roots,
        depth: usize,
    ) -> Result<(), OverlayError> {
        let tree = match entry {
            None => None,
            Some(entry) if entry.mode == Mode::Tree => Some(tree_id(&entry)?),
            Some(_) => {
                return Err(broken(format!(
                    "{path} is no directory in base, and a src root lies below it"
                )));
            }
        };
        let readers = match directory_readers(self.paths, path) {
            Readers::Everyone => Readers::Everyone,
            Readers::Oracle | Readers::Through => Readers::Through,
        };
        self.push(path.clone(), readers, Content::Directory);
        self.directory(tree.as_ref(), path, Some(roots), depth + 1)
    }

    fn entry(
        &mut self,
        name: &[u8],
        path: GitPath,
        entry: &Entry,
        depth: usize,
    ) -> Result<(), OverlayError> {
        if name.eq_ignore_ascii_case(b".git") {
            self.sealed
                .left_out
                .push((path, "git's own folder is never part of a tree"));
            return Ok(());
        }
        if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
            return Err(broken(format!(
                "base holds the path {path}, which no file can have"
            )));
        }
        match entry.mode {
            Mode::Tree => {
                let tree = tree_id(entry)?;
                let readers = directory_readers(self.paths, &path);
                self.push(path.clone(), readers, Content::Directory);
                self.directory(Some(&tree), &path, None, depth + 1)
            }
            Mode::Gitlink => {
                self.sealed
                    .left_out
                    .push((path.clone(), "a submodule's files are not here"));
                self.push(path, Readers::Everyone, Content::Directory);
                Ok(())
            }
            Mode::Symlink => {
                match inside(self.objects, &path, entry)? {
                    Some(target) => self.push(path, Readers::Everyone, Content::Link(target)),
                    None => self
                        .sealed
                        .left_out
                        .push((path, "a symlink that leaves the tree")),
                }
                Ok(())
            }
            Mode::File | Mode::Executable => {
                let readers = readers(self.paths, &path);
                self.push(path, readers, file(entry));
                Ok(())
            }
        }
    }

    fn push(&mut self, path: GitPath, readers: Readers, content: Content) {
        self.sealed.items.push(Item {
            path,
            readers,
            content,
        });
    }
}

fn file(entry: &Entry) -> Content {
    match entry.mode {
        Mode::Executable => Content::Executable(entry.id.clone()),
        Mode::File | Mode::Symlink | Mode::Gitlink | Mode::Tree => Content::File(entry.id.clone()),
    }
}

/// Where a symlink leads, if that is in the tree.
fn inside(
    objects: &dyn Objects,
    path: &GitPath,
    entry: &Entry,
) -> Result<Option<Vec<u8>>, OverlayError> {
    let target = objects.blob(&entry.id, LINK_BYTES)?;
    Ok(path.leads_inside(&target).then_some(target))
}

/// The leaves of src that are scored and what the oracle has beside them, with the directories they need.
pub(super) fn src(
    objects: &dyn Objects,
    roots: &Roots,
    paths: &Paths,
    scored: &[(GitPath, Entry)],
    base: &[(GitPath, Entry)],
    oracle: &[(GitPath, Entry)],
) -> Result<Vec<Item>, OverlayError> {
    let base: BTreeMap<&[u8], &Entry> = base.iter().map(|(p, e)| (p.as_bytes(), e)).collect();
    let mut items = BTreeMap::new();
    for (path, entry) in scored {
        let reviewed = base.get(path.as_bytes()) == Some(&entry);
        if let Some(content) = leaf(objects, path, entry, reviewed)? {
            items.insert(path.as_bytes().to_vec(), content);
        }
    }
    let of_src = directories(roots, items.keys())?;
    for (path, entry) in oracle {
        // A file that is no oracle's may have become a directory of src, or the other way round. Had it been the
        // oracle's, the patch would not have been admitted.
        let path = path.as_bytes();
        let replaced = of_src.contains(path) || ancestors(path, 0).any(|up| items.contains_key(up));
        if !replaced && let Some(content) = leaf(objects, &GitPath::new(path), entry, true)? {
            items.insert(path.to_vec(), content);
        }
    }
    for path in directories(roots, items.keys())? {
        items.insert(path, Content::Directory);
    }
    let items = items.into_iter().map(|(path, content)| {
        let path = GitPath::new(path);
        let readers = match &content {
            Content::Directory => directory_readers(paths, &path),
            Content::File(_) | Content::Executable(_) => readers(paths, &path),
            Content::Link(_) => Readers::Everyone,
        };
        Item {
            path,
            readers,
            content,
        }
    });
    Ok(items.collect())
}

/// The directories that these leaves need, below their src roots.
fn directories<'a>(
    roots: &Roots,
    paths: impl Iterator<Item = &'a Vec<u8>>,
) -> Result<BTreeSet<Vec<u8>>, OverlayError> {
    let mut all = BTreeSet::new();
    for path in paths {
        let Some(root) = roots.covering(path) else {
            let path = GitPath::new(&path[..]);
            return Err(broken(format!("{path} lies under no src root")));
        };
        all.extend(ancestors(path, root + 1).map(<[u8]>::to_vec));
    }
    Ok(all)
}

/// The directories above a path that are longer than `from` bytes.
pub(super) fn ancestors(path: &[u8], from: usize) -> impl Iterator<Item = &[u8]> {
    let slashes = path
        .iter()
        .enumerate()
        .skip(from)
        .filter(|(_, b)| **b == b'/');
    slashes.map(|(at, _)| &path[..at])
}

/// One leaf of src; `None` where base's own is left out. What base does not have was admitted, or it is our mistake.
pub(super) fn leaf(
    objects: &dyn Objects,
    path: &GitPath,
    entry: &Entry,
    reviewed: bool,
) -> Result<Option<Content>, OverlayError> {
    let parts = path.as_bytes().split(|b| *b == b'/');
    if parts
        .into_iter()
        .any(|part| part.eq_ignore_ascii_case(b".git"))
    {
        if reviewed {
            return Ok(None);
        }
        return Err(broken(format!(
            "{path} lies in git's own folder and was admitted"
        )));
    }
    match entry.mode {
        Mode::File | Mode::Executable => Ok(Some(file(entry))),
        Mode::Symlink => match inside(objects, path, entry)? {
            Some(target) => Ok(Some(Content::Link(target))),
            None if reviewed => Ok(None),
            None => Err(broken(format!(
                "the symlink {path} leaves the tree and was admitted"
            ))),
        },
        Mode::Gitlink if reviewed => Ok(Some(Content::Directory)),
        Mode::Gitlink | Mode::Tree => Err(broken(format!("{path} is no file and was admitted"))),
    }
}

/// Over every item: path, kind and object id.
pub(super) fn digest(head: &str, items: &[Item]) -> Digest {
    let mut text = head.as_bytes().to_vec();
    for item in items {
        text.extend_from_slice(match item.readers {
            Readers::Everyone => b"e",
            Readers::Oracle => b"o",
            Readers::Through => b"t",
        });
        match &item.content {
            Content::Directory => text.extend_from_slice(b"d "),
            Content::File(id) => text.extend_from_slice(format!("f {id} ").as_bytes()),
            Content::Executable(id) => text.extend_from_slice(format!("x {id} ").as_bytes()),
            Content::Link(target) => {
                text.extend_from_slice(b"l ");
                text.extend_from_slice(target);
                text.push(0);
            }
        }
        text.extend_from_slice(item.path.as_bytes());
        text.push(0);
    }
    Digest::of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sealed_side_is_the_oracles() {
        let paths = Paths {
            sealed: [
                "tests/sealed/",
                "fixtures/sealed/",
                "ci/",
                "src/pkg/tests/",
                "answers.json",
            ]
            .map(str::to_owned)
            .into(),
            ..tribunal_core::policy::Policy::default().paths
        };
        for (path, whose) in [
            ("tests/sealed/test_a.py", Readers::Oracle),
            ("tests/sealed/fixtures/a.json", Readers::Oracle),
            ("tests/conftest.py", Readers::Oracle),
            ("ci/tribunal.toml", Readers::Oracle),
            ("src/pkg/tests/test_b.py", Readers::Oracle),
            ("answers.json", Readers::Oracle),
            ("fixtures/sealed/table.csv", Readers::Everyone),
            ("tests/helpers.py", Readers::Everyone),
            ("pytest.ini", Readers::Everyone),
            ("src/pkg/mod.py", Readers::Everyone),
            ("src/conftest.py", Readers::Oracle),
        ] {
            assert_eq!(readers(&paths, &GitPath::new(path)), whose, "{path}");
        }
        let folder = |path| directory_readers(&paths, &GitPath::new(path));
        assert_eq!(folder("tests/sealed"), Readers::Oracle);
        assert_eq!(folder("tests"), Readers::Everyone);
        assert_eq!(folder("fixtures/sealed"), Readers::Everyone);
        assert_eq!(Readers::Through.mode(0o755), 0o751);
        assert_eq!(Readers::Oracle.mode(0o644), 0o640);
    }

    #[test]
    fn links_are_judged_by_their_words() {
        for (path, target, stays) in [
            ("a", "b", true),
            ("a", "../b", false),
            ("d/a", "../b", true),
            ("d/a", "../../b", false),
            ("d/a", "x/../../../b", false),
            ("d/a", "./../b//c", true),
            ("a", "/etc/passwd", false),
            ("a", "", false),
            ("a", "b\0c", false),
        ] {
            assert_eq!(
                GitPath::from(path).leads_inside(target.as_bytes()),
                stays,
                "{path} {target:?}"
            );
        }
    }
}
