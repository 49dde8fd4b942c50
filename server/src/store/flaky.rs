//! Mixed cases over time, as plain values: what a judgement says of one, and what all of them come to.
//!
//! A judgement's rows come with its completion and go with its score. They say no more than its report does, in a form that
//! can be looked through without opening reports.

use super::record::AttemptKey;
use serde::{Deserialize, Serialize};
use tribunal_core::id::{NodeId, RepoName, ScoreId, TokenId, UnixTime};
use tribunal_core::judge::{Moved, Owed, Source};
use tribunal_core::outcome::Lane;

/// What is to blame for a mixed case, and what it owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blame {
    /// The source; `None` where it read nothing.
    pub source: Option<Source>,
    /// The one change of pins that settled it, where that was tried.
    pub moved: Option<Moved>,
    /// The artifact.
    pub owed: Owed,
}

/// A case that one judgement found mixed: which evidence it saw, and what it counted in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedCase {
    /// The evidence.
    pub evidence: AttemptKey,
    /// Its name.
    pub node: NodeId,
    /// Its name as the agent that asked may hear it; `None` where it may not.
    pub for_agent: Option<NodeId>,
    /// Its case digest; empty where it has none.
    pub digest: String,
    /// Attempts that speak of it.
    pub attempts: u32,
    /// Those of them that it did not pass.
    pub failures: u32,
    /// What is to blame.
    pub blame: Blame,
}

/// Whose scores, and whose names, are looked through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// All of them.
    Whole,
    /// Those of an agent's token, as it may hear them named.
    Agent(TokenId),
}

/// Which mixed cases are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlakyFilter {
    /// Of this repository.
    pub repository: RepoName,
    /// By whom.
    pub sight: Sight,
    /// Seen last before this number only.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: u32,
}

/// A case of one digest over all scores that found it mixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlakyCase {
    /// The place of the last of them in the order of all; pages go by it.
    pub number: u64,
    /// Its name.
    pub node: NodeId,
    /// Its case digest; empty where it has none.
    pub digest: String,
    /// The lane it ran in.
    pub lane: Lane,
    /// When the first of them ended.
    pub first: UnixTime,
    /// When the last did.
    pub last: UnixTime,
    /// Attempts that speak of it; those that several of them saw count once.
    pub attempts: u64,
    /// Those of them that it did not pass.
    pub failures: u64,
    /// What the last of them blames.
    pub blame: Blame,
    /// The scores, the newest first, at most [`FLAKY_SCORES`].
    pub scores: Vec<ScoreId>,
    /// How many there are.
    pub score_count: u64,
}

/// Scores that a list names of one case.
pub const FLAKY_SCORES: usize = 20;
