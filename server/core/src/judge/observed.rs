//! One attempt as the judge looks it up: the outcome of any case in it, reported or not.

use super::expected::{Case, Kind, by_product, covers, silent_function};
use crate::id::{NodeId, RepoPath};
use crate::outcome::{
    AttemptFacts, CaseRecord, CollectionError, ExceptionText, Outcome, Phase, Signature, Silence,
    death, fold,
};
use crate::reason::Reason;
use std::collections::{HashMap, HashSet};

/// An index over one attempt.
pub(super) struct Observed<'a> {
    pub(super) facts: &'a AttemptFacts,
    records: HashMap<&'a NodeId, Vec<&'a CaseRecord>>,
    silences: HashMap<&'a NodeId, &'a Silence>,
    silent: Vec<(&'a RepoPath, String, &'a Silence)>,
    errors: HashMap<&'a RepoPath, &'a CollectionError>,
    speaking: HashSet<(&'a RepoPath, &'a str)>,
    speaking_files: HashSet<&'a RepoPath>,
}

impl<'a> Observed<'a> {
    pub(super) fn of(facts: &'a AttemptFacts) -> Self {
        let mut records: HashMap<&NodeId, Vec<&CaseRecord>> = HashMap::new();
        for record in &facts.cases {
            records.entry(&record.node).or_default().push(record);
        }
        let silences: HashMap<&NodeId, &Silence> =
            facts.silences.iter().map(|s| (&s.node, s)).collect();
        let cases = || {
            facts
                .collected
                .iter()
                .filter(|case| !silences.contains_key(&case.node))
        };
        Self {
            facts,
            records,
            silent: facts
                .silences
                .iter()
                .map(|s| (&s.file, silent_function(s), s))
                .collect(),
            errors: facts
                .collection_errors
                .iter()
                .map(|e| (&e.file, e))
                .collect(),
            speaking: cases()
                .map(|case| (&case.file, case.qualname.as_str()))
                .collect(),
            speaking_files: cases().map(|case| &case.file).collect(),
            silences,
        }
    }

    /// What the case did here. `None` where the case stood for others (a silent function, an unread file) and those
    /// others speak for themselves in this attempt.
    pub(super) fn outcome(&self, case: &Case) -> Option<Outcome> {
        if let Some(records) = self.records.get(&case.node) {
            if let Some(missed) = missed(records) {
                return Some(missed);
            }
            let phases: Vec<&Phase> = records.iter().flat_map(|record| &record.phases).collect();
            return Some(fold(&phases, self.facts.end.end));
        }
        match &case.kind {
            Kind::Runs => Some(self.absent(case)),
            Kind::Silence(reason) => self.silent(case, reason),
            Kind::Unread => self.unread(case),
        }
    }

    /// No record: why, as far as the attempt tells.
    fn absent(&self, case: &Case) -> Outcome {
        if let Some(error) = case.file.as_ref().and_then(|file| self.errors.get(file)) {
            return Outcome::Red(
                Reason::CollectionError,
                vec![Signature::of(&error.exception)],
            );
        }
        if let Some(silence) = self.covering(case) {
            return by_product(silence).map_or(Outcome::Missing, |seen| {
                Outcome::Red(Reason::SkipFromProduct, vec![seen])
            });
        }
        death(self.facts.end.end).map_or(Outcome::Missing, |code| Outcome::Red(code, Vec::new()))
    }

    fn silent(&self, case: &Case, expected: &Signature) -> Option<Outcome> {
        if let Some(silence) = self.silences.get(&case.node) {
            if let Some(seen) = by_product(silence) {
                return Some(Outcome::Red(Reason::SkipFromProduct, vec![seen]));
            }
            let seen = Signature::skipped(&silence.reason);
            // Only the same silence stands for the cases that base does not show either.
            return Some(if seen == *expected {
                Outcome::Skipped(seen)
            } else {
                Outcome::Missing
            });
        }
        let file = case.file.as_ref()?;
        let speaks = self
            .speaking
            .iter()
            .any(|(of, function)| *of == file && covers(&case.qualname, function));
        (!speaks).then(|| self.absent(case))
    }

    fn unread(&self, case: &Case) -> Option<Outcome> {
        let file = case.file.as_ref()?;
        (!self.speaking_files.contains(file)).then(|| self.absent(case))
    }

    /// The silence that the case is gone in: its file's, its class's, or its function's empty set.
    pub(super) fn covering(&self, case: &Case) -> Option<&'a Silence> {
        let file = case.file.as_ref()?;
        self.silent
            .iter()
            .find(|(of, silent, _)| *of == file && covers(silent, &case.qualname))
            .map(|(_, _, silence)| *silence)
    }

    pub(super) fn error(&self, case: &Case) -> Option<&'a CollectionError> {
        self.errors.get(case.file.as_ref()?).copied()
    }

    /// Its records of a case.
    pub(super) fn of_case(&self, node: &NodeId) -> impl Iterator<Item = &'a CaseRecord> {
        self.records.get(node).into_iter().flatten().copied()
    }

    pub(super) fn phases(&self, node: &NodeId) -> impl Iterator<Item = &'a Phase> {
        self.of_case(node).flat_map(|record| &record.phases)
    }

    /// It collected this case, found it silent, or recorded it.
    pub(super) fn shows(&self, node: &NodeId) -> bool {
        self.records.contains_key(node)
            || self.silences.contains_key(node)
            || self.facts.collected.iter().any(|case| case.node == *node)
    }

    /// The attempt got as far as this case.
    pub(super) fn reached(&self, node: &NodeId) -> bool {
        self.records.contains_key(node)
    }
}

/// A case whose cassette did not answer something is red, whatever it said itself. Only its death tells more.
fn missed(records: &[&CaseRecord]) -> Option<Outcome> {
    let whole = records
        .iter()
        .all(|record| record.phases.iter().all(|phase| phase.reported));
    let mut misses: Vec<&str> = records
        .iter()
        .filter_map(|record| record.cassette.as_ref())
        .flat_map(|cassette| cassette.misses.iter().map(String::as_str))
        .collect();
    misses.sort_unstable();
    misses.dedup();
    (whole && !misses.is_empty()).then(|| {
        let said = ExceptionText {
            kind: "CassetteMiss".to_owned(),
            message: misses.join(", "),
            traceback: String::new(),
        };
        Outcome::Red(Reason::CassetteMiss, vec![Signature::of(&said)])
    })
}
