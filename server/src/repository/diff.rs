//! What a patch changes: two root trees become a sorted list of leaves that differ.
//!
//! By raw name, mode and object id; never by content, and without rename detection: a sealed file that moves into src is
//! gone from where it was. A path counts only where head also differs from at least one merge base, so that a branch
//! which is merely behind changes nothing.

use super::walk::{Budget, Finder, by_name, check_depth, leaves, tree_id};
use super::{Objects, RepositoryError, refused};
use std::collections::BTreeMap;
use tribunal_core::classify::compares_tables;
use tribunal_core::git::{Change, Contents, Entry, GitPath, Mode, ResolvedCommits};
use tribunal_core::id::{CommitId, TreeId};
use tribunal_core::reason::RefusedCode::TooLarge;

/// How much a patch may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLimits {
    /// Changed leaves.
    pub changes: usize,
    /// Entries of trees that differ.
    pub entries: u64,
    /// Bytes of a file whose content is compared.
    pub contents: u64,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            changes: 100_000,
            entries: 400_000,
            contents: 1 << 20,
        }
    }
}

/// The leaves that differ between base and head, and between head and at least one merge base, sorted by path.
///
/// # Errors
/// `too-large` where a limit is passed; objects that cannot be read.
pub fn changes(
    objects: &dyn Objects,
    commits: &ResolvedCommits,
    limits: &DiffLimits,
) -> Result<Vec<Change>, RepositoryError> {
    let mut comparison = Comparison {
        objects,
        budget: Budget::of(limits.entries),
        limit: limits.changes,
        found: Vec::new(),
    };
    let root = GitPath::new(Vec::new());
    comparison.trees(&commits.base.tree, &commits.head.tree, &root, 0)?;
    let mut found = comparison.found;
    if commits.merge_bases != [commits.base.id.clone()] {
        found = since_merge_bases(objects, &commits.merge_bases, found)?;
    }
    // A directory's own order is not that of whole paths: `a-b` comes between `a` and `a/b`.
    found.sort_by(|a, b| a.path.cmp(&b.path));
    for change in &mut found {
        if compares_tables(&change.path) {
            change.contents = Some(contents(objects, change, limits.contents)?);
        }
    }
    Ok(found)
}

struct Comparison<'a> {
    objects: &'a dyn Objects,
    budget: Budget,
    limit: usize,
    found: Vec<Change>,
}

impl Comparison<'_> {
    fn trees(
        &mut self,
        base: &TreeId,
        head: &TreeId,
        path: &GitPath,
        depth: usize,
    ) -> Result<(), RepositoryError> {
        if base == head {
            return Ok(());
        }
        check_depth(path, depth)?;
        let (base, head) = (self.objects.tree(base)?, self.objects.tree(head)?);
        self.budget.spend(base.len() + head.len())?;
        let mut pairs: BTreeMap<Vec<u8>, (Option<Entry>, Option<Entry>)> = by_name(base)
            .into_iter()
            .map(|(name, entry)| (name, (Some(entry), None)))
            .collect();
        for (name, entry) in by_name(head) {
            pairs.entry(name).or_default().1 = Some(entry);
        }
        for (name, (base, head)) in pairs {
            self.entries(base, head, &path.join(&name), depth)?;
        }
        Ok(())
    }

    fn entries(
        &mut self,
        base: Option<Entry>,
        head: Option<Entry>,
        path: &GitPath,
        depth: usize,
    ) -> Result<(), RepositoryError> {
        if base == head {
            return Ok(());
        }
        let (base, base_tree) = split(base)?;
        let (head, head_tree) = split(head)?;
        if base != head {
            self.add(path.clone(), base, head)?;
        }
        match (base_tree, head_tree) {
            (Some(base), Some(head)) => self.trees(&base, &head, path, depth + 1),
            (Some(base), None) => self.side(&base, path, Side::Base),
            (None, Some(head)) => self.side(&head, path, Side::Head),
            (None, None) => Ok(()),
        }
    }

    /// Everything below a tree that only one side has.
    fn side(&mut self, tree: &TreeId, path: &GitPath, side: Side) -> Result<(), RepositoryError> {
        let (found, limit) = (&mut self.found, self.limit);
        leaves(
            self.objects,
            tree,
            path,
            &mut self.budget,
            &mut |path, entry| {
                let (base, head) = match side {
                    Side::Base => (Some(entry), None),
                    Side::Head => (None, Some(entry)),
                };
                push(found, limit, path, base, head)
            },
        )
    }

    fn add(
        &mut self,
        path: GitPath,
        base: Option<Entry>,
        head: Option<Entry>,
    ) -> Result<(), RepositoryError> {
        check_depth(&path, 0)?;
        push(&mut self.found, self.limit, path, base, head)
    }
}

#[derive(Clone, Copy)]
enum Side {
    Base,
    Head,
}

fn push(
    found: &mut Vec<Change>,
    limit: usize,
    path: GitPath,
    base: Option<Entry>,
    head: Option<Entry>,
) -> Result<(), RepositoryError> {
    if found.len() >= limit {
        return Err(refused(
            TooLarge,
            format!("the patch changes more than {limit} paths"),
        ));
    }
    found.push(Change {
        path,
        base,
        head,
        contents: None,
    });
    Ok(())
}

/// A leaf, or a tree: the two never compare with each other.
fn split(entry: Option<Entry>) -> Result<(Option<Entry>, Option<TreeId>), RepositoryError> {
    match entry {
        Some(entry) if entry.mode == Mode::Tree => Ok((None, Some(tree_id(&entry)?))),
        leaf => Ok((leaf, None)),
    }
}

/// Keep a change where head's leaf is not that of every merge base.
fn since_merge_bases(
    objects: &dyn Objects,
    merge_bases: &[CommitId],
    mut found: Vec<Change>,
) -> Result<Vec<Change>, RepositoryError> {
    let mut differs = vec![false; found.len()];
    for merge_base in merge_bases {
        let tree = objects.commit(merge_base)?.0.tree;
        let mut finder = Finder::new(objects, &tree);
        for (change, differs) in found.iter().zip(&mut differs) {
            if !*differs {
                let then = finder.find(change.path.as_bytes())?;
                let then = then.filter(|entry| entry.mode != Mode::Tree);
                *differs = then != change.head;
            }
        }
    }
    let mut keep = differs.into_iter();
    found.retain(|_| keep.next().unwrap_or(true));
    Ok(found)
}

fn contents(
    objects: &dyn Objects,
    change: &Change,
    limit: u64,
) -> Result<Contents, RepositoryError> {
    let read = |entry: &Option<Entry>| match entry {
        Some(Entry {
            mode: Mode::File | Mode::Executable,
            id,
        }) => objects.blob(id, limit),
        Some(Entry {
            mode: Mode::Symlink | Mode::Gitlink | Mode::Tree,
            ..
        })
        | None => Ok(Vec::new()),
    };
    Ok(Contents {
        base: read(&change.base)?,
        head: read(&change.head)?,
    })
}
