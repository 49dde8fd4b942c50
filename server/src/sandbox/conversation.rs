//! The server's side of the conversation with a harness: a run order goes in, facts come out. Shared by every kind of room.
//!
//! Never judges. What the attempt causes is a fact; what PID 1 or the engine does wrong is `Aborted`. Digests are taken
//! before any candidate code runs; attempts wait for their turn on the cores; one that the machine starved is repeated.

use super::autopsy::{Autopsy, Death, Stop, before_any_attempt, cause};
use super::gather::{Gather, Wrong};
use super::line::{Line, unexpected, unreadable};
use super::messages::{self, BodyPiece, Configure, Message, OnRecord, Order, Unreadable};
use super::outside::{self, Asked, Asks};
use super::parts;
use super::turns::{Company, Turn, Turns};
use super::uids::UidRange;
use super::{
    AttemptOrder, Deserved, FunctionDigest, Functions, MarksAsked, PlantingPlan, RunEvent,
    RunFacts, RunOrder,
};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tribunal_core::id::RepoPath;
use tribunal_core::judge::PlantedChange;
use tribunal_core::outcome::{AttemptFacts, End, Gained, Lane, MarksFound};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::statement::Isolation;
use tribunal_core::text::{shown, shown_block};

/// Bytes of tracebacks and output kept of one run: thousands of red cases must not fill the server's memory.
const TEXT_OF_A_RUN: usize = 64 << 20;
/// And of one attempt.
const TEXT_OF_AN_ATTEMPT: usize = 8 << 20;
/// Things that one changed file may be told to have gained.
const GAINED: usize = 50;

/// What a conversation needs besides its line.
pub(crate) struct Stage<'a> {
    pub(crate) order: &'a RunOrder,
    pub(crate) uids: &'a UidRange,
    pub(crate) turns: &'a Turns,
    pub(crate) events: &'a mpsc::Sender<RunEvent>,
    pub(crate) starts: Begun,
}

/// Whether a room's interpreters were told what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Not yet.
    No,
    /// They are up, and wait for a src ([`warm_up`]).
    Warm,
}

/// Configure a room that nobody asked for yet, and have all its interpreter starts come up. Nothing of the candidate is
/// there, so whatever goes wrong is ours.
pub(crate) async fn warm_up(
    line: &mut Line,
    order: &RunOrder,
    uids: &UidRange,
) -> Result<(), Stop> {
    configure(line, order, uids).await?;
    let ahead = parts::ahead(order);
    line.order(&Order::Warm { ahead }).await?;
    let limit = line.patience().configure;
    let message = line.hear(limit, "warming").await?;
    let Message::Warmed { starts } = message else {
        return Err(Stop::Ours(unexpected(&message)));
    };
    if starts != order.starts.len() {
        return Err(Wrong(format!("{starts} interpreter starts")).into());
    }
    Ok(())
}

async fn configure(line: &mut Line, order: &RunOrder, uids: &UidRange) -> Result<(), Stop> {
    let configure = Configure::of(order, uids.base(), uids.count());
    line.order(&Order::Configure(Box::new(configure))).await
}

/// Carry out the order over the line. The harness at its other end stays until [`farewell`].
pub(crate) async fn converse(
    line: &mut Line,
    stage: Stage<'_>,
    room: &mut dyn Autopsy,
) -> Result<RunFacts, Aborted> {
    check(stage.order)?;
    let mut talk = Talk {
        line,
        stage,
        uids_seen: HashSet::new(),
        begun: 0,
    };
    let learned = match talk.prepare().await {
        Ok(learned) => learned,
        Err(stop) => return Err(before_any_attempt(stop, room).await),
    };
    talk.tell(RunEvent::Ready).await;
    let attempts = talk.all_attempts(room).await?;
    Ok(RunFacts {
        attempts,
        digests: learned.digests,
        undigested: learned.undigested,
        python_tag: talk.line.tag().to_owned(),
        plan: learned.plan,
        marks: learned.marks,
    })
}

/// Nothing more is asked. The harness may leave by itself; the room is removed anyway, so nothing here can fail a run.
pub(crate) async fn farewell(line: &mut Line) {
    if line.order(&Order::Bye).await.is_ok() {
        line.hang_up().await;
    }
}

fn internal(message: impl Into<String>) -> Aborted {
    Aborted::new(AbortedCode::Internal, message)
}

