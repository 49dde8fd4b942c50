//! Which src may enter an overlay at all, judged on entries that differ from base: what base itself has was reviewed, and a
//! patch is not to blame for it.

mod artifact;
mod modules;
mod shadow;
mod symlink;

use super::{Finding, SrcFacts};
use crate::git::{Entry, GitPath, Mode};
use crate::policy::{Limits, Policy};
use crate::reason::{Reason, Refused, RefusedCode};
use std::collections::BTreeMap;

/// The src to be scored beside base's, by path.
struct Src<'a> {
    scored: BTreeMap<&'a [u8], &'a super::SrcEntry>,
    base: BTreeMap<&'a [u8], &'a Entry>,
}

impl<'a> Src<'a> {
    fn of(facts: &'a SrcFacts) -> Self {
        let scored = facts.entries.iter().map(|e| (e.path.as_bytes(), e));
        let base = facts.base.iter().map(|(path, e)| (path.as_bytes(), e));
        Self {
            scored: scored.collect(),
            base: base.collect(),
        }
    }

    /// Whether this very path holds something else than on base.
    fn differs(&self, path: &[u8]) -> bool {
        self.scored.get(path).map(|e| &e.entry) != self.base.get(path).copied()
    }

    /// Entries that differ from base. What is gone is no entry.
    fn changed(&self) -> impl Iterator<Item = &'a super::SrcEntry> {
        let differing = self.scored.iter().filter(|(path, _)| self.differs(path));
        differing.map(|(_, entry)| *entry)
    }

    /// Whether an entry differs at this path or anywhere below it.
    fn differs_below(&self, path: &[u8]) -> bool {
        let below = |p: &[u8]| {
            p.strip_prefix(path)
                .is_some_and(|r| r.is_empty() || r[0] == b'/')
        };
        self.scored
            .range(path..)
            .take_while(|(p, _)| p.starts_with(path))
            .any(|(p, _)| below(p) && self.differs(p))
    }
}

/// The whole src against the policy's limits.
pub(super) fn sizes(limits: &Limits, src: &SrcFacts) -> Result<(), Refused> {
    let files = src.entries.len() as u64;
    let sizes = src.entries.iter().map(|entry| entry.size);
    let bytes = sizes.fold(0_u64, u64::saturating_add);
    let checks = [
        ("files", files, limits.src_files, "limits.src_files"),
        ("bytes", bytes, limits.src_bytes, "limits.src_bytes"),
    ];
    for (what, has, limit, key) in checks {
        if has > limit {
            let told = format!("src holds {has} {what}, the policy's {key} allows {limit}");
            return Err(Refused::new(RefusedCode::TooLarge, told));
        }
    }
    Ok(())
}

/// Where a file runs in one process with the product, a runner package under src would be imported by the judge itself,
/// base's own or not. In two processes each has its own copy.
pub(super) fn runner_clash(policy: &Policy, src: &SrcFacts) -> Result<(), Refused> {
    if policy.runner.shared.is_empty() && src.touched.files.is_empty() {
        return Ok(());
    }
    match modules::runner_clash(&policy.runner.pythonpath, &src.entries) {
        None => Ok(()),
        Some((module, path)) => Err(Refused::new(
            RefusedCode::RunnerPackageClash,
            format!("{path} would be imported as {module}, which the runner itself uses"),
        )),
    }
}

/// Why this src is not built; empty where it is.
pub(super) fn check(policy: &Policy, facts: &SrcFacts) -> Vec<Finding> {
    let src = Src::of(facts);
    let roots = &policy.paths.src;
    let mut findings = Vec::new();
    for entry in src.changed() {
        let Some(root) = root_of(roots, entry.path.as_bytes()) else {
            findings.push(Finding::at(
                Reason::OverlayRootNotATree,
                &entry.path,
                format!(
                    "a {} where the directory of a src root belongs",
                    kind(entry.entry.mode)
                ),
            ));
            continue;
        };
        match entry.entry.mode {
            Mode::Gitlink => {
                findings.push(Finding::at(
                    Reason::OverlayGitlink,
                    &entry.path,
                    "a submodule",
                ));
            }
            Mode::Tree if root == entry.path.as_bytes() => findings.push(Finding::at(
                Reason::OverlayRootNotATree,
                &entry.path,
                "a directory where the src root is one file",
            )),
            Mode::File | Mode::Executable | Mode::Symlink | Mode::Tree => {}
        }
        if let Some(told) = artifact::by_name(entry.path.as_bytes()) {
            findings.push(Finding::at(
                Reason::OverlayCompiledArtifact,
                &entry.path,
                told,
            ));
        }
    }
    findings.extend(symlink::escapes(roots, &src));
    findings.extend(artifact::bare_repositories(&src));
    findings.extend(modules::stdlib_shadows(&policy.runner.pythonpath, &src));
    findings.extend(shadow::shadows(&policy.runner.pythonpath, &src));
    findings
}

/// What is wrong with any path by its name.
pub(super) fn artifact_by_name(path: &[u8]) -> Option<&'static str> {
    artifact::by_name(path)
}

/// The src root that this path lies under: a folder with its slash, or the file itself.
fn root_of<'r>(roots: &'r [String], path: &[u8]) -> Option<&'r [u8]> {
    let under = |root: &&[u8]| match root.last() {
        Some(b'/') => path.starts_with(root),
        _ => path == *root,
    };
    roots
        .iter()
        .map(String::as_bytes)
        .filter(under)
        .max_by_key(|root| root.len())
}

fn kind(mode: Mode) -> &'static str {
    match mode {
        Mode::File | Mode::Executable => "file",
        Mode::Symlink => "symlink",
        Mode::Gitlink => "submodule",
        Mode::Tree => "directory",
    }
}

/// `src` in a policy's `pythonpath` as the start of a path.
fn prefix_of(import_root: &str) -> String {
    match import_root {
        "." => String::new(),
        folder => format!("{folder}/"),
    }
}

/// The path's text for a message.
fn told(path: &[u8]) -> String {
    GitPath::new(path).to_string()
}
