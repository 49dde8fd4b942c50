//! Why a case differs between attempts: what it read, which of that is pinned, and the artifact that it owes.
//!
//! Counts are the attempt's own word and name a source; they never make a verdict milder, for a mixed case is held against
//! the patch whatever they say. What is pinned cannot move an outcome by itself, so what is not comes first.

use super::perturbed::Moved;
use crate::outcome::{CaseRecord, Counts};
use serde::{Deserialize, Serialize};

/// Something that no two runs need to agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The wall clock.
    WallClock,
    /// A monotonic clock.
    Monotonic,
    /// Random numbers.
    Entropy,
    /// The kernel's random devices, opened as files.
    RandomDevice,
    /// Directory listings.
    Listings,
    /// Other hosts.
    Network,
    /// A server that the case starts itself.
    OwnServer,
    /// Waits for a time to pass.
    Sleep,
    /// Threads.
    Threads,
}

/// Whether every attempt gets the same of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The policy's pins hold it still.
    Policy,
    /// A cassette of the case answers it.
    Cassette,
    /// Nothing does, and a cassette could.
    Open,
    /// Nothing can.
    Unpinnable,
}

/// One source, and how often the case asked for it: the most of any one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRead {
    /// Which.
    pub source: Source,
    /// By the process with the tests; in a shared file, by all there is.
    pub oracle: u32,
    /// By the process with src.
    pub product: u32,
    /// Whether it is pinned.
    pub standing: Standing,
}

/// The artifact that a mixed case owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owed {
    /// An accepted cassette pin: it reads a clock, random numbers, files or HTTP.
    CassettePin,
    /// A human-owned property with the fixed seed: it reads none of these.
    Property,
    /// Neither: what it reads cannot be pinned, and it does not belong in the lane.
    Neither,
}

/// What is known of a mixed case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// What it read, the likeliest cause first.
    pub reads: Vec<SourceRead>,
    /// What it owes.
    pub owed: Owed,
    /// The source to blame; `None` where it read nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The one change of pins that moved the outcome, where that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

impl Source {
    /// All of them, the likeliest cause of a difference first: what nothing holds still, then what pins do.
    const BY_BLAME: [Self; 9] = [
        Self::Network,
        Self::OwnServer,
        Self::Threads,
        Self::Sleep,
        Self::RandomDevice,
        Self::WallClock,
        Self::Entropy,
        Self::Listings,
        Self::Monotonic,
    ];

    /// Its name in reports and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WallClock => "wall-clock",
            Self::Monotonic => "monotonic",
            Self::Entropy => "entropy",
            Self::RandomDevice => "random-device",
            Self::Listings => "listings",
            Self::Network => "network",
            Self::OwnServer => "own-server",
            Self::Sleep => "sleep",
            Self::Threads => "threads",
        }
    }

    /// In words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::WallClock => "the wall clock",
            Self::Monotonic => "a monotonic clock",
            Self::Entropy => "random numbers",
            Self::RandomDevice => "/dev/urandom as a file",
            Self::Listings => "directory listings",
            Self::Network => "other hosts",
            Self::OwnServer => "a server of its own",
            Self::Sleep => "waits for a time",
            Self::Threads => "threads",
        }
    }

    /// The name of the pin that a cassette could hold for it.
    #[must_use]
    pub const fn pin(self) -> Option<&'static str> {
        match self {
            Self::WallClock => Some("clock"),
            Self::Entropy => Some("rng_seed"),
            Self::Listings => Some("fs:<directory>"),
            Self::Network => Some("http:<METHOD> <path>"),
            Self::Monotonic
            | Self::RandomDevice
            | Self::OwnServer
            | Self::Sleep
            | Self::Threads => None,
        }
    }

    fn count(self, counts: &Counts) -> u32 {
        match self {
            Self::WallClock => counts.wall_clock,
            Self::Monotonic => counts.monotonic,
            Self::Entropy => counts.entropy,
            Self::RandomDevice => counts.urandom,
            Self::Listings => counts.listings,
            Self::Network => counts.sockets,
            Self::OwnServer => counts.servers,
            Self::Sleep => counts.sleeps,
            Self::Threads => counts.threads,
        }
    }

    fn standing(self, records: &[&CaseRecord]) -> Standing {
        let used = |is: fn(&str) -> bool| {
            let uses = records.iter().filter_map(|record| record.cassette.as_ref());
            uses.flat_map(|cassette| &cassette.used).any(|pin| is(pin))
        };
        let by = |held: bool, else_: Standing| if held { Standing::Cassette } else { else_ };
        match self {
            Self::WallClock => by(used(|pin| pin == "clock"), Standing::Policy),
            Self::Entropy => by(used(|pin| pin == "rng_seed"), Standing::Policy),
            Self::Listings => by(used(|pin| pin.starts_with("fs:")), Standing::Policy),
            Self::Network => by(used(|pin| pin.starts_with("http:")), Standing::Open),
            Self::Monotonic
            | Self::RandomDevice
            | Self::OwnServer
            | Self::Sleep
            | Self::Threads => Standing::Unpinnable,
        }
    }
}

