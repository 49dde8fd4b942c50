//! `score`: this workspace's commit goes out, three signed verdicts come back.

use super::conclude::Conclusion;
use super::follow::follow;
use super::send::{is, send_missing};
use crate::cli::{self, Lane};
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate;
use crate::progress::Progress;
use crate::remote::{Remote, repository_name};
use crate::workspace::{Uncommitted, Workspace, Worktree};
use std::path::Path;
use tribunal_core::id::CommitId;
use tribunal_core::join::Expected;
use tribunal_core::reason::RefusedCode;
use tribunal_core::text::shown;
use tribunal_proto::v1::{CreateScoreRequest, Score};

/// Run it.
pub(super) async fn run(
    args: &cli::Score,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let mut workspace = Workspace::require(Path::new("."))?;
    let mut head = workspace.commit(&args.head)?;
    let worktree;
    if args.worktree {
        worktree = Worktree::commit(&workspace, &head, &args.out)?;
        console.note(&scored_too(worktree.uncommitted(), worktree.id()));
        head = worktree.id().clone();
        workspace = worktree.view(&workspace);
    } else if args.head == "HEAD" {
        let uncommitted = workspace.uncommitted(&args.out)?;
        if !uncommitted.is_empty() {
            console.warn(&not_scored(&uncommitted));
        }
    }
    let repo = settings.repo()?;
    let remote = Remote::connect(settings).await?;
    let progress = Progress::on(console);
    let asked = Asked {
        head: &head,
        base: args.base.as_ref(),
        fresh: args.fresh,
        lane: args.lane,
    };
    let scored = async {
        let score = asked
            .create(&remote, settings, Some(&workspace), &progress, console)
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
            head: head.clone(),
            base: None,
            change_set: args.change_set.into(),
            now: gate::now(),
        },
        max_chars: args.max_chars,
    }
    .tell(&remote, settings, console)
    .await
}

/// What is asked for.
pub(super) struct Asked<'a> {
    /// The commit.
    pub(super) head: &'a CommitId,
    /// Against this one; `None` is the tip.
    pub(super) base: Option<&'a CommitId>,
    /// New attempts.
    pub(super) fresh: bool,
    /// One more lane, for advice.
    pub(super) lane: Option<Lane>,
}

impl Asked<'_> {
    /// Make the score, sending the commit where the server does not have it and a workspace does.
    pub(super) async fn create(
        &self,
        remote: &Remote,
        settings: &Settings,
        workspace: Option<&Workspace>,
        progress: &Progress,
        console: &mut Console,
    ) -> Result<Score, Failure> {
        let repo = settings.repo()?;
        let request = CreateScoreRequest {
            parent: repository_name(repo),
            head: self.head.to_string(),
            base: self.base.map(ToString::to_string).unwrap_or_default(),
            request_id: request_id()?,
            fresh: self.fresh,
            proposed: self.lane == Some(Lane::Proposed),
        };
        let score = match (remote.create_score(&request).await, workspace) {
            (Err(failure), Some(workspace)) if is(&failure, RefusedCode::UnknownCommit) => {
                let about = remote.repository(repo).await?;
                send_missing(
                    remote, repo, &about, workspace, self.head, progress, console,
                )
                .await?;
                remote.create_score(&request).await?
            }
            (answer, _) => answer?,
        };
        progress.created(&score, console);
        Ok(score)
    }
}

/// Drawn anew for every run of a command, kept for its retries: so a retry never makes a second score.
fn request_id() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::usage("draw a request id", e, "mend this machine's entropy"))?;
    Ok(hex::encode(bytes))
}

fn not_scored(uncommitted: &Uncommitted) -> String {
    format!(
        "what is not committed is not scored: {}; commit it, or pass --worktree",
        listed(uncommitted)
    )
}

fn scored_too(uncommitted: &Uncommitted, commit: &CommitId) -> String {
    format!(
        "scoring {commit}, a temporary commit of HEAD and {}",
        listed(uncommitted)
    )
}

fn listed(uncommitted: &Uncommitted) -> String {
    let some = |what: &str, paths: &[String]| {
        let mut names: Vec<String> = paths.iter().take(3).map(|p| shown(p, 120)).collect();
        if paths.len() > names.len() {
            names.push("…".to_owned());
        }
        format!("{} {what} ({})", paths.len(), names.join(", "))
    };
    let mut parts = Vec::new();
    if !uncommitted.changed.is_empty() {
        parts.push(some("changed", &uncommitted.changed));
    }
    if !uncommitted.untracked.is_empty() {
        parts.push(some("untracked", &uncommitted.untracked));
    }
    if parts.is_empty() {
        "nothing else".to_owned()
    } else {
        parts.join(", ")
    }
}
