//! What a score costs beside what its caller would pay to run the sealed tests itself: all in one run, alternately.
//!
//! Prints one JSON line a figure and a table. `make bench` runs all of it, on a release build; words name parts of it
//! (`ratios`, `scales`, `profile`, `crowd`), `--rounds N` sets how often each thing is timed. Never judges a verdict.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures, and says so"
)]

mod crowd;
mod figures;
mod peers;
mod plot;
mod profile;
mod ratios;
mod scales;
mod suites;

use figures::Figures;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use suites::{Registration, Suite};
use tribunal_tests::{Server, binaries};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds = words
        .iter()
        .position(|word| word == "--rounds")
        .map_or(7, |at| words[at + 1].parse().unwrap());
    let parts: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect();
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    // Several bases take turns here: each keeps its rooms. Every round has a new base, whose planted changes would run in
    // the next rounds' pauses.
    let server = Server::with_config("[rooms]\nready = 12\n[oracle]\nplant = \"asked\"\n");
    let mut figures = Figures::default();
    for suite in ["small", "corpus", "many", "arrays"] {
        if wanted("ratios") || parts.contains(&suite) {
            ratios::measure(&server, suite, rounds, &mut figures);
        }
    }
    if wanted("scales") {
        scales::measure(&server, rounds.min(5), &mut figures);
    }
    if wanted("profile") {
        profile::measure(&server, rounds, &mut figures);
    }
    if wanted("crowd") {
        crowd::measure(&mut figures);
    }
    server.shutdown();
    figures.table();
}

/// How long it takes.
fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// A command that must succeed, quietly.
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {text}{errors}");
}

/// The engine's id of the image with this tag.
fn image(server: &Server, tag: &str) -> String {
    let listed: serde_json::Value =
        serde_json::from_str(&server.admin(&["image", "list", "--json"])).unwrap();
    let images = listed["images"].as_array().unwrap();
    let found = images.iter().rfind(|image| image["tag"] == tag);
    found.unwrap()["engineId"].as_str().unwrap().to_owned()
}

/// Rooms of one score: the policy's two starts.
const ROOMS: usize = 2;

/// The tag of an image with numpy and pandas.
fn image_with_arrays(server: &Server) -> String {
    let requirements = binaries::root().join("tests/examples/bench/suites/requirements.txt");
    let requirements = requirements.to_str().unwrap();
    let built = server.admin(&["image", "build", "--json", "--requirements", requirements]);
    let built: serde_json::Value = serde_json::from_str(&built).unwrap();
    built["tag"].as_str().unwrap().to_owned()
}

/// Scores one head, and has the server make its next rooms ready before it goes on: an agent thinks meanwhile.
fn score(server: &Server, on: &Registration, head: &str) -> Duration {
    at_rest(server, || on.report(head)).0
}

/// A score, and then the server at rest again.
fn at_rest<T>(server: &Server, score: impl FnOnce() -> T) -> T {
    let before = ready(server);
    let told = score();
    let limit = Instant::now() + Duration::from_secs(60);
    while ready(server) < before + ROOMS {
        assert!(Instant::now() < limit, "no rooms became ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Rooms that were used are still being removed.
    std::thread::sleep(Duration::from_secs(1));
    told
}

/// How many rooms became ready so far.
fn ready(server: &Server) -> usize {
    server.log().matches("a room is ready").count()
}
