//! Why a conversation stopped before its end, and in which column that belongs.
//!
//! Before the first attempt nothing of the candidate has run, so everything is ours. Afterwards a room that died by
//! itself, or that lives and does not answer, is the candidate's doing: an end of the attempt, never an abort that it
//! could choose. What only the engine knows is asked of the room.

use super::gather::Wrong;
use tribunal_core::outcome::End;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Why it stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Ours.
    Ours(Aborted),
    /// The other end is gone; the text says how the line ended, for the log.
    Gone(String),
    /// It said nothing until the deadline, while doing what is named.
    Silent(&'static str),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Ours(Aborted::new(
            AbortedCode::Internal,
            format!("the harness is out of step: {wrong}"),
        ))
    }
}

/// How a room came to be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Death {
    /// The kind of end that the attempt gets.
    pub(crate) end: End,
    /// PID 1's exit code, where there is one.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended PID 1, where one did.
    pub(crate) signal: Option<i32>,
    /// For a person, fit to be shown.
    pub(crate) note: String,
}

/// A silent room's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs.
    Running,
    /// It does not.
    Gone,
}

/// What is known only outside the conversation.
#[async_trait::async_trait]
pub(crate) trait Autopsy: Send {
    /// How PID 1 ended. `Err` when the engine cannot tell or is itself the cause.
    async fn examine(&mut self) -> Result<Death, Aborted>;
    /// Whether the room still runs although its harness says nothing. `Err` as above.
    async fn is_alive(&mut self) -> Result<Life, Aborted>;
}

/// The end of the attempt in which the conversation stopped; or our trouble.
pub(crate) async fn cause(stop: Stop, room: &mut dyn Autopsy) -> Result<Death, Aborted> {
    match stop {
        Stop::Ours(aborted) => Err(aborted),
        Stop::Gone(how) => {
            tracing::debug!(%how, "the line ended");
            room.examine().await
        }
        Stop::Silent(doing) => match room.is_alive().await? {
            Life::Gone => room.examine().await,
            // Whatever keeps PID 1 from answering long after the time-out is inside the room with it.
            Life::Running => Ok(Death {
                end: End::AttemptTimeout,
                exit_code: None,
                signal: None,
                note: format!("the harness did not answer any more while {doing}"),
            }),
        },
    }
}

/// The trouble in which the conversation stopped before any attempt.
pub(crate) async fn before_any_attempt(stop: Stop, room: &mut dyn Autopsy) -> Aborted {
    match stop {
        Stop::Ours(aborted) => aborted,
        Stop::Gone(how) => {
            tracing::debug!(%how, "the line ended");
            match room.examine().await {
                Ok(death) => Aborted::new(
                    AbortedCode::Internal,
                    format!("before the first attempt {}", death.note),
                ),
                Err(aborted) => aborted,
            }
        }
        Stop::Silent(doing) => match room.is_alive().await {
            Ok(Life::Running) => Aborted::new(
                AbortedCode::Deadline,
                format!("the harness took too long while {doing}"),
            ),
            Ok(Life::Gone) => Aborted::new(
                AbortedCode::Internal,
                format!("the room ended while {doing}"),
            ),
            Err(aborted) => aborted,
        },
    }
}
