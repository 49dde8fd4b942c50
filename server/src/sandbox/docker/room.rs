//! One room: a container from create to removal, its line, and what became of its PID 1.

use super::super::autopsy::{Autopsy, Death, Life, before_any_attempt};
use super::super::conversation::{self, Begun, Stage};
use super::super::line::{Chunks, Line, Patience};
use super::super::uids::UidRange;
use super::super::{RunEvent, RunFacts, RunOrder};
use super::Inner;
use super::container::{self, Container};
use super::engine::{Connected, Failed, QUICK, SLOW, Shield, call};
use super::names::{Kind, SCORE};
use super::spec::{RoomSpec, SrcSpace};
use super::volume;
use crate::metrics::{Happening, Room};
use bollard::Docker;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::models::ContainerState;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, InspectContainerOptions, StartContainerOptions,
};
use futures::StreamExt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tribunal_core::outcome::End;
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::text::shown_bytes;

/// Bytes of PID 1's standard error that reach the operator's log, for one room.
const STDERR: usize = 64 << 10;
/// How PID 1 leaves when it is told to, which only the engine can do: an engine that shuts down ends its containers.
const STOPPED: i64 = 143;
/// A score goes first: what its room costs to end waits this long, and so does what the next score's room costs to make.
/// A caller that is close by has its verdicts by then.
pub(super) const CALLER_FIRST: Duration = Duration::from_millis(150);
/// After the line has ended, how long PID 1 may take to be seen dead.
const DYING: Duration = Duration::from_secs(20);

/// A started container, the line to its PID 1, what only the engine knows of it, and the ids of its attempts.
pub(super) struct Open {
    container: Container,
    line: Line,
    pid1: Pid1,
    uids: UidRange,
    src: SrcSpace,
}

/// Run the order in a container of its own: one that is ready, or a new one. It is gone when this fails; after a run that
/// went well it goes soon after, its ids with it, and [`super::DockerSandbox::drain`] waits for that.
pub(super) async fn run(
    inner: Arc<Inner>,
    mut order: RunOrder,
    events: mpsc::Sender<RunEvent>,
    patience: Patience,
    cancel: CancellationToken,
) -> Result<RunFacts, Aborted> {
    let (open, starts) = match inner.pool.take(&inner, &order)? {
        Some(ready) => {
            inner.observer.note(Happening::RoomEntered(Room::Ready));
            order.on_starts(ready.starts);
            (ready.open, Begun::Warm)
        }
        None => {
            let src = SrcSpace::of(&order.src_tar)?;
            let uids = uids_for(&order)?;
            let open = enter(&inner, &order, uids, src, patience, &cancel).await?;
            inner.observer.note(Happening::RoomEntered(Room::New));
            (open, Begun::No)
        }
    };
    let Open {
        container,
        mut line,
        mut pid1,
        uids,
        ..
    } = open;
    let facts = {
        let engine = inner.engine.get().await?;
        let stage = Stage {
            order: &order,
            uids: &uids,
            turns: &engine.turns,
            events: &events,
            starts,
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(inner.owned.why_cancelled()),
            facts = conversation::converse(&mut line, stage, &mut pid1) => facts,
        }
    };
    match facts {
        Ok(facts) => {
            inner.owned.background(|closing| async move {
                caller_first(&closing).await;
                conversation::farewell(&mut line).await;
                container.remove().await;
                drop(uids);
            });
            Ok(facts)
        }
        Err(aborted) => {
            container.remove().await;
            Err(aborted)
        }
    }
}

/// A room that nobody asked for yet, with its interpreters up.
pub(super) async fn prepare(
    inner: &Arc<Inner>,
    order: &RunOrder,
    src: SrcSpace,
    cancel: &CancellationToken,
) -> Result<Open, Aborted> {
    let mut open = enter(
        inner,
        order,
        uids_for(order)?,
        src,
        Patience::default(),
        cancel,
    )
    .await?;
    let warm = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(inner.owned.why_cancelled()),
        warm = conversation::warm_up(&mut open.line, order, &open.uids) => match warm {
            Ok(()) => Ok(()),
            Err(stop) => Err(before_any_attempt(stop, &mut open.pid1).await),
        },
    };
    match warm {
        Ok(()) => Ok(open),
        Err(aborted) => {
            open.leave(inner);
            Err(aborted)
        }
    }
}

