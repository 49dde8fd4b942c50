//! The server's side of the conversation with a harness: a run order goes in, facts come out. Shared by every kind of room.
//!
//! Never judges. What the attempt causes is a fact; what PID 1 or the engine does wrong is `Aborted`. While it speaks it
//! listens, so neither side waits for the other for ever; every wait has a deadline. What it cannot know, why a room is
//! gone, it asks of the room (`Autopsy`).

use super::frames::{self, Frame, FrameError, Heard, Incoming};
use super::gather::{Death, Gather, Wrong};
use super::messages::{self, Configure, Message, Order, PROTOCOL, Ready, Unreadable};
use super::turns::{Company, Turns};
use super::uids::UidRange;
use super::{AttemptOrder, FunctionDigest, RunEvent, RunFacts, RunOrder};
use bytes::Bytes;
use futures::Stream;
use std::collections::HashSet;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tribunal_core::id::RepoPath;
use tribunal_core::outcome::{AttemptFacts, End};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::text::{shown, shown_block};

/// Bytes of tracebacks and output kept of one run: thousands of red cases must not fill the server's memory.
const TEXT_OF_A_RUN: usize = 64 << 20;
/// And of one attempt.
const TEXT_OF_AN_ATTEMPT: usize = 8 << 20;

/// How long the other side may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From start to `ready`.
    pub(crate) ready: Duration,
    /// To make the interpreter starts, once it has the src.
    pub(crate) configure: Duration,
    /// To compile one file.
    pub(crate) digests: Duration,
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
            margin: Duration::from_secs(60),
            piece: Duration::from_secs(60),
        }
    }
}

/// Both directions of a line to a harness, and what it said first.
pub(crate) struct Line<S, W> {
    incoming: Incoming<S>,
    outgoing: W,
    ready: Ready,
}

/// What is known only outside the conversation: why the room is gone.
#[async_trait::async_trait]
pub(crate) trait Autopsy: Send {
    /// How PID 1 ended. `Err` when the engine cannot tell or is itself the cause.
    async fn examine(&mut self) -> Result<Death, Aborted>;
    /// Whether the room is still there and running although its harness says nothing. `Err` as above.
    async fn is_alive(&mut self) -> Result<Life, Aborted>;
}

/// A silent room's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs.
    Running,
    /// It does not.
    Gone,
}

/// What a conversation needs besides its line.
pub(crate) struct Stage<'a> {
    pub(crate) order: &'a RunOrder,
    pub(crate) uids: &'a UidRange,
    pub(crate) turns: &'a Turns,
    pub(crate) events: &'a mpsc::Sender<RunEvent>,
    pub(crate) patience: Patience,
}

/// Why a conversation stopped before its end.
enum Stop {
    /// Ours.
    Ours(Aborted),
    /// The other end is gone.
    Gone(String),
    /// It said nothing until the deadline, while doing what is named.
    Silent(&'static str),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Ours(internal(format!("the harness is out of step: {wrong}")))
    }
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        Self::Ours(internal(format!("the harness sent {error}")))
    }
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}

impl<S, W, E> Line<S, W>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
    E: std::fmt::Display + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Wait for the harness's first words.
    pub(crate) async fn open(
        chunks: S,
        outgoing: W,
        patience: Patience,
        room: &mut dyn Autopsy,
    ) -> Result<Self, Aborted> {
        let mut incoming = Incoming::new(chunks);
        let until = Instant::now() + patience.ready;
        let ready = match hear(&mut incoming, until, "starting").await {
            Ok(Message::Ready(ready)) => ready,
            Ok(other) => return Err(unexpected(&other)),
            Err(stop) => return Err(before_any_attempt(stop, room).await),
        };
        if ready.protocol != PROTOCOL {
            return Err(internal(format!(
                "the image's harness speaks version {} of the conversation and this server version {PROTOCOL}: rebuild it",
                ready.protocol
            )));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if ready.tag.is_empty() || ready.tag.len() > 16 || !ready.tag.chars().all(plain) {
            return Err(internal("the harness names no interpreter tag"));
        }
        tracing::debug!(python = %shown(&ready.python, 40), "room is ready");
        Ok(Self {
            incoming,
            outgoing,
            ready,
        })
    }
}

