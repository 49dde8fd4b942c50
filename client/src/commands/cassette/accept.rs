//! `cassette accept`: says what is being accepted, pin by pin, has it signed, and writes the ledger in one step.

use super::shelves::Shelves;
use super::sign::sign;
use crate::checkout::{policy_in, read, write};
use crate::cli;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::workspace::Workspace;
use serde_json::json;
use std::path::{Path, PathBuf};
use tribunal_core::cassette::{
    Cassette, Entry, Leaf, Ledger, Note, NoteChange, PinChange, Signers, changes, hear,
};
use tribunal_core::git::GitPath;
use tribunal_core::id::{Digest, RepoPath};
use tribunal_core::text::shown;

/// Run it: 0 once the ledger holds the signed entries.
pub(in crate::commands) fn run(
    args: &cli::CassetteAccept,
    key: Option<&Path>,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let shelves = Shelves::read(Path::new("."), args.base.as_deref())?;
    let workspace = Workspace::discover(Path::new("."))?;
    let signer = Signer::of(args, key, workspace.as_ref())?;
    let top = shelves.top.clone();
    let ledger_path = policy_in(&top)?.paths.ledger;
    let there = read(&top.join(ledger_path.as_str()))?;
    let mut ledger = match &there {
        None => Ledger::default(),
        Some(bytes) => Ledger::parse(bytes)
            .map_err(|e| Failure::usage(format!("read {ledger_path}"), e, "mend what is named"))?,
    };
    let mut accepted = Vec::new();
    for path in &args.paths {
        let path = in_repository(path, &top)?;
        let entry = one(&path, args.why.as_deref(), &shelves, &ledger, console)?;
        let entry = signer.accept(entry)?;
        match ledger
            .entries
            .iter_mut()
            .find(|other| other.path == entry.path)
        {
            Some(other) => *other = entry,
            None => ledger.entries.push(entry),
        }
        accepted.push(path);
    }
    write(&top, ledger_path.as_str(), ledger.to_json().as_bytes())?;
    console.say(&format!(
        "wrote {ledger_path}, accepted by {}",
        shown(&signer.principal, 100)
    ));
    remaining(args, &accepted, console)?;
    let paths: Vec<&str> = accepted.iter().map(RepoPath::as_str).collect();
    console.json(
        &json!({"ledger": ledger_path.as_str(), "accepted_by": signer.principal, "paths": paths}),
    );
    Ok(Exit::MergeOk)
}

/// The entry of one cassette, brought up to date where that was asked for, and told.
fn one(
    path: &RepoPath,
    why: Option<&str>,
    shelves: &Shelves,
    ledger: &Ledger,
    console: &mut Console,
) -> Result<Entry, Failure> {
    let what = || format!("accept {}", shown(path.as_str(), 300));
    let bytes = read(&shelves.top.join(path.as_str()))?
        .ok_or_else(|| Failure::usage(what(), "there is no such file", "name a cassette's file"))?;
    let record = Cassette::parse(&bytes)
        .map_err(|e| Failure::usage(what(), e, "mend the key that is named"))?;
    let sha256 = Digest::of(&bytes).hex().to_owned();
    let pins: Vec<String> = record.pins().into_keys().collect();
    let old = ledger.of(path.as_str()).cloned();
    let mut entry = old.unwrap_or_else(|| Entry {
        path: path.clone(),
        sha256: String::new(),
        pins: Vec::new(),
        notes: Vec::new(),
        accepted_by: String::new(),
        signature: String::new(),
    });
    match why {
        Some(why) => {
            entry.notes = notes(path, why, &record, shelves, &entry);
            entry.sha256 = sha256;
            entry.pins = pins;
        }
        None if entry.sha256 != sha256 || sorted(&entry.pins) != pins => {
            let fault = if entry.sha256.is_empty() {
                "the ledger has no entry for it"
            } else {
                "its ledger entry has another hash or other pins"
            };
            return Err(Failure::usage(
                what(),
                fault,
                "say why it changed with --why TEXT, and the entry is written",
            ));
        }
        None => {}
    }
    console.say(&format!(
        "{} for {}",
        shown(path.as_str(), 300),
        shown(record.test.as_str(), 300)
    ));
    for line in held(&record) {
        console.say(&format!("  {line}"));
    }
    for note in &entry.notes {
        let (pin, word) = (shown(&note.pin, 200), note.change.word());
        console.say(&format!("  note: {pin} {word}: {}", shown(&note.why, 300)));
    }
    Ok(entry)
}

