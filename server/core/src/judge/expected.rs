//! The cases there are: what base's own collection has, and what head's attempts show beside it.
//!
//! Base decides what must be reported; head can only add, and what it adds must be earned.

use super::judged::Origin;
use crate::id::{NodeId, RepoPath};
use crate::outcome::{AttemptFacts, End, Raiser, Signature, Silence};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What kind of case is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// One that runs.
    Runs,
    /// A module-level skip or an empty set, for this reason.
    Silence(Signature),
    /// A file that base could not collect: head may.
    Unread,
}

/// One case that the judgement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) node: NodeId,
    pub(super) file: Option<RepoPath>,
    /// Empty for a whole file.
    pub(super) qualname: String,
    pub(super) origin: Origin,
    pub(super) kind: Kind,
}

/// All of them: base's in base's order, then what head shows.
pub(super) fn cases<'a>(
    base: &AttemptFacts,
    files: &[RepoPath],
    attempts: impl Iterator<Item = &'a AttemptFacts>,
) -> Vec<Case> {
    let base = Base::of(base, files);
    let mut cases = base.cases.clone();
    let mut seen: HashSet<NodeId> = cases.iter().map(|case| case.node.clone()).collect();
    for attempt in attempts {
        for case in shown(attempt) {
            if base.explains(&case) || !seen.insert(case.node.clone()) {
                continue;
            }
            let origin = base.origin(&case);
            cases.push(Case { origin, ..case });
        }
    }
    cases
}

struct Base {
    cases: Vec<Case>,
    functions: HashSet<(RepoPath, String)>,
    /// Files of the manifest whose functions base does not show: skipped as a whole, or not collected.
    dark: BTreeSet<RepoPath>,
    speaking: HashSet<RepoPath>,
}

impl Base {
    fn of(facts: &AttemptFacts, files: &[RepoPath]) -> Self {
        let silent: HashMap<&NodeId, &Silence> =
            facts.silences.iter().map(|s| (&s.node, s)).collect();
        let mut cases: Vec<Case> = facts
            .collected
            .iter()
            .filter(|case| !silent.contains_key(&case.node))
            .map(|case| Case {
                node: case.node.clone(),
                file: Some(case.file.clone()),
                qualname: case.qualname.clone(),
                origin: Origin::Base,
                kind: Kind::Runs,
            })
            .collect();
        cases.extend(
            facts
                .silences
                .iter()
                .map(|silence| silent_case(silence, Origin::Base)),
        );
        let functions = cases
            .iter()
            .filter(|case| !case.qualname.is_empty())
            .filter_map(|case| Some((case.file.clone()?, case.qualname.clone())))
            .collect();
        let failed: HashSet<&RepoPath> = facts.collection_errors.iter().map(|e| &e.file).collect();
        let whole = |file: &RepoPath| {
            facts
                .silences
                .iter()
                .any(|s| s.node.as_str() == file.as_str())
        };
        // Collection is told as a whole: a base that told nothing of it died on the way.
        let untold = facts.end.end != End::Finished
            && facts.collected.is_empty()
            && facts.silences.is_empty()
            && failed.is_empty();
        let unread = |file: &&RepoPath| untold || failed.contains(*file);
        let mut dark: BTreeSet<RepoPath> =
            files.iter().filter(|file| whole(file)).cloned().collect();
        for file in files.iter().filter(unread) {
            dark.insert(file.clone());
            // A path is a node id where it has no NUL and no absurd length, which paths of a manifest have not.
            if let Ok(node) = file.as_str().parse() {
                cases.push(Case {
                    node,
                    file: Some(file.clone()),
                    qualname: String::new(),
                    origin: Origin::Base,
                    kind: Kind::Unread,
                });
            }
        }
        let speaking = cases
            .iter()
            .filter(|case| case.kind == Kind::Runs)
            .filter_map(|case| case.file.clone())
            .collect();
        Self {
            cases,
            functions,
            dark,
            speaking,
        }
    }

    /// A silence that only says why expected cases are gone: they are told themselves.
    fn explains(&self, case: &Case) -> bool {
        let Kind::Silence(_) = case.kind else {
            return false;
        };
        let Some(file) = &case.file else {
            return false;
        };
        if case.qualname.is_empty() {
            self.speaking.contains(file) || self.dark.contains(file)
        } else {
            self.functions
                .iter()
                .any(|(of, function)| of == file && covers(&case.qualname, function))
        }
    }

    fn origin(&self, case: &Case) -> Origin {
        let Some(file) = &case.file else {
            return Origin::Foreign;
        };
        if self.dark.contains(file)
            || self
                .functions
                .contains(&(file.clone(), case.qualname.clone()))
        {
            Origin::Extra
        } else {
            Origin::Foreign
        }
    }
}

/// Everything an attempt shows: collected, silent, and recorded without having been announced.
fn shown(attempt: &AttemptFacts) -> Vec<Case> {
    let silent: HashSet<&NodeId> = attempt.silences.iter().map(|s| &s.node).collect();
    let collected = attempt
        .collected
        .iter()
        .filter(|case| !silent.contains(&case.node));
    let mut cases: Vec<Case> = collected
        .map(|case| Case {
            node: case.node.clone(),
            file: Some(case.file.clone()),
            qualname: case.qualname.clone(),
            origin: Origin::Foreign,
            kind: Kind::Runs,
        })
        .collect();
    cases.extend(
        attempt
            .silences
            .iter()
            .map(|silence| silent_case(silence, Origin::Foreign)),
    );
    cases.extend(attempt.cases.iter().map(|record| Case {
        node: record.node.clone(),
        file: None,
        qualname: String::new(),
        origin: Origin::Foreign,
        kind: Kind::Runs,
    }));
    cases
}

fn silent_case(silence: &Silence, origin: Origin) -> Case {
    Case {
        node: silence.node.clone(),
        file: Some(silence.file.clone()),
        qualname: silent_function(silence),
        origin,
        kind: Kind::Silence(Signature::skipped(&silence.reason)),
    }
}

/// Whether what is silent under this name takes that function along: a whole file, a class, the function itself.
pub(super) fn covers(silent: &str, function: &str) -> bool {
    silent.is_empty()
        || function
            .strip_prefix(silent)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The function of an empty set, or the class that was skipped; empty for a whole file. The suffix is the runner's own, so it can be taken off.
pub(super) fn silent_function(silence: &Silence) -> String {
    silence
        .node
        .as_str()
        .strip_prefix(silence.file.as_str())
        .and_then(|rest| rest.strip_prefix("::"))
        .map(|rest| rest.split_once('[').map_or(rest, |(function, _)| function))
        .unwrap_or_default()
        .replace("::", ".")
}

/// Whether the product raised it.
pub(super) fn by_product(silence: &Silence) -> Option<Signature> {
    match silence.by {
        Raiser::Product => Some(Signature::skipped(&silence.reason)),
        Raiser::Sealed | Raiser::Runner => None,
    }
}
