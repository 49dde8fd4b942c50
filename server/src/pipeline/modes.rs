//! Which sealed files of a commit need the product in their own process, found by running base both ways.
//!
//! Only says what base does. Which file runs how is the policy's list alone.

use super::base::{key, on_base, plain};
use super::evidence::{Ground, Run};
use super::prepared::Prepared;
use super::running::Keeping;
use super::{NoVerdict, Rooms};
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, NodeId, RepoName, RepoPath};
use tribunal_core::judge::{self, NeedShared};
use tribunal_core::outcome::{End, Lane};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::Caller;

/// The sealed files of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedModes {
    /// The commit that was read.
    pub commit: CommitId,
    /// In manifest order.
    pub files: Vec<FileMode>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMode {
    /// Its path.
    pub path: RepoPath,
    /// Whether the policy lists it as shared.
    pub listed: Listed,
    /// The cases that pass on base in one process with it and not apart from it; empty where it can run split.
    pub needing: Vec<NodeId>,
}

/// Whether a file is on the policy's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// It runs shared.
    Shared,
    /// It runs split.
    No,
}

/// Run base both ways where it is not known. `None` is the protected tip.
///
/// # Errors
/// Refused as an admission is, or our own trouble.
pub async fn modes(
    rooms: &Rooms,
    caller: &Caller,
    repository: &RepoName,
    commit: Option<&CommitId>,
    cancel: CancellationToken,
) -> Result<SealedModes, NoVerdict> {
    let _busy = rooms.vigil.busy(1);
    let prepared = Prepared::of(rooms, caller, repository, commit).await?;
    let run = prepared.run(rooms, &cancel);
    let ground = run.ground().await?;
    let mut need = run.listed_in_need(&ground).await?;
    need.extend(ground.base.need_shared);
    let shared = &prepared.plan.patch().policy().runner.shared;
    let files = prepared.plan.files().iter().map(|path| FileMode {
        path: path.clone(),
        listed: if shared.contains(path) {
            Listed::Shared
        } else {
            Listed::No
        },
        needing: need.get(path).cloned().unwrap_or_default(),
    });
    Ok(SealedModes {
        commit: prepared.commit.clone(),
        files: files.collect(),
    })
}

impl Run<'_> {
    /// Of the files that the policy lists, those that base does not pass split.
    async fn listed_in_need(&self, ground: &Ground) -> Result<NeedShared, Aborted> {
        let shared = &self.plan.patch().policy().runner.shared;
        let mut files = self.plan.files().to_vec();
        files.retain(|file| shared.contains(file));
        if files.is_empty() {
            return Ok(NeedShared::new());
        }
        let name = key(&["listed/v2", self.base_key(&ground.image).as_str()]);
        if let Some(known) = self.known(name.clone()).await? {
            return Ok(known);
        }
        let apart = || {
            let mut order = self.base_order(&ground.image, &ground.tree)?;
            order.policy.runner.shared.clear();
            order.files.clone_from(&files);
            let attempt = plain(&order.policy);
            Ok(on_base(order, Lane::BaseCollection, vec![attempt]))
        };
        let facts = self.run(apart()?, Keeping::Silence).await?.facts;
        let split =
            facts.attempts.into_iter().next().ok_or_else(|| {
                Aborted::new(AbortedCode::Internal, "base's split run is no attempt")
            })?;
        let split = self.resumed(split, apart).await?;
        let together = || {
            let mut order = self.base_order(&ground.image, &ground.tree)?;
            order.files.clone_from(&files);
            let attempt = plain(&order.policy);
            Ok(on_base(order, Lane::BaseCollection, vec![attempt]))
        };
        let known = &ground.base.attempt;
        let mut together = if known.end.end == End::Finished {
            known.clone()
        } else {
            // What ended it kept these files from running.
            let facts = self.run(together()?, Keeping::Silence).await?.facts;
            match facts.attempts.into_iter().next() {
                Some(attempt) => self.resumed(attempt, together).await?,
                None => known.clone(),
            }
        };
        together.collected.retain(|case| files.contains(&case.file));
        let need = judge::need_shared(&split, &together, &files);
        self.keep_as(name, &need).await?;
        Ok(need)
    }
}
