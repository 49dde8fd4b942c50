//! The wire itself, past the client: what a caller could send that our own client never would.
//!
//! Blocking, for tests that are; a status comes back as it is, with its ErrorInfo.

use crate::server::{Registered, Server};
use bytes::Bytes;
use std::io::Read;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;
use tribunal_proto::v1;
use tribunal_proto::v1::repository_service_client::RepositoryServiceClient;
use tribunal_proto::v1::score_service_client::ScoreServiceClient;
use tribunal_proto::v1::upload_commits_request::Part;

/// What our own client may take, too.
const ANSWER_LIMIT: usize = 256 << 20;
/// Bytes of one chunk.
pub const CHUNK: usize = 512 << 10;

/// One connection with one token, for one repository.
pub struct Wire {
    runtime: Runtime,
    channel: Channel,
    bearer: MetadataValue<Ascii>,
    repository: String,
    traces: Vec<MetadataValue<Ascii>>,
}

/// How a watched stream went.
#[derive(Debug)]
pub struct Watched {
    /// Every event, in order.
    pub events: Vec<v1::ScoreEvent>,
    /// The status that ended it, where it did not end well.
    pub ended: Result<(), Status>,
}

impl Wire {
    /// Connect to the server with this token.
    #[must_use]
    pub fn new(server: &Server, repo: &Registered, token: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let endpoint = Endpoint::from_shared(server.url()).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self {
            runtime,
            channel,
            bearer: format!("Bearer {token}").parse().unwrap(),
            repository: format!("repositories/{}", repo.name),
            traces: Vec::new(),
        }
    }

    /// From now on each call carries these as `traceparent`.
    pub fn traced(&mut self, parents: &[&str]) {
        self.traces = parents.iter().map(|p| p.parse().unwrap()).collect();
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request
            .metadata_mut()
            .insert("authorization", self.bearer.clone());
        for trace in &self.traces {
            request.metadata_mut().append("traceparent", trace.clone());
        }
        request
    }

