//! The wire over a real socket, with real clients; behind it a memory store, a scorer and a repository that do what a test
//! tells them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod calls;
mod cassettes;
mod flaky;
mod roles;
mod streams;
mod tls;
mod uploads;

use super::token::Token;
use super::*;
use crate::clock;
use crate::metrics::nobody;
use crate::pipeline::{FileMode, Listed, SealedCase};
use crate::queue::{Admission, QueueLimits, Scorer, Work};
use crate::repository::{Objects, ProtectedTip, RepositoryError, Viewer};
use crate::sandbox::Asked;
use crate::store::{Audience, Completion, EventKind, MemoryStore, StoredFile, TokenRecord, Words};
use bytes::Bytes;
use std::io::Read;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tonic::metadata::MetadataValue;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic_types::StatusExt as _;
use tribunal_core::id::NodeId;
use tribunal_core::judge::Word;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::request::{Role, ScoreRequest};
use tribunal_proto::v1;
use v1::cassette_service_client::CassetteServiceClient;
use v1::key_service_client::KeyServiceClient;
use v1::repository_service_client::RepositoryServiceClient;
use v1::score_service_client::ScoreServiceClient;

const WORDS: Words = Words {
    src_score: Word::Pass,
    oracle_integrity: Word::Pass,
    flake_lease: Word::Fail,
};

/// What stands behind the wire.
struct Behind {
    store: Arc<MemoryStore>,
    /// A running score completes with a permit.
    go: Arc<Semaphore>,
    running: Arc<AtomicUsize>,
    /// Uploads whose reader has begun.
    begun: AtomicUsize,
    /// What uploads came to: how many bytes were read, and whether to the end.
    uploads: Mutex<Vec<(usize, Result<(), std::io::ErrorKind>)>>,
}

#[async_trait::async_trait]
impl Scorer for Behind {
    async fn admit(&self, request: ScoreRequest) -> Result<Admission, NoVerdict> {
        let head = request.head().clone();
        if head.as_str().starts_with('0') {
            return Err(Refused::new(RefusedCode::UnknownCommit, "it is not here").into());
        }
        if head.as_str().starts_with('9') {
            return Err(Aborted::new(AbortedCode::EngineUnavailable, "it is away").into());
        }
        let broken = head.as_str().starts_with('b');
        let (store, go, running) = (self.store.clone(), self.go.clone(), self.running.clone());
        let work: Work = Box::new(move |id, progress, cancel| {
            Box::pin(async move {
                running.fetch_add(1, Ordering::SeqCst);
                let stage = "trees".to_owned();
                progress.send(EventKind::Preparing { stage }).await.ok();
                tokio::select! {
                    permit = go.acquire() => permit.unwrap().forget(),
                    () = cancel.cancelled() => {
                        return Err(Aborted::new(AbortedCode::Cancelled, "closed"));
                    }
                }
                if broken {
                    return Err(Aborted::new(AbortedCode::EngineUnavailable, "it went away"));
                }
                progress.send(EventKind::Judged { words: WORDS }).await.ok();
                store.complete_score(&id, clock::now(), &completion())?;
                Ok(())
            })
        });
        Ok(Admission {
            base: "1".repeat(40).parse().unwrap(),
            base_tip: "1".repeat(40).parse().unwrap(),
            change_set: tribunal_core::plan::ChangeSet::Agent,
            head,
            work,
        })
    }
}

fn completion() -> Completion {
    let file = |name: &str, audience, content: &'static [u8]| StoredFile {
        name: name.to_owned(),
        audience,
        content: bytes::Bytes::from_static(content),
    };
    Completion {
        words: WORDS,
        files: vec![
            file("src_score.txt", Audience::Everyone, b"PASS\n"),
            file("report.json", Audience::Agent, b"agent"),
            file("report.json", Audience::Reader, b"reader"),
            file("report.json", Audience::Operator, b"operator"),
        ],
        mixed: Vec::new(),
    }
}

