//! A policy file and the list of sealed files that run shared become the file's new text; everything else stays as it is
//! spelled, comments too.
//!
//! Edits text, because the file is a person's: the list's own place is found by parsing, and the result is parsed again.
//! A file that does not come out as meant is not written; then the line to put there is told.

use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;
use tribunal_core::id::RepoPath;
use tribunal_core::policy::{Policy, PolicyError};

/// Why there is no new text.
#[derive(Debug, thiserror::Error)]
pub enum PolicyTextError {
    /// The file as it is does not hold.
    #[error("the policy does not hold: {0}")]
    Before(PolicyError),
    /// Its shape is one that is not edited here.
    #[error("its shape is not one that can be edited; put this under [runner] by hand: {0}")]
    Shape(String),
}

/// As far as this room looks.
#[derive(Deserialize)]
struct File {
    runner: Option<Runner>,
}

#[derive(Deserialize)]
struct Runner {
    shared: Option<Spanned<Vec<String>>>,
}

/// The policy's text with this list; `None` where there is no file yet.
///
/// # Errors
/// A policy that does not hold, or one that has to be edited by hand.
pub fn with_shared(there: Option<&str>, shared: &[RepoPath]) -> Result<String, PolicyTextError> {
    let text = there.unwrap_or("version = 1\n");
    let before = Policy::parse(text.as_bytes()).map_err(PolicyTextError::Before)?;
    if before.runner.shared == shared {
        return Ok(text.to_owned());
    }
    let mut wanted = before;
    wanted.runner.shared = shared.to_vec();
    let line = format!("shared = {}", one_line(shared));
    let candidates = match place(text) {
        Some(span) => vec![
            entry_by_entry(text, span.clone(), shared),
            Some(replaced(text, span, &one_line(shared))),
        ],
        None => vec![below_header(text, &line), Some(appended(text, &line))],
    };
    candidates
        .into_iter()
        .flatten()
        .find(|text| Policy::parse(text.as_bytes()).is_ok_and(|policy| policy == wanted))
        .ok_or(PolicyTextError::Shape(line))
}

/// Where the list's value stands.
fn place(text: &str) -> Option<Range<usize>> {
    let file: File = toml::from_str(text).ok()?;
    Some(file.runner?.shared?.span())
}

fn one_line(shared: &[RepoPath]) -> String {
    let paths: Vec<String> = shared.iter().map(quoted).collect();
    format!("[{}]", paths.join(", "))
}

fn quoted(path: &RepoPath) -> String {
    toml::Value::from(path.as_str()).to_string()
}

fn replaced(text: &str, span: Range<usize>, value: &str) -> String {
    let mut new = text.to_owned();
    new.replace_range(span, value);
    new
}

/// A list with one entry a line: lines of entries that stay are kept with their comments, others go, new ones follow.
fn entry_by_entry(text: &str, span: Range<usize>, shared: &[RepoPath]) -> Option<String> {
    let list = text.get(span.clone())?;
    let (body, last) = list.rsplit_once('\n')?;
    if last.trim() != "]" {
        return None;
    }
    let mut lines: Vec<String> = Vec::new();
    let mut kept: Vec<&RepoPath> = Vec::new();
    let mut indent = "  ".to_owned();
    for line in body.split('\n') {
        let Some((found, rest)) = entry(line) else {
            lines.push(line.to_owned());
            continue;
        };
        indent = line.chars().take_while(|c| c.is_whitespace()).collect();
        if let Some(path) = shared.iter().find(|path| path.as_str() == found) {
            kept.push(path);
            let comma = if rest.trim_start().starts_with(',') {
                ""
            } else {
                ","
            };
            lines.push(format!("{indent}{}{comma}{rest}", quoted(path)));
        }
    }
    let new = shared.iter().filter(|path| !kept.contains(path));
    lines.extend(new.map(|path| format!("{indent}{},", quoted(path))));
    Some(replaced(
        text,
        span,
        &format!("{}\n{last}", lines.join("\n")),
    ))
}

