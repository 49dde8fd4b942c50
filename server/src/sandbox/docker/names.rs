//! What our containers and volumes are called and labelled, and which of them are alive or were left behind.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
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

/// Containers by name: those some task owns, and those whose removal did not succeed.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    owned: BTreeSet<String>,
    left: BTreeSet<String>,
}

impl Ledger {
    /// A task is about to make this container.
    pub(super) fn own(&self, name: &str) {
        self.lock().owned.insert(name.to_owned());
    }

    /// It is gone.
    pub(super) fn gone(&self, name: &str) {
        let mut books = self.lock();
        books.owned.remove(name);
        books.left.remove(name);
    }

    /// Its task ended without seeing it gone.
    pub(super) fn leave(&self, name: &str) {
        let mut books = self.lock();
        books.owned.remove(name);
        books.left.insert(name.to_owned());
    }

    /// Whether a task owns it.
    pub(super) fn is_owned(&self, name: &str) -> bool {
        self.lock().owned.contains(name)
    }

    /// What was left behind and is still to be removed.
    pub(super) fn left(&self) -> Vec<String> {
        self.lock().left.iter().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
