//! A repository as it was fetched last: for whoever only looks. Asks no remote, takes nothing in.

use super::{Objects, ProtectedTip, Repository, RepositoryError, UploadLimits, Viewer, refused};
use std::io::Read;
use std::sync::Arc;
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::RefusedCode;

/// The same mirrors, at rest.
pub struct AsFetched(pub Arc<dyn Repository>);

impl Repository for AsFetched {
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.0.last_tip(repo)
    }

    fn last_tip(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.0.last_tip(repo)
    }

    fn open(&self, repo: &RepoName, viewer: &Viewer) -> Result<Arc<dyn Objects>, RepositoryError> {
        self.0.open(repo, viewer)
    }

    fn list(&self) -> Result<Vec<RepoName>, RepositoryError> {
        self.0.list()
    }

    fn ingest(
        &self,
        _: &RepoName,
        _: &Viewer,
        _: &mut dyn Read,
        _: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError> {
        Err(refused(
            RefusedCode::Forbidden,
            "nothing is taken in by whoever only looks",
        ))
    }
}
