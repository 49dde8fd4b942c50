//! How a score goes on, for whoever looks: a bar on a terminal, plain lines elsewhere, events for programs, steps for a
//! caller in this process.
//!
//! Never writes to stdout unless JSON was asked for, and then events alone.

use crate::console::{Audience, Console, Format};
use crate::remote::UploadProgress;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::text::shown;
use tribunal_proto::v1::score_event::Kind;
use tribunal_proto::v1::{CasesDone, Score, ScoreEvent, VerdictWord, VerdictWords};

/// Who is shown what.
pub enum Progress {
    /// A person at a terminal.
    Bar(ProgressBar),
    /// A log.
    Lines,
    /// A program.
    Events,
    /// Whoever called.
    Caller(Listener),
}

/// Hears of each step as it happens, from whichever task tells it.
pub type Listener = Box<dyn Fn(Step<'_>) + Send + Sync>;

/// What a caller hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The score exists, under this name.
    Named(&'a str),
    /// A line worth keeping.
    Line(&'a str),
    /// The same attempt is still at work.
    Alive(&'a str),
}

impl Progress {
    /// What fits this console.
    #[must_use]
    pub fn on(console: &Console) -> Self {
        match (console.format(), console.err_audience()) {
            (Format::Json, _) => Self::Events,
            (Format::Text, Audience::Program) => Self::Lines,
            (Format::Text, Audience::Person) => {
                let bar = ProgressBar::new_spinner();
                bar.enable_steady_tick(Duration::from_millis(120));
                Self::Bar(bar)
            }
        }
    }

    /// An upload begins. The answer is told as bytes leave.
    pub fn uploading(&self, commits: u64, bytes: u64, console: &mut Console) -> UploadProgress {
        match self {
            Self::Bar(bar) => {
                bar.set_style(style(
                    "{spinner} sending {msg} [{bar:30}] {bytes}/{total_bytes}",
                ));
                bar.set_length(bytes);
                bar.set_message(plural(commits, "commit"));
                let bar = bar.clone();
                Arc::new(move |sent| bar.set_position(sent))
            }
            Self::Lines => {
                console.note(&format!(
                    "sending {} ({bytes} bytes)",
                    plural(commits, "commit")
                ));
                Arc::new(|_| {})
            }
            Self::Events => {
                console.json(&json!({"event": "uploading", "commits": commits, "bytes": bytes}));
                Arc::new(|_| {})
            }
            Self::Caller(listener) => {
                listener(Step::Line(&format!(
                    "sending {}",
                    plural(commits, "commit")
                )));
                Arc::new(|_| {})
            }
        }
    }

    /// The score exists.
    pub fn created(&self, score: &Score, console: &mut Console) {
        match self {
            Self::Bar(bar) => {
                bar.set_style(style("{spinner} {msg}"));
                bar.set_message(format!("asked for {}", shown(&score.name, 120)));
            }
            Self::Lines => console.note(&format!("asked for {}", shown(&score.name, 120))),
            Self::Events => {
                let mut event = score_json(score);
                event["event"] = "score".into();
                console.json(&event);
            }
            Self::Caller(listener) => listener(Step::Named(&score.name)),
        }
    }

    /// Something happened to it.
    pub fn event(&self, event: &ScoreEvent, console: &mut Console) {
        match self {
            Self::Bar(bar) => on_bar(bar, event),
            Self::Lines => {
                if let Some(line) = line_of(event) {
                    console.note(&line);
                }
            }
            Self::Events => {
                if let Some(event) = json_of(event) {
                    console.json(&event);
                }
            }
            Self::Caller(listener) => {
                if let Some(line) = line_of(event) {
                    listener(Step::Line(&line));
                } else if let Some(Kind::CasesDone(cases)) = &event.kind {
                    listener(Step::Alive(&cases_done(cases)));
                }
            }
        }
    }

    /// Nothing more comes.
    pub fn finish(&self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Lines | Self::Events | Self::Caller(_) => {}
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

fn on_bar(bar: &ProgressBar, event: &ScoreEvent) {
    let attempts = || style("{spinner} {msg} [{bar:30}] {pos}/{len} attempts");
    match &event.kind {
        Some(Kind::AttemptStarted(attempt)) => {
            bar.set_style(attempts());
            bar.set_length(u64::from(attempt.total));
            bar.set_position(u64::from(attempt.index));
            bar.set_message(lane(&attempt.lane));
        }
        Some(Kind::CasesDone(cases)) => {
            bar.set_message(cases_done(cases));
        }
        Some(Kind::AttemptEnded(attempt)) => {
            bar.set_style(attempts());
            bar.set_length(u64::from(attempt.total));
            bar.set_position(u64::from(attempt.index) + 1);
            bar.set_message(lane(&attempt.lane));
        }
        Some(
            Kind::Queued(_)
            | Kind::Preparing(_)
            | Kind::Judged(_)
            | Kind::Heartbeat(_)
            | Kind::Completed(_)
            | Kind::Aborted(_),
        )
        | None => {
            if let Some(line) = line_of(event) {
                bar.set_style(style("{spinner} {msg}"));
                bar.set_message(line);
            }
        }
    }
}

/// `sealed cases · 3/9 cases`.
fn cases_done(cases: &CasesDone) -> String {
    let total = if cases.total == 0 {
        String::new()
    } else {
        format!("/{}", cases.total)
    };
    format!("{} · {}{total} cases", lane(&cases.lane), cases.done)
}

/// One line for a log; cases and heartbeats are not worth one.
fn line_of(event: &ScoreEvent) -> Option<String> {
    Some(match event.kind.as_ref()? {
        Kind::Queued(queued) => format!("waiting, number {} in the queue", queued.position),
        Kind::Preparing(preparing) => shown(&preparing.stage, 100),
        Kind::AttemptStarted(_) | Kind::CasesDone(_) | Kind::Heartbeat(_) => return None,
        Kind::AttemptEnded(attempt) => format!(
            "{}: attempt {} of {} is over{}",
            lane(&attempt.lane),
            attempt.index + 1,
            attempt.total,
            if attempt.stored { " (stored)" } else { "" }
        ),
        Kind::Judged(_) => "judged".to_owned(),
        Kind::Completed(_) | Kind::Aborted(_) => return None,
    })
}

fn lane(name: &str) -> String {
    match name {
        "property" => "sealed cases".to_owned(),
        "merge" => "touched tests".to_owned(),
        "proposed" => "proposed tests".to_owned(),
        "lease-side" => "leased cases".to_owned(),
        "base-collection" => "base's cases".to_owned(),
        other => shown(other, 30),
    }
}

/// One event for a program; heartbeats and the ends are told elsewhere.
fn json_of(event: &ScoreEvent) -> Option<Value> {
    let mut value = match event.kind.as_ref()? {
        Kind::Queued(queued) => json!({"event": "queued", "position": queued.position}),
        Kind::Preparing(preparing) => json!({"event": "preparing", "stage": preparing.stage}),
        Kind::AttemptStarted(attempt) => json!({
            "event": "attempt-started",
            "lane": attempt.lane, "index": attempt.index, "total": attempt.total,
        }),
        Kind::CasesDone(cases) => json!({
            "event": "cases-done",
            "lane": cases.lane, "index": cases.index, "done": cases.done, "total": cases.total,
        }),
        Kind::AttemptEnded(attempt) => json!({
            "event": "attempt-ended",
            "lane": attempt.lane, "index": attempt.index, "total": attempt.total,
            "stored": attempt.stored,
        }),
        Kind::Judged(judged) => {
            json!({"event": "judged", "words": words_json(judged.words.as_ref())})
        }
        Kind::Heartbeat(_) | Kind::Completed(_) | Kind::Aborted(_) => return None,
    };
    value["sequence"] = event.sequence.into();
    Some(value)
}

/// A word as the files have it; empty where the server says none.
#[must_use]
pub fn word(word: VerdictWord) -> &'static str {
    match word {
        VerdictWord::Unspecified => "",
        VerdictWord::Pass => "PASS",
        VerdictWord::Fail => "FAIL",
        VerdictWord::NotRun => "NOT_RUN",
    }
}

/// The three words for programs; `null` before they are known.
#[must_use]
pub fn words_json(words: Option<&VerdictWords>) -> Value {
    words.map_or(Value::Null, |words| {
        json!({
            "src_score": word(words.src_score()),
            "oracle_integrity": word(words.oracle_integrity()),
            "flake_lease": word(words.flake_lease()),
        })
    })
}

/// A score for programs.
#[must_use]
pub fn score_json(score: &Score) -> Value {
    use tribunal_proto::v1::{ChangeSet, ScoreState};
    let time = |time: &Option<_>| time.as_ref().and_then(crate::remote::rfc3339);
    json!({
        "name": score.name,
        "head": score.head,
        "base": score.base,
        "base_tip": score.base_tip,
        "state": match score.state() {
            ScoreState::Unspecified => "",
            ScoreState::Queued => "queued",
            ScoreState::Running => "running",
            ScoreState::Completed => "completed",
            ScoreState::Aborted => "aborted",
        },
        "queue_position": score.queue_position,
        "words": words_json(score.words.as_ref()),
        "abort": score.abort.as_ref().map(|a| json!({"code": a.code, "message": a.message})),
        "change_set": match score.change_set() {
            ChangeSet::Unspecified => "",
            ChangeSet::Agent => "agent",
            ChangeSet::Human => "human",
        },
        "creator": score.creator,
        "fresh": score.fresh,
        "create_time": time(&score.create_time),
        "start_time": time(&score.start_time),
        "end_time": time(&score.end_time),
    })
}

/// `1 commit`, `2 commits`.
#[must_use]
pub fn plural(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;
    use crate::console::tests::kept;
    use tribunal_proto::v1::{AttemptEnded, Heartbeat, ScorePreparing, ScoreQueued};

    fn events() -> Vec<ScoreEvent> {
        [
            Kind::Queued(ScoreQueued { position: 2 }),
            Kind::Preparing(ScorePreparing {
                stage: "a\u{1b}[31m\nroom".to_owned(),
            }),
            Kind::CasesDone(CasesDone {
                lane: "property".to_owned(),
                index: 0,
                done: 3,
                total: 9,
            }),
            Kind::AttemptEnded(AttemptEnded {
                lane: "property".to_owned(),
                index: 0,
                total: 7,
                stored: true,
            }),
            Kind::Heartbeat(Heartbeat {}),
        ]
        .into_iter()
        .zip(1..)
        .map(|(kind, sequence)| ScoreEvent {
            sequence,
            time: None,
            kind: Some(kind),
        })
        .collect()
    }

    #[test]
    fn events_are_pure_json_one_a_line() {
        let (mut console, out, err) = kept(Format::Json);
        let progress = Progress::on(&console);
        progress.uploading(1, 100, &mut console)(50);
        progress.created(&Score::default(), &mut console);
        for event in events() {
            progress.event(&event, &mut console);
        }
        progress.finish();
        let names: Vec<String> = out
            .text()
            .lines()
            .map(|l| {
                serde_json::from_str::<Value>(l).unwrap()["event"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        assert_eq!(
            names,
            [
                "uploading",
                "score",
                "queued",
                "preparing",
                "cases-done",
                "attempt-ended"
            ]
        );
        assert_eq!(err.text(), "");
    }

    #[test]
    fn a_log_gets_lines_on_stderr_and_nothing_on_stdout() {
        let (mut console, out, err) = kept(Format::Text);
        let progress = Progress::on(&console);
        assert!(matches!(progress, Progress::Lines));
        for event in events() {
            progress.event(&event, &mut console);
        }
        assert_eq!(out.text(), "");
        assert_eq!(
            err.text(),
            "waiting, number 2 in the queue\na\\u{1b}[31m\\nroom\nsealed cases: attempt 1 of 7 is over (stored)\n"
        );
    }
}
