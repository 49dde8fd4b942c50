//! A requirements file, read strictly: exact versions, a SHA-256 for each, nothing else.
//!
//! Everything that would let the outcome depend on more than this text is refused by line: ranges,
//! URLs, editable installs, other files, index options, and markers that pip would answer for the
//! Python it runs on instead of the image's.

use super::ImageError;
use std::collections::BTreeSet;
use std::path::Path;
use tribunal_core::id::Digest;

/// A file's requirements.
#[derive(Debug, Clone)]
pub(super) struct Requirements {
    /// In the file's order.
    pub(super) items: Vec<Requirement>,
    /// Over the requirements alone: comments and layout do not count.
    pub(super) digest: Digest,
}

/// One package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    /// Normalised as the index does it.
    pub(super) name: String,
    /// What pip reads: name, extras, version, marker.
    pub(super) text: String,
    /// `sha256:…`, any of which a wheel may have.
    pub(super) hashes: BTreeSet<Digest>,
    /// Whether pip may leave it out on this platform.
    pub(super) need: Need,
}

/// Whether a requirement always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// No marker.
    Always,
    /// A marker decides.
    Marked,
}

pub(super) fn parse(file: &Path, text: &str) -> Result<Requirements, ImageError> {
    let mut items: Vec<Requirement> = Vec::new();
    for (line, logical) in logical_lines(text) {
        let refuse = |why: String| ImageError::Requirement {
            file: file.to_owned(),
            line,
            why,
        };
        let item = requirement(&logical).map_err(refuse)?;
        if items
            .iter()
            .any(|other| other.name == item.name && other.need == Need::Always)
        {
            return Err(refuse(format!("{} is there twice", item.name)));
        }
        items.push(item);
    }
    let lines: Vec<String> = items
        .iter()
        .map(|item| {
            let hashes: Vec<&str> = item.hashes.iter().map(Digest::as_str).collect();
            format!("{} {}\n", item.text, hashes.join(" "))
        })
        .collect();
    Ok(Requirements {
        digest: Digest::of(lines.concat().as_bytes()),
        items,
    })
}

/// Lines joined at their backslashes, without comments, with the number of the first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = match line.find('#') {
            Some(0) => "",
            // pip: a comment begins at the start or after a blank.
            Some(_) => line.split(" #").next().unwrap_or_default(),
            None => line,
        };
        let (start, mut joined) = open.take().unwrap_or((number, String::new()));
        let (part, continues) = match line.trim_end().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        joined.push(' ');
        joined.push_str(part.trim());
        if continues {
            open = Some((start, joined));
        } else if !joined.trim().is_empty() {
            lines.push((start, joined.trim().to_owned()));
        }
    }
    lines.extend(open.filter(|(_, joined)| !joined.trim().is_empty()));
    lines
}

fn requirement(line: &str) -> Result<Requirement, String> {
    if line.starts_with('-') {
        return Err("options are refused: put indexes into pip's own configuration and all packages into this file".to_owned());
    }
    let (text, options) = match line.find(" --") {
        Some(at) => line.split_at(at),
        None => (line, ""),
    };
    let mut hashes = BTreeSet::new();
    for option in options.split_whitespace() {
        let digest = option
            .strip_prefix("--hash=")
            .and_then(|digest| digest.parse().ok())
            .ok_or_else(|| {
                format!(
                    "{option} is refused: only --hash=sha256:<64 hex digits> may follow a package"
                )
            })?;
        hashes.insert(digest);
    }
    let text = text.trim();
    let (package, marker) = match text.split_once(';') {
        Some((package, marker)) => (package.trim(), Some(marker.trim())),
        None => (text, None),
    };
    let (name, version) = package
        .split_once("==")
        .filter(|(_, version)| !version.is_empty() && !version.contains(['*', ',', ' ', '@', '=']))
        .ok_or_else(|| {
            format!("{package} has no exact version: write name==version --hash=sha256:…")
        })?;
    let name = name.trim();
    let (bare, extras) = name
        .split_once('[')
        .map_or((name, ""), |(bare, extras)| (bare, extras));
    let plain = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    if !plain(bare)
        || !extras
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "._-, ]".contains(letter))
    {
        return Err(format!("{name} is not the name of a package"));
    }
    if !version
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || ".+!_-".contains(letter))
    {
        return Err(format!("{version} is not a version"));
    }
    if hashes.is_empty() {
        return Err(format!(
            "{package} has no hash: `pip hash`, `pip-compile --generate-hashes` or `uv pip compile --generate-hashes` writes them"
        ));
    }
    if marker.is_some_and(|marker| {
        ["python_", "implementation_", "platform_python"]
            .iter()
            .any(|word| marker.contains(word))
    }) {
        return Err(format!(
            "the marker of {package} asks for a Python: compile the file for Python 3.13 and leave the marker out"
        ));
    }
    let need = if marker.is_some() {
        Need::Marked
    } else {
        Need::Always
    };
    Ok(Requirement {
        name: normalised(bare),
        text: text.to_owned(),
        hashes,
        need,
    })
}

