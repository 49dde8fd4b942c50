//! One case of a commit, run once with its requests going out to whoever records them: what it read comes out.
//!
//! Runs the commit's own tests on the src that would be merged, for a maintainer or an operator, in a sealed room like any
//! other. The room and this server reach nothing; `outside` is the caller's. Judges nothing, stores nothing.

use super::prepared::{Prepared, Tree};
use super::running::Keeping;
use super::{NoVerdict, Rooms};
use crate::sandbox::{AttemptOrder, Outside, RunOrder, SandboxError};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tribunal_core::cassette::{Cassette, InEffect};
use tribunal_core::id::{CommitId, Digest, NodeId, RepoName, RepoPath};
use tribunal_core::outcome::{AttemptFacts, CaseRecord, End, Lane, PhaseOutcome};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::Caller;

/// A real network is slower than a record: one case has so long.
const CASE_MS: u64 = 120_000;

/// What is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRecord {
    /// `None` is the protected tip.
    pub commit: Option<CommitId>,
    /// The case.
    pub node: NodeId,
    /// Directories as they are to be listed to it.
    pub listings: BTreeMap<String, Vec<String>>,
}

/// What a case read, beside its exchanges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The commit that was run.
    pub commit: CommitId,
    /// How it ended where it did not pass. Raw text: escape before showing.
    pub failure: Option<String>,
    /// The clock it saw.
    pub clock: Option<String>,
    /// The seed its entropy came from.
    pub rng_seed: Option<u32>,
    /// Those of the listings that it asked for.
    pub listed: Vec<String>,
    /// What could not be performed. Raw text.
    pub misses: Vec<String>,
    /// Directories it listed, whichever.
    pub listings: u32,
}

/// Record one case.
///
/// # Errors
/// Refused as an admission is, or where there is no such case; or our own trouble.
pub async fn record(
    rooms: &Rooms,
    caller: &Caller,
    repository: &RepoName,
    wanted: &ToRecord,
    outside: Arc<dyn Outside>,
    cancel: CancellationToken,
) -> Result<Recording, NoVerdict> {
    let _busy = rooms.vigil.busy(1);
    let file = file_of(&wanted.node)?;
    let commit = wanted.commit.as_ref();
    let prepared = Prepared::on(rooms, caller, repository, commit, Tree::Commit).await?;
    let run = prepared.run(rooms, &cancel);
    let image = run.image().await?;
    let tree = rooms
        .sandbox
        .seal(prepared.overlay().tree(&image.engine_id))
        .await
        .map_err(|SandboxError::Aborted(aborted)| aborted)?;
    let planned = prepared.plan.attempts().first();
    let pins = planned
        .map(|planned| planned.pins.clone())
        .ok_or_else(|| Aborted::new(AbortedCode::Internal, "a plan without attempts"))?;
    let mut policy = prepared.plan.patch().policy().clone();
    policy.runs.case_timeout_ms = policy.runs.case_timeout_ms.max(CASE_MS);
    policy.runs.attempt_timeout_ms = policy.runs.attempt_timeout_ms.max(CASE_MS);
    if !prepared.plan.files().contains(&file) && !policy.runner.shared.contains(&file) {
        // As in the merge lane: what is not sealed runs in one process with the product.
        policy.runner.shared.push(file.clone());
    }
    // What the case is said to have used of this is what it read.
    let everything = Cassette {
        test: wanted.node.clone(),
        clock: Some(policy.pins.clock.clone()),
        rng_seed: Some(policy.pins.seed.0),
        fs: wanted.listings.clone(),
        http: Vec::new(),
    };
    let order = RunOrder {
        lane: Lane::Merge,
        files: vec![file],
        policy,
        attempts: vec![AttemptOrder {
            only: Some(vec![wanted.node.clone()]),
            ..AttemptOrder::of(0, 0, pins)
        }],
        cassettes: vec![InEffect {
            path: "cassettes/recording.json".parse().map_err(internal)?,
            sha256: Digest::of(everything.to_json().as_bytes()),
            cassette: everything.clone(),
            bodies: BTreeMap::new(),
        }],
        outside: Some(outside),
        ..run.order(&image, &tree, prepared.overlay().src_tar())
    };
    let over = run.run(order, Keeping::Silence).await?;
    let facts = over.facts.attempts.first();
    let facts = facts.ok_or_else(|| internal("a run without its attempt"))?;
    read(prepared.commit.clone(), &everything, facts)
}

fn internal(why: impl ToString) -> Aborted {
    Aborted::new(AbortedCode::Internal, why.to_string())
}

fn file_of(node: &NodeId) -> Result<RepoPath, Refused> {
    let file = node.as_str().split_once("::").map(|(file, _)| file);
    file.and_then(|file| file.parse().ok()).ok_or_else(|| {
        let why = "a case is named as in tests/test_a.py::test_b";
        Refused::new(RefusedCode::InvalidArgument, why)
    })
}

/// What the one attempt says of the one case.
fn read(
    commit: CommitId,
    everything: &Cassette,
    facts: &AttemptFacts,
) -> Result<Recording, NoVerdict> {
    let Some(case) = facts.cases.iter().find(|case| case.node == everything.test) else {
        return Err(Refused::new(RefusedCode::InvalidArgument, absent(everything, facts)).into());
    };
    let told = case.cassette.clone().unwrap_or_default();
    let uses = |pin: &str| told.used.iter().any(|used| used == pin);
    let listed = everything.fs.keys();
    Ok(Recording {
        commit,
        failure: failure(case),
        clock: everything.clock.clone().filter(|_| uses("clock")),
        rng_seed: everything.rng_seed.filter(|_| uses("rng_seed")),
        listed: listed
            .filter(|directory| uses(&format!("fs:{directory}")))
            .cloned()
            .collect(),
        misses: told.misses,
        listings: case.reads.total().listings,
    })
}

fn absent(everything: &Cassette, facts: &AttemptFacts) -> String {
    if let Some(error) = facts.collection_errors.first() {
        let (kind, message) = (&error.exception.kind, &error.exception.message);
        return format!("{} does not import: {kind}: {message}", error.file);
    }
    let alike: Vec<&str> = facts
        .collected
        .iter()
        .map(|case| case.node.as_str())
        .filter(|node| node.starts_with(everything.test.as_str()))
        .take(3)
        .collect();
    match (alike.is_empty(), facts.end.end == End::Finished) {
        (false, _) => format!("a cassette is for one case: is it {}?", alike.join(", ")),
        (true, true) => format!("there is no case {}", everything.test),
        (true, false) => format!("the run ended early: {:?}", facts.end.end),
    }
}

fn failure(case: &CaseRecord) -> Option<String> {
    let failed = case
        .phases
        .iter()
        .find(|phase| phase.outcome != PhaseOutcome::Passed)?;
    Some(match (&failed.exception, &failed.skip_reason) {
        (Some(exception), _) => format!("{}: {}", exception.kind, exception.message),
        (None, Some(reason)) => format!("skipped: {reason}"),
        (None, None) => "it did not pass".to_owned(),
    })
}
