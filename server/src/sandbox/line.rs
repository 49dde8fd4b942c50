//! The line to a harness: orders are said, messages are heard, every wait has a deadline.
//!
//! While it speaks it listens: a harness that has given up does not read, and must not be waited for. Knows the order of
//! frames in nothing but the greeting; what a message means is for the conversation to say.

use super::autopsy::{Autopsy, Stop, before_any_attempt};
use super::frames::{self, Frame, FrameError, Heard, Incoming};
use super::gather::Wrong;
use super::messages::{self, Message, Order, PROTOCOL, Ready, Unreadable};
use bytes::Bytes;
use futures::stream::BoxStream;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::text::shown;

/// What comes from PID 1's standard output; an error says how the line broke.
pub(crate) type Chunks = BoxStream<'static, Result<Bytes, String>>;
/// Where PID 1's standard input is.
pub(crate) type Outgoing = Box<dyn AsyncWrite + Send + Unpin>;

/// How long the other side may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From start to `ready`.
    pub(crate) ready: Duration,
    /// To make the interpreter starts, once it has the src.
    pub(crate) configure: Duration,
    /// To compile one file.
    pub(crate) digests: Duration,
    /// To compare the marks of one file.
    pub(crate) marks: Duration,
    /// Beyond the attempt's own time-out, for killing and cleaning up.
    pub(crate) margin: Duration,
    /// To take one piece of what we say.
    pub(crate) piece: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(60),
            configure: Duration::from_secs(120),
            digests: Duration::from_secs(60),
            marks: Duration::from_secs(90),
            margin: Duration::from_secs(60),
            piece: Duration::from_secs(60),
        }
    }
}

/// Both directions, and what the harness said first.
pub(crate) struct Line {
    incoming: Incoming<Chunks>,
    outgoing: Outgoing,
    patience: Patience,
    tag: String,
}

impl Line {
    /// Wait for the harness's first words.
    pub(crate) async fn open(
        chunks: Chunks,
        outgoing: Outgoing,
        patience: Patience,
        room: &mut dyn Autopsy,
    ) -> Result<Self, Aborted> {
        let mut line = Self {
            incoming: Incoming::new(chunks),
            outgoing,
            patience,
            tag: String::new(),
        };
        let ready = match line.hear(patience.ready, "starting").await {
            Ok(Message::Ready(ready)) => ready,
            Ok(other) => return Err(unexpected(&other)),
            Err(stop) => return Err(before_any_attempt(stop, room).await),
        };
        line.tag = checked_tag(ready)?;
        Ok(line)
    }

    /// The interpreter's tag.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// The waits of this line.
    pub(crate) fn patience(&self) -> Patience {
        self.patience
    }

    /// Give an order.
    pub(crate) async fn order(&mut self, order: &Order<'_>) -> Result<(), Stop> {
        let frame = frames::json(order)
            .map_err(|error| Stop::Ours(internal(format!("an order makes {error}"))))?;
        self.say(std::iter::once(frame)).await
    }

    /// Send a tar.
    pub(crate) async fn tar(&mut self, tar: Bytes) -> Result<(), Stop> {
        self.say(frames::tar(tar)).await
    }

    /// Say that nothing more will be said.
    pub(crate) async fn hang_up(&mut self) {
        let _gone = timeout(self.patience.piece, self.outgoing.shutdown()).await;
    }

    /// The next message, which must be readable.
    pub(crate) async fn hear(
        &mut self,
        limit: Duration,
        doing: &'static str,
    ) -> Result<Message, Stop> {
        match self.hear_until(Instant::now() + limit, doing).await? {
            Ok(message) => Ok(message),
            Err(Unreadable::Frame(why) | Unreadable::Record { why, .. }) => Err(unreadable(&why)),
        }
    }

    /// The next message, readable or not. `trouble` is never a message but a stop.
    pub(crate) async fn hear_until(
        &mut self,
        until: Instant,
        doing: &'static str,
    ) -> Result<Result<Message, Unreadable>, Stop> {
        match timeout_at(until, self.incoming.next()).await {
            Err(_) => Err(Stop::Silent(doing)),
            Ok(heard) => understood(heard),
        }
    }

