//! What our containers and volumes are called and labelled, and which of them are alive or were left behind.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tribunal_core::id::Digest;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Which server a thing belongs to.
pub(super) const INSTANCE: &str = "tribunal.instance";
/// Which score it was made for.
pub(super) const SCORE: &str = "tribunal.score";
/// `room`, `sealer` or `tree`.
pub(super) const KIND: &str = "tribunal.kind";
/// Which tree a volume or sealer is about.
pub(super) const TREE: &str = "tribunal.tree";

/// The kinds of thing that we make in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Room,
    Sealer,
    Tree,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Sealer => "sealer",
            Self::Tree => "tree",
        }
    }
}

/// The server's own name in the engine, the same over restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Instance(String);

impl Instance {
    /// `name` must be fit for a label filter and a container's name.
    pub(super) fn new(name: &str) -> Result<Self, Aborted> {
        let fit = (1..=32).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if fit {
            Ok(Self(name.to_owned()))
        } else {
            Err(Aborted::new(
                AbortedCode::Internal,
                "the server's instance name must be 1 to 32 of a-z 0-9",
            ))
        }
    }

    pub(super) fn labels(&self, kind: Kind) -> HashMap<String, String> {
        HashMap::from([
            (INSTANCE.to_owned(), self.0.clone()),
            (KIND.to_owned(), kind.word().to_owned()),
        ])
    }

    /// The filter that finds everything of this server.
    pub(super) fn filter(&self) -> HashMap<String, Vec<String>> {
        HashMap::from([("label".to_owned(), vec![format!("{INSTANCE}={}", self.0)])])
    }

    /// A name that nobody can foresee or take.
    pub(super) fn fresh_name(&self, kind: Kind) -> Result<String, Aborted> {
        let mut random = [0u8; 12];
        getrandom::fill(&mut random).map_err(|error| {
            Aborted::new(
                AbortedCode::Internal,
                format!("failed to draw a name: {error}"),
            )
        })?;
        Ok(format!(
            "tribunal-{}-{}-{}",
            self.0,
            kind.word(),
            hex::encode(random)
        ))
    }

    /// The volume of a tree.
    pub(super) fn volume(&self, digest: &Digest) -> String {
        format!("tribunal-{}-tree-{}", self.0, digest.hex())
    }
}

/// How long a create whose call broke off may still be under way in the engine.
const UNDER_WAY: Duration = Duration::from_secs(120);

/// Containers by name: those some task owns, and those whose removal did not succeed.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    owned: BTreeSet<String>,
    left: BTreeMap<String, Left>,
    reaper: Reaper,
}

/// Whether somebody is removing what was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reaper {
    #[default]
    Wanted,
    Working,
}

/// What is known of a container that was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The engine made it.
    Made,
    /// Its create broke off then: the engine may make it yet.
    Perhaps(Instant),
}

impl Ledger {
    /// A task is about to make this container.
    pub(super) fn own(&self, name: &str) {
        self.lock().owned.insert(name.to_owned());
    }

    /// It was removed.
    pub(super) fn removed(&self, name: &str) {
        let mut books = self.lock();
        books.owned.remove(name);
        books.left.remove(name);
    }

    /// The engine does not know it; which says little while its create may be under way.
    pub(super) fn unknown(&self, name: &str) {
        let mut books = self.lock();
        if let Some(Left::Perhaps(since)) = books.left.get(name)
            && since.elapsed() < UNDER_WAY
        {
            return;
        }
        books.owned.remove(name);
        books.left.remove(name);
    }

    /// Its task ended without seeing it gone. Says whether a reaper is wanted: whoever is told so sends one.
    pub(super) fn leave(&self, name: &str, left: Left) -> Reaper {
        let mut books = self.lock();
        books.owned.remove(name);
        books.left.insert(name.to_owned(), left);
        std::mem::replace(&mut books.reaper, Reaper::Working)
    }

    /// What the reaper still has to do; with nothing left it is dismissed.
    pub(super) fn work_left(&self) -> Vec<String> {
        let mut books = self.lock();
        if books.left.is_empty() {
            books.reaper = Reaper::Wanted;
        }
        books.left.keys().cloned().collect()
    }

    /// Whether a task owns it.
    pub(super) fn is_owned(&self, name: &str) -> bool {
        self.lock().owned.contains(name)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    #[test]
    fn a_create_that_broke_off_is_waited_for() {
        let ledger = Ledger::default();
        ledger.own("a");
        ledger.own("b");
        let first = ledger.leave("a", Left::Perhaps(Instant::now()));
        let second = ledger.leave("b", Left::Made);
        assert_eq!((first, second), (Reaper::Wanted, Reaper::Working));
        assert!(!ledger.is_owned("a"));
        ledger.unknown("a");
        ledger.unknown("b");
        assert_eq!(ledger.work_left(), ["a"]);
        ledger.removed("a");
        assert!(ledger.work_left().is_empty());
        if let Some(long_ago) = Instant::now().checked_sub(UNDER_WAY) {
            ledger.leave("c", Left::Perhaps(long_ago));
            ledger.unknown("c");
            assert!(ledger.work_left().is_empty());
        }
    }

    #[test]
    fn names_are_fit_for_the_engine_and_never_the_same() {
        assert!(Instance::new("Not Fit").is_err());
        assert!(Instance::new("").is_err());
        let instance = Instance::new("a1").unwrap();
        let one = instance.fresh_name(Kind::Room).unwrap();
        assert_ne!(one, instance.fresh_name(Kind::Room).unwrap());
        assert!(one.starts_with("tribunal-a1-room-"));
    }
}
