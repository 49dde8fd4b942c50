//! A server that follows a script and remembers what it was asked. It judges nothing; its files are signed elsewhere.

use crate::signed::{BASE, Signed};
use std::collections::HashMap;
use std::fs;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt as _};
use tribunal_core::keys::KeyRecord;
use tribunal_proto::v1::key_service_server::{KeyService, KeyServiceServer};
use tribunal_proto::v1::repository_service_server::{RepositoryService, RepositoryServiceServer};
use tribunal_proto::v1::score_event::Kind;
use tribunal_proto::v1::score_service_server::{ScoreService, ScoreServiceServer};
use tribunal_proto::v1::sealed_file::Mode;
use tribunal_proto::v1::upload_commits_request::Part;
use tribunal_proto::v1::*;

pub(crate) const ID: &str = "0123456789abcdef0123456789abcdef";

/// What the server does.
#[derive(Clone)]
pub(crate) struct Script {
    files: Vec<VerdictFile>,
    /// Its key list.
    pub(crate) keys: Vec<Key>,
    /// Its protected tip.
    pub(crate) tip: String,
    /// Whether it has the head from the beginning.
    pub(crate) knows_head: bool,
    /// Whether every bundle with a prerequisite is refused.
    pub(crate) has_nothing: bool,
    /// Whether a completed score is there already.
    pub(crate) completed: bool,
    /// After how many events in all each watch breaks, in turn.
    pub(crate) breaks_after: Vec<u64>,
    /// The code that the score ends with instead of verdicts.
    pub(crate) aborts: Option<&'static str>,
    /// What CreateScore answers.
    pub(crate) refuses: Option<Status>,
}

impl Script {
    /// Hand out these verdicts.
    pub(crate) fn new(signed: &Signed) -> Self {
        let files = fs::read_dir(signed.out())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| VerdictFile {
                name: entry.file_name().into_string().unwrap(),
                content: fs::read(entry.path()).unwrap().into(),
            })
            .collect();
        let key = Key {
            allowed_signers_line: KeyRecord::undated(signed.public()).allowed_signers_line(),
            ..Key::default()
        };
        Self {
            files,
            keys: vec![key],
            tip: BASE.to_owned(),
            knows_head: false,
            has_nothing: false,
            completed: false,
            breaks_after: Vec::new(),
            aborts: None,
            refuses: None,
        }
    }
}

/// What it was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) tokens: Vec<String>,
    pub(crate) request_ids: Vec<String>,
    pub(crate) heads: Vec<String>,
    pub(crate) bundles: Vec<Vec<u8>>,
    pub(crate) watched_after: Vec<u64>,
}

/// A refusal as the real server words it.
pub(crate) fn refused(code: Code, reason: &str) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, "tribunal", HashMap::new());
    Status::with_error_details(code, "said by the script", details)
}

