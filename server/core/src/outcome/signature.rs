//! Failure text to a signature that is equal when the defect is: addresses, temp paths, uuids and durations become words.
//!
//! One function for everything that compares failures: attempts with each other, and a leased failure with its lease.
//! It must not be loose either: plain numbers, values and names stay, or another failure of the same test would match.

use super::ExceptionText;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `ExceptionType: first line of the message`, normalised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signature(String);

/// Where temporary files live, in the room and on a maintainer's machine.
const TEMP_ROOTS: [&str; 7] = [
    "/tmp/",
    "/var/tmp/",
    "/dev/shm/",
    "/home/attempt",
    "/private/tmp/",
    "/private/var/folders/",
    "/var/folders/",
];

/// Units of time that may stand apart from their number; longest first, or `s` would eat the start of `seconds`.
const SPACED_UNITS: [&str; 20] = [
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "millisecond",
    "microsecond",
    "nanosecond",
    "seconds",
    "minutes",
    "second",
    "minute",
    "hours",
    "secs",
    "hour",
    "days",
    "mins",
    "day",
    "min",
    "sec",
    "ms",
    "s",
];

/// Units of time that must touch their number: apart from it they are too often something else.
const TOUCHING_UNITS: [&str; 5] = ["us", "µs", "ns", "m", "h"];

impl Signature {
    /// The signature of a failure.
    #[must_use]
    pub fn of(exception: &ExceptionText) -> Self {
        let first = exception.message.lines().next().unwrap_or_default();
        Self::written(&format!("{}: {first}", exception.kind))
    }

    /// The signature of a skip that was made to fail.
    #[must_use]
    pub fn skipped(reason: &str) -> Self {
        let first = reason.lines().next().unwrap_or_default();
        Self::written(&format!("Skipped: {first}"))
    }

    /// A signature as a person wrote it into a lease.
    #[must_use]
    pub fn written(text: &str) -> Self {
        let first = text.trim().lines().next().unwrap_or_default();
        let ends = |c: char| c == ':' || c.is_whitespace();
        let whole = normalised(first);
        Self(whole.trim_start().trim_end_matches(ends).to_owned())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// It says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Signature {
    /// Escaped and capped: it is candidate text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::shown(&self.0, 300))
    }
}

fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let before = out.chars().next_back();
        let replaced = temp_path(rest)
            .or_else(|| address(rest, &out))
            .or_else(|| uuid(rest, before))
            .or_else(|| duration(rest, before));
        let taken = match replaced {
            Some((word, length)) => {
                out.push_str(word);
                length
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn temp_path(rest: &str) -> Option<(&'static str, usize)> {
    TEMP_ROOTS.iter().find(|root| rest.starts_with(**root))?;
    let ends = |c: char| c.is_whitespace() || "'\"`<>|,;:()[]{}".contains(c);
    Some(("TEMP_PATH", rest.find(ends).unwrap_or(rest.len())))
}

/// `at 0x7f…`, or any hex number as long as a pointer; shorter ones are values that a test may be about.
fn address(rest: &str, before: &str) -> Option<(&'static str, usize)> {
    if let Some(cut) = cut_address(rest, before) {
        return Some(("ADDRESS", cut));
    }
    let digits = rest.strip_prefix("0x")?;
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let enough = if before.ends_with("at ") { 4 } else { 9 };
    (count >= enough && !before.ends_with(is_word)).then_some(("ADDRESS", count + 2))
}

/// What is left of the address where pytest cut the middle out of an object's long text: `<src.rates.re...x7f91a0>`.
fn cut_address(rest: &str, before: &str) -> Option<usize> {
    if !before.ends_with("...") {
        return None;
    }
    let digits = rest.trim_start_matches('0').trim_start_matches('x');
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let ends = digits.get(count..).is_some_and(|end| end.starts_with('>'));
    (count >= 6 && ends).then_some(rest.len() - digits.len() + count)
}

fn uuid(rest: &str, before: Option<char>) -> Option<(&'static str, usize)> {
    let bytes = rest.as_bytes().get(..36)?;
    let shaped = bytes.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    let apart =
        !before.is_some_and(is_word) && !rest.get(36..).is_some_and(|r| r.starts_with(is_word));
    (shaped && apart).then_some(("UUID", 36))
}

/// A number with a unit of time, or `0:00:01.5` as a timedelta prints itself.
fn duration(rest: &str, before: Option<char>) -> Option<(&'static str, usize)> {
    if before.is_some_and(|c| is_word(c) || c == '.') {
        return None;
    }
    let number = number_length(rest)?;
    let after = rest.get(number..)?;
    if let Some(length) = clock_length(after) {
        return Some(("DURATION", number + length));
    }
    let apart = |unit: &str, text: &str| {
        text.strip_prefix(unit)
            .is_some_and(|tail| !tail.starts_with(is_word))
    };
    let touching = SPACED_UNITS
        .iter()
        .chain(&TOUCHING_UNITS)
        .find(|unit| apart(unit, after));
    if let Some(unit) = touching {
        return Some(("DURATION", number + unit.len()));
    }
    let spaced = after.strip_prefix(' ')?;
    let unit = SPACED_UNITS.iter().find(|unit| apart(unit, spaced))?;
    Some(("DURATION", number + 1 + unit.len()))
}

/// Digits, a fraction, an exponent.
fn number_length(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(text);
    if length == 0 {
        return None;
    }
    if let Some(fraction) = text.get(length..).and_then(|t| t.strip_prefix('.')) {
        let count = digits(fraction);
        length += if count == 0 { 0 } else { count + 1 };
    }
    let exponent = text
        .get(length..)
        .and_then(|t| t.strip_prefix(['e', 'E']))
        .map(|t| (t.len() - t.trim_start_matches(['+', '-']).len(), t));
    if let Some((sign, tail)) = exponent {
        let count = digits(tail.get(sign..).unwrap_or_default());
        if sign <= 1 && count > 0 {
            length += 1 + sign + count;
        }
    }
    Some(length)
}

/// `:MM:SS` with an optional fraction, as it follows the hours.
fn clock_length(text: &str) -> Option<usize> {
    let two = |t: &str| t.bytes().take(2).filter(u8::is_ascii_digit).count() == 2;
    let minutes = text.strip_prefix(':').filter(|t| two(t))?;
    let seconds = minutes.get(2..)?.strip_prefix(':').filter(|t| two(t))?;
    let mut length = 6;
    if let Some(fraction) = seconds.get(2..).and_then(|t| t.strip_prefix('.')) {
        length += 1 + fraction.bytes().take_while(u8::is_ascii_digit).count();
    }
    (!text.get(length..).is_some_and(|t| t.starts_with(is_word))).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn same(a: &str, b: &str) -> bool {
        Signature::written(a) == Signature::written(b)
    }

    #[test]
    fn the_same_defect_has_one_signature() {
        for (a, b) in [
            (
                "TimeoutError: <test_net.Conn object at 0x7f01aa> gave up on /tmp/pytest-of-u/pytest-0/test_net0 after 0.000031s",
                "TimeoutError: <test_net.Conn object at 0x55d2b0c1f0> gave up on /tmp/x9/test_net0 after 1.5e-05s",
            ),
            (
                "E: job 123e4567-e89b-12d3-a456-426614174000 lost",
                "E: job 00000000-0000-0000-0000-00000000000f lost",
            ),
            ("E: waited 3 seconds", "E: waited 12.25 seconds"),
            ("E: waited 1 second", "E: waited 12.25 ms"),
            ("E: took 0:00:01.250000", "E: took 1:12:00"),
            ("E: took 4us", "E: took 17µs"),
            ("E: no '/tmp/a b'", "E: no '/tmp/c b'"),
            (
                "E: assert <src.rates.re...x7f910a1f5550> == 210.0",
                "E: assert <src.rates.re...x7f16fd159550> == 210.0",
            ),
            (
                "E: assert <src.r...7f910a1f5550> == 210.0",
                "E: assert <src.r...55aa0a1f5550> == 210.0",
            ),
            ("E: pointer 0x7ffd12345678", "E: pointer 0x55aa12345678"),
            ("TimeoutError", "TimeoutError: "),
            ("E: x", "E: x :"),
            ("E: one\nsecond line", "E: one\nanother"),
        ] {
            assert!(
                same(a, b),
                "{a} / {b}: {:?} {:?}",
                Signature::written(a),
                Signature::written(b)
            );
        }
    }

    #[test]
    fn another_defect_has_another() {
        for (a, b) in [
            (
                "AssertionError: expected TokenError at col 18",
                "AssertionError: expected TokenError at col 19",
            ),
            ("AssertionError: x", "ValueError: x"),
            ("E: want 2d array", "E: want 3d array"),
            ("E: flag 0x1f", "E: flag 0x2f"),
            ("E: 'ab...c123456'", "E: 'ab...c123457'"),
            ("E: <a...b12>", "E: <a...b13>"),
            ("E: 3 differs", "E: 4 differs"),
            ("E: test_3s", "E: test_4s"),
            ("E: 1.5", "E: 1.6"),
            ("E: /srv/a", "E: /srv/b"),
            ("E: 12:30", "E: 12:31"),
            ("E: v1.2s", "E: v1.3s"),
        ] {
            assert!(!same(a, b), "{a} / {b}: {:?}", Signature::written(a));
        }
    }

    #[test]
    fn an_exception_and_a_written_lease_meet() {
        let exception = ExceptionText {
            kind: "AssertionError".into(),
            message: "assert 1 == 2\n +  where 1 = f()".into(),
            traceback: String::new(),
        };
        assert_eq!(
            Signature::of(&exception),
            Signature::written("AssertionError: assert 1 == 2")
        );
        assert_eq!(
            Signature::skipped("no net"),
            Signature::written(" Skipped: no net\n")
        );
        assert!(Signature::written(" \n").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_has_a_signature_and_normalising_twice_changes_nothing(text in "[0-9a-fx:./s émd'-]{0,60}|\\PC{0,60}") {
            let once = Signature::written(&text);
            prop_assert_eq!(Signature::written(once.as_str()), once);
        }
    }
}
