//! The tests that a patch touches: what of them is laid over base, which files run, whose marks are compared.
//!
//! Read by the repository room, judged here: what would not be built under src is not built here either.

use super::{Finding, SrcEntry, admission};
use crate::git::{GitPath, Mode};
use crate::id::{ObjectId, RepoPath};
use crate::policy::{Limits, Policy};
use crate::reason::{Reason, Refused, RefusedCode};

/// The touched tests of a patch; empty where it touches none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TouchedFacts {
    /// Every changed path of class touched, with what merges there; `None` where it is gone. Byte-sorted.
    pub changes: Vec<(GitPath, Option<SrcEntry>)>,
    /// The test files that run, sorted: those that changed, and those below the folder of another changed file.
    pub files: Vec<RepoPath>,
    /// The same of the tree that supplies the oracle.
    pub base_files: Vec<RepoPath>,
    /// Python files whose marks are compared.
    pub texts: Vec<TouchedText>,
    /// The agent's own extra tests, for advice on request.
    pub proposed: ProposedFacts,
}

/// What a tree has of proposed tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposedFacts {
    /// Every changed path of that class, as [`TouchedFacts::changes`].
    pub changes: Vec<(GitPath, Option<SrcEntry>)>,
    /// All their test files, sorted.
    pub files: Vec<RepoPath>,
}

/// One changed Python file, as it merges and as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedText {
    /// Its path.
    pub file: RepoPath,
    /// Whether it must be readable: only a test file must.
    pub kind: TextKind,
    /// What merges.
    pub now: Text,
    /// Base's, and that of every merge base that has it.
    pub before: Vec<ObjectId>,
}

/// What a Python file is to the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// One that is collected.
    Test,
    /// One that others may import.
    Helper,
}

/// Where a text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// In this blob.
    Blob(ObjectId),
    /// Nowhere that can be compared.
    None(&'static str),
}

/// Names that pytest collects a file by.
#[must_use]
pub fn is_test_file(path: &[u8]) -> bool {
    crate::manifest::is_test_file(path)
}

/// Why these are not laid over base; empty where they are.
pub(super) fn check(facts: &TouchedFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, entry) in &facts.changes {
        let Some(entry) = entry else { continue };
        match entry.entry.mode {
            Mode::Gitlink => {
                findings.push(Finding::at(Reason::OverlayGitlink, path, "a submodule"));
            }
            Mode::Symlink => {
                let target = entry.link_target.as_deref().unwrap_or_default();
                if !path.leads_inside(target) {
                    let told = "a symlink that leaves the tree";
                    findings.push(Finding::at(Reason::OverlaySymlinkEscape, path, told));
                }
            }
            Mode::File | Mode::Executable | Mode::Tree => {}
        }
        if let Some(told) = admission::artifact_by_name(path.as_bytes()) {
            findings.push(Finding::at(Reason::OverlayCompiledArtifact, path, told));
        }
    }
    findings
}

/// The touched files against the limits that src has.
pub(super) fn sizes(limits: &Limits, facts: &TouchedFacts) -> Result<(), Refused> {
    let entries = facts.changes.iter().filter_map(|(_, entry)| entry.as_ref());
    let (files, bytes) = entries.fold((0_u64, 0_u64), |(files, bytes), entry| {
        (files + 1, bytes.saturating_add(entry.size))
    });
    if files > limits.src_files || bytes > limits.src_bytes {
        let told = format!(
            "the patch touches {files} tests of {bytes} bytes, the policy's limits.src_files and limits.src_bytes allow {} of {}",
            limits.src_files, limits.src_bytes
        );
        return Err(Refused::new(RefusedCode::TooLarge, told));
    }
    Ok(())
}

/// How often a file runs in the merge lane: the longest prefix of the policy's that it has, else the policy's N.
#[must_use]
pub fn reruns(policy: &Policy, file: &RepoPath) -> u32 {
    let file = file.as_str();
    let fits = |prefix: &str| file == prefix || (prefix.ends_with('/') && file.starts_with(prefix));
    let entries = policy.runs.path.iter();
    entries
        .filter(|entry| fits(&entry.prefix))
        .max_by_key(|entry| entry.prefix.len())
        .map_or(policy.runs.reruns, |entry| entry.reruns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Entry;
    use crate::policy::PathReruns;

    fn change(path: &str, mode: Mode, target: Option<&str>) -> (GitPath, Option<SrcEntry>) {
        let id = "1".repeat(40);
        let entry = SrcEntry {
            path: path.into(),
            entry: Entry {
                mode,
                id: id.parse().unwrap_or_else(|_| unreachable!("forty digits")),
            },
            size: 3,
            link_target: target.map(|t| t.as_bytes().to_vec()),
            lfs_pointer: false,
        };
        (path.into(), Some(entry))
    }

    #[test]
    fn what_src_may_not_hold_touched_tests_may_not_either() {
        for (mode, target, path, code) in [
            (Mode::File, None, "tests/test_a.py", None),
            (Mode::Symlink, Some("../src/a.py"), "tests/test_a.py", None),
            (
                Mode::Symlink,
                Some("/etc/passwd"),
                "tests/x",
                Some(Reason::OverlaySymlinkEscape),
            ),
            (
                Mode::Symlink,
                Some("../../x"),
                "tests/x",
                Some(Reason::OverlaySymlinkEscape),
            ),
            (
                Mode::Gitlink,
                None,
                "tests/sub",
                Some(Reason::OverlayGitlink),
            ),
            (
                Mode::File,
                None,
                "tests/__pycache__/a.py",
                Some(Reason::OverlayCompiledArtifact),
            ),
            (
                Mode::File,
                None,
                "tests/x.so",
                Some(Reason::OverlayCompiledArtifact),
            ),
        ] {
            let facts = TouchedFacts {
                changes: vec![change(path, mode, target)],
                ..TouchedFacts::default()
            };
            let found: Vec<Reason> = check(&facts).iter().map(|f| f.reason).collect();
            assert_eq!(found, code.into_iter().collect::<Vec<_>>(), "{path}");
        }
    }

    #[test]
    fn the_longest_prefix_says_how_often() {
        let mut policy = Policy::default();
        for (prefix, reruns) in [
            ("tests/slow/", 3),
            ("tests/", 5),
            ("tests/slow/test_x.py", 1),
        ] {
            let prefix = prefix.to_owned();
            policy.runs.path.push(PathReruns { prefix, reruns });
        }
        for (file, wanted) in [
            ("tests/slow/test_x.py", 1),
            ("tests/slow/test_y.py", 3),
            ("tests/test_y.py", 5),
            ("more/test_y.py", 7),
        ] {
            assert_eq!(reruns(&policy, &RepoPath::literal(file)), wanted, "{file}");
        }
    }
}
