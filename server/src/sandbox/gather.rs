//! The messages about one attempt go in, its facts come out.
//!
//! Two kinds of wrong are kept apart. A message out of its order or about another attempt is PID 1's mistake and ours:
//! `Wrong`. A record whose *content* cannot be (a node id that is none, a case twice, one of no collection) comes from
//! the attempt: it spoils the attempt, which then ends as `End::Protocol`, else candidate code could choose "aborted".

use super::AttemptOrder;
use super::autopsy::Death;
use super::messages::{Case, Collected, Ended, RawCase};
use std::collections::HashSet;
use tribunal_core::id::{NodeId, RepoPath};
use tribunal_core::outcome::{
    AttemptEnd, AttemptFacts, Canaries, CassetteUse, CollectedCase, CollectionError, End,
    ExceptionText, Lane, Phase, Silence, Tamper,
};
use tribunal_core::text::shown;

/// More cases than any suite has; a parameter list that grows without end stops here.
const CASES: usize = 100_000;
const MARKS: usize = 64;
const MESSAGE: usize = 2000;
const TRACEBACK: usize = 6000;
const OUTPUT: usize = 4000;
const NAME: usize = 4096;
const TAMPERS: usize = 20;
const WHAT: usize = 200;
/// Names of pins used or missed by a case.
const PIN_NAMES: usize = 1000;
const PIN_NAME: usize = 500;
/// Stands where text was left out because the attempt had used up its share of memory.
const LEFT_OUT: &str = "(left out: this attempt reported too much text)";

/// PID 1 said something that does not fit.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Wrong(pub(crate) String);

/// Facts of an attempt that is going on.
#[derive(Debug)]
pub(crate) struct Gather {
    /// The number it has on the line; a repeated attempt has another.
    number: u32,
    /// Its start, as the room counts.
    start: u32,
    facts: AttemptFacts,
    collection: Collection,
    nodes: HashSet<NodeId>,
    begun: HashSet<NodeId>,
    spoiled: Option<String>,
    /// Bytes of tracebacks and output that may still be kept.
    text_left: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    Going,
    Complete,
}

impl Gather {
    /// Facts of an attempt of which nothing is known yet. `text` bounds the bytes of tracebacks and output kept.
    pub(crate) fn new(order: &AttemptOrder, number: u32, lane: Lane, text: usize) -> Self {
        Self {
            number,
            start: order.start,
            facts: AttemptFacts {
                index: order.index,
                lane,
                pins: order.pins.clone(),
                start: order.start_in_score,
                collected: Vec::new(),
                collection_errors: Vec::new(),
                silences: Vec::new(),
                cases: Vec::new(),
                tamper: Vec::new(),
                canaries: Canaries::default(),
                end: AttemptEnd {
                    end: End::Protocol,
                    exit_code: None,
                    signal: None,
                    running: None,
                    phase: None,
                    wall_ms: 0,
                    cpu_ms: 0,
                    run_delay_ms: 0,
                    oom_kills: 0,
                    output_bytes: 0,
                    note: None,
                    output: String::new(),
                },
            },
            collection: Collection::Going,
            nodes: HashSet::new(),
            begun: HashSet::new(),
            spoiled: None,
            text_left: text,
        }
    }

    /// How many cases were reported so far.
    pub(crate) fn cases(&self) -> u32 {
        u32::try_from(self.facts.cases.len()).unwrap_or(u32::MAX)
    }