/// Carry out the order over the line.
pub(crate) async fn converse<S, W, E>(
    line: Line<S, W>,
    stage: Stage<'_>,
    room: &mut dyn Autopsy,
) -> Result<RunFacts, Aborted>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
    E: std::fmt::Display + Send,
    W: AsyncWrite + Unpin + Send,
{
    check(stage.order)?;
    let mut talk = Talk {
        line,
        stage,
        uids_seen: HashSet::new(),
        begun: 0,
    };
    let digests = match talk.prepare().await {
        Ok(digests) => digests,
        Err(stop) => return Err(before_any_attempt(stop, room).await),
    };
    talk.tell(RunEvent::Ready).await;
    let attempts = talk.attempts(room).await?;
    talk.farewell().await;
    let (digests, undigested) = digests;
    Ok(RunFacts {
        attempts,
        digests,
        undigested,
        python_tag: talk.line.ready.tag,
    })
}

/// An order that cannot be carried out is a mistake of the pipeline; better told here than by the harness.
fn check(order: &RunOrder) -> Result<(), Aborted> {
    let mut indices = HashSet::new();
    for attempt in &order.attempts {
        if usize::try_from(attempt.start).is_ok_and(|start| start >= order.starts.len()) {
            return Err(internal(format!(
                "attempt {} names a start that is not ordered",
                attempt.index
            )));
        }
        if !indices.insert(attempt.index) {
            return Err(internal(format!("attempt {} twice", attempt.index)));
        }
    }
    Ok(())
}

struct Talk<'a, S, W> {
    line: Line<S, W>,
    stage: Stage<'a>,
    uids_seen: HashSet<u32>,
    /// Attempts begun, repeated ones too. From the first on, the room's death is the candidate's.
    begun: u32,
}

type Digested = (Vec<FunctionDigest>, Vec<(RepoPath, String)>);

