//! What a caller asks for, checked in itself: ids are full, fields fit, all violations are told together.
//!
//! Never looks at a repository; whether the commits exist is the repository room's question.

use crate::id::{CommitId, RepoName, RequestId, TokenId};
use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Untrusted: uploads, scores, sees its own uploads.
    Agent,
    /// Reads verdicts, may ask for a score.
    Ci,
    /// Owns the oracle: human change sets, fresh attempts.
    Maintainer,
    /// Runs the server.
    Operator,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The token's public id.
    pub token: TokenId,
    /// Its role.
    pub role: Role,
    /// The only repository it may see; `None` is all of them.
    pub scope: Option<RepoName>,
}

/// Whether stored attempts of the same content may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Freshness {
    /// Reuse stored attempts of the same content.
    Stored,
    /// Run new attempts; stored ones still count in the judgement. Maintainers and operators only.
    Fresh,
}

/// A request as it came, nothing checked.
#[derive(Debug, Clone, Default)]
pub struct RawScoreRequest {
    /// Repository id.
    pub repository: String,
    /// Head, as hex.
    pub head: String,
    /// Base, as hex; empty for the protected tip.
    pub base: String,
    /// The caller's idempotency key; empty lets the server draw one.
    pub request_id: String,
    /// Ask for new attempts.
    pub fresh: bool,
}

/// A request that holds in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRequest {
    repository: RepoName,
    head: CommitId,
    base: Option<CommitId>,
    request_id: Option<RequestId>,
    freshness: Freshness,
    caller: Caller,
}
