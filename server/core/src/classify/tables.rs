//! The pytest tables of files that hold other things too: were they changed? Compared as parsed data, so that a new
//! dependency or a comment is no oracle edit, and a table hidden by odd spelling is one. What does not parse is an edit.

use super::ini;
use crate::git::{Change, Entry, Mode};

/// Whether this change of `pyproject.toml`, `setup.cfg` or `tox.ini` touches what steers pytest.
pub(super) fn edited(change: &Change) -> bool {
    let Some(contents) = &change.contents else {
        return true;
    };
    if !(plain(change.base.as_ref()) && plain(change.head.as_ref())) {
        return true;
    }
    let read = if change.path.as_bytes().ends_with(b".toml") {
        pytest_of_toml
    } else {
        pytest_of_ini
    };
    match (read(&contents.base), read(&contents.head)) {
        (Some(base), Some(head)) => base != head,
        (None, _) | (_, None) => true,
    }
}

/// A symlink in such a place is read through by the runner, so its own text says nothing.
fn plain(entry: Option<&Entry>) -> bool {
    entry.is_none_or(|entry| match entry.mode {
        Mode::File | Mode::Executable => true,
        Mode::Symlink | Mode::Gitlink | Mode::Tree => false,
    })
}

#[derive(PartialEq)]
enum Tables {
    Toml(Option<toml::Value>),
    Ini(Vec<Option<ini::Section>>),
}

fn pytest_of_toml(bytes: &[u8]) -> Option<Tables> {
    let document: toml::Table = toml::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    let pytest = document
        .get("tool")
        .and_then(|tool| tool.get("pytest"))
        .cloned();
    Some(Tables::Toml(pytest))
}

fn pytest_of_ini(bytes: &[u8]) -> Option<Tables> {
    let mut sections = ini::parse(std::str::from_utf8(bytes).ok()?).ok()?;
    let steering = ["pytest", "tool:pytest"];
    Some(Tables::Ini(
        steering
            .into_iter()
            .map(|name| sections.remove(name))
            .collect(),
    ))
}
