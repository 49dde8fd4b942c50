//! What a caller sees of the store and the mirrors, by the rules of the wire. What may not be seen is not there.

use super::Trouble;
use super::access::Visit;
use crate::repository::{Objects, Repository, RepositoryError, Viewer};
use crate::store::{self, Audience, ScoreFilter, ScoreRecord, StateName, Store, StoreError};
use crate::wire::{no_score, reach, see};
use std::sync::Arc;
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::report::Report;
use tribunal_core::text::shown_bytes;

/// The report's name among a score's files.
const REPORT: &str = "report.json";

impl Visit {
    /// Repositories within reach, sorted.
    pub(super) async fn repositories(&self) -> Result<Vec<RepoName>, Trouble> {
        let mut names = self.mirrors(|room| room.list()).await?;
        names.retain(|name| reach(&self.caller, name).is_ok());
        Ok(names)
    }

    /// This one, if it is registered and within reach.
    pub(super) async fn repository(&self, name: &str) -> Result<RepoName, Trouble> {
        let name: RepoName = name.parse().map_err(|_| Trouble::NoSuch)?;
        let names = self.repositories().await?;
        names.contains(&name).then_some(name).ok_or(Trouble::NoSuch)
    }

    /// A score of a repository, if it may be seen.
    pub(super) async fn score(&self, repository: &str, id: &str) -> Result<ScoreRecord, Trouble> {
        let repository: RepoName = repository.parse().map_err(|_| Trouble::NoSuch)?;
        let id = id.parse().map_err(|_| Trouble::NoSuch)?;
        let found = self.store(move |s| s.score(&id)).await?;
        let record = found.filter(|record| record.asked.repository == repository);
        let record = record.ok_or_else(no_score)?;
        see(&self.caller, &record)?;
        Ok(record)
    }

    /// Scores of a repository within reach, the newest first.
    pub(super) async fn scores(
        &self,
        repository: &RepoName,
        state: Option<StateName>,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<ScoreRecord>, Trouble> {
        reach(&self.caller, repository)?;
        let filter = ScoreFilter {
            repository: repository.clone(),
            token: None,
            head: None,
            base: None,
            state,
            before,
            limit,
        };
        self.store(move |s| s.scores(&filter)).await
    }

    /// The report as this role gets it over the wire; `None` where there is none, or another version wrote it.
    pub(super) async fn report(&self, record: &ScoreRecord) -> Result<Option<Report>, Trouble> {
        let (id, audience) = (record.asked.id.clone(), Audience::of(self.caller.role));
        let files = self.store(move |s| s.files(&id, audience)).await?;
        let file = files.iter().find(|file| file.name == REPORT);
        Ok(file.and_then(|file| serde_json::from_slice(&file.content).ok()))
    }

    /// The first line of what a commit's author wrote, fit to be shown; `None` where the commit is not here any more.
    pub(super) async fn subject(&self, repository: &RepoName, commit: &CommitId) -> Option<String> {
        let commit = commit.clone();
        let message = self.objects(repository, move |objects| objects.message(&commit));
        let message = message.await.ok()?;
        let line = message.split(|b| *b == b'\n').next().unwrap_or_default();
        Some(shown_bytes(line, 200))
    }

    /// Work on the objects that this caller may see.
    pub(super) async fn objects<T: Send + 'static>(
        &self,
        repository: &RepoName,
        work: impl FnOnce(&dyn Objects) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<T, Trouble> {
        reach(&self.caller, repository)?;
        let viewer = Viewer {
            token: self.caller.token.clone(),
            role: self.caller.role,
        };
        let repository = repository.clone();
        self.mirrors(move |room| work(&*room.open(&repository, &viewer)?))
            .await
    }

    /// Blocking work in the repository room.
    pub(super) async fn mirrors<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Repository) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let room = Arc::clone(&self.desk.parts.rooms.repository);
        let done = tokio::task::spawn_blocking(move || work(&*room)).await;
        Ok(done.map_err(|error| Trouble::Ours(error.to_string()))??)
    }

    /// Blocking work on the store.
    pub(super) async fn store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Trouble> {
        Ok(store::off(&self.desk.parts.rooms.store, work).await?)
    }
}