impl Open {
    /// Whether it still stands, and has room for this order.
    pub(super) fn serves(&self, order: &RunOrder) -> Result<bool, Aborted> {
        Ok(self.stands()
            && self.uids.count() >= uids_wanted(order)
            && self.src.holds(SrcSpace::of(&order.src_tar)?))
    }

    /// Whether it still stands, as far as the engine told.
    pub(super) fn stands(&self) -> bool {
        !self.pid1.exit.is_finished()
    }

    /// Its container's name.
    pub(super) fn name(&self) -> &str {
        self.container.name()
    }

    /// End it, and wait until it is gone.
    pub(super) async fn remove(self) {
        self.container.remove().await;
    }

    /// End it while its caller goes on.
    pub(super) fn leave(self, inner: &Arc<Inner>) {
        let (container, uids) = (self.container, self.uids);
        inner.owned.background(|_| async move {
            container.remove().await;
            drop(uids);
        });
    }
}

/// Let a score that has just run have the machine.
pub(super) async fn caller_first(closing: &CancellationToken) {
    let _early = tokio::time::timeout(CALLER_FIRST, closing.cancelled()).await;
}

async fn enter(
    inner: &Arc<Inner>,
    order: &RunOrder,
    uids: UidRange,
    src: SrcSpace,
    patience: Patience,
    cancel: &CancellationToken,
) -> Result<Open, Aborted> {
    // The ids are taken before the container and given back after it: ranges of live rooms never overlap.
    let engine = inner.engine.get().await?;
    let (container, attached) = begin(inner, engine, order, src, cancel).await?;
    let mut pid1 = Pid1::of(&engine.docker, container.name());
    let chunks = stdout_of(attached.output, container.name().to_owned());
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(inner.owned.why_cancelled()),
        opened = Line::open(chunks, Box::new(attached.input), patience, &mut pid1) => opened,
    };
    match opened {
        Ok(line) => Ok(Open {
            container,
            line,
            pid1,
            uids,
            src,
        }),
        Err(aborted) => {
            container.remove().await;
            Err(aborted)
        }
    }
}

/// A container that has been started, and the line to its PID 1.
async fn begin(
    inner: &Arc<Inner>,
    engine: &Connected,
    order: &RunOrder,
    src: SrcSpace,
    cancel: &CancellationToken,
) -> Result<(Container, AttachContainerResults), Aborted> {
    let mut shield = engine.shield();
    let mut first: Option<Failed> = None;
    loop {
        if cancel.is_cancelled() {
            return Err(inner.owned.why_cancelled());
        }
        let held = volume::hold(inner, &order.tree).await?;
        let container = create(inner, engine, order, src, shield).await?;
        drop(held);
        let started = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            started = start(&engine.docker, container.name()) => Some(started),
        };
        let failed = match started {
            Some(Ok(attached)) => {
                if first.is_some() {
                    engine.forgo_shield();
                }
                return Ok((container, attached));
            }
            Some(Err(failed)) => failed,
            None => {
                container.remove().await;
                return Err(inner.owned.why_cancelled());
            }
        };
        container.remove().await;
        // The engine's words differ from version to version, so what may help is tried rather than read.
        if shield == Shield::Plain || failed.status != Some(500) {
            return Err(first.unwrap_or(failed).aborted);
        }
        shield = Shield::Plain;
        first = Some(failed);
    }
}

fn uids_for(order: &RunOrder) -> Result<UidRange, Aborted> {
    UidRange::take(uids_wanted(order)).ok_or_else(|| {
        Aborted::new(
            AbortedCode::Internal,
            "no range of user ids is free: too many rooms at once",
        )
    })
}

/// No uid serves twice.
fn uids_wanted(order: &RunOrder) -> u32 {
    u32::try_from(order.most_attempts())
        .unwrap_or(u32::MAX)
        .saturating_mul(super::super::parts::UIDS_AN_ATTEMPT)
        .saturating_add(2)
}

