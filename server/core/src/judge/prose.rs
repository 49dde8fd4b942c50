//! Numbers and outcomes to the few words a person needs. Names and counts only, never text of a sealed case.

use crate::id::NodeId;
use crate::outcome::{AttemptEnd, AttemptFacts, End, Outcome};
use crate::text::shown;

/// `attempt 4 of 7`, `attempts 1-3, 5 of 7`, `all 7 attempts`, `the only attempt`. Attempts count from 1.
pub(super) fn attempts(numbers: &[usize], of: usize) -> String {
    if numbers.len() == of {
        return match of {
            1 => "the only attempt".to_owned(),
            _ => format!("all {of} attempts"),
        };
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *number => *end = *number,
            Some(_) | None => runs.push((*number, *number)),
        }
    }
    let runs: Vec<String> = runs
        .iter()
        .map(|(start, end)| {
            if start == end {
                start.to_string()
            } else {
                format!("{start}-{end}")
            }
        })
        .collect();
    let noun = if numbers.len() == 1 {
        "attempt"
    } else {
        "attempts"
    };
    format!("{noun} {} of {of}", runs.join(", "))
}

/// `passed in attempts 1-3, 5-7 of 7; failed in attempt 4 of 7`.
pub(super) fn outcomes(outcomes: &[Outcome]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !words.contains(&outcome.word()) {
            words.push(outcome.word());
        }
    }
    if let [word] = words.as_slice() {
        let mut ways: Vec<&Outcome> = outcomes.iter().collect();
        ways.sort_unstable();
        ways.dedup();
        return format!(
            "{word} in all {} attempts, in {} different ways",
            outcomes.len(),
            ways.len()
        );
    }
    let part = |word: &&str| {
        let numbers: Vec<usize> = (1..)
            .zip(outcomes)
            .filter(|(_, o)| o.word() == *word)
            .map(|(n, _)| n)
            .collect();
        format!("{word} in {}", attempts(&numbers, outcomes.len()))
    };
    words.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// What the failing outcomes said, distinct, at most three.
pub(super) fn seen(outcomes: &[Outcome]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for outcome in outcomes {
        let signatures = match outcome {
            Outcome::Red(_, signatures) => signatures.as_slice(),
            Outcome::Skipped(signature) | Outcome::Xfailed(signature) => {
                std::slice::from_ref(signature)
            }
            Outcome::Passed | Outcome::Xpassed | Outcome::Missing => &[],
        };
        for signature in signatures {
            let text = signature.to_string();
            if !text.is_empty() && !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts.truncate(3);
    (!texts.is_empty()).then(|| texts.join(" | "))
}

/// `3 cases (a, b, c)`, `12 cases (a, b, c, …)`.
pub(super) fn cases(nodes: &[&NodeId]) -> String {
    let mut names: Vec<String> = nodes
        .iter()
        .take(3)
        .map(|node| shown(node.as_str(), 120))
        .collect();
    if nodes.len() > names.len() {
        names.push("…".to_owned());
    }
    let noun = if nodes.len() == 1 { "case" } else { "cases" };
    format!("{} {noun} ({})", nodes.len(), names.join(", "))
}

/// How an attempt died, as the rest of "the test process …".
pub(super) fn death(end: &AttemptEnd) -> String {
    let said = kind_of_death(end);
    match &end.note {
        Some(note) => format!("{said} ({})", shown(note, 200)),
        None => said,
    }
}

fn kind_of_death(end: &AttemptEnd) -> String {
    match end.end {
        End::Finished => "came to its end".to_owned(),
        End::Exited => match end.exit_code {
            Some(code) => format!("left with exit code {code} before its work was done"),
            None => "left before its work was done".to_owned(),
        },
        End::Killed => match end.signal {
            Some(signal) => format!("was killed by signal {signal}"),
            None => "was killed".to_owned(),
        },
        End::CaseTimeout => "ran out of the time for one case".to_owned(),
        End::AttemptTimeout => "ran out of the time for one attempt".to_owned(),
        End::OutOfMemory => "hit its memory limit".to_owned(),
        End::OutputLimit => "printed far more than is allowed".to_owned(),
        End::Protocol => "sent something over the result channel that is no record".to_owned(),
    }
}

/// Where it was when it died.
pub(super) fn place(facts: &AttemptFacts) -> &'static str {
    use crate::outcome::When;
    match (&facts.end.running, facts.end.phase) {
        (Some(_), Some(When::Setup)) => "in the set-up of this case",
        (Some(_), Some(When::Call)) => "in the call of this case",
        (Some(_), Some(When::Teardown)) => "in the tear-down of this case",
        (Some(_), None) => "in this case",
        (None, _) if facts.collected.is_empty() && facts.cases.is_empty() => "before any case ran",
        (None, _) if facts.cases.len() >= facts.collected.len() => "after the last case",
        (None, _) => "between two cases",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_told_in_runs() {
        assert_eq!(attempts(&[1, 2, 3, 5], 7), "attempts 1-3, 5 of 7");
        assert_eq!(attempts(&[4], 7), "attempt 4 of 7");
        assert_eq!(attempts(&[1, 2], 2), "all 2 attempts");
        assert_eq!(attempts(&[1], 1), "the only attempt");
        assert_eq!(attempts(&[1, 3, 5], 7), "attempts 1, 3, 5 of 7");
    }
}
