//! `score` and `score_status`: a score is asked for and followed, within a wait that has an end.

use super::Sources;
use super::answers::{ScoreAnswer, State};
use super::arguments::{ScoreArguments, StatusArguments};
use super::console;
use super::telling::{Audience, Name, Telling};
use crate::config::{Needs, Settings};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::{OutFile, publish};
use crate::progress::Progress;
use crate::remote::{End, Remote, score_name};
use crate::scoring::{Asked, Concluded, Subject, Which, expected_of, follow};
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;
use tribunal_core::id::CommitId;
use tribunal_core::text::shown;
use tribunal_proto::v1::{Score, ScoreState};

/// How long a last look at a score may take whose wait is over.
const LOOK: Duration = Duration::from_secs(5);

/// A workspace that an agent named.
///
/// # Errors
/// It is none.
pub(super) fn workspace(named: Option<&str>) -> Result<Workspace, Failure> {
    let folder = Path::new(named.unwrap_or("."));
    let found = if folder.is_dir() {
        Workspace::require(folder).map_err(Failure::from)
    } else {
        let why = format!("{} is no folder", shown(&folder.to_string_lossy(), 300));
        Err(Failure::usage("read the git workspace", why, ""))
    };
    found.map_err(|failure| {
        let failure = Failure {
            next: "pass workspace: the path of a git checkout with the commit to score".to_owned(),
            ..failure
        };
        failure.coded("bad-workspace")
    })
}

/// A commit's full id, where one is named.
pub(super) fn commit(named: Option<&str>, field: &str) -> Result<Option<CommitId>, Failure> {
    let parsed = named.map(str::parse).transpose();
    parsed.map_err(|_| {
        Failure::usage(
            format!("read {field}"),
            format!(
                "{} is not a full commit id",
                shown(named.unwrap_or(""), 100)
            ),
            "give 40 or 64 hex digits, as `git rev-parse` prints them",
        )
    })
}

/// Ask for a score and wait for its end.
pub(super) async fn score(
    arguments: ScoreArguments,
    sources: &Sources,
    audience: Audience,
) -> ScoreAnswer {
    let name = Name::default();
    let wait = Duration::from_secs(arguments.wait_seconds);
    let (telling, progress) = Telling::to(audience, &name);
    let work = async {
        let asked = ask(&arguments, sources, &progress);
        let ended = timeout(wait, asked).await;
        drop(progress);
        match ended {
            Ok(ended) => ended,
            Err(_) => Ok(waited(sources, &name, wait).await?),
        }
    };
    let (ended, ()) = tokio::join!(work, telling.run());
    ended.unwrap_or_else(|failure| failed(&name, &failure))
}

async fn ask(
    arguments: &ScoreArguments,
    sources: &Sources,
    progress: &Progress,
) -> Result<ScoreAnswer, Failure> {
    let settings = sources.settings(Needs::Server)?;
    let workspace = workspace(arguments.workspace.as_deref())?;
    let base = commit(arguments.base.as_deref(), "base")?;
    let out = out_folder(&workspace, arguments);
    let revision = arguments.head.as_deref().unwrap_or("HEAD");
    let which = if arguments.worktree {
        Which::Worktree(revision)
    } else {
        Which::Revision(revision)
    };
    let subject = Subject::of(workspace, which, &out)?;
    let remote = Remote::connect(&settings).await?;
    let asked = Asked {
        head: subject.head(),
        base: base.as_ref(),
        fresh: false,
        lane: None,
    };
    let created = asked
        .create(
            &remote,
            &settings,
            Some(subject.workspace()),
            progress,
            &mut console(),
        )
        .await?;
    let files = follow(&remote, &created.name, progress, &mut console()).await?;
    let mut answer = concluded(&created, &files, &remote, &settings).await?;
    // A folder that cannot be written must not cost the verdict.
    answer = match publish(&out, &files) {
        Ok(()) => answer.kept_in(&out),
        Err(error) => answer.warned(Failure::from(error).to_string()),
    };
    Ok(match subject.left_out() {
        Some(left_out) => answer.warned(format!("{left_out}; commit it, or pass worktree")),
        None => answer,
    })
}

