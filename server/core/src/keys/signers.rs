//! The `allowed_signers` form of keys, as `ssh-keygen -Y verify` reads it: only lines that speak of verdicts count.
//!
//! A line counts if its `namespaces` admit verdicts, or if it has none and its principal is the server's; so the file of
//! maintainers who accept cassettes is no list of servers. Local times are refused: they mean something else elsewhere.

use super::signer_lines::{Line, admits, lines};
use super::{KeyError, KeyRecord, NAMESPACE, PRINCIPAL, PublicKey};
use crate::id::UnixTime;
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
    for (line, read) in lines(text) {
        let read = read.and_then(|line| record(&line));
        records.extend(read.map_err(|why| KeyError::Line { line, why })?);
    }
    Ok(records)
}

fn record(line: &Line) -> Result<Option<KeyRecord>, String> {
    let counts = match &line.namespaces {
        Some(patterns) => admits(patterns, NAMESPACE),
        None => line.principals.split(',').any(|p| p == PRINCIPAL),
    };
    if !counts || line.kind != "ssh-ed25519" {
        return Ok(None);
    }
    let key = line.read_key()?;
    let bytes = key.key_data().ed25519().ok_or("not an ed25519 key")?;
    Ok(Some(KeyRecord {
        key: PublicKey::from_bytes(&bytes.0).map_err(|e| e.to_string())?,
        valid_after: line.valid_after,
        valid_before: line.valid_before,
        revoked_since: None,
    }))
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