/// An order that cannot be carried out is a mistake of the pipeline; better told here than by the harness.
fn check(order: &RunOrder) -> Result<(), Aborted> {
    let sequel = order.sequel.iter().flat_map(|sequel| {
        let attempts = sequel.attempts.iter();
        attempts.map(|attempt| (sequel.lane, attempt))
    });
    let own = order.attempts.iter().map(|attempt| (order.lane, attempt));
    let mut indices = HashSet::new();
    for (lane, attempt) in own.chain(sequel) {
        if usize::try_from(attempt.start).is_ok_and(|start| start >= order.starts.len()) {
            return Err(internal(format!(
                "attempt {} names a start that is not ordered",
                attempt.index
            )));
        }
        if !indices.insert((lane, attempt.index)) {
            return Err(internal(format!("attempt {} twice", attempt.index)));
        }
    }
    Ok(())
}

struct Talk<'a> {
    line: &'a mut Line,
    stage: Stage<'a>,
    uids_seen: HashSet<u32>,
    /// Attempts begun, repeated ones too. From the first on, the room's death is the candidate's.
    begun: u32,
}

/// An attempt on its way: the part that runs, and what the parts before it came to.
struct Going {
    lane: Lane,
    gather: Gather,
    earlier: Option<AttemptFacts>,
}

/// What is learned before anything of the repository runs.
#[derive(Default)]
struct Learned {
    digests: Vec<FunctionDigest>,
    undigested: Vec<(RepoPath, String)>,
    plan: Option<PlantingPlan>,
    marks: Vec<MarksFound>,
}

