//! Happenings into counters and histograms, and those into the text that Prometheus reads.
//!
//! Every label is `&'static str`: a value that somebody outside of this program chose does not fit. All of them are there
//! from the start, at zero, so that a rate is right from the first event on.

use super::{Happening, Observer, Room, Source, Told};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tribunal_core::judge::{VerdictKind, Word};
use tribunal_core::reason::{AbortedCode, RefusedCode};
use tribunal_core::report::Timings;

type Label = (&'static str, &'static str);
type Counts<const N: usize> = Family<[Label; N], Counter>;

/// Stages of a score, as the label says them.
const STAGES: [&str; 7] = [
    "queued",
    "prepare",
    "property",
    "held-out",
    "lease-side",
    "merge-lane",
    "total",
];
/// Seconds: from a decided score without a room to a suite of many minutes.
const SECONDS: [f64; 14] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0,
];
/// Bytes of a bundle: 1 KiB to 1 GiB.
const BYTES: [f64; 6] = [
    1024.0,
    16_384.0,
    262_144.0,
    4_194_304.0,
    67_108_864.0,
    1_073_741_824.0,
];

/// All numbers of one server.
pub struct Exporter {
    registry: Mutex<Registry>,
    scores: Counts<1>,
    verdicts: Counts<2>,
    aborted: Counts<1>,
    refused: Counts<1>,
    stages: Family<[Label; 1], Histogram>,
    waits: Histogram,
    bases: Counts<1>,
    attempts: Counts<1>,
    held_out_failures: Counter,
    rooms: Counts<1>,
    run_failures: Counts<1>,
    uploads: Counts<1>,
    upload_bytes: Histogram,
    told: Counts<1>,
}

impl Exporter {
    /// Everything at zero.
    #[must_use]
    pub fn new() -> Self {
        let it = Self {
            registry: Mutex::new(Registry::with_prefix("tribunal")),
            scores: Family::default(),
            verdicts: Family::default(),
            aborted: Family::default(),
            refused: Family::default(),
            stages: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            waits: Histogram::new(SECONDS),
            bases: Family::default(),
            attempts: Family::default(),
            held_out_failures: Counter::default(),
            rooms: Family::default(),
            run_failures: Family::default(),
            uploads: Family::default(),
            upload_bytes: Histogram::new(BYTES),
            told: Family::default(),
        };
        it.register();
        it.zero();
        it
    }

    fn register(&self) {
        let mut registry = self.registry();
        let mut counts = |name: &str, help: &str, family: &Counts<1>| {
            registry.register(name, help, family.clone());
        };
        counts("scores", "Scores that ended, by outcome", &self.scores);
        counts(
            "scores_aborted",
            "Scores that ended without a verdict, by code",
            &self.aborted,
        );
        counts(
            "scores_refused",
            "Requests that left no score, by code",
            &self.refused,
        );
        counts(
            "base_runs",
            "Times that base's own run was wanted, by where it came from",
            &self.bases,
        );
        counts(
            "attempts",
            "Attempts given to the judge, by where they came from",
            &self.attempts,
        );
        counts(
            "rooms_entered",
            "Rooms that runs entered, by how they were come by",
            &self.rooms,
        );
        counts(
            "run_failures",
            "Runs in the engine that came to nothing by the server's own trouble, by code",
            &self.run_failures,
        );
        counts("uploads", "Bundles, by outcome", &self.uploads);
        counts(
            "messages",
            "Tries to tell a webhook or a commit status, by outcome",
            &self.told,
        );
        registry.register(
            "verdicts",
            "Signed verdicts, by kind and word",
            self.verdicts.clone(),
        );
        registry.register(
            "held_out_failures",
            "Cases that failed under held-out pins alone",
            self.held_out_failures.clone(),
        );
        registry.register_with_unit(
            "stage_duration",
            "How long the stages of completed scores took",
            Unit::Seconds,
            self.stages.clone(),
        );
        registry.register_with_unit(
            "queue_wait",
            "How long scores waited for a worker",
            Unit::Seconds,
            self.waits.clone(),
        );
        registry.register_with_unit(
            "upload_size",
            "Sizes of bundles that were taken in",
            Unit::Bytes,
            self.upload_bytes.clone(),
        );
    }

    fn zero(&self) {
        for outcome in ["merge-ok", "merge-blocked", "aborted"] {
            born(&self.scores, [("outcome", outcome)]);
        }
        for kind in VerdictKind::ALL {
            for word in [Word::Pass, Word::Fail, Word::NotRun] {
                born(&self.verdicts, verdict(kind, word));
            }
        }
        for code in AbortedCode::ALL {
            born(&self.aborted, [("code", code.code())]);
            born(&self.run_failures, [("code", code.code())]);
        }
        for code in RefusedCode::ALL {
            born(&self.refused, [("code", code.code())]);
        }
        for stage in STAGES {
            drop(self.stages.get_or_create(&[("stage", stage)]));
        }
        for source in [Source::Stored, Source::Run] {
            born(&self.bases, from(source));
            born(&self.attempts, from(source));
        }
        for room in [Room::Ready, Room::New] {
            born(&self.rooms, come_by(room));
        }
        for told in [Told::Heard, Told::Later, Told::GivenUp] {
            born(&self.told, told_as(told));
        }
        for outcome in ["taken", "failed"] {
            born(&self.uploads, [("outcome", outcome)]);
        }
    }

