//! Following a score: its events in order, each once, over as many connections as it takes.
//!
//! A connection that breaks or goes silent is made anew from the last sequence number. Gives up when the server has not
//! answered for a while; the score itself goes on without us.

use super::Remote;
use super::scores::out_files;
use super::status::{Documented, documented, failure_of, is_transport};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::OutFile;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Request, Status, Streaming};
use tribunal_core::text::shown;
use tribunal_proto::v1::score_event::Kind;
use tribunal_proto::v1::{ScoreEvent, WatchScoreRequest, WatchScoreResponse};

/// Heartbeats come more often than this; a longer silence is a dead connection.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the server may be away.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// How a score ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Judged and signed; every file the caller may have.
    Completed(Vec<OutFile>),
    /// No verdict, by the server's trouble or a cancel.
    Aborted {
        /// The stable code.
        code: String,
        /// What in particular, escaped.
        message: String,
    },
}

impl End {
    /// The end as a failure, where it is one.
    #[must_use]
    pub fn as_failure(code: &str, message: &str) -> Failure {
        let next = code
            .parse::<tribunal_core::reason::AbortedCode>()
            .map_or("ask again", tribunal_core::reason::AbortedCode::advice);
        Failure::new(Exit::NoVerdict, "get a verdict", message, next).coded(shown(code, 60))
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// Something happened.
    Event(ScoreEvent),
    /// It is over.
    End(End),
}

/// A score being followed.
pub struct Watch {
    remote: Remote,
    name: String,
    after: u64,
    stream: Option<Streaming<WatchScoreResponse>>,
    last_heard: Instant,
}

impl Watch {
    /// Follow this score from its first event on.
    #[must_use]
    pub fn new(remote: &Remote, name: &str) -> Self {
        Self {
            remote: remote.clone(),
            name: name.to_owned(),
            after: 0,
            stream: None,
            last_heard: Instant::now(),
        }
    }

    /// Wait for what comes next. Heartbeats are swallowed.
    ///
    /// # Errors
    /// The server stays away, or says no.
    pub async fn next(&mut self) -> Result<Next, Failure> {
        loop {
            let broke = match &mut self.stream {
                None => match self.connect().await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        continue;
                    }
                    Err(status) => Some(status),
                },
                Some(stream) => match timeout(SILENCE, stream.message()).await {
                    Ok(Ok(Some(message))) => {
                        self.last_heard = Instant::now();
                        match self.taken(message) {
                            Some(next) => return Ok(next),
                            None => continue,
                        }
                    }
                    // A server that shuts down ends its streams politely.
                    Ok(Ok(None)) | Err(_) => None,
                    Ok(Err(status)) => Some(status),
                },
            };
            self.stream = None;
            self.bear(broke)?;
            sleep(PAUSE).await;
        }
    }

    async fn connect(&self) -> Result<Streaming<WatchScoreResponse>, Status> {
        let message = WatchScoreRequest {
            name: self.name.clone(),
            after_sequence: self.after,
        };
        let call = async {
            let mut client = self.remote.scores();
            client.watch_score(Request::new(message)).await
        };
        match timeout(SILENCE, call).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(Status::unavailable("no answer")),
        }
    }

    /// An event that was not there yet.
    fn taken(&mut self, message: WatchScoreResponse) -> Option<Next> {
        let event = message.event?;
        // A place in the queue is not stored: it comes with the number of the last event that is.
        if matches!(event.kind, Some(Kind::Queued(_))) && event.sequence <= self.after {
            return Some(Next::Event(event));
        }
        if event.sequence <= self.after {
            return None;
        }
        self.after = event.sequence;
        Some(match event.kind {
            Some(Kind::Completed(completed)) => {
                Next::End(End::Completed(out_files(completed.files)))
            }
            Some(Kind::Aborted(abort)) => Next::End(End::Aborted {
                code: abort.code,
                message: shown(&abort.message, 1000),
            }),
            _ => Next::Event(event),
        })
    }

    /// What a broken stream means: trouble to wait out, or a failure. The end of a score is an event, never a status: a
    /// status may as well speak of the connection.
    fn bear(&self, status: Option<Status>) -> Result<(), Failure> {
        let what = format!("follow the score {}", self.name);
        let status = status.unwrap_or_else(|| Status::unavailable("the server went silent"));
        let bearable = match documented(&status) {
            Some(Documented::Aborted(_)) => true,
            Some(Documented::Refused(_)) => false,
            None => is_transport(&status),
        };
        if bearable && self.last_heard.elapsed() < PATIENCE {
            return Ok(());
        }
        let mut failure = failure_of(&what, &status);
        if bearable {
            failure.next = format!(
                "the score goes on; `tribunal watch {}` once the server answers again",
                self.name
            );
        }
        Err(failure)
    }
}
