//! Pins of cassettes that no attempt asked for: mostly a record of too much, and every one of them must be kept true.

use super::judged::{About, Ground};
use crate::cassette::InEffect;
use crate::outcome::{AttemptFacts, CassetteUse};
use crate::reason::Reason;
use std::collections::HashSet;

/// A warning for each pin that none of the attempts used in which its case ran.
pub(super) fn unused<'a>(
    cassettes: &[InEffect],
    attempts: impl Iterator<Item = &'a AttemptFacts> + Clone,
) -> Vec<Ground> {
    let mut found = Vec::new();
    for record in cassettes {
        let uses: Vec<&CassetteUse> = attempts
            .clone()
            .flat_map(|facts| &facts.cases)
            .filter(|case| case.node == record.cassette.test)
            .filter_map(|case| case.cassette.as_ref())
            .collect();
        if uses.is_empty() {
            continue;
        }
        let used: HashSet<&str> = uses
            .iter()
            .flat_map(|one| one.used.iter().map(String::as_str))
            .collect();
        for pin in record.cassette.pins().into_keys() {
            if !used.contains(pin.as_str()) {
                found.push(Ground {
                    reason: Reason::OverPinned,
                    about: About::Patch,
                    subject: Some(record.path.to_string()),
                    detail: format!(
                        "no attempt asked for its pin `{}`",
                        crate::text::shown(&pin, 200)
                    ),
                    seen: None,
                });
            }
        }
    }
    found
}