/// The running server.
pub(crate) struct Scripted {
    address: std::net::SocketAddr,
    seen: Arc<Mutex<Seen>>,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Scripted {
    pub(crate) fn start(script: Script) -> Self {
        Self::start_on(Server::builder(), script)
    }

    /// The same on a builder of the test's own, with TLS for one.
    pub(crate) fn start_on(mut builder: Server, script: Script) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let service = Service {
            script: Arc::new(script),
            seen: seen.clone(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (told, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                told.send(incoming.local_addr().unwrap()).unwrap();
                let serve = builder
                    .add_service(ScoreServiceServer::new(service.clone()))
                    .add_service(RepositoryServiceServer::new(service.clone()))
                    .add_service(KeyServiceServer::new(service))
                    .serve_with_incoming(incoming);
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self {
            address: address.recv().unwrap(),
            seen,
            stop,
            thread,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// End it; what it was asked.
    pub(crate) fn stop(self) -> Seen {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
        let mut seen = self.seen.lock().unwrap().clone();
        seen.tokens.dedup();
        seen
    }
}

#[derive(Clone)]
struct Service {
    script: Arc<Script>,
    seen: Arc<Mutex<Seen>>,
}

type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Service {
    fn note<T>(&self, request: &Request<T>) {
        let token = request
            .metadata()
            .get("authorization")
            .unwrap()
            .to_str()
            .unwrap();
        self.seen.lock().unwrap().tokens.push(token.to_owned());
    }

    fn words() -> Option<VerdictWords> {
        Some(VerdictWords {
            src_score: VerdictWord::Pass.into(),
            oracle_integrity: VerdictWord::Pass.into(),
            flake_lease: VerdictWord::Pass.into(),
        })
    }

    fn score(&self, state: ScoreState) -> Score {
        let signed: serde_json::Value = self
            .script
            .files
            .iter()
            .find(|f| f.name == "src_score.json")
            .map(|f| serde_json::from_slice(&f.content).unwrap())
            .unwrap();
        Score {
            name: format!("repositories/app/scores/{ID}"),
            head: signed["predicate"]["head"]["id"]
                .as_str()
                .unwrap()
                .to_owned(),
            base: BASE.to_owned(),
            base_tip: BASE.to_owned(),
            state: state.into(),
            words: (state == ScoreState::Completed).then(Self::words).flatten(),
            change_set: ChangeSet::Agent.into(),
            ..Score::default()
        }
    }

    fn history(&self) -> Vec<ScoreEvent> {
        let lane = || "property".to_owned();
        let end = match self.script.aborts {
            Some(code) => Kind::Aborted(Abort {
                code: code.to_owned(),
                message: "said by the script".to_owned(),
            }),
            None => Kind::Completed(ScoreCompleted {
                words: Self::words(),
                files: self.script.files.clone(),
            }),
        };
        [
            Kind::Queued(ScoreQueued { position: 1 }),
            Kind::Preparing(ScorePreparing {
                stage: "sealing the base".to_owned(),
            }),
            Kind::AttemptStarted(AttemptStarted {
                lane: lane(),
                index: 0,
                total: 1,
            }),
            Kind::AttemptEnded(AttemptEnded {
                lane: lane(),
                index: 0,
                total: 1,
                stored: false,
            }),
            Kind::Judged(ScoreJudged {
                words: Self::words(),
            }),
            end,
        ]
        .into_iter()
        .zip(1..)
        .map(|(kind, sequence)| ScoreEvent {
            sequence,
            time: None,
            kind: Some(kind),
        })
        .collect()
    }
}

#[tonic::async_trait]
impl ScoreService for Service {
    type WatchScoreStream = Events<WatchScoreResponse>;
    type ScoreStream = Events<ScoreResponse>;

    async fn create_score(
        &self,
        request: Request<CreateScoreRequest>,
    ) -> Result<Response<CreateScoreResponse>, Status> {
        self.note(&request);
        let request = request.into_inner();
        let mut seen = self.seen.lock().unwrap();
        seen.request_ids.push(request.request_id);
        seen.heads.push(request.head);
        if let Some(status) = &self.script.refuses {
            return Err(status.clone());
        }
        if !self.script.knows_head && seen.bundles.is_empty() {
            return Err(refused(Code::NotFound, "UNKNOWN_COMMIT"));
        }
        Ok(Response::new(CreateScoreResponse {
            score: Some(self.score(ScoreState::Queued)),
        }))
    }

    async fn watch_score(
        &self,
        request: Request<WatchScoreRequest>,
    ) -> Result<Response<Self::WatchScoreStream>, Status> {
        let after = request.into_inner().after_sequence;
        let watches = {
            let mut seen = self.seen.lock().unwrap();
            seen.watched_after.push(after);
            seen.watched_after.len() - 1
        };
        let breaks_after = self.script.breaks_after.get(watches).copied();
        let mut messages: Vec<Result<WatchScoreResponse, Status>> = self
            .history()
            .into_iter()
            // A heartbeat repeats the last number, and so does a server that replays too much.
            .filter(|event| event.sequence >= after.max(1))
            .filter(|event| breaks_after.is_none_or(|last| event.sequence <= last))
            .map(|event| Ok(WatchScoreResponse { event: Some(event) }))
            .collect();
        if breaks_after.is_some() {
            // As a server that goes down says it.
            messages.push(Err(refused(Code::Unavailable, "SERVER_RESTARTED")));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn score(&self, _: Request<ScoreRequest>) -> Result<Response<Self::ScoreStream>, Status> {
        Err(Status::unimplemented("not in the script"))
    }

    async fn get_score(
        &self,
        _: Request<GetScoreRequest>,
    ) -> Result<Response<GetScoreResponse>, Status> {
        Ok(Response::new(GetScoreResponse {
            score: Some(self.score(ScoreState::Completed)),
        }))
    }

    async fn list_scores(
        &self,
        _: Request<ListScoresRequest>,
    ) -> Result<Response<ListScoresResponse>, Status> {
        let scores = if self.script.completed {
            vec![self.score(ScoreState::Completed)]
        } else {
            Vec::new()
        };
        Ok(Response::new(ListScoresResponse {
            scores,
            next_page_token: String::new(),
        }))
    }

    async fn cancel_score(
        &self,
        _: Request<CancelScoreRequest>,
    ) -> Result<Response<CancelScoreResponse>, Status> {
        Ok(Response::new(CancelScoreResponse {
            score: Some(self.score(ScoreState::Running)),
        }))
    }

    async fn get_verdicts(
        &self,
        _: Request<GetVerdictsRequest>,
    ) -> Result<Response<GetVerdictsResponse>, Status> {
        Ok(Response::new(GetVerdictsResponse {
            score: Some(self.score(ScoreState::Completed)),
            files: self.script.files.clone(),
        }))
    }

    async fn list_flaky_cases(
        &self,
        request: Request<ListFlakyCasesRequest>,
    ) -> Result<Response<ListFlakyCasesResponse>, Status> {
        let page = usize::from(request.into_inner().page_token == "more");
        Ok(Response::new(ListFlakyCasesResponse {
            cases: vec![flaky(page)],
            next_page_token: ["more", ""][page].to_owned(),
        }))
    }
}

/// Two pages: a case that many scores saw and one that one did.
fn flaky(page: usize) -> FlakyCase {
    let seen = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let score = |n: usize| format!("repositories/app/scores/{n:032x}");
    let counts = [(25, 5_u64), (1, 0)];
    let (score_count, many) = counts[page];
    FlakyCase {
        node_id: [
            "tests/sealed/test_core.py::test_two[a b]",
            "tests/test_new.py::test_\u{1b}[1m",
        ][page]
            .to_owned(),
        case_digest: [format!("v2:cp313:{}", "ab".repeat(32)), String::new()][page].clone(),
        lane: ["property", "merge"][page].to_owned(),
        first_seen_time: seen(1_790_000_000),
        last_seen_time: seen(1_790_086_400),
        attempts: 14 + many,
        failures: 3,
        upper_bound: 0.4275,
        source: ["threads", ""][page].to_owned(),
        moved: ["", "order"][page].to_owned(),
        owed: ["neither", "property"][page].to_owned(),
        scores: (0..score_count).take(20).map(score).collect(),
        score_count: score_count as u64,
    }
}

#[tonic::async_trait]
impl RepositoryService for Service {
    async fn get_repository(
        &self,
        _: Request<GetRepositoryRequest>,
    ) -> Result<Response<GetRepositoryResponse>, Status> {
        Ok(Response::new(GetRepositoryResponse {
            repository: Some(Repository {
                name: "repositories/app".to_owned(),
                protected_ref: "refs/heads/main".to_owned(),
                tip: self.script.tip.clone(),
                prerequisite_commits: vec![self.script.tip.clone()],
                object_format: "sha1".to_owned(),
            }),
        }))
    }

    async fn list_repositories(
        &self,
        _: Request<ListRepositoriesRequest>,
    ) -> Result<Response<ListRepositoriesResponse>, Status> {
        Err(Status::unimplemented("not in the script"))
    }

    async fn upload_commits(
        &self,
        request: Request<Streaming<UploadCommitsRequest>>,
    ) -> Result<Response<UploadCommitsResponse>, Status> {
        let mut parts = request.into_inner();
        let mut size = 0;
        let mut bundle = Vec::new();
        while let Some(part) = parts.next().await {
            match part?.part.unwrap() {
                Part::Header(header) => size = header.size,
                Part::Chunk(chunk) => bundle.extend_from_slice(&chunk),
            }
        }
        assert_eq!(size, bundle.len() as u64);
        let builds_on_something = bundle.starts_with(b"# v2 git bundle\n-");
        self.seen.lock().unwrap().bundles.push(bundle);
        if self.script.has_nothing && builds_on_something {
            return Err(refused(Code::FailedPrecondition, "MISSING_PREREQUISITE"));
        }
        Ok(Response::new(UploadCommitsResponse {
            commits: Vec::new(),
        }))
    }

    async fn list_cases(
        &self,
        request: Request<ListCasesRequest>,
    ) -> Result<Response<ListCasesResponse>, Status> {
        // Two pages, to see that both are read.
        let pages = ["test_one", "test_two[a::b]"];
        let page = usize::from(request.into_inner().page_token == "more");
        let function = pages[page].split('[').next().unwrap();
        Ok(Response::new(ListCasesResponse {
            commit: BASE.to_owned(),
            cases: vec![SealedCase {
                node_id: format!("tests/sealed/test_core.py::{}", pages[page]),
                file: "tests/sealed/test_core.py".to_owned(),
                qualname: format!("test_core.{function}"),
                bytecode_digest: format!("v2:cp313:{}", page.to_string().repeat(64)),
                short_digest: String::new(),
                marks: Vec::new(),
                failure_signature: String::new(),
            }],
            next_page_token: if page == 0 {
                "more".to_owned()
            } else {
                String::new()
            },
            uncollected_files: Vec::new(),
        }))
    }

    async fn list_modes(
        &self,
        request: Request<ListModesRequest>,
    ) -> Result<Response<ListModesResponse>, Status> {
        let page = usize::from(request.into_inner().page_token == "more");
        Ok(Response::new(ListModesResponse {
            commit: BASE.to_owned(),
            files: modes(page),
            next_page_token: ["more", ""][page].to_owned(),
        }))
    }
}

/// Two pages: a file that is listed without need, one that runs split; then one that needs it and one that has it.
fn modes(page: usize) -> Vec<SealedFile> {
    let file = |(name, mode, cases): (&str, Mode, usize)| SealedFile {
        path: format!("tests/sealed/test_{name}.py"),
        mode: mode.into(),
        needing_case_ids: (0..cases)
            .map(|n| format!("tests/sealed/test_{name}.py::test_{n}"))
            .collect(),
    };
    let pages = [
        [("a", Mode::SharedWithoutNeed, 0), ("b", Mode::Split, 0)],
        [("c", Mode::NeedsShared, 7), ("d", Mode::Shared, 1)],
    ];
    pages[page].into_iter().map(file).collect()
}

#[tonic::async_trait]
impl KeyService for Service {
    async fn list_keys(
        &self,
        _: Request<ListKeysRequest>,
    ) -> Result<Response<ListKeysResponse>, Status> {
        Ok(Response::new(ListKeysResponse {
            keys: self.script.keys.clone(),
            next_page_token: String::new(),
        }))
    }
}