impl Repository for Behind {
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        if repo.as_str() == "gone" {
            return Err(Refused::new(RefusedCode::UnknownRepository, "no such one").into());
        }
        Ok(ProtectedTip {
            name: "refs/heads/main".to_owned(),
            commit: "1".repeat(40).parse().unwrap(),
        })
    }
    fn last_tip(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.refresh(repo)
    }
    fn open(&self, _: &RepoName, _: &Viewer) -> Result<Arc<dyn Objects>, RepositoryError> {
        Err(Aborted::new(AbortedCode::Internal, "not asked here").into())
    }
    fn list(&self) -> Result<Vec<RepoName>, RepositoryError> {
        Ok(["demo", "other", "third"]
            .map(|n| n.parse().unwrap())
            .into())
    }
    fn ingest(
        &self,
        _: &RepoName,
        _: &Viewer,
        bundle: &mut dyn Read,
        _: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let mut bytes = Vec::new();
        let read = bundle
            .read_to_end(&mut bytes)
            .map(drop)
            .map_err(|e| e.kind());
        self.uploads.lock().unwrap().push((bytes.len(), read));
        if read.is_err() {
            return Err(Refused::new(RefusedCode::UploadIncomplete, "it broke off").into());
        }
        if bytes.starts_with(b"bad") {
            return Err(Refused::new(RefusedCode::BadObject, "it is no bundle").into());
        }
        Ok(vec!["a".repeat(40).parse().unwrap()])
    }
}

#[async_trait::async_trait]
impl Collector for Behind {
    async fn cases(
        &self,
        _: &Caller,
        _: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedCases, NoVerdict> {
        let case = |n: u32| SealedCase {
            node: format!("tests/sealed/test_a.py::test[{n}\n]")
                .parse()
                .unwrap(),
            file: "tests/sealed/test_a.py".parse().unwrap(),
            qualname: "test_a.test".to_owned(),
            digest: None,
            marks: vec!["skip".to_owned()],
            signature: None,
        };
        Ok(SealedCases {
            commit: commit
                .cloned()
                .unwrap_or_else(|| "1".repeat(40).parse().unwrap()),
            cases: (0..3).map(case).collect(),
            uncollected: vec![(
                "tests/sealed/test_b.py".parse().unwrap(),
                "\u{7}no".to_owned(),
            )],
        })
    }

    async fn record(
        &self,
        _: &Caller,
        _: &RepoName,
        wanted: &ToRecord,
        outside: Arc<dyn Outside>,
    ) -> Result<Recording, NoVerdict> {
        let asked = |path: &str, body: Bytes| Asked {
            scheme: "https".to_owned(),
            method: "POST".to_owned(),
            host: "api.example.org".to_owned(),
            path: path.to_owned(),
            query: None,
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            body,
        };
        let first = outside
            .perform(asked("/big", vec![7; 1_200_000].into()))
            .await;
        let second = outside.perform(asked("/empty", Bytes::new())).await;
        Ok(Recording {
            commit: "1".repeat(40).parse().unwrap(),
            failure: Some(format!(
                "{} {} {}\u{7}",
                first.status,
                first.body.len(),
                second.status
            )),
            clock: Some("2026-09-12T00:00:00Z".to_owned()),
            rng_seed: None,
            listed: wanted.listings.keys().cloned().collect(),
            misses: Vec::new(),
            listings: 3,
        })
    }

    async fn modes(
        &self,
        _: &Caller,
        _: &RepoName,
        commit: Option<&CommitId>,
    ) -> Result<SealedModes, NoVerdict> {
        let node: NodeId = "tests/sealed/test_a.py::test".parse().unwrap();
        let file = |(n, listed, needing)| FileMode {
            path: format!("tests/sealed/test_{n}.py").parse().unwrap(),
            listed,
            needing,
        };
        let files = [
            (0, Listed::No, vec![]),
            (1, Listed::Shared, vec![]),
            (2, Listed::Shared, vec![node.clone()]),
            (3, Listed::No, vec![node; 101]),
        ];
        Ok(SealedModes {
            commit: commit
                .cloned()
                .unwrap_or_else(|| "1".repeat(40).parse().unwrap()),
            files: files.into_iter().map(file).collect(),
        })
    }
}

/// A served wire, and what is behind it.
struct Bench {
    behind: Arc<Behind>,
    queue: Queue,
    address: std::net::SocketAddr,
    stops: Stops,
    certificates: Certificates,
    served: tokio::task::JoinHandle<Result<(), ListenError>>,
}

fn settings() -> WireSettings {
    WireSettings {
        heartbeat: Duration::from_secs(30),
        keepalive: Duration::from_secs(30),
        call_rate: CallRate {
            per_second: 1000.0,
            burst: 1000.0,
        },
        uploads: UploadLimits {
            bytes: 8 << 20,
            object_bytes: 1 << 20,
            objects: 100,
            seconds: 30,
            memory: 1 << 30,
            kept_bytes: 1 << 30,
        },
        uploads_at_once: 2,
        collections_at_once: 1,
    }
}

async fn bench(settings: WireSettings) -> Bench {
    serve_on(settings, None).await
}

async fn serve_on(settings: WireSettings, tls: Option<Tls>) -> Bench {
    let behind = Arc::new(Behind {
        store: Arc::new(MemoryStore::new()),
        go: Arc::new(Semaphore::new(0)),
        running: Arc::default(),
        begun: AtomicUsize::new(0),
        uploads: Mutex::default(),
    });
    let limits = QueueLimits {
        workers: 2,
        capacity: 4,
        running_per_token: 2,
        open_per_token: 4,
        hourly_per_token: 100,
        stall: Duration::from_secs(60),
    };
    let queue = Queue::start(behind.store.clone(), behind.clone(), limits, nobody());
    let services = Services {
        store: behind.store.clone(),
        queue: queue.clone(),
        repository: behind.clone(),
        collector: behind.clone(),
        observer: nobody(),
        settings,
    };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls)
        .await
        .unwrap();
    let address = listener.address();
    let stops = Stops::default();
    let certificates = listener.certificates();
    let served = tokio::spawn(listener.serve(services, stops.clone()));
    Bench {
        behind,
        queue,
        address,
        stops,
        certificates,
        served,
    }
}

