//! JSON read strictly and with places: every mistake is told with its key, line and column.

use crate::text::shown;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// More is no record that a person has read; it bounds the work, too.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Mistake {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in bytes.
    pub column: usize,
    /// What is wrong there, fit to be shown.
    pub message: String,
}

/// One file.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    text: &'a str,
}

/// The members of one object, in the file's order, each once.
pub(super) struct Members<'a> {
    all: Vec<(String, &'a RawValue)>,
}

impl<'a> Document<'a> {
    /// The file, and its one value.
    pub(super) fn of(bytes: &'a [u8]) -> Result<(Self, &'a RawValue), Mistake> {
        if bytes.len() > MAX_BYTES {
            return Err(mistake(
                (1, 1),
                format!("the file is over {MAX_BYTES} bytes"),
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
            mistake(position(good), "the file is not UTF-8".to_owned())
        })?;
        let this = Self { text };
        let root = serde_json::from_str(text).map_err(|error| this.syntax(&error))?;
        Ok((this, root))
    }

    fn syntax(&self, error: &serde_json::Error) -> Mistake {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let told = error.to_string();
        let bare = told.split(" at line ").next().unwrap_or(&told);
        let before = self.text.split_inclusive('\n').take(line - 1).map(str::len);
        let before = self.text.get(..before.sum::<usize>() + column - 1);
        let key = before.and_then(last_key);
        let at = key.map(|key| format!("`{}`: ", shown(&key, 80)));
        let message = format!("{}{}", at.unwrap_or_default(), shown(bare, 200));
        mistake((line, column), message)
    }

    /// The members of an object that may have these keys and no others.
    pub(super) fn object(
        self,
        raw: &'a RawValue,
        what: &str,
        keys: &[&str],
    ) -> Result<Members<'a>, Mistake> {
        let members = self.map(raw, what)?;
        match members
            .all
            .iter()
            .find(|(key, _)| !keys.contains(&key.as_str()))
        {
            Some((key, value)) => Err(mistake(
                self.key_place(value),
                format!("`{}` is no key of {what}", shown(key, 80)),
            )),
            None => Ok(members),
        }
    }

    /// The members of an object whose keys are names of the writer's.
    pub(super) fn map(self, raw: &'a RawValue, what: &str) -> Result<Members<'a>, Mistake> {
        if !raw.get().starts_with('{') {
            return Err(self.wrong(raw, what, "is not an object"));
        }
        let members: Members<'a> = serde_json::from_str(raw.get())
            .map_err(|error| self.wrong(raw, what, &shown(&error.to_string(), 100)))?;
        for (n, (key, value)) in members.all.iter().enumerate() {
            if members.all.iter().take(n).any(|(other, _)| other == key) {
                let place = self.key_place(value);
                return Err(mistake(place, format!("`{}` stands twice", shown(key, 80))));
            }
        }
        Ok(members)
    }

    /// The elements of a list.
    pub(super) fn list(self, raw: &'a RawValue, what: &str) -> Result<Vec<&'a RawValue>, Mistake> {
        serde_json::from_str(raw.get()).map_err(|_| self.wrong(raw, what, "is not a list"))
    }

    /// A string.
    pub(super) fn string(self, raw: &RawValue, what: &str) -> Result<String, Mistake> {
        serde_json::from_str(raw.get()).map_err(|_| self.wrong(raw, what, "is not a string"))
    }

    /// A string that `fits`; `rule` completes "must be".
    pub(super) fn fitting(
        self,
        raw: &RawValue,
        what: &str,
        rule: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<String, Mistake> {
        let text = self.string(raw, what)?;
        if fits(&text) {
            return Ok(text);
        }
        Err(self.wrong(raw, what, &format!("must be {rule}")))
    }

    /// A whole number as digits spell it: no sign, no fraction, no exponent, no leading zero, no other type.
    pub(super) fn whole(self, raw: &RawValue, what: &str, most: u32) -> Result<u32, Mistake> {
        let text = raw.get();
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = digits.then(|| text.parse::<u32>().ok()).flatten();
        number
            .filter(|number| *number <= most)
            .ok_or_else(|| self.wrong(raw, what, &format!("must be an integer of 0 to {most}")))
    }

    /// A mistake in this value. The value is shown: it is for keys that hold no secret.
    pub(super) fn wrong(self, raw: &RawValue, what: &str, why: &str) -> Mistake {
        let told = format!("`{}` {why}, got {}", shown(what, 120), shown(raw.get(), 60));
        mistake(self.place(raw), told)
    }

    /// Where a value begins: it borrows from the file's text, so its address says it.
    fn place(self, raw: &RawValue) -> (usize, usize) {
        position(self.before(raw).as_bytes())
    }

    fn before(self, raw: &RawValue) -> &'a str {
        let offset = raw.get().as_ptr().addr();
        let offset = offset.saturating_sub(self.text.as_ptr().addr());
        self.text.get(..offset).unwrap_or_default()
    }

    /// Where the key of a member's value begins.
    fn key_place(self, value: &RawValue) -> (usize, usize) {
        let before = self.before(value);
        let key = before.trim_end().strip_suffix(':').map(str::trim_end);
        let start = key.and_then(|key| key_start(key.strip_suffix('"')?));
        position(
            before
                .get(..start.unwrap_or(before.len()))
                .unwrap_or_default()
                .as_bytes(),
        )
    }
}

impl<'a> Members<'a> {
    /// The value of a key, where it stands.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.all
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| *value)
    }

    /// The value of a key that must stand.
    pub(super) fn need(
        &self,
        document: Document<'a>,
        object: &RawValue,
        key: &str,
    ) -> Result<&'a RawValue, Mistake> {
        let missing = || mistake(document.place(object), format!("`{key}` is missing"));
        self.get(key).ok_or_else(missing)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.all.iter().map(|(key, value)| (key.as_str(), *value))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members { all })
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The key that was read last before this point, for mistakes that leave no value.
fn last_key(before: &str) -> Option<String> {
    let key = before.get(..before.rfind("\":").or_else(|| before.rfind("\" :"))?)?;
    key.get(key_start(key)? + 1..).map(str::to_owned)
}

/// Where the quote stands that opens the string which ends here.
fn key_start(text: &str) -> Option<usize> {
    let quotes = text.rmatch_indices('"').map(|(at, _)| at);
    let escaped = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1
    };
    quotes.filter(|at| !escaped(at)).max()
}

/// Line and column of the byte after these.
fn position(before: &[u8]) -> (usize, usize) {
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|b| **b != b'\n').count() + 1;
    (line, column)
}

pub(super) fn mistake((line, column): (usize, usize), message: String) -> Mistake {
    Mistake {
        line,
        column,
        message,
    }
}
