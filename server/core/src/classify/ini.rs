//! INI files as the runner reads them (pytest's `iniconfig`, not `configparser`: the two part on indented headers, on
//! comments behind a header and on what ends a line, and only the reading that steers the run counts).

use std::collections::BTreeMap;

/// Keys and values of one section; a value's continuation lines are joined with newlines.
pub(super) type Section = BTreeMap<String, String>;

/// Why a file is not such an INI file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum IniError {
    /// A value before any header.
    #[error("a value stands before the first section")]
    NoSection,
    /// `[]`.
    #[error("a section has no name")]
    EmptySectionName,
    /// A header seen before.
    #[error("a section stands there twice")]
    DuplicateSection,
    /// A key seen before in this section.
    #[error("a key stands there twice")]
    DuplicateKey,
    /// Neither `=` nor `:`.
    #[error("a line is neither header, value nor continuation")]
    NotAValue,
    /// An indented line with nothing to continue.
    #[error("a continuation line has nothing to continue")]
    NothingToContinue,
}

enum Line {
    Blank,
    Header(String),
    Value(String, String),
    Continuation(String),
}

/// Every section by name.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Section>, IniError> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut here: Option<String> = None;
    let mut key: Option<String> = None;
    // A carriage return ends a line as well; form feeds and the Unicode separators do too.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.split(ends_line) {
        match read(line)? {
            Line::Blank => {}
            Line::Header(name) if name.is_empty() => return Err(IniError::EmptySectionName),
            Line::Header(name) => {
                if sections.insert(name.clone(), Section::new()).is_some() {
                    return Err(IniError::DuplicateSection);
                }
                (here, key) = (Some(name), None);
            }
            Line::Value(name, value) => {
                let section = here
                    .as_ref()
                    .and_then(|name| sections.get_mut(name))
                    .ok_or(IniError::NoSection)?;
                if section.insert(name.clone(), value).is_some() {
                    return Err(IniError::DuplicateKey);
                }
                key = Some(name);
            }
            Line::Continuation(more) => {
                let value = here
                    .as_ref()
                    .zip(key.as_ref())
                    .and_then(|(section, key)| sections.get_mut(section)?.get_mut(key))
                    .ok_or(IniError::NothingToContinue)?;
                if !value.is_empty() {
                    value.push('\n');
                }
                value.push_str(&more);
            }
        }
    }
    Ok(sections)
}

fn read(line: &str) -> Result<Line, IniError> {
    let stripped = line.trim_matches(is_space);
    if stripped.is_empty() || stripped.starts_with(['#', ';']) {
        return Ok(Line::Blank);
    }
    if line.starts_with('[') {
        let before_comment = line.split(['#', ';']).next().unwrap_or(line);
        let header = before_comment.trim_end_matches(is_space);
        return Ok(
            match header.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
                Some(name) => Line::Header(name.to_owned()),
                None => Line::Continuation(stripped.to_owned()),
            },
        );
    }
    if line.starts_with(is_space) {
        return Ok(Line::Continuation(stripped.to_owned()));
    }
    let (name, value) = stripped
        .split_once('=')
        .filter(|(name, _)| !name.contains(':'))
        .or_else(|| stripped.split_once(':'))
        .ok_or(IniError::NotAValue)?;
    Ok(Line::Value(
        name.trim_matches(is_space).to_owned(),
        value.trim_matches(is_space).to_owned(),
    ))
}

/// What Python's `str.splitlines` splits at.
fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// What Python's `str.isspace` calls space.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