/// The path on a line that holds one entry, and what follows it.
fn entry(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let quote = line.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    line.get(1..)?.split_once(quote)
}

/// Below the first `[runner]`.
fn below_header(text: &str, line: &str) -> Option<String> {
    let mut end = 0;
    for each in text.split_inclusive('\n') {
        end += each.len();
        let header = each.trim_start().strip_prefix("[runner]");
        if header.is_some_and(|rest| matches!(rest.trim_start().chars().next(), None | Some('#'))) {
            let gap = if each.ends_with('\n') { "" } else { "\n" };
            return Some(replaced(text, end..end, &format!("{gap}{line}\n")));
        }
    }
    None
}

fn appended(text: &str, line: &str) -> String {
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{gap}\n[runner]\n{line}\n")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        let path = |name: &&str| format!("tests/sealed/test_{name}.py").parse().unwrap();
        names.iter().map(path).collect()
    }

    #[test]
    fn the_list_is_put_where_it_belongs_and_all_else_stays() {
        let a = "tests/sealed/test_a.py";
        for (before, after) in [
            (
                "version = 1\n[runner]\nshared     = []               # may run in one process\nimage = 'x:1'\n",
                format!(
                    "version = 1\n[runner]\nshared     = [\"{a}\"]               # may run in one process\nimage = 'x:1'\n"
                ),
            ),
            (
                "version = 1 # first\n\n[runner] # how\nimage = 'x:1'\n",
                format!(
                    "version = 1 # first\n\n[runner] # how\nshared = [\"{a}\"]\nimage = 'x:1'\n"
                ),
            ),
            (
                "version = 1\n[runner]",
                format!("version = 1\n[runner]\nshared = [\"{a}\"]\n"),
            ),
            (
                "version = 1\n[limits]\npids = 99",
                format!("version = 1\n[limits]\npids = 99\n\n[runner]\nshared = [\"{a}\"]\n"),
            ),
            (
                "version = 1\nrunner = { shared = [] }\n",
                format!("version = 1\nrunner = {{ shared = [\"{a}\"] }}\n"),
            ),
        ] {
            assert_eq!(with_shared(Some(before), &paths(&["a"])).unwrap(), after);
        }
        let made = with_shared(None, &paths(&["a"])).unwrap();
        assert_eq!(
            made,
            format!("version = 1\n\n[runner]\nshared = [\"{a}\"]\n")
        );
    }

    #[test]
    fn a_list_of_lines_keeps_its_comments() {
        let before = "version = 1\n[runner]\nshared = [\n    # needs ctypes\n    \"tests/sealed/test_b.py\", # ticket 7\n    'tests/sealed/test_c.py'  # ticket 8\n]\n";
        let after = "version = 1\n[runner]\nshared = [\n    # needs ctypes\n    \"tests/sealed/test_b.py\", # ticket 7\n    \"tests/sealed/test_d.py\",\n]\n";
        assert_eq!(
            with_shared(Some(before), &paths(&["b", "d"])).unwrap(),
            after
        );
    }

    #[test]
    fn what_is_right_already_is_not_touched() {
        let text = "version = 1\nrunner.shared = [ 'tests/sealed/test_a.py' ]";
        assert_eq!(with_shared(Some(text), &paths(&["a"])).unwrap(), text);
    }

    #[test]
    fn what_cannot_be_edited_is_said() {
        for text in ["version = 1\nrunner = { image = 'x:1' }\n", "version = 2\n"] {
            assert!(with_shared(Some(text), &paths(&["a"])).is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_inside_a_text_is_no_header() {
        let text = "version = 1\n[runner]\nimage = 'x:1'\n";
        let odd = format!("{text}preload = '''\n[runner]\n'''\n");
        if Policy::parse(odd.as_bytes()).is_ok() {
            let new = with_shared(Some(&odd), &paths(&["a"])).unwrap();
            assert_eq!(
                Policy::parse(new.as_bytes()).unwrap().runner.shared,
                paths(&["a"])
            );
        }
    }
}
