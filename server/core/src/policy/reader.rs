//! Reading a table strictly: every key is taken once, what is left over is unknown, and no mistake hides the next one.

use super::{Mistake, units};
use crate::text::shown;
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// One table of the policy while it is being read. Mistakes go to the list that all tables share.
pub(super) struct Reader<'m> {
    name: String,
    table: Table,
    known: Vec<&'static str>,
    present: Vec<&'static str>,
    mistaken_before: usize,
    mistakes: &'m mut Vec<Mistake>,
}

impl<'m> Reader<'m> {
    /// The root table.
    pub(super) fn root(table: Table, mistakes: &'m mut Vec<Mistake>) -> Self {
        Self::over(String::new(), table, mistakes)
    }

    fn over(name: String, table: Table, mistakes: &'m mut Vec<Mistake>) -> Self {
        let mistaken_before = mistakes.len();
        Self {
            name,
            table,
            known: Vec::new(),
            present: Vec::new(),
            mistaken_before,
            mistakes,
        }
    }

    /// How many mistakes this table has so far.
    pub(super) fn mistaken(&self) -> usize {
        self.mistakes.len() - self.mistaken_before
    }

    /// A table inside this one; empty where it is left out.
    pub(super) fn table(&mut self, key: &'static str) -> Reader<'_> {
        let name = self.key(key);
        let table = match self.remove(key) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(other) => {
                self.mistake(key, "a table", &other);
                Table::new()
            }
        };
        Reader::over(name, table, self.mistakes)
    }

    /// Tables in a list, each with its place in the list.
    pub(super) fn tables(&mut self, key: &'static str, mut read: impl FnMut(Reader<'_>)) {
        let name = self.key(key);
        let list = match self.remove(key) {
            None => return,
            Some(Value::Array(list)) => list,
            Some(other) => return self.mistake(key, "a list of tables", &other),
        };
        for (n, item) in list.into_iter().enumerate() {
            let name = format!("{name}[{n}]");
            let wrong = Mistake::wrong(name.clone(), "a table", &item);
            match item.try_into() {
                Ok(table) => read(Reader::over(name, table, self.mistakes)),
                Err(_) => self.mistakes.push(wrong),
            }
        }
    }

    /// A value that `parse` accepts; `into` keeps what it holds where the key is left out or wrong.
    pub(super) fn value<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        into: &mut T,
        parse: impl FnOnce(&Value) -> Option<T>,
    ) {
        if let Some(value) = self.remove(key) {
            match parse(&value) {
                Some(parsed) => *into = parsed,
                None => self.mistake(key, rule, &value),
            }
        }
    }

    /// An integer in a range. Floats, booleans and texts are no integers, however they look.
    pub(super) fn integer<T>(&mut self, key: &'static str, range: RangeInclusive<i64>, into: &mut T)
    where
        T: TryFrom<i64>,
    {
        let rule = format!("an integer from {} to {}", range.start(), range.end());
        self.value(key, &rule, into, |value| {
            let number = value.as_integer().filter(|n| range.contains(n))?;
            T::try_from(number).ok()
        });
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str, into: &mut bool) {
        self.value(key, "true or false", into, Value::as_bool);
    }

    /// A text that `parse` accepts.
    pub(super) fn text<T>(
        &mut self,
        key: &'static str,
        rule: &str,
        into: &mut T,
        parse: impl FnOnce(&str) -> Option<T>,
    ) {
        self.value(key, rule, into, |value| parse(value.as_str()?));
    }

    /// A duration, in milliseconds.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        into: &mut u64,
    ) {
        let (least, most) = (
            units::render_duration(*range.start()),
            units::render_duration(*range.end()),
        );
        let rule = format!("a duration like \"500ms\", \"120s\" or \"2m\", from {least} to {most}");
        self.text(key, &rule, into, |text| {
            units::duration(text).filter(|ms| range.contains(ms))
        });
    }

    /// A size in bytes.
    pub(super) fn size(&mut self, key: &'static str, range: RangeInclusive<u64>, into: &mut u64) {
        let (least, most) = (
            units::render_size(*range.start()),
            units::render_size(*range.end()),
        );
        let rule = format!("a size like \"512KiB\", \"8MiB\" or \"1GiB\", from {least} to {most}");
        self.text(key, &rule, into, |text| {
            units::size(text).filter(|bytes| range.contains(bytes))
        });
    }

    /// A list of texts, each accepted by `parse` and none twice.
    pub(super) fn list<T: PartialEq>(
        &mut self,
        key: &'static str,
        rule: &str,
        into: &mut Vec<T>,
        parse: impl Fn(&str) -> Option<T>,
    ) {
        let name = self.key(key);
        let list = match self.remove(key) {
            None => return,
            Some(Value::Array(list)) => list,
            Some(other) => return self.mistake(key, &format!("a list, each item {rule}"), &other),
        };
        let (mut parsed, before) = (Vec::new(), self.mistakes.len());
        for (n, value) in list.iter().enumerate() {
            match value.as_str().and_then(&parse) {
                Some(item) if parsed.contains(&item) => {
                    self.told(
                        format!("{name}[{n}]"),
                        format!("stands there twice: {}", got(value)),
                    );
                }
                Some(item) => parsed.push(item),
                None => self
                    .mistakes
                    .push(Mistake::wrong(format!("{name}[{n}]"), rule, value)),
            }
        }
        if self.mistakes.len() == before {
            *into = parsed;
        }
    }

    /// A mistake unless the key, which was read already, was there.
    pub(super) fn required(&mut self, key: &'static str) {
        if !self.present.contains(&key) {
            let key = self.key(key);
            self.told(key, "is missing");
        }
    }

    /// Keys nobody asked for.
    pub(super) fn finish(self) {
        for key in self.table.keys() {
            let key = shown(key, 80);
            let full = join(&self.name, &key);
            let told = format!("is no key here; known are {}", self.known.join(", "));
            self.mistakes.push(Mistake { key: full, told });
        }
    }

    /// A mistake about a key of this table that no single value shows.
    pub(super) fn told(&mut self, key: impl Display, told: impl Into<String>) {
        self.mistakes.push(Mistake {
            key: key.to_string(),
            told: told.into(),
        });
    }

    /// The full name of a key of this table.
    pub(super) fn key(&self, key: &str) -> String {
        join(&self.name, key)
    }

    fn remove(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        let value = self.table.remove(key);
        if value.is_some() {
            self.present.push(key);
        }
        value
    }

    fn mistake(&mut self, key: &str, rule: &str, value: &Value) {
        let key = self.key(key);
        self.mistakes.push(Mistake::wrong(key, rule, value));
    }
}

impl Mistake {
    fn wrong(key: String, rule: &str, value: &Value) -> Self {
        Self {
            key,
            told: format!("must be {rule}, got {}", got(value)),
        }
    }
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() {
        key.to_owned()
    } else {
        format!("{table}.{key}")
    }
}

/// What stands there, with its type where that is easily mistaken.
fn got(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text \"{}\"", shown(text, 120)),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("the float {number:?}"),
        Value::Boolean(value) => format!("the boolean {value}"),
        Value::Datetime(time) => format!("the date or time {time}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
    }
}
