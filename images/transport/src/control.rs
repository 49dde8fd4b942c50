//! What PID 1 and this process say to each other: one JSON object a line, each with one key.
//!
//! PID 1 is trusted, and its lines are taken as they come; nothing of it can be reached by a case. What a case sends
//! stands in a line only as escaped text or base64, and is capped.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From PID 1.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A record, before any case runs. A second one for the same node replaces the first.
    Cassette(Cassette),
    /// A part of a body that exchanges name by its digest.
    Body(BodyPart),
    /// A case begins.
    On(On),
    /// It is over.
    Off(Off),
    /// What came back for an [`Said::Ask`], in parts.
    Answer(AnswerPart),
}

/// The HTTP part of one cassette.
#[derive(Debug, Deserialize)]
pub struct Cassette {
    /// Whose.
    pub node: String,
    /// In replay order.
    #[serde(default)]
    pub http: Vec<Exchange>,
}

/// One recorded exchange. What is absent is not compared.
#[derive(Debug, Clone, Deserialize)]
pub struct Exchange {
    /// In capitals.
    pub method: String,
    /// As it is sent, percent-encoded.
    pub path: String,
    /// With its port where that is not the scheme's own.
    #[serde(default)]
    pub host: Option<String>,
    /// Without the question mark.
    #[serde(default)]
    pub query: Option<String>,
    /// Of the request's body.
    #[serde(default)]
    pub request_sha256: Option<String>,
    /// Of the answer.
    pub status: u16,
    /// Of the answer.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Of the answer's body; none is an empty one.
    #[serde(default)]
    pub body_sha256: Option<String>,
}

/// A part of a body.
#[derive(Debug, Deserialize)]
pub struct BodyPart {
    /// Of the whole, lower-case hex.
    pub sha256: String,
    /// Base64.
    pub data: String,
    /// Whether another part follows.
    #[serde(default)]
    pub more: bool,
}

/// A case begins.
#[derive(Debug, Deserialize)]
pub struct On {
    /// Which.
    pub node: String,
    /// Where requests go.
    #[serde(default)]
    pub mode: Mode,
}

/// Where a case's requests go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Its cassette answers.
    #[default]
    Replay,
    /// PID 1 is asked: the case is being recorded.
    Relay,
}

/// A case is over.
#[derive(Debug, Deserialize)]
pub struct Off {}

/// A part of an answer from outside.
#[derive(Debug, Deserialize)]
pub struct AnswerPart {
    /// The ask's.
    pub id: u64,
    /// In the first part; 0 when nothing answered.
    #[serde(default)]
    pub status: u16,
    /// In the first part.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Base64.
    #[serde(default)]
    pub data: String,
    /// Whether another part follows.
    #[serde(default)]
    pub more: bool,
}

/// To PID 1.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Once, first.
    Ready(Ready),
    /// The case's cassette is on: requests that come after this line are the case's.
    On(Onset),
    /// What the case did with it.
    Off(Summary),
    /// A request to perform, in parts.
    Ask(AskPart),
}

/// What is there now.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The authority's certificate, PEM.
    pub authority: String,
    /// The TCP ports held, in the order asked for.
    pub ports: Vec<u16>,
    /// The UDP port that answers for names.
    pub names: u16,
}

/// Whether there is a cassette for the case.
#[derive(Debug, Serialize, Deserialize)]
pub struct Onset {
    /// Where there is none, everything is a miss.
    pub known: bool,
}

/// What a case did with its cassette.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// `http:<METHOD> <path>` of every exchange that was replayed, in the cassette's order, equal ones as often as used.
    pub used: Vec<String>,
    /// What was asked and is not in the record, in the order asked.
    pub misses: Vec<String>,
}

/// A part of a request that somebody outside of the room is to perform.
#[derive(Debug, Serialize, Deserialize)]
pub struct AskPart {
    /// Its number.
    pub id: u64,
    /// In the first part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<AskHead>,
    /// Base64 of the body, or a part of it.
    pub data: String,
    /// Whether another part follows.
    pub more: bool,
}

/// The head of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AskHead {
    /// `http` or `https`.
    pub scheme: String,
    /// In capitals.
    pub method: String,
    /// With its port where that is not the scheme's own.
    pub host: String,
    /// As it was sent.
    pub path: String,
    /// Without the question mark; none is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// All of them, in order.
    pub headers: Vec<(String, String)>,
}
