//! ScoreService: asks, watches, reads and cancels. What a caller may not see is not there.

use super::access::{self, Act, reach, require, see};
use super::status::{self, IntoStatus};
use super::watch::{self, Watch};
use super::{caller, convert, name};
use crate::queue::Queue;
use crate::store::{self, Audience, FlakyFilter, ScoreFilter, ScoreRecord, Sight, Store};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use tribunal_core::id::CommitId;
use tribunal_core::request::{Caller, FieldViolation, RawScoreRequest, Role};
use tribunal_proto::v1;
use tribunal_proto::v1::score_service_server::ScoreService;

pub(super) struct Scores {
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: Queue,
    pub(super) heartbeat: Duration,
}

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Scores {
    async fn submit(&self, caller: &Caller, raw: RawScoreRequest) -> Result<ScoreRecord, Status> {
        require(caller, Act::AskForScore).map_err(IntoStatus::into_status)?;
        let request = raw.check(caller).map_err(IntoStatus::into_status)?;
        self.queue
            .submit(request)
            .await
            .map_err(IntoStatus::into_status)
    }

    /// The score, if the caller sees it.
    async fn seen(&self, caller: &Caller, name: &str) -> Result<ScoreRecord, Status> {
        require(caller, Act::ReadScores).map_err(IntoStatus::into_status)?;
        let (repository, id) = name::parse_score("name", name).map_err(|v| status::fields(&[v]))?;
        let record = store::off(&self.store, move |s| s.score(&id))
            .await
            .map_err(IntoStatus::into_status)?
            .filter(|record| record.asked.repository == repository)
            .ok_or_else(|| access::no_score().into_status())?;
        see(caller, &record).map_err(IntoStatus::into_status)?;
        Ok(record)
    }

    fn message(&self, record: &ScoreRecord) -> v1::Score {
        convert::score(record, self.queue.position(&record.asked.id))
    }

    fn watch(&self, caller: &Caller, record: &ScoreRecord, after: u64) -> Watch {
        Watch {
            store: Arc::clone(&self.store),
            queue: self.queue.clone(),
            score: record.asked.id.clone(),
            audience: Audience::of(caller.role),
            after,
            heartbeat: self.heartbeat,
        }
    }
}

#[tonic::async_trait]
impl ScoreService for Scores {
    async fn create_score(
        &self,
        request: Request<v1::CreateScoreRequest>,
    ) -> Result<Response<v1::CreateScoreResponse>, Status> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let raw = RawScoreRequest {
            repository: name::repository_part(&asked.parent).to_owned(),
            head: asked.head,
            base: asked.base,
            request_id: asked.request_id,
            fresh: asked.fresh,
            proposed: asked.proposed,
        };
        let record = self.submit(&caller, raw).await?;
        Ok(Response::new(v1::CreateScoreResponse {
            score: Some(self.message(&record)),
        }))
    }

    type WatchScoreStream = Messages<v1::WatchScoreResponse>;

    async fn watch_score(
        &self,
        request: Request<v1::WatchScoreRequest>,
    ) -> Result<Response<Self::WatchScoreStream>, Status> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let record = self.seen(&caller, &asked.name).await?;
        let events = self.watch(&caller, &record, asked.after_sequence).stream();
        let messages =
            events.map(|event| event.map(|event| v1::WatchScoreResponse { event: Some(event) }));
        Ok(Response::new(Box::pin(messages)))
    }

    type ScoreStream = Messages<v1::ScoreResponse>;

    async fn score(
        &self,
        request: Request<v1::ScoreRequest>,
    ) -> Result<Response<Self::ScoreStream>, Status> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let raw = RawScoreRequest {
            repository: name::repository_part(&asked.parent).to_owned(),
            head: asked.head,
            base: asked.base,
            request_id: asked.request_id,
            fresh: asked.fresh,
            proposed: asked.proposed,
        };
        let record = self.submit(&caller, raw).await?;
        let first = v1::score_response::Kind::Score(self.message(&record));
        let events = self.watch(&caller, &record, 0).stream();
        let messages = tokio_stream::once(Ok(first))
            .chain(events.map(|event| event.map(v1::score_response::Kind::Event)))
            .map(|kind| kind.map(|kind| v1::ScoreResponse { kind: Some(kind) }));
        Ok(Response::new(Box::pin(messages)))
    }

    async fn get_score(
        &self,
        request: Request<v1::GetScoreRequest>,
    ) -> Result<Response<v1::GetScoreResponse>, Status> {
        let caller = caller(&request)?;
        let record = self.seen(&caller, &request.into_inner().name).await?;
        Ok(Response::new(v1::GetScoreResponse {
            score: Some(self.message(&record)),
        }))
    }

    async fn list_scores(
        &self,
        request: Request<v1::ListScoresRequest>,
    ) -> Result<Response<v1::ListScoresResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ReadScores).map_err(IntoStatus::into_status)?;
        let filter = filter(&caller, &request.into_inner())?;
        reach(&caller, &filter.repository).map_err(IntoStatus::into_status)?;
        let size = filter.limit as usize;
        // One more than asked tells whether there is a next page.
        let more = ScoreFilter {
            limit: filter.limit.saturating_add(1),
            ..filter
        };
        let records = store::off(&self.store, move |s| s.scores(&more))
            .await
            .map_err(IntoStatus::into_status)?;
        let (records, next_page_token) = page(records, size, |record| record.number);
        Ok(Response::new(v1::ListScoresResponse {
            scores: records.iter().map(|r| self.message(r)).collect(),
            next_page_token,
        }))
    }

    async fn cancel_score(
        &self,
        request: Request<v1::CancelScoreRequest>,
    ) -> Result<Response<v1::CancelScoreResponse>, Status> {
        let caller = caller(&request)?;
        let record = self.seen(&caller, &request.into_inner().name).await?;
        let act = if record.asked.token == caller.token {
            Act::CancelOwn
        } else {
            Act::CancelOthers
        };
        require(&caller, act).map_err(IntoStatus::into_status)?;
        let id = record.asked.id.clone();
        self.queue
            .cancel(&id)
            .await
            .map_err(IntoStatus::into_status)?;
        let now = store::off(&self.store, move |s| s.score(&id))
            .await
            .map_err(IntoStatus::into_status)?;
        Ok(Response::new(v1::CancelScoreResponse {
            score: Some(self.message(&now.unwrap_or(record))),
        }))
    }

    async fn get_verdicts(
        &self,
        request: Request<v1::GetVerdictsRequest>,
    ) -> Result<Response<v1::GetVerdictsResponse>, Status> {
        let caller = caller(&request)?;
        let record = self.seen(&caller, &request.into_inner().name).await?;
        if let Some(status) = watch::no_files(&record) {
            return Err(status);
        }
        let (id, audience) = (record.asked.id.clone(), Audience::of(caller.role));
        let files = store::off(&self.store, move |s| s.files(&id, audience))
            .await
            .map_err(IntoStatus::into_status)?;
        Ok(Response::new(v1::GetVerdictsResponse {
            score: Some(self.message(&record)),
            files: files.into_iter().map(convert::file).collect(),
        }))
    }

    async fn list_flaky_cases(
        &self,
        request: Request<v1::ListFlakyCasesRequest>,
    ) -> Result<Response<v1::ListFlakyCasesResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::ReadScores).map_err(IntoStatus::into_status)?;
        let filter = flaky_filter(&caller, &request.into_inner())?;
        reach(&caller, &filter.repository).map_err(IntoStatus::into_status)?;
        let (repository, size) = (filter.repository.clone(), filter.limit as usize);
        let more = FlakyFilter {
            limit: filter.limit.saturating_add(1),
            ..filter
        };
        let cases = store::off(&self.store, move |s| s.flaky_cases(&more))
            .await
            .map_err(IntoStatus::into_status)?;
        let (cases, next_page_token) = page(cases, size, |case| case.number);
        Ok(Response::new(v1::ListFlakyCasesResponse {
            cases: cases
                .iter()
                .map(|case| convert::flaky(&repository, case))
                .collect(),
            next_page_token,
        }))
    }
}

