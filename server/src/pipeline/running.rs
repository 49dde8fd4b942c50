//! Orders on their way through the sandbox: what they report is kept and told as it comes.
//!
//! Never makes an order, never reads a fact. Where several run at the same time, the trouble of one ends the others.

use super::evidence::{Run, count};
use crate::clock;
use crate::sandbox::{RunEvent, RunFacts, RunOrder, Sandbox, SandboxError};
use crate::store::{self, AttemptKey, AttemptSource, EventKind, StoreError};
use futures::future::join_all;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::reason::{Aborted, AbortedCode};

/// Events of one run that may wait to be stored.
const EVENTS: usize = 256;

/// What becomes of the attempts of a run, and who hears of them meanwhile.
pub(super) enum Keeping {
    /// They are kept as evidence and told.
    Told(AttemptKey),
    /// They are kept as evidence; nobody hears of them.
    Quietly(AttemptKey),
    /// They are told, and kept by whoever ordered them.
    Progress,
    /// Neither.
    Silence,
}

/// A run that is over.
pub(super) struct RunOver {
    pub(super) facts: RunFacts,
    /// How long its sequel took.
    pub(super) sequel: Duration,
}

impl Run<'_> {
    /// Run an order, telling and keeping what happens while it happens.
    pub(super) async fn run(&self, order: RunOrder, keeping: Keeping) -> Result<RunOver, Aborted> {
        self.run_all(vec![order], keeping).await
    }

    /// The same for orders of one lane that run at the same time, each in a room of its own. Their facts are as of one run.
    pub(super) async fn run_all(
        &self,
        orders: Vec<RunOrder>,
        keeping: Keeping,
    ) -> Result<RunOver, Aborted> {
        let lane = orders.first().map_or(Lane::Property, |order| order.lane);
        let total = count(orders.iter().map(|order| order.attempts.len()).sum());
        let (events, mut inbox) = mpsc::channel(EVENTS);
        // A child: our own trouble ends this run without looking like the caller's cancel.
        let cancel = self.cancel.child_token();
        let running = at_once(&*self.rooms.sandbox, orders, events, &cancel);
        let mut sequel_begun = None;
        let (keep, tell) = match &keeping {
            Keeping::Told(key) => (Some(key), Some(self.progress)),
            Keeping::Quietly(key) => (Some(key), None),
            Keeping::Progress => (None, Some(self.progress)),
            Keeping::Silence => (None, None),
        };
        let listening = async {
            let mut kept = Ok(());
            while let Some(event) = inbox.recv().await {
                // After a failed write the rest is still drained: the sandbox must not stall on a full inbox.
                if let (RunEvent::AttemptEnded(facts), Some(evidence), Ok(())) =
                    (&event, keep, &kept)
                {
                    let lane = facts.lane;
                    let content = evidence.content.clone();
                    kept = self.keep(&AttemptKey { content, lane }, facts).await;
                    if kept.is_err() {
                        cancel.cancel();
                    }
                }
                if let RunEvent::SequelBegun = event {
                    sequel_begun = sequel_begun.or_else(|| Some(Instant::now()));
                }
                if let (Some(told), Some(progress)) = (told(event, lane, total), tell) {
                    let _gone = progress.send(told).await;
                }
            }
            (kept, sequel_begun.map(|begun: Instant| begun.elapsed()))
        };
        let (facts, (kept, sequel)) = tokio::join!(running, listening);
        kept?;
        Ok(RunOver {
            facts: facts?,
            sequel: sequel.unwrap_or_default(),
        })
    }

    async fn keep(&self, evidence: &AttemptKey, facts: &AttemptFacts) -> Result<(), StoreError> {
        let (evidence, facts, run, at) = (
            evidence.clone(),
            facts.clone(),
            self.id.clone(),
            clock::now(),
        );
        store::off(&self.rooms.store, move |s| {
            s.append_attempt(&evidence, &run, at, &facts)
        })
        .await
    }
}

/// All orders at once. The first trouble is the run's.
async fn at_once(
    sandbox: &dyn Sandbox,
    orders: Vec<RunOrder>,
    events: mpsc::Sender<RunEvent>,
    cancel: &CancellationToken,
) -> Result<RunFacts, Aborted> {
    let trouble = OnceLock::new();
    let rooms = orders.into_iter().map(|order| {
        let running = sandbox.run(order, events.clone(), cancel.clone());
        async {
            match running.await {
                Ok(facts) => Some(facts),
                Err(SandboxError::Aborted(aborted)) => {
                    let _later = trouble.set(aborted);
                    cancel.cancel();
                    None
                }
            }
        }
    });
    let rooms: Vec<_> = rooms.collect();
    drop(events);
    let ran = join_all(rooms).await;
    if let Some(aborted) = trouble.into_inner() {
        return Err(aborted);
    }
    let mut ran = ran.into_iter().flatten();
    let mut facts = ran
        .next()
        .ok_or_else(|| Aborted::new(AbortedCode::Internal, "a run without an order"))?;
    let own = facts.attempts.first().map(|attempt| attempt.lane);
    facts.attempts.extend(ran.flat_map(|more| more.attempts));
    // In the order of one room: its own lane, then what followed.
    facts
        .attempts
        .sort_by_key(|attempt| (Some(attempt.lane) != own, attempt.index));
    Ok(facts)
}

fn told(event: RunEvent, lane: Lane, total: u32) -> Option<EventKind> {
    match event {
        RunEvent::Ready => None,
        RunEvent::SequelBegun => Some(EventKind::Preparing {
            stage: match lane {
                Lane::BaseCollection | Lane::Liveness => "seeing whether the oracle is alive",
                Lane::Property
                | Lane::LeaseSide
                | Lane::Merge
                | Lane::Proposed
                | Lane::Perturbed
                | Lane::HeldOut
                | Lane::MustFail => "running under pins that were not announced",
            }
            .to_owned(),
        }),
        RunEvent::AttemptStarted(index) => Some(EventKind::AttemptStarted { lane, index, total }),
        RunEvent::CasesDone(index, done) => Some(EventKind::CasesDone {
            lane,
            index,
            done,
            total: 0,
        }),
        // Of a sequel nothing is told before the verdict.
        RunEvent::AttemptEnded(facts) => (facts.lane == lane).then_some(EventKind::AttemptEnded {
            lane,
            index: facts.index,
            total,
            source: AttemptSource::Run,
        }),
    }
}
