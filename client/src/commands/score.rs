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
    // The server's greeting goes on beside git; what is wrong with the commit is told first, whoever answers.
    let greeting = {
        let settings = settings.clone();
        tokio::spawn(async move { Remote::connect(&settings).await })
    };
    let found = {
        let (head, out, worktree) = (args.head.clone(), args.out.clone(), args.worktree);
        tokio::task::spawn_blocking(move || {
            let which = match worktree {
                true => Which::Worktree(&head),
                false => Which::Revision(&head),
            };
            Subject::of(workspace, which, &out)
        })
    };
    let broken = |e| Failure::usage("score this commit", e, "report this as a bug");
    let subject = found.await.map_err(broken)??;
    if let Some(note) = subject.temporary() {
        console.note(&note);
    }
    if let Some(left_out) = subject.left_out() {
        console.warn(&format!("{left_out}; commit it, or pass --worktree"));
    }
    let remote = async { greeting.await.map_err(broken)? };
    once(args, &subject, remote, settings, console).await
}

/// Score this subject, and tell what became of it.
pub(super) async fn once(
    args: &cli::Score,
    subject: &Subject,
    remote: impl Future<Output = Result<Remote, Failure>>,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let repo = settings.repo()?;
    let remote = remote.await?;
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