fn out_folder(workspace: &Workspace, arguments: &ScoreArguments) -> PathBuf {
    let given = Path::new(arguments.workspace.as_deref().unwrap_or("."));
    let out = arguments.out.as_deref().unwrap_or("ci_out");
    workspace.top().unwrap_or(given).join(out)
}

/// Look at a score, and wait for its end where that is asked for.
pub(super) async fn status(
    arguments: StatusArguments,
    sources: &Sources,
    audience: Audience,
) -> ScoreAnswer {
    let known = sources
        .settings(Needs::Server)
        .and_then(|settings| score_name(&arguments.score, settings.known_repo()));
    let name = known.as_deref().map(Name::of).unwrap_or_default();
    let wait = Duration::from_secs(arguments.wait_seconds);
    let (telling, progress) = Telling::to(audience, &name);
    let work = async {
        let full_name = known.clone()?;
        let seen = look(&full_name, sources, &progress, wait).await;
        drop(progress);
        seen
    };
    let (seen, ()) = tokio::join!(work, telling.run());
    seen.unwrap_or_else(|failure| failed(&name, &failure))
}

async fn look(
    name: &str,
    sources: &Sources,
    progress: &Progress,
    wait: Duration,
) -> Result<ScoreAnswer, Failure> {
    let settings = sources.settings(Needs::Server)?;
    let remote = Remote::connect(&settings).await?;
    let score = remote.score(name).await?;
    let files = match score.state() {
        ScoreState::Completed => remote.verdicts(name).await?,
        ScoreState::Aborted => return Err(aborted(&score)),
        ScoreState::Queued | ScoreState::Running | ScoreState::Unspecified if wait.is_zero() => {
            return Ok(ScoreAnswer::going_on(&score));
        }
        ScoreState::Queued | ScoreState::Running | ScoreState::Unspecified => {
            let mut console = console();
            let followed = follow(&remote, name, progress, &mut console);
            match timeout(wait, followed).await {
                Ok(files) => files?,
                Err(_) => return Ok(ScoreAnswer::going_on(&remote.score(name).await?)),
            }
        }
    };
    concluded(&score, &files, &remote, &settings).await
}

/// The wait is over before the score is. One last look says where it is, or that its server is away.
async fn waited(sources: &Sources, name: &Name, wait: Duration) -> Result<ScoreAnswer, Failure> {
    let Some(name) = name.get() else {
        return Err(Failure::new(
            Exit::NoVerdict,
            "ask for a score",
            format!("after {} s the server has not made one", wait.as_secs()),
            "call score again, with a longer wait_seconds",
        ));
    };
    let settings = sources.settings(Needs::Server)?;
    let seen = async {
        let remote = Remote::connect(&settings).await?;
        remote.score(&name).await
    };
    match timeout(LOOK, seen).await {
        Ok(score) => Ok(ScoreAnswer::going_on(&score?)),
        Err(_) => Err(Failure::new(
            Exit::Unreachable,
            format!("look at {name}"),
            "the server does not answer",
            "call score_status with this name once it does",
        )),
    }
}

async fn concluded(
    score: &Score,
    files: &[OutFile],
    remote: &Remote,
    settings: &Settings,
) -> Result<ScoreAnswer, Failure> {
    let expected = expected_of(&score.name, score)?;
    let concluded = Concluded::of(files, &expected, remote, settings).await?;
    Ok(ScoreAnswer::completed(score, &concluded))
}

fn aborted(score: &Score) -> Failure {
    let (code, message) = score
        .abort
        .as_ref()
        .map_or(("cancelled", ""), |abort| (&abort.code, &abort.message));
    End::as_failure(code, &shown(message, 1000))
}

/// The call came to nothing. What ended without a verdict says so with a code that only the server gives.
fn failed(name: &Name, failure: &Failure) -> ScoreAnswer {
    let is_end = failure.exit == Exit::NoVerdict && failure.code.is_some();
    let name = name.get();
    let state = match &name {
        Some(_) if is_end => State::Aborted,
        Some(_) | None => State::Unknown,
    };
    ScoreAnswer::failed(name, state, failure)
}
