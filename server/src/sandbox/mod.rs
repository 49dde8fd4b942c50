//! Sealed rooms: a run order goes in, facts of attempts come out, nothing stays behind.
//!
//! Never judges, never reads a repository, never sees a key. What the candidate causes is a fact; what the engine causes
//! is `SandboxError`. Only `docker` says "container".

mod autopsy;
mod conversation;
#[cfg(test)]
mod conversation_tests;
pub mod docker;
pub mod fake;
mod frames;
mod gather;
mod line;
mod messages;
mod outside;
mod owned;
pub(crate) mod parts;
mod seals;
mod turns;
mod uids;

pub use outside::{Answered, Asked, Outside};
pub use seals::{MarksInMemory, SealMarks};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::io::Read;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribunal_core::cassette::InEffect;
use tribunal_core::id::{Digest, NodeId, RepoPath};
use tribunal_core::judge::{Moved, PlantedChange};
use tribunal_core::outcome::{AttemptFacts, Lane, MarksFound, Pins};

pub use tribunal_core::outcome::FunctionDigest;
use tribunal_core::policy::Policy;
use tribunal_core::reason::Aborted;

/// A tree to be sealed: written once per digest into a read-only volume.
pub struct TreeToSeal {
    /// Digest over base tree, policy and layout: the volume's identity.
    pub digest: Digest,
    /// An image that the engine has, by its registered digest: the volume is written through a room that is made of it
    /// and never started.
    pub image: String,
    /// Makes the tar, entries relative to the tree's root; called only when the volume is not there yet.
    pub tar: Box<dyn FnOnce() -> Result<Box<dyn Read + Send>, Aborted> + Send>,
}

/// A tree that is sealed and complete.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SealedTree {
    /// Its identity.
    pub digest: Digest,
}

/// What one attempt is to do. It runs in up to two parts, the split files and then the shared ones, by the list in the
/// run's policy; its facts are those of both.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptOrder {
    /// 0, 1, … within the run.
    pub index: u32,
    /// Which interpreter start of its room it is forked from.
    pub start: u32,
    /// What its facts call that start: the starts of a score may stand in several rooms.
    pub start_in_score: u32,
    /// Its pins.
    pub pins: Pins,
    /// What becomes of the sealed tests' own words.
    pub mode: AttemptMode,
    /// What becomes of src.
    pub product: Product,
    /// Only these cases; `None` is all.
    pub only: Option<Vec<NodeId>>,
    /// Whether the cases run.
    pub extent: Extent,
    /// Whether the first failure is enough.
    pub after_failure: AfterFailure,
    /// The one thing that is not as it is pinned; clock, seed and hash seed are in `pins` and `start` already.
    pub changed: Option<Moved>,
    /// What the oracle's questions to the product are drawn by; `None` is drawn in the room.
    pub questions: Option<Questions>,
}

/// A secret of an attempt's, in hex.
#[derive(Clone, PartialEq, Eq)]
pub struct Questions(pub(crate) String);

impl Questions {
    /// A name that tells nothing of it.
    #[must_use]
    pub fn name(&self) -> tribunal_core::id::Digest {
        tribunal_core::id::Digest::of(self.0.as_bytes())
    }
}

impl std::fmt::Debug for Questions {
    /// Nothing of it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Questions")
    }
}

impl AttemptOrder {
    /// All cases of head under these pins.
    #[must_use]
    pub fn of(index: u32, start: u32, pins: Pins) -> Self {
        Self {
            index,
            start,
            start_in_score: start,
            pins,
            mode: AttemptMode::Silenced,
            product: Product::Head,
            only: None,
            extent: Extent::Run,
            after_failure: AfterFailure::GoOn,
            changed: None,
            questions: None,
        }
    }

    /// Asked by this draw.
    #[must_use]
    pub fn asked(self, questions: Questions) -> Self {
        Self {
            questions: Some(questions),
            ..self
        }
    }
}

/// What becomes of marks, and of the ends of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptMode {
    /// Skip and xfail marks hold.
    Silenced,
    /// They are taken off, run-time skips become failures.
    Unsilenced,
    /// They hold, and each end of a test function raises: nothing may pass.
    MustFail,
    /// They are taken off; a skip or xfail raised at run time stays one.
    Merge,
}

/// What becomes of src when it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// It is loaded as it is.
    Head,
    /// Every function raises.
    Null,
    /// One thing in it is changed.
    Mutant {
        /// Which, from 0.
        number: u32,
        /// Of how many that are drawn.
        of: u32,
    },
}

/// Whether an attempt goes on when a case failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// All cases are wanted.
    GoOn,
    /// What is left of this part is not run.
    Stop,
}

/// How far an attempt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Collect only.
    Collect,
    /// Collect and run.
    Run,
}

/// One run: one room, used once, attempts one after another.
pub struct RunOrder {
    /// For names and labels.
    pub score: String,
    /// Which lane its attempts belong to.
    pub lane: Lane,
    /// The image, by its registered digest.
    pub image: String,
    /// The base tree.
    pub tree: SealedTree,
    /// The src overlay as one tar, entries by repository path.
    pub src_tar: bytes::Bytes,
    /// Sealed test files, manifest order.
    pub files: Vec<RepoPath>,
    /// Top-level modules of base's src.
    pub own_names: Vec<String>,
    /// Pins, limits, runner.
    pub policy: Policy,
    /// Hash seeds of the interpreter starts.
    pub starts: Vec<u32>,
    /// How many of them, the last ones, may have any other hash seed: what their attempts really had stands in the facts.
    pub free_starts: usize,
    /// The attempts, in order.
    pub attempts: Vec<AttemptOrder>,
    /// What may follow them in the same room.
    pub sequel: Option<Sequel>,
    /// Files whose function digests are wanted.
    pub digests: Vec<RepoPath>,
    /// What is replayed to single cases.
    pub cassettes: Vec<InEffect>,
    /// Who performs the requests of cases that have a cassette: they are being recorded. `None`: their cassettes answer.
    pub outside: Option<std::sync::Arc<dyn Outside>>,
    /// How many changes of src are to be drawn for planting, by the policy's seed; `None`: none of that is asked.
    pub plant: Option<u32>,
    /// Changed test files whose marks are to be compared; read before anything runs.
    pub marks: Vec<MarksAsked>,
}

