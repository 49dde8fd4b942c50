//! The lease file's bytes to leases. Unknown, missing and duplicate keys, wrong types and a second lease for one name are
//! refused, each with line and column, and with the lease's name as soon as there is one.

use super::{Lease, LeaseDigest, LeaseFileError, expiry};
use crate::id::UnixTime;
use crate::outcome::Signature;
use crate::text::shown;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// More is no list of exceptions any more; it bounds the work, too.
const MAX_BYTES: usize = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile<'a> {
    #[serde(borrow)]
    leases: Vec<RawLease<'a>>,
}

/// The same file a first time, for its outer shape: serde would read a list in place of an object, field by field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape<'a> {
    #[serde(borrow)]
    leases: Vec<&'a RawValue>,
}

/// Values stay raw at first: so a mistake in one can be told with its place *and* with the name of its lease.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLease<'a> {
    #[serde(borrow)]
    qualname: &'a RawValue,
    #[serde(borrow)]
    bytecode_hash: &'a RawValue,
    #[serde(borrow)]
    failure_signature: &'a RawValue,
    #[serde(borrow)]
    expires_at: &'a RawValue,
    #[serde(borrow)]
    owner: &'a RawValue,
    #[serde(borrow)]
    reason: &'a RawValue,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Lease>, LeaseFileError> {
    if bytes.len() > MAX_BYTES {
        return Err(at(1, 1, format!("the file is over {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let good = bytes.get(..e.valid_up_to()).unwrap_or_default();
        let (line, column) = position(good);
        at(line, column, "the file is not UTF-8".to_owned())
    })?;
    let reader = Reader { text };
    let json = |e: serde_json::Error| {
        let message = e.to_string();
        let bare = message.split(" at line ").next().unwrap_or(&message);
        at(e.line().max(1), e.column().max(1), shown(bare, 200))
    };
    if text.trim_start().starts_with('[') {
        return Err(at(
            1,
            1,
            "the file is a list, not an object with `leases`".to_owned(),
        ));
    }
    let shape: Shape<'_> = serde_json::from_str(text).map_err(json)?;
    if let Some(other) = shape
        .leases
        .iter()
        .find(|lease| !lease.get().starts_with('{'))
    {
        let (line, column) = reader.place(other);
        return Err(at(
            line,
            column,
            format!("a lease is an object, not {}", shown(other.get(), 80)),
        ));
    }
    let file: RawFile<'_> = serde_json::from_str(text).map_err(json)?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut leases = Vec::with_capacity(file.leases.len());
    for raw in &file.leases {
        let lease = reader.lease(raw)?;
        let line = reader.place(raw.qualname).0;
        if let Some(first) = seen.insert(lease.qualname.clone(), line) {
            let (line, column) = reader.place(raw.qualname);
            let name = shown(&lease.qualname, 120);
            return Err(at(
                line,
                column,
                format!("`{name}` has a lease already, on line {first}"),
            ));
        }
        leases.push(lease);
    }
    Ok(leases)
}

struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn lease(&self, raw: &RawLease<'_>) -> Result<Lease, LeaseFileError> {
        let qualname = self.text(raw.qualname, "qualname", None)?;
        let name = Some(qualname.as_str());
        let digest = self.text(raw.bytecode_hash, "bytecode_hash", name)?;
        let digest: LeaseDigest = digest.parse().map_err(|rule: &str| {
            self.wrong(
                raw.bytecode_hash,
                "bytecode_hash",
                name,
                &format!("is {rule}"),
            )
        })?;
        let signature: String = self.string(raw.failure_signature, "failure_signature", name)?;
        Ok(Lease {
            digest,
            // An empty one is a fault of the lease where it is used, not of the file.
            signature: Signature::written(&signature),
            expires_at: self.expires_at(raw.expires_at, name)?,
            owner: self.text(raw.owner, "owner", name)?,
            reason: self.text(raw.reason, "reason", name)?,
            qualname,
        })
    }

    fn expires_at(&self, raw: &RawValue, name: Option<&str>) -> Result<UnixTime, LeaseFileError> {
        const KEY: &str = "expires_at";
        let wrong = |why: &str| self.wrong(raw, KEY, name, why);
        if let Ok(seconds) = serde_json::from_str::<i64>(raw.get()) {
            return expiry::seconds(seconds).map_err(wrong);
        }
        match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => expiry::rfc3339(&text).map_err(wrong),
            Err(_) => Err(wrong("is neither unix seconds nor an RFC 3339 time")),
        }
    }

    /// A string that says something.
    fn text(
        &self,
        raw: &RawValue,
        key: &str,
        name: Option<&str>,
    ) -> Result<String, LeaseFileError> {
        let text = self.string(raw, key, name)?;
        if text.trim().is_empty() {
            return Err(self.wrong(raw, key, name, "is empty"));
        }
        Ok(text)
    }

    fn string(
        &self,
        raw: &RawValue,
        key: &str,
        name: Option<&str>,
    ) -> Result<String, LeaseFileError> {
        serde_json::from_str(raw.get()).map_err(|_| self.wrong(raw, key, name, "is not a string"))
    }

    fn wrong(&self, raw: &RawValue, key: &str, name: Option<&str>, why: &str) -> LeaseFileError {
        let (line, column) = self.place(raw);
        let of = name
            .map(|name| format!(" of lease `{}`", shown(name, 120)))
            .unwrap_or_default();
        at(
            line,
            column,
            format!("`{key}`{of} {why}: {}", shown(raw.get(), 80)),
        )
    }

    /// Where in the file a raw value begins: it borrows from the file's text, so its address says it.
    fn place(&self, raw: &RawValue) -> (usize, usize) {
        let offset = raw
            .get()
            .as_ptr()
            .addr()
            .saturating_sub(self.text.as_ptr().addr());
        position(self.text.as_bytes().get(..offset).unwrap_or_default())
    }
}

