//! Does the new product code hold against the old oracle? Entries and attempts to grounds; none means PASS.
//!
//! One ground tells one cause: a death takes the cases it kept from running with it, a file that does not import or that
//! skips itself takes its cases with it.

use super::docket::{self, Entry};
use super::judged::{About, Ground, OnBase, Origin};
use super::observed::Observed;
use super::prose;
use crate::id::NodeId;
use crate::outcome::{AttemptFacts, Class, End, Outcome, death};
use crate::reason::Reason;
use std::collections::BTreeMap;

pub(super) fn grounds(entries: &[Entry<'_>], property: &[Observed<'_>]) -> Vec<Ground> {
    let mut grounds = deaths(entries, property);
    grounds.extend(killed_children(entries, property));
    let mut groups: BTreeMap<(Reason, String), Vec<&Entry<'_>>> = BTreeMap::new();
    for entry in entries {
        let Some(code) = entry.code() else {
            continue;
        };
        match cause(entry, code, property) {
            Cause::Death => {}
            Cause::Shared(what) => groups.entry((code, what)).or_default().push(entry),
            Cause::Own => grounds.push(diagnosed(own(entry, code), entry, property)),
        }
    }
    for ((code, what), entries) in groups {
        grounds.push(shared(code, what, &entries, property));
    }
    if !entries
        .iter()
        .any(|e| e.class == Class::StablePass && e.case.origin != Origin::Foreign)
    {
        grounds.push(Ground {
            reason: Reason::NoCases,
            about: About::Case,
            subject: None,
            detail: format!(
                "none of {} sealed cases passed in every attempt",
                entries.len()
            ),
            seen: None,
        });
    }
    grounds
}

/// What lies behind a case that is held against the patch.
pub(super) enum Cause {
    /// Itself.
    Own,
    /// An attempt that died; told once.
    Death,
    /// Something it shares with others: a file, a silence, a death in some attempts only.
    Shared(String),
}

const NOT_REACHED: &str = "";

pub(super) fn cause(entry: &Entry<'_>, code: Reason, property: &[Observed<'_>]) -> Cause {
    if entry.case.origin == Origin::Foreign {
        return Cause::Own;
    }
    match entry.class {
        Class::StablePass | Class::Silenced => Cause::Own,
        Class::StableRed => {
            let first = property.first();
            if property
                .iter()
                .any(|o| death(o.facts.end.end) == Some(code))
            {
                Cause::Death
            } else if matches!(code, Reason::CollectionError | Reason::NeedsShared) {
                entry
                    .case
                    .file
                    .as_ref()
                    .map_or(Cause::Own, |file| Cause::Shared(file.to_string()))
            } else if matches!(code, Reason::MissingCase | Reason::SkipFromProduct) {
                first
                    .filter(|attempt| !attempt.reached(&entry.case.node))
                    .and_then(|attempt| attempt.covering(&entry.case))
                    .map_or(Cause::Own, |silence| {
                        Cause::Shared(silence.node.to_string())
                    })
            } else {
                Cause::Own
            }
        }
        Class::Mixed => {
            let mut others = entry
                .outcomes
                .iter()
                .zip(property)
                .filter(|(outcome, attempt)| {
                    !(attempt.facts.end.end != End::Finished
                        && !attempt.reached(&entry.case.node)
                        && outcome.red().is_some())
                });
            let first = others.next();
            let even = first.is_some_and(|(first, _)| others.all(|(other, _)| other == first));
            if even
                && entry.outcomes.iter().any(|o| o.red().is_some())
                && first.is_some_and(|(o, _)| *o == Outcome::Passed)
            {
                Cause::Shared(NOT_REACHED.to_owned())
            } else {
                Cause::Own
            }
        }
    }
}

/// With what a mixed case read, and what it owes.
pub(super) fn diagnosed(ground: Ground, entry: &Entry<'_>, attempts: &[Observed<'_>]) -> Ground {
    match docket::diagnosed(entry, attempts) {
        Some(diagnosis) => Ground {
            detail: format!("{}; {}", ground.detail, diagnosis.told()),
            ..ground
        },
        None => ground,
    }
}

pub(super) fn own(entry: &Entry<'_>, code: Reason) -> Ground {
    let total = entry.outcomes.len();
    let all: Vec<usize> = (1..=total).collect();
    let everywhere = prose::attempts(&all, total);
    let mut detail = match (entry.case.origin, entry.class) {
        (Origin::Foreign, _) => {
            "base has neither this case nor a sealed function that it could come from".to_owned()
        }
        (Origin::Extra, Class::Silenced) => {
            format!("base does not have it, and it is skipped in {everywhere}")
        }
        (Origin::Base | Origin::Extra, Class::Mixed) => prose::outcomes(&entry.outcomes),
        (Origin::Base | Origin::Extra, Class::StableRed) if code == Reason::MissingCase => {
            format!("base has it, and it was not reported in {everywhere}")
        }
        (Origin::Base | Origin::Extra, Class::StableRed | Class::StablePass)
        | (Origin::Base, Class::Silenced) => {
            let word = entry.outcomes.first().map_or("missing", Outcome::word);
            format!("{word} in {everywhere}")
        }
    };
    if entry.on_base == Some(OnBase::Red) {
        detail.push_str("; also red on base");
    }
    Ground {
        reason: code,
        about: About::Case,
        subject: Some(entry.case.node.to_string()),
        detail,
        seen: prose::seen(&entry.outcomes),
    }
}