impl<S, W, E> Talk<'_, S, W>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin + Send,
    E: std::fmt::Display + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Configure, send the src, take the digests: before any candidate code runs.
    async fn prepare(&mut self) -> Result<Digested, Stop> {
        let order = self.stage.order;
        let configure = Configure::of(order, self.stage.uids.base(), self.stage.uids.count());
        self.order(&Order::Configure(Box::new(configure))).await?;
        self.say(frames::tar(order.src_tar.clone())).await?;
        self.order(&Order::SrcEnd).await?;
        let limit = self.stage.patience.configure;
        let message = self.hear(limit, "configuring").await?;
        let Message::Configured { starts } = message else {
            return Err(Stop::Ours(unexpected(&message)));
        };
        if starts != order.starts.len() {
            return Err(Wrong(format!("{starts} interpreter starts")).into());
        }
        let mut digested = (Vec::new(), Vec::new());
        // One file at a time keeps every answer within one frame.
        for file in &order.digests {
            self.digest(file, &mut digested).await?;
        }
        Ok(digested)
    }

    async fn digest(&mut self, file: &RepoPath, into: &mut Digested) -> Result<(), Stop> {
        self.order(&Order::Digests {
            files: std::slice::from_ref(file),
        })
        .await?;
        let limit = self.stage.patience.digests;
        let message = self.hear(limit, "compiling").await?;
        let Message::Digests(answer) = message else {
            return Err(Stop::Ours(unexpected(&message)));
        };
        if answer.tag != self.line.ready.tag {
            return Err(Wrong("digests of another interpreter".to_owned()).into());
        }
        for (name, forms) in answer.functions {
            let qualname = name
                .strip_prefix(file.as_str())
                .and_then(|rest| rest.strip_prefix("::"))
                .filter(|qualname| !qualname.is_empty())
                .ok_or_else(|| Wrong(format!("a digest of {}", shown(&name, 120))))?;
            let v2 = forms
                .v2
                .strip_prefix("v2:")
                .and_then(|rest| rest.strip_prefix(answer.tag.as_str()))
                .and_then(|rest| rest.strip_prefix(':'));
            if !v2.is_some_and(|hex| lower_hex(hex, 64)) || !lower_hex(&forms.short, 16) {
                return Err(Wrong("a digest that is none".to_owned()).into());
            }
            into.0.push(FunctionDigest {
                file: file.clone(),
                qualname: qualname.to_owned(),
                v2: forms.v2,
                short: forms.short,
            });
        }
        for (name, message) in answer.errors {
            if name != file.as_str() {
                return Err(Wrong("an error about another file".to_owned()).into());
            }
            into.1.push((file.clone(), shown_block(&message, 2000)));
        }
        Ok(())
    }

    /// All attempts, in order. When the room is gone, those that are left end as it did, and say so.
    async fn attempts(&mut self, room: &mut dyn Autopsy) -> Result<Vec<AttemptFacts>, Aborted> {
        let orders = &self.stage.order.attempts;
        let mut done: Vec<AttemptFacts> = Vec::with_capacity(orders.len());
        let mut lost: Option<Death> = None;
        for order in orders {
            let mut gather = self.gather(order, self.begun);
            let began = Instant::now();
            let facts = if let Some(death) = &lost {
                gather.gone(death, 0)
            } else {
                match self.attempt_fairly(order, &mut gather).await {
                    Ok(facts) => facts,
                    Err(stop) if self.begun == 0 => {
                        return Err(before_any_attempt(stop, room).await);
                    }
                    Err(stop) => {
                        let death = cause(stop, room).await?;
                        tracing::warn!(attempt = order.index, note = %death.note, "the room is gone");
                        let wall = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        let facts = gather.gone(&death, wall);
                        lost = Some(Death {
                            note: format!(
                                "not run: the room was gone since attempt {} ({})",
                                order.index, death.note
                            ),
                            ..death
                        });
                        facts
                    }
                }
            };
            self.tell(RunEvent::AttemptEnded(Box::new(facts.clone())))
                .await;
            done.push(facts);
        }
        Ok(done)
    }

    fn gather(&self, order: &AttemptOrder, number: u32) -> Gather {
        let share = TEXT_OF_A_RUN / self.stage.order.attempts.len().max(1);
        Gather::new(
            order,
            number,
            self.stage.order.lane,
            share.min(TEXT_OF_AN_ATTEMPT),
        )
    }

    /// One attempt that had its CPU. One that the machine starved is repeated alone, once.
    async fn attempt_fairly(
        &mut self,
        order: &AttemptOrder,
        gather: &mut Gather,
    ) -> Result<AttemptFacts, Stop> {
        let facts = self.attempt(order, gather, Company::Others).await?;
        if !starved(&facts) {
            return Ok(facts);
        }
        tracing::info!(
            attempt = order.index,
            run_delay_ms = facts.end.run_delay_ms,
            wall_ms = facts.end.wall_ms,
            "timed out without its CPU; repeated alone"
        );
        drop(facts);
        let facts = self.attempt(order, gather, Company::Alone).await?;
        if starved(&facts) {
            return Err(Stop::Ours(Aborted::new(
                AbortedCode::Deadline,
                format!(
                    "attempt {} timed out twice while the machine kept it from its CPU",
                    order.index
                ),
            )));
        }
        Ok(facts)
    }

    async fn attempt(
        &mut self,
        order: &AttemptOrder,
        gather: &mut Gather,
        company: Company,
    ) -> Result<AttemptFacts, Stop> {
        let policy = &self.stage.order.policy;
        let turn = self.turn(policy.limits.cpus, company).await?;
        let number = self.begun;
        self.begun += 1;
        *gather = self.gather(order, number);
        self.order(&Order::Attempt(messages::Attempt::of(order, number)))
            .await?;
        self.tell(RunEvent::AttemptStarted(order.index)).await;
        let limit =
            Duration::from_millis(policy.runs.attempt_timeout_ms) + self.stage.patience.margin;
        let until = Instant::now() + limit;
        loop {
            match hear_raw(&mut self.line.incoming, until, "running an attempt").await? {
                Ok(Message::Collected(piece)) => gather.collected(piece)?,
                Ok(Message::Case(case)) => {
                    gather.case(case)?;
                    // Progress is for show: a slow reader misses some of it, and holds nothing up.
                    let _lost = self
                        .stage
                        .events
                        .try_send(RunEvent::CasesDone(order.index, gather.cases()));
                }
                Ok(Message::AttemptEnd(ended)) => {
                    drop(turn);
                    if !self.stage.uids.holds(ended.uid) || !self.uids_seen.insert(ended.uid) {
                        return Err(Wrong(format!("an attempt as uid {}", ended.uid)).into());
                    }
                    let fresh = self.gather(order, self.begun);
                    return Ok(std::mem::replace(gather, fresh).ended(*ended)?);
                }
                Ok(other) => return Err(Stop::Ours(unexpected(&other))),
                Err(Unreadable::Record { attempt, why }) => {
                    gather.about_this(attempt)?;
                    gather.spoil(&shown(&why, 200));
                }
                Err(Unreadable::Frame(why)) => return Err(unreadable(&why)),
            }
        }
    }

    /// Wait for a turn, and notice meanwhile if the room dies.
    async fn turn(&mut self, cpus: u32, company: Company) -> Result<super::turns::Turn, Stop> {
        tokio::select! {
            turn = self.stage.turns.take(cpus, company) => turn.map_err(Stop::Ours),
            heard = self.line.incoming.next() => Err(unasked(heard)),
        }
    }

    async fn order(&mut self, order: &Order<'_>) -> Result<(), Stop> {
        let frame = frames::json(order)
            .map_err(|error| Stop::Ours(internal(format!("an order makes {error}"))))?;
        self.say(std::iter::once(frame)).await
    }

    /// Write, and listen meanwhile: a harness that has given up does not read, and must not be waited for.
    async fn say(&mut self, parts: impl Iterator<Item = Bytes> + Send) -> Result<(), Stop> {
        let Line {
            incoming, outgoing, ..
        } = &mut self.line;
        let piece = self.stage.patience.piece;
        let writing = async move {
            for part in parts {
                tokio::time::timeout(piece, outgoing.write_all(&part))
                    .await
                    .map_err(|_| Stop::Silent("taking an order"))?
                    .map_err(|error| Stop::Gone(error.to_string()))?;
            }
            tokio::time::timeout(piece, outgoing.flush())
                .await
                .map_err(|_| Stop::Silent("taking an order"))?
                .map_err(|error| Stop::Gone(error.to_string()))
        };
        tokio::pin!(writing);
        let early = tokio::select! {
            biased;
            said = &mut writing => return said,
            heard = incoming.next() => heard,
        };
        // An answer may come while the last flush is on its way; anything else unasked is `trouble`, or the end.
        match early {
            Ok(Heard::Frame(frame)) => match &frame {
                Frame::Json(body) if !matches!(messages::read(body), Ok(Message::Trouble(_))) => {
                    incoming.keep(frame);
                    writing.await
                }
                Frame::Json(_) | Frame::Tar(_) => Err(unasked(Ok(Heard::Frame(frame)))),
            },
            other => Err(unasked(other)),
        }
    }

    async fn hear(&mut self, limit: Duration, doing: &'static str) -> Result<Message, Stop> {
        hear(&mut self.line.incoming, Instant::now() + limit, doing).await
    }

    async fn tell(&mut self, event: RunEvent) {
        // A watcher that went away does not end the run.
        let _gone = self.stage.events.send(event).await;
    }

    /// The harness may leave by itself; the room is removed anyway, so nothing here can fail the run.
    async fn farewell(&mut self) {
        if self.order(&Order::Bye).await.is_ok() {
            let _gone = self.line.outgoing.shutdown().await;
        }
    }
}

