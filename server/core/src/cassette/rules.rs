//! Head's cassettes against base's: every row of the protocol's table, one finding a fault, all of them at once.

use super::acceptance::{Signers, Window};
use super::change::{Change, PinChange, changes};
use super::ledger::{Entry, Ledger, Note, NoteChange};
use super::schema::Cassette;
use super::secrets;
use super::shelf::{CassetteFacts, Kind, Leaf, Shelf};
use crate::classify::{PathClass, class_of};
use crate::git::GitPath;
use crate::id::{Digest, UnixTime};
use crate::plan::Finding;
use crate::policy::Policy;
use crate::reason::Reason;
use crate::text::shown;
use std::collections::{BTreeMap, BTreeSet};

/// How the detail of a finding begins that base has already.
pub const ON_BASE: &str = "on base already: ";

/// What the rules make of both trees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hearing {
    /// What is wrong at any time.
    findings: Vec<Finding>,
    /// What is wrong outside of a time.
    dated: Vec<(Vec<Window>, Finding)>,
    /// Files that hold a Git LFS pointer: what they stand for is not there.
    pub pointers: Vec<GitPath>,
    /// The difference, by pin name.
    pub changes: Vec<Change>,
}

impl Hearing {
    /// Everything that is wrong at this time.
    #[must_use]
    pub fn findings(&self, at: UnixTime) -> Vec<Finding> {
        let out = self
            .dated
            .iter()
            .filter(|(windows, _)| !windows.iter().any(|window| window.holds(at)));
        self.findings
            .iter()
            .cloned()
            .chain(out.map(|(_, finding)| finding.clone()))
            .collect()
    }

    /// Everything that is wrong at any time.
    #[must_use]
    pub fn timeless(&self) -> &[Finding] {
        &self.findings
    }
}

/// Hear both sides.
#[must_use]
pub fn hear(policy: &Policy, facts: &CassetteFacts) -> Hearing {
    let (base_ledger, _) = ledger(&facts.base);
    let (head_ledger, ledger_faults) = ledger(&facts.head);
    let mut court = Court {
        policy,
        facts,
        signers: Signers::parse(facts.signers.as_deref()),
        base_ledger: base_ledger.unwrap_or_default(),
        head_ledger,
        tests: BTreeMap::new(),
        heard: Hearing::default(),
    };
    court.ledger_itself(ledger_faults);
    let names: BTreeSet<&GitPath> = facts
        .base
        .files
        .keys()
        .chain(facts.head.files.keys())
        .collect();
    for path in names {
        match Kind::of(&policy.paths, path) {
            Some(Kind::Record) => court.record(path),
            Some(Kind::Body(hash)) => court.body(path, &hash),
            Some(Kind::Stray) => court.stray(path),
            Some(Kind::Ledger | Kind::Other) | None => {}
        }
    }
    court.entries_without_record();
    court.heard
}

/// A shelf's ledger, or what is wrong with it.
fn ledger(shelf: &Shelf) -> (Option<Ledger>, Option<String>) {
    match &shelf.ledger {
        None => (Some(Ledger::default()), None),
        Some(Leaf::Pointer) => (None, None),
        Some(Leaf::NoFile) => (None, Some("the ledger is no file".to_owned())),
        Some(Leaf::File(bytes)) => match Ledger::parse(bytes) {
            Ok(ledger) => (Some(ledger), None),
            Err(mistake) => (None, Some(mistake.to_string())),
        },
    }
}

struct Court<'a> {
    policy: &'a Policy,
    facts: &'a CassetteFacts,
    signers: Signers,
    base_ledger: Ledger,
    /// `None` where it cannot be read.
    head_ledger: Option<Ledger>,
    /// Which record speaks for a test.
    tests: BTreeMap<String, GitPath>,
    heard: Hearing,
}

