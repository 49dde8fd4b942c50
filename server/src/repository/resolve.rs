//! A request's ids become commits that are there and of the right kind, and the src that would merge becomes a tree.
//!
//! The protected tip is read once, here, and never again in a score. Never takes a base from outside the tip's history,
//! so that no uploaded commit and no force-pushed one can bring its own policy.

use super::facts::push_line;
use super::walk::{Finder, leaves};
use super::{Objects, Repository, RepositoryError, Viewer, refused, walk};
use std::sync::Arc;
use tribunal_core::classify::{PathClass, class_of};
use tribunal_core::git::{Commit, GitPath, Mode, Relation, ResolvedCommits};
use tribunal_core::id::{CommitId, Digest, RepoName, TreeId};
use tribunal_core::policy::{Policy, WhenBehind};
use tribunal_core::reason::RefusedCode::{
    BaseNotProtected, MergeConflict, NoMergeBase, ShortSha, TooLarge,
};

/// More merge bases than any honest history has; each costs a comparison.
const MERGE_BASES: usize = 64;
/// Conflicting paths that a refusal names.
const NAMED_CONFLICTS: usize = 5;

/// The commits of a score, and the objects they are read from.
pub struct Resolved {
    /// What a statement binds.
    pub commits: ResolvedCommits,
    /// The caller's view, as it was when the tip was read.
    pub objects: Arc<dyn Objects>,
}

/// Refresh the mirror, read the tip once, and find head, base and their merge bases.
///
/// # Errors
/// `unknown-repository`, `unknown-commit`, `not-a-commit`, `base-not-protected`, `no-merge-base`; ours where the remote
/// does not answer.
pub fn resolve(
    repository: &dyn Repository,
    name: &RepoName,
    viewer: &Viewer,
    head: &CommitId,
    base: Option<&CommitId>,
) -> Result<Resolved, RepositoryError> {
    let tip = repository.refresh(name)?;
    let objects = repository.open(name, viewer)?;
    let base = base.unwrap_or(&tip.commit);
    for id in [head, base] {
        same_length(id, &tip.commit)?;
    }
    let (head, _) = objects.commit(head)?;
    let base = protected(&*objects, base, &tip.commit)?;
    let merge_bases = objects.merge_bases(&base.id, &head.id)?;
    if merge_bases.is_empty() {
        return Err(refused(
            NoMergeBase,
            format!("{} shares no history with {}", head.id, base.id),
        ));
    }
    if merge_bases.len() > MERGE_BASES {
        return Err(refused(
            TooLarge,
            format!(
                "{} and {} have {} merge bases",
                head.id,
                base.id,
                merge_bases.len()
            ),
        ));
    }
    let relation = if merge_bases == [base.id.clone()] {
        Relation::Contains
    } else {
        Relation::Behind
    };
    Ok(Resolved {
        commits: ResolvedCommits {
            repository: name.clone(),
            protected_ref: tip.name,
            head,
            base,
            base_tip: tip.commit,
            merge_bases,
            relation,
        },
        objects,
    })
}

/// An id of the other object format is no id here: 40 digits may be the beginning of 64.
fn same_length(id: &CommitId, tip: &CommitId) -> Result<(), RepositoryError> {
    let (got, want) = (id.as_str().len(), tip.as_str().len());
    if got == want {
        return Ok(());
    }
    Err(refused(
        ShortSha,
        format!("{id} has {got} digits, ids of this repository have {want}"),
    ))
}

fn protected(
    objects: &dyn Objects,
    base: &CommitId,
    tip: &CommitId,
) -> Result<Commit, RepositoryError> {
    let (commit, _) = objects.commit(base)?;
    match objects.relation(base, tip)? {
        Relation::Contains => Ok(commit),
        Relation::Behind => Err(refused(
            BaseNotProtected,
            format!("{base} is not in the history of the protected tip {tip}"),
        )),
    }
}

/// The root tree whose src is scored: head's, or the merge of head and base where base is ahead and its src moved.
///
/// # Errors
/// `merge-conflict`: src conflicts, or the policy does not score a branch that is behind.
pub fn scored_tree(
    objects: &dyn Objects,
    commits: &ResolvedCommits,
    policy: &Policy,
) -> Result<TreeId, RepositoryError> {
    match commits.relation {
        Relation::Contains => return Ok(commits.head.tree.clone()),
        Relation::Behind if !src_moved(objects, commits, policy)? => {
            return Ok(commits.head.tree.clone());
        }
        Relation::Behind => {}
    }
    match policy.runs.when_behind {
        WhenBehind::Merge => {}
        WhenBehind::Refuse => {
            return Err(refused(
                MergeConflict,
                "src moved on base since this branch began, and the policy scores no merges; rebase",
            ));
        }
    }
    let merged = objects.merge(&commits.base.id, &commits.head.id)?;
    let mut conflicts = merged.conflicts;
    conflicts.retain(|path| class_of(&policy.paths, path) == PathClass::Src);
    if conflicts.is_empty() {
        return Ok(merged.tree);
    }
    let named: Vec<_> = conflicts
        .iter()
        .take(NAMED_CONFLICTS)
        .map(GitPath::to_string)
        .collect();
    Err(refused(
        MergeConflict,
        format!(
            "{} paths of src conflict with base: {}",
            conflicts.len(),
            named.join(", ")
        ),
    ))
}

/// Whether base's src is another than that of some merge base.
fn src_moved(
    objects: &dyn Objects,
    commits: &ResolvedCommits,
    policy: &Policy,
) -> Result<bool, RepositoryError> {
    let now = src_digest(objects, &commits.base.tree, policy)?;
    for merge_base in &commits.merge_bases {
        let then = objects.commit(merge_base)?.0.tree;
        if src_digest(objects, &then, policy)? != now {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a tree has at its src roots, told apart by class: a sealed test beside the product is not src.
fn src_digest(
    objects: &dyn Objects,
    tree: &TreeId,
    policy: &Policy,
) -> Result<Digest, RepositoryError> {
    let mut finder = Finder::new(objects, tree);
    let mut digested = Vec::new();
    let mut budget = walk::Budget::of(super::facts::TREE_ENTRIES);
    for root in &policy.paths.src {
        let path = root.strip_suffix('/').unwrap_or(root);
        match finder.find(path.as_bytes())? {
            Some(entry) if entry.mode == Mode::Tree => {
                let tree = walk::tree_id(&entry)?;
                let path = GitPath::from(path);
                leaves(objects, &tree, &path, &mut budget, &mut |path, entry| {
                    if class_of(&policy.paths, &path) == PathClass::Src {
                        push_line(&mut digested, &path, &entry);
                    }
                    Ok(())
                })?;
            }
            Some(leaf) => push_line(&mut digested, &GitPath::from(path), &leaf),
            None => {}
        }
    }
    Ok(Digest::of(&digested))
}