/// Puts a token on every call.
#[derive(Clone)]
struct Bearer(Option<String>);

impl tonic::service::Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }
}

type Api = InterceptedService<Channel, Bearer>;

impl Bench {
    async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    fn token(&self, role: Role, scope: Option<&str>) -> String {
        let token = Token::mint().unwrap();
        let record = TokenRecord {
            id: token.id().clone(),
            secret_hash: token.secret_hash(),
            role,
            scope: scope.map(|s| s.parse().unwrap()),
            created: clock::now(),
            expires: None,
            revoked: None,
        };
        self.behind.store.add_token(&record).unwrap();
        token.reveal().to_string()
    }

    async fn scores(&self, token: &str) -> ScoreServiceClient<Api> {
        let bearer = Bearer(Some(token.to_owned()));
        ScoreServiceClient::with_interceptor(self.channel().await, bearer)
    }

    async fn repositories(&self, token: &str) -> RepositoryServiceClient<Api> {
        let bearer = Bearer(Some(token.to_owned()));
        RepositoryServiceClient::with_interceptor(self.channel().await, bearer)
    }

    async fn cassettes(&self, token: &str) -> CassetteServiceClient<Api> {
        let bearer = Bearer(Some(token.to_owned()));
        CassetteServiceClient::with_interceptor(self.channel().await, bearer)
    }

    async fn keys(&self, token: &str) -> KeyServiceClient<Api> {
        let bearer = Bearer(Some(token.to_owned()));
        KeyServiceClient::with_interceptor(self.channel().await, bearer)
    }
}

fn ask(head: &str) -> v1::CreateScoreRequest {
    v1::CreateScoreRequest {
        parent: "repositories/demo".to_owned(),
        head: format!("{head:0<40}"),
        ..v1::CreateScoreRequest::default()
    }
}

/// A new score's name.
async fn create(api: &mut ScoreServiceClient<Api>, head: &str) -> String {
    let answer = api.create_score(ask(head)).await.unwrap();
    answer.into_inner().score.unwrap().name
}

/// The reason of an error; there is exactly one ErrorInfo, of our domain.
#[track_caller]
fn reason<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
    let status = result.unwrap_err();
    let infos = status
        .get_error_details_vec()
        .into_iter()
        .filter(|detail| matches!(detail, tonic_types::ErrorDetail::ErrorInfo(_)))
        .count();
    assert_eq!(infos, 1, "{status:?}");
    let info = status.get_details_error_info().unwrap();
    assert_eq!(info.domain, "tribunal");
    info.reason
}
