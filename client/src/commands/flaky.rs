//! `list --flaky`: cases that scores found mixed, over time.

use super::columns::aligned;
use crate::config::Settings;
use crate::console::{Audience, Console, Tone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::remote::{Remote, rfc3339};
use prost_types::Timestamp;
use serde_json::{Value, json};
use tribunal_core::text::shown;
use tribunal_proto::v1::FlakyCase;

/// Longest case name of the table.
const NAME: usize = 200;
/// Scores that the table names of one case.
const SCORES: usize = 3;

/// The mixed cases of a repository, the one seen last first.
pub(super) async fn run(
    limit: usize,
    settings: &Settings,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let repo = settings.repo()?;
    let remote = Remote::connect(settings).await?;
    let cases = remote.flaky(repo, limit).await?;
    let documents: Vec<Value> = cases.iter().map(document).collect();
    console.json(&json!({"cases": documents}));
    if cases.is_empty() {
        console.note(&format!("no score of {repo} found a mixed case"));
    }
    let mut rows: Vec<[String; 9]> = cases.iter().map(row).collect();
    let header = console.out_audience() == Audience::Person && !rows.is_empty();
    if header {
        let names = [
            "DIGEST", "FIRST", "LAST", "FAILED", "BOUND", "SOURCE", "OWED", "SCORES", "CASE",
        ];
        rows.insert(0, names.map(str::to_owned));
    }
    for (number, line) in aligned(&rows).into_iter().enumerate() {
        let line = match number {
            0 if header => console.for_out(Tone::Strong, &line),
            _ => line,
        };
        console.say(&line);
    }
    Ok(Exit::MergeOk)
}

fn document(case: &FlakyCase) -> Value {
    json!({
        "node": case.node_id,
        "digest": case.case_digest,
        "lane": case.lane,
        "first_seen": case.first_seen_time.as_ref().and_then(rfc3339),
        "last_seen": case.last_seen_time.as_ref().and_then(rfc3339),
        "attempts": case.attempts,
        "failures": case.failures,
        "upper_bound": case.upper_bound,
        "source": given(&case.source),
        "settled_by": given(&case.moved),
        "owed": case.owed,
        "scores": case.scores,
        "score_count": case.score_count,
    })
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// No cell holds a blank but the case's name, and that is the last.
fn row(case: &FlakyCase) -> [String; 9] {
    let word = |text: &str| shown(given(text).unwrap_or("-"), 40);
    let time = |at: &Option<Timestamp>| at.as_ref().and_then(rfc3339).unwrap_or("-".to_owned());
    let named = case.scores.iter().take(SCORES);
    let mut scores: Vec<String> = named
        .map(|name| shown(name.rsplit('/').next().unwrap_or_default(), 40))
        .collect();
    let more = usize::try_from(case.score_count)
        .unwrap_or(usize::MAX)
        .saturating_sub(scores.len());
    if more > 0 {
        scores.push(format!("+{more}"));
    }
    [
        short(&case.case_digest),
        time(&case.first_seen_time),
        time(&case.last_seen_time),
        format!("{}/{}", case.failures, case.attempts),
        format!("{:.1}%", case.upper_bound * 100.0),
        word(match case.source.as_str() {
            "" => &case.moved,
            source => source,
        }),
        word(&case.owed),
        scores.join(","),
        shown(&case.node_id, NAME),
    ]
}

/// The digest's last part, as far as it tells one from another.
fn short(digest: &str) -> String {
    let last = digest.rsplit(':').next().unwrap_or_default();
    shown(given(last.get(..12).unwrap_or(last)).unwrap_or("-"), 12)
}
