//! What became of each pin between two versions of a record.

use super::schema::Cassette;
use crate::git::GitPath;
use serde::{Deserialize, Serialize};

/// One line of the ledger's difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The cassette.
    pub path: String,
    /// The pin; none where no pin in particular is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// What became of it.
    pub change: PinChange,
    /// Why, as the note says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Who accepted it; none where nobody did whose word counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<String>,
}

/// What became of a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PinChange {
    /// It is new.
    Added,
    /// It holds something else now.
    Moved,
    /// It, or one of its exchanges, is gone.
    Lost,
    /// The file's bytes differ, its pins do not.
    Respelled,
    /// Only the ledger's entry differs.
    Entry,
}

impl PinChange {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Moved => "moved",
            Self::Lost => "lost",
            Self::Respelled => "respelled",
            Self::Entry => "entry",
        }
    }
}

impl Change {
    fn of(path: &GitPath, pin: Option<&str>, change: PinChange) -> Self {
        Self {
            path: path
                .as_utf8()
                .map_or_else(|| path.to_string(), str::to_owned),
            pin: pin.map(str::to_owned),
            change,
            why: None,
            accepted_by: None,
        }
    }

    /// A change of the ledger's entry alone.
    pub(super) fn entry(path: &GitPath) -> Self {
        Self::of(path, None, PinChange::Entry)
    }
}

/// The difference of two versions whose bytes differ. A record that speaks for another test lost what it held.
#[must_use]
pub fn changes(path: &GitPath, before: Option<&Cassette>, after: Option<&Cassette>) -> Vec<Change> {
    let pins = |record: Option<&Cassette>| record.map(Cassette::pins).unwrap_or_default();
    let (old, new) = (pins(before), pins(after));
    let other_test =
        matches!((before, after), (Some(before), Some(after)) if before.test != after.test);
    let mut found: Vec<Change> = Vec::new();
    for (pin, held) in &old {
        let now = new.get(pin).filter(|_| !other_test);
        let change = match now {
            None => PinChange::Lost,
            Some(now) if now.len() < held.len() => PinChange::Lost,
            Some(now) if now != held => PinChange::Moved,
            Some(_) => continue,
        };
        found.push(Change::of(path, Some(pin), change));
    }
    let added = new
        .keys()
        .filter(|pin| other_test || !old.contains_key(*pin));
    found.extend(added.map(|pin| Change::of(path, Some(pin), PinChange::Added)));
    if found.is_empty() && after.is_some() {
        found.push(Change::of(path, None, PinChange::Respelled));
    }
    found
}
