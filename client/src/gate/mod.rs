//! A folder of verdict files, a key and an expectation become the join's answer. Offline; the judging is the core's.
//!
//! Never takes a key from the server that it is to check, unless the caller says so and says it out loud.

mod plain_tools;

pub use plain_tools::plain_tools;

use crate::cli::ChangeSet;
use crate::config::Settings;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outdir::OutFile;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tribunal_core::id::UnixTime;
use tribunal_core::join::{Blocked, Decision, Expected, Join, join};
use tribunal_core::keys::KeyRing;
use tribunal_core::plan;
use tribunal_core::text::shown;
use tribunal_core::verify::{Check, CheckResult, Step, VerdictDir, verify};

/// More than any verdict file or report has.
const FILE_LIMIT: u64 = 256 * 1024 * 1024;
/// More than any list of keys has.
const KEY_LIMIT: u64 = 1024 * 1024;

/// What can go wrong before anything is checked.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// No key was given.
    #[error("no key was given")]
    NoKey,
    /// The key file cannot be read.
    #[error("{0}: {1}")]
    KeyFile(String, std::io::Error),
    /// The key file holds no key.
    #[error("{0}: {1}")]
    Keys(String, tribunal_core::keys::KeyError),
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        let next = "pass --key FILE with what `tribunal-server key show` prints: PEM, or an allowed_signers file";
        Self::usage("find the key to verify with", error, next)
    }
}

/// Where the keys came from that a join was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file that the caller named.
    File(PathBuf),
    /// The server's own list: it vouches for itself.
    Server(String),
}

impl KeySource {
    /// What to make of it.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::File(path) => format!("verified with the key in {}", path.display()),
            Self::Server(address) => format!(
                "verified with keys that {address} itself names: good for reading, not for merging; pass --key FILE"
            ),
        }
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        match self {
            Self::File(path) => json!({"source": "file", "path": path.display().to_string()}),
            Self::Server(address) => json!({"source": "server", "address": address}),
        }
    }
}

/// The keys in a file.
///
/// # Errors
/// It cannot be read, or holds none.
pub fn keys_in(path: &Path) -> Result<KeyRing, GateError> {
    let named = || shown(&path.to_string_lossy(), 300);
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(KEY_LIMIT).read_to_string(&mut text))
        .map_err(|e| GateError::KeyFile(named(), e))?;
    KeyRing::parse(&text).map_err(|e| GateError::Keys(named(), e))
}

/// The verdict files of a folder. What is not there or cannot be read is missing, and the join says so.
#[must_use]
pub fn files_in(folder: &Path) -> VerdictDir {
    let read = |name: &String| {
        let mut content = Vec::new();
        File::open(folder.join(name))
            .ok()?
            .take(FILE_LIMIT)
            .read_to_end(&mut content)
            .ok()?;
        Some((name.clone(), content))
    };
    VerdictDir::new(VerdictDir::names().iter().filter_map(read))
}

/// The same from files that were just fetched.
#[must_use]
pub fn files_of(files: &[OutFile]) -> VerdictDir {
    VerdictDir::new(
        files
            .iter()
            .map(|file| (file.name.clone(), file.content.clone())),
    )
}

/// A folder's files, joined.
#[derive(Debug)]
pub struct Joined {
    /// The join's answer.
    pub join: Join,
    /// The keys it was made with.
    pub ring: KeyRing,
    /// Where they came from.
    pub source: KeySource,
}

impl Joined {
    /// Join what is in this folder with the key that the settings name.
    ///
    /// # Errors
    /// No key is configured, or its file cannot be read.
    pub fn of(folder: &Path, expected: &Expected, settings: &Settings) -> Result<Self, Failure> {
        let path = settings.key().ok_or(GateError::NoKey)?;
        let ring = keys_in(path)?;
        Ok(Self {
            join: join(verify(&files_in(folder), &ring), expected),
            ring,
            source: KeySource::File(path.to_owned()),
        })
    }
}

/// This machine's clock.
#[must_use]
pub fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    UnixTime(since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX)))
}

impl From<ChangeSet> for plan::ChangeSet {
    fn from(set: ChangeSet) -> Self {
        match set {
            ChangeSet::Agent => Self::Agent,
            ChangeSet::Human => Self::Human,
        }
    }
}

/// The exit code of a join.
#[must_use]
pub fn exit_of(join: &Join) -> Exit {
    match join.decision() {
        Decision::MergeOk => Exit::MergeOk,
        Decision::MergeBlocked(Blocked::Verdict) => Exit::Blocked,
        Decision::MergeBlocked(Blocked::ForbiddenMark) => Exit::ForbiddenMark,
        Decision::MergeBlocked(Blocked::CassetteGap) => Exit::CassetteGap,
        Decision::MergeBlocked(Blocked::Unverified) => Exit::Unverified,
    }
}

/// A join as one JSON document.
#[must_use]
pub fn json_of(join: &Join, source: &KeySource) -> Value {
    let checks: Vec<Value> = join.checks().iter().map(check_json).collect();
    let [src_score, oracle_integrity, flake_lease] = join.words();
    json!({
        "join": join.to_string(),
        "decision": join.decision().word(),
        "exit": exit_of(join).code(),
        "words": {
            "src_score": src_score.to_string(),
            "oracle_integrity": oracle_integrity.to_string(),
            "flake_lease": flake_lease.to_string(),
        },
        "reasons": join.reasons().iter().map(|r| r.code()).collect::<Vec<_>>(),
        "key": source.json(),
        "checks": checks,
    })
}

fn check_json(check: &Check) -> Value {
    let (result, seen) = match &check.result {
        CheckResult::Held(seen) => ("ok", seen),
        CheckResult::Failed(seen) => ("failed", seen),
        CheckResult::NotAsked(seen) => ("not-asked", seen),
    };
    let mut value = json!({
        "check": check.step.to_string(),
        "subject": check.subject,
        "result": result,
        "seen": seen,
    });
    if check.is_failure() {
        value["next"] = next_after(check.step).into();
    }
    value
}

/// What to do when a check fails.
#[must_use]
pub const fn next_after(step: Step) -> &'static str {
    match step {
        Step::Present => "fetch the verdicts again: `tribunal fetch --head SHA`",
        Step::Bundle | Step::Signature | Step::Payload | Step::Statement | Step::SshSignature => {
            "do not use these files; fetch them again, and if that does not help, tell the operator"
        }
        Step::Key => {
            "fetch the verdicts from the server whose key you gave, or give the key that the operator shows"
        }
        Step::KeyDates => "score again: the key that signed these was retired or revoked by then",
        Step::Word | Step::Report | Step::TestResult => {
            "somebody changed this file after it was signed; fetch it again"
        }
        Step::OneSet => "these files are of different scores; fetch one score's set again",
        Step::Repository | Step::Head => {
            "these verdicts are about something else; fetch those of what you want merged"
        }
        Step::Base => "the protected branch moved on; score against its tip",
        Step::ChangeSet => {
            "a person merges a change of the oracle; pass --change-set human if that is meant"
        }
        Step::Age => "score again: these verdicts are not good now",
        Step::Words => "see what to fix: `tribunal explain DIR`",
    }
}
