//! RepositoryService: what the server has of a repository, and what a caller sends of it.

use super::access::{Act, reach, require};
use super::status::{self, IntoStatus};
use super::upload::Uploads;
use super::{Collector, caller, name};
use crate::pipeline::{FileMode, Listed, SealedCase, SealedCases};
use crate::repository::{Repository, RepositoryError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Response, Status, Streaming};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::FieldViolation;
use tribunal_core::text::shown;
use tribunal_proto::v1;
use tribunal_proto::v1::repository_service_server::RepositoryService;

/// How long a listing waits for one of the few places before it is told to come back.
const PLACE_WAIT: Duration = Duration::from_secs(120);

/// Cases of one file that are named.
const NEEDING: usize = 100;

pub(super) struct Repositories {
    pub(super) repository: Arc<dyn Repository>,
    pub(super) collector: Arc<dyn Collector>,
    /// Collections at once: each takes a room.
    pub(super) collections: Arc<Semaphore>,
    pub(super) uploads: Uploads,
}

impl Repositories {
    /// One of the few places for lists, each of which takes a room.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.collections).acquire_owned();
        match tokio::time::timeout(PLACE_WAIT, place).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => {
                let full = "too many collections are going on";
                Err(Refused::new(RefusedCode::QueueFull, full).into_status())
            }
        }
    }

    /// Blocking work in the repository room.
    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Repository) -> Result<T, RepositoryError> + Send + 'static,
    ) -> Result<T, Status> {
        let room = Arc::clone(&self.repository);
        tokio::task::spawn_blocking(move || work(&*room))
            .await
            .map_err(|_| Aborted::new(AbortedCode::Internal, "the repository room broke"))
            .map_err(IntoStatus::into_status)?
            .map_err(IntoStatus::into_status)
    }
}

#[tonic::async_trait]
impl RepositoryService for Repositories {
    async fn get_repository(
        &self,
        request: Request<v1::GetRepositoryRequest>,
    ) -> Result<Response<v1::GetRepositoryResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ReadRepositories).map_err(IntoStatus::into_status)?;
        let repo = name::parse_repository("name", &request.into_inner().name)
            .map_err(|v| status::fields(&[v]))?;
        reach(&caller, &repo).map_err(IntoStatus::into_status)?;
        let of = repo.clone();
        let tip = self.off(move |room| room.refresh(&of)).await?;
        let object_format = match tip.commit.as_str().len() {
            40 => "sha1",
            _ => "sha256",
        };
        Ok(Response::new(v1::GetRepositoryResponse {
            repository: Some(v1::Repository {
                name: name::repository(&repo),
                protected_ref: tip.name,
                tip: tip.commit.to_string(),
                prerequisite_commits: vec![tip.commit.to_string()],
                object_format: object_format.to_owned(),
            }),
        }))
    }

    async fn list_repositories(
        &self,
        request: Request<v1::ListRepositoriesRequest>,
    ) -> Result<Response<v1::ListRepositoriesResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ReadRepositories).map_err(IntoStatus::into_status)?;
        let asked = request.into_inner();
        let (size, start) = paging(asked.page_size, &asked.page_token, 50, 500)?;
        let mut names = self.off(|room| room.list()).await?;
        names.retain(|repo| reach(&caller, repo).is_ok());
        let (names, next_page_token) = name::page(names, start, size);
        Ok(Response::new(v1::ListRepositoriesResponse {
            repositories: names
                .iter()
                .map(|repo| v1::Repository {
                    name: name::repository(repo),
                    ..v1::Repository::default()
                })
                .collect(),
            next_page_token,
        }))
    }

    async fn upload_commits(
        &self,
        request: Request<Streaming<v1::UploadCommitsRequest>>,
    ) -> Result<Response<v1::UploadCommitsResponse>, Status> {
        self.uploads.take(request).await
    }

    async fn list_cases(
        &self,
        request: Request<v1::ListCasesRequest>,
    ) -> Result<Response<v1::ListCasesResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ListCases).map_err(IntoStatus::into_status)?;
        let asked = request.into_inner();
        let (size, start) = paging(asked.page_size, &asked.page_token, 5000, 5000)?;
        let (repo, commit) = of_commit(&asked.parent, &asked.commit)?;
        reach(&caller, &repo).map_err(IntoStatus::into_status)?;
        let _place = self.place().await?;
        let listed = self
            .collector
            .cases(&caller, &repo, commit.as_ref())
            .await
            .map_err(IntoStatus::into_status)?;
        Ok(Response::new(cases_page(listed, start, size)))
    }

    async fn list_modes(
        &self,
        request: Request<v1::ListModesRequest>,
    ) -> Result<Response<v1::ListModesResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ListModes).map_err(IntoStatus::into_status)?;
        let asked = request.into_inner();
        let (size, start) = paging(asked.page_size, &asked.page_token, 5000, 5000)?;
        let (repo, commit) = of_commit(&asked.parent, &asked.commit)?;
        reach(&caller, &repo).map_err(IntoStatus::into_status)?;
        let _place = self.place().await?;
        let listed = self
            .collector
            .modes(&caller, &repo, commit.as_ref())
            .await
            .map_err(IntoStatus::into_status)?;
        let (files, next_page_token) = name::page(listed.files, start, size);
        Ok(Response::new(v1::ListModesResponse {
            commit: listed.commit.to_string(),
            files: files.iter().map(sealed_file).collect(),
            next_page_token,
        }))
    }
}

