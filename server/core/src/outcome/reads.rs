//! What a case read that no two runs need to agree on: counts of the pin library, and what of its cassette was used.
//!
//! A diagnosis and nothing more. The pages that hold the counts are written by the attempt's own processes, so no verdict
//! may turn from red to green by them.

use serde::{Deserialize, Serialize};

/// How often one process and its children asked for each source while a case ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// The wall clock.
    pub wall_clock: u32,
    /// The monotonic clocks.
    pub monotonic: u32,
    /// Random bytes of the C library and the kernel call.
    pub entropy: u32,
    /// Random bytes of the device files, which no pin reaches.
    pub urandom: u32,
    /// Directory listings.
    pub listings: u32,
    /// Connects, datagrams and name look-ups outside of local sockets.
    pub sockets: u32,
    /// Sockets that listen: the case talks to a server of its own.
    pub servers: u32,
    /// Waits for a time to pass.
    pub sleeps: u32,
    /// Threads that were started.
    pub threads: u32,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            wall_clock: self.wall_clock.saturating_add(other.wall_clock),
            monotonic: self.monotonic.saturating_add(other.monotonic),
            entropy: self.entropy.saturating_add(other.entropy),
            urandom: self.urandom.saturating_add(other.urandom),
            listings: self.listings.saturating_add(other.listings),
            sockets: self.sockets.saturating_add(other.sockets),
            servers: self.servers.saturating_add(other.servers),
            sleeps: self.sleeps.saturating_add(other.sleeps),
            threads: self.threads.saturating_add(other.threads),
        }
    }
}

/// What the processes of one attempt read during one case. Of a shared part everything is the oracle's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reads {
    /// The process with the tests.
    pub oracle: Counts,
    /// The process with src.
    pub product: Counts,
}

impl Reads {
    /// Both processes together.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.oracle.and(self.product)
    }
}

/// What became of a case's cassette in one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CassetteUse {
    /// Pins that were asked for: `clock`, `rng_seed`, `fs:<directory>`, `http:<METHOD> <path>`.
    pub used: Vec<String>,
    /// What was asked for and is not in it. Candidate-controlled; capped by the harness, escaped where it is shown.
    pub misses: Vec<String>,
}
