//! What a merge of base and head would make: git's own three-way merge, with nothing checked out.
//!
//! The objects it makes go into the view and vanish with it. No merge driver and no attribute of either side has a say
//! (the mirror's `info/attributes` takes them all away); renames are found as a forge would find them.

use super::command::{Ending, Git, ProcessLimits};
use super::git::RepositorySettings;
use super::{Merged, RepositoryError, disk, internal, refused};
use std::path::Path;
use tribunal_core::git::GitPath;
use tribunal_core::id::CommitId;
use tribunal_core::reason::RefusedCode::TooLarge;

/// Bytes of the answer: each conflicting path is named.
const ANSWER_BYTES: u64 = 16 << 20;
/// Bytes of one object that a merge writes.
const OBJECT_BYTES: u64 = 1 << 30;

/// Merge two commits of the mirror and the view.
pub(super) fn merge(
    settings: &RepositorySettings,
    mirror: &Path,
    view: &Path,
    index_bytes: u64,
    (base, head): (&CommitId, &CommitId),
) -> Result<Merged, RepositoryError> {
    let limits = ProcessLimits {
        memory: settings.merge_memory.saturating_add(index_bytes),
        cpu_seconds: settings.merge_timeout.as_secs().max(1),
        file_bytes: OBJECT_BYTES,
    };
    let finished = Git::new(mirror, "merge-tree")
        .args(["--write-tree", "-z", "--name-only", "--no-messages"])
        .args([base.as_str(), head.as_str()])
        .env("GIT_CONFIG_COUNT", "4")
        .env("GIT_CONFIG_KEY_0", "merge.renames")
        .env("GIT_CONFIG_VALUE_0", "true")
        .env("GIT_CONFIG_KEY_1", "merge.directoryRenames")
        .env("GIT_CONFIG_VALUE_1", "conflict")
        .env("GIT_CONFIG_KEY_2", "merge.conflictStyle")
        .env("GIT_CONFIG_VALUE_2", "merge")
        .env("GIT_CONFIG_KEY_3", "merge.renormalize")
        .env("GIT_CONFIG_VALUE_3", "false")
        .objects(view)
        .limits(limits)
        .deadline(settings.merge_timeout)
        .output_bytes(ANSWER_BYTES)
        .run()?;
    if finished.disk_was_full() {
        return Err(disk("merge", &std::io::ErrorKind::StorageFull.into()));
    }
    match finished.ending {
        Ending::Exited(0 | 1) => parse(&finished.stdout),
        Ending::Expired | Ending::Killed(_) => Err(refused(
            TooLarge,
            format!("merging {head} with {base} takes more time or memory than it may"),
        )),
        Ending::Exited(_) if finished.complaint().contains("Out of memory") => Err(refused(
            TooLarge,
            format!("merging {head} with {base} takes more memory than it may"),
        )),
        Ending::Exited(_) => Err(internal(format!(
            "failed to merge {head} with {base}: {}",
            finished.complaint()
        ))),
    }
}

/// `TREE NUL`, then each conflicting path and a NUL.
fn parse(answer: &[u8]) -> Result<Merged, RepositoryError> {
    let broken = || internal("git's answer to a merge makes no sense");
    let mut fields = answer
        .strip_suffix(b"\0")
        .ok_or_else(broken)?
        .split(|b| *b == 0);
    let tree = fields.next().and_then(|id| std::str::from_utf8(id).ok());
    let tree = tree.and_then(|id| id.parse().ok()).ok_or_else(broken)?;
    let mut conflicts: Vec<_> = fields
        .filter(|path| !path.is_empty())
        .map(GitPath::new)
        .collect();
    conflicts.sort();
    conflicts.dedup();
    Ok(Merged { tree, conflicts })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn answers_are_a_tree_and_paths_of_any_bytes() {
        let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let clean = parse(format!("{tree}\0").as_bytes()).unwrap();
        assert_eq!((clean.tree.as_str(), clean.conflicts.len()), (tree, 0));
        let answer = [tree.as_bytes(), b"\0src/\xff\n\"\0a\0a\0"].concat();
        let conflicts = parse(&answer).unwrap().conflicts;
        assert_eq!(
            conflicts,
            [GitPath::from("a"), GitPath::new(&b"src/\xff\n\""[..])]
        );
        for answer in [&b""[..], b"\0", b"main\0", tree.as_bytes()] {
            assert!(parse(answer).is_err());
        }
    }
}
