//! A worker: claims a score, runs its work, and sees to it that the score ends, whatever the work does.

use super::run_queue::{Cause, Claim};
use super::{Shared, Waiting, pump};
use crate::clock;
use crate::metrics::Happening;
use crate::store::{self, EventKind, StoreError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument as _;
use tracing::field::Empty;
use tribunal_core::id::ScoreId;
use tribunal_core::reason::{Aborted, AbortedCode};

/// A cancelled score is ended in the store after so long even where its room is still being torn down.
const CANCEL_PATIENCE: Duration = Duration::from_millis(2500);

/// Until the queue closes.
pub(super) async fn run(shared: Arc<Shared>, number: usize) {
    loop {
        let next = shared.work.notified();
        let claim = if shared.closing.is_cancelled() {
            return;
        } else {
            shared.line().claim()
        };
        match claim {
            Some(claim) => {
                // Another worker may find one more.
                shared.work.notify_one();
                shared.poke_waiting();
                let call = &claim.item.call;
                let span = tracing::info_span!(parent: call, "score", id = %claim.id, worker = number, outcome = Empty);
                one(&shared, claim).instrument(span).await;
                shared.work.notify_one();
            }
            None => tokio::select! {
                () = next => {}
                () = shared.closing.cancelled() => return,
            },
        }
    }
}

/// Gives up scores that tell nothing. Until the queue closes and nothing runs.
pub(super) async fn reap(shared: Arc<Shared>) {
    let every = (shared.limits.stall / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => shared.line().cancel_lapsed(Instant::now()),
            () = shared.closing.cancelled() => return,
        }
    }
}

async fn one(shared: &Arc<Shared>, claim: Claim<Waiting>) {
    let Claim { id, item, cancel } = claim;
    let open = item.place.leave_line();
    let waited = item.since.elapsed();
    shared.observer.note(Happening::ScoreStarted { waited });
    let of = id.clone();
    let started = store::off(&shared.store, move |s| s.start_score(&of, clock::now())).await;
    shared.feed.poke(&id);
    let result = match started {
        Ok(()) => {
            let (sender, receiver) = mpsc::channel::<EventKind>(256);
            let pump = tokio::spawn(pump::run(Arc::clone(shared), id.clone(), receiver));
            let (of, token) = (id.clone(), cancel.clone());
            let work = async move { (item.work)(of, sender, token).await };
            let work = tokio::spawn(work.in_current_span());
            let result = ended(shared, &id, work, &cancel).await;
            if pump.await.is_err() {
                tracing::error!("the pump of events broke");
            }
            result
        }
        Err(error) => Err(Aborted::from(error)),
    };
    tracing::Span::current().record("outcome", outcome(&result));
    tracing::info!("a score ended");
    finish(shared, &id, result).await;
    shared.line().complete(&id);
    drop(open);
}

const fn outcome(result: &Result<(), Aborted>) -> &'static str {
    match result {
        Ok(()) => "completed",
        Err(aborted) => aborted.code.code(),
    }
}

/// What the work came to. A panic is an abort; a cancelled score is ended for its callers before its room is gone.
async fn ended(
    shared: &Arc<Shared>,
    id: &ScoreId,
    mut work: JoinHandle<Result<(), Aborted>>,
    cancel: &tokio_util::sync::CancellationToken,
) -> Result<(), Aborted> {
    let late = async {
        cancel.cancelled().await;
        tokio::time::sleep(CANCEL_PATIENCE).await;
    };
    let joined = tokio::select! {
        joined = &mut work => joined,
        () = late => {
            let cause = shared.line().cause(id).unwrap_or(Cause::Shutdown);
            if let Err(error) = shared.abort(id, cause.aborted()).await {
                tracing::warn!(%error, "could not store the end of a cancelled score yet");
            }
            work.await
        }
    };
    joined.unwrap_or_else(|error| {
        tracing::error!(%error, "the score's task broke");
        Err(Aborted::new(
            AbortedCode::Internal,
            "the score's task broke",
        ))
    })
}

/// The score's end is stored, now or as soon as the store takes it.
async fn finish(shared: &Arc<Shared>, id: &ScoreId, result: Result<(), Aborted>) {
    let aborted = match result {
        // Completed by the work itself; an abort now finds it ended. If it is not, the work left it in the air.
        Ok(()) => Aborted::new(AbortedCode::Internal, "the score ended without a verdict"),
        Err(aborted) => match shared.line().cause(id) {
            Some(cause) => cause.aborted(),
            None => aborted,
        },
    };
    let mut pause = Duration::from_millis(100);
    loop {
        match shared.abort(id, aborted.clone()).await {
            Ok(()) => return,
            Err(StoreError::Missing(what)) => {
                tracing::error!(what, "a score vanished while it ran");
                return;
            }
            Err(error) => tracing::error!(%error, "could not store a score's end; trying again"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(30)),
            // The next start of the server ends it.
            () = shared.closing.cancelled() => return,
        }
    }
}
