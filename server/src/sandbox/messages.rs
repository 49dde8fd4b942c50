//! What frames say: orders as they are written, messages as they are read. `images/python/PROTOCOL.md` is the contract.
//!
//! Ids arrive as plain text here: whether a text is a node id is for `gather` to say, because a bad one is the attempt's
//! doing and a bad frame is ours.

use super::outside::Answered;
use super::{AfterFailure, AttemptMode, AttemptOrder, Extent, MarksAsked, Product, RunOrder};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tribunal_core::cassette::{Exchange, InEffect};
use tribunal_core::id::{NodeId, RepoPath, Seed};
use tribunal_core::judge::{FORBIDDEN, Moved, PlantedChange};
use tribunal_core::outcome::{
    Canaries, CassetteUse, End, ExceptionText, MarksFound, Phase, Raiser, Reads, Tamper, When,
};
use tribunal_core::policy::Policy;
use tribunal_core::statement::Isolation;

/// Bytes of a body in one frame, before they are base64.
const BODY_PIECE: usize = 512 << 10;

/// Ports that a room's cassettes may name beside those of HTTP.
const MOST_PORTS: usize = 100;

/// The version of the conversation that this server speaks.
pub(crate) const PROTOCOL: u32 = 1;

/// Server to harness.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Order<'a> {
    Configure(Box<Configure<'a>>),
    Warm { ahead: Vec<u32> },
    Src { size: usize },
    SrcEnd,
    Attempt(Attempt<'a>),
    Digests { files: &'a [RepoPath] },
    Plant { seed: Seed, of: u32 },
    Marks(Marks<'a>),
    Cassette(OnRecord<'a>),
    Body(BodyPiece<'a>),
    Answer(AnswerPiece<'a>),
    Bye,
}

/// What holds for the whole room.
#[derive(Debug, Serialize)]
pub(crate) struct Configure<'a> {
    policy: RoomPolicy<'a>,
    files: &'a [RepoPath],
    starts: Vec<Start>,
    uid_base: u32,
    uid_count: u32,
    clock: &'a str,
    seed: Seed,
    /// The network that cassettes answer for, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<Transport>,
}

/// What a room with cassettes has instead of a network.
#[derive(Debug, Serialize)]
struct Transport {
    /// Beside those of HTTP.
    ports: BTreeSet<u16>,
    /// Whether requests come out to be performed.
    relay: bool,
}

impl Transport {
    fn of(order: &RunOrder) -> Option<Self> {
        let exchanges = order.cassettes.iter().flat_map(|each| &each.cassette.http);
        let port = |exchange: &Exchange| exchange.host.as_ref()?.rsplit_once(':')?.1.parse().ok();
        (!order.cassettes.is_empty()).then(|| Self {
            ports: exchanges
                .filter_map(port)
                .filter(|port| !matches!(port, 0 | 80 | 443))
                .take(MOST_PORTS)
                .collect(),
            relay: order.outside.is_some(),
        })
    }
}

#[derive(Debug, Serialize)]
struct Start {
    hash_seed: u32,
}

#[derive(Debug, Serialize)]
struct RoomPolicy<'a> {
    src_roots: &'a [String],
    sealed_roots: &'a [String],
    pythonpath: &'a [String],
    shared: Vec<&'a RepoPath>,
    timezone: &'a str,
    seed_env: &'a [String],
    own_names: &'a [String],
    attempt_timeout_ms: u64,
    case_timeout_ms: u64,
    output_bytes: u64,
    tmp_exec: bool,
    preload: &'a str,
    forbid_marks: &'a [String],
    cpus: u32,
    memory_bytes: u64,
}

impl<'a> Configure<'a> {
    /// The room's part of a run order, with the uids it may use.
    pub(crate) fn of(order: &'a RunOrder, uid_base: u32, uid_count: u32) -> Self {
        let policy = &order.policy;
        Self {
            policy: RoomPolicy {
                src_roots: &policy.paths.src,
                sealed_roots: &policy.paths.sealed,
                pythonpath: &policy.runner.pythonpath,
                shared: order
                    .files
                    .iter()
                    .filter(|file| policy.runner.shared.contains(file))
                    .collect(),
                timezone: &policy.pins.timezone,
                seed_env: &policy.pins.seed_env,
                own_names: &order.own_names,
                attempt_timeout_ms: policy.runs.attempt_timeout_ms,
                case_timeout_ms: policy.runs.case_timeout_ms,
                output_bytes: policy.limits.output,
                tmp_exec: policy.limits.tmp_exec,
                preload: &policy.runner.preload,
                forbid_marks: &policy.runs.forbid_marks,
                cpus: policy.limits.cpus,
                memory_bytes: policy.limits.memory,
            },
            files: &order.files,
            starts: order
                .starts
                .iter()
                .map(|&hash_seed| Start { hash_seed })
                .collect(),
            uid_base,
            uid_count,
            clock: &policy.pins.clock,
            seed: policy.pins.seed,
            transport: Transport::of(order),
        }
    }
}

/// What is on record for one case.
#[derive(Debug, Serialize)]
pub(crate) struct OnRecord<'a> {
    node: &'a NodeId,
    clock: Option<&'a str>,
    seed: Option<u32>,
    fs: &'a BTreeMap<String, Vec<String>>,
    http: &'a [Exchange],
}

impl<'a> OnRecord<'a> {
    pub(crate) fn of(record: &'a InEffect) -> Self {
        let cassette = &record.cassette;
        Self {
            node: &cassette.test,
            clock: cassette.clock.as_deref(),
            seed: cassette.rng_seed,
            fs: &cassette.fs,
            http: &cassette.http,
        }
    }
}

/// A piece of a recorded body.
#[derive(Debug, Serialize)]
pub(crate) struct BodyPiece<'a> {
    sha256: &'a str,
    data: String,
    more: bool,
}

impl<'a> BodyPiece<'a> {
    /// A body in pieces that fit into frames; an empty one is one piece.
    pub(crate) fn all(sha256: &'a str, body: &'a [u8]) -> impl Iterator<Item = Self> + 'a {
        let pieces = body.len().div_ceil(BODY_PIECE).max(1);
        (0..pieces).map(move |number| {
            let start = number * BODY_PIECE;
            let end = body.len().min(start + BODY_PIECE);
            Self {
                sha256,
                data: BASE64.encode(body.get(start..end).unwrap_or_default()),
                more: number + 1 < pieces,
            }
        })
    }
}

/// A piece of what came back for a request.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerPiece<'a> {
    id: u64,
    status: u16,
    headers: &'a [(String, String)],
    data: String,
    more: bool,
}

