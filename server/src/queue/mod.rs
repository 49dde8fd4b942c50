//! From an admitted request to an ended score: bounded, fair among tokens, and nothing is ever lost on the way.
//!
//! A score belongs to the server: who asked may go away, and a task that panics or stalls ends as ABORTED. Never judges
//! and never reads a repository; the work itself comes in as a closure. Fails with `NoVerdict` at submission; afterwards
//! every trouble becomes the score's own end.

mod feed;
mod follow;
mod places;
mod pump;
mod run_queue;
#[cfg(test)]
mod tests;
mod worker;

pub use feed::Subscription;
pub use follow::{Follow, Told};

use crate::clock;
use crate::metrics::{Happening, Observer};
use crate::pipeline::NoVerdict;
use crate::store::{self, Created, EventKind, NewScore, ScoreRecord, Store, StoreError};
use feed::Feed;
use futures::future::BoxFuture;
use places::{Place, Places};
use run_queue::{Cause, RunQueue};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;
use tribunal_core::id::{CommitId, RequestId, ScoreId, TokenId};
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::ScoreRequest;

/// The work of one admitted score: runs, judges, signs, and stores its completion. What it sends on the way is stored as
/// events; counts of cases are thinned out, and an end is stored with the completion, not sent.
pub type Work = Box<
    dyn FnOnce(
            ScoreId,
            mpsc::Sender<EventKind>,
            CancellationToken,
        ) -> BoxFuture<'static, Result<(), Aborted>>
        + Send,
>;

/// A request that may be scored.
pub struct Admission {
    /// The commit to score.
    pub head: CommitId,
    /// What supplies the oracle.
    pub base: CommitId,
    /// The protected tip as it was found.
    pub base_tip: CommitId,
    /// Whose change set it is.
    pub change_set: ChangeSet,
    /// What remains to be done.
    pub work: Work,
}

/// What decides whether a request may be scored: the pipeline, or a stand-in for tests.
#[async_trait::async_trait]
pub trait Scorer: Send + Sync + 'static {
    /// Admit or refuse. Nothing has been made yet, so a refusal leaves nothing.
    async fn admit(&self, request: ScoreRequest) -> Result<Admission, NoVerdict>;
}

/// How much at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLimits {
    /// Scores that run at the same time.
    pub workers: usize,
    /// Scores that wait, of all tokens.
    pub capacity: usize,
    /// Scores of one token that run at the same time.
    pub running_per_token: usize,
    /// Scores of one token that have not ended.
    pub open_per_token: usize,
    /// Scores of one token in an hour.
    pub hourly_per_token: u64,
    /// A running score that tells nothing for so long is given up.
    pub stall: Duration,
}

/// The queue. Cheap to clone.
#[derive(Clone)]
pub struct Queue(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    scorer: Arc<dyn Scorer>,
    observer: Arc<dyn Observer>,
    limits: QueueLimits,
    places: Places,
    line: Mutex<RunQueue<Waiting>>,
    feed: Feed,
    /// Something may be claimed.
    work: Notify,
    /// No new score is taken and none is started.
    closing: CancellationToken,
    tasks: TaskTracker,
}

struct Waiting {
    work: Work,
    place: Place,
    since: Instant,
    /// Whoever asked, in its own trace.
    call: tracing::Span,
}

