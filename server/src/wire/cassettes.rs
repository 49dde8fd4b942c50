//! CassetteService: one case is recorded, and its requests are performed by the caller at the other end of the stream.
//!
//! Hands requests out and answers in, cut so that messages stay small. Performs nothing itself. A caller that goes away
//! ends its recording.

use super::access::{Act, reach, require};
use super::status::{self, IntoStatus};
use super::{Collector, caller, name};
use crate::pipeline::{Recording, ToRecord};
use crate::sandbox::{Answered, Asked, Outside};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tribunal_core::id::{NodeId, RepoName};
use tribunal_core::reason::{Refused, RefusedCode};
use tribunal_core::request::FieldViolation;
use tribunal_core::text::shown;
use tribunal_proto::v1;
use tribunal_proto::v1::cassette_service_server::CassetteService;
use tribunal_proto::v1::record_request::Message as Said;
use tribunal_proto::v1::record_response::Message as Told;

/// Bytes of a body in one message.
const PART: usize = 512 << 10;
/// The largest body that comes back.
const BODY: usize = 16 << 20;
/// Headers that come back with one answer.
const HEADERS: usize = 200;
/// Directories and names of an order.
const LISTED: usize = 10_000;

pub(super) struct Cassettes {
    pub(super) collector: Arc<dyn Collector>,
    /// Shared with the lists: each takes a room.
    pub(super) places: Arc<Semaphore>,
}

type Sender = mpsc::Sender<Result<v1::RecordResponse, Status>>;

#[tonic::async_trait]
impl CassetteService for Cassettes {
    type RecordStream = ReceiverStream<Result<v1::RecordResponse, Status>>;

    async fn record(
        &self,
        request: Request<Streaming<v1::RecordRequest>>,
    ) -> Result<Response<Self::RecordStream>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::Record).map_err(IntoStatus::into_status)?;
        let mut said = request.into_inner();
        let first = said.message().await?.and_then(|first| first.message);
        let Some(Said::Order(order)) = first else {
            let why = "a recording begins with its order";
            return Err(Refused::new(RefusedCode::InvalidArgument, why).into_status());
        };
        let (repository, wanted) = checked(order)?;
        reach(&caller, &repository).map_err(IntoStatus::into_status)?;
        let places = Arc::clone(&self.places);
        let place = places.try_acquire_owned().map_err(|_| {
            let full = "too many recordings and collections are going on";
            Refused::new(RefusedCode::QueueFull, full).into_status()
        })?;
        let (to, told) = mpsc::channel(16);
        let collector = Arc::clone(&self.collector);
        tokio::spawn(async move {
            let far = Arc::new(Far {
                said: Mutex::new((0, said)),
                to: to.clone(),
            });
            let recorded = collector.record(&caller, &repository, &wanted, far);
            // Dropped when the caller goes: that cancels the run.
            let last = tokio::select! {
                recorded = recorded => recorded,
                () = to.closed() => return,
            };
            let last = match last {
                Ok(recording) => Ok(v1::RecordResponse {
                    message: Some(Told::Recording(recording_of(recording))),
                }),
                Err(no_verdict) => Err(no_verdict.into_status()),
            };
            let _gone = to.send(last).await;
            drop(place);
        });
        Ok(Response::new(ReceiverStream::new(told)))
    }
}

/// The caller as somebody who performs requests.
struct Far {
    /// The number of the last ask, and where answers come from. One request at a time.
    said: Mutex<(u64, Streaming<v1::RecordRequest>)>,
    to: Sender,
}

#[async_trait::async_trait]
impl Outside for Far {
    async fn perform(&self, asked: Asked) -> Answered {
        let mut said = self.said.lock().await;
        said.0 += 1;
        let id = said.0;
        match self.exchanged(id, asked, &mut said.1).await {
            Some(answered) => answered,
            None => Answered {
                status: 0,
                headers: Vec::new(),
                body: Bytes::new(),
            },
        }
    }
}