    fn scores(&self) -> ScoreServiceClient<Channel> {
        ScoreServiceClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_LIMIT)
    }

    fn repositories(&self) -> RepositoryServiceClient<Channel> {
        RepositoryServiceClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_LIMIT)
    }

    /// A request for this head under this idempotency key; both as they are.
    #[must_use]
    pub fn asking(&self, head: &str, request_id: &str) -> v1::CreateScoreRequest {
        v1::CreateScoreRequest {
            parent: self.repository.clone(),
            head: head.to_owned(),
            base: String::new(),
            request_id: request_id.to_owned(),
            fresh: false,
            proposed: false,
        }
    }

    /// Whether health says that this service serves; empty is the whole server.
    ///
    /// # Errors
    /// What the server says.
    pub fn serves(&self, service: &str) -> Result<bool, Status> {
        let mut health = HealthClient::new(self.channel.clone());
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = self.runtime.block_on(health.check(request))?;
        Ok(answer.into_inner().status() == ServingStatus::Serving)
    }

    /// Ask for a score.
    ///
    /// # Errors
    /// What the server says.
    pub fn create(&self, message: v1::CreateScoreRequest) -> Result<v1::Score, Status> {
        let request = self.request(message);
        let answer = self
            .runtime
            .block_on(async { self.scores().create_score(request).await })?;
        Ok(answer.into_inner().score.unwrap())
    }

    /// One score as it is now.
    ///
    /// # Errors
    /// What the server says.
    pub fn get(&self, name: &str) -> Result<v1::Score, Status> {
        let request = self.request(v1::GetScoreRequest {
            name: name.to_owned(),
        });
        let answer = self
            .runtime
            .block_on(async { self.scores().get_score(request).await })?;
        Ok(answer.into_inner().score.unwrap())
    }

    /// Its state now.
    #[must_use]
    pub fn state(&self, name: &str) -> v1::ScoreState {
        self.get(name).unwrap().state()
    }

    /// The scores that this token may see, newest first.
    ///
    /// # Errors
    /// What the server says.
    pub fn list(&self) -> Result<Vec<v1::Score>, Status> {
        let request = self.request(v1::ListScoresRequest {
            parent: self.repository.clone(),
            page_size: 500,
            ..Default::default()
        });
        let answer = self
            .runtime
            .block_on(async { self.scores().list_scores(request).await })?;
        Ok(answer.into_inner().scores)
    }

    /// End a score.
    ///
    /// # Errors
    /// What the server says.
    pub fn cancel(&self, name: &str) -> Result<v1::Score, Status> {
        let request = self.request(v1::CancelScoreRequest {
            name: name.to_owned(),
        });
        let answer = self
            .runtime
            .block_on(async { self.scores().cancel_score(request).await })?;
        Ok(answer.into_inner().score.unwrap())
    }

    /// The files of a completed score.
    ///
    /// # Errors
    /// What the server says.
    pub fn verdicts(&self, name: &str) -> Result<Vec<v1::VerdictFile>, Status> {
        let request = self.request(v1::GetVerdictsRequest {
            name: name.to_owned(),
        });
        let answer = self
            .runtime
            .block_on(async { self.scores().get_verdicts(request).await })?;
        Ok(answer.into_inner().files)
    }

    fn watching(
        &self,
        name: &str,
        after: u64,
    ) -> Result<Streaming<v1::WatchScoreResponse>, Status> {
        let request = self.request(v1::WatchScoreRequest {
            name: name.to_owned(),
            after_sequence: after,
        });
        let answer = self
            .runtime
            .block_on(async { self.scores().watch_score(request).await })?;
        Ok(answer.into_inner())
    }

    /// Watch until this event, and then break off.
    ///
    /// # Errors
    /// What the server says.
    pub fn watch_until(
        &self,
        name: &str,
        after: u64,
        mut is_last: impl FnMut(&v1::ScoreEvent) -> bool,
    ) -> Result<Watched, Status> {
        let mut stream = self.watching(name, after)?;
        let mut events = Vec::new();
        let ended = loop {
            let next = self.runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(120), stream.message()).await
            });
            match next.unwrap() {
                Ok(Some(message)) => {
                    let event = message.event.unwrap();
                    let last = is_last(&event);
                    events.push(event);
                    if last {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(status) => break Err(status),
            }
        };
        Ok(Watched { events, ended })
    }

    /// Watch to the end of the stream.
    ///
    /// # Errors
    /// What the server says.
    pub fn watch(&self, name: &str, after: u64) -> Result<Watched, Status> {
        self.watch_until(name, after, |_| false)
    }

    /// The sealed cases of a commit (empty: of the protected tip).
    ///
    /// # Errors
    /// What the server says.
    pub fn cases(&self, commit: &str) -> Result<Vec<v1::SealedCase>, Status> {
        let request = self.request(v1::ListCasesRequest {
            parent: self.repository.clone(),
            commit: commit.to_owned(),
            ..Default::default()
        });
        let answer = self
            .runtime
            .block_on(async { self.repositories().list_cases(request).await })?;
        Ok(answer.into_inner().cases)
    }

    /// Send these bytes as a bundle that is said to have `size` bytes.
    ///
    /// # Errors
    /// What the server says.
    pub fn upload(
        &self,
        size: u64,
        bytes: impl Read + Send + 'static,
    ) -> Result<Vec<String>, Status> {
        let parts = self.parts(size, bytes, None);
        let request = self.request(ReceiverStream::new(parts));
        let answer = self
            .runtime
            .block_on(async { self.repositories().upload_commits(request).await })?;
        Ok(answer.into_inner().commits)
    }

    /// Send these bytes as the beginning of a bundle of `size` bytes; then `then` runs while the stream is open and silent,
    /// and then the connection is gone without a word.
    pub fn upload_and_vanish(
        self,
        size: u64,
        bytes: impl Read + Send + 'static,
        then: impl FnOnce(),
    ) {
        let (hold, held) = std::sync::mpsc::channel();
        let parts = self.parts(size, bytes, Some(held));
        let request = self.request(ReceiverStream::new(parts));
        let mut client = self.repositories();
        let call = self
            .runtime
            .spawn(async move { client.upload_commits(request).await.map(|_| ()) });
        then();
        assert!(!call.is_finished(), "the server did not wait for the rest");
        // Dropping the runtime drops the call and its connection; then the sender need not wait any more.
        self.runtime.shutdown_background();
        drop(hold);
    }

    fn parts(
        &self,
        size: u64,
        mut bytes: impl Read + Send + 'static,
        hold: Option<std::sync::mpsc::Receiver<()>>,
    ) -> mpsc::Receiver<v1::UploadCommitsRequest> {
        let (sender, receiver) = mpsc::channel(4);
        let mut part = Part::Header(v1::UploadHeader {
            parent: self.repository.clone(),
            size,
        });
        std::thread::spawn(move || {
            while sender
                .blocking_send(v1::UploadCommitsRequest { part: Some(part) })
                .is_ok()
            {
                let mut chunk = Vec::with_capacity(CHUNK);
                let taken = Read::take(&mut bytes, CHUNK as u64).read_to_end(&mut chunk);
                if taken.unwrap() == 0 {
                    break;
                }
                part = Part::Chunk(Bytes::from(chunk));
            }
            if let Some(hold) = hold {
                let _ = hold.recv();
            }
        });
        receiver
    }
}

/// The code in a status's ErrorInfo, as the documents spell it; a status without one is a panic.
#[must_use]
#[track_caller]
pub fn code(status: &Status) -> String {
    let info = status.get_details_error_info();
    let info = info.unwrap_or_else(|| panic!("no ErrorInfo in {status:?}"));
    assert_eq!(info.domain, "tribunal");
    info.reason.to_ascii_lowercase().replace('_', "-")
}
