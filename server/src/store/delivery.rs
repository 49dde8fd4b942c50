//! What is to be told outside of this server: from a score's end to the last word of whoever was to hear of it.

use tribunal_core::id::{ScoreId, UnixTime};

/// One message to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its name over all retries: whoever hears it twice knows it.
    pub id: String,
    /// Whom the configuration means.
    pub target: String,
    /// What it is about, for this target: a newer message about the same takes the place of one that waits.
    pub subject: Option<String>,
    /// The exact bytes.
    pub body: String,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the order of all.
    pub number: u64,
    /// What.
    pub message: Message,
    /// The score that it tells of.
    pub score: ScoreId,
    /// Since when.
    pub created: UnixTime,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried next.
    pub due: UnixTime,
}