impl Queue {
    /// A queue with its workers, started.
    #[must_use]
    pub fn start(
        store: Arc<dyn Store>,
        scorer: Arc<dyn Scorer>,
        limits: QueueLimits,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let queue = Self(Arc::new(Shared {
            places: Places::new(limits.capacity, limits.open_per_token),
            line: Mutex::new(RunQueue::new(limits.running_per_token, limits.stall)),
            feed: Feed::default(),
            work: Notify::new(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
            store,
            scorer,
            observer,
            limits,
        }));
        for number in 0..queue.0.limits.workers {
            let shared = Arc::clone(&queue.0);
            queue.0.tasks.spawn(worker::run(shared, number));
        }
        let shared = Arc::clone(&queue.0);
        queue.0.tasks.spawn(worker::reap(shared));
        queue
    }

    /// Admit a request and queue it, or give the score that its request id made before.
    ///
    /// # Errors
    /// Refusals of the pipeline, `quota`, `queue-full`, and our own trouble. Nothing was made then.
    pub async fn submit(&self, request: ScoreRequest) -> Result<ScoreRecord, NoVerdict> {
        // A task of its own: a caller that goes away between the store and the line must not lose the score.
        let shared = Arc::clone(&self.0);
        let submitted = self.0.tasks.spawn(shared.submit(request).in_current_span());
        let submitted = submitted.await;
        let submitted = submitted.unwrap_or_else(|e| {
            tracing::error!(error = %e, "an admission broke");
            Err(Aborted::new(AbortedCode::Internal, "the admission broke").into())
        });
        if let Err(NoVerdict::Refused(refused)) = &submitted {
            self.0.observer.note(Happening::ScoreRefused(refused.code));
        }
        submitted
    }

    /// How many scores wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.0.line().waiting_count().into()
    }

