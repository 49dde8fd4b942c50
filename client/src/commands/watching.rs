//! `score --watch`: HEAD is scored, then each commit that it moves to, until somebody interrupts.
//!
//! One score at a time; of commits that come meanwhile only the latest is scored. Ends as the last score ended.

use super::score::once;
use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::Remote;
use crate::scoring::{Subject, Which};
use crate::workspace::Workspace;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tribunal_core::id::CommitId;

/// Between two looks at HEAD.
const PAUSE: Duration = Duration::from_millis(500);
/// Before the same commit is tried again where there was no verdict.
const AGAIN: Duration = Duration::from_secs(15);

/// Run it.
pub(super) async fn run(
    args: &cli::Score,
    workspace: &Workspace,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let mut watched = Watched::default();
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        let round = watched.round(args, workspace, settings, console);
        let ended = tokio::select! {
            // First, so that what a score makes of the same interrupt is not taken for its end.
            biased;
            _ = &mut interrupt => None,
            ended = round => Some(ended),
        };
        match ended {
            Some(ended) => ended?,
            None => {
                console.note("stopped watching; a score that was begun goes on");
                return Ok(watched.last);
            }
        }
    }
}

/// What was scored last, and how that ended.
struct Watched {
    head: Option<CommitId>,
    last: Exit,
    again: Option<Instant>,
}

impl Default for Watched {
    /// Before the first score there is no verdict.
    fn default() -> Self {
        Self {
            head: None,
            last: Exit::NoVerdict,
            again: None,
        }
    }
}

impl Watched {
    /// Wait for a commit that is to be scored, and score it.
    async fn round(
        &mut self,
        args: &cli::Score,
        workspace: &Workspace,
        settings: &Settings,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let head = self.next(workspace).await;
        console.note(&format!("scoring {head}"));
        let which = Which::Revision(head.as_str());
        let scored = match Subject::of(workspace.clone(), which, &args.out) {
            Ok(subject) => {
                let remote = Remote::connect(settings);
                once(args, &subject, remote, settings, console).await
            }
            Err(failure) => Err(failure),
        };
        self.head = Some(head);
        self.last = match scored {
            Ok(exit) => exit,
            Err(failure) if is_lasting(failure.exit) => return Err(failure),
            Err(failure) => {
                console.fail(&failure);
                failure.exit
            }
        };
        self.again = is_passing(self.last).then(|| Instant::now() + AGAIN);
        Ok(())
    }

    /// The commit that HEAD moved to; or the same one, when it is due again. A HEAD that names none is no commit yet.
    async fn next(&self, workspace: &Workspace) -> CommitId {
        loop {
            let due = self.again.is_some_and(|again| Instant::now() >= again);
            match workspace.commit("HEAD") {
                Ok(head) if due || self.head.as_ref() != Some(&head) => return head,
                Ok(_) | Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

/// What no commit mends: who runs this has to.
fn is_lasting(exit: Exit) -> bool {
    match exit {
        Exit::Usage | Exit::NotAllowed => true,
        Exit::MergeOk
        | Exit::Blocked
        | Exit::ForbiddenMark
        | Exit::CassetteGap
        | Exit::NoVerdict
        | Exit::Unverified
        | Exit::Refused
        | Exit::Unreachable => false,
    }
}

/// What may be over when the same is asked again.
fn is_passing(exit: Exit) -> bool {
    match exit {
        Exit::NoVerdict | Exit::Unreachable => true,
        Exit::MergeOk
        | Exit::Blocked
        | Exit::ForbiddenMark
        | Exit::CassetteGap
        | Exit::Unverified
        | Exit::Usage
        | Exit::Refused
        | Exit::NotAllowed => false,
    }
}