impl Far {
    async fn exchanged(
        &self,
        id: u64,
        asked: Asked,
        said: &mut Streaming<v1::RecordRequest>,
    ) -> Option<Answered> {
        for ask in asks(id, asked) {
            let message = Some(Told::Ask(ask));
            self.to
                .send(Ok(v1::RecordResponse { message }))
                .await
                .ok()?;
        }
        let mut answered: Option<Answered> = None;
        let mut body = Vec::new();
        loop {
            let Some(Said::Answer(part)) = said.message().await.ok()??.message else {
                return None;
            };
            if part.id != id || body.len() + part.body.len() > BODY {
                return None;
            }
            body.extend_from_slice(&part.body);
            answered.get_or_insert_with(|| Answered {
                status: u16::try_from(part.status).unwrap_or(0),
                headers: part
                    .headers
                    .into_iter()
                    .take(HEADERS)
                    .map(|field| (field.name, field.value))
                    .collect(),
                body: Bytes::new(),
            });
            if !part.more {
                return answered.map(|answered| Answered {
                    body: body.into(),
                    ..answered
                });
            }
        }
    }
}

/// A request in messages.
fn asks(id: u64, asked: Asked) -> impl Iterator<Item = v1::ExchangeAsk> {
    let mut head = Some(v1::ExchangeHead {
        scheme: asked.scheme,
        method: asked.method,
        host: asked.host,
        path: asked.path,
        query: asked.query,
        headers: asked
            .headers
            .into_iter()
            .map(|(name, value)| v1::HeaderField { name, value })
            .collect(),
    });
    let body = asked.body;
    let parts = body.len().div_ceil(PART).max(1);
    (0..parts).map(move |number| {
        let (from, to) = (number * PART, body.len().min((number + 1) * PART));
        v1::ExchangeAsk {
            id,
            head: head.take(),
            body: body.slice(from..to),
            more: number + 1 < parts,
        }
    })
}

fn checked(order: v1::RecordOrder) -> Result<(RepoName, ToRecord), Status> {
    let mut violations = Vec::new();
    let wrong = |field, description: &str, code| FieldViolation {
        field,
        description: description.to_owned(),
        code,
    };
    let repository = name::parse_repository("parent", &order.parent)
        .map_err(|violation| violations.push(violation))
        .ok();
    let commit = match order.commit.as_str() {
        "" => None,
        text => text
            .parse()
            .map_err(|_| {
                let why = "must be a full commit id";
                violations.push(wrong("commit", why, RefusedCode::ShortSha));
            })
            .ok(),
    };
    let node: Option<NodeId> = order
        .node_id
        .parse()
        .map_err(|_| {
            let why = "must be a case, as in tests/test_a.py::test_b";
            violations.push(wrong("node_id", why, RefusedCode::InvalidArgument));
        })
        .ok();
    let names: usize = order.listings.iter().map(|each| each.names.len()).sum();
    let absolute = |each: &v1::RecordedListing| each.directory.starts_with('/');
    if names + order.listings.len() > LISTED || !order.listings.iter().all(absolute) {
        let why = "must be absolute directories with few names";
        violations.push(wrong("listings", why, RefusedCode::InvalidArgument));
    }
    match (repository, node) {
        (Some(repository), Some(node)) if violations.is_empty() => {
            let listings = order.listings.into_iter();
            let listings = listings.map(|each| (each.directory, each.names)).collect();
            Ok((
                repository,
                ToRecord {
                    commit,
                    node,
                    listings,
                },
            ))
        }
        _ => Err(status::fields(&violations)),
    }
}

fn recording_of(recording: Recording) -> v1::Recording {
    let failure = recording.failure.map(|failure| shown(&failure, 2000));
    let misses = recording.misses.iter().map(|miss| shown(miss, 500));
    v1::Recording {
        commit: recording.commit.to_string(),
        failure: failure.unwrap_or_default(),
        clock: recording.clock.unwrap_or_default(),
        rng_seed: recording.rng_seed,
        listed_directories: recording.listed,
        misses: misses.collect(),
        listings: recording.listings,
    }
}
