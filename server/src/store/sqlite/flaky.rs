//! Mixed cases: the rows of each judgement, and the list that all of them make.

use super::super::StoreError;
use super::super::flaky::{FLAKY_SCORES, FlakyCase, FlakyFilter, MixedCase, Sight};
use super::broken;
use super::value::{count, json, lane_of, lane_word, parsed, signed, time, to_json, word};
use rusqlite::{Connection, Row, params};
use tribunal_core::id::{NodeId, ScoreId, TokenId};

/// Inside a write transaction.
pub(super) fn add(c: &Connection, score: i64, mixed: &[MixedCase]) -> Result<(), StoreError> {
    for case in mixed {
        c.execute(
            "INSERT INTO mixed_cases
                 (score, node, agent_node, digest, lane, content, attempts, failures, blame)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                score,
                case.node.as_str(),
                case.for_agent.as_ref().map(NodeId::as_str),
                case.digest,
                lane_word(case.evidence.lane),
                case.evidence.content.as_str(),
                case.attempts,
                case.failures,
                to_json(&case.blame)?
            ],
        )
        .map_err(broken)?;
    }
    Ok(())
}

/// What of a sight the queries need: the column of names, and the token.
fn through(sight: &Sight) -> (&'static str, Option<&str>) {
    match sight {
        Sight::Whole => ("node", None),
        Sight::Agent(token) => ("agent_node", Some(TokenId::as_str(token))),
    }
}

/// Of a content that several judgements saw the last counts: it saw what those before it did.
pub(super) fn list(c: &Connection, filter: &FlakyFilter) -> Result<Vec<FlakyCase>, StoreError> {
    let (name, token) = through(&filter.sight);
    let mut statement = c
        .prepare_cached(&format!(
            "WITH seen AS (
                 SELECT m.*, m.{name} AS name, s.ended AS ended
                 FROM scores s JOIN mixed_cases m ON m.score = s.number
                 WHERE s.repository = ?1 AND (?2 IS NULL OR s.token = ?2) AND m.{name} IS NOT NULL
             ), contents AS (
                 SELECT name, digest, lane, max(number), attempts, failures
                 FROM seen GROUP BY name, digest, lane, node, content
             ), totals AS (
                 SELECT name, digest, lane, sum(attempts) AS attempts, sum(failures) AS failures
                 FROM contents GROUP BY name, digest, lane
             ), spans AS (
                 SELECT name, digest, lane, max(number) AS number, min(ended) AS first,
                        max(ended) AS last, count(DISTINCT score) AS scores
                 FROM seen GROUP BY name, digest, lane
             )
             SELECT spans.*, totals.attempts, totals.failures, newest.blame
             FROM spans JOIN totals USING (name, digest, lane)
             JOIN mixed_cases newest ON newest.number = spans.number
             WHERE spans.number < ?3 ORDER BY spans.number DESC LIMIT ?4"
        ))
        .map_err(broken)?;
    let rows = statement
        .query_map(
            params![
                filter.repository.as_str(),
                token,
                filter.before.map_or(i64::MAX, signed),
                filter.limit
            ],
            case_of,
        )
        .map_err(broken)?;
    let mut cases = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)?;
    for case in &mut cases {
        case.scores = scores(c, filter, case)?;
    }
    Ok(cases)
}

fn case_of(row: &Row<'_>) -> rusqlite::Result<FlakyCase> {
    Ok(FlakyCase {
        number: count(row, "number")?,
        node: parsed(row, "name")?,
        digest: row.get("digest")?,
        lane: word(row, "lane", lane_of)?,
        first: time(row, "first")?,
        last: time(row, "last")?,
        attempts: count(row, "attempts")?,
        failures: count(row, "failures")?,
        blame: json(row, "blame")?,
        scores: Vec::new(),
        score_count: count(row, "scores")?,
    })
}

fn scores(
    c: &Connection,
    filter: &FlakyFilter,
    case: &FlakyCase,
) -> Result<Vec<ScoreId>, StoreError> {
    let (name, token) = through(&filter.sight);
    let mut statement = c
        .prepare_cached(&format!(
            "SELECT DISTINCT s.id, s.number FROM mixed_cases m JOIN scores s ON s.number = m.score
             WHERE m.{name} = ?1 AND m.digest = ?2 AND m.lane = ?3
               AND s.repository = ?4 AND (?5 IS NULL OR s.token = ?5)
             ORDER BY s.number DESC LIMIT ?6"
        ))
        .map_err(broken)?;
    let rows = statement
        .query_map(
            params![
                case.node.as_str(),
                case.digest,
                lane_word(case.lane),
                filter.repository.as_str(),
                token,
                signed(FLAKY_SCORES as u64)
            ],
            |row| parsed(row, "id"),
        )
        .map_err(broken)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(broken)
}
