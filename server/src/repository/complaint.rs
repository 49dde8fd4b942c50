//! What git said about an upload becomes whose fault it is.
//!
//! Git's texts are matched, not shown, but for message ids of fsck and object ids; whatever is quoted is escaped. A text
//! nobody knows is the upload's fault: it made git stop.

use super::command::{Ending, Finished};
use super::{RepositoryError, disk, internal, refused};
use tribunal_core::reason::RefusedCode::{
    BadObject, MissingPrerequisite, TooLarge, UploadIncomplete,
};
use tribunal_core::text::shown;

/// Why `index-pack` did not take a pack.
pub(super) fn of_index_pack(finished: &Finished) -> RepositoryError {
    if finished.disk_was_full() {
        return disk("unpack an upload", &std::io::ErrorKind::StorageFull.into());
    }
    let text = String::from_utf8_lossy(&finished.stderr);
    if let Some(message) = fsck(&text) {
        return refused(BadObject, message);
    }
    if let Some(error) = known(&text) {
        return error;
    }
    match finished.ending {
        Ending::Expired | Ending::Killed(_) => refused(
            TooLarge,
            "unpacking the bundle takes more time, memory or space than it may",
        ),
        Ending::Exited(_) => refused(
            BadObject,
            format!("git does not take the pack: {}", finished.complaint()),
        ),
    }
}

/// Why what the named commits reach is not all here.
pub(super) fn of_rev_list(finished: &Finished) -> RepositoryError {
    match finished.ending {
        Ending::Expired | Ending::Killed(_) => refused(
            TooLarge,
            "following the bundle's history takes more time or memory than it may",
        ),
        Ending::Exited(_) if says(finished, &["maximum allowed tree depth"]) => {
            refused(TooLarge, "a tree is nested deeper than git goes")
        }
        Ending::Exited(_) if says(finished, &MISSING) => refused(
            MissingPrerequisite,
            format!(
                "the bundle's history is not whole: {}",
                finished.complaint()
            ),
        ),
        Ending::Exited(_) => internal(format!(
            "failed to follow a history: {}",
            finished.complaint()
        )),
    }
}

/// How git says that an object is not there.
const MISSING: [&str; 7] = [
    "missing ",
    "ould not read",
    "nable to read",
    "bad object",
    "bad tree object",
    "bad revision",
    "ailed to traverse",
];

fn says(finished: &Finished, parts: &[&str]) -> bool {
    let text = String::from_utf8_lossy(&finished.stderr);
    parts.iter().any(|part| text.contains(part))
}

/// `error: object ID: messageId: text`, and the older form that says what kind of object it is.
fn fsck(text: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.strip_prefix("error: ")?;
        let line = line.strip_prefix("object ").unwrap_or(line);
        let mut fields = line.splitn(3, ": ");
        let (object, id, what) = (fields.next()?, fields.next()?, fields.next()?);
        let object = object.split(' ').next_back()?;
        let hex = matches!(object.len(), 40 | 64) && object.bytes().all(|b| b.is_ascii_hexdigit());
        let camel = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric());
        (hex && camel).then(|| format!("object {object}: {id}: {}", shown(what, 200)))
    })
}

fn known(text: &str) -> Option<RepositoryError> {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&[
        "exceeds maximum allowed size",
        "Out of memory",
        "out of memory",
        "mmap failed",
    ]) {
        Some(refused(
            TooLarge,
            "unpacking the bundle takes more memory or space than it may",
        ))
    } else if has(&["early EOF", "premature end of"]) {
        Some(refused(UploadIncomplete, "the pack ended early"))
    } else if has(&["unresolved delta", "did not receive expected object"]) {
        let line = text
            .lines()
            .find(|line| line.starts_with("fatal:"))
            .unwrap_or_default();
        Some(refused(
            MissingPrerequisite,
            format!(
                "the bundle builds on objects that are not here: {}",
                shown(line, 200)
            ),
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(ending: Ending, stderr: &str) -> String {
        let finished = Finished {
            ending,
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
        };
        match of_index_pack(&finished) {
            RepositoryError::Refused(refused) => refused.to_string(),
            RepositoryError::Aborted(aborted) => aborted.to_string(),
        }
    }

    #[test]
    fn each_complaint_has_its_column_and_code() {
        let id = "c95e3d7d8ed5a67a0bcfb2ac4cb4e57d8b3b5a1f";
        let died = Ending::Exited(128);
        for (ending, stderr, begins) in [
            (
                died,
                format!("error: object {id}: duplicateEntries: contains duplicate\nfatal: fsck"),
                format!("bad-object: object {id}: duplicateEntries: contains duplicate"),
            ),
            (died, "fatal: early EOF".into(), "upload-incomplete".into()),
            (
                died,
                "fatal: pack exceeds maximum allowed size".into(),
                "too-large".into(),
            ),
            (
                died,
                "fatal: Out of memory, malloc failed".into(),
                "too-large".into(),
            ),
            (
                died,
                "fatal: pack has 3 unresolved deltas".into(),
                "missing-prerequisite".into(),
            ),
            (
                died,
                "fatal: write error: No space left on device".into(),
                "disk-full".into(),
            ),
            (
                died,
                "fatal: \u{1b}[31mwhat".into(),
                "bad-object: git does not take the pack: fatal: \\u{1b}[31mwhat".into(),
            ),
            (Ending::Killed(25), String::new(), "too-large".into()),
            (Ending::Expired, String::new(), "too-large".into()),
        ] {
            let got = code(ending, &stderr);
            assert!(got.starts_with(&begins), "{stderr}: {got}");
        }
    }
}
