//! An admitted plan becomes two tars: the oracle's tree with empty src roots, and the src that is scored.
//!
//! Bytes go from the object database into the tars: no checkout, no attribute, no filter, nothing of the candidate's on
//! the host's file system. Judges nothing: what `plan` admitted is built, and what it cannot have admitted is our
//! trouble. Fails with `OverlayError`, which is always ours.

mod items;
mod laid;
mod roots;
mod tar;

pub use laid::{LaidOverlay, Texts, lay};

use crate::repository::{Objects, RepositoryError};
use crate::sandbox::TreeToSeal;
use bytes::Bytes;
use items::Item;
use roots::Roots;
use std::io::Read;
use std::sync::Arc;
use tribunal_core::git::{Entry, GitPath};
use tribunal_core::id::{Digest, TreeId};
use tribunal_core::plan::RunPlan;
use tribunal_core::policy::Policy;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Goes into every digest: a change of what the tars look like makes new volumes and new evidence.
const LAYOUT: u32 = 2;

/// What can go wrong here; always ours.
#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    /// Retryable trouble with its code.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

impl From<OverlayError> for Aborted {
    fn from(error: OverlayError) -> Self {
        let OverlayError::Aborted(aborted) = error;
        aborted
    }
}

/// The room below was refused something that was admitted already: no request can be blamed for that any more.
impl From<RepositoryError> for OverlayError {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::Aborted(aborted) => Self::Aborted(aborted),
            RepositoryError::Refused(refused) => broken(refused.to_string()),
        }
    }
}

fn broken(message: impl Into<String>) -> OverlayError {
    Aborted::new(AbortedCode::Internal, message).into()
}

/// A plan's trees, ready to be put into a room.
pub struct SealedOverlay {
    objects: Arc<dyn Objects>,
    mtime: u64,
    tree: Vec<Item>,
    tree_digest: Digest,
    digest: Digest,
    src_tar: Bytes,
    base_src: Vec<Item>,
}

/// Build what the plan admitted. `objects` has to be the view that its facts were read from: what a merge made is in no
/// other.
///
/// # Errors
/// Objects that are gone, or entries that no plan admits.
pub fn build(objects: Arc<dyn Objects>, plan: &RunPlan) -> Result<SealedOverlay, OverlayError> {
    let patch = plan.patch();
    let policy = patch.policy();
    let scored = plan.src().entries.iter();
    let scored: Vec<_> = scored.map(|e| (e.path.clone(), e.entry.clone())).collect();
    let oracle = &patch.oracle().tree;
    build_from(objects, policy, oracle, &scored, &plan.src().base)
}

/// The same with the whole tree of head instead of the oracle's: what a recording runs. Nothing may be judged by it.
///
/// # Errors
/// As [`build`].
pub fn build_whole(
    objects: Arc<dyn Objects>,
    plan: &RunPlan,
) -> Result<SealedOverlay, OverlayError> {
    let patch = plan.patch();
    let scored = plan.src().entries.iter();
    let scored: Vec<_> = scored.map(|e| (e.path.clone(), e.entry.clone())).collect();
    let head = patch.commits().head.tree.clone();
    build_from(objects, patch.policy(), &head, &scored, &plan.src().base)
}

fn build_from(
    objects: Arc<dyn Objects>,
    policy: &Policy,
    oracle: &TreeId,
    scored: &[(GitPath, Entry)],
    base: &[(GitPath, Entry)],
) -> Result<SealedOverlay, OverlayError> {
    let roots = Roots::of(&policy.paths.src);
    let epoch = policy.pins.source_date_epoch;
    let mtime = u64::try_from(epoch).unwrap_or(0);
    let sealed = items::sealed(&*objects, oracle, &roots, &policy.paths)?;
    let src = items::src(
        &*objects,
        &roots,
        &policy.paths,
        scored,
        base,
        &sealed.under_roots,
    )?;
    let base_src = items::src(
        &*objects,
        &roots,
        &policy.paths,
        base,
        base,
        &sealed.under_roots,
    )?;
    let head = format!("tribunal sealed tree {LAYOUT} {epoch}\n");
    let tree_digest = items::digest(&head, &sealed.items);
    let head = format!("tribunal overlay {LAYOUT} {epoch}\n{tree_digest}\n");
    let digest = items::digest(&head, &src);
    let mut src_tar = Vec::new();
    tar::stream(Arc::clone(&objects), src, mtime)
        .read_to_end(&mut src_tar)
        .map_err(|error| broken(format!("failed to write the src tar: {error}")))?;
    Ok(SealedOverlay {
        objects,
        mtime,
        tree: sealed.items,
        tree_digest,
        digest,
        src_tar: src_tar.into(),
        base_src,
    })
}

impl SealedOverlay {
    /// Where its bytes come from.
    #[must_use]
    pub fn objects(&self) -> Arc<dyn Objects> {
        Arc::clone(&self.objects)
    }

    /// Over the path, mode and object id of everything that is scored: evidence belongs to this content.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Over the same of everything but src: the identity of the sealed volume. A base that only moved its src keeps it.
    #[must_use]
    pub fn tree_digest(&self) -> &Digest {
        &self.tree_digest
    }

    /// The src that is scored, and what the oracle has under the src roots; entries by repository path.
    #[must_use]
    pub fn src_tar(&self) -> Bytes {
        self.src_tar.clone()
    }

    /// The same with base's own src, to collect the cases that there are.
    ///
    /// # Errors
    /// Objects that are gone.
    pub fn base_src_tar(&self) -> Result<Bytes, OverlayError> {
        let mut tar = Vec::new();
        tar::stream(Arc::clone(&self.objects), self.base_src.clone(), self.mtime)
            .read_to_end(&mut tar)
            .map_err(|error| broken(format!("failed to write base's src tar: {error}")))?;
        Ok(tar.into())
    }

    /// The sealed tree, to be written through a room made of this image where its volume is not there yet.
    #[must_use]
    pub fn tree(&self, image: &str) -> TreeToSeal {
        let (objects, items, mtime) = (Arc::clone(&self.objects), self.tree.clone(), self.mtime);
        TreeToSeal {
            digest: self.tree_digest.clone(),
            image: image.to_owned(),
            tar: Box::new(move || Ok(Box::new(tar::stream(objects, items, mtime)))),
        }
    }
}

/// What of a tree is not built as it stands there, with why; for an operator who registers it.
///
/// # Errors
/// Objects that are gone.
pub fn left_out(
    objects: &dyn Objects,
    tree: &TreeId,
    policy: &Policy,
) -> Result<Vec<(GitPath, &'static str)>, OverlayError> {
    let roots = Roots::of(&policy.paths.src);
    Ok(items::sealed(objects, tree, &roots, &policy.paths)?.left_out)
}