    /// Resolves when something is heard although nothing was asked; what it was is a stop, whatever it was.
    pub(crate) async fn unasked(&mut self) -> Stop {
        let heard = self.incoming.next().await;
        out_of_turn(heard)
    }

    async fn say(&mut self, parts: impl Iterator<Item = Bytes> + Send) -> Result<(), Stop> {
        const DOING: &str = "taking an order";
        let Self {
            incoming,
            outgoing,
            patience,
            ..
        } = self;
        let piece = patience.piece;
        let writing = async move {
            for part in parts {
                timeout(piece, outgoing.write_all(&part))
                    .await
                    .map_err(|_| Stop::Silent(DOING))?
                    .map_err(|error| Stop::Gone(error.to_string()))?;
            }
            timeout(piece, outgoing.flush())
                .await
                .map_err(|_| Stop::Silent(DOING))?
                .map_err(|error| Stop::Gone(error.to_string()))
        };
        tokio::pin!(writing);
        let early = tokio::select! {
            biased;
            said = &mut writing => return said,
            heard = incoming.next() => heard,
        };
        // An answer may come while the last flush is on its way. Anything else now is `trouble`, or the end.
        match early {
            Ok(Heard::Frame(Frame::Json(body))) if !is_trouble(&body) => {
                incoming.keep(Frame::Json(body));
                writing.await
            }
            other => Err(out_of_turn(other)),
        }
    }
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}

fn checked_tag(ready: Ready) -> Result<String, Aborted> {
    if ready.protocol != PROTOCOL {
        return Err(internal(format!(
            "the image's harness speaks version {} of the conversation and this server version {PROTOCOL}: rebuild it",
            ready.protocol
        )));
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !(1..=16).contains(&ready.tag.len()) || !ready.tag.chars().all(plain) {
        return Err(internal("the harness names no interpreter tag"));
    }
    tracing::debug!(python = %shown(&ready.python, 40), "a harness is ready");
    Ok(ready.tag)
}

fn is_trouble(body: &[u8]) -> bool {
    matches!(messages::read(body), Ok(Message::Trouble(_)))
}

fn understood(heard: Result<Heard, FrameError>) -> Result<Result<Message, Unreadable>, Stop> {
    match heard {
        Err(error) => Err(Stop::Ours(internal(format!("the harness sent {error}")))),
        Ok(Heard::End(how)) => Err(Stop::Gone(how)),
        Ok(Heard::Frame(Frame::Tar(_))) => Err(Wrong("a tar frame".to_owned()).into()),
        Ok(Heard::Frame(Frame::Json(body))) => match messages::read(&body) {
            Ok(Message::Trouble(trouble)) => Err(Stop::Ours(internal(format!(
                "the harness reports {}: {}",
                shown(&trouble.code, 40),
                shown(&trouble.message, 400)
            )))),
            read => Ok(read),
        },
    }
}

fn out_of_turn(heard: Result<Heard, FrameError>) -> Stop {
    match understood(heard) {
        Err(stop) => stop,
        Ok(Ok(message)) => Stop::Ours(unexpected(&message)),
        Ok(Err(Unreadable::Frame(why) | Unreadable::Record { why, .. })) => unreadable(&why),
    }
}

/// A frame that cannot be read.
pub(crate) fn unreadable(why: &str) -> Stop {
    Stop::Ours(internal(format!(
        "the harness sent a frame that cannot be read: {}",
        shown(why, 200)
    )))
}

/// A message in the wrong place.
pub(crate) fn unexpected(message: &Message) -> Aborted {
    let what = match message {
        Message::Ready(_) => "ready",
        Message::Warmed { .. } => "warmed",
        Message::Configured { .. } => "configured",
        Message::Collected(_) => "collected",
        Message::Case(_) => "case",
        Message::Ask(_) => "ask",
        Message::AttemptEnd(_) => "attempt-end",
        Message::Digests(_) => "digests",
        Message::Planted(_) => "planted",
        Message::Marks(_) => "marks",
        Message::Trouble(_) => "trouble",
    };
    internal(format!(
        "the harness sent `{what}` where it does not belong"
    ))
}
