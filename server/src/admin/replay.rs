//! `replay`: a stored score's attempts once more, those of the tests that it touched too, told one by one.
//!
//! It has rooms of its own in the engine, so that a running server neither sweeps them nor is disturbed.

use super::{AdminError, Answer, Data};
use crate::config::Config;
use crate::pipeline::{self, NoVerdict, Replayed, Rerun};
use crate::sandbox::docker::{DockerOptions, DockerSandbox};
use crate::sandbox::{MarksInMemory, Sandbox as _, SandboxError};
use crate::serve;
use crate::store::{Audience, ScoreRecord, Store};
use serde_json::{Value, json};
use std::fs::File;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tribunal_core::id::{NodeId, ScoreId};
use tribunal_core::outcome::{AttemptFacts, CollectedCase, End, Lane, Outcome, Phase, fold};
use tribunal_core::text::shown;

/// Failing cases that are named per attempt.
const NAMED: usize = 50;
/// Characters of what one of them said.
const SAID: usize = 300;

/// Run a stored score again, with the same pins. `name` is its id, or `repositories/R/scores/ID`.
///
/// # Errors
/// No such score, commits that are gone, the engine.
pub async fn replay(data: &Data, config: &Config, name: &str) -> Result<Answer, AdminError> {
    let store: Arc<dyn Store> = Arc::new(data.store()?);
    let id: ScoreId = name.rsplit('/').next().unwrap_or(name).parse()?;
    let record = store
        .score(&id)?
        .ok_or_else(|| crate::store::StoreError::Missing(format!("score {id}")))?;
    let what = "take a turn at replaying";
    let lock = File::create(data.path().join("replay.lock")).map_err(AdminError::file(what))?;
    lock.lock().map_err(AdminError::file(what))?;
    let options = DockerOptions {
        host: serve::engine_host(config),
        instance: format!("{}replay", data.instance(&*store)?),
        marks: Arc::new(MarksInMemory::default()),
        ready_rooms: 0,
        observer: crate::metrics::nobody(),
    };
    let what = "make rooms to replay in";
    let aborted = |what| move |source| AdminError::Aborted { what, source };
    let sandbox = DockerSandbox::new(options).map_err(aborted(what))?;
    let swept = |SandboxError::Aborted(source)| AdminError::Aborted { what, source };
    // What a replay that was killed left behind.
    sandbox.sweep(Some(&[])).await.map_err(swept)?;
    let repository = Arc::new(data.repository(serve::repository_settings(data, config))?);
    let rooms = serve::rooms(data, config, &store, &repository, &sandbox)?;
    let cancel = CancellationToken::new();
    let replayed = pipeline::replay(&rooms, &record.asked, cancel).await;
    sandbox.drain().await;
    let cleaned = sandbox.sweep(Some(&[])).await.map_err(swept);
    let replayed = replayed.map_err(|error| match error {
        NoVerdict::Refused(refused) => AdminError::Repository {
            what: format!("replay {id}"),
            source: refused.into(),
        },
        NoVerdict::Aborted(source) => AdminError::Aborted {
            what: "replay a score",
            source,
        },
    })?;
    cleaned?;
    let stored = inputs(&*store, &record)?;
    Ok(match replayed {
        Replayed::Barred(findings) => {
            let lines: Vec<String> = findings
                .iter()
                .map(|finding| {
                    let subject = finding.subject.as_deref().unwrap_or("-");
                    format!(
                        "{} {}: {}\n",
                        finding.reason,
                        shown(subject, SAID),
                        finding.detail
                    )
                })
                .collect();
            let text = format!(
                "{id}: nothing ran, the patch itself is barred\n{}",
                lines.concat()
            );
            Answer::lines(text, json!({ "score": id.as_str(), "findings": findings }))
        }
        Replayed::Ran(rerun) => told(&id, &rerun, &stored),
    })
}

/// What the stored statement says that the score was run with; nothing where it has none.
struct Stored {
    overlay: Option<String>,
    image: Option<String>,
    merge_overlay: Option<String>,
}

fn inputs(store: &dyn Store, record: &ScoreRecord) -> Result<Stored, AdminError> {
    let files = store.files(&record.asked.id, Audience::Operator)?;
    let statement = files.iter().find(|file| file.name == "src_score.json");
    let statement: Value = statement
        .and_then(|file| serde_json::from_slice(&file.content).ok())
        .unwrap_or_default();
    let text = |path| statement.pointer(path)?.as_str().map(str::to_owned);
    Ok(Stored {
        overlay: text("/predicate/inputs/overlay"),
        image: text("/predicate/inputs/image"),
        merge_overlay: text("/predicate/mergeLane/overlay"),
    })
}