    /// Take a piece of the collection.
    pub(crate) fn collected(&mut self, piece: Collected) -> Result<(), Wrong> {
        self.about_this(piece.attempt)?;
        if self.spoiled.is_some() {
            return Ok(());
        }
        if self.collection == Collection::Complete {
            self.spoil("a second collection");
            return Ok(());
        }
        for case in piece.cases {
            self.collected_case(case);
        }
        for error in piece.errors {
            match error.file.parse::<RepoPath>() {
                Ok(file) => {
                    let exception = self.exception(error.exception);
                    self.facts
                        .collection_errors
                        .push(CollectionError { file, exception });
                }
                Err(error) => self.spoil(&error.to_string()),
            }
        }
        for silence in piece.skips {
            match (
                silence.node.parse::<NodeId>(),
                silence.file.parse::<RepoPath>(),
            ) {
                (Ok(node), Ok(file)) => self.facts.silences.push(Silence {
                    node,
                    file,
                    reason: head(silence.reason, MESSAGE),
                    by: silence.by,
                }),
                (Err(error), _) | (_, Err(error)) => self.spoil(&error.to_string()),
            }
        }
        let size = self.facts.collected.len()
            + self.facts.collection_errors.len()
            + self.facts.silences.len();
        if size > CASES {
            self.spoil("more cases than can be");
        }
        if !piece.more {
            self.collection = Collection::Complete;
        }
        Ok(())
    }

    fn collected_case(&mut self, case: RawCase) {
        match (case.node.parse::<NodeId>(), case.file.parse::<RepoPath>()) {
            (Ok(node), Ok(file)) => {
                if !self.nodes.insert(node.clone()) {
                    self.spoil(&format!("{} collected twice", shown(node.as_str(), 120)));
                    return;
                }
                let mut marks = case.marks;
                marks.truncate(MARKS);
                self.facts.collected.push(CollectedCase {
                    node,
                    file,
                    qualname: head(case.qualname, NAME),
                    marks: marks.into_iter().map(|mark| head(mark, 200)).collect(),
                });
            }
            (Err(error), _) | (_, Err(error)) => self.spoil(&error.to_string()),
        }
    }

    /// Take a case that is over.
    pub(crate) fn case(&mut self, case: Case) -> Result<(), Wrong> {
        self.about_this(case.attempt)?;
        if self.spoiled.is_some() {
            return Ok(());
        }
        let node: NodeId = match case.node.parse() {
            Ok(node) => node,
            Err(error) => {
                self.spoil(&format!("{error}"));
                return Ok(());
            }
        };
        if self.collection == Collection::Going {
            self.spoil("a case before the collection was complete");
        } else if self.begun.len() >= CASES {
            self.spoil("more cases than can be");
        } else if !self.begun.insert(node.clone()) {
            self.spoil(&format!("{} reported twice", shown(node.as_str(), 120)));
        } else if !in_order(&case.phases) {
            self.spoil(&format!(
                "{} with phases out of their order",
                shown(node.as_str(), 120)
            ));
        } else {
            let phases = case
                .phases
                .into_iter()
                .map(|phase| self.phase(phase))
                .collect();
            self.facts.cases.push(tribunal_core::outcome::CaseRecord {
                node,
                phases,
                reads: case.reads,
                cassette: case.cassette.map(cassette_use),
            });
        }
        Ok(())
    }

    /// The attempt is over, as PID 1 says.
    pub(crate) fn ended(mut self, ended: Ended) -> Result<AttemptFacts, Wrong> {
        self.about_this(ended.attempt)?;
        if ended.start != self.start {
            return Err(Wrong(format!(
                "attempt {} ran on start {} and not on {}",
                ended.attempt, ended.start, self.start
            )));
        }
        let running = match ended.running.map(|node| node.parse::<NodeId>()).transpose() {
            Ok(running) => running,
            Err(error) => {
                self.spoil(&error.to_string());
                None
            }
        };
        if ended.end == End::Finished && self.collection == Collection::Going {
            self.spoil("finished without a whole collection");
        }
        self.facts.tamper = tampers(ended.tamper);
        self.facts.canaries = ended.canaries;
        self.facts.end = AttemptEnd {
            end: if self.spoiled.is_some() {
                End::Protocol
            } else {
                ended.end
            },
            exit_code: ended.exit_code,
            signal: ended.signal,
            running,
            phase: ended.phase,
            wall_ms: ended.wall_ms,
            cpu_ms: ended.cpu_ms,
            run_delay_ms: ended.run_delay_ms,
            oom_kills: ended.oom_kills,
            output_bytes: ended.output_bytes,
            output: self.kept(tail(ended.output, OUTPUT)),
            note: self.spoiled,
        };
        Ok(self.facts)
    }

