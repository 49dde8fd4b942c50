//! Figures as they are told: medians with their spread, ratios to a peer of the same run, one JSON line each and a table.

use std::time::Duration;

/// Times of one thing, in the order they were taken.
pub(super) struct Times {
    seconds: Vec<f64>,
}

impl Times {
    pub(super) fn of(times: &[Duration]) -> Self {
        let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
        seconds.sort_by(f64::total_cmp);
        Self { seconds }
    }

    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The time that this part of them stay within.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.seconds.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place among a few hundred times"
        )]
        let place = (last as f64 * part).round() as usize;
        self.seconds[place.min(last)]
    }
}

/// What is told so far.
#[derive(Default)]
pub(super) struct Figures {
    rows: Vec<String>,
}

impl Figures {
    /// A time beside a peer's of the same run.
    pub(super) fn time(
        &mut self,
        bench: &str,
        times: &Times,
        vs: Option<(&str, f64)>,
        goal: Option<f64>,
    ) {
        let ratio = vs.map(|(_, peer)| times.median() / peer);
        println!(
            "{}",
            serde_json::json!({
                "bench": bench, "value": times.median(), "unit": "s", "min": times.at(0.0), "max": times.at(1.0),
                "vs": vs.map(|(name, _)| name), "ratio": ratio, "goal": goal,
            })
        );
        let against = vs.map_or(String::new(), |(name, _)| {
            format!("{:.3} of {name}", ratio.unwrap_or_default())
        });
        self.row(
            bench,
            times.median(),
            "s",
            times.at(0.0),
            times.at(1.0),
            &against,
            ratio,
            goal,
        );
    }

    /// Any other figure; `goal` is the most it may be.
    pub(super) fn value(
        &mut self,
        bench: &str,
        value: f64,
        unit: &str,
        vs: Option<(&str, f64)>,
        goal: Option<f64>,
    ) {
        let ratio = vs.map(|(_, peer)| value / peer);
        println!(
            "{}",
            serde_json::json!({
                "bench": bench, "value": value, "unit": unit, "vs": vs.map(|(name, _)| name), "ratio": ratio,
                "goal": goal,
            })
        );
        let against = vs.map_or(String::new(), |(name, _)| {
            format!("{:.3} of {name}", ratio.unwrap_or_default())
        });
        self.row(
            bench,
            value,
            unit,
            value,
            value,
            &against,
            ratio.or(Some(value)),
            goal,
        );
    }

    #[expect(clippy::too_many_arguments, reason = "a line of a table")]
    fn row(
        &mut self,
        bench: &str,
        value: f64,
        unit: &str,
        min: f64,
        max: f64,
        against: &str,
        judged: Option<f64>,
        goal: Option<f64>,
    ) {
        let met = match (judged, goal) {
            (Some(value), Some(goal)) if value <= goal => format!("within {goal}"),
            (Some(_), Some(goal)) => format!("MISSES {goal}"),
            _ => String::new(),
        };
        self.rows.push(format!(
            "{bench:<44}{value:>10.3}{min:>10.3}{max:>10.3} {unit:<6}{against:<44}{met}"
        ));
    }

    /// The table, once everything is told.
    pub(super) fn table(&self) {
        println!("\n{:<44}{:>10}{:>10}{:>10}", "", "median", "min", "max");
        for row in &self.rows {
            println!("{row}");
        }
    }
}
