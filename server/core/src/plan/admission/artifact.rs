//! Compiled and start-up artifacts: what runs without being read, and repositories in the repository.

use super::Src;
use crate::classify::folded;
use crate::git::GitPath;
use crate::plan::Finding;
use crate::reason::Reason;

/// Endings of files that an interpreter or loader takes without source.
const COMPILED: [&str; 9] = [
    ".pyc",
    ".pyo",
    ".so",
    ".pyd",
    ".dylib",
    ".dll",
    ".pth",
    "._pth",
    ".egg-link",
];

/// Endings of folders (or files) that installers leave and importers read.
const INSTALLED: [&str; 2] = [".dist-info", ".egg-info"];

/// What is wrong with a path by its parts' names, whatever their case.
pub(super) fn by_name(path: &[u8]) -> Option<&'static str> {
    let parts: Vec<String> = path.split(|b| *b == b'/').map(folded).collect();
    let any = |test: fn(&str) -> bool| parts.iter().any(|part| test(part));
    let name = parts.last().map_or("", String::as_str);
    if any(is_dot_git) {
        Some("part of an embedded git repository")
    } else if any(|part| part == "__pycache__") {
        Some("in a bytecode cache")
    } else if any(|part| INSTALLED.iter().any(|end| part.ends_with(end))) {
        Some("metadata of an installed package, which can name plug-ins")
    } else if COMPILED.iter().any(|end| name.ends_with(end)) || is_versioned_library(name) {
        Some("a compiled or start-up artifact")
    } else {
        None
    }
}

/// `.git` in any case, with characters that HFS+ ignores, or by its short name on NTFS. Takes a folded name.
pub(super) fn is_dot_git(part: &str) -> bool {
    matches!(part.trim_end_matches(['.', ' ']), ".git" | "git~1")
}

/// `libx.so.1`, `libx.so.1.2`.
fn is_versioned_library(name: &str) -> bool {
    name.rsplit_once(".so.").is_some_and(|(_, version)| {
        !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

/// Folders that git would take for a repository: `HEAD` beside `objects` and `refs`, or beside `commondir`.
pub(super) fn bare_repositories(src: &Src<'_>) -> Vec<Finding> {
    let heads = src
        .scored
        .keys()
        .filter_map(|path| path.strip_suffix(b"HEAD"));
    let folders = heads.filter(|folder| folder.last().is_none_or(|b| *b == b'/'));
    folders
        .filter_map(|folder| {
            let part = |name: &str| [folder, name.as_bytes()].concat();
            let whole = |names: &[&str]| names.iter().all(|name| exists(src, &part(name)));
            let looks = whole(&["objects", "refs"]) || whole(&["commondir"]);
            let parts = ["HEAD", "objects", "refs", "commondir"];
            let changed = parts.iter().any(|name| src.differs_below(&part(name)));
            (looks && changed).then(|| {
                Finding::at(
                    Reason::OverlayCompiledArtifact,
                    &GitPath::new(part("HEAD")),
                    "its folder is laid out as a bare git repository",
                )
            })
        })
        .collect()
}

fn exists(src: &Src<'_>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    src.scored.contains_key(path)
        || src
            .scored
            .range(below.as_slice()..)
            .next()
            .is_some_and(|(next, _)| next.starts_with(&below))
}