impl Court<'_> {
    fn find(&mut self, reason: Reason, path: &GitPath, detail: impl Into<String>) {
        self.heard.findings.push(Finding::at(reason, path, detail));
    }

    fn ledger_itself(&mut self, fault: Option<String>) {
        let path = GitPath::from(self.policy.paths.ledger.as_str());
        if let Some(fault) = fault {
            let told = self.told(self.facts.base.ledger == self.facts.head.ledger, &fault);
            self.find(Reason::CassetteInvalid, &path, told);
        }
        match (&self.facts.base.ledger, &self.facts.head.ledger) {
            (Some(_), None) => self.find(Reason::CassettePinLost, &path, "the ledger is gone"),
            (_, Some(Leaf::Pointer)) => self.heard.pointers.push(path),
            (Some(_) | None, Some(Leaf::File(_) | Leaf::NoFile)) | (None, None) => {}
        }
    }

    /// What base has already is told as base's.
    fn told(&self, of_base: bool, detail: &str) -> String {
        if of_base {
            format!("{ON_BASE}{detail}")
        } else {
            detail.to_owned()
        }
    }

    fn record(&mut self, path: &GitPath) {
        let (base, head) = (
            self.facts.base.files.get(path),
            self.facts.head.files.get(path),
        );
        let before = base
            .and_then(Leaf::bytes)
            .and_then(|bytes| Cassette::parse(bytes).ok());
        let same = base == head;
        let (bytes, after) = match head {
            None => {
                let held: Vec<String> = before
                    .iter()
                    .flat_map(|record| record.pins().into_keys())
                    .collect();
                let told = format!("the cassette is gone; it held {}", shown(&list(&held), 300));
                self.find(Reason::CassettePinLost, path, told);
                self.heard
                    .changes
                    .extend(changes(path, before.as_ref(), None));
                return;
            }
            Some(Leaf::Pointer) => return self.heard.pointers.push(path.clone()),
            Some(Leaf::NoFile) => {
                let told = self.told(same, "the cassette is a link or a submodule, not a file");
                return self.find(Reason::CassetteInvalid, path, told);
            }
            Some(Leaf::File(bytes)) => match Cassette::parse(bytes) {
                Ok(record) => (bytes, record),
                Err(mistake) => {
                    let told = self.told(same, &mistake.to_string());
                    return self.find(Reason::CassetteInvalid, path, told);
                }
            },
        };
        self.alone(path, &after, same);
        let moved = if same {
            Vec::new()
        } else {
            changes(path, before.as_ref(), Some(&after))
        };
        for change in moved
            .iter()
            .filter(|change| change.change == PinChange::Lost)
        {
            let pin = change.pin.as_deref().unwrap_or("a pin");
            self.find(
                Reason::CassettePinLost,
                path,
                format!("`{}` is gone", shown(pin, 200)),
            );
        }
        self.answered_for(path, bytes, &after, &moved, same);
    }

    /// What a record says without any other.
    fn alone(&mut self, path: &GitPath, record: &Cassette, same: bool) {
        let seed = self.policy.pins.seed;
        if let Some(other) = record.rng_seed.filter(|other| *other != seed.0) {
            let told = self.told(
                same,
                &format!("`rng_seed` is {other}, the policy's seed is {seed}"),
            );
            self.find(Reason::SeedDrift, path, told);
        }
        let body = |hash: &str| self.facts.head.body(&self.policy.paths, hash);
        let places = secrets::places(record, body);
        for place in places {
            let told = self.told(same, &place);
            self.find(Reason::CassetteSecret, path, told);
        }
        let missing: Vec<String> = record
            .bodies()
            .into_iter()
            .filter(|hash| body(hash).is_none())
            .map(str::to_owned)
            .collect();
        for hash in missing {
            let at =
                GitPath::from(format!("{}bodies/{hash}", self.policy.paths.cassettes).as_str());
            if self.facts.head.files.contains_key(&at) {
                // No file of its own: told where the bodies are looked at.
                continue;
            }
            let told = format!(
                "{} needs this body, which is not there",
                shown(&path.to_string(), 200)
            );
            let lost = self.facts.base.files.contains_key(&at);
            let reason = if lost {
                Reason::CassettePinLost
            } else {
                Reason::CassetteDrift
            };
            let told = self.told(same && !lost, &told);
            self.find(reason, &at, told);
        }
        self.test_of(path, record, same);
    }

    fn test_of(&mut self, path: &GitPath, record: &Cassette, same: bool) {
        let test = record.test.as_str();
        let shown_test = shown(test, 200);
        let file = record.file();
        let class = class_of(&self.policy.paths, &GitPath::from(file));
        let fault = match (class, self.facts.tests.get(file)) {
            (PathClass::Oracle | PathClass::Touched, None) => Some(format!(
                "`test` names {shown_test}, but there is no such file"
            )),
            (PathClass::Oracle, Some(_)) => None,
            (PathClass::Touched, Some(text)) => (!names(text, test))
                .then(|| format!("`test` names {shown_test}, which its file does not have")),
            (PathClass::Src | PathClass::Cassette | PathClass::Proposed | PathClass::Other, _) => {
                Some(format!("`test` names {shown_test}, which runs in no lane"))
            }
        };
        if let Some(fault) = fault {
            let told = self.told(same, &fault);
            self.find(Reason::CassetteInvalid, path, told);
        }
        if let Some(other) = self.tests.get(test).cloned() {
            // The younger one is the one too many, whatever its name.
            let younger = if self.facts.base.files.contains_key(path) {
                &other
            } else {
                path
            };
            let elder = if younger == path { &other } else { path };
            let told = format!("{shown_test} has a cassette already, {elder}");
            let of_base = self.facts.base.files.contains_key(&other)
                && self.facts.base.files.contains_key(path)
                && same;
            let told = self.told(of_base, &told);
            let younger = younger.clone();
            self.find(Reason::CassetteInvalid, &younger, told);
        } else {
            self.tests.insert(test.to_owned(), path.clone());
        }
    }

    /// Whether the ledger answers for a record: with its hash, its pins, notes on what moved, and a person's word.
    fn answered_for(
        &mut self,
        path: &GitPath,
        bytes: &[u8],
        record: &Cassette,
        moved: &[Change],
        same: bool,
    ) {
        let Some(ledger) = &self.head_ledger else {
            return self.heard.changes.extend(moved.iter().cloned());
        };
        let name = path.as_utf8().unwrap_or_default();
        let before = self.base_ledger.of(name).cloned();
        let Some(entry) = ledger.of(name).cloned() else {
            let told = self.told(same && before.is_none(), "the ledger has no entry for it");
            self.find(Reason::CassetteDrift, path, told);
            return self.heard.changes.extend(moved.iter().cloned());
        };
        let old = before.as_ref() == Some(&entry);
        for fault in unexplained(&entry, before.as_ref(), bytes, record, moved) {
            let told = self.told(same && old, &fault);
            self.find(Reason::CassetteDrift, path, told);
        }
        let accepted = self.signers.accepted(&entry);
        match &accepted {
            Err(why) => {
                let told = self.told(same && old, why);
                self.find(Reason::CassetteUnaccepted, path, told);
            }
            // An acceptance that was merged stays good when its key retires.
            Ok(_) if same && old => {}
            Ok(windows) => {
                let told = format!(
                    "the key of {} counts at another time only",
                    shown(&entry.accepted_by, 100)
                );
                let finding = Finding::at(Reason::CassetteUnaccepted, path, told);
                self.heard.dated.push((windows.clone(), finding));
            }
        }
        let by = accepted.is_ok().then(|| entry.accepted_by.clone());
        let mut told = moved.to_vec();
        if told.is_empty() && !old {
            told.push(Change::entry(path));
        }
        for change in &mut told {
            change.accepted_by.clone_from(&by);
            change.why = why(&entry, before.as_ref(), change);
        }
        self.heard.changes.append(&mut told);
    }

    fn body(&mut self, path: &GitPath, hash: &str) {
        let same = self.facts.base.files.get(path) == self.facts.head.files.get(path);
        match self.facts.head.files.get(path) {
            None => {}
            Some(Leaf::Pointer) => self.heard.pointers.push(path.clone()),
            Some(Leaf::NoFile) => {
                let told = self.told(same, "the body is a link or a submodule, not a file");
                self.find(Reason::CassetteDrift, path, told);
            }
            Some(Leaf::File(bytes)) => {
                let is = Digest::of(bytes);
                if is.hex() != hash {
                    let told = self.told(same, &format!("the body's hash is {}", is.hex()));
                    self.find(Reason::CassetteDrift, path, told);
                }
                // One that a record uses is told with the record.
                if let Some(why) = secrets::in_bytes(bytes).filter(|_| !same) {
                    self.find(
                        Reason::CassetteSecret,
                        path,
                        format!("the body holds {why}"),
                    );
                }
            }
        }
    }

    fn stray(&mut self, path: &GitPath) {
        let (base, head) = (
            self.facts.base.files.get(path),
            self.facts.head.files.get(path),
        );
        if head.is_some() && head != base {
            self.find(
                Reason::CassetteInvalid,
                path,
                "a body is named by the 64 hex digits of its hash",
            );
        }
    }

    fn entries_without_record(&mut self) {
        let entries = self.head_ledger.iter().flat_map(|ledger| &ledger.entries);
        let found: Vec<Finding> = entries
            .filter_map(|entry| {
                let path = GitPath::from(entry.path.as_str());
                let there = [&self.facts.head, &self.facts.base]
                    .map(|shelf| shelf.files.contains_key(&path));
                let kind = Kind::of(&self.policy.paths, &path);
                if kind == Some(Kind::Record) && there.contains(&true) {
                    return None;
                }
                let old = self.base_ledger.of(entry.path.as_str()) == Some(entry);
                let told = self.told(old, "the ledger speaks of a cassette that is not there");
                Some(Finding::at(Reason::CassetteDrift, &path, told))
            })
            .collect();
        self.heard.findings.extend(found);
    }
}

