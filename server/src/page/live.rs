//! Scores as they run, as server-sent events: one score's way to its end, or which of many are open and how far they are.
//!
//! A bounded number at a time; each says now and then that it lives, asks then whether whoever looks still may, and ends
//! with the score, the session, the token or the server. Carries numbers and words of ours, and no text of a candidate.

use super::access::Visit;
use super::progress::Progress;
use super::{Desk, Trouble};
use crate::queue::{Follow, Told};
use crate::store::{EventKind, ScoreRecord, StateName, StoreError};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, Sse};
use serde_json::json;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tribunal_core::id::{RepoName, ScoreId};

/// Lists are told of no more often than this.
const LULL: Duration = Duration::from_millis(400);
/// Open scores of one repository that are told of.
const OPEN: u32 = 100;

type Sender = mpsc::Sender<Result<Event, Infallible>>;
type Events = Sse<ReceiverStream<Result<Event, Infallible>>>;

/// Why a stream is over.
enum Over {
    /// Nobody reads it, or it has told all.
    Told,
    /// Whoever looks may not any more.
    Closed,
    /// Ours.
    Broken(StoreError),
}

impl From<StoreError> for Over {
    fn from(error: StoreError) -> Self {
        Self::Broken(error)
    }
}

/// One score.
pub(super) async fn of_score(
    visit: Visit,
    Path((repository, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Events, Trouble> {
    let record = visit.score(&repository, &id).await?;
    let place = place(&visit.desk)?;
    // A browser that lost the connection says what it saw last.
    let last = headers.get(HeaderName::from_static("last-event-id"));
    let last = last.and_then(|value| value.to_str().ok()?.parse().ok());
    Ok(stream(visit, place, move |visit, sender| async move {
        follow(&visit, &record, last.unwrap_or(0), &sender).await
    }))
}

/// Every repository within reach.
pub(super) async fn all(visit: Visit) -> Result<Events, Trouble> {
    let place = place(&visit.desk)?;
    let names = visit.repositories().await?;
    Ok(stream(visit, place, move |visit, sender| async move {
        lists(&visit, &names, &sender).await
    }))
}

/// One repository.
pub(super) async fn of_repository(
    visit: Visit,
    Path(name): Path<String>,
) -> Result<Events, Trouble> {
    let name = visit.repository(&name).await?;
    let place = place(&visit.desk)?;
    Ok(stream(visit, place, move |visit, sender| async move {
        lists(&visit, &[name], &sender).await
    }))
}

fn place(desk: &Desk) -> Result<OwnedSemaphorePermit, Trouble> {
    let places = Arc::clone(&desk.streams);
    places
        .try_acquire_owned()
        .map_err(|_| Trouble::Busy("Too many pages are watched at the same time."))
}

/// What feeds a stream ends with it, and with the server.
fn stream<F>(
    visit: Visit,
    place: OwnedSemaphorePermit,
    feed: impl FnOnce(Visit, Sender) -> F + Send + 'static,
) -> Events
where
    F: Future<Output = Result<(), Over>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(8);
    let close = visit.desk.parts.close.clone();
    let end = sender.clone();
    tokio::spawn(async move {
        let _place = place;
        let fed = tokio::select! {
            fed = feed(visit, sender) => fed,
            () = close.cancelled() => Err(Over::Closed),
            () = end.closed() => return,
        };
        match fed {
            Ok(()) | Err(Over::Told) => {}
            Err(Over::Closed) => {
                // The browser would only come again.
                let _gone = end
                    .send(Ok(Event::default().event("closed").data("{}")))
                    .await;
            }
            Err(Over::Broken(error)) => tracing::warn!(%error, "a page's events broke off"),
        }
    });
    Sse::new(ReceiverStream::new(receiver))
}

async fn tell(sender: &Sender, event: Event) -> Result<(), Over> {
    sender.send(Ok(event)).await.map_err(|_| Over::Told)
}

async fn still(visit: &Visit) -> Result<(), Over> {
    let still = visit.desk.still(&visit.caller, &visit.way).await;
    still.map_err(|_| Over::Closed)
}

async fn follow(
    visit: &Visit,
    record: &ScoreRecord,
    after: u64,
    sender: &Sender,
) -> Result<(), Over> {
    let parts = &visit.desk.parts;
    let store = Arc::clone(&parts.rooms.store);
    let (queue, id) = (parts.queue.clone(), &record.asked.id);
    let mut follow = Follow::new(store, queue, id, after, parts.heartbeat);
    let mut progress = Progress::default();
    while let Some(told) = follow.next().await? {
        let event = match told {
            Told::Silence => {
                still(visit).await?;
                Event::default().comment("lives")
            }
            Told::Position(position) => {
                progress.wait(position);
                progressed(&progress)
            }
            Told::Event(event) => {
                progress.add(&event.kind);
                let told = match event.kind {
                    EventKind::Completed { .. } | EventKind::Aborted { .. } => {
                        let line = json!({ "line": progress.line }).to_string();
                        Event::default().event("over").data(line)
                    }
                    EventKind::Queued { .. }
                    | EventKind::Preparing { .. }
                    | EventKind::AttemptStarted { .. }
                    | EventKind::CasesDone { .. }
                    | EventKind::AttemptEnded { .. }
                    | EventKind::Judged { .. } => progressed(&progress),
                };
                told.id(event.sequence.to_string())
            }
        };
        tell(sender, event).await?;
    }
    Ok(())
}

fn progressed(progress: &Progress) -> Event {
    let data = serde_json::to_string(progress).unwrap_or_default();
    Event::default().event("progress").data(data)
}

/// How far each open score is, as far as it was told.
type Open = BTreeMap<ScoreId, (u64, Progress)>;

/// Which scores are open, whenever something happens to any.
async fn lists(visit: &Visit, names: &[RepoName], sender: &Sender) -> Result<(), Over> {
    let parts = &visit.desk.parts;
    // Subscribed before the store is read.
    let mut tide = parts.queue.tide();
    let mut open = Open::new();
    let mut told = None;
    loop {
        open = opened(visit, names, open).await?;
        let lines: BTreeMap<&str, &Progress> = open
            .iter()
            .map(|(id, (_, progress))| (id.as_str(), progress))
            .collect();
        let data = json!({ "open": lines }).to_string();
        if told.as_ref() != Some(&data) {
            tell(sender, Event::default().event("scores").data(data.clone())).await?;
            told = Some(data);
        }
        tokio::time::sleep(LULL).await;
        tokio::select! {
            changed = tide.changed() => changed.map_err(|_| Over::Closed)?,
            () = tokio::time::sleep(parts.heartbeat) => {
                still(visit).await?;
                tell(sender, Event::default().comment("lives")).await?;
            }
        }
    }
}

/// What is open now; only what is new of each is read.
async fn opened(visit: &Visit, names: &[RepoName], known: Open) -> Result<Open, Over> {
    let names = names.to_vec();
    let filters: Vec<_> = names
        .into_iter()
        .flat_map(|name| {
            [StateName::Queued, StateName::Running].map(|state| crate::store::ScoreFilter {
                repository: name.clone(),
                token: None,
                head: None,
                base: None,
                state: Some(state),
                before: None,
                limit: OPEN,
            })
        })
        .collect();
    let store = &visit.desk.parts.rooms.store;
    let found = crate::store::off(store, move |s| {
        let mut open = Open::new();
        for filter in &filters {
            for record in s.scores(filter)? {
                let id = record.asked.id;
                let (mut after, mut progress) = known.get(&id).cloned().unwrap_or_default();
                for event in s.events(&id, after, u32::MAX)? {
                    after = event.sequence;
                    progress.add(&event.kind);
                }
                open.insert(id, (after, progress));
            }
        }
        Ok(open)
    })
    .await?;
    Ok(found)
}
