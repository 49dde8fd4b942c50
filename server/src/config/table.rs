//! Reading a TOML table strictly: every key is asked for once, what nobody asked for is unknown, and mistakes pile up.

use super::Mistake;
use super::unit::{DURATION_RULE, SIZE_RULE, duration, size};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use toml::{Table, Value};
use tribunal_core::text::shown;

/// One table, with what was found wrong in it so far.
pub(super) struct Reader<'a> {
    prefix: &'static str,
    table: Option<&'a Table>,
    asked: BTreeSet<&'static str>,
    mistakes: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(prefix: &'static str, table: Option<&'a Table>) -> Self {
        Self {
            prefix,
            table,
            asked: BTreeSet::new(),
            mistakes: Vec::new(),
        }
    }

    pub(super) fn wrong(&mut self, key: &str, what: impl Into<String>) {
        let key = match (self.prefix, key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}.{key}"),
        };
        let what = what.into();
        self.mistakes.push(Mistake { key, what });
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.insert(key);
        self.table.and_then(|table| table.get(key))
    }

    /// The table under a key.
    pub(super) fn table(&mut self, key: &'static str) -> Option<&'a Table> {
        let value = self.get(key)?;
        let table = value.as_table();
        if table.is_none() {
            self.wrong(key, "must be a table");
        }
        table
    }

    /// The tables in the list under a key.
    pub(super) fn tables(&mut self, key: &'static str) -> Vec<&'a Table> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let list = value.as_array();
        let tables = list.and_then(|list| list.iter().map(Value::as_table).collect());
        tables.unwrap_or_else(|| {
            self.wrong(key, "must be a list of tables");
            Vec::new()
        })
    }

    /// What must be there, as a string that is fit.
    pub(super) fn needed<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        of: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        if self.get(key).is_none() {
            self.wrong(key, format!("is missing: must be {rule}"));
        }
        self.take(key, rule, |value| of(value.as_str()?))
    }

    fn take<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        of: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let taken = of(value);
        if taken.is_none() {
            let got = shown(&value.to_string(), 80);
            self.wrong(key, format!("must be {rule}, got {got}"));
        }
        taken
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.take(key, "a string", |v| v.as_str().map(str::to_owned))
    }

    pub(super) fn parsed<T: FromStr>(&mut self, key: &'static str, rule: &str) -> Option<T> {
        self.take(key, rule, |v| v.as_str()?.parse().ok())
    }

    /// Where it is given, it replaces what holds.
    pub(super) fn duration(&mut self, key: &'static str, holds: &mut Duration) {
        if let Some(value) = self.take(key, DURATION_RULE, |v| duration(v.as_str()?)) {
            *holds = value;
        }
    }

    pub(super) fn size(&mut self, key: &'static str, holds: &mut u64) {
        if let Some(value) = self.take(key, SIZE_RULE, |v| size(v.as_str()?)) {
            *holds = value;
        }
    }

    pub(super) fn count<T>(&mut self, key: &'static str, least: T, most: T, holds: &mut T)
    where
        T: TryFrom<i64> + PartialOrd + Display + Copy,
    {
        let rule = format!("a whole number from {least} to {most}");
        let value = self.take(key, &rule, |v| {
            let number = T::try_from(v.as_integer()?).ok()?;
            (least <= number && number <= most).then_some(number)
        });
        if let Some(value) = value {
            *holds = value;
        }
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.take(key, "a list of strings", |v| {
            v.as_array()?
                .iter()
                .map(|entry| entry.as_str().map(str::to_owned))
                .collect()
        })
    }

    /// What was wrong, unknown keys included.
    pub(super) fn finish(mut self, into: &mut Vec<Mistake>) {
        let unknown: Vec<String> = self
            .table
            .into_iter()
            .flat_map(Table::keys)
            .filter(|key| !self.asked.contains(key.as_str()))
            .map(|key| shown(key, 60))
            .collect();
        for key in unknown {
            let known: Vec<_> = self.asked.iter().copied().collect();
            self.wrong(
                &key,
                format!("is not a key; known are {}", known.join(", ")),
            );
        }
        into.append(&mut self.mistakes);
    }
}
