//! The ledger: one entry a cassette, with notes that say what moved and why, and the acceptance of a person.

use super::json::{Document, Mistake, mistake};
use super::schema::is_sha256;
use crate::id::RepoPath;
use crate::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The ledger's entries, in the file's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// One a cassette.
    pub entries: Vec<Entry>,
}

/// What is on record of one cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The cassette's file.
    pub path: RepoPath,
    /// SHA-256 of that file, in hex.
    pub sha256: String,
    /// The names of its pins.
    pub pins: Vec<String>,
    /// What moved, and why.
    pub notes: Vec<Note>,
    /// Who accepted it; empty in a draft.
    pub accepted_by: String,
    /// That person's SSH signature; empty in a draft.
    pub signature: String,
}

/// Why one pin is what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// The pin's name.
    pub pin: String,
    /// What became of it.
    pub change: NoteChange,
    /// Why.
    pub why: String,
}

/// What a note can speak of. That a pin went has no word here: nothing explains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoteChange {
    /// It is new.
    Added,
    /// It holds something else now.
    Moved,
}

impl NoteChange {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Moved => "moved",
        }
    }
}

impl Ledger {
    /// Parse the ledger's bytes: an object with `entries`, or the bare list.
    ///
    /// # Errors
    /// The first mistake, with its key and position.
    pub fn parse(bytes: &[u8]) -> Result<Self, Mistake> {
        let (document, root) = Document::of(bytes)?;
        let list = if root.get().starts_with('[') {
            root
        } else {
            let members = document.object(root, "the ledger", &["entries"])?;
            members.need(document, root, "entries")?
        };
        let mut entries: Vec<Entry> = Vec::new();
        for raw in document.list(list, "entries")? {
            let entry = entry(document, raw)?;
            if entries.iter().any(|other| other.path == entry.path) {
                let path = entry.path.as_str();
                let told = document.wrong(raw, "path", "");
                let message = format!("`{}` has an entry already", shown(path, 200));
                return Err(mistake((told.line, told.column), message));
            }
            entries.push(entry);
        }
        Ok(Self { entries })
    }

    /// The entry of this file.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.path.as_str() == path)
    }

    /// The ledger as a file.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            entries: &'a [Entry],
        }
        let file = File {
            entries: &self.entries,
        };
        // Texts and lists always have a JSON form.
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }
}

impl Entry {
    /// The bytes that a person signs who accepts this entry: one line of JSON over path, hash, pins and notes.
    #[must_use]
    pub fn to_be_signed(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Accepted<'a> {
            schema: &'static str,
            path: &'a RepoPath,
            sha256: &'a str,
            pins: Vec<&'a str>,
            notes: Vec<&'a Note>,
        }
        let mut pins: Vec<&str> = self.pins.iter().map(String::as_str).collect();
        pins.sort_unstable();
        let mut notes: Vec<&Note> = self.notes.iter().collect();
        notes.sort();
        let schema = "tribunal.cassette-acceptance.v1";
        let accepted = Accepted {
            schema,
            path: &self.path,
            sha256: &self.sha256,
            pins,
            notes,
        };
        let mut bytes = serde_json::to_vec(&accepted).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Whether anybody claims to have accepted it.
    #[must_use]
    pub fn is_draft(&self) -> bool {
        self.accepted_by.is_empty() && self.signature.is_empty()
    }
}

fn entry<'a>(document: Document<'a>, raw: &'a RawValue) -> Result<Entry, Mistake> {
    const KEYS: [&str; 6] = [
        "path",
        "sha256",
        "pins",
        "notes",
        "accepted_by",
        "signature",
    ];
    let members = document.object(raw, "an entry", &KEYS)?;
    let need = |key: &str| members.need(document, raw, key);
    let text = |key: &str| {
        let found = members.get(key);
        let found = found.map(|raw| document.string(raw, key)).transpose();
        found.map(Option::unwrap_or_default)
    };
    let path = need("path")?;
    let mut pins = Vec::new();
    let said = need("pins")?;
    for raw in document.list(said, "pins")? {
        let pin = document.string(raw, "pins")?;
        if pins.contains(&pin) {
            return Err(document.wrong(raw, "pins", "names a pin twice"));
        }
        pins.push(pin);
    }
    let notes = document.list(need("notes")?, "notes")?;
    Ok(Entry {
        path: document
            .string(path, "path")?
            .parse()
            .map_err(|_| document.wrong(path, "path", "is no path of a repository"))?,
        sha256: document.fitting(
            need("sha256")?,
            "sha256",
            "64 lower-case hex digits",
            is_sha256,
        )?,
        pins,
        notes: notes
            .into_iter()
            .map(|raw| note(document, raw))
            .collect::<Result<_, _>>()?,
        accepted_by: text("accepted_by")?,
        signature: text("signature")?,
    })
}

fn note<'a>(document: Document<'a>, raw: &'a RawValue) -> Result<Note, Mistake> {
    let members = document.object(raw, "a note", &["pin", "change", "why"])?;
    let need = |key: &str| members.need(document, raw, key);
    let said = |text: &str| !text.trim().is_empty();
    let change = need("change")?;
    let word = document.string(change, "change")?;
    let words = [NoteChange::Added, NoteChange::Moved];
    Ok(Note {
        pin: document.fitting(need("pin")?, "pin", "the name of a pin", said)?,
        change: words
            .into_iter()
            .find(|known| known.word() == word)
            .ok_or_else(|| document.wrong(change, "change", "must be `added` or `moved`"))?,
        why: document.fitting(need("why")?, "why", "a reason", said)?,
    })
}
