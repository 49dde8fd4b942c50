//! Many callers at once: 200 scores from 8 callers, what each waits, what the server holds, what is left behind.

use super::figures::{Figures, Times};
use super::peers::Peers;
use super::{Suite, image};
use std::collections::VecDeque;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tribunal_tests::{Client, Server};

const SCORES: usize = 200;
const CALLERS: usize = 8;
const ATTEMPTS: f64 = 9.0;

pub(super) fn measure(figures: &mut Figures) {
    let server = Server::with_config("[rooms]\nready = 4\n");
    let suite = Suite::busy(10, 2_000_000);
    let peers = Peers::of(&suite, &image(&server, &suite.image));
    let idle = Suite::many(10);
    let bare = Peers::of(&idle, &image(&server, &idle.image));
    // What the bodies take by themselves: a whole process less one whose bodies do nothing.
    let body = |peers: &Peers| Times::of(&(0..7).map(|_| peers.processes(1)).collect::<Vec<_>>());
    let bodies = body(&peers).median() - body(&bare).median();
    let on = suite.on(&server);
    on.score(&suite.head());
    let heads: VecDeque<String> = (0..SCORES).map(|_| suite.head()).collect();
    let (heads, times) = (Mutex::new(heads), Mutex::new(Vec::new()));
    let most = Mutex::new(0_u64);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            // Each has a token of its own: the server is fair among tokens.
            let token = server.token(tribunal_tests::Role::Agent, Some(&on.registered.name));
            let client = Client::with_token(&server, &on.registered, &token, suite.work.path());
            let (heads, times, most, server) = (&heads, &times, &most, &server);
            scope.spawn(move || {
                while let Some(head) = { heads.lock().unwrap().pop_front() } {
                    let out = tempfile::tempdir().unwrap();
                    let out = out.path().join("ci_out");
                    let asked = Instant::now();
                    client
                        .run(&["score", "--head", &head, "--out", out.to_str().unwrap()])
                        .expect_code(0);
                    times.lock().unwrap().push(asked.elapsed());
                    let mut most = most.lock().unwrap();
                    *most = (*most).max(resident(server.pid()));
                }
            });
        }
    });
    let whole = begun.elapsed();
    let cores = std::thread::available_parallelism().unwrap().get();
    let times: Vec<Duration> = times.into_inner().unwrap();
    assert_eq!(times.len(), SCORES, "a score is missing");
    let times = Times::of(&times);
    figures.time("crowd/one of 200 scores from 8 callers", &times, None, None);
    figures.value("crowd/p95", times.at(0.95), "s", None, None);
    #[expect(clippy::cast_precision_loss, reason = "200")]
    let (rate, ideal) = (
        SCORES as f64 / whole.as_secs_f64(),
        cores as f64 / (ATTEMPTS * bodies),
    );
    figures.value(
        "crowd/throughput",
        rate,
        "/s",
        Some(("bodies alone", ideal)),
        None,
    );
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let mib = *most.lock().unwrap() as f64 / 1024.0;
    figures.value("crowd/server's memory", mib, "MiB", None, Some(128.0));
    let label = format!("label=tribunal.instance={}", server.instance());
    server.shutdown();
    let left = Command::new("docker")
        .args(["ps", "-aq", "--filter", &label])
        .output()
        .unwrap();
    let left = String::from_utf8(left.stdout).unwrap();
    assert_eq!(left, "", "containers are left behind");
}

/// Resident memory of a process, KiB.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}