/// One changed file: its text, and those it had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarksAsked {
    /// Its path.
    pub file: RepoPath,
    /// What it says now.
    pub now: bytes::Bytes,
    /// What it said.
    pub before: Vec<bytes::Bytes>,
}

/// Attempts that follow only if what was seen so far deserves them. Nothing of them enters the room before: they are
/// ordered one by one, and none of them is told as progress.
pub struct Sequel {
    /// Which lane they belong to.
    pub lane: Lane,
    /// Them, on starts of the same order.
    pub attempts: Vec<AttemptOrder>,
    /// Asked once, with the facts of all attempts before.
    pub deserved: Deserving,
}

/// What decides whether a sequel is made. It may wait for what other rooms of the score see.
pub type Deserving = Box<dyn Fn(Vec<AttemptFacts>) -> BoxFuture<'static, Deserved> + Send + Sync>;

/// Decided by these facts alone.
pub fn deserving(by: impl Fn(&[AttemptFacts]) -> Deserved + Send + Sync + 'static) -> Deserving {
    Box::new(move |seen| std::future::ready(by(&seen)).boxed())
}

/// Whether a sequel is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deserved {
    /// It is.
    Yes,
    /// It is not: nothing that it could show would change anything.
    No,
}

impl RunOrder {
    /// Take over the starts that a room has already: as many or more, the first ones equal.
    pub(crate) fn on_starts(&mut self, starts: Vec<u32>) {
        let fixed = self.starts.len().saturating_sub(self.free_starts);
        let sequel = self
            .sequel
            .iter_mut()
            .flat_map(|sequel| &mut sequel.attempts);
        for attempt in self.attempts.iter_mut().chain(sequel) {
            let start = attempt.start as usize;
            if let (true, Some(&seed)) = (start >= fixed, starts.get(start)) {
                attempt.pins.hash_seed = seed;
            }
        }
        self.starts = starts;
    }

    /// How many attempts there can be, the sequel's included.
    pub(crate) fn most_attempts(&self) -> usize {
        let sequel = self.sequel.as_ref();
        self.attempts.len() + sequel.map_or(0, |sequel| sequel.attempts.len())
    }
}

/// Progress and facts while a run goes on.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// The room is ready and has the src.
    Ready,
    /// An attempt began.
    AttemptStarted(u32),
    /// A case of the running attempt is over: how many so far.
    CasesDone(u32, u32),
    /// An attempt is over; its facts are final and may be stored.
    AttemptEnded(Box<AttemptFacts>),
    /// The order's own attempts are over, and its sequel begins.
    SequelBegun,
}

/// What a run came to. Attempts that an earlier one made pointless are still run: no attempt is left out silently.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// All attempts, in order, the sequel's last.
    pub attempts: Vec<AttemptFacts>,
    /// Function digests, `path::qualname` to the two forms.
    pub digests: Vec<FunctionDigest>,
    /// Files that would not compile, with the message.
    pub undigested: Vec<(RepoPath, String)>,
    /// The interpreter's tag, as in `cp313`.
    pub python_tag: String,
    /// What can be planted in src, where that was asked.
    pub plan: Option<PlantingPlan>,
    /// What the changed files gained, in the order asked.
    pub marks: Vec<MarksFound>,
}

/// What can be made wrong in src on purpose, to see whether the oracle notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantingPlan {
    /// Whether src has anything that raises in [`Product::Null`].
    pub functions: Functions,
    /// What [`Product::Mutant`] means, by number.
    pub mutants: Vec<PlantedChange>,
}

/// Whether src has functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Functions {
    /// It has one at least.
    Some,
    /// It is data alone, or cannot be read as Python.
    None,
}

/// What can go wrong here; always ours.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Retryable trouble with its code.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}

/// What a sweep removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Rooms.
    pub rooms: u32,
    /// Trees.
    pub trees: u32,
}

/// Rooms for runs.
#[async_trait::async_trait]
pub trait Sandbox: Send + Sync {
    /// Make the tree available read-only; once per digest, safe to call at the same time from several scores.
    async fn seal(&self, tree: TreeToSeal) -> Result<SealedTree, SandboxError>;

    /// Run the order in a room of its own. Cancelling ends it within a second or so; the room is gone when this returns,
    /// whatever it returns.
    async fn run(
        &self,
        order: RunOrder,
        events: mpsc::Sender<RunEvent>,
        cancel: CancellationToken,
    ) -> Result<RunFacts, SandboxError>;

    /// Orders like this one are likely to come: have a room ready for them, if that is worth it. Its attempts and its src
    /// are samples, for their number and size. Returns at once.
    fn expect(&self, order: RunOrder) {
        drop(order);
    }

    /// End a tree that one owner alone had. A tree that is not there is ended already; one that cannot be removed now goes
    /// with the next sweep.
    async fn unseal(&self, tree: SealedTree) -> Result<(), SandboxError>;

    /// Remove rooms that an earlier process of this server instance left behind, and sealed trees not in `keep`
    /// when `keep` is given.
    async fn sweep(&self, keep: Option<&[Digest]>) -> Result<Swept, SandboxError>;
}
