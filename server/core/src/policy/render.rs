//! A policy as text with every key in one fixed order: what its digest is taken of, and what `tribunal init` writes.

use super::{FeedbackLevel, PinPolicy, Policy, WhenBehind, units};
use crate::id::Digest;
use std::fmt::Display;

impl Policy {
    /// The canonical text; parsing it gives this policy again.
    #[must_use]
    pub fn render(&self) -> String {
        let Self {
            paths,
            pins,
            runs,
            runner,
            limits,
            feedback,
        } = self;
        let mut out = Out("version = 1\n".to_owned());
        out.table("[paths]");
        out.list("src", &paths.src);
        out.list("sealed", &paths.sealed);
        out.list("proposed", &paths.proposed);
        out.list("tests", &paths.tests);
        out.text("cassettes", &paths.cassettes);
        out.text("manifest", &paths.manifest);
        out.text("leases", &paths.leases);
        out.text("ledger", &paths.ledger);
        out.list("protect", &paths.protect);
        out.pins(pins);
        out.table("[runs]");
        out.bare("reruns", runs.reruns);
        out.bare("held_out", runs.held_out);
        out.list("pin_sensitive", &runs.pin_sensitive);
        out.text(
            "attempt_timeout",
            units::render_duration(runs.attempt_timeout_ms),
        );
        out.text("case_timeout", units::render_duration(runs.case_timeout_ms));
        out.text("when_behind", when_behind(runs.when_behind));
        out.list("forbid_marks", &runs.forbid_marks);
        out.bare("require_strong_digest", runs.require_strong_digest);
        for entry in &runs.path {
            out.table("[[runs.path]]");
            out.text("prefix", &entry.prefix);
            out.bare("reruns", entry.reruns);
        }
        out.table("[runner]");
        out.text("kind", &runner.kind);
        out.text("image", &runner.image);
        out.list("pythonpath", &runner.pythonpath);
        out.text("preload", &runner.preload);
        out.list("shared", &runner.shared);
        out.table("[limits]");
        out.text("memory", units::render_size(limits.memory));
        out.bare("pids", limits.pids);
        out.bare("cpus", limits.cpus);
        out.text("tmp", units::render_size(limits.tmp));
        out.bare("tmp_exec", limits.tmp_exec);
        out.text("output", units::render_size(limits.output));
        out.bare("src_files", limits.src_files);
        out.text("src_bytes", units::render_size(limits.src_bytes));
        out.table("[feedback]");
        out.text("agent", level(feedback.agent));
        out.0
    }

    /// SHA-256 of the canonical text: equal for two spellings of one policy.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.render().as_bytes())
    }
}

impl PinPolicy {
    /// SHA-256 of the canonical text of this table alone.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut out = Out(String::new());
        out.pins(self);
        Digest::of(out.0.as_bytes())
    }
}

fn when_behind(value: WhenBehind) -> &'static str {
    match value {
        WhenBehind::Merge => "merge",
        WhenBehind::Refuse => "refuse",
    }
}

fn level(value: FeedbackLevel) -> &'static str {
    match value {
        FeedbackLevel::Verdict => "verdict",
        FeedbackLevel::Names => "names",
        FeedbackLevel::Full => "full",
    }
}

struct Out(String);

impl Out {
    fn pins(&mut self, pins: &PinPolicy) {
        self.table("[pins]");
        self.bare("seed", pins.seed);
        self.list("seed_env", &pins.seed_env);
        self.text("clock", &pins.clock);
        self.text("timezone", &pins.timezone);
        self.bare("hash_seed", pins.hash_seed);
        self.bare("source_date_epoch", pins.source_date_epoch);
    }
    fn table(&mut self, header: &str) {
        self.0.push_str(&format!("\n{header}\n"));
    }
    fn bare(&mut self, key: &str, value: impl Display) {
        self.0.push_str(&format!("{key} = {value}\n"));
    }
    fn text(&mut self, key: &str, value: impl Display) {
        self.bare(key, quoted(&value.to_string()));
    }
    fn list(&mut self, key: &str, items: &[impl Display]) {
        let items: Vec<String> = items.iter().map(|item| quoted(&item.to_string())).collect();
        self.bare(key, format!("[{}]", items.join(", ")));
    }
}

/// A basic string: one line, whatever it holds.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
