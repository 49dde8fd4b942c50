//! What holds where a repository has no policy of its own, or its policy leaves a key out.

use super::{Feedback, FeedbackLevel, Limits, Paths, PinPolicy, Runner, Runs, WhenBehind};
use crate::id::{RepoPath, Seed};

const MIB: u64 = 1 << 20;

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            src: strings(&["src/"]),
            sealed: strings(&["tests/sealed/", "fixtures/sealed/", "properties/", "ci/"]),
            proposed: strings(&["tests/proposed/"]),
            tests: strings(&["tests/"]),
            cassettes: "cassettes/".to_owned(),
            manifest: RepoPath::literal("tests/sealed/MANIFEST.txt"),
            leases: RepoPath::literal("ci/flake_leases.json"),
            ledger: RepoPath::literal("ci/cassette_ledger.json"),
            protect: Vec::new(),
        }
    }
}

impl Default for PinPolicy {
    fn default() -> Self {
        Self {
            seed: Seed(20_260_912),
            seed_env: strings(&["TRIBUNAL_SEED"]),
            clock: "2026-09-12T00:00:00Z".to_owned(),
            timezone: "UTC".to_owned(),
            hash_seed: 0,
            source_date_epoch: 1_700_000_000,
        }
    }
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            reruns: 7,
            held_out: 2,
            pin_sensitive: Vec::new(),
            attempt_timeout_ms: 120_000,
            case_timeout_ms: 30_000,
            when_behind: WhenBehind::Merge,
            forbid_marks: Vec::new(),
            require_strong_digest: false,
            path: Vec::new(),
        }
    }
}

impl Default for Runner {
    fn default() -> Self {
        Self {
            kind: "pytest".to_owned(),
            image: "tribunal/python:3.13".to_owned(),
            pythonpath: strings(&[".", "src"]),
            preload: "auto".to_owned(),
            shared: Vec::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 1024 * MIB,
            pids: 256,
            cpus: 1,
            tmp: 256 * MIB,
            tmp_exec: false,
            output: 8 * MIB,
            src_files: 20_000,
            src_bytes: 256 * MIB,
        }
    }
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            agent: FeedbackLevel::Full,
        }
    }
}
