//! `list`, `watch` and `cancel`: scores that are there already.

use super::columns::aligned;
use super::conclude::Conclusion;
use super::flaky;
use crate::cli;
use crate::config::Settings;
use crate::console::{Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress::{Progress, score_json, word};
use crate::remote::{ListFilter, Remote, rfc3339, score_name};
use crate::scoring::{expected_of, follow};
use serde_json::{Value, json};
use tribunal_core::text::shown;
use tribunal_proto::v1::{Score, ScoreState};

/// The scores of a repository, or their mixed cases.
pub(super) async fn run(
    args: &cli::List,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    if args.flaky {
        return flaky::run(args.limit, settings, console).await;
    }
    let repo = settings.repo()?;
    let remote = Remote::connect(settings).await?;
    let filter = ListFilter {
        head: args.head.clone(),
        base: args.base.clone(),
        state: args
            .state
            .map_or(ScoreState::Unspecified, |state| match state {
                cli::State::Queued => ScoreState::Queued,
                cli::State::Running => ScoreState::Running,
                cli::State::Completed => ScoreState::Completed,
                cli::State::Aborted => ScoreState::Aborted,
            }),
        limit: args.limit,
    };
    let scores = remote.list(repo, &filter).await?;
    let documents: Vec<Value> = scores.iter().map(score_json).collect();
    console.json(&json!({"scores": documents}));
    if scores.is_empty() {
        console.note(&format!("no scores of {repo}"));
    }
    for line in table(&scores, console) {
        console.say(&line);
    }
    Ok(Exit::MergeOk)
}

/// A header on a terminal, then one line a score; columns are plain words, so that `awk` finds them elsewhere.
fn table(scores: &[Score], console: &Console) -> Vec<String> {
    let mut rows: Vec<[String; 6]> = scores.iter().map(row).collect();
    if console.out_audience() == crate::console::Audience::Person && !rows.is_empty() {
        let header = ["SCORE", "STATE", "VERDICTS", "HEAD", "BASE", "ASKED"].map(str::to_owned);
        rows.insert(0, header);
    }
    rows.iter()
        .zip(aligned(&rows))
        .map(|(row, line)| {
            let tone = if row[0] == "SCORE" {
                Some(Tone::Strong)
            } else if row[2] == "PASS,PASS,PASS" {
                Some(Tone::Good)
            } else if row[2].contains("FAIL") {
                Some(Tone::Bad)
            } else {
                None
            };
            tone.map_or(line.clone(), |tone| console.for_out(tone, &line))
        })
        .collect()
}

fn row(score: &Score) -> [String; 6] {
    let id = score.name.rsplit('/').next().unwrap_or_default();
    let state = match score.state() {
        ScoreState::Unspecified => "unknown".to_owned(),
        ScoreState::Queued => format!("queued:{}", score.queue_position),
        ScoreState::Running => "running".to_owned(),
        ScoreState::Completed => "completed".to_owned(),
        ScoreState::Aborted => {
            let code = score.abort.as_ref().map_or("", |abort| &abort.code);
            format!("aborted:{}", shown(code, 40))
        }
    };
    let words = score.words.as_ref().map_or("-".to_owned(), |words| {
        [
            words.src_score(),
            words.oracle_integrity(),
            words.flake_lease(),
        ]
        .map(word)
        .join(",")
    });
    let asked = score.create_time.as_ref().and_then(rfc3339);
    [
        shown(id, 40),
        state,
        words,
        shown(&score.head, 12),
        shown(&score.base, 12),
        asked.unwrap_or_else(|| "-".to_owned()),
    ]
}

/// Follow a score to its end; ends as `score` would.
pub(super) async fn watch(
    args: &cli::Named,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let name = score_name(&args.name, settings.known_repo())?;
    let remote = Remote::connect(settings).await?;
    let score = remote.score(&name).await?;
    let progress = Progress::on(console);
    progress.created(&score, console);
    let followed = follow(&remote, &name, &progress, console).await;
    progress.finish();
    let files = followed?;
    let expected = expected_of(&name, &score)?;
    Conclusion {
        name: &name,
        files,
        out: None,
        expected,
        max_chars: 4000,
    }
    .tell(&remote, settings, console)
    .await
}

/// End a score.
pub(super) async fn cancel(
    args: &cli::Named,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let name = score_name(&args.name, settings.known_repo())?;
    let remote = Remote::connect(settings).await?;
    let score = remote.cancel(&name).await?;
    console.json(&score_json(&score));
    console.say(&match score.state() {
        ScoreState::Completed => format!("{name} had ended already: completed"),
        ScoreState::Aborted => {
            let code = score
                .abort
                .as_ref()
                .map_or("cancelled", |abort| &abort.code);
            format!("{name} has ended: {}", shown(code, 40))
        }
        ScoreState::Queued | ScoreState::Running | ScoreState::Unspecified => {
            format!("{name} is being ended")
        }
    });
    Ok(Exit::MergeOk)
}
