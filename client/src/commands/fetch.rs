//! `fetch`: the verdicts on a commit for CI: those that are there, those that come, or new ones.

use super::conclude::Conclusion;
use crate::cli;
use crate::config::Settings;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::gate;
use crate::outdir::OutFile;
use crate::progress::Progress;
use crate::remote::{ListFilter, Remote};
use crate::scoring::Asked;
use crate::scoring::follow;
use crate::workspace::{Presence, Workspace};
use std::path::Path;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::join::Expected;
use tribunal_proto::v1::{Score, ScoreState};

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(3);
/// Of one head and base there are few; the newest that serves is among these.
const LOOKED_AT: usize = 20;

/// Run it.
pub(super) async fn run(
    args: &cli::Fetch,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let repo = settings.repo()?;
    let remote = Remote::connect(settings).await?;
    let base = match &args.base {
        Some(base) => base.clone(),
        None => tip(&remote, repo).await?,
    };
    let progress = Progress::on(console);
    let wanted = Wanted {
        head: &args.head,
        base: &base,
        repo,
    };
    let coming = wanted.get(args, &remote, settings, &progress, console);
    let found = match args.wait {
        None => coming.await,
        Some(wait) => timeout(wait, coming)
            .await
            .unwrap_or_else(|_| Err(wanted.waited(wait))),
    };
    progress.finish();
    let (name, files) = found?;
    Conclusion {
        name: &name,
        files,
        out: Some(&args.out),
        expected: Expected {
            repository: Some(repo.clone()),
            head: args.head.clone(),
            base: Some(base.clone()),
            change_set: args.change_set.into(),
            now: gate::now(),
        },
        max_chars: args.max_chars,
    }
    .tell(&remote, settings, console)
    .await
}

async fn tip(remote: &Remote, repo: &RepoName) -> Result<CommitId, Failure> {
    let about = remote.repository(repo).await?;
    about.tip.parse().map_err(|e| {
        Failure::new(
            Exit::Unreachable,
            "learn the protected tip",
            e,
            "check that client and server are of the same version",
        )
    })
}

/// Which verdicts.
struct Wanted<'a> {
    head: &'a CommitId,
    base: &'a CommitId,
    repo: &'a RepoName,
}

impl Wanted<'_> {
    /// Those that are there; else those of a score that runs; else of one that is asked for, or that comes.
    async fn get(
        &self,
        args: &cli::Fetch,
        remote: &Remote,
        settings: &Settings,
        progress: &Progress,
        console: &mut Console,
    ) -> Result<(String, Vec<OutFile>), Failure> {
        loop {
            let scores = self.scores(remote).await?;
            let newest = |state: &[ScoreState]| scores.iter().find(|s| state.contains(&s.state()));
            if let Some(score) = newest(&[ScoreState::Completed]) {
                return Ok((score.name.clone(), remote.verdicts(&score.name).await?));
            }
            if args.or_score {
                let running = newest(&[ScoreState::Running, ScoreState::Queued]).cloned();
                let score = match running {
                    Some(score) => score,
                    None => self.ask(remote, settings, progress, console).await?,
                };
                let files = follow(remote, &score.name, progress, console).await?;
                return Ok((score.name, files));
            }
            if args.wait.is_none() {
                return Err(self.nothing());
            }
            sleep(PAUSE).await;
        }
    }

    async fn scores(&self, remote: &Remote) -> Result<Vec<Score>, Failure> {
        let filter = ListFilter {
            head: Some(self.head.clone()),
            base: Some(self.base.clone()),
            state: ScoreState::Unspecified,
            limit: LOOKED_AT,
        };
        remote.list(self.repo, &filter).await
    }

    /// With the commit from this workspace, where there is one that has it.
    async fn ask(
        &self,
        remote: &Remote,
        settings: &Settings,
        progress: &Progress,
        console: &mut Console,
    ) -> Result<Score, Failure> {
        let workspace = match Workspace::discover(Path::new("."))? {
            Some(workspace) if workspace.has(self.head)? == Presence::Here => Some(workspace),
            Some(_) | None => None,
        };
        let asked = Asked {
            head: self.head,
            base: Some(self.base),
            fresh: false,
            lane: None,
        };
        asked
            .create(remote, settings, workspace.as_ref(), progress, console)
            .await
    }

    fn nothing(&self) -> Failure {
        Failure::new(
            Exit::NoVerdict,
            "fetch the verdicts",
            format!(
                "there is no completed score of {} against {}",
                self.head, self.base
            ),
            "pass --wait TIME to wait for one, or --or-score to ask for one",
        )
    }

    fn waited(&self, wait: Duration) -> Failure {
        Failure::new(
            Exit::NoVerdict,
            "fetch the verdicts",
            format!(
                "after {} s there is no completed score of {} against {}",
                wait.as_secs(),
                self.head,
                self.base
            ),
            "ask again; a score that was begun goes on meanwhile",
        )
    }
}
