//! Touched tests laid over the tree that supplies the oracle, in a volume of their own: the merge lane's tree.
//!
//! Everything that judges stays the oracle's: only the changed paths that the plan names are replaced, added or gone. The
//! src is the one that is scored.

use super::items::{self, Content, Item, Readers};
use super::roots::Roots;
use super::{OverlayError, SealedOverlay, broken, tar};
use crate::repository::Objects;
use crate::repository::walk::{Budget, leaves};
use crate::sandbox::TreeToSeal;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use tribunal_core::classify::{PathClass, class_of};
use tribunal_core::git::{Entry, GitPath};
use tribunal_core::id::{Digest, ObjectId, RepoPath};
use tribunal_core::plan::{RunPlan, SrcEntry};
use tribunal_core::policy::Paths;

/// Goes into every digest, as the layout of the other overlay does.
const LAYOUT: u32 = 1;
/// Entries of the whole tree.
const ENTRIES: u64 = 2_000_000;
/// Bytes of a text whose marks are read; longer ones have no text in the plan.
const TEXT_BYTES: u64 = 4 << 20;

/// A tree and a src with the patch's own tests in them.
pub struct LaidOverlay {
    objects: Arc<dyn Objects>,
    mtime: u64,
    tree: Vec<Item>,
    digest: Digest,
    src_tar: Bytes,
}

/// What the plan names of changed tests.
type Changes = [(GitPath, Option<SrcEntry>)];

/// Lay these changes over the oracle's tree of this plan.
///
/// # Errors
/// Objects that are gone, or entries that no plan admits.
pub fn lay(
    objects: Arc<dyn Objects>,
    plan: &RunPlan,
    overlay: &SealedOverlay,
    changes: &Changes,
) -> Result<LaidOverlay, OverlayError> {
    let policy = plan.patch().policy();
    let paths = &policy.paths;
    let roots = Roots::of(&paths.src);
    let mut all: BTreeMap<Vec<u8>, Entry> = BTreeMap::new();
    let root = GitPath::new(Vec::new());
    let mut budget = Budget::of(ENTRIES);
    leaves(
        &*objects,
        &plan.patch().oracle().tree,
        &root,
        &mut budget,
        &mut |path, entry| {
            all.insert(path.as_bytes().to_vec(), entry);
            Ok(())
        },
    )?;
    for (path, entry) in changes {
        replace(&mut all, paths, path, entry.as_ref())?;
    }
    let mut under_roots = Vec::new();
    let mut items = folders_of_roots(&roots, paths);
    for (path, entry) in all {
        let path = GitPath::new(path);
        if roots.covering(path.as_bytes()).is_some() {
            if class_of(paths, &path) != PathClass::Src {
                under_roots.push((path, entry));
            }
        } else if !items.contains_key(path.as_bytes())
            && let Some(content) = items::leaf(&*objects, &path, &entry, true)?
        {
            items.insert(path.as_bytes().to_vec(), item(paths, path, content));
        }
    }
    for folder in folders(items.keys()) {
        items
            .entry(folder.clone())
            .or_insert_with(|| item(paths, GitPath::new(folder), Content::Directory));
    }
    let scored: Vec<_> = plan
        .src()
        .entries
        .iter()
        .map(|e| (e.path.clone(), e.entry.clone()))
        .collect();
    let src = items::src(
        &*objects,
        &roots,
        paths,
        &scored,
        &plan.src().base,
        &under_roots,
    )?;
    let tree: Vec<Item> = items.into_values().collect();
    let head = format!("tribunal laid tree {LAYOUT} {}\n", overlay.mtime);
    let tree_digest = items::digest(&head, &tree);
    let digest = items::digest(&format!("tribunal laid overlay\n{tree_digest}\n"), &src);
    let mut src_tar = Vec::new();
    tar::stream(Arc::clone(&objects), src, overlay.mtime)
        .read_to_end(&mut src_tar)
        .map_err(|error| broken(format!("failed to write the src tar: {error}")))?;
    Ok(LaidOverlay {
        objects,
        mtime: overlay.mtime,
        tree,
        digest,
        src_tar: src_tar.into(),
    })
}

impl LaidOverlay {
    /// Over everything that runs: tests, the rest of the tree, src.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The src that is scored, with what the tree has under the src roots.
    #[must_use]
    pub fn src_tar(&self) -> Bytes {
        self.src_tar.clone()
    }