/// A page of what was found, one more than asked included, and the token of the next; empty where there is none.
fn page<T>(mut found: Vec<T>, size: usize, number: impl Fn(&T) -> u64) -> (Vec<T>, String) {
    let more = found.len() > size;
    found.truncate(size);
    let last = found.last().filter(|_| more);
    let token = last.map_or_else(String::new, |last| name::page_token(number(last)));
    (found, token)
}

/// What is asked of a list of mixed cases; all mistakes at once.
fn flaky_filter(caller: &Caller, asked: &v1::ListFlakyCasesRequest) -> Result<FlakyFilter, Status> {
    let mut violations = Vec::new();
    let repository = kept(
        name::parse_repository("parent", &asked.parent),
        &mut violations,
    );
    let limit = kept(name::page_size(asked.page_size, 50, 500), &mut violations);
    let before = kept(name::page_start(&asked.page_token), &mut violations);
    match (repository, limit, before) {
        (Some(repository), Some(limit), Some(before)) => Ok(FlakyFilter {
            repository,
            sight: match caller.role {
                Role::Agent => Sight::Agent(caller.token.clone()),
                Role::Ci | Role::Maintainer | Role::Operator => Sight::Whole,
            },
            before,
            limit,
        }),
        _ => Err(status::fields(&violations)),
    }
}

/// What is asked of a list; all mistakes at once.
fn filter(caller: &Caller, asked: &v1::ListScoresRequest) -> Result<ScoreFilter, Status> {
    let mut violations = Vec::new();
    let repository = kept(
        name::parse_repository("parent", &asked.parent),
        &mut violations,
    );
    let limit = kept(name::page_size(asked.page_size, 50, 500), &mut violations);
    let before = kept(name::page_start(&asked.page_token), &mut violations);
    let head = kept(commit("head", &asked.head), &mut violations);
    let base = kept(commit("base", &asked.base), &mut violations);
    let state = v1::ScoreState::try_from(asked.state)
        .map_err(|_| name::violation("state", "is not a state of scores"));
    let state = kept(state, &mut violations);
    match (repository, limit, before, head, base, state) {
        (Some(repository), Some(limit), Some(before), Some(head), Some(base), Some(state)) => {
            Ok(ScoreFilter {
                repository,
                token: match caller.role {
                    Role::Agent => Some(caller.token.clone()),
                    Role::Ci | Role::Maintainer | Role::Operator => None,
                },
                head,
                base,
                state: convert::state_filter(state),
                before,
                limit,
            })
        }
        _ => Err(status::fields(&violations)),
    }
}

fn kept<T>(result: Result<T, FieldViolation>, violations: &mut Vec<FieldViolation>) -> Option<T> {
    result.map_err(|v| violations.push(v)).ok()
}

fn commit(field: &'static str, text: &str) -> Result<Option<CommitId>, FieldViolation> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|e: tribunal_core::id::IdError| name::violation(field, e.to_string()))
}
