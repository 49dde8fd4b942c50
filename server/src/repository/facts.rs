//! What plan and overlay need to know of trees: the oracle's files, the src to be scored, base's listing.
//!
//! Only reads and counts; whether a symlink escapes or a name is fit is core's question. The policy's limits hold while
//! walking, so that a bomb is refused before it is unfolded.

use super::walk::{Budget, Finder, leaves, tree_id};
use super::{Objects, RepositoryError, refused};
use std::sync::Arc;
use tribunal_core::cassette::CassetteFacts;
use tribunal_core::classify::{PathClass, class_of};
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::{CommitId, Digest, RepoPath, TreeId};
use tribunal_core::manifest::sealed_root;
use tribunal_core::plan::{OracleFacts, SrcEntry, SrcFacts, TouchedFacts};
use tribunal_core::policy::{POLICY_PATH, Policy};
use tribunal_core::reason::RefusedCode::TooLarge;

/// Entries of one whole tree that may be looked at.
const TREE_ENTRIES: u64 = 2_000_000;
/// Bytes of the policy, the manifest, the lease file.
const STEERING_BYTES: u64 = 4 << 20;
/// A Git LFS pointer is shorter than this, by its specification.
const LFS_POINTER_BYTES: u64 = 1024;
/// What a symlink may say: a path of the longest kind.
const LINK_BYTES: u64 = 4095;

/// The policy as the tree holds it; `None` where it has none.
///
/// # Errors
/// `too-large`; objects that cannot be read.
pub(super) fn policy_bytes(
    objects: &dyn Objects,
    tree: &TreeId,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    steering_file(objects, &mut Finder::new(objects, tree), POLICY_PATH)
}

/// The lease file of a commit, where the commit's own policy puts it; `None` where it has none.
///
/// # Errors
/// `unknown-commit`; `too-large`; objects that cannot be read.
pub fn lease_file(
    objects: &dyn Objects,
    commit: &CommitId,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    let tree = objects.commit(commit)?.0.tree;
    let mut finder = Finder::new(objects, &tree);
    let policy = steering_file(objects, &mut finder, POLICY_PATH)?;
    // A policy that does not parse stops every score; where it would put leases nobody knows.
    let policy = policy.map(|bytes| Policy::parse(&bytes).unwrap_or_default());
    let leases = policy.unwrap_or_default().paths.leases;
    steering_file(objects, &mut finder, leases.as_str())
}

/// Every leaf of a tree with its whole path, byte-sorted.
pub(super) type Listing = Arc<Vec<(GitPath, Entry)>>;

/// List a whole tree.
pub(super) fn listing(objects: &dyn Objects, tree: &TreeId) -> Result<Listing, RepositoryError> {
    let mut all = Vec::new();
    let root = GitPath::new(Vec::new());
    let mut budget = Budget::of(TREE_ENTRIES);
    leaves(objects, tree, &root, &mut budget, &mut |path, entry| {
        all.push((path, entry));
        Ok(())
    })?;
    // Git's own order puts `a-b` between `a` and `a/b`; digests and manifests want plain byte order.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Arc::new(all))
}

/// What the tree that supplies the oracle holds.
///
/// # Errors
/// `too-large`; objects that cannot be read.
pub(super) fn oracle_facts(
    objects: &dyn Objects,
    policy: &Policy,
    tree: &TreeId,
    listing: &Listing,
) -> Result<OracleFacts, RepositoryError> {
    let paths = &policy.paths;
    let mut finder = Finder::new(objects, tree);
    let mut file = |path: &RepoPath| steering_file(objects, &mut finder, path.as_str());
    let (manifest, leases, ledger) = (
        file(&paths.manifest)?,
        file(&paths.leases)?,
        file(&paths.ledger)?,
    );
    let sealed_root = sealed_root(&paths.manifest).as_bytes();
    let (mut sealed_paths, mut lfs_pointers) = (Vec::new(), Vec::new());
    let mut digested = b"tribunal oracle 1\n".to_vec();
    for (path, entry) in listing.iter() {
        if path.as_bytes().starts_with(sealed_root) {
            sealed_paths.push(path.clone());
        }
        match class_of(paths, path) {
            PathClass::Oracle => push_line(&mut digested, path, entry),
            PathClass::Cassette
            | PathClass::Src
            | PathClass::Proposed
            | PathClass::Touched
            | PathClass::Other => {
                continue;
            }
        }
        if is_lfs_pointer(objects, entry)? {
            lfs_pointers.push(path.clone());
        }
    }
    Ok(OracleFacts {
        tree: tree.clone(),
        manifest,
        leases,
        ledger,
        sealed_paths,
        lfs_pointers,
        oracle_digest: Digest::of(&digested),
        cassettes: CassetteFacts::default(),
    })
}