fn told(id: &ScoreId, rerun: &Rerun, stored: &Stored) -> Answer {
    let mut text = format!("{id} again; nothing of this is evidence or signed\n");
    let merge_overlay = rerun.merge.as_ref().map(|(overlay, _)| overlay.as_str());
    for (name, now, then) in [
        ("overlay", Some(rerun.overlay.as_str()), &stored.overlay),
        ("image", Some(rerun.image.as_str()), &stored.image),
        (
            "overlay of touched tests",
            merge_overlay,
            &stored.merge_overlay,
        ),
    ] {
        if let (Some(now), Some(then)) = (now, then)
            && now != then
        {
            text.push_str(&format!(
                "not the same {name}: it was {}, it is {now}\n",
                shown(then, 100)
            ));
        }
    }
    let mut documents = Vec::new();
    for facts in &rerun.attempts {
        let cases = cases(&rerun.base.collected, facts);
        text.push_str(&attempt(facts, &cases));
        documents.push(document(facts, &cases));
    }
    let runs = rerun.merge.iter().flat_map(|(_, runs)| runs);
    for run in runs.clone() {
        // What is there is head's own: the first attempt that came to its end tells.
        let whole = run.attempts.iter().find(|a| a.end.end == End::Finished);
        let collected = whole.or(run.attempts.first()).map(|a| &a.collected);
        for facts in &run.attempts {
            let cases = cases(collected.map_or(&[], Vec::as_slice), facts);
            text.push_str(&attempt(facts, &cases));
            documents.push(document(facts, &cases));
        }
    }
    let document = json!({
        "score": id.as_str(),
        "evidence": false,
        "overlay": rerun.overlay,
        "merge_overlay": merge_overlay,
        "merge_files": runs.flat_map(|run| &run.files).collect::<Vec<_>>(),
        "image": rerun.image,
        "attempts": documents,
    });
    Answer::lines(text, document)
}

/// One attempt: how it went, and what was red.
fn attempt(facts: &AttemptFacts, cases: &[(NodeId, Outcome)]) -> String {
    let failing: Vec<&(NodeId, Outcome)> = cases
        .iter()
        .filter(|(_, outcome)| outcome.red().is_some())
        .collect();
    let lane = match facts.lane {
        Lane::HeldOut => "held-out draw",
        Lane::MustFail => "must-fail attempt",
        Lane::Merge => "merge lane attempt",
        Lane::Property
        | Lane::LeaseSide
        | Lane::Proposed
        | Lane::Perturbed
        | Lane::BaseCollection
        | Lane::Liveness => "attempt",
    };
    let pins = &facts.pins;
    let mut text = format!(
        "{lane} {}: {} of {} cases red, ended {}; seed {}, hash seed {}, clock {}, SOURCE_DATE_EPOCH {}\n",
        facts.index + 1,
        failing.len(),
        cases.len(),
        word(&facts.end.end),
        pins.seed,
        pins.hash_seed,
        pins.clock,
        pins.source_date_epoch
    );
    for (node, outcome) in failing.iter().take(NAMED) {
        let said = said(facts, node).unwrap_or_default();
        let node = shown(node.as_str(), SAID);
        text.push_str(&format!("  {} {node}{said}\n", outcome.word()));
    }
    if failing.len() > NAMED {
        text.push_str(&format!("  and {} more\n", failing.len() - NAMED));
    }
    text
}

fn document(facts: &AttemptFacts, cases: &[(NodeId, Outcome)]) -> Value {
    json!({
        "lane": facts.lane,
        "number": facts.index + 1,
        "pins": facts.pins,
        "end": facts.end,
        "cases": cases.iter().map(|(node, outcome)| json!({
            "node": node, "outcome": outcome.word(),
        })).collect::<Vec<_>>(),
        "records": facts.cases,
        "collection_errors": facts.collection_errors,
    })
}

/// What every expected case, and every one beside, did in this attempt.
fn cases(expected: &[CollectedCase], facts: &AttemptFacts) -> Vec<(NodeId, Outcome)> {
    let record = |node: &NodeId| facts.cases.iter().find(|record| record.node == *node);
    let outcome = |node: &NodeId| {
        let phases: Vec<&Phase> = record(node)
            .map(|r| r.phases.iter().collect())
            .unwrap_or_default();
        fold(&phases, facts.end.end)
    };
    let mut nodes: Vec<&NodeId> = expected.iter().map(|case| &case.node).collect();
    let known: std::collections::HashSet<&NodeId> = nodes.iter().copied().collect();
    nodes.extend(
        facts
            .cases
            .iter()
            .map(|r| &r.node)
            .filter(|node| !known.contains(node)),
    );
    nodes
        .into_iter()
        .map(|node| (node.clone(), outcome(node)))
        .collect()
}

fn said(facts: &AttemptFacts, node: &NodeId) -> Option<String> {
    let record = facts.cases.iter().find(|record| record.node == *node)?;
    let exception = record
        .phases
        .iter()
        .find_map(|phase| phase.exception.as_ref())?;
    let line = exception.message.lines().next().unwrap_or_default();
    Some(format!(
        ": {}",
        shown(&format!("{}: {line}", exception.kind), SAID)
    ))
}

fn word(end: &End) -> String {
    let word = serde_json::to_value(end).ok();
    word.and_then(|w| w.as_str().map(str::to_owned))
        .unwrap_or_default()
}