/// One frame of a file's digests.
fn digests_of(file: &RepoPath, answer: messages::Digests, into: &mut Learned) -> Result<(), Stop> {
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
        into.digests.push(FunctionDigest {
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
        into.undigested
            .push((file.clone(), shown_block(&message, 2000)));
    }
    Ok(())
}

impl Talk<'_> {
    /// Configure, send the src, take the digests: before any candidate code runs.
    async fn prepare(&mut self) -> Result<Learned, Stop> {
        let order = self.stage.order;
        match self.stage.starts {
            Begun::No => configure(self.line, order, self.stage.uids).await?,
            Begun::Warm => {}
        }
        let size = order.src_tar.len();
        self.line.order(&Order::Src { size }).await?;
        self.line.tar(order.src_tar.clone()).await?;
        self.line.order(&Order::SrcEnd).await?;
        let limit = self.line.patience().configure;
        let message = self.line.hear(limit, "configuring").await?;
        let Message::Configured { starts } = message else {
            return Err(Stop::Ours(unexpected(&message)));
        };
        if starts != order.starts.len() {
            return Err(Wrong(format!("{starts} interpreter starts")).into());
        }
        for record in &order.cassettes {
            for (sha256, body) in &record.bodies {
                for piece in BodyPiece::all(sha256, body) {
                    self.line.order(&Order::Body(piece)).await?;
                }
            }
            self.line
                .order(&Order::Cassette(OnRecord::of(record)))
                .await?;
        }
        let mut learned = Learned::default();
        // One file at a time keeps every answer within one frame.
        for file in &order.digests {
            self.digest(file, &mut learned).await?;
        }
        if let Some(of) = order.plant {
            learned.plan = Some(self.plan(of).await?);
        }
        for asked in &order.marks {
            learned.marks.push(self.marks(asked).await?);
        }
        Ok(learned)
    }

    async fn digest(&mut self, file: &RepoPath, into: &mut Learned) -> Result<(), Stop> {
        self.line
            .order(&Order::Digests {
                files: std::slice::from_ref(file),
            })
            .await?;
        loop {
            let limit = self.line.patience().digests;
            let message = self.line.hear(limit, "compiling").await?;
            let Message::Digests(answer) = message else {
                return Err(Stop::Ours(unexpected(&message)));
            };
            if answer.tag != self.line.tag() {
                return Err(Wrong("digests of another interpreter".to_owned()).into());
            }
            let more = answer.more && !answer.functions.is_empty();
            digests_of(file, answer, into)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// What a changed file gained: parsed there, never imported.
    async fn marks(&mut self, asked: &MarksAsked) -> Result<MarksFound, Stop> {
        let policy = &self.stage.order.policy;
        let order = Order::Marks(messages::Marks::of(asked, policy));
        self.line.order(&order).await?;
        for text in std::iter::once(&asked.now).chain(&asked.before) {
            self.line.tar(text.clone()).await?;
        }
        let limit = self.line.patience().marks;
        let message = self.line.hear(limit, "reading marks").await?;
        let Message::Marks(found) = message else {
            return Err(Stop::Ours(unexpected(&message)));
        };
        if found.file != asked.file {
            return Err(Wrong("marks of another file".to_owned()).into());
        }
        Ok(MarksFound {
            file: found.file,
            gained: found
                .gained
                .into_iter()
                .take(GAINED)
                .map(|gained| Gained {
                    what: shown(&gained.what, 200),
                    scope: shown(&gained.scope, 200),
                    ..gained
                })
                .collect(),
            unread: found.unread.map(|why| shown(&why, 300)),
        })
    }

    /// What could be planted in src: read there, never imported.
    async fn plan(&mut self, of: u32) -> Result<PlantingPlan, Stop> {
        let seed = self.stage.order.policy.pins.seed;
        self.line.order(&Order::Plant { seed, of }).await?;
        let limit = self.line.patience().digests;
        let message = self.line.hear(limit, "reading src").await?;
        let Message::Planted(answer) = message else {
            return Err(Stop::Ours(unexpected(&message)));
        };
        if answer.mutants.len() > of as usize {
            return Err(Wrong("more changes than were asked for".to_owned()).into());
        }
        let told = |change: PlantedChange| PlantedChange {
            path: shown(&change.path, 200),
            function: shown(&change.function, 200),
            what: shown(&change.what, 200),
            ..change
        };
        Ok(PlantingPlan {
            functions: if answer.functions {
                Functions::Some
            } else {
                Functions::None
            },
            mutants: answer.mutants.into_iter().map(told).collect(),
        })
    }

    /// The order's own attempts, then those of its sequel if it is deserved.
    async fn all_attempts(&mut self, room: &mut dyn Autopsy) -> Result<Vec<AttemptFacts>, Aborted> {
        let order = self.stage.order;
        let mut lost = None;
        let mut done = self
            .attempts(room, &order.attempts, order.lane, &mut lost)
            .await?;
        if let Some(sequel) = &order.sequel {
            match (sequel.deserved)(done.clone()).await {
                Deserved::Yes if !sequel.attempts.is_empty() => {
                    self.tell(RunEvent::SequelBegun).await;
                    let more = self
                        .attempts(room, &sequel.attempts, sequel.lane, &mut lost)
                        .await?;
                    done.extend(more);
                }
                Deserved::Yes | Deserved::No => {}
            }
        }
        Ok(done)
    }

    /// Attempts of one lane, in order. When the room is gone, those that are left end as it did, and say so.
    async fn attempts(
        &mut self,
        room: &mut dyn Autopsy,
        orders: &[AttemptOrder],
        lane: Lane,
        lost: &mut Option<Death>,
    ) -> Result<Vec<AttemptFacts>, Aborted> {
        let mut done: Vec<AttemptFacts> = Vec::with_capacity(orders.len());
        for order in orders {
            let mut going = Going {
                lane,
                gather: self.gather(order, self.begun, lane),
                earlier: None,
            };
            let began = Instant::now();
            let facts = if let Some(death) = lost.as_ref() {
                going.gather.gone(death, 0)
            } else {
                match self.in_parts(order, &mut going).await {
                    Ok(facts) => facts,
                    Err(stop) if self.begun == 0 => {
                        return Err(before_any_attempt(stop, room).await);
                    }
                    Err(stop) => {
                        let death = cause(stop, room).await?;
                        tracing::warn!(attempt = order.index, note = %death.note, "the room is gone");
                        let wall = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                        let facts = going.gather.gone(&death, wall);
                        let facts = self.joined(going.earlier, facts);
                        *lost = Some(Death {
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

    /// One attempt: its parts, one after the other.
    async fn in_parts(
        &mut self,
        order: &AttemptOrder,
        going: &mut Going,
    ) -> Result<AttemptFacts, Stop> {
        let lane = going.lane;
        for part in parts::parts(self.stage.order, order) {
            if let Some(earlier) = going.earlier.as_ref()
                && !parts::goes_on(lane, earlier)
            {
                break;
            }
            let facts = self.part_fairly(order, part, going).await?;
            going.earlier = Some(self.joined(going.earlier.take(), facts));
        }
        let facts = going.earlier.take();
        facts.ok_or_else(|| Stop::Ours(internal("an attempt without a part")))
    }

    fn joined(&self, earlier: Option<AttemptFacts>, facts: AttemptFacts) -> AttemptFacts {
        match earlier {
            Some(earlier) => parts::joined(&self.stage.order.files, earlier, facts),
            None => facts,
        }
    }

    fn gather(&self, order: &AttemptOrder, number: u32, lane: Lane) -> Gather {
        let share = TEXT_OF_A_RUN / self.stage.order.most_attempts().max(1);
        Gather::new(order, number, lane, share.min(TEXT_OF_AN_ATTEMPT))
    }

    /// Whether what happens in attempts of this lane is told while it happens.
    fn told(&self, lane: Lane) -> bool {
        lane == self.stage.order.lane
    }

    /// One part that had its CPU. One that the machine starved is repeated alone, once.
    async fn part_fairly(
        &mut self,
        order: &AttemptOrder,
        part: Isolation,
        going: &mut Going,
    ) -> Result<AttemptFacts, Stop> {
        let facts = self.part(order, part, going, Company::Others).await?;
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
        let facts = self.part(order, part, going, Company::Alone).await?;
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

    /// A request of a case that is recorded goes out, and its answer in.
    async fn performed(&mut self, id: u64, asked: Asked) -> Result<(), Stop> {
        let Some(outside) = &self.stage.order.outside else {
            return Err(Wrong("a request of a case that is not recorded".to_owned()).into());
        };
        let answer = outside.perform(asked).await;
        for order in outside::orders(id, &answer) {
            self.line.order(&order).await?;
        }
        Ok(())
    }

    async fn part(
        &mut self,
        order: &AttemptOrder,
        part: Isolation,
        going: &mut Going,
        company: Company,
    ) -> Result<AttemptFacts, Stop> {
        let policy = &self.stage.order.policy;
        let turn = self.turn(policy.limits.cpus, company).await?;
        let cpu = if policy.limits.cpus == 1 {
            turn.core()
        } else {
            None
        };
        let number = self.begun;
        self.begun += 1;
        going.gather = self.gather(order, number, going.lane);
        self.line
            .order(&Order::Attempt(messages::Attempt::of(
                order, part, number, cpu,
            )))
            .await?;
        if going.earlier.is_none() && self.told(going.lane) {
            self.tell(RunEvent::AttemptStarted(order.index)).await;
        }
        let before = going.earlier.as_ref().map_or(0, |facts| facts.cases.len());
        let limit =
            Duration::from_millis(policy.runs.attempt_timeout_ms) + self.line.patience().margin;
        let until = Instant::now() + limit;
        let mut asks = Asks::default();
        loop {
            match self.line.hear_until(until, "running an attempt").await? {
                Ok(Message::Collected(piece)) => going.gather.collected(piece)?,
                Ok(Message::Case(case)) => {
                    going.gather.case(case)?;
                    if self.told(going.lane) {
                        let before = u32::try_from(before).unwrap_or(u32::MAX);
                        let done = going.gather.cases().saturating_add(before);
                        // Progress is for show: a slow reader misses some of it, and holds nothing up.
                        let done = RunEvent::CasesDone(order.index, done);
                        let _lost = self.stage.events.try_send(done);
                    }
                }
                Ok(Message::Ask(piece)) => {
                    let asked = asks.piece(piece).map_err(Wrong)?;
                    if let Some((id, asked)) = asked {
                        self.performed(id, asked).await?;
                    }
                }
                Ok(Message::AttemptEnd(ended)) => {
                    drop(turn);
                    if !self.stage.uids.holds(ended.uid) || !self.uids_seen.insert(ended.uid) {
                        return Err(Wrong(format!("an attempt as uid {}", ended.uid)).into());
                    }
                    let fresh = self.gather(order, self.begun, going.lane);
                    return Ok(std::mem::replace(&mut going.gather, fresh).ended(*ended)?);
                }
                Ok(other) => return Err(Stop::Ours(unexpected(&other))),
                Err(Unreadable::Record { attempt, why }) => {
                    going.gather.about_this(attempt)?;
                    going.gather.spoil(&shown(&why, 200));
                }
                Err(Unreadable::Frame(why)) => return Err(unreadable(&why)),
            }
        }
    }

    /// Wait for a turn, and notice meanwhile if the room dies.
    async fn turn(&mut self, cpus: u32, company: Company) -> Result<Turn, Stop> {
        tokio::select! {
            turn = self.stage.turns.take(cpus, company) => turn.map_err(Stop::Ours),
            stop = self.line.unasked() => Err(stop),
        }
    }

    async fn tell(&mut self, event: RunEvent) {
        // A watcher that went away does not end the run.
        let _gone = self.stage.events.send(event).await;
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