    /// How many scores run.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.0.line().running_count()
    }

    /// The place in the line, 1 is next; `None` where the score does not wait.
    #[must_use]
    pub fn position(&self, id: &ScoreId) -> Option<u32> {
        self.0.line().position(id)
    }

    /// End a score that waits or runs. One that has ended stays as it is.
    ///
    /// # Errors
    /// The store.
    pub async fn cancel(&self, id: &ScoreId) -> Result<(), StoreError> {
        let waiting = {
            let mut line = self.0.line();
            let waiting = line.remove(id);
            if waiting.is_none() {
                line.cancel(id, Cause::Caller);
            }
            waiting
        };
        if waiting.is_some() {
            let aborted = Cause::Caller.aborted();
            self.0.abort(id, aborted).await?;
            self.0.poke_waiting();
        }
        Ok(())
    }

    /// Wakes whenever something happened to the score. Subscribe first, then read the store: nothing is missed.
    #[must_use]
    pub fn subscribe(&self, id: &ScoreId) -> Subscription {
        self.0.feed.subscribe(id)
    }

    /// Wakes whenever something happened to any score: for whoever watches lists.
    #[must_use]
    pub fn tide(&self) -> watch::Receiver<()> {
        self.0.feed.tide()
    }

    /// Take no more scores, end those that wait, give those that run so much time, then end them too.
    pub async fn drain(&self, patience: Duration) {
        self.0.closing.cancel();
        let waiting = self.0.line().drain();
        for id in waiting {
            if let Err(error) = self.0.abort(&id, Cause::Shutdown.aborted()).await {
                tracing::warn!(score = %id, %error, "could not store the end of a waiting score");
            }
        }
        self.0.tasks.close();
        if tokio::time::timeout(patience, self.0.tasks.wait())
            .await
            .is_err()
        {
            self.0.line().cancel_all(Cause::Shutdown);
            // Rooms are torn down by the tasks that own them; a score left in the store is ended at the next start.
            let last = Duration::from_secs(20);
            if tokio::time::timeout(last, self.0.tasks.wait())
                .await
                .is_err()
            {
                tracing::error!("scores were still running when the server left");
            }
        }
    }
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, RunQueue<Waiting>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn submit(self: Arc<Self>, request: ScoreRequest) -> Result<ScoreRecord, NoVerdict> {
        let token = request.caller().token.clone();
        if let Some(request_id) = request.request_id()
            && let Some(before) = self.made_before(&token, request_id).await?
        {
            return same_request(before, &request);
        }
        if self.closing.is_cancelled() {
            return Err(Cause::Shutdown.aborted().into());
        }
        let place = self.places.take(&token)?;
        self.charge(&token).await?;
        let request_id = match request.request_id() {
            Some(id) => id.clone(),
            None => drawn("a request id")?,
        };
        let admission = self.scorer.admit(request.clone()).await?;
        let score = NewScore {
            id: drawn("a score id")?,
            repository: request.repository().clone(),
            head: admission.head,
            base: admission.base,
            base_tip: admission.base_tip,
            change_set: admission.change_set,
            request_id,
            token,
            role: request.caller().role,
            freshness: request.freshness(),
            created: clock::now(),
        };
        let position = self.line().waiting_count() + 1;
        let made = store::off(&self.store, move |store| {
            let made = store.create_score(&score)?;
            if let Created::New(record) = &made {
                let event = EventKind::Queued { position };
                store.append_events(&record.asked.id, score.created, &[event])?;
            }
            Ok(made)
        })
        .await
        .map_err(Aborted::from)?;
        let record = match made {
            Created::Before(before) => return same_request(before, &request),
            Created::New(record) => record,
        };
        let waiting = Waiting {
            work: admission.work,
            place,
            since: Instant::now(),
            call: tracing::Span::current(),
        };
        self.line()
            .push(&record.asked.token, &record.asked.id, waiting);
        if self.closing.is_cancelled() {
            // The drain may have emptied the line just before.
            let removed = self.line().remove(&record.asked.id);
            if removed.is_some() {
                let aborted = Cause::Shutdown.aborted();
                self.abort(&record.asked.id, aborted.clone())
                    .await
                    .map_err(Aborted::from)?;
                return Err(aborted.into());
            }
        }
        self.work.notify_one();
        Ok(record)
    }

    async fn made_before(
        &self,
        token: &TokenId,
        request_id: &RequestId,
    ) -> Result<Option<ScoreRecord>, Aborted> {
        let (token, request_id) = (token.clone(), request_id.clone());
        Ok(store::off(&self.store, move |s| {
            s.score_of_request(&token, &request_id)
        })
        .await?)
    }

    async fn charge(&self, token: &TokenId) -> Result<(), NoVerdict> {
        let since = tribunal_core::id::UnixTime(clock::now().0 - 3600);
        let of = token.clone();
        let charged = store::off(&self.store, move |s| s.charged(&of, since))
            .await
            .map_err(Aborted::from)?;
        if charged >= self.limits.hourly_per_token {
            let message = format!(
                "this token asked for {charged} scores within the hour, {} are allowed",
                self.limits.hourly_per_token
            );
            return Err(Refused::new(RefusedCode::Quota, message).into());
        }
        Ok(())
    }

    async fn abort(&self, id: &ScoreId, aborted: Aborted) -> Result<(), StoreError> {
        let (of, code) = (id.clone(), aborted.code);
        let result = store::off(&self.store, move |s| {
            s.abort_score(&of, clock::now(), &aborted)
        })
        .await;
        self.feed.poke(id);
        match result {
            Ok(()) => {
                self.observer.note(Happening::ScoreAborted(code));
                Ok(())
            }
            // Ended in the meantime: its end stands.
            Err(StoreError::Ended(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Everyone who waits may have moved up.
    fn poke_waiting(&self) {
        let waiting = self.line().waiting();
        for id in waiting {
            self.feed.poke(&id);
        }
    }
}

/// The same request id must mean the same request.
fn same_request(before: ScoreRecord, request: &ScoreRequest) -> Result<ScoreRecord, NoVerdict> {
    let asked = &before.asked;
    if asked.repository == *request.repository()
        && asked.head == *request.head()
        && request.base().is_none_or(|base| asked.base == *base)
        && asked.freshness == request.freshness()
    {
        return Ok(before);
    }
    let message = format!(
        "request_id {} was used for another request: score {}",
        asked.request_id, asked.id
    );
    Err(Refused::new(RefusedCode::InvalidArgument, message).into())
}

/// 32 hex digits from the system's entropy.
fn drawn<T: std::str::FromStr>(what: &str) -> Result<T, Aborted> {
    let trouble = || Aborted::new(AbortedCode::Internal, format!("failed to draw {what}"));
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| trouble())?;
    hex::encode(bytes).parse().map_err(|_| trouble())
}

/// When a lease that is taken now lapses.
fn lapse(stall: Duration) -> Instant {
    Instant::now() + stall
}
