//! One attempt on base, and what it did not reach: run anew after each case that ended it.
//!
//! A case that takes too long or leaves the interpreter ends its attempt, and takes every later file along; which of those
//! files need the product beside them would stay unknown. What comes of it is no attempt that anything is judged by: it
//! only says how each case fares when the ones before it are out of its way.

use super::base::NAMES;
use super::evidence::Run;
use super::running::Keeping;
use crate::sandbox::{AttemptOrder, RunOrder};
use std::collections::HashSet;
use tribunal_core::id::NodeId;
use tribunal_core::outcome::AttemptFacts;
use tribunal_core::reason::Aborted;

/// How often an attempt is taken up again: whoever has more such cases hears of the first ones.
const TIMES: usize = 24;

impl Run<'_> {
    /// Take up what `facts` did not reach, by orders like the one that it was made by.
    pub(super) async fn resumed(
        &self,
        mut facts: AttemptFacts,
        order: impl Fn() -> Result<RunOrder, Aborted>,
    ) -> Result<AttemptFacts, Aborted> {
        for _ in 0..TIMES {
            let left = left(&facts);
            if left.is_empty() {
                break;
            }
            let mut order = order()?;
            for attempt in &mut order.attempts {
                *attempt = AttemptOrder {
                    only: Some(left.clone()),
                    ..attempt.clone()
                };
            }
            let ran = self.run(order, Keeping::Silence).await?.facts;
            let Some(more) = ran.attempts.into_iter().next() else {
                break;
            };
            if more.cases.is_empty() {
                break;
            }
            facts.cases.extend(more.cases);
            facts.end = more.end;
        }
        Ok(facts)
    }
}

/// The cases that were not begun, as many as one order names.
fn left(facts: &AttemptFacts) -> Vec<NodeId> {
    let begun: HashSet<&NodeId> = facts.cases.iter().map(|case| &case.node).collect();
    let mut length = 0;
    let names = facts.collected.iter().map(|case| &case.node);
    names
        .filter(|node| !begun.contains(node))
        .take_while(|node| {
            length += node.as_str().len() + 8;
            length <= NAMES
        })
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use serde_json::json;

    fn facts(begun: &[&str]) -> AttemptFacts {
        let collected = ["a", "b", "c", "d"].map(|name| {
            json!({ "node": format!("t.py::{name}"), "file": "t.py", "qualname": name, "marks": [] })
        });
        let cases: Vec<_> = begun
            .iter()
            .map(|name| json!({ "node": format!("t.py::{name}"), "phases": [] }))
            .collect();
        serde_json::from_value(json!({
            "index": 0, "lane": "base-collection", "start": 0,
            "pins": { "seed": 1, "hash_seed": 0, "clock": "2026-09-12T00:00:00Z", "source_date_epoch": 0 },
            "collected": collected, "collection_errors": [], "silences": [], "cases": cases,
            "end": { "end": "case-timeout", "wall_ms": 1, "cpu_ms": 1, "run_delay_ms": 0, "oom_kills": 0, "output_bytes": 0 },
        }))
        .unwrap()
    }

    fn names(facts: &AttemptFacts) -> Vec<String> {
        left(facts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_was_not_begun_is_left() {
        assert_eq!(names(&facts(&["a", "b"])), ["t.py::c", "t.py::d"]);
        // A part of its own may have come further.
        assert_eq!(names(&facts(&["a", "d"])), ["t.py::b", "t.py::c"]);
        assert_eq!(names(&facts(&["a", "b", "c", "d"])), [""; 0]);
    }
}