impl<'a> AnswerPiece<'a> {
    /// An answer in pieces that fit into frames; the headers are in each, the first one's count.
    pub(crate) fn all(id: u64, answer: &'a Answered) -> impl Iterator<Item = Self> + 'a {
        let body = &answer.body;
        let pieces = body.len().div_ceil(BODY_PIECE).max(1);
        (0..pieces).map(move |number| {
            let start = number * BODY_PIECE;
            let end = body.len().min(start + BODY_PIECE);
            Self {
                id,
                status: answer.status,
                headers: &answer.headers,
                data: BASE64.encode(body.get(start..end).unwrap_or_default()),
                more: number + 1 < pieces,
            }
        })
    }
}

/// A piece of a request of the case that is recorded.
#[derive(Debug, Deserialize)]
pub(crate) struct AskPiece {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) request: Option<AskHead>,
    pub(crate) data: String,
    pub(crate) more: bool,
}

/// The head of it.
#[derive(Debug, Deserialize)]
pub(crate) struct AskHead {
    pub(crate) scheme: String,
    pub(crate) method: String,
    pub(crate) host: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) query: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
}

/// One changed file whose marks are compared; its texts follow, one after the other.
#[derive(Debug, Serialize)]
pub(crate) struct Marks<'a> {
    file: &'a RepoPath,
    forbid: Vec<&'a str>,
    sizes: Vec<usize>,
}

impl<'a> Marks<'a> {
    pub(crate) fn of(asked: &'a MarksAsked, policy: &'a Policy) -> Self {
        let more = policy.runs.forbid_marks.iter().map(String::as_str);
        let now = std::iter::once(asked.now.len());
        Self {
            file: &asked.file,
            forbid: FORBIDDEN.into_iter().chain(more).collect(),
            sizes: now
                .chain(asked.before.iter().map(|text| text.len()))
                .collect(),
        }
    }
}

/// One part of an attempt to make.
#[derive(Debug, Serialize)]
pub(crate) struct Attempt<'a> {
    attempt: u32,
    start: u32,
    isolation: Isolation,
    clock: &'a str,
    seed: Seed,
    source_date_epoch: i64,
    mode: &'static str,
    product: Serialized,
    only: Option<&'a [NodeId]>,
    collect_only: bool,
    stop_on_failure: bool,
    /// Where the processes of a split part stay together; they are placed by the kernel where there is none.
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    questions: Option<&'a str>,
    /// What comes the other way round.
    #[serde(skip_serializing_if = "Option::is_none")]
    reversed: Option<&'static str>,
}

/// A product as the wire spells it: `"head"`, `"null"`, or an object for a mutant.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Serialized {
    Word(&'static str),
    Mutant { mutant: u32, of: u32 },
}

