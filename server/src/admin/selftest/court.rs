//! This server's own rooms, in a folder of their own: a case is registered, uploaded, queued, run, judged, signed, and its
//! verdicts are joined as a gate would join them.

use super::corpus::Built;
use crate::admin::token::mint;
use crate::admin::{AdminError, Data};
use crate::clock;
use crate::config::Config;
use crate::metrics::nobody;
use crate::pipeline::{NoVerdict, PipelineScorer};
use crate::queue::{Queue, QueueLimits};
use crate::repository::{GitRepository, Repository, UploadLimits, Viewer};
use crate::sandbox::Sandbox as _;
use crate::sandbox::docker::DockerSandbox;
use crate::serve;
use crate::store::{self, Audience, ScoreState, Store};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::id::{RepoName, ScoreId};
use tribunal_core::join::{Decision, Expected, join};
use tribunal_core::keys::KeyRing;
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::{Aborted, AbortedCode, RefusedCode};
use tribunal_core::request::{Caller, RawScoreRequest, RequestError, Role};
use tribunal_core::verify::{VerdictDir, verify};

/// What it came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tribunal {
    /// The request was refused: nothing to merge.
    Refused(RefusedCode),
    /// Three verdicts, joined.
    Joined {
        /// What the join decided.
        decision: Decision,
        /// The three words.
        words: [String; 3],
        /// The reasons that were signed.
        reasons: Vec<String>,
    },
    /// No verdict: our own trouble.
    Aborted(Aborted),
}

pub(super) struct Court {
    store: Arc<dyn Store>,
    repository: Arc<GitRepository>,
    sandbox: DockerSandbox,
    queue: Queue,
    caller: Caller,
    keys: KeyRing,
    instance: String,
    deadline: Duration,
}

impl Court {
    /// The rooms of this data directory, with a queue that takes so many.
    pub(super) async fn open(
        data: Data,
        config: &Config,
        cases: usize,
        deadline: Duration,
    ) -> Result<Self, AdminError> {
        let store: Arc<dyn Store> = Arc::new(data.store()?);
        let instance = data.instance(&*store)?;
        let token = mint(&*store, Role::Agent, None, None)?;
        let repository = Arc::new(data.repository(serve::repository_settings(&data, config))?);
        let sandbox = serve::sandbox(&data, serve::engine_host(config), 0, &store, nobody())?;
        let rooms = serve::rooms(&data, config, &store, &repository, &sandbox)?;
        let limits = QueueLimits {
            capacity: cases,
            open_per_token: cases,
            hourly_per_token: u64::MAX,
            running_per_token: config.queue.workers,
            ..config.queue.clone()
        };
        let scorer = Arc::new(PipelineScorer::new(rooms));
        let keys = KeyRing::new(store::off(&store, |s| s.keys()).await?);
        Ok(Self {
            queue: Queue::start(Arc::clone(&store), scorer, limits, nobody()),
            store,
            repository,
            sandbox,
            caller: Caller {
                token: token.id().clone(),
                role: Role::Agent,
                scope: None,
            },
            keys,
            instance,
            deadline,
        })
    }

    /// What its things in the engine are labelled with.
    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    /// One case, from its remote to the join.
    pub(super) async fn ask(&self, built: &Built, number: usize) -> Result<Tribunal, AdminError> {
        let name: RepoName = format!("case-{number}").parse()?;
        match self.taken_in(built, &name).await? {
            Ok(()) => {}
            Err(no_verdict) => return Ok(Tribunal::from(no_verdict)),
        }
        let raw = RawScoreRequest {
            repository: name.to_string(),
            head: built.head.clone(),
            base: built.base.clone(),
            ..RawScoreRequest::default()
        };
        let request = match raw.check(&self.caller) {
            Ok(request) => request,
            Err(RequestError::Refused(refused)) => return Ok(Tribunal::Refused(refused.code)),
            Err(RequestError::Fields(_)) => {
                return Ok(Tribunal::Refused(RefusedCode::InvalidArgument));
            }
        };
        let record = match self.queue.submit(request).await {
            Ok(record) => record,
            Err(no_verdict) => return Ok(Tribunal::from(no_verdict)),
        };
        let id = record.asked.id.clone();
        match tokio::time::timeout(self.deadline, self.ended(&id)).await {
            Ok(Ok(ScoreState::Aborted(aborted))) => Ok(Tribunal::Aborted(aborted)),
            Ok(Ok(ScoreState::Completed(_) | ScoreState::Queued | ScoreState::Running)) => {
                self.joined(&id, built, name).await
            }
            Ok(Err(error)) => Err(error),
            Err(_) => {
                self.queue.cancel(&id).await?;
                let message = format!("no verdict within {:?}", self.deadline);
                Ok(Tribunal::Aborted(Aborted::new(
                    AbortedCode::Deadline,
                    message,
                )))
            }
        }
    }