    /// Numbers that are asked for whenever somebody looks.
    pub fn watch(&self, gauges: Gauges) {
        let Gauges {
            waiting,
            running,
            ready_rooms,
            messages,
        } = gauges;
        let mut registry = self.registry();
        for (name, help, read) in [
            ("queue_waiting", "Scores that wait for a worker", waiting),
            ("queue_running", "Scores that a worker has", running),
            (
                "messages_waiting",
                "Webhooks and commit statuses that wait",
                messages,
            ),
            ("rooms_ready", "Rooms that wait for a score", ready_rooms),
        ] {
            registry.register_collector(Box::new(Asked { name, help, read }));
        }
    }

    /// All of it, in the OpenMetrics text format.
    ///
    /// # Errors
    /// None in practice: a string that grows does not fail.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry())?;
        Ok(text)
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stages(&self, timings: &Timings) {
        let took = [
            timings.queued_ms,
            timings.prepare_ms,
            timings.property_ms,
            timings.held_out_ms,
            timings.lease_side_ms,
            timings.merge_lane_ms,
            timings.total_ms,
        ];
        for (stage, millis) in STAGES.into_iter().zip(took) {
            // A stage that was not gone through took no time, and would only pull the figures down.
            if millis > 0 {
                self.stages
                    .get_or_create(&[("stage", stage)])
                    .observe(Duration::from_millis(millis).as_secs_f64());
            }
        }
    }
}

impl Default for Exporter {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Exporter {
    fn note(&self, what: Happening<'_>) {
        match what {
            Happening::ScoreStarted { waited } => self.waits.observe(waited.as_secs_f64()),
            Happening::ScoreCompleted { words, timings } => {
                let all = [words.src_score, words.oracle_integrity, words.flake_lease];
                let outcome = match all.iter().all(|word| *word == Word::Pass) {
                    true => "merge-ok",
                    false => "merge-blocked",
                };
                self.scores.get_or_create(&[("outcome", outcome)]).inc();
                for (kind, word) in VerdictKind::ALL.into_iter().zip(all) {
                    self.verdicts.get_or_create(&verdict(kind, word)).inc();
                }
                self.stages(timings);
            }
            Happening::ScoreAborted(code) => {
                self.scores.get_or_create(&[("outcome", "aborted")]).inc();
                self.aborted.get_or_create(&[("code", code.code())]).inc();
            }
            Happening::ScoreRefused(code) => {
                self.refused.get_or_create(&[("code", code.code())]).inc();
            }
            Happening::BaseWanted(source) => {
                self.bases.get_or_create(&from(source)).inc();
            }
            Happening::Attempts {
                from: source,
                count,
            } => {
                self.attempts
                    .get_or_create(&from(source))
                    .inc_by(count as u64);
            }
            Happening::HeldOutFailures(cases) => {
                self.held_out_failures.inc_by(cases as u64);
            }
            Happening::RoomEntered(room) => {
                self.rooms.get_or_create(&come_by(room)).inc();
            }
            Happening::RunFailed(code) => {
                let label = [("code", code.code())];
                self.run_failures.get_or_create(&label).inc();
            }
            Happening::Uploaded { bytes } => {
                self.uploads.get_or_create(&[("outcome", "taken")]).inc();
                self.upload_bytes.observe(bytes as f64);
            }
            Happening::Told(told) => {
                self.told.get_or_create(&told_as(told)).inc();
            }
            Happening::UploadFailed => {
                self.uploads.get_or_create(&[("outcome", "failed")]).inc();
            }
        }
    }
}

fn born<const N: usize>(family: &Counts<N>, label: [Label; N]) {
    drop(family.get_or_create(&label));
}

fn verdict(kind: VerdictKind, word: Word) -> [Label; 2] {
    let word = match word {
        Word::Pass => "PASS",
        Word::Fail => "FAIL",
        Word::NotRun => "NOT_RUN",
    };
    [("kind", kind.file_stem()), ("word", word)]
}

fn told_as(told: Told) -> [Label; 1] {
    let outcome = match told {
        Told::Heard => "heard",
        Told::Later => "later",
        Told::GivenUp => "given-up",
    };
    [("outcome", outcome)]
}

fn from(source: Source) -> [Label; 1] {
    let from = match source {
        Source::Stored => "stored",
        Source::Run => "run",
    };
    [("from", from)]
}

fn come_by(room: Room) -> [Label; 1] {
    let room = match room {
        Room::Ready => "ready",
        Room::New => "new",
    };
    [("room", room)]
}

/// Reads a number at once.
pub type Read = Box<dyn Fn() -> u64 + Send + Sync>;

/// What is not counted but is.
pub struct Gauges {
    /// Scores that wait.
    pub waiting: Read,
    /// Scores that run.
    pub running: Read,
    /// Rooms that wait for a score.
    pub ready_rooms: Read,
    /// Messages that wait.
    pub messages: Read,
}

/// A gauge that is asked when somebody looks.
struct Asked {
    name: &'static str,
    help: &'static str,
    read: Read,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Collector for Asked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauge = ConstGauge::new(i64::try_from((self.read)()).unwrap_or(i64::MAX));
        let metric = encoder.encode_descriptor(self.name, self.help, None, gauge.metric_type())?;
        gauge.encode(metric)
    }
}
