//! What a command has to say, for a person and for a program.

use serde_json::{Value, json};
use tribunal_core::text::shown;

/// One answer in both forms.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// For a person: whole lines.
    pub text: Text,
    /// For a program: one document.
    pub json: Value,
}

/// What a person reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// As it stands.
    Lines(String),
    /// Rows, aligned on a terminal and tab-separated elsewhere.
    Rows(Table),
}

/// Rows under a heading.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Answer {
    pub(super) fn lines(text: impl Into<String>, json: Value) -> Self {
        Self {
            text: Text::Lines(text.into()),
            json,
        }
    }

    /// A list under one key of the document.
    pub(super) fn table(key: &str, heading: &[&'static str], rows: Vec<Vec<String>>) -> Self {
        let entries: Vec<Value> = rows
            .iter()
            .map(|row| {
                let fields = heading.iter().zip(row).map(|(name, value)| {
                    let name = name.replace(' ', "_");
                    let value = match value.as_str() {
                        "" | "-" => Value::Null,
                        text => Value::from(text),
                    };
                    (name, value)
                });
                Value::Object(fields.collect())
            })
            .collect();
        Self {
            text: Text::Rows(Table {
                heading: heading.to_vec(),
                rows,
            }),
            json: json!({ key: entries }),
        }
    }
}

impl Table {
    pub(super) const fn new(heading: Vec<&'static str>, rows: Vec<Vec<String>>) -> Self {
        Self { heading, rows }
    }

    /// Columns under their heading, for a terminal.
    #[must_use]
    pub fn aligned(&self) -> String {
        let heading: Vec<String> = self.heading.iter().map(|h| h.to_uppercase()).collect();
        let all: Vec<Vec<String>> = std::iter::once(&heading)
            .chain(&self.rows)
            .map(|row| row.iter().map(|cell| shown(cell, 120)).collect())
            .collect();
        let width = |column: usize| {
            let cells = all.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..heading.len()).map(width).collect();
        let mut text = String::new();
        for row in &all {
            let cells = row.iter().zip(&widths);
            let line: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// One line a row, for a program that reads lines.
    #[must_use]
    pub fn plain(&self) -> String {
        let lines = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| shown(cell, usize::MAX)).collect();
            cells.join("\t") + "\n"
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_in_three_forms() {
        let rows = vec![
            vec!["a".to_owned(), "long name".to_owned()],
            vec!["bbb".to_owned(), "-".to_owned()],
        ];
        let answer = Answer::table("things", &["id", "its name"], rows);
        let Text::Rows(table) = &answer.text else {
            unreachable!("a table")
        };
        assert_eq!(table.aligned(), "ID   ITS NAME\na    long name\nbbb  -\n");
        assert_eq!(table.plain(), "a\tlong name\nbbb\t-\n");
        assert_eq!(
            answer.json,
            json!({ "things": [
                { "id": "a", "its_name": "long name" },
                { "id": "bbb", "its_name": null },
            ]})
        );
    }
}