/// The next message, readable or not.
async fn hear_raw<S, E>(
    incoming: &mut Incoming<S>,
    until: Instant,
    doing: &'static str,
) -> Result<Result<Message, Unreadable>, Stop>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    match timeout_at(until, incoming.next()).await {
        Err(_) => Err(Stop::Silent(doing)),
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(Heard::End(how))) => Err(Stop::Gone(how)),
        Ok(Ok(Heard::Frame(Frame::Tar(_)))) => Err(Wrong("a tar frame".to_owned()).into()),
        Ok(Ok(Heard::Frame(Frame::Json(body)))) => match messages::read(&body) {
            Ok(Message::Trouble(trouble)) => Err(Stop::Ours(internal(format!(
                "the harness reports {}: {}",
                shown(&trouble.code, 40),
                shown(&trouble.message, 400)
            )))),
            read => Ok(read),
        },
    }
}

async fn hear<S, E>(
    incoming: &mut Incoming<S>,
    until: Instant,
    doing: &'static str,
) -> Result<Message, Stop>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    match hear_raw(incoming, until, doing).await? {
        Ok(message) => Ok(message),
        Err(Unreadable::Frame(why) | Unreadable::Record { why, .. }) => Err(unreadable(&why)),
    }
}

fn unreadable(why: &str) -> Stop {
    Stop::Ours(internal(format!(
        "the harness sent a frame that cannot be read: {}",
        shown(why, 200)
    )))
}