impl<'a> Attempt<'a> {
    /// `number` counts the parts of a room's attempts, repeated ones too: each has uids of its own.
    pub(crate) fn of(
        order: &'a AttemptOrder,
        isolation: Isolation,
        number: u32,
        cpu: Option<u32>,
    ) -> Self {
        Self {
            attempt: number,
            start: order.start,
            isolation,
            clock: &order.pins.clock,
            seed: order.pins.seed,
            source_date_epoch: order.pins.source_date_epoch,
            mode: match order.mode {
                AttemptMode::Silenced => "silenced",
                AttemptMode::Unsilenced => "unsilenced",
                AttemptMode::MustFail => "must-fail",
                AttemptMode::Merge => "merge",
            },
            product: match order.product {
                Product::Head => Serialized::Word("head"),
                Product::Null => Serialized::Word("null"),
                Product::Mutant { number, of } => Serialized::Mutant { mutant: number, of },
            },
            only: order.only.as_deref(),
            collect_only: match order.extent {
                Extent::Collect => true,
                Extent::Run => false,
            },
            stop_on_failure: match order.after_failure {
                AfterFailure::GoOn => false,
                AfterFailure::Stop => true,
            },
            cpu,
            reversed: match order.changed {
                Some(Moved::Order) => Some("cases"),
                Some(Moved::Listings) => Some("listings"),
                Some(Moved::Clock | Moved::Seed | Moved::HashSeed) | None => None,
            },
            questions: order.questions.as_ref().map(|asked| asked.0.as_str()),
        }
    }
}

/// Harness to server.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(crate) enum Message {
    Ready(Ready),
    Warmed { starts: usize },
    Configured { starts: usize },
    Collected(Collected),
    Case(Case),
    Ask(AskPiece),
    AttemptEnd(Box<Ended>),
    Digests(Digests),
    Planted(Planted),
    Marks(MarksFound),
    Trouble(Trouble),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Ready {
    pub(crate) protocol: u32,
    pub(crate) python: String,
    pub(crate) tag: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Collected {
    pub(crate) attempt: u32,
    pub(crate) cases: Vec<RawCase>,
    pub(crate) errors: Vec<RawError>,
    pub(crate) skips: Vec<RawSilence>,
    pub(crate) more: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawCase {
    pub(crate) node: String,
    pub(crate) file: String,
    pub(crate) qualname: String,
    pub(crate) marks: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawError {
    pub(crate) file: String,
    pub(crate) exception: ExceptionText,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawSilence {
    pub(crate) node: String,
    pub(crate) file: String,
    pub(crate) reason: String,
    pub(crate) by: Raiser,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) attempt: u32,
    pub(crate) node: String,
    pub(crate) phases: Vec<Phase>,
    #[serde(default)]
    pub(crate) reads: Reads,
    #[serde(default)]
    pub(crate) cassette: Option<CassetteUse>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Ended {
    pub(crate) attempt: u32,
    pub(crate) end: End,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) running: Option<String>,
    pub(crate) phase: Option<When>,
    #[serde(deserialize_with = "whole_millis")]
    pub(crate) wall_ms: u64,
    #[serde(deserialize_with = "whole_millis")]
    pub(crate) cpu_ms: u64,
    #[serde(deserialize_with = "whole_millis")]
    pub(crate) run_delay_ms: u64,
    pub(crate) oom_kills: u64,
    pub(crate) output_bytes: u64,
    #[serde(default)]
    pub(crate) output: String,
    #[serde(default)]
    pub(crate) tamper: Vec<Tamper>,
    #[serde(default)]
    pub(crate) canaries: Canaries,
    pub(crate) start: u32,
    pub(crate) uid: u32,
}

/// A time may come with a fraction; facts hold whole milliseconds. What is negative or no number is refused.
fn whole_millis<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let millis = f64::deserialize(from)?;
    if millis.is_finite() && millis >= 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturates"
        )]
        Ok(millis.round() as u64)
    } else {
        Err(serde::de::Error::custom("not a time"))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Digests {
    pub(crate) tag: String,
    pub(crate) functions: BTreeMap<String, TwoForms>,
    pub(crate) errors: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) more: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TwoForms {
    pub(crate) v2: String,
    pub(crate) short: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Planted {
    pub(crate) functions: bool,
    pub(crate) mutants: Vec<PlantedChange>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// Why a frame is not a message.
#[derive(Debug)]
pub(crate) enum Unreadable {
    /// A frame that PID 1 got wrong: our trouble.
    Frame(String),
    /// A frame whose outside is right and whose content, which comes from the attempt, is not.
    Record {
        /// The attempt it is about.
        attempt: u32,
        /// What is wrong.
        why: String,
    },
}

/// Read a message.
pub(crate) fn read(body: &[u8]) -> Result<Message, Unreadable> {
    let why = match serde_json::from_slice(body) {
        Ok(message) => return Ok(message),
        Err(error) => error.to_string(),
    };
    // Only now, on the rare bad frame, look whether its outside holds.
    #[derive(Deserialize)]
    struct Outside {
        r#type: String,
        attempt: u32,
    }
    match serde_json::from_slice::<Outside>(body) {
        Ok(outside) if matches!(outside.r#type.as_str(), "collected" | "case") => {
            Err(Unreadable::Record {
                attempt: outside.attempt,
                why,
            })
        }
        Ok(_) | Err(_) => Err(Unreadable::Frame(why)),
    }
}