    /// The tree, for one owner, who ends it after use: no other score has its name.
    #[must_use]
    pub fn tree(&self, image: &str, owner: &str) -> TreeToSeal {
        let (objects, items, mtime) = (Arc::clone(&self.objects), self.tree.clone(), self.mtime);
        TreeToSeal {
            digest: Digest::of(format!("{}\n{owner}", self.digest).as_bytes()),
            image: image.to_owned(),
            tar: Box::new(move || Ok(Box::new(tar::stream(objects, items, mtime)))),
        }
    }

    /// The blob of a file of the tree; `None` where there is none.
    #[must_use]
    pub fn blob(&self, file: &RepoPath) -> Option<&ObjectId> {
        let path = file.as_str().as_bytes();
        let item = self.tree.iter().find(|item| item.path.as_bytes() == path)?;
        match &item.content {
            Content::File(id) | Content::Executable(id) => Some(id),
            Content::Directory | Content::Link(_) => None,
        }
    }

    /// Where texts are read from, off the async threads.
    #[must_use]
    pub fn texts(&self) -> Texts {
        Texts(Arc::clone(&self.objects))
    }
}

/// Reads the texts whose marks are compared.
pub struct Texts(Arc<dyn Objects>);

impl Texts {
    /// One of them.
    ///
    /// # Errors
    /// Objects that are gone.
    pub fn read(&self, id: &ObjectId) -> Result<Bytes, OverlayError> {
        Ok(self.0.blob(id, TEXT_BYTES)?.into())
    }
}

fn item(paths: &Paths, path: GitPath, content: Content) -> Item {
    let readers = match &content {
        Content::Directory => items::directory_readers(paths, &path),
        Content::File(_) | Content::Executable(_) => items::readers(paths, &path),
        Content::Link(_) => Readers::Everyone,
    };
    Item {
        path,
        readers,
        content,
    }
}

/// Put what merges at a path in the place of whatever stood there, folder or file.
fn replace(
    all: &mut BTreeMap<Vec<u8>, Entry>,
    paths: &Paths,
    path: &GitPath,
    entry: Option<&SrcEntry>,
) -> Result<(), OverlayError> {
    all.remove(path.as_bytes());
    let Some(entry) = entry else {
        return Ok(());
    };
    let below = [path.as_bytes(), b"/"].concat();
    let inside = all
        .range(below.clone()..)
        .take_while(|(p, _)| p.starts_with(&below));
    let inside: Vec<Vec<u8>> = inside.map(|(path, _)| path.clone()).collect();
    let above = folders(std::iter::once(&path.as_bytes().to_vec()));
    for gone in inside.iter().chain(&above) {
        if all.remove(gone).is_some()
            && class_of(paths, &GitPath::new(gone.clone())) == PathClass::Oracle
        {
            return Err(broken(format!(
                "{path} stands in the way of an oracle's file and was admitted"
            )));
        }
    }
    all.insert(path.as_bytes().to_vec(), entry.entry.clone());
    Ok(())
}

/// Each root, empty, where the src is mounted, or a link to where its one file is; and the folders above them.
fn folders_of_roots(roots: &Roots, paths: &Paths) -> BTreeMap<Vec<u8>, Item> {
    let mut items = BTreeMap::new();
    for root in &paths.src {
        let (path, content) = match root.strip_suffix('/') {
            Some(path) => (path, Content::Directory),
            None => (
                root.as_str(),
                Content::Link(format!("/srcfiles/{root}").into_bytes()),
            ),
        };
        // A root inside another one belongs to the outer.
        let outer = path.match_indices('/').any(|(at, _)| {
            let above = format!("{}/", &path[..at]);
            paths.src.contains(&above)
        });
        if outer || (content != Content::Directory && roots.covering(path.as_bytes()).is_none()) {
            continue;
        }
        let path = path.as_bytes().to_vec();
        for above in folders(std::iter::once(&path)) {
            let at = GitPath::new(above.clone());
            let readers = match items::directory_readers(paths, &at) {
                Readers::Everyone => Readers::Everyone,
                Readers::Oracle | Readers::Through => Readers::Through,
            };
            let content = Content::Directory;
            items.entry(above).or_insert(Item {
                path: at,
                readers,
                content,
            });
        }
        let readers = Readers::Everyone;
        let at = GitPath::new(path.clone());
        items.insert(
            path,
            Item {
                path: at,
                readers,
                content,
            },
        );
    }
    items
}

/// The folders above these paths.
fn folders<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> BTreeSet<Vec<u8>> {
    paths
        .flat_map(|path| items::ancestors(path, 0).map(<[u8]>::to_vec))
        .collect()
}