async fn create(
    inner: &Arc<Inner>,
    engine: &Connected,
    order: &RunOrder,
    src: SrcSpace,
    shield: Shield,
) -> Result<Container, Aborted> {
    let mut labels = inner.instance.labels(Kind::Room);
    labels.insert(SCORE.to_owned(), order.score.clone());
    let volume = inner.instance.volume(&order.tree.digest);
    let spec = RoomSpec {
        order,
        src,
        volume: &volume,
        labels,
        cores: engine.cores,
        shield,
    };
    Container::create(inner, Kind::Room, spec.request()?).await
}

/// Attach and start.
async fn start(docker: &Docker, name: &str) -> Result<AttachContainerResults, Failed> {
    let options = AttachContainerOptionsBuilder::new()
        .stream(true)
        .stdin(true)
        .stdout(true)
        .stderr(true)
        .build();
    // Before the start, so that not one byte is missed: there is no log to read it from.
    let attaching = docker.attach_container(name, Some(options));
    let attached = call("attach to a container", SLOW, attaching).await?;
    let starting = docker.start_container(name, None::<StartContainerOptions>);
    call("start a container", SLOW, starting).await?;
    Ok(attached)
}

/// PID 1's standard output; its standard error goes to the operator's log, up to a limit.
fn stdout_of(
    output: Pin<Box<dyn futures::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    name: String,
) -> Chunks {
    let mut stderr_left = STDERR;
    output
        .filter_map(move |item| {
            let chunk = match item {
                Ok(LogOutput::StdOut { message }) => Some(Ok(message)),
                Ok(LogOutput::StdErr { message }) => {
                    if let Some(left) = stderr_left.checked_sub(message.len()) {
                        stderr_left = left;
                        tracing::debug!(%name, stderr = %shown_bytes(&message, 2000), "harness");
                    }
                    None
                }
                Ok(LogOutput::StdIn { .. } | LogOutput::Console { .. }) => None,
                Err(error) => Some(Err(error.to_string())),
            };
            std::future::ready(chunk)
        })
        .boxed()
}

/// What the engine can tell about the room's PID 1.
struct Pid1 {
    docker: Docker,
    name: String,
    /// Asked from the start on: an engine that was restarted meanwhile cannot answer this call, and must not, because
    /// it ends containers itself.
    exit: AbortOnDropHandle<Result<i64, Failed>>,
}

impl Pid1 {
    fn of(docker: &Docker, name: &str) -> Self {
        Self {
            docker: docker.clone(),
            name: name.to_owned(),
            exit: AbortOnDropHandle::new(tokio::spawn(container::exit_of(
                docker.clone(),
                name.to_owned(),
            ))),
        }
    }

    async fn state(&self) -> Result<ContainerState, Failed> {
        let none = None::<InspectContainerOptions>;
        let inspecting = self.docker.inspect_container(&self.name, none);
        let seen = call("inspect a container", QUICK, inspecting).await?;
        Ok(seen.state.unwrap_or_default())
    }
}

#[async_trait::async_trait]
impl Autopsy for Pid1 {
    async fn examine(&mut self) -> Result<Death, Aborted> {
        let code = match tokio::time::timeout(DYING, &mut self.exit).await {
            Ok(Ok(code)) => code?,
            Ok(Err(error)) => {
                return Err(Aborted::new(AbortedCode::Internal, error.to_string()));
            }
            Err(_) => {
                return Err(Aborted::new(
                    AbortedCode::EngineUnavailable,
                    "the engine cut the line to a container that still runs",
                ));
            }
        };
        if code == STOPPED {
            return Err(Aborted::new(
                AbortedCode::EngineUnavailable,
                "the engine stopped the container",
            ));
        }
        let state = self.state().await?;
        let exit_code = i32::try_from(code).ok();
        let signal = exit_code
            .and_then(|code| code.checked_sub(128))
            .filter(|n| (1..=64).contains(n));
        let (end, how) = if state.oom_killed == Some(true) {
            (End::OutOfMemory, "out of memory")
        } else {
            (End::Killed, "its first process ended")
        };
        Ok(Death {
            end,
            exit_code,
            signal,
            note: format!("the room died: {how}, exit code {code}"),
        })
    }

    async fn is_alive(&mut self) -> Result<Life, Aborted> {
        let state = self.state().await?;
        if state.paused == Some(true) {
            return Err(Aborted::new(
                AbortedCode::Internal,
                "somebody paused the container",
            ));
        }
        Ok(if state.running == Some(true) {
            Life::Running
        } else {
            Life::Gone
        })
    }
}
