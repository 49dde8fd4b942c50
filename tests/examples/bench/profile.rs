//! Where the time of a fresh score goes: the report's own stages, its attempts, and what the client pays beside them.

use super::figures::{Figures, Times};
use super::{Suite, at_rest, image_with_arrays};
use serde_json::Value;
use std::time::Duration;
use tribunal_tests::Server;

/// Stages of the report, and what is told of them.
const STAGES: [(&str, &str); 3] = [
    ("prepare_ms", "before the first attempt"),
    ("property_ms", "seven attempts"),
    ("total_ms", "from admission to the judgement"),
];

pub(super) fn measure(server: &Server, rounds: usize, figures: &mut Figures) {
    for (name, suite) in [
        ("small", Suite::small()),
        ("arrays", Suite::arrays(&image_with_arrays(server))),
    ] {
        let on = suite.on(server);
        let _first = at_rest(server, || on.report(&suite.head()));
        let scores: Vec<(Duration, Value)> = (0..rounds)
            .map(|_| at_rest(server, || on.report(&suite.head())))
            .collect();
        let mut tell = |what: &str, of: &dyn Fn(&(Duration, Value)) -> Duration| {
            let times: Vec<Duration> = scores.iter().map(of).collect();
            figures.time(
                &format!("profile/{name}/{what}"),
                &Times::of(&times),
                None,
                None,
            );
        };
        tell("whole, the client's process too", &|(took, _)| *took);
        for (stage, what) in STAGES {
            tell(what, &|(_, report)| millis(&report["timings"][stage]));
        }
        tell("client, git, transport, signing", &|(took, report)| {
            took.saturating_sub(millis(&report["timings"]["total_ms"]))
        });
        tell("held-out attempts and the judgement", &|(_, report)| {
            let of = |stage: &str| millis(&report["timings"][stage]);
            of("total_ms").saturating_sub(of("prepare_ms") + of("property_ms") + of("queued_ms"))
        });
        for (field, what) in [
            ("wall_ms", "an attempt"),
            ("cpu_ms", "an attempt's processor"),
        ] {
            tell(what, &|(_, report)| {
                let attempts = report["attempts"].as_array().unwrap();
                let all: Vec<Duration> = attempts.iter().map(|each| millis(&each[field])).collect();
                Duration::from_secs_f64(Times::of(&all).median())
            });
        }
    }
}

fn millis(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().unwrap())
}