/// The notes that were there, without those of pins that are not, and one for every pin that changed since base.
pub(super) fn notes(
    path: &RepoPath,
    why: &str,
    record: &Cassette,
    shelves: &Shelves,
    entry: &Entry,
) -> Vec<Note> {
    let at = GitPath::from(path.as_str());
    let before = shelves.facts.base.files.get(&at).and_then(Leaf::bytes);
    let before = before.and_then(|bytes| Cassette::parse(bytes).ok());
    let pins = record.pins();
    let mut notes: Vec<Note> = entry
        .notes
        .iter()
        .filter(|note| pins.contains_key(&note.pin))
        .cloned()
        .collect();
    let first = pins.keys().next();
    for change in changes(&at, before.as_ref(), Some(record)) {
        let (pin, word) = match change.change {
            PinChange::Added => (change.pin, NoteChange::Added),
            PinChange::Moved => (change.pin, NoteChange::Moved),
            PinChange::Respelled => (first.cloned(), NoteChange::Moved),
            PinChange::Lost | PinChange::Entry => continue,
        };
        let Some(pin) = pin else { continue };
        let note = Note {
            pin,
            change: word,
            why: why.to_owned(),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// What a record holds, a line a pin.
fn held(record: &Cassette) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(record.clock.as_ref().map(|clock| format!("clock: {clock}")));
    lines.extend(record.rng_seed.map(|seed| format!("rng_seed: {seed}")));
    for (directory, names) in &record.fs {
        lines.push(format!(
            "fs:{}: {} names",
            shown(directory, 200),
            names.len()
        ));
    }
    for exchange in &record.http {
        let hash = exchange.body_sha256.get(..12).unwrap_or_default();
        lines.push(format!(
            "{}: {}, body {hash}…",
            shown(&exchange.pin(), 200),
            exchange.status
        ));
    }
    lines
}

/// What is still wrong with what was accepted, as a warning: it is the server that decides.
fn remaining(
    args: &cli::CassetteAccept,
    accepted: &[RepoPath],
    console: &mut Console,
) -> Result<(), Failure> {
    let shelves = Shelves::read(Path::new("."), args.base.as_deref())?;
    let heard = hear(&shelves.policy, &shelves.facts);
    for finding in super::findings(&heard) {
        let subject = finding.subject.as_deref().unwrap_or_default();
        if accepted.iter().any(|path| path.as_str() == subject) {
            console.warn(&format!(
                "{}: {}: {}",
                finding.reason,
                shown(subject, 300),
                shown(&finding.detail, 600)
            ));
        }
    }
    Ok(())
}

/// Who accepts, and with what.
struct Signer {
    principal: String,
    key: PathBuf,
}

impl Signer {
    fn of(
        args: &cli::CassetteAccept,
        key: Option<&Path>,
        workspace: Option<&Workspace>,
    ) -> Result<Self, Failure> {
        let setting = |name: &str| match workspace {
            Some(workspace) => workspace.setting(name),
            None => Ok(None),
        };
        let principal = args
            .principal
            .clone()
            .map_or_else(|| setting("user.email"), |name| Ok(Some(name)))?;
        let key = key.map(Path::to_owned).map_or_else(
            || setting("user.signingkey").map(|k| k.map(PathBuf::from)),
            |k| Ok(Some(k)),
        )?;
        let missing =
            |what: &str, next: &str| Failure::usage("accept a cassette", what.to_owned(), next);
        Ok(Self {
            principal: principal.ok_or_else(|| {
                missing("nobody is named who accepts", "say who with --as PRINCIPAL")
            })?,
            key: key.ok_or_else(|| missing("no SSH key is named", "name one with --key FILE"))?,
        })
    }

    /// The entry with this person's word, which holds: the signature is checked as the server will check it.
    fn accept(&self, mut entry: Entry) -> Result<Entry, Failure> {
        entry.accepted_by.clone_from(&self.principal);
        entry.signature = sign(&self.key, &entry.to_be_signed())?;
        let own = Signers::of_signature(&self.principal, &entry.signature);
        own.accepted(&entry)
            .map_err(|why| Failure::usage("accept a cassette", why, "sign with another key"))?;
        Ok(entry)
    }
}

fn sorted(pins: &[String]) -> Vec<String> {
    let mut pins = pins.to_vec();
    pins.sort();
    pins
}

/// A path as it is typed here, from the root of the checkout.
fn in_repository(path: &Path, top: &Path) -> Result<RepoPath, Failure> {
    let outside = || {
        Failure::usage(
            "find the cassette",
            format!(
                "{} is not in this checkout",
                shown(&path.to_string_lossy(), 300)
            ),
            "name a file below the checkout",
        )
    };
    let whole = std::env::current_dir()
        .and_then(|here| here.join(path).canonicalize())
        .map_err(|e| {
            Failure::usage(
                "find the cassette",
                format!("{}: {e}", shown(&path.to_string_lossy(), 300)),
                "name a cassette's file",
            )
        })?;
    let top = top.canonicalize().map_err(|_| outside())?;
    let inside = whole.strip_prefix(&top).map_err(|_| outside())?;
    inside
        .to_str()
        .and_then(|name| name.parse().ok())
        .ok_or_else(outside)
}