fn paging(size: i32, token: &str, default: u32, most: u32) -> Result<(u32, Option<u64>), Status> {
    match (
        name::page_size(size, default, most),
        name::page_start(token),
    ) {
        (Ok(size), Ok(start)) => Ok((size, start)),
        (size, start) => {
            let violations: Vec<FieldViolation> =
                size.err().into_iter().chain(start.err()).collect();
            Err(status::fields(&violations))
        }
    }
}

fn of_commit(parent: &str, commit: &str) -> Result<(RepoName, Option<CommitId>), Status> {
    let repo = name::parse_repository("parent", parent);
    let commit = match commit {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| FieldViolation {
            field: "commit",
            description: "must be a full commit id".to_owned(),
            code: RefusedCode::ShortSha,
        }),
    };
    match (repo, commit) {
        (Ok(repo), Ok(commit)) => Ok((repo, commit)),
        (repo, commit) => {
            let violations: Vec<_> = repo.err().into_iter().chain(commit.err()).collect();
            Err(status::fields(&violations))
        }
    }
}

fn cases_page(listed: SealedCases, start: Option<u64>, size: u32) -> v1::ListCasesResponse {
    let (cases, next_page_token) = name::page(listed.cases, start, size);
    v1::ListCasesResponse {
        commit: listed.commit.to_string(),
        cases: cases.into_iter().map(case).collect(),
        next_page_token,
        uncollected_files: listed
            .uncollected
            .iter()
            .map(|(path, message)| v1::UncollectedFile {
                path: path.to_string(),
                message: shown(message, 500),
            })
            .collect(),
    }
}

fn sealed_file(file: &FileMode) -> v1::SealedFile {
    let mode = match (file.listed, file.needing.is_empty()) {
        (Listed::No, true) => v1::sealed_file::Mode::Split,
        (Listed::No, false) => v1::sealed_file::Mode::NeedsShared,
        (Listed::Shared, false) => v1::sealed_file::Mode::Shared,
        (Listed::Shared, true) => v1::sealed_file::Mode::SharedWithoutNeed,
    };
    let needing = file.needing.iter().take(NEEDING);
    v1::SealedFile {
        path: file.path.to_string(),
        mode: mode.into(),
        needing_case_ids: needing.map(ToString::to_string).collect(),
    }
}

fn case(case: SealedCase) -> v1::SealedCase {
    let (bytecode_digest, short_digest) = case.digest.map(|d| (d.v2, d.short)).unwrap_or_default();
    v1::SealedCase {
        node_id: case.node.to_string(),
        file: case.file.to_string(),
        qualname: case.qualname,
        bytecode_digest,
        short_digest,
        marks: case.marks,
        failure_signature: case
            .signature
            .map(|s| shown(s.as_str(), 500))
            .unwrap_or_default(),
    }
}