pub(super) fn shared(
    code: Reason,
    what: String,
    entries: &[&Entry<'_>],
    property: &[Observed<'_>],
) -> Ground {
    let nodes: Vec<&NodeId> = entries.iter().map(|entry| &entry.case.node).collect();
    let cases = prose::cases(&nodes);
    let total = property.len();
    let outcomes: Vec<Outcome> = entries
        .iter()
        .flat_map(|entry| entry.outcomes.clone())
        .collect();
    let mut detail = if what == NOT_REACHED {
        let numbers: Vec<usize> = (1..)
            .zip(property)
            .filter(|(_, attempt)| attempt.facts.end.end != End::Finished)
            .map(|(n, _)| n)
            .collect();
        format!(
            "{cases} passed where they ran, and were not reached in {}",
            prose::attempts(&numbers, total)
        )
    } else if code == Reason::NeedsShared {
        format!(
            "{cases} cannot be judged apart from the product: base itself passes only in one process with this file; a maintainer adds it to `runner.shared` (`tribunal modes --write`)"
        )
    } else if code == Reason::CollectionError {
        format!("the file could not be imported, {cases} with it")
    } else if code == Reason::SkipFromProduct {
        format!("product code skips it, {cases} with it")
    } else {
        format!("head skips it as a whole or leaves it empty where base has {cases}")
    };
    if code != Reason::NeedsShared
        && entries
            .iter()
            .all(|entry| entry.on_base == Some(OnBase::Red))
    {
        detail.push_str("; also red on base");
    }
    let seen = entries.first().and_then(|entry| {
        let silence = property
            .first()
            .and_then(|attempt| attempt.covering(&entry.case));
        silence.map(|s| crate::text::shown(&s.reason, 300))
    });
    Ground {
        reason: code,
        about: About::Case,
        subject: (what != NOT_REACHED).then_some(what),
        detail,
        seen: seen.or_else(|| prose::seen(&outcomes)),
    }
}

/// One ground per kind of death and place.
pub(super) fn deaths(entries: &[Entry<'_>], property: &[Observed<'_>]) -> Vec<Ground> {
    let mut groups: BTreeMap<(Reason, Option<&NodeId>), Vec<usize>> = BTreeMap::new();
    for (number, attempt) in (1..).zip(property) {
        if let Some(code) = death(attempt.facts.end.end) {
            groups
                .entry((code, attempt.facts.end.running.as_ref()))
                .or_default()
                .push(number);
        }
    }
    groups
        .into_iter()
        .filter_map(|((reason, running), numbers)| {
            let first = property.get(numbers.first()?.checked_sub(1)?)?;
            let lost = entries
                .iter()
                .filter(|entry| {
                    Some(&entry.case.node) != running && !first.reached(&entry.case.node)
                })
                .count();
            Some(death_ground(
                reason,
                first.facts,
                &numbers,
                property.len(),
                lost,
            ))
        })
        .collect()
}

pub(super) fn death_ground(
    reason: Reason,
    facts: &AttemptFacts,
    numbers: &[usize],
    total: usize,
    lost: usize,
) -> Ground {
    let mut detail = format!(
        "in {} the test process {} {}",
        prose::attempts(numbers, total),
        prose::death(&facts.end),
        prose::place(facts)
    );
    if lost > 0 {
        detail.push_str(&format!(
            "; {lost} other {} did not run",
            if lost == 1 { "case" } else { "cases" }
        ));
    }
    Ground {
        reason,
        about: About::Case,
        subject: facts.end.running.as_ref().map(ToString::to_string),
        detail,
        seen: None,
    }
}

/// A child was killed for memory, the attempt went on, and something in it is red.
pub(super) fn killed_children(entries: &[Entry<'_>], property: &[Observed<'_>]) -> Option<Ground> {
    let numbers: Vec<usize> = (1..)
        .zip(property)
        .filter(|(number, attempt)| {
            let red = |entry: &Entry<'_>| {
                entry
                    .outcomes
                    .get(number - 1)
                    .is_some_and(|outcome| outcome.red().is_some())
            };
            attempt.facts.end.end == End::Finished
                && attempt.facts.end.oom_kills > 0
                && entries.iter().any(red)
        })
        .map(|(number, _)| number)
        .collect();
    (!numbers.is_empty()).then(|| Ground {
        reason: Reason::OutOfMemory,
        about: About::Case,
        subject: None,
        detail: format!(
            "in {} a process that the product started was killed at the memory limit",
            prose::attempts(&numbers, property.len())
        ),
        seen: None,
    })
}
