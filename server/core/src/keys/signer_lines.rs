//! Lines of an `allowed_signers` file, as `ssh-keygen -Y verify` reads them: principals, options, key.
//!
//! Says what a line says; whether it counts is for its readers. Local times are refused: they mean something else
//! elsewhere. Certificates are refused.

use crate::id::UnixTime;
use crate::text::shown;

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The list of principals' patterns.
    pub(crate) principals: String,
    /// The list of namespaces' patterns, where there is one.
    pub(crate) namespaces: Option<String>,
    /// Its word counts from here on.
    pub(crate) valid_after: Option<UnixTime>,
    /// And until here.
    pub(crate) valid_before: Option<UnixTime>,
    /// The key's type.
    pub(crate) kind: String,
    body: String,
}

impl Line {
    /// Its key.
    pub(crate) fn read_key(&self) -> Result<ssh_key::PublicKey, String> {
        ssh_key::PublicKey::from_openssh(&format!("{} {}", self.kind, self.body))
            .map_err(|e| e.to_string())
    }

    /// Its key, where it can be read.
    pub(crate) fn key(&self) -> Option<ssh_key::PublicKey> {
        self.read_key().ok()
    }
}

/// Every line that is not empty and no comment, with its number.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, Result<Line, String>)> + '_ {
    let numbered = (1..).zip(text.lines().map(str::trim));
    numbered
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, text)| (number, line(text)))
}

fn line(text: &str) -> Result<Line, String> {
    let mut fields = words(text)?.into_iter();
    let principals = fields.next().ok_or("no principal")?;
    let principals = principals.trim_matches('"').to_owned();
    let mut kind = fields.next().ok_or("no key")?;
    let mut options = Options::default();
    if !is_key_type(&kind) {
        options = Options::parse(&kind)?;
        kind = fields.next().ok_or("no key")?;
    }
    Ok(Line {
        principals,
        namespaces: options.namespaces,
        valid_after: options.valid_after,
        valid_before: options.valid_before,
        kind,
        body: fields.next().ok_or("no key")?,
    })
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|prefix| word.starts_with(prefix))
        && !word.contains('=')
}

#[derive(Default)]
struct Options {
    namespaces: Option<String>,
    valid_after: Option<UnixTime>,
    valid_before: Option<UnixTime>,
}

impl Options {
    fn parse(text: &str) -> Result<Self, String> {
        let mut options = Self::default();
        for option in split_outside_quotes(text, ',') {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            let value = value.trim_matches('"');
            match name.to_ascii_lowercase().as_str() {
                "namespaces" => options.namespaces = Some(value.to_owned()),
                "valid-after" => options.valid_after = Some(time(value)?),
                "valid-before" => options.valid_before = Some(time(value)?),
                "cert-authority" => return Err("certificates are not supported".to_owned()),
                other => return Err(format!("unknown option `{}`", shown(other, 40))),
            }
        }
        Ok(options)
    }
}

/// OpenSSH's pattern list, as far as `*` and `?` and `!` go.
pub(crate) fn admits(patterns: &str, name: &str) -> bool {
    let (mut admitted, mut denied) = (false, false);
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) => denied |= matches(pattern.as_bytes(), name.as_bytes()),
            None => admitted |= matches(pattern.as_bytes(), name.as_bytes()),
        }
    }
    admitted && !denied
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            matches(rest, name)
                || name
                    .split_first()
                    .is_some_and(|(_, tail)| matches(pattern, tail))
        }
        (Some((p, rest)), Some((n, tail))) => (*p == b'?' || p == n) && matches(rest, tail),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Words of a line; quotes keep spaces together.
fn words(line: &str) -> Result<Vec<String>, String> {
    if !line.matches('"').count().is_multiple_of(2) {
        return Err("an unclosed quote".to_owned());
    }
    Ok(split_outside_quotes(line, ' ')
        .into_iter()
        .flat_map(|word| {
            if word.contains('"') {
                vec![word]
            } else {
                word.split_whitespace().map(str::to_owned).collect()
            }
        })
        .filter(|word| !word.is_empty())
        .collect())
}

fn split_outside_quotes(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        if c == at && !quoted {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// `YYYYMMDDZ`, `YYYYMMDDHHMMZ` or `YYYYMMDDHHMMSSZ`.
fn time(text: &str) -> Result<UnixTime, String> {
    let digits = text.strip_suffix(['Z', 'z']).ok_or_else(|| {
        format!(
            "`{}` has no Z: a local time means something else elsewhere",
            shown(text, 30)
        )
    })?;
    let bad = || format!("`{}` is no time", shown(text, 30));
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let padded = format!("{digits:0<14}");
    let civil = jiff::civil::DateTime::strptime("%Y%m%d%H%M%S", &padded).map_err(|_| bad())?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| bad())?;
    Ok(UnixTime(zoned.timestamp().as_second()))
}
