//! A folder of verdict files and a ring of keys become a verified set, check by check, each with its name.
//!
//! The word comes from signed bytes alone. Strict: one signature, every byte as this server writes it; what is spelled in
//! another way is another file. Knows no clock and no wish: for which commit, and how old, is `join`'s question.

use crate::id::{KeyId, UnixTime};
use crate::judge::{VerdictKind, Word};
use crate::keys::KeyRing;
use crate::statement::Predicate;
use std::collections::BTreeMap;
use std::fmt;

mod bundle;
mod set;

/// The files of a verdict folder, by name. The caller reads them; names this crate does not know are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerdictDir(BTreeMap<String, Vec<u8>>);

impl VerdictDir {
    /// A folder with these files.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self(files.into_iter().collect())
    }
    /// The names that are of use here; nothing else need be read.
    #[must_use]
    pub fn names() -> Vec<String> {
        let mut names = vec![
            "report.json".to_owned(),
            format!("{}.sigstore.json", crate::statement::TEST_RESULT_STEM),
        ];
        for kind in VerdictKind::ALL {
            let stem = kind.file_stem();
            names.extend(
                [".txt", ".sigstore.json", ".json", ".json.sig"].map(|e| format!("{stem}{e}")),
            );
        }
        names
    }
    #[cfg(test)]
    pub(crate) fn files_mut(&mut self) -> &mut BTreeMap<String, Vec<u8>> {
        &mut self.0
    }
    pub(crate) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

/// What is checked, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The file is there.
    Present,
    /// The bundle is one of ours, byte for byte, with exactly one signature.
    Bundle,
    /// The key it names is known, and named alike in both places.
    Key,
    /// The envelope's signature holds.
    Signature,
    /// `NAME.json` is the envelope's payload.
    Payload,
    /// The payload is a statement of this kind, and its subjects are what it says.
    Statement,
    /// The key was good when the statement was issued.
    KeyDates,
    /// `NAME.json.sig` is the same key's signature.
    SshSignature,
    /// `NAME.txt` is the signed word.
    Word,
    /// The three are of one score.
    OneSet,
    /// `report.json` is one that the statements name.
    Report,
    /// The copy with the standard predicate says the same.
    TestResult,
    /// It is of the repository that is expected.
    Repository,
    /// It is of the head that is expected.
    Head,
    /// It is of the base that is expected.
    Base,
    /// It is the kind of change set that was asked for.
    ChangeSet,
    /// It is neither expired nor from the future.
    Age,
    /// All three words are PASS.
    Words,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "present",
            Self::Bundle => "bundle",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Payload => "payload",
            Self::Statement => "statement",
            Self::KeyDates => "key-dates",
            Self::SshSignature => "ssh-signature",
            Self::Word => "word",
            Self::OneSet => "one-set",
            Self::Report => "report",
            Self::TestResult => "test-result",
            Self::Repository => "repository",
            Self::Head => "head",
            Self::Base => "base",
            Self::ChangeSet => "change-set",
            Self::Age => "age",
            Self::Words => "words",
        })
    }
}

/// What a check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// It holds; with what was seen.
    Held(String),
    /// It does not; with what was seen.
    Failed(String),
    /// It was not asked; with why.
    NotAsked(String),
}

/// One check. Texts are fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub step: Step,
    /// The file or value it is about.
    pub subject: String,
    /// What it came to.
    pub result: CheckResult,
}

impl Check {
    pub(crate) fn held(step: Step, subject: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            step,
            subject: subject.into(),
            result: CheckResult::Held(seen.into()),
        }
    }
    pub(crate) fn failed(step: Step, subject: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            step,
            subject: subject.into(),
            result: CheckResult::Failed(seen.into()),
        }
    }
    pub(crate) fn not_asked(
        step: Step,
        subject: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            step,
            subject: subject.into(),
            result: CheckResult::NotAsked(why.into()),
        }
    }
    /// It failed.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        match self.result {
            CheckResult::Failed(_) => true,
            CheckResult::Held(_) | CheckResult::NotAsked(_) => false,
        }
    }
}

/// One verdict whose files all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedVerdict {
    pub(crate) kind: VerdictKind,
    pub(crate) key: KeyId,
    pub(crate) issued_at: UnixTime,
    pub(crate) valid_until: UnixTime,
    pub(crate) predicate: Predicate,
}

impl SignedVerdict {
    /// Which one.
    #[must_use]
    pub const fn kind(&self) -> VerdictKind {
        self.kind
    }
    /// The signed word.
    #[must_use]
    pub fn word(&self) -> Word {
        self.predicate.result.into()
    }
    /// Who signed.
    #[must_use]
    pub const fn key(&self) -> &KeyId {
        &self.key
    }
    /// When.
    #[must_use]
    pub const fn issued_at(&self) -> UnixTime {
        self.issued_at
    }
    /// Until when it is worth anything.
    #[must_use]
    pub const fn valid_until(&self) -> UnixTime {
        self.valid_until
    }
    /// All it says.
    #[must_use]
    pub const fn predicate(&self) -> &Predicate {
        &self.predicate
    }
}

/// Why there is no verified verdict of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// One of its files is not there.
    Missing,
    /// One of its checks failed.
    Failed,
}

/// All that was found of a folder. Only [`verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    pub(crate) checks: Vec<Check>,
    pub(crate) verdicts: [Result<SignedVerdict, Unverified>; 3],
}

impl Verification {
    /// Every check, in order.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }
    /// The verdicts, in the order of the join.
    pub const fn verdicts(&self) -> &[Result<SignedVerdict, Unverified>; 3] {
        &self.verdicts
    }
    /// All checks hold and all three verdicts are there.
    #[must_use]
    pub fn verified(&self) -> Option<[&SignedVerdict; 3]> {
        if self.checks.iter().any(Check::is_failure) {
            return None;
        }
        match &self.verdicts {
            [Ok(a), Ok(b), Ok(c)] => Some([a, b, c]),
            [Err(_), _, _] | [_, Err(_), _] | [_, _, Err(_)] => None,
        }
    }
}

/// Check everything in the folder that does not depend on what the caller expects.
#[must_use]
pub fn verify(dir: &VerdictDir, keys: &KeyRing) -> Verification {
    let mut checks = Vec::new();
    let verdicts = VerdictKind::ALL.map(|kind| bundle::verdict(kind, dir, keys, &mut checks));
    set::checks(dir, keys, &verdicts, &mut checks);
    Verification { checks, verdicts }
}

#[cfg(test)]
mod tests;
