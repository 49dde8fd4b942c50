//! A commit's oracle on base's own src, without a score: what lists, and whoever registers a repository, look at.
//!
//! Walks the same rooms as a score as far as the overlay. No attempt of the commit's src is made, nothing is judged.

use super::evidence::Run;
use super::{NoVerdict, Rooms, admit};
use crate::overlay::{self, SealedOverlay};
use crate::store::EventKind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{CommitId, RepoName, ScoreId};
use tribunal_core::plan::{Plan, RunPlan};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::{Caller, RawScoreRequest};

/// A commit whose sealed files can be run.
pub(super) struct Prepared {
    pub(super) commit: CommitId,
    pub(super) plan: Box<RunPlan>,
    overlay: SealedOverlay,
    id: ScoreId,
    progress: mpsc::Sender<EventKind>,
}

/// Whose tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// The oracle's, as a score has them.
    Oracle,
    /// All that the commit has: nothing is judged by them.
    Commit,
}

impl Prepared {
    /// `None` is the protected tip.
    ///
    /// # Errors
    /// Refused as by [`admit`], or our own trouble.
    pub(super) async fn of(
        rooms: &Rooms,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<Self, NoVerdict> {
        Self::on(rooms, caller, repository, commit, Tree::Oracle).await
    }

    /// The same with the tests of one of these trees.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(super) async fn on(
        rooms: &Rooms,
        caller: &Caller,
        repository: &RepoName,
        commit: Option<&CommitId>,
        tree: Tree,
    ) -> Result<Self, NoVerdict> {
        let (rooms_, caller, name, commit) = (
            rooms.clone(),
            caller.clone(),
            repository.clone(),
            commit.cloned(),
        );
        let (commit, admitted) = tokio::task::spawn_blocking(move || {
            let commit = match commit {
                Some(commit) => commit,
                None => rooms_.repository.refresh(&name)?.commit,
            };
            let raw = RawScoreRequest {
                repository: name.to_string(),
                head: commit.to_string(),
                ..RawScoreRequest::default()
            };
            let request = raw
                .check(&caller)
                .map_err(|error| Refused::new(RefusedCode::InvalidArgument, error.to_string()))?;
            Ok::<_, NoVerdict>((commit, admit(&*rooms_.repository, &request)?))
        })
        .await
        .map_err(|error| internal(format!("an admission failed: {error}")))??;
        let plan = match admitted.plan {
            Plan::Run(plan) => plan,
            Plan::Decided(decided) => {
                let why: Vec<String> = decided
                    .findings()
                    .iter()
                    .map(|f| format!("{}: {}", f.reason, f.detail))
                    .collect();
                return Err(Refused::new(RefusedCode::InvalidArgument, why.join("; ")).into());
            }
        };
        let objects = admitted.objects;
        let (plan, overlay) = super::off(move || {
            let overlay = match tree {
                Tree::Oracle => overlay::build(objects, &plan)?,
                Tree::Commit => overlay::build_whole(objects, &plan)?,
            };
            Ok((plan, overlay))
        })
        .await?;
        Ok(Self {
            id: listing_id(&commit)?,
            commit,
            plan,
            overlay,
            // Nobody listens: the events of a list are its answer.
            progress: mpsc::channel(1).0,
        })
    }

    /// What is put into a room.
    pub(super) fn overlay(&self) -> &SealedOverlay {
        &self.overlay
    }

    /// On its way through the sandbox.
    pub(super) fn run<'a>(&'a self, rooms: &'a Rooms, cancel: &'a CancellationToken) -> Run<'a> {
        Run {
            rooms,
            id: &self.id,
            plan: &self.plan,
            overlay: &self.overlay,
            progress: &self.progress,
            cancel,
        }
    }
}

/// Names the room that a listing may need; a listing is no score and is stored nowhere.
fn listing_id(commit: &CommitId) -> Result<ScoreId, Aborted> {
    let text: String = commit.as_str().chars().take(32).collect();
    text.parse()
        .map_err(|_| internal("a commit id is shorter than a score id"))
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}
