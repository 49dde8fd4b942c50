//! The list of mixed cases, without SQL.

use super::super::flaky::{FLAKY_SCORES, FlakyCase, FlakyFilter, MixedCase, Sight};
use super::super::record::ScoreRecord;
use super::Shelves;
use std::collections::BTreeMap;
use tribunal_core::id::{NodeId, ScoreId};
use tribunal_core::outcome::Lane;

/// What a mixed case is listed under.
type Listed = (NodeId, String, Lane);

impl Shelves {
    /// The list.
    pub(super) fn flaky(&self, filter: &FlakyFilter) -> Vec<FlakyCase> {
        let mut groups: BTreeMap<Listed, Vec<(&ScoreRecord, u64, &MixedCase)>> = BTreeMap::new();
        let shelves = self.scores.iter();
        for shelf in shelves.filter(|s| s.record.asked.repository == filter.repository) {
            for (number, case) in &shelf.mixed {
                let name = match &filter.sight {
                    Sight::Whole => Some(&case.node),
                    Sight::Agent(token) if shelf.record.asked.token == *token => {
                        case.for_agent.as_ref()
                    }
                    Sight::Agent(_) => None,
                };
                if let Some(name) = name {
                    let listed = (name.clone(), case.digest.clone(), case.evidence.lane);
                    let sightings = groups.entry(listed).or_default();
                    sightings.push((&shelf.record, *number, case));
                }
            }
        }
        let mut cases: Vec<FlakyCase> = groups.into_iter().filter_map(flaky_case).collect();
        cases.sort_by_key(|case| std::cmp::Reverse(case.number));
        cases.retain(|case| filter.before.is_none_or(|before| case.number < before));
        cases.truncate(filter.limit as usize);
        cases
    }
}

/// One entry of the list, from every sighting of it.
fn flaky_case(
    ((node, digest, lane), mut seen): (Listed, Vec<(&ScoreRecord, u64, &MixedCase)>),
) -> Option<FlakyCase> {
    seen.sort_by_key(|(_, number, _)| *number);
    let (_, number, newest) = *seen.last()?;
    let ended = || seen.iter().filter_map(|(score, ..)| score.ended);
    // Of a content that several judgements saw the last counts.
    let contents: BTreeMap<_, _> = seen
        .iter()
        .map(|(_, _, case)| ((&case.node, &case.evidence), *case))
        .collect();
    let mut scores: Vec<(u64, ScoreId)> = seen
        .iter()
        .map(|(score, ..)| (score.number, score.asked.id.clone()))
        .collect();
    scores.sort();
    scores.dedup();
    Some(FlakyCase {
        number,
        node,
        digest,
        lane,
        first: ended().min()?,
        last: ended().max()?,
        attempts: contents.values().map(|case| u64::from(case.attempts)).sum(),
        failures: contents.values().map(|case| u64::from(case.failures)).sum(),
        blame: newest.blame,
        score_count: scores.len() as u64,
        scores: scores
            .into_iter()
            .rev()
            .map(|(_, id)| id)
            .take(FLAKY_SCORES)
            .collect(),
    })
}
