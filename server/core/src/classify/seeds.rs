//! Seeds in runner options: there is one seed, in one file. What a patch brings beside it is named.

use crate::git::{Change, GitPath};
use crate::id::Seed;
use crate::plan::Finding;
use crate::reason::Reason;
use crate::text::shown;

/// Files that hold options of the runner.
const OPTION_NAMES: [&[u8]; 7] = [
    b"pytest.ini",
    b".pytest.ini",
    b"pytest.toml",
    b".pytest.toml",
    b"pyproject.toml",
    b"setup.cfg",
    b"tox.ini",
];

/// Whether a file may hold options of the runner.
pub(super) fn may_hold(path: &GitPath) -> bool {
    let name = path.as_bytes().rsplit(|b| *b == b'/').next();
    name.is_some_and(|name| OPTION_NAMES.contains(&name))
}

/// Every seed that the change brings in an option and that is not the policy's.
pub(super) fn drift(seed: Seed, change: &Change) -> Vec<Finding> {
    let Some(contents) = change.contents.as_ref().filter(|_| may_hold(&change.path)) else {
        return Vec::new();
    };
    let before = options(&contents.base);
    let brought = options(&contents.head)
        .into_iter()
        .filter(|option| !before.contains(option));
    brought
        .filter(|(_, value)| *value != seed.to_string())
        .map(|(option, value)| {
            let (option, value) = (shown(&option, 60), shown(&value, 60));
            let told = format!("`{option}` is `{value}`, the policy's seed is {seed}");
            Finding::at(Reason::SeedDrift, &change.path, told)
        })
        .collect()
}

/// `--…seed` with what follows it, behind `=`, a space or the next quotes.
fn options(bytes: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = Vec::new();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with(['#', ';']));
    for line in lines {
        for (at, _) in line.match_indices("--") {
            let rest = line.get(at..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            let (option, rest) = rest.split_at(end.unwrap_or(rest.len()));
            if !option.ends_with("seed") {
                continue;
            }
            let between = |c: char| c.is_whitespace() || matches!(c, '=' | '"' | '\'' | ',');
            let value = rest.trim_start_matches(between);
            let value = value
                .split(|c: char| between(c) || c == ']')
                .next()
                .unwrap_or_default();
            found.push((option.to_owned(), value.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::sample;

    #[test]
    fn only_seeds_that_the_patch_brings_and_that_differ() {
        for (base, head, told) in [
            ("", "addopts = --randomly-seed=7", 1),
            ("", "addopts = -q --hypothesis-seed 7", 1),
            ("", "addopts = [\"--randomly-seed\", \"7\"]", 1),
            ("", "addopts = [\"--randomly-seed=7\"]", 1),
            (
                "",
                "addopts = --randomly-seed=last --hypothesis-seed=random",
                2,
            ),
            ("", "addopts = --randomly-seed", 1),
            ("", "addopts = --randomly-seed=20260912", 0),
            (
                "addopts = --randomly-seed=7",
                "addopts = --randomly-seed=7 -q",
                0,
            ),
            (
                "addopts = --randomly-seed=7",
                "addopts = --randomly-seed=8",
                1,
            ),
            ("", "# addopts = --randomly-seed=7", 0),
            ("", "addopts = -p no:randomly --seedling=3", 0),
        ] {
            let (base, head) = (format!("tox.ini={base}"), format!("tox.ini={head}"));
            let change = sample::changes(&[&base], &[&head]).pop();
            let found = change.map_or_else(Vec::new, |change| drift(Seed(20_260_912), &change));
            assert_eq!(found.len(), told, "{head}");
        }
        let change = sample::changes(&[], &["docs/notes.ini=--randomly-seed=7"])
            .pop()
            .unwrap();
        assert!(drift(Seed(0), &change).is_empty());
    }
}