/// The src to be scored, and base's for comparison.
///
/// # Errors
/// `too-large` where a limit of the policy is passed; objects that cannot be read.
pub(super) fn src_facts(
    objects: &dyn Objects,
    policy: &Policy,
    scored: &TreeId,
    base: &Listing,
) -> Result<SrcFacts, RepositoryError> {
    let mut finder = Finder::new(objects, scored);
    let mut scan = SrcScan {
        objects,
        policy,
        budget: Budget::of(TREE_ENTRIES.min(policy.limits.src_files.saturating_mul(8) + 100_000)),
        bytes: 0,
        entries: Vec::new(),
    };
    let mut trees = Vec::new();
    for root in outermost(&policy.paths.src) {
        if let Some((path, entry)) = standing_at(&mut finder, root)? {
            // Where one file belongs, a directory is an entry of its own: plan has a word to say about it.
            if entry.mode == Mode::Tree && root.ends_with('/') {
                trees.push((root.to_owned(), tree_id(&entry)?));
                scan.below(&path, &entry)?;
            } else {
                scan.leaf(path, entry)?;
            }
        }
    }
    scan.entries.sort_by(|a, b| a.path.cmp(&b.path));
    scan.entries.dedup_by(|a, b| a.path == b.path);
    let in_src = |(path, _): &&(GitPath, Entry)| class_of(&policy.paths, path) == PathClass::Src;
    Ok(SrcFacts {
        trees,
        entries: scan.entries,
        base: base.iter().filter(in_src).cloned().collect(),
        touched: TouchedFacts::default(),
    })
}

/// Roots that lie in no other root.
fn outermost(roots: &[String]) -> impl Iterator<Item = &str> {
    let inside =
        |root: &str, other: &str| root != other && other.ends_with('/') && root.starts_with(other);
    roots
        .iter()
        .map(String::as_str)
        .filter(move |root| !roots.iter().any(|other| inside(root, other)))
}

/// What stands at a src root: its entry, or the leaf that stands in the way above it.
fn standing_at(
    finder: &mut Finder<'_>,
    root: &str,
) -> Result<Option<(GitPath, Entry)>, RepositoryError> {
    let root = root.strip_suffix('/').unwrap_or(root).as_bytes();
    let cuts = root.iter().enumerate().filter(|(_, b)| **b == b'/');
    for end in cuts.map(|(at, _)| at).chain([root.len()]) {
        match finder.find(&root[..end])? {
            None => return Ok(None),
            Some(entry) if entry.mode == Mode::Tree && end < root.len() => {}
            Some(entry) => return Ok(Some((GitPath::new(&root[..end]), entry))),
        }
    }
    Ok(None)
}

struct SrcScan<'a> {
    objects: &'a dyn Objects,
    policy: &'a Policy,
    budget: Budget,
    bytes: u64,
    entries: Vec<SrcEntry>,
}

impl SrcScan<'_> {
    fn below(&mut self, root: &GitPath, entry: &Entry) -> Result<(), RepositoryError> {
        let mut budget = std::mem::replace(&mut self.budget, Budget::of(0));
        let objects = self.objects;
        let tree = tree_id(entry)?;
        leaves(objects, &tree, root, &mut budget, &mut |path, entry| {
            self.leaf(path, entry)
        })?;
        self.budget = budget;
        Ok(())
    }

    fn leaf(&mut self, path: GitPath, entry: Entry) -> Result<(), RepositoryError> {
        if class_of(&self.policy.paths, &path) != PathClass::Src {
            return Ok(());
        }
        let limits = &self.policy.limits;
        if self.entries.len() as u64 >= limits.src_files {
            return Err(refused(
                TooLarge,
                format!("src holds more than {} files", limits.src_files),
            ));
        }
        let size = match entry.mode {
            Mode::File | Mode::Executable | Mode::Symlink => self.objects.blob_size(&entry.id)?,
            Mode::Gitlink | Mode::Tree => 0,
        };
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > limits.src_bytes {
            return Err(refused(
                TooLarge,
                format!("src holds more than {} bytes", limits.src_bytes),
            ));
        }
        self.entries
            .push(entry_facts(self.objects, path, entry, size)?);
        Ok(())
    }
}