    /// Register the remote and take in what the agent sends.
    async fn taken_in(
        &self,
        built: &Built,
        name: &RepoName,
    ) -> Result<Result<(), NoVerdict>, AdminError> {
        let (room, name) = (Arc::clone(&self.repository), name.clone());
        let (origin, bundle) = (built.origin.clone(), built.bundle.clone());
        let viewer = Viewer {
            token: self.caller.token.clone(),
            role: self.caller.role,
        };
        tokio::task::spawn_blocking(move || {
            room.add(&name, &origin.to_string_lossy(), "main")
                .map_err(AdminError::repository("register a case"))?;
            let mut bundle = File::open(bundle).map_err(AdminError::file("read a bundle"))?;
            let taken = room.ingest(&name, &viewer, &mut bundle, &UploadLimits::default());
            Ok(taken.map(drop).map_err(NoVerdict::from))
        })
        .await
        .map_err(|_| store::StoreError::Thread)?
    }

    async fn ended(&self, id: &ScoreId) -> Result<ScoreState, AdminError> {
        let mut woken = self.queue.subscribe(id);
        loop {
            let of = id.clone();
            let record = store::off(&self.store, move |s| s.score(&of)).await?;
            match record.map(|record| record.state) {
                Some(ScoreState::Queued | ScoreState::Running) => woken.changed().await,
                Some(state @ (ScoreState::Completed(_) | ScoreState::Aborted(_))) => {
                    return Ok(state);
                }
                None => return Err(store::StoreError::Missing(id.to_string()).into()),
            }
        }
    }

    /// What a gate reads out of the files that are handed out.
    async fn joined(
        &self,
        id: &ScoreId,
        built: &Built,
        name: RepoName,
    ) -> Result<Tribunal, AdminError> {
        let of = id.clone();
        let files = store::off(&self.store, move |s| s.files(&of, Audience::Reader)).await?;
        let files = files
            .into_iter()
            .map(|file| (file.name, file.content.to_vec()));
        let joined = join(
            verify(&VerdictDir::new(files), &self.keys),
            &Expected {
                repository: Some(name),
                head: built.head.parse()?,
                base: Some(built.base.parse()?),
                change_set: ChangeSet::Agent,
                now: clock::now(),
            },
        );
        Ok(Tribunal::Joined {
            decision: joined.decision(),
            words: joined.words().map(|word| word.to_string()),
            reasons: joined.reasons().iter().map(ToString::to_string).collect(),
        })
    }

    /// End everything and leave nothing in the engine.
    pub(super) async fn close(self) -> Result<(), AdminError> {
        self.queue.drain(Duration::ZERO).await;
        self.sandbox.drain().await;
        self.sandbox.sweep(Some(&[])).await.map_err(|error| {
            let crate::sandbox::SandboxError::Aborted(source) = error;
            AdminError::Aborted {
                what: "remove what the selftest made in the engine",
                source,
            }
        })?;
        Ok(())
    }
}

impl From<NoVerdict> for Tribunal {
    fn from(no_verdict: NoVerdict) -> Self {
        match no_verdict {
            NoVerdict::Refused(refused) => Self::Refused(refused.code),
            NoVerdict::Aborted(aborted) => Self::Aborted(aborted),
        }
    }
}
