//! What happens in the other rooms, as numbers for an operator: they tell an [`Observer`] what happened and know nothing of
//! Prometheus; `exporter` counts, `port` answers on the admin port.
//!
//! Never a label by commit, test, repository or token, and no text at all: every value of a [`Happening`] is one of a few
//! that stand in this program, or a number. Never decides anything; a room behaves the same whoever observes.

mod exporter;
mod port;
#[cfg(test)]
mod tests;

pub use exporter::{Exporter, Gauges, Read};
pub(crate) use port::is_own;
pub use port::{AdminPort, PortError, Readiness};

use crate::store::Words;
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::reason::{AbortedCode, RefusedCode};
use tribunal_core::report::Timings;

/// One thing that happened.
#[derive(Debug, Clone, Copy)]
pub enum Happening<'a> {
    /// A worker took a score that had waited so long.
    ScoreStarted {
        /// From its place in the line to the worker.
        waited: Duration,
    },
    /// A score was judged, signed and stored.
    ScoreCompleted {
        /// Its words.
        words: Words,
        /// How long its stages took.
        timings: &'a Timings,
    },
    /// A score ended without a verdict.
    ScoreAborted(AbortedCode),
    /// A request was refused, and left no score.
    ScoreRefused(RefusedCode),
    /// What base does was wanted.
    BaseWanted(Source),
    /// So many attempts were given to the judge.
    Attempts {
        /// Where they came from.
        from: Source,
        /// How many.
        count: usize,
    },
    /// So many cases failed under held-out pins alone.
    HeldOutFailures(usize),
    /// A room was entered.
    RoomEntered(Room),
    /// A run in the engine came to nothing, by our own trouble.
    RunFailed(AbortedCode),
    /// A bundle was taken in.
    Uploaded {
        /// Its size.
        bytes: u64,
    },
    /// An upload came to nothing.
    UploadFailed,
    /// A webhook or a commit status was tried.
    Told(Told),
}

/// What became of a message outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It was taken.
    Heard,
    /// It will be tried again.
    Later,
    /// It will not.
    GivenUp,
}

/// Whether the store had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was known.
    Stored,
    /// It was run.
    Run,
}

/// How a room was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It was ready before anybody asked.
    Ready,
    /// It was made for the run.
    New,
}

/// Who is told what happened. Returns at once, and nothing comes of it for whoever tells.
pub trait Observer: Send + Sync + 'static {
    /// This happened.
    fn note(&self, what: Happening<'_>);
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Observer for Nobody {
    fn note(&self, _: Happening<'_>) {}
}

/// For whoever needs an observer and has none.
#[must_use]
pub fn nobody() -> Arc<dyn Observer> {
    Arc::new(Nobody)
}
