//! One attempt in parts: the split files and the shared ones are run one after the other, their facts made one again.
//!
//! Never decides which file is which: that is the policy's list. The first end that is no finish is the attempt's.

use super::{AttemptOrder, RunOrder};
use std::collections::HashMap;
use tribunal_core::id::{NodeId, RepoPath};
use tribunal_core::outcome::{AttemptFacts, Canaries, End, Lane};
use tribunal_core::policy::Policy;
use tribunal_core::statement::Isolation;

/// User ids that an attempt may need: an oracle's and a product's, for two parts, each made twice if the machine starves
/// it.
pub(crate) const UIDS_AN_ATTEMPT: u32 = 8;

/// Parts that wait in a room, at most: each holds memory of its own.
const AHEAD: usize = 16;

/// How a sealed file runs under a policy.
pub(crate) fn isolation(policy: &Policy, file: &RepoPath) -> Isolation {
    if policy.runner.shared.contains(file) {
        Isolation::Shared
    } else {
        Isolation::Split
    }
}

/// The parts of an attempt, in their order; at least one.
pub(crate) fn parts(run: &RunOrder, attempt: &AttemptOrder) -> Vec<Isolation> {
    let wanted = |file: &&RepoPath| match &attempt.only {
        None => true,
        Some(only) => only.iter().any(|node| file_of(node) == file.as_str()),
    };
    let has = |part| {
        let mut files = run.files.iter().filter(wanted);
        files.any(|file| isolation(&run.policy, file) == part)
    };
    match (has(Isolation::Split), has(Isolation::Shared)) {
        (true, true) => vec![Isolation::Split, Isolation::Shared],
        (false, true) => vec![Isolation::Shared],
        (true, false) | (false, false) => vec![Isolation::Split],
    }
}

/// Parts that a room can make ready before its src is known: those to come first, by their starts, where every file is
/// split. With a shared file the product is imported into the same process, and nothing goes before the order.
pub(crate) fn ahead(run: &RunOrder) -> Vec<u32> {
    let all_split = run
        .files
        .iter()
        .all(|file| isolation(&run.policy, file) == Isolation::Split);
    if !all_split {
        return Vec::new();
    }
    let sequel = run.sequel.iter().flat_map(|sequel| &sequel.attempts);
    let all = run.attempts.iter().chain(sequel);
    all.map(|attempt| attempt.start).take(AHEAD).collect()
}

/// Whether a part that follows is still to be run. What base has must be known whole, or a case that nobody expects could
/// go missing on head.
pub(crate) fn goes_on(lane: Lane, so_far: &AttemptFacts) -> bool {
    so_far.end.end == End::Finished || lane == Lane::BaseCollection
}

/// The facts of an attempt whose parts these are, cases in manifest order.
pub(crate) fn joined(
    files: &[RepoPath],
    first: AttemptFacts,
    second: AttemptFacts,
) -> AttemptFacts {
    let places: HashMap<&str, usize> = files
        .iter()
        .enumerate()
        .map(|(place, file)| (file.as_str(), place))
        .collect();
    let place = |file: &str| places.get(file).copied().unwrap_or(files.len());
    let (mut facts, other) = (first, second);
    facts.collected.extend(other.collected);
    facts
        .collected
        .sort_by_key(|case| place(case.file.as_str()));
    facts.collection_errors.extend(other.collection_errors);
    facts
        .collection_errors
        .sort_by_key(|error| place(error.file.as_str()));
    facts.silences.extend(other.silences);
    facts
        .silences
        .sort_by_key(|silence| place(silence.file.as_str()));
    facts.cases.extend(other.cases);
    facts.cases.sort_by_key(|case| place(file_of(&case.node)));
    facts.tamper.extend(other.tamper);
    facts.canaries = Canaries {
        run: facts.canaries.run.saturating_add(other.canaries.run),
        passed: facts.canaries.passed.saturating_add(other.canaries.passed),
    };
    let (one, two) = (&facts.end, &other.end);
    let (wall_ms, cpu_ms) = (one.wall_ms + two.wall_ms, one.cpu_ms + two.cpu_ms);
    let run_delay_ms = one.run_delay_ms + two.run_delay_ms;
    let oom_kills = one.oom_kills + two.oom_kills;
    let output_bytes = one.output_bytes + two.output_bytes;
    if facts.end.end == End::Finished {
        facts.end = other.end;
    }
    facts.end.wall_ms = wall_ms;
    facts.end.cpu_ms = cpu_ms;
    facts.end.run_delay_ms = run_delay_ms;
    facts.end.oom_kills = oom_kills;
    facts.end.output_bytes = output_bytes;
    facts
}

fn file_of(node: &NodeId) -> &str {
    let text = node.as_str();
    text.split_once("::").map_or(text, |(file, _)| file)
}
