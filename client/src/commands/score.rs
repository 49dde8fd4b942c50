//! `score`: this workspace's commit goes out, three signed verdicts come back.

use super::conclude::Conclusion;
use super::watching;
use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::scoring::{Asked, Subject, Which, follow};
use crate::workspace::Workspace;
use std::path::Path;
use tribunal_core::join::Expected;

/// Run it.
pub(super) async fn run(
    args: &cli::Score,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let workspace = Workspace::require(Path::new("."))?;
    if args.watch {
        return watching::run(args, &workspace, settings, console).await;
    }
    let which = if args.worktree {
        Which::Worktree(&args.head)
    } else {
        Which::Revision(&args.head)
    };
    let subject = Subject::of(workspace, which, &args.out)?;
    if let Some(note) = subject.temporary() {
        console.note(&note);
    }
    if let Some(left_out) = subject.left_out() {
        console.warn(&format!("{left_out}; commit it, or pass --worktree"));
    }
    once(args, &subject, settings, console).await
}

/// Score this subject, and tell what became of it.
pub(super) async fn once(
    args: &cli::Score,
    subject: &Subject,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let repo = settings.repo()?;
    let remote = Remote::connect(settings).await?;
    let progress = Progress::on(console);
    let asked = Asked {
        head: subject.head(),
        base: args.base.as_ref(),
        fresh: args.fresh,
        lane: args.lane,
    };
    let scored = async {
        let score = asked
            .create(
                &remote,
                settings,
                Some(subject.workspace()),
                &progress,
                console,
            )
            .await?;
        let files = follow(&remote, &score.name, &progress, console).await?;
        Ok::<_, Failure>((score, files))
    }
    .await;
    progress.finish();
    let (score, files) = scored?;
    Conclusion {
        name: &score.name,
        files,
        out: Some(&args.out),
        expected: Expected {
            repository: Some(repo.clone()),
            head: subject.head().clone(),
            base: None,
            change_set: args.change_set.into(),
            now: gate::now(),
        },
        max_chars: args.max_chars,
    }
    .tell(&remote, settings, console)
    .await
}