impl Owed {
    /// Its name in reports and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CassettePin => "cassette-pin",
            Self::Property => "property",
            Self::Neither => "neither",
        }
    }
}

/// What the records of one case, one an attempt, say of its sources.
#[must_use]
pub fn diagnose(records: &[&CaseRecord]) -> Diagnosis {
    let most = |source: Source, side: fn(&CaseRecord) -> &Counts| {
        let counts = records.iter().map(|record| source.count(side(record)));
        counts.max().unwrap_or(0)
    };
    let mut reads: Vec<SourceRead> = Source::BY_BLAME
        .into_iter()
        .map(|source| SourceRead {
            source,
            oracle: most(source, |record| &record.reads.oracle),
            product: most(source, |record| &record.reads.product),
            standing: source.standing(records),
        })
        .filter(|read| read.oracle > 0 || read.product > 0)
        .collect();
    // A client that talks to a server of the same case asks no other host.
    if reads.iter().any(|read| read.source == Source::OwnServer) {
        for read in &mut reads {
            if read.source == Source::Network && read.standing == Standing::Open {
                read.standing = Standing::Unpinnable;
            }
        }
    }
    // What a cassette answers is not to blame while anything else was read.
    reads.sort_by_key(|read| read.standing == Standing::Cassette);
    let first = reads.first();
    let source = first.map(|read| match read {
        SourceRead {
            source: Source::Network,
            standing: Standing::Unpinnable,
            ..
        } => Source::OwnServer,
        read => read.source,
    });
    let owed = match first.map(|read| read.standing) {
        None => Owed::Property,
        Some(Standing::Policy | Standing::Cassette | Standing::Open) => Owed::CassettePin,
        Some(Standing::Unpinnable) => Owed::Neither,
    };
    Diagnosis {
        reads,
        owed,
        source,
        moved: None,
    }
}

impl Diagnosis {
    /// Whether the counts leave it open what moves the case: nothing was read that runs free, but for clocks that
    /// everybody reads.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.reads.iter().any(|read| {
            read.source != Source::Monotonic
                && matches!(read.standing, Standing::Open | Standing::Unpinnable)
        })
    }

    /// With what the perturbed runs showed: it outweighs the counts where they leave it open.
    #[must_use]
    pub fn with(mut self, moved: Option<Moved>) -> Self {
        if let Some(moved) = moved
            && self.is_open()
        {
            match moved {
                Moved::Clock => {
                    (self.owed, self.source) = (Owed::CassettePin, Some(Source::WallClock));
                }
                Moved::Seed => {
                    (self.owed, self.source) = (Owed::CassettePin, Some(Source::Entropy));
                }
                Moved::Listings => {
                    (self.owed, self.source) = (Owed::CassettePin, Some(Source::Listings));
                }
                Moved::HashSeed | Moved::Order => (self.owed, self.source) = (Owed::Property, None),
            }
        }
        self.moved = moved;
        self
    }

    /// What it read, in words: `the wall clock (2 times in the product; pinned by the policy), …`.
    #[must_use]
    pub fn told_reads(&self) -> String {
        if self.reads.is_empty() {
            return "no clock, random numbers, listings, network, threads or waits".to_owned();
        }
        let told: Vec<String> = self.reads.iter().map(SourceRead::told).collect();
        told.join(", ")
    }

    /// What it owes, in words.
    #[must_use]
    pub fn told_owed(&self) -> String {
        match (self.owed, self.source.and_then(Source::pin)) {
            (Owed::CassettePin, Some(pin)) => format!("an accepted cassette with the pin `{pin}`"),
            (Owed::CassettePin, None) => "an accepted cassette pin".to_owned(),
            (Owed::Property, _) => {
                "a human-owned property with the fixed seed: what differs is an order, a retry count or the iteration of a set or map".to_owned()
            }
            (Owed::Neither, _) => format!(
                "neither a pin nor a property: {} cannot be pinned, and a case that depends on it does not belong here",
                self.source.map_or("what it uses", Source::words)
            ),
        }
    }

    /// All of it in one line.
    #[must_use]
    pub fn told(&self) -> String {
        let moved = self.moved.map_or(String::new(), |moved| {
            format!("; it is settled by another {}", moved.words())
        });
        format!(
            "reads {}{moved}; owed: {}",
            self.told_reads(),
            self.told_owed()
        )
    }
}

impl SourceRead {
    fn told(&self) -> String {
        let times = |n: u32| match n {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let by = match (self.oracle, self.product) {
            (oracle, 0) => times(oracle),
            (0, product) => format!("{} in the product", times(product)),
            (oracle, product) => format!("{} and {} in the product", times(oracle), times(product)),
        };
        let standing = match self.standing {
            Standing::Policy => "pinned by the policy",
            Standing::Cassette => "answered by its cassette",
            Standing::Open => "not pinned",
            Standing::Unpinnable => "cannot be pinned",
        };
        format!("{} ({by}; {standing})", self.source.words())
    }
}
