//! Records that speak for no case: known once base has collected its own.

use super::judged::{About, Ground};
use crate::cassette::InEffect;
use crate::classify::{PathClass, class_of};
use crate::git::GitPath;
use crate::id::RepoPath;
use crate::outcome::{AttemptFacts, End};
use crate::policy::Paths;
use crate::reason::Reason;
use crate::text::shown;
use std::collections::BTreeSet;

/// Every record in effect whose test is a sealed one that base does not collect. Of a file that base could not import
/// nothing is known.
pub(super) fn astray(
    paths: &Paths,
    files: &[RepoPath],
    records: &[InEffect],
    base: &AttemptFacts,
) -> Vec<Ground> {
    if base.end.end != End::Finished {
        return Vec::new();
    }
    let unread: BTreeSet<&str> = base
        .collection_errors
        .iter()
        .map(|e| e.file.as_str())
        .collect();
    let nodes: BTreeSet<&str> = base
        .collected
        .iter()
        .map(|case| case.node.as_str())
        .collect();
    let silent: BTreeSet<&str> = base
        .silences
        .iter()
        .map(|silence| silence.node.as_str())
        .collect();
    records
        .iter()
        .filter(|record| {
            let (file, test) = (record.cassette.file(), record.cassette.test.as_str());
            let sealed = class_of(paths, &GitPath::from(file)) == PathClass::Oracle;
            let runs = files.iter().any(|listed| listed.as_str() == file);
            let known = nodes.contains(test) || silent.contains(file) || unread.contains(file);
            sealed && !(runs && known)
        })
        .map(|record| Ground {
            reason: Reason::CassetteInvalid,
            about: About::Patch,
            subject: Some(record.path.to_string()),
            detail: format!(
                "`test` names {}, which is no case that base collects",
                shown(record.cassette.test.as_str(), 200)
            ),
            seen: None,
        })
        .collect()
}
