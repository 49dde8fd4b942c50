//! A score's events as a stream of messages, as `queue::Follow` tells them, until the score has ended. Ends with the files
//! the caller may have, or with the abort as a status.

use super::convert;
use super::status::IntoStatus as _;
use crate::clock;
use crate::queue::{Follow, Queue, Told};
use crate::store::{self, Audience, EventKind, Store, StoredEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tribunal_core::id::ScoreId;
use tribunal_core::reason::{Aborted, Refused, RefusedCode};
use tribunal_proto::v1;
use tribunal_proto::v1::score_event::Kind;

type Events = ReceiverStream<Result<v1::ScoreEvent, Status>>;
type Sender = mpsc::Sender<Result<v1::ScoreEvent, Status>>;

pub(super) struct Watch {
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: Queue,
    pub(super) score: ScoreId,
    pub(super) audience: Audience,
    pub(super) after: u64,
    pub(super) heartbeat: Duration,
}

/// Whoever watches is gone.
struct Gone;

impl Watch {
    /// The stream. What feeds it ends with it, and touches nothing of the score.
    pub(super) fn stream(self) -> Events {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            if let Err(Gone) = self.run(&sender).await {
                tracing::debug!("a watcher went away");
            }
        });
        ReceiverStream::new(receiver)
    }

    async fn run(mut self, sender: &Sender) -> Result<(), Gone> {
        let store = Arc::clone(&self.store);
        let queue = self.queue.clone();
        let mut follow = Follow::new(store, queue, &self.score, self.after, self.heartbeat);
        loop {
            let told = tokio::select! {
                told = follow.next() => told,
                () = sender.closed() => return Err(Gone),
            };
            match told {
                Ok(None) => return Ok(()),
                Ok(Some(Told::Event(event))) => self.tell(sender, event).await?,
                Ok(Some(Told::Position(position))) => {
                    let queued = Kind::Queued(v1::ScoreQueued { position });
                    self.send_unstored(sender, queued).await?;
                }
                Ok(Some(Told::Silence)) => {
                    self.send_unstored(sender, Kind::Heartbeat(v1::Heartbeat {}))
                        .await?;
                }
                Err(error) => return self.fail(sender, error.into_status()).await,
            }
        }
    }

    async fn tell(&mut self, sender: &Sender, event: StoredEvent) -> Result<(), Gone> {
        self.after = event.sequence;
        let end = match &event.kind {
            EventKind::Completed { .. } => {
                let (id, audience) = (self.score.clone(), self.audience);
                let files = store::off(&self.store, move |s| s.files(&id, audience)).await;
                return match files {
                    Ok(files) => self.send(sender, convert::event(event, files)).await,
                    Err(error) => self.fail(sender, error.into_status()).await,
                };
            }
            EventKind::Aborted { code, message } => Some(Aborted::new(*code, message.clone())),
            EventKind::Queued { .. }
            | EventKind::Preparing { .. }
            | EventKind::AttemptStarted { .. }
            | EventKind::CasesDone { .. }
            | EventKind::AttemptEnded { .. }
            | EventKind::Judged { .. } => None,
        };
        self.send(sender, convert::event(event, Vec::new())).await?;
        match end {
            None => Ok(()),
            Some(aborted) => self.fail(sender, aborted.into_status()).await,
        }
    }

    async fn send_unstored(&self, sender: &Sender, kind: Kind) -> Result<(), Gone> {
        let event = convert::unstored(self.after, clock::now(), kind);
        self.send(sender, event).await
    }

    async fn send(&self, sender: &Sender, event: v1::ScoreEvent) -> Result<(), Gone> {
        sender.send(Ok(event)).await.map_err(|_| Gone)
    }

    async fn fail(&self, sender: &Sender, status: Status) -> Result<(), Gone> {
        sender.send(Err(status)).await.map_err(|_| Gone)
    }
}

/// The status of a score that is asked for its files too early or in vain.
pub(super) fn no_files(record: &store::ScoreRecord) -> Option<Status> {
    match &record.state {
        store::ScoreState::Completed(_) => None,
        store::ScoreState::Aborted(aborted) => Some(aborted.clone().into_status()),
        store::ScoreState::Queued | store::ScoreState::Running => {
            let message = "the score has not ended yet; watch it";
            Some(Refused::new(RefusedCode::NotFound, message).into_status())
        }
    }
}
