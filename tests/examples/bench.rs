//! What a score costs beside what its caller would pay to run the sealed tests itself: all in one run, alternately.
//!
//! Prints one JSON line a figure and a table. The suite is the sealed tests of the exploit corpus with the repaired src:
//! 27 small cases in three files. `make bench`, on the debug build: what is timed is git, engine and interpreter.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures, and says so"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tribunal_tests::{Case, Client, Server};

const ROUNDS: usize = 7;

fn main() {
    let server = Server::own();
    let case = Case::named("exploits", "00").materialize();
    let tree = tempfile::tempdir().unwrap();
    case.workspace.git(&["checkout", "-q", &case.head]);
    copy(case.workspace.path(), tree.path());
    let image = image(&server);
    let standing = standing(&image, tree.path());

    let mut figures: Vec<(&str, Vec<Duration>)> = vec![
        ("seven docker run", Vec::new()),
        ("seven pytest in one container", Vec::new()),
        ("one cold pytest", Vec::new()),
        ("first score of a base", Vec::new()),
        ("fresh score", Vec::new()),
        ("stored score", Vec::new()),
    ];
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("ci_out");
    for round in 0..ROUNDS {
        // A base that the server has never seen: its first score pays for the sealed tree and for base's own run.
        let work = &case.workspace;
        work.git(&["checkout", "-q", &case.base]);
        work.write("fixtures/sealed/round.txt", round.to_string());
        let base = work.commit("a base of its own");
        work.git(&["checkout", "-q", &case.head, "--", "src"]);
        let head = work.commit("the repair");
        let origin = work.origin_at(&base);
        let registered = server.register(origin.path());
        let maintainer = Client::maintainer(&server, &registered, case.workspace.path());
        let score = |extra: &[&str]| {
            let mut args = vec!["score", "--head", &head, "--out", out.to_str().unwrap()];
            args.extend_from_slice(extra);
            maintainer.run(&args).expect_code(0);
        };
        let round: [&dyn Fn(); 6] = [
            &|| (0..7).for_each(|_| naive(&image, tree.path())),
            &|| (0..7).for_each(|_| inside(&standing)),
            &|| inside(&standing),
            &|| score(&[]),
            &|| score(&["--fresh"]),
            &|| score(&[]),
        ];
        for (work, (_, times)) in round.iter().zip(&mut figures) {
            let begun = Instant::now();
            work();
            times.push(begun.elapsed());
        }
    }
    run(Command::new("docker").args(["rm", "-f", &standing]));
    server.shutdown();
    tell(&mut figures);
}

fn tell(figures: &mut [(&str, Vec<Duration>)]) {
    let peers = [None, Some(0), Some(0), Some(0), Some(2), Some(4)];
    for (_, times) in figures.iter_mut() {
        times.sort();
    }
    let median = |n: usize| figures[n].1[ROUNDS / 2].as_secs_f64();
    for (n, (name, times)) in figures.iter().enumerate() {
        let vs = peers[n].map(|p| figures[p].0);
        let ratio = peers[n].map(|p| median(n) / median(p));
        let line = serde_json::json!({
            "bench": name, "value": median(n), "unit": "s", "min": times[0].as_secs_f64(),
            "max": times[ROUNDS - 1].as_secs_f64(), "vs": vs, "ratio": ratio,
        });
        println!("{line}");
    }
    println!(
        "\n{:<32}{:>9}{:>9}{:>9}   ratio",
        "median of 7 rounds", "s", "min", "max"
    );
    for (n, (name, times)) in figures.iter().enumerate() {
        let against = peers[n].map_or(String::new(), |p| {
            format!("{:.3} of {}", median(n) / median(p), figures[p].0)
        });
        let (min, max) = (times[0].as_secs_f64(), times[ROUNDS - 1].as_secs_f64());
        println!(
            "{name:<32}{:>9.3}{min:>9.3}{max:>9.3}   {against}",
            median(n)
        );
    }
}

/// The engine's id of the runner image.
fn image(server: &Server) -> String {
    let listed: serde_json::Value =
        serde_json::from_str(&server.admin(&["image", "list", "--json"])).unwrap();
    let images = listed["images"].as_array().or_else(|| listed.as_array());
    let first = &images.unwrap()[0];
    let id = first["engineId"]
        .as_str()
        .or_else(|| first["engine_id"].as_str());
    id.unwrap().to_owned()
}

const PYTEST: [&str; 6] = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
const RUNNER: &str = "PYTHONPATH=/opt/tribunal/runner:/tree";

fn mount(tree: &Path) -> String {
    format!("{}:/tree:ro", tree.display())
}

fn naive(image: &str, tree: &Path) {
    let mount = mount(tree);
    let mut docker = Command::new("docker");
    docker.args([
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        &mount,
        "-w",
        "/tree",
        "-e",
        RUNNER,
    ]);
    run(docker
        .args(["--entrypoint", PYTEST[0], image])
        .args(&PYTEST[1..])
        .arg("tests/sealed"));
}

/// A container that stands by, for processes started in it.
fn standing(image: &str, tree: &Path) -> String {
    let mount = mount(tree);
    let mut docker = Command::new("docker");
    docker.args([
        "run",
        "-d",
        "--network",
        "none",
        "-v",
        &mount,
        "-w",
        "/tree",
        "-e",
        RUNNER,
    ]);
    let output = docker
        .args(["--entrypoint", "sleep", image, "3600"])
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn inside(container: &str) {
    let mut docker = Command::new("docker");
    run(docker
        .args(["exec", container])
        .args(PYTEST)
        .arg("tests/sealed"));
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success(), "{command:?}");
}

fn copy(from: &Path, to: &Path) {
    let mut cp = Command::new("cp");
    run(cp.arg("-a").arg(from.join(".")).arg(to));
    std::fs::remove_dir_all(to.join(".git")).unwrap();
    run(Command::new("chmod").arg("755").arg(to));
}