/// A leaf as planning judges it.
fn entry_facts(
    objects: &dyn Objects,
    path: GitPath,
    entry: Entry,
    size: u64,
) -> Result<SrcEntry, RepositoryError> {
    let link_target = match entry.mode {
        Mode::Symlink if size > LINK_BYTES => {
            return Err(refused(
                TooLarge,
                format!("the symlink {path} leads to a path of {size} bytes"),
            ));
        }
        Mode::Symlink => Some(objects.blob(&entry.id, LINK_BYTES)?),
        Mode::File | Mode::Executable | Mode::Gitlink | Mode::Tree => None,
    };
    Ok(SrcEntry {
        path,
        size,
        link_target,
        lfs_pointer: is_lfs_pointer(objects, &entry)?,
        entry,
    })
}

/// The same for any leaf of a tree, its size read here.
pub(super) fn leaf_facts(
    objects: &dyn Objects,
    path: GitPath,
    entry: Entry,
) -> Result<SrcEntry, RepositoryError> {
    let size = match entry.mode {
        Mode::File | Mode::Executable | Mode::Symlink => objects.blob_size(&entry.id)?,
        Mode::Gitlink | Mode::Tree => 0,
    };
    entry_facts(objects, path, entry, size)
}

fn steering_file(
    objects: &dyn Objects,
    finder: &mut Finder<'_>,
    path: &str,
) -> Result<Option<Vec<u8>>, RepositoryError> {
    match finder.find(path.as_bytes())? {
        Some(Entry {
            mode: Mode::File | Mode::Executable,
            id,
        }) => objects.blob(&id, STEERING_BYTES).map(Some),
        Some(Entry {
            mode: Mode::Symlink | Mode::Gitlink | Mode::Tree,
            ..
        })
        | None => Ok(None),
    }
}

/// Whether a file's content is a Git LFS pointer: short, and led by the version line.
fn is_lfs_pointer(objects: &dyn Objects, entry: &Entry) -> Result<bool, RepositoryError> {
    match entry.mode {
        Mode::File | Mode::Executable => {}
        Mode::Symlink | Mode::Gitlink | Mode::Tree => return Ok(false),
    }
    if objects.blob_size(&entry.id)? >= LFS_POINTER_BYTES {
        return Ok(false);
    }
    Ok(leads_like_a_pointer(
        &objects.blob(&entry.id, LFS_POINTER_BYTES)?,
    ))
}

fn leads_like_a_pointer(content: &[u8]) -> bool {
    [
        &b"version https://git-lfs.github.com/spec/"[..],
        b"version https://hawser.github.com/spec/",
    ]
    .iter()
    .any(|version| content.starts_with(version))
}

/// One line of a digest that no other (path, mode, id) can spell: the path comes last and ends with NUL.
pub(crate) fn push_line(digested: &mut Vec<u8>, path: &GitPath, entry: &Entry) {
    let mode = match entry.mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
        Mode::Gitlink => "160000",
        Mode::Tree => "040000",
    };
    digested.extend_from_slice(mode.as_bytes());
    digested.push(b' ');
    digested.extend_from_slice(entry.id.as_str().as_bytes());
    digested.push(b' ');
    digested.extend_from_slice(path.as_bytes());
    digested.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_known_by_their_first_line() {
        assert!(leads_like_a_pointer(
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
        ));
        assert!(leads_like_a_pointer(
            b"version https://hawser.github.com/spec/v1\noid sha256:00\nsize 1\n"
        ));
        assert!(!leads_like_a_pointer(b"version = 1\n"));
        assert!(!leads_like_a_pointer(
            b"# version https://git-lfs.github.com/spec/v1\n"
        ));
    }

    #[test]
    fn a_root_inside_a_root_is_walked_once() {
        let roots = ["src/", "src/a/", "srcs/", "one.py"].map(str::to_owned);
        let kept: Vec<_> = outermost(&roots).collect();
        assert_eq!(kept, ["src/", "srcs/", "one.py"]);
    }
}
