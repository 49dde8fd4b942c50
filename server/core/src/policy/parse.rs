//! The text of a policy to the policy, or to everything that is wrong with it.

use super::reader::Reader;
use super::{
    FeedbackLevel, Limits, Mistake, PathReruns, PinPolicy, Policy, PolicyError, Runner, Runs,
    WhenBehind, paths, units,
};
use crate::text::shown;

const U32: std::ops::RangeInclusive<i64> = 0..=u32::MAX as i64;
/// The last second of the year 9999, past which no tool reads a date.
const LAST_EPOCH: i64 = 253_402_300_799;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const HOUR_MS: u64 = 3_600_000;

/// Variables that the runner sets itself, or that steer it.
const RESERVED_ENV: [&str; 12] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "TZ",
    "LANG",
    "LANGUAGE",
    "SOURCE_DATE_EPOCH",
    "COLUMNS",
    "LINES",
    "IFS",
];
const RESERVED_ENV_PREFIXES: [&str; 6] =
    ["PYTHON", "PYTEST", "HYPOTHESIS", "LD_", "LC_", "TRIBUNAL_"];

impl Policy {
    /// The policy that these bytes spell, defaults filled in.
    ///
    /// # Errors
    /// Every mistake there is, each with its key.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|e| whole(format!("is not UTF-8 from byte {} on", e.valid_up_to())))?;
        let table = toml::from_str(text).map_err(|e| whole(syntax(text, &e)))?;
        let mut mistakes = Vec::new();
        let mut policy = Self::default();
        let mut root = Reader::root(table, &mut mistakes);
        root.integer("version", 1..=1, &mut 1_u8);
        paths::read(root.table("paths"), &mut policy.paths);
        pins(root.table("pins"), &mut policy.pins);
        runs(root.table("runs"), &mut policy.runs);
        runner(root.table("runner"), &mut policy.runner);
        limits(root.table("limits"), &mut policy.limits);
        let mut feedback = root.table("feedback");
        feedback.text(
            "agent",
            "\"verdict\", \"names\" or \"full\"",
            &mut policy.feedback.agent,
            feedback_level,
        );
        feedback.finish();
        root.finish();
        if mistakes.is_empty() {
            Ok(policy)
        } else {
            Err(PolicyError { mistakes })
        }
    }
}

fn pins(mut reader: Reader<'_>, pins: &mut PinPolicy) {
    reader.integer("seed", U32, &mut pins.seed.0);
    reader.list(
        "seed_env",
        "the name of an environment variable that is not the runner's own",
        &mut pins.seed_env,
        env_name,
    );
    reader.value(
        "clock",
        "a time with its offset like \"2026-09-12T00:00:00Z\", from 1980 to 2200",
        &mut pins.clock,
        |value| match value.as_datetime() {
            Some(time) => units::clock(&time.to_string()),
            None => units::clock(value.as_str()?),
        },
    );
    reader.text(
        "timezone",
        "the name of a time zone like \"UTC\" or \"Europe/Berlin\"",
        &mut pins.timezone,
        zone,
    );
    reader.integer("hash_seed", U32, &mut pins.hash_seed);
    reader.integer(
        "source_date_epoch",
        0..=LAST_EPOCH,
        &mut pins.source_date_epoch,
    );
    reader.finish();
}

