//! What the store keeps, as plain values.

use super::flaky::MixedCase;
use serde::{Deserialize, Serialize};
use tribunal_core::id::{CommitId, Digest, RepoName, RequestId, ScoreId, TokenId, UnixTime};
use tribunal_core::judge::Word;
use tribunal_core::outcome::{AttemptFacts, Lane};
use tribunal_core::plan::ChangeSet;
use tribunal_core::reason::Aborted;
use tribunal_core::request::{Freshness, Role};

/// An access token without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The public part of its name.
    pub id: TokenId,
    /// SHA-256 of the secret part.
    pub secret_hash: [u8; 32],
    /// What it may do.
    pub role: Role,
    /// The only repository it may see; `None` is all of them.
    pub scope: Option<RepoName>,
    /// When it was made.
    pub created: UnixTime,
    /// From when on it opens nothing.
    pub expires: Option<UnixTime>,
    /// Since when it opens nothing by command.
    pub revoked: Option<UnixTime>,
}

/// The three words of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Does the new product code hold against the old oracle?
    pub src_score: Word,
    /// Did the measuring stick stay where it was?
    pub oracle_integrity: Word,
    /// Is every silence paid for, and is nothing unstable hidden?
    pub flake_lease: Word,
}

/// A score about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewScore {
    /// Drawn by the server.
    pub id: ScoreId,
    /// Where.
    pub repository: RepoName,
    /// What is scored.
    pub head: CommitId,
    /// What supplies the oracle.
    pub base: CommitId,
    /// The protected tip at admission.
    pub base_tip: CommitId,
    /// Whose change set.
    pub change_set: ChangeSet,
    /// The idempotency key.
    pub request_id: RequestId,
    /// Who asked.
    pub token: TokenId,
    /// As what.
    pub role: Role,
    /// Whether stored attempts may serve.
    pub freshness: Freshness,
    /// When it was admitted.
    pub created: UnixTime,
}

/// Where a score is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoreState {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// Judged, signed, stored.
    Completed(Words),
    /// Ended without a verdict.
    Aborted(Aborted),
}

/// A score as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRecord {
    /// Its place in the order of all scores; pages go by it.
    pub number: u64,
    /// What was asked.
    pub asked: NewScore,
    /// Where it is.
    pub state: ScoreState,
    /// When a worker took it.
    pub started: Option<UnixTime>,
    /// When it ended.
    pub ended: Option<UnixTime>,
}

/// What came of asking for a score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    New(ScoreRecord),
    /// The same token used this request id before.
    Before(ScoreRecord),
}

/// Which scores are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreFilter {
    /// Of this repository.
    pub repository: RepoName,
    /// Of this token only.
    pub token: Option<TokenId>,
    /// Of this head only.
    pub head: Option<CommitId>,
    /// Against this base only.
    pub base: Option<CommitId>,
    /// In this state only.
    pub state: Option<StateName>,
    /// Older than this number only.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// A state without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// QUEUED.
    Queued,
    /// RUNNING.
    Running,
    /// COMPLETED.
    Completed,
    /// ABORTED.
    Aborted,
}

impl ScoreState {
    /// Its name alone.
    #[must_use]
    pub const fn name(&self) -> StateName {
        match self {
            Self::Queued => StateName::Queued,
            Self::Running => StateName::Running,
            Self::Completed(_) => StateName::Completed,
            Self::Aborted(_) => StateName::Aborted,
        }
    }
}

/// What happened to a score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// It waits.
    Queued {
        /// 1 is next.
        position: u32,
    },
    /// A worker has it.
    Preparing {
        /// What is being done, for a person.
        stage: String,
    },
    /// An attempt began.
    AttemptStarted {
        /// Its lane.
        lane: Lane,
        /// Which one.
        index: u32,
        /// Of how many.
        total: u32,
    },
    /// Cases of the running attempt are over.
    CasesDone {
        /// The attempt's lane.
        lane: Lane,
        /// Which attempt.
        index: u32,
        /// How many cases are over.
        done: u32,
        /// Of how many; 0 where it is not known.
        total: u32,
    },
    /// An attempt is over.
    AttemptEnded {
        /// Its lane.
        lane: Lane,
        /// Which one.
        index: u32,
        /// Of how many.
        total: u32,
        /// Where it came from.
        source: AttemptSource,
    },
    /// The judge has decided.
    Judged {
        /// The words.
        words: Words,
    },
    /// The end: signed.
    Completed {
        /// The words.
        words: Words,
    },
    /// The end: no verdict.
    Aborted {
        /// Why.
        code: tribunal_core::reason::AbortedCode,
        /// What in particular.
        message: String,
    },
}

impl EventKind {
    /// Whether anything can follow it.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Aborted { .. } => true,
            Self::Queued { .. }
            | Self::Preparing { .. }
            | Self::AttemptStarted { .. }
            | Self::CasesDone { .. }
            | Self::AttemptEnded { .. }
            | Self::Judged { .. } => false,
        }
    }
}

/// Where an attempt came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptSource {
    /// It was run for this score.
    Run,
    /// It was stored before.
    Stored,
}

/// An event as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// 1, 2, … within the score.
    pub sequence: u64,
    /// When.
    pub at: UnixTime,
    /// What.
    pub kind: EventKind,
}

/// Who may have a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Audience {
    /// Everyone who may see the score.
    Everyone,
    /// Agents' tokens, as the policy's feedback level allows.
    Agent,
    /// CI and maintainers.
    Reader,
    /// The operator.
    Operator,
}

impl Audience {
    /// Which one a role belongs to.
    #[must_use]
    pub const fn of(role: Role) -> Self {
        match role {
            Role::Agent => Self::Agent,
            Role::Ci | Role::Maintainer => Self::Reader,
            Role::Operator => Self::Operator,
        }
    }
}

/// One file of a score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its name, without a folder.
    pub name: String,
    /// Who may have it. Equal contents are kept once.
    pub audience: Audience,
    /// Its exact bytes.
    pub content: bytes::Bytes,
}

/// The end of a judged score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The words.
    pub words: Words,
    /// Everything to be handed out.
    pub files: Vec<StoredFile>,
    /// What it found mixed.
    pub mixed: Vec<MixedCase>,
}

/// What evidence is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    /// Overlay, image, pins, policy and runner in one digest.
    pub content: Digest,
    /// The lane.
    pub lane: Lane,
}

/// One attempt as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredAttempt {
    /// The score that ran it.
    pub run: ScoreId,
    /// When it was stored.
    pub at: UnixTime,
    /// What it reported.
    pub facts: AttemptFacts,
}

/// What base collects, as JSON of the pipeline's own making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected(pub String);