    /// The attempt is over because its room is gone: it died with it, or never ran.
    pub(crate) fn gone(mut self, death: &Death, wall_ms: u64) -> AttemptFacts {
        self.facts.end = AttemptEnd {
            end: death.end,
            exit_code: death.exit_code,
            signal: death.signal,
            running: None,
            phase: None,
            wall_ms,
            cpu_ms: 0,
            run_delay_ms: 0,
            oom_kills: u64::from(death.end == End::OutOfMemory),
            output_bytes: 0,
            note: Some(death.note.clone()),
            output: String::new(),
        };
        self.facts
    }

    /// Record what is wrong with the attempt's own records. The first fault is the one that is told.
    pub(crate) fn spoil(&mut self, why: &str) {
        if self.spoiled.is_none() {
            self.spoiled = Some(format!("the attempt's records do not hold: {why}"));
        }
    }

    /// Whether a message is about this attempt.
    pub(crate) fn about_this(&self, attempt: u32) -> Result<(), Wrong> {
        if attempt == self.number {
            Ok(())
        } else {
            Err(Wrong(format!(
                "a message about attempt {attempt} while attempt {} runs",
                self.number
            )))
        }
    }

    fn phase(&mut self, mut phase: Phase) -> Phase {
        phase.xfail = phase.xfail.map(|reason| head(reason, MESSAGE));
        phase.skip_reason = phase.skip_reason.map(|reason| head(reason, MESSAGE));
        phase.exception = phase.exception.map(|exception| self.exception(exception));
        phase.output = self.kept(tail(phase.output, OUTPUT));
        phase.tamper = tampers(phase.tamper);
        if !phase.duration_ms.is_finite() || phase.duration_ms < 0.0 {
            phase.duration_ms = 0.0;
        }
        phase
    }

    fn exception(&mut self, exception: ExceptionText) -> ExceptionText {
        ExceptionText {
            kind: head(exception.kind, 200),
            message: head(exception.message, MESSAGE),
            traceback: self.kept(tail(exception.traceback, TRACEBACK)),
        }
    }

    /// `text` within the attempt's share; types and messages, which the judge compares, do not go through here.
    fn kept(&mut self, text: String) -> String {
        match self.text_left.checked_sub(text.len()) {
            Some(left) => {
                self.text_left = left;
                text
            }
            None => LEFT_OUT.to_owned(),
        }
    }
}

/// The first few, each with the beginning of its text.
fn tampers(mut all: Vec<Tamper>) -> Vec<Tamper> {
    all.truncate(TAMPERS);
    for tamper in &mut all {
        tamper.what = head(std::mem::take(&mut tamper.what), WHAT);
    }
    all
}

/// The first few names of each, with the beginning of their texts.
fn cassette_use(mut told: CassetteUse) -> CassetteUse {
    for names in [&mut told.used, &mut told.misses] {
        names.truncate(PIN_NAMES);
        for name in names {
            *name = head(std::mem::take(name), PIN_NAME);
        }
    }
    told
}

/// Setup, call, teardown: each at most once and in this order.
fn in_order(phases: &[Phase]) -> bool {
    phases.is_sorted_by(|a, b| a.when < b.when)
}

/// The first `cap` characters.
fn head(mut text: String, cap: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(cap) {
        text.truncate(at);
    }
    text
}

/// The last `cap` characters.
fn tail(text: String, cap: usize) -> String {
    let skip = if text.len() <= cap {
        0
    } else {
        text.chars().count().saturating_sub(cap)
    };
    match text.char_indices().nth(skip) {
        Some((at, _)) if at > 0 => text[at..].to_owned(),
        Some(_) | None => text,
    }
}