/// The index's own way to compare names.
pub(super) fn normalised(name: &str) -> String {
    let parts: Vec<&str> = name
        .split(['-', '_', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{Need, parse};
    use crate::image::embedded;
    use std::path::Path;

    const HASH: &str =
        "--hash=sha256:163dcaede0f1c021485e957a39245190e74249897e2ae4b2aa38595db237ee01";

    fn read(text: &str) -> Result<super::Requirements, String> {
        parse(Path::new("r.txt"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_runners_own_file_is_read() {
        let runner = parse(Path::new("requirements.txt"), embedded::REQUIREMENTS).unwrap();
        let names: Vec<&str> = runner.items.iter().map(|item| item.name.as_str()).collect();
        assert!(
            names.contains(&"pytest") && names.contains(&"hypothesis"),
            "{names:?}"
        );
        assert!(runner.items.iter().all(|item| item.need == Need::Always));
    }

    #[test]
    fn layout_and_comments_do_not_change_the_digest() {
        let one = read(&format!("a==1 {HASH}\n")).unwrap();
        let two = read(&format!("# a\n\na==1 \\\n    {HASH}  # why\n")).unwrap();
        assert_eq!(one.digest, two.digest);
        assert_ne!(one.digest, read(&format!("a==2 {HASH}\n")).unwrap().digest);
    }

    #[test]
    fn what_is_not_exact_and_hashed_is_refused_by_line() {
        for (text, why) in [
            ("a==1", "has no hash"),
            ("\n\na==1\n", "r.txt:3: a==1 has no hash"),
            ("a>=1 HASH", "no exact version"),
            ("a==1.* HASH", "no exact version"),
            ("a===1 HASH", "no exact version"),
            ("a HASH", "no exact version"),
            ("a @ file:///a.whl HASH", "no exact version"),
            ("./a.whl HASH", "no exact version"),
            ("-r other.txt", "options are refused"),
            ("--index-url x", "options are refused"),
            ("-e .", "options are refused"),
            ("a==1 --hash=md5:00", "only --hash=sha256"),
            ("a==1 --config-settings x", "only --hash=sha256"),
            ("a==1 ; python_version < '3.12' HASH", "asks for a Python"),
            ("a==1 HASH\nA==2 HASH", "r.txt:2: a is there twice"),
            ("a b==1 HASH", "is not the name"),
            ("a==1;b HASH\n c==$(x) HASH", "is not a version"),
        ] {
            let error = read(&text.replace("HASH", HASH)).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn names_extras_and_platform_markers_are_understood() {
        let read = read(&format!(
            "My.Pack_age[fast,x]==1!2.0+local ; sys_platform == 'win32' {HASH}"
        ))
        .unwrap();
        assert_eq!(read.items.len(), 1);
        let item = read.items.first().unwrap();
        assert_eq!(
            (item.name.as_str(), item.need),
            ("my-pack-age", Need::Marked)
        );
    }
}
