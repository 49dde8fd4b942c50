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
mod tests;