fn runs(mut reader: Reader<'_>, runs: &mut Runs) {
    reader.integer("reruns", 1..=100, &mut runs.reruns);
    reader.integer("held_out", 0..=20, &mut runs.held_out);
    reader.list(
        "pin_sensitive",
        "a node id",
        &mut runs.pin_sensitive,
        |text| text.parse().ok(),
    );
    reader.duration(
        "attempt_timeout",
        100..=HOUR_MS,
        &mut runs.attempt_timeout_ms,
    );
    reader.duration("case_timeout", 100..=HOUR_MS, &mut runs.case_timeout_ms);
    reader.text(
        "when_behind",
        "\"merge\" or \"refuse\"",
        &mut runs.when_behind,
        |text| match text {
            "merge" => Some(WhenBehind::Merge),
            "refuse" => Some(WhenBehind::Refuse),
            _ => None,
        },
    );
    reader.list(
        "forbid_marks",
        "the name of a mark",
        &mut runs.forbid_marks,
        mark,
    );
    reader.boolean("require_strong_digest", &mut runs.require_strong_digest);
    reader.tables("path", |mut reader| {
        let mut entry = PathReruns {
            prefix: String::new(),
            reruns: 0,
        };
        reader.text(
            "prefix",
            "a folder that ends in \"/\" or the path of a file",
            &mut entry.prefix,
            paths::root,
        );
        reader.integer("reruns", 1..=100, &mut entry.reruns);
        reader.required("prefix");
        reader.required("reruns");
        reader.finish();
        runs.path.push(entry);
    });
    reader.finish();
}

fn runner(mut reader: Reader<'_>, runner: &mut Runner) {
    let only = |wanted: &'static str| move |text: &str| (text == wanted).then(|| text.to_owned());
    reader.text("kind", "\"pytest\"", &mut runner.kind, only("pytest"));
    reader.text(
        "image",
        "the name of a registered image",
        &mut runner.image,
        image,
    );
    reader.list(
        "pythonpath",
        "\".\" or a relative folder",
        &mut runner.pythonpath,
        import_root,
    );
    reader.text(
        "preload",
        "\"auto\" or \"none\"",
        &mut runner.preload,
        |text| matches!(text, "auto" | "none").then(|| text.to_owned()),
    );
    reader.list(
        "shared",
        "the exact path of a sealed test file",
        &mut runner.shared,
        paths::file,
    );
    reader.finish();
}

fn limits(mut reader: Reader<'_>, limits: &mut Limits) {
    reader.size("memory", 64 * MIB..=256 * GIB, &mut limits.memory);
    reader.integer("pids", 16..=32_768, &mut limits.pids);
    reader.integer("cpus", 1..=64, &mut limits.cpus);
    reader.size("tmp", MIB..=64 * GIB, &mut limits.tmp);
    reader.boolean("tmp_exec", &mut limits.tmp_exec);
    reader.size("output", KIB..=GIB, &mut limits.output);
    reader.integer("src_files", 1..=1_000_000, &mut limits.src_files);
    reader.size("src_bytes", 1..=16 * GIB, &mut limits.src_bytes);
    reader.finish();
}

fn feedback_level(text: &str) -> Option<FeedbackLevel> {
    match text {
        "verdict" => Some(FeedbackLevel::Verdict),
        "names" => Some(FeedbackLevel::Names),
        "full" => Some(FeedbackLevel::Full),
        _ => None,
    }
}

fn env_name(text: &str) -> Option<String> {
    let named = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let reserved = RESERVED_ENV.contains(&text)
        || RESERVED_ENV_PREFIXES
            .iter()
            .any(|prefix| text.starts_with(prefix));
    (named && (!reserved || text == "TRIBUNAL_SEED")).then(|| text.to_owned())
}

fn zone(text: &str) -> Option<String> {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b))
    };
    (text.len() <= 64 && text.split('/').all(part)).then(|| text.to_owned())
}

fn mark(text: &str) -> Option<String> {
    let word = !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(char::is_numeric);
    word.then(|| text.to_owned())
}

fn image(text: &str) -> Option<String> {
    let fits = (1..=255).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b));
    fits.then(|| text.to_owned())
}

/// `src/` and `src` are one folder.
fn import_root(text: &str) -> Option<String> {
    if text == "." {
        return Some(text.to_owned());
    }
    let folder = text.strip_suffix('/').unwrap_or(text);
    paths::file(folder).map(String::from)
}

fn whole(told: String) -> PolicyError {
    PolicyError {
        mistakes: vec![Mistake {
            key: String::new(),
            told,
        }],
    }
}

fn syntax(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| {
        text.bytes()
            .take(span.start)
            .filter(|b| *b == b'\n')
            .count()
            + 1
    });
    format!("is not TOML: line {line}: {}", shown(error.message(), 200))
}
