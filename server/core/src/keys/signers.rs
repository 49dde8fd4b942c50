//! The `allowed_signers` form of keys, as `ssh-keygen -Y verify` reads it: only lines that speak of verdicts count.
//!
//! A line counts if its `namespaces` admit verdicts, or if it has none and its principal is the server's; so the file of
//! maintainers who accept cassettes is no list of servers. Local times are refused: they mean something else elsewhere.

use super::{KeyError, KeyRecord, NAMESPACE, PRINCIPAL, PublicKey};
use crate::id::UnixTime;
use crate::text::shown;
use std::fmt::Write as _;

/// The line of one key.
pub(super) fn line(record: &KeyRecord) -> String {
    let mut line = format!("{PRINCIPAL} namespaces=\"{NAMESPACE}\"");
    for (name, time) in [
        ("valid-after", record.valid_after),
        ("valid-before", record.ends()),
    ] {
        if let Some(stamp) = time.and_then(stamp) {
            // Writing to a String cannot fail.
            let _ = write!(line, ",{name}=\"{stamp}\"");
        }
    }
    line + " " + &record.key.to_openssh()
}

/// Every line that counts.
pub(super) fn parse(text: &str) -> Result<Vec<KeyRecord>, KeyError> {
    let mut records = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let record = record(line).map_err(|why| KeyError::Line {
            line: number + 1,
            why,
        })?;
        records.extend(record);
    }
    Ok(records)
}

fn record(line: &str) -> Result<Option<KeyRecord>, String> {
    let mut fields = words(line)?.into_iter();
    let principals = fields.next().ok_or("no principal")?;
    let mut next = fields.next().ok_or("no key")?;
    let mut options = Options::default();
    if !is_key_type(&next) {
        options = Options::parse(&next)?;
        next = fields.next().ok_or("no key")?;
    }
    let body = fields.next().ok_or("no key")?;
    let counts = match &options.namespaces {
        Some(patterns) => admits(patterns, NAMESPACE),
        None => principals.split(',').any(|p| p == PRINCIPAL),
    };
    if !counts || next != "ssh-ed25519" {
        return Ok(None);
    }
    let key =
        ssh_key::PublicKey::from_openssh(&format!("{next} {body}")).map_err(|e| e.to_string())?;
    let bytes = key.key_data().ed25519().ok_or("not an ed25519 key")?;
    Ok(Some(KeyRecord {
        key: PublicKey::from_bytes(&bytes.0).map_err(|e| e.to_string())?,
        valid_after: options.valid_after,
        valid_before: options.valid_before,
        revoked_since: None,
    }))
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|prefix| word.starts_with(prefix))
        && !word.contains('=')
}

#[derive(Default)]
struct Options {
    namespaces: Option<String>,
    valid_after: Option<UnixTime>,
    valid_before: Option<UnixTime>,
}

impl Options {
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for option in split_outside_quotes(text, ',') {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "namespaces" => options.namespaces = Some(value.to_owned()),
                "valid-after" => options.valid_after = Some(time(value)?),
                "valid-before" => options.valid_before = Some(time(value)?),
                "cert-authority" => return Err("certificates are not supported".to_owned()),
                other => return Err(format!("unknown option `{}`", shown(other, 40))),
            }
        }
        Ok(options)
    }
}

/// OpenSSH's pattern list, as far as `*` and `?` and `!` go.
fn admits(patterns: &str, name: &str) -> bool {
    let (mut admitted, mut denied) = (false, false);
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) => denied |= matches(pattern.as_bytes(), name.as_bytes()),
            None => admitted |= matches(pattern.as_bytes(), name.as_bytes()),
        }
    }
    admitted && !denied
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            matches(rest, name)
                || name
                    .split_first()
                    .is_some_and(|(_, tail)| matches(pattern, tail))
        }
        (Some((p, rest)), Some((n, tail))) => (*p == b'?' || p == n) && matches(rest, tail),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Words of a line; quotes keep spaces together.
fn words(line: &str) -> Result<Vec<String>, String> {
    if !line.matches('"').count().is_multiple_of(2) {
        return Err("an unclosed quote".to_owned());
    }
    Ok(split_outside_quotes(line, ' ')
        .into_iter()
        .flat_map(|word| {
            if word.contains('"') {
                vec![word]
            } else {
                word.split_whitespace().map(str::to_owned).collect()
            }
        })
        .filter(|word| !word.is_empty())
        .collect())
}

fn split_outside_quotes(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        if c == at && !quoted {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// `YYYYMMDDZ`, `YYYYMMDDHHMMZ` or `YYYYMMDDHHMMSSZ`.
fn time(text: &str) -> Result<UnixTime, String> {
    let digits = text.strip_suffix(['Z', 'z']).ok_or_else(|| {
        format!(
            "`{}` has no Z: a local time means something else elsewhere",
            shown(text, 30)
        )
    })?;
    let bad = || format!("`{}` is no time", shown(text, 30));
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let padded = format!("{digits:0<14}");
    let civil = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", &padded).map_err(|_| bad())?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| bad())?;
    Ok(UnixTime(zoned.timestamp().as_second()))
}

fn stamp(time: UnixTime) -> Option<String> {
    let time = jiff::Timestamp::from_second(time.0).ok()?;
    Some(time.strftime("%Y%m%d%H%M%SZ").to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJNfEh/44uIgibZytC0HLBiUvwX9L9o+PPXruWxEuGCR";

    fn count(line: &str) -> Result<usize, KeyError> {
        parse(line).map(|records| records.len())
    }

    #[test]
    fn only_lines_that_speak_of_verdicts_count() {
        for (options, counted) in [
            ("tribunal ", 1),
            ("someone,tribunal ", 1),
            ("maintainer@example.org ", 0),
            (
                "maintainer@example.org namespaces=\"tribunal-cassette\" ",
                0,
            ),
            ("tribunal namespaces=\"git,tribunal-cassette\" ", 0),
            ("ci namespaces=\"git,tribunal-verdict\" ", 1),
            ("ci namespaces=\"tribunal-*\" ", 1),
            ("ci namespaces=\"*,!tribunal-verdict\" ", 0),
            ("# tribunal ", 0),
        ] {
            assert_eq!(
                count(&format!("{options}{KEY} a comment")),
                Ok(counted),
                "{options}"
            );
        }
    }

    #[test]
    fn dates_need_their_zone() {
        let read = |options: &str| parse(&format!("tribunal {options} {KEY}"));
        let record = read("valid-after=\"20260101Z\",valid-before=\"202602010203Z\"")
            .unwrap()
            .remove(0);
        assert_eq!(record.valid_after, Some(UnixTime(1_767_225_600)));
        assert_eq!(record.valid_before, Some(UnixTime(1_769_911_380)));
        for bad in [
            "valid-after=\"20260101\"",
            "valid-after=\"2026Z\"",
            "valid-before=\"20261301Z\"",
            "never=\"1\"",
            "cert-authority",
            "valid-after=\"20260101Z",
        ] {
            assert!(
                matches!(read(bad), Err(KeyError::Line { line: 1, .. })),
                "{bad}"
            );
        }
    }
}
