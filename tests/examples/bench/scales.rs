//! How a warm score's cost grows: with cases, src, base, attempts. Medians, and a straight line through them.

use super::figures::{Figures, Times};
use super::{Suite, score};
use std::fs;
use tribunal_tests::{Server, binaries};

struct Scale {
    name: &'static str,
    unit: &'static str,
    steps: [usize; 4],
    suite: fn(usize) -> Suite,
}

const SCALES: [Scale; 4] = [
    Scale {
        name: "cases",
        unit: "cases",
        steps: [10, 250, 500, 1000],
        suite: Suite::many,
    },
    Scale {
        name: "src",
        unit: "files of 4 KiB",
        steps: [1, 500, 1000, 2000],
        suite: |files| Suite::small().with_files("src/ballast", files, 4096),
    },
    Scale {
        name: "base",
        unit: "files of 4 KiB",
        steps: [1, 1000, 2000, 4000],
        suite: |files| Suite::small().with_files("assets", files, 4096),
    },
    Scale {
        name: "attempts",
        unit: "attempts",
        steps: [2, 7, 14, 28],
        suite: |attempts| Suite::small().with_attempts(attempts),
    },
];

pub(super) fn measure(server: &Server, rounds: usize, figures: &mut Figures) {
    fs::create_dir_all(binaries::root().join("docs/bench")).unwrap();
    for scale in &SCALES {
        let mut points = Vec::new();
        for step in scale.steps {
            eprintln!("{}: {step}", scale.name);
            let suite = (scale.suite)(step);
            let on = suite.on(server);
            let _first = score(server, &on, &suite.head());
            let times: Vec<_> = (0..rounds)
                .map(|_| score(server, &on, &suite.head()))
                .collect();
            let times = Times::of(&times);
            figures.time(&format!("scale/{}/{step}", scale.name), &times, None, None);
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            points.push((step as f64, times.median()));
        }
        let (slope, start) = line(&points);
        figures.value(
            &format!("scale/{}/slope", scale.name),
            slope * 1e3,
            "ms",
            None,
            None,
        );
        let plot = super::plot::svg(scale.name, scale.unit, &points, slope, start);
        fs::write(
            binaries::root().join(format!("docs/bench/{}.svg", scale.name)),
            plot,
        )
        .unwrap();
    }
}

/// Least squares: the slope, and the value at nothing.
pub(super) fn line(points: &[(f64, f64)]) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let n = points.len() as f64;
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (over, under) = points.iter().fold((0.0, 0.0), |(a, b), (px, py)| {
        (a + (px - x) * (py - y), b + (px - x) * (px - x))
    });
    let slope = over / under;
    (slope, y - slope * x)
}
