//! Steps of a score become progress notifications, or a task's status; the score's name is kept from the moment there is
//! one.
//!
//! Never waits for a listener: a client that does not read holds nothing up but its own notes.

use crate::progress::{Listener, Progress, Step};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::task_manager::TaskContext;
use rmcp::{Peer, RoleServer};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tribunal_core::text::shown;

/// Longest name of a score.
const NAME: usize = 200;
/// Between two signs of life of one attempt.
const ALIVE: Duration = Duration::from_secs(1);

/// Who hears of a call's steps.
pub(super) enum Audience {
    /// Nobody asked.
    Nobody,
    /// The request carried a token.
    Caller(Peer<RoleServer>, ProgressToken),
    /// The call is a task.
    Task(TaskContext),
}

/// The score's name, once there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Name(Arc<OnceLock<String>>);

impl Name {
    pub(super) fn of(name: &str) -> Self {
        let this = Self::default();
        this.set(name);
        this
    }

    pub(super) fn get(&self) -> Option<String> {
        self.0.get().cloned()
    }

    fn set(&self, name: &str) {
        // Whoever named it first was right.
        let _ = self.0.set(shown(name, NAME));
    }
}

/// What is told of one call.
pub(super) struct Telling {
    audience: Audience,
    name: Name,
    lines: UnboundedReceiver<String>,
}

impl Telling {
    /// To this audience; with the progress that the other rooms tell.
    pub(super) fn to(audience: Audience, name: &Name) -> (Self, Progress) {
        let (sender, lines) = unbounded_channel();
        let progress = Progress::Caller(listener(sender, name.clone()));
        let name = name.clone();
        let telling = Self {
            audience,
            name,
            lines,
        };
        (telling, progress)
    }

    /// Pass on what comes, until the progress is gone.
    pub(super) async fn run(mut self) {
        let mut told = 0.0;
        while let Some(line) = self.lines.recv().await {
            told += 1.0;
            match &self.audience {
                Audience::Nobody => {}
                Audience::Task(task) => {
                    // Each message takes the place of the one before, and the name must not be lost with it.
                    let name = self.name.get().map(|name| format!("{name}: "));
                    task.set_status_message(format!("{}{line}", name.unwrap_or_default()));
                }
                Audience::Caller(peer, token) => {
                    let note = ProgressNotificationParam::new(token.clone(), told);
                    // A client that went away needs no notes.
                    let _ = peer.notify_progress(note.with_message(line)).await;
                }
            }
        }
    }
}

fn listener(lines: UnboundedSender<String>, name: Name) -> Listener {
    let last_alive = Mutex::new(None::<Instant>);
    Box::new(move |step| {
        let line = match step {
            Step::Named(told) => {
                name.set(told);
                format!("asked for {}", shown(told, NAME))
            }
            Step::Line(line) => line.to_owned(),
            Step::Alive(line) if is_due(&last_alive) => line.to_owned(),
            Step::Alive(_) => return,
        };
        // Nobody listens any more: then nobody is told.
        let _ = lines.send(line);
    })
}

fn is_due(last: &Mutex<Option<Instant>>) -> bool {
    let Ok(mut last) = last.lock() else {
        return false;
    };
    let due = last.is_none_or(|last| last.elapsed() >= ALIVE);
    if due {
        *last = Some(Instant::now());
    }
    due
}
