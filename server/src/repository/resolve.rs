//! A request's ids become commits that are there and of the right kind; what classify, plan and overlay ask of them is
//! answered here.
//!
//! The protected tip is read once, here, and never again in a score. Never takes a base from outside the tip's history,
//! so that no uploaded commit and no force-pushed one can bring its own policy.

use super::cassettes::cassette_facts;
use super::diff::{DiffLimits, changes};
use super::facts::{self, Listing};
use super::{Objects, Repository, RepositoryError, Viewer, refused, touched};
use std::sync::{Arc, Mutex, PoisonError};
use tribunal_core::cassette::CassetteFacts;
use tribunal_core::classify::{DiffClass, Patch, PathClass, class_of};
use tribunal_core::git::{Commit, GitPath, Relation, ResolvedCommits};
use tribunal_core::id::{CommitId, RepoName, TreeId};
use tribunal_core::plan::{OpenDiff, OracleFacts, SrcFacts, TouchedFacts, TreeSource};
use tribunal_core::policy::Policy;
use tribunal_core::reason::RefusedCode::{
    BaseNotProtected, MergeConflict, NoMergeBase, ShortSha, TooLarge,
};

/// More merge bases than any honest history has; each costs a comparison.
const MERGE_BASES: usize = 64;
/// Conflicting paths that a refusal names.
const NAMED_CONFLICTS: usize = 5;

/// The commits of a score, and the objects they are read from.
pub struct Resolved {
    commits: ResolvedCommits,
    objects: Arc<dyn Objects>,
    /// Base's whole tree is asked for more than once.
    base_listing: Mutex<Option<Listing>>,
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
        base_listing: Mutex::new(None),
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

impl Resolved {
    /// Head, base and how they stand.
    #[must_use]
    pub fn commits(&self) -> &ResolvedCommits {
        &self.commits
    }

    /// The caller's view, as it was when the tip was read. What a merge made is in this view and in no other.
    #[must_use]
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// Base's policy file; `None` where it has none.
    ///
    /// # Errors
    /// `too-large`; objects that cannot be read.
    pub fn policy_bytes(&self) -> Result<Option<Vec<u8>>, RepositoryError> {
        facts::policy_bytes(&*self.objects, &self.commits.base.tree)
    }

    /// What head changes.
    ///
    /// # Errors
    /// `too-large`; objects that cannot be read.
    pub fn patch(&self, limits: &DiffLimits) -> Result<Patch, RepositoryError> {
        let base = self.base_listing()?;
        Ok(Patch {
            commits: self.commits.clone(),
            changes: changes(&*self.objects, &self.commits, limits)?,
            base_paths: base.iter().map(|(path, _)| path.clone()).collect(),
        })
    }

    /// Base's oracle, as a statement about a barred patch binds it.
    ///
    /// # Errors
    /// Objects that cannot be read.
    pub fn base_oracle(&self, policy: &Policy) -> Result<OracleFacts, RepositoryError> {
        let (objects, tree) = (&*self.objects, &self.commits.base.tree);
        facts::oracle_facts(objects, policy, tree, &self.base_listing()?)
    }

    /// The oracle and the src that this patch is to be scored with.
    ///
    /// # Errors
    /// `merge-conflict`, `too-large`; objects that cannot be read.
    pub fn facts(&self, diff: &OpenDiff) -> Result<(OracleFacts, SrcFacts), RepositoryError> {
        let (objects, policy) = (&*self.objects, diff.diff().policy());
        let is_src = |path: &GitPath| class_of(&policy.paths, path) == PathClass::Src;
        let oracle = self.tree(diff.oracle_from(), &|path| !is_src(path))?;
        let scored = self.tree(diff.src_from(), &is_src)?;
        let base = self.base_listing()?;
        let of_oracle = if oracle == self.commits.base.tree {
            Arc::clone(&base)
        } else {
            facts::listing(objects, &oracle)?
        };
        let cassettes = self.cassettes(diff.diff(), &base)?;
        let src = SrcFacts {
            touched: self.touched(diff, &of_oracle)?,
            ..facts::src_facts(objects, policy, &scored, &base)?
        };
        let oracle = facts::oracle_facts(objects, policy, &oracle, &of_oracle)?;
        Ok((
            OracleFacts {
                cassettes,
                ..oracle
            },
            src,
        ))
    }

    fn cassettes(
        &self,
        diff: &DiffClass,
        base: &Listing,
    ) -> Result<CassetteFacts, RepositoryError> {
        let paths = &diff.policy().paths;
        let is_cassette = |path: &GitPath| class_of(paths, path) == PathClass::Cassette;
        let mut changes = diff.changes().iter();
        let merged = match self.commits.relation {
            Relation::Behind if changes.any(|(change, _)| is_cassette(&change.path)) => {
                Some(self.tree(TreeSource::Merge, &is_cassette)?)
            }
            Relation::Behind | Relation::Contains => None,
        };
        cassette_facts(&*self.objects, diff, base, merged.as_ref())
    }

    /// The tests that the patch touches, as they merge.
    fn touched(&self, diff: &OpenDiff, oracle: &Listing) -> Result<TouchedFacts, RepositoryError> {
        let (objects, policy) = (&*self.objects, diff.diff().policy());
        let of_class = |wanted| {
            let changes = diff.diff().changes().iter();
            let found = changes.filter(move |(_, class)| *class == wanted);
            found.map(|(change, _)| &change.path).collect::<Vec<_>>()
        };
        let (touched, proposed) = (of_class(PathClass::Touched), of_class(PathClass::Proposed));
        if touched.is_empty() && proposed.is_empty() {
            return Ok(TouchedFacts::default());
        }
        let matters = |path: &GitPath| touched.contains(&path) || proposed.contains(&path);
        let merged = self.tree(diff.touched_from(), &matters)?;
        let mut before = vec![self.commits.base.tree.clone()];
        for base in &self.commits.merge_bases {
            before.push(objects.commit(base)?.0.tree);
        }
        let sides = touched::Sides {
            objects,
            policy,
            oracle,
            merged: &merged,
            before: &before,
        };
        sides.facts(&touched, &proposed)
    }

    /// A root tree to read from. Conflicts count only where something is read that `matters`.
    fn tree(
        &self,
        source: TreeSource,
        matters: &dyn Fn(&GitPath) -> bool,
    ) -> Result<TreeId, RepositoryError> {
        let commits = &self.commits;
        match source {
            TreeSource::Base => return Ok(commits.base.tree.clone()),
            TreeSource::Head => return Ok(commits.head.tree.clone()),
            TreeSource::Merge => {}
        }
        let merged = self.objects.merge(&commits.base.id, &commits.head.id)?;
        let conflicts: Vec<_> = merged
            .conflicts
            .iter()
            .filter(|path| matters(path))
            .collect();
        if conflicts.is_empty() {
            return Ok(merged.tree);
        }
        let shown = conflicts.iter().take(NAMED_CONFLICTS);
        let named: Vec<_> = shown.map(ToString::to_string).collect();
        Err(refused(
            MergeConflict,
            format!(
                "{} paths conflict with base: {}",
                conflicts.len(),
                named.join(", ")
            ),
        ))
    }

    fn base_listing(&self) -> Result<Listing, RepositoryError> {
        let mut kept = self
            .base_listing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = kept.as_ref() {
            return Ok(Arc::clone(listing));
        }
        let listing = facts::listing(&*self.objects, &self.commits.base.tree)?;
        *kept = Some(Arc::clone(&listing));
        Ok(listing)
    }
}