/// Something was heard while nothing was asked.
fn unasked(heard: Result<Heard, FrameError>) -> Stop {
    match heard {
        Err(error) => error.into(),
        Ok(Heard::End(how)) => Stop::Gone(how),
        Ok(Heard::Frame(Frame::Tar(_))) => Wrong("a tar frame".to_owned()).into(),
        Ok(Heard::Frame(Frame::Json(body))) => match messages::read(&body) {
            Ok(Message::Trouble(trouble)) => Stop::Ours(internal(format!(
                "the harness reports {}: {}",
                shown(&trouble.code, 40),
                shown(&trouble.message, 400)
            ))),
            Ok(other) => Stop::Ours(unexpected(&other)),
            Err(Unreadable::Frame(why) | Unreadable::Record { why, .. }) => unreadable(&why),
        },
    }
}

fn unexpected(message: &Message) -> Aborted {
    let what = match message {
        Message::Ready(_) => "ready",
        Message::Configured { .. } => "configured",
        Message::Collected(_) => "collected",
        Message::Case(_) => "case",
        Message::AttemptEnd(_) => "attempt-end",
        Message::Digests(_) => "digests",
        Message::Trouble(_) => "trouble",
    };
    internal(format!(
        "the harness sent `{what}` where it does not belong"
    ))
}

/// Why the room said no more, as the end of an attempt; or our trouble.
async fn cause(stop: Stop, room: &mut dyn Autopsy) -> Result<Death, Aborted> {
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

/// Before the first attempt nothing of the candidate ran, so whatever goes wrong is ours.
async fn before_any_attempt(stop: Stop, room: &mut dyn Autopsy) -> Aborted {
    match stop {
        Stop::Ours(aborted) => aborted,
        Stop::Silent(doing) => match room.is_alive().await {
            Ok(Life::Running) => Aborted::new(
                AbortedCode::Deadline,
                format!("the harness took too long while {doing}"),
            ),
            Ok(Life::Gone) => internal(format!("the room ended while {doing}")),
            Err(aborted) => aborted,
        },
        Stop::Gone(_) => match room.examine().await {
            Ok(death) => internal(format!(
                "the room ended before the first attempt: {}",
                death.note
            )),
            Err(aborted) => aborted,
        },
    }
}

/// Timed out for want of a CPU: it waited for one more than half of its time, and had one less than half of it. Threads
/// that crowd each other out wait as well, but then the CPU is busy with them: that is no starvation.
fn starved(facts: &AttemptFacts) -> bool {
    let end = &facts.end;
    let timed_out = match end.end {
        End::CaseTimeout | End::AttemptTimeout => true,
        End::Finished
        | End::Exited
        | End::Killed
        | End::OutOfMemory
        | End::OutputLimit
        | End::Protocol => false,
    };
    timed_out && end.run_delay_ms > end.wall_ms / 2 && end.cpu_ms < end.wall_ms / 2
}

fn lower_hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}