/// What the entry leaves open about its record.
fn unexplained(
    entry: &Entry,
    before: Option<&Entry>,
    bytes: &[u8],
    record: &Cassette,
    moved: &[Change],
) -> Vec<String> {
    let mut faults = Vec::new();
    let is = Digest::of(bytes);
    if is.hex() != entry.sha256 {
        faults.push(format!(
            "the ledger has the hash {}, the file has {}",
            entry.sha256,
            is.hex()
        ));
    }
    let pins: BTreeSet<String> = record.pins().into_keys().collect();
    let said: BTreeSet<String> = entry.pins.iter().cloned().collect();
    if pins != said {
        let differs: Vec<String> = pins.symmetric_difference(&said).cloned().collect();
        faults.push(format!(
            "the ledger's entry and the cassette differ in the pins they name: {}",
            shown(&list(&differs), 300)
        ));
    }
    let fresh = |note: &&Note| before.is_none_or(|before| !before.notes.contains(note));
    for change in moved {
        let wanted = match change.change {
            PinChange::Added => Some(NoteChange::Added),
            PinChange::Moved => Some(NoteChange::Moved),
            PinChange::Respelled => None,
            PinChange::Lost | PinChange::Entry => continue,
        };
        let speaks = |note: &Note| match (wanted, &change.pin) {
            (Some(wanted), Some(pin)) => note.pin == *pin && note.change == wanted,
            (Some(_), None) | (None, _) => pins.contains(&note.pin),
        };
        if entry.notes.iter().filter(fresh).any(speaks) {
            continue;
        }
        faults.push(match (wanted, &change.pin) {
            (Some(wanted), Some(pin)) => format!(
                "no new note says why `{}` was {}",
                shown(pin, 200),
                wanted.word()
            ),
            (Some(_), None) | (None, _) => "the bytes changed and no new note says why".to_owned(),
        });
    }
    for note in entry.notes.iter().filter(fresh) {
        if !pins.contains(&note.pin) {
            faults.push(format!(
                "a note speaks of `{}`, which the cassette does not pin",
                shown(&note.pin, 200)
            ));
        }
    }
    faults
}

/// The new note that speaks of a change.
fn why(entry: &Entry, before: Option<&Entry>, change: &Change) -> Option<String> {
    let fresh = |note: &&Note| before.is_none_or(|before| !before.notes.contains(note));
    let of = |note: &&Note| change.pin.as_ref().is_none_or(|pin| *pin == note.pin);
    entry
        .notes
        .iter()
        .filter(fresh)
        .find(of)
        .map(|note| note.why.clone())
}

/// Whether a file's text has the last name of a node id as a word.
fn names(text: &[u8], test: &str) -> bool {
    let function = test.split('[').next().unwrap_or_default();
    let function = function.rsplit("::").next().unwrap_or_default();
    let part = |c: char| c.is_alphanumeric() || c == '_';
    String::from_utf8_lossy(text)
        .split(|c| !part(c))
        .any(|word| word == function)
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "no pin".to_owned();
    }
    names.join(", ")
}
