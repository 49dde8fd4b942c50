//! One suite beside its peers: each round runs all of them once, so that what the machine does meanwhile hits all alike.

use super::figures::{Figures, Times};
use super::peers::Peers;
use super::{Suite, image, image_with_arrays, score};
use std::time::Duration;
use tribunal_tests::Server;

const ATTEMPTS: usize = 7;

/// Times by name, a round at a time.
#[derive(Default)]
struct Table {
    rows: Vec<(&'static str, Vec<Duration>)>,
}

impl Table {
    fn put(&mut self, name: &'static str, took: Duration) {
        match self.rows.iter_mut().find(|(known, _)| *known == name) {
            Some((_, times)) => times.push(took),
            None => self.rows.push((name, vec![took])),
        }
    }

    fn of(&self, name: &str) -> Times {
        let found = self.rows.iter().find(|(known, _)| *known == name);
        Times::of(&found.unwrap().1)
    }
}

pub(super) fn measure(server: &Server, name: &str, rounds: usize, figures: &mut Figures) {
    let arrays = (name == "arrays").then(|| image_with_arrays(server));
    let make = || match (&arrays, name) {
        (Some(image), _) => Suite::arrays(image),
        (None, "corpus") => Suite::corpus(),
        (None, "many") => Suite::many(2000),
        (None, _) => Suite::small(),
    };
    let suite = make();
    let peers = Peers::of(&suite, &image(server, &suite.image));
    let warm = suite.on(server);
    let _first = score(server, &warm, &suite.head());
    let one_process = (name == "small").then(|| {
        let suite = Suite::small().in_one_process();
        let on = suite.on(server);
        let _first = score(server, &on, &suite.head());
        (suite, on)
    });
    let mut table = Table::default();
    for round in 0..rounds {
        eprintln!("{name}: round {} of {rounds}", round + 1);
        if name != "many" {
            table.put("seven docker run", peers.docker_runs(ATTEMPTS));
            table.put("seven fresh containers", peers.fresh_containers(ATTEMPTS));
            table.put("seven pytest", peers.processes(ATTEMPTS));
        }
        table.put("one pytest", peers.processes(1));
        table.put("repeat plug-in", peers.repeated(ATTEMPTS));
        let head = suite.head();
        table.put("warm", score(server, &warm, &head));
        table.put("cached", warm.report(&head).0);
        if let Some((suite, on)) = &one_process {
            table.put("shared", score(server, on, &suite.head()));
        }
        if name != "many" {
            let fresh = make().with_files("fixtures/sealed", 1, 64 + round);
            let cold = fresh.on(server);
            table.put("cold", score(server, &cold, &fresh.head()));
        }
    }
    tell(name, suite.cases, &table, figures);
}

fn tell(suite: &str, cases: usize, table: &Table, figures: &mut Figures) {
    let median = |name: &str| table.of(name).median();
    let named = |bench: &str| format!("{suite}/{bench}");
    let docker = (suite != "many").then(|| ("seven docker run", median("seven docker run")));
    for (name, _) in &table.rows {
        let vs = docker.filter(|(peer, _)| peer != name);
        figures.time(&named(name), &table.of(name), vs, None);
    }
    let (warm, one) = (table.of("warm"), ("one pytest", median("one pytest")));
    match suite {
        "small" => {
            figures.time(&named("warm_vs_naive_docker"), &warm, docker, Some(0.04));
            figures.time(&named("warm_vs_one_pytest"), &warm, Some(one), Some(1.0));
            figures.time(
                &named("cached_vs_warm"),
                &table.of("cached"),
                Some(("warm", warm.median())),
                Some(0.1),
            );
            figures.time(
                &named("cold_vs_naive_docker"),
                &table.of("cold"),
                docker,
                Some(0.5),
            );
            let shared = ("shared", median("shared"));
            figures.time(&named("split_vs_shared"), &warm, Some(shared), Some(1.3));
        }
        "arrays" => figures.time(&named("warm_vs_one_pytest"), &warm, Some(one), Some(0.5)),
        "many" => {
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            let each = |seconds: f64, attempts: usize| seconds / (cases * attempts) as f64 * 1e6;
            // The held-out attempts are attempts as well.
            let ours = each(warm.median(), ATTEMPTS + 2);
            let theirs = each(median("repeat plug-in"), ATTEMPTS);
            figures.value(
                &named("attempts_vs_repeat_plugin"),
                ours,
                "µs",
                Some(("repeat plug-in", theirs)),
                Some(1.3),
            );
        }
        _ => {
            figures.time(&named("warm_vs_naive_docker"), &warm, docker, Some(0.04));
            figures.time(&named("warm_vs_one_pytest"), &warm, Some(one), Some(1.0));
        }
    }
}