/// Line and column of the byte after these.
fn position(before: &[u8]) -> (usize, usize) {
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    (line, column)
}

fn at(line: usize, column: usize, message: String) -> LeaseFileError {
    LeaseFileError {
        line,
        column,
        message,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    const GOOD: &str = r#"{
  "leases": [
    {
      "qualname": "test_net.test_net",
      "bytecode_hash": "0123456789abcdef",
      "failure_signature": "TimeoutError: x",
      "expires_at": 1790000000,
      "owner": "m@example.org",
      "reason": "upstream"
    }
  ]
}
"#;

    fn error(text: &str) -> LeaseFileError {
        parse(text.as_bytes()).unwrap_err()
    }

    fn with(key: &str, value: &str) -> String {
        GOOD.lines()
            .map(
                |line| match line.trim_start().starts_with(&format!("\"{key}\"")) {
                    true => format!(
                        "      \"{key}\": {value}{}",
                        if line.ends_with(',') { "," } else { "" }
                    ),
                    false => line.to_owned(),
                },
            )
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_good_file_parses() {
        let leases = parse(GOOD.as_bytes()).unwrap();
        assert_eq!(leases.len(), 1);
        assert_eq!(leases.first().unwrap().expires_at, UnixTime(1_790_000_000));
        assert_eq!(parse(br#"{"leases": []}"#), Ok(vec![]));
        let v2 = with("bytecode_hash", &format!("\"v2:cp313:{}\"", "a".repeat(64)));
        assert_eq!(
            parse(v2.as_bytes())
                .unwrap()
                .first()
                .unwrap()
                .digest
                .to_string(),
            format!("v2:cp313:{}", "a".repeat(64))
        );
        // Named by the judge where it is used, with a code of its own.
        assert!(
            parse(with("failure_signature", "\" \"").as_bytes())
                .unwrap()
                .first()
                .unwrap()
                .signature
                .is_empty()
        );
    }

    #[test]
    fn every_mistake_has_a_place_and_says_whose_it_is() {
        for (text, line, column, says) in [
            (
                with("expires_at", "\"2026-12-02\""),
                7,
                21,
                "`expires_at` of lease `test_net.test_net` has no time of day",
            ),
            (
                with("expires_at", "null"),
                7,
                21,
                "`expires_at` of lease `test_net.test_net` is neither",
            ),
            (with("expires_at", "1.5e9"), 7, 21, "is neither"),
            (
                with("expires_at", "99999999999999999999"),
                7,
                21,
                "is neither",
            ),
            (with("expires_at", "true"), 7, 21, "is neither"),
            (with("expires_at", "\"\""), 7, 21, "is neither"),
            (
                with("owner", "7"),
                8,
                16,
                "`owner` of lease `test_net.test_net` is not a string",
            ),
            (
                with("owner", "\" \""),
                8,
                16,
                "`owner` of lease `test_net.test_net` is empty",
            ),
            (
                with("bytecode_hash", "\"@compute\""),
                5,
                24,
                "`bytecode_hash` of lease `test_net.test_net` is neither",
            ),
            (
                with("bytecode_hash", "\"v2:cp313:ABC\""),
                5,
                24,
                "is neither",
            ),
            (
                with("qualname", "null"),
                4,
                19,
                "`qualname` is not a string",
            ),
            (
                GOOD.replace("\"owner\"", "\"Owner\""),
                8,
                13,
                "unknown field `Owner`",
            ),
            (
                GOOD.replace("\"owner\"", "\"reason\""),
                9,
                14,
                "duplicate field `reason`",
            ),
            (
                GOOD.replace("      \"owner\": \"m@example.org\",\n", ""),
                9,
                5,
                "missing field `owner`",
            ),
            (
                GOOD.replace("\"leases\"", "\"lease\""),
                2,
                9,
                "unknown field `lease`",
            ),
            ("{}".to_owned(), 1, 2, "missing field `leases`"),
            (
                "{\"leases\": [], \"leases\": []}".to_owned(),
                1,
                23,
                "duplicate field `leases`",
            ),
            (
                "{\"leases\": []} x".to_owned(),
                1,
                16,
                "trailing characters",
            ),
            ("[[]]".to_owned(), 1, 1, "the file is a list"),
            (
                "{\"leases\": [[\"a\", \"b\"]]}".to_owned(),
                1,
                13,
                "a lease is an object",
            ),
            (String::new(), 1, 1, "EOF"),
            ("{\"leases\": [NaN]}".to_owned(), 1, 13, "expected"),
            (
                "\u{feff}{\"leases\": []}".to_owned(),
                1,
                1,
                "expected value",
            ),
        ] {
            let error = error(&text);
            assert!(error.message.contains(says), "{says}: {error}\n{text}");
            let place = (error.line, error.column);
            assert_eq!(place, (line, column), "{error}\n{text}");
        }
        assert_eq!(error(&GOOD.replace("upstream", "up\u{1b}stream")).line, 9);
        assert_eq!(
            parse(b"{\"leases\":\n\xff").unwrap_err().to_string(),
            "line 2, column 1: the file is not UTF-8"
        );
    }

    #[test]
    fn a_second_lease_for_one_name_is_refused() {
        let one = GOOD
            .split("[\n")
            .nth(1)
            .unwrap()
            .split("\n  ]")
            .next()
            .unwrap();
        let two = GOOD.replace(one, &format!("{one},\n{one}"));
        assert_eq!(
            error(&two).to_string(),
            "line 12, column 19: `test_net.test_net` has a lease already, on line 4"
        );
    }
}
