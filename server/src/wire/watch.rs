//! A score's events as a stream: first what the store has, then what happens, in one order and without a gap, until the
//! score has ended. Ends with the files the caller may have, or with the abort as a status.

use super::convert;
use super::status::IntoStatus as _;
use crate::clock;
use crate::queue::Queue;
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

/// Events read from the store at once.
const BATCH: u32 = 256;

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

/// How a step of the watch left it.
enum Step {
    /// More may come.
    Goes,
    /// The score has ended and that was told.
    Ended,
}

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
        // Subscribed before the store is read: what is stored after the read wakes us.
        let mut news = self.queue.subscribe(&self.score);
        let mut told = None;
        if let Step::Ended = self.catch_up_after_the_end(sender).await? {
            return Ok(());
        }
        loop {
            match self.replay(sender).await? {
                Step::Ended => return Ok(()),
                Step::Goes => {}
            }
            let position = self.queue.position(&self.score);
            if let Some(position) = position.filter(|p| Some(*p) != told) {
                let queued = Kind::Queued(v1::ScoreQueued { position });
                self.send_unstored(sender, queued).await?;
                told = Some(position);
            }
            tokio::select! {
                () = news.changed() => {}
                () = tokio::time::sleep(self.heartbeat) => {
                    self.send_unstored(sender, Kind::Heartbeat(v1::Heartbeat {})).await?;
                }
                () = sender.closed() => return Err(Gone),
            }
        }
    }

    /// A caller that has seen the end already gets the end again, so that a watch always ends with it.
    async fn catch_up_after_the_end(&mut self, sender: &Sender) -> Result<Step, Gone> {
        let (id, after) = (self.score.clone(), self.after);
        let last = store::off(&self.store, move |s| {
            let ended = s.score(&id)?.is_some_and(|record| record.ended.is_some());
            if !ended || !s.events(&id, after, 1)?.is_empty() {
                return Ok(None);
            }
            Ok(s.events(&id, 0, u32::MAX)?.pop())
        })
        .await;
        match last {
            Ok(Some(last)) => self.tell(sender, last).await,
            Ok(None) => Ok(Step::Goes),
            Err(error) => self.fail(sender, error.into_status()).await,
        }
    }

    /// Everything that the store has beyond what was told.
    async fn replay(&mut self, sender: &Sender) -> Result<Step, Gone> {
        loop {
            let (id, after) = (self.score.clone(), self.after);
            let events = store::off(&self.store, move |s| s.events(&id, after, BATCH)).await;
            let events = match events {
                Ok(events) if events.is_empty() => return Ok(Step::Goes),
                Ok(events) => events,
                Err(error) => return self.fail(sender, error.into_status()).await,
            };
            for event in events {
                if let Step::Ended = self.tell(sender, event).await? {
                    return Ok(Step::Ended);
                }
            }
        }
    }

    async fn tell(&mut self, sender: &Sender, event: StoredEvent) -> Result<Step, Gone> {
        self.after = event.sequence;
        let end = match &event.kind {
            EventKind::Completed { .. } => {
                let (id, audience) = (self.score.clone(), self.audience);
                let files = store::off(&self.store, move |s| s.files(&id, audience)).await;
                return match files {
                    Ok(files) => {
                        self.send(sender, convert::event(event, files)).await?;
                        Ok(Step::Ended)
                    }
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
            None => Ok(Step::Goes),
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

    async fn fail(&self, sender: &Sender, status: Status) -> Result<Step, Gone> {
        sender.send(Err(status)).await.map_err(|_| Gone)?;
        Ok(Step::Ended)
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
