//! A lease file and one more lease become the file's new text; what is there keeps its place and its spelling.
//!
//! Never reformats an entry that it does not write. The result is parsed as a gate would parse it before it is handed
//! on, so a file that comes out of here holds.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tribunal_core::lease::{LeaseFile, LeaseFileError};

/// What is to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which case.
    pub qualname: String,
    /// The digest that the server takes of it.
    pub bytecode_hash: String,
    /// The failure that is covered; may be empty, and then covers none.
    pub failure_signature: String,
    /// When it ends, as it is to be spelled: seconds or RFC 3339.
    pub expires_at: Value,
    /// Who answers for it.
    pub owner: String,
    /// Why.
    pub reason: String,
}

/// Why there is no new text.
#[derive(Debug, thiserror::Error)]
pub enum LeaseTextError {
    /// The file as it is does not parse.
    #[error("the lease file does not parse: {0}")]
    Before(LeaseFileError),
    /// With the new lease it would not.
    #[error("the new lease would not hold: {0}")]
    After(LeaseFileError),
    /// It parses, but its array is not to be found.
    #[error("the lease file has no list of leases: {0}")]
    Shape(#[from] serde_json::Error),
}

/// Whether the lease took the place of an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// At the end.
    Added,
    /// Where the older one for the same case was.
    Replaced,
}

#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow)]
    leases: &'a RawValue,
}

#[derive(Deserialize)]
struct Named {
    qualname: String,
}

/// The file's text with this lease; `None` is a repository without the file.
///
/// # Errors
/// The file or the lease does not hold.
pub fn with_lease(text: Option<&str>, entry: &Entry) -> Result<(String, Placed), LeaseTextError> {
    LeaseFile::parse(text.map(str::as_bytes)).map_err(LeaseTextError::Before)?;
    let text = text.unwrap_or("{\n  \"leases\": []\n}\n");
    let (new, placed) = place(text, entry)?;
    LeaseFile::parse(Some(new.as_bytes())).map_err(LeaseTextError::After)?;
    Ok((new, placed))
}

fn place(text: &str, entry: &Entry) -> Result<(String, Placed), LeaseTextError> {
    let shape: Shape<'_> = serde_json::from_str(text)?;
    let list = shape.leases.get();
    let entries: Vec<&RawValue> = serde_json::from_str(list)?;
    let older = entries.iter().find(|raw| {
        serde_json::from_str::<Named>(raw.get()).is_ok_and(|named| named.qualname == entry.qualname)
    });
    let last = entries.last();
    let indent = last.map_or_else(
        || "    ".to_owned(),
        |raw| indent_at(text, start(text, raw.get())),
    );
    let written = render(entry, &indent);
    Ok(match (older, last) {
        (Some(older), _) => (replaced(text, older.get(), &written), Placed::Replaced),
        (None, Some(last)) => (
            replaced(
                text,
                last.get(),
                &format!("{},\n{indent}{written}", last.get()),
            ),
            Placed::Added,
        ),
        (None, None) => {
            let outer = indent_at(text, start(text, list));
            let list_text = format!("[\n{indent}{written}\n{outer}]");
            (replaced(text, list, &list_text), Placed::Added)
        }
    })
}

/// Where a slice of a text begins in it.
fn start(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn replaced(text: &str, part: &str, by: &str) -> String {
    let start = start(text, part);
    let (before, rest) = text.split_at(start);
    format!("{before}{by}{}", &rest[part.len()..])
}

/// The white space that the line of this place begins with.
fn indent_at(text: &str, place: usize) -> String {
    let line = text[..place].rfind('\n').map_or(0, |newline| newline + 1);
    text[line..]
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// In the order of the documentation, one key a line.
fn render(entry: &Entry, indent: &str) -> String {
    let keys = [
        ("qualname", json!(entry.qualname)),
        ("bytecode_hash", json!(entry.bytecode_hash)),
        ("failure_signature", json!(entry.failure_signature)),
        ("expires_at", entry.expires_at.clone()),
        ("owner", json!(entry.owner)),
        ("reason", json!(entry.reason)),
    ];
    let lines: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("{indent}  \"{key}\": {value}"))
        .collect();
    format!("{{\n{}\n{indent}}}", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn entry(qualname: &str) -> Entry {
        Entry {
            qualname: qualname.to_owned(),
            bytecode_hash: format!("v2:cp313:{}", "a".repeat(64)),
            failure_signature: "AssertionError: \"x\"".to_owned(),
            expires_at: json!(1_790_000_000),
            owner: "o@example.org".to_owned(),
            reason: "why".to_owned(),
        }
    }

    #[test]
    fn a_repository_without_the_file_gets_one() {
        let (text, placed) = with_lease(None, &entry("test_a.test_b")).unwrap();
        assert_eq!(placed, Placed::Added);
        let hash = "a".repeat(64);
        assert_eq!(
            text,
            format!(
                "{{\n  \"leases\": [\n    {{\n      \"qualname\": \"test_a.test_b\",\n      \"bytecode_hash\": \"v2:cp313:{hash}\",\n      \"failure_signature\": \"AssertionError: \\\"x\\\"\",\n      \"expires_at\": 1790000000,\n      \"owner\": \"o@example.org\",\n      \"reason\": \"why\"\n    }}\n  ]\n}}\n"
            )
        );
    }

    #[test]
    fn what_is_there_keeps_its_spelling() {
        let odd = format!(
            "{{ \"leases\" : [\n\t{{\"reason\":\"r\", \"owner\":\"o\",\"expires_at\": \"2027-01-01T00:00:00Z\",\"failure_signature\":\"E: [x]\",\"bytecode_hash\":\"{}\",\"qualname\":\"test_a.test_old\"}}\n]}}",
            "0".repeat(16)
        );
        let (text, placed) = with_lease(Some(&odd), &entry("test_a.test_new")).unwrap();
        assert_eq!(placed, Placed::Added);
        let (kept, tail) = odd.split_at(odd.rfind("\n]").unwrap());
        assert!(text.starts_with(kept), "{text}");
        assert!(text.ends_with(tail), "{text}");
        assert!(
            text.contains(",\n\t{\n\t  \"qualname\": \"test_a.test_new\""),
            "{text}"
        );
    }

    #[test]
    fn a_renewal_takes_the_older_ones_place() {
        let (one, _) = with_lease(None, &entry("test_a.first")).unwrap();
        let (two, _) = with_lease(Some(&one), &entry("test_a.second")).unwrap();
        let renewed = Entry {
            reason: "still".to_owned(),
            ..entry("test_a.first")
        };
        let (three, placed) = with_lease(Some(&two), &renewed).unwrap();
        assert_eq!(placed, Placed::Replaced);
        let names: Vec<String> = LeaseFile::parse(Some(three.as_bytes()))
            .unwrap()
            .leases()
            .iter()
            .map(|lease| format!("{} {}", lease.qualname, lease.reason))
            .collect();
        assert_eq!(names, ["test_a.first still", "test_a.second why"]);
    }

    #[test]
    fn what_does_not_hold_is_not_written() {
        assert!(matches!(
            with_lease(Some("{\"leases\": [}"), &entry("a.b")),
            Err(LeaseTextError::Before(_))
        ));
        let dateless = Entry {
            expires_at: json!("2027-01-01"),
            ..entry("a.b")
        };
        assert!(matches!(
            with_lease(None, &dateless),
            Err(LeaseTextError::After(_))
        ));
    }
}
