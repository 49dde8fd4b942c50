//! The syntax of paths in a policy, and how its lists stand to one another.

use super::reader::Reader;
use super::{POLICY_PATH, Paths};
use crate::classify::{PathClass, class_of};
use crate::git::GitPath;
use crate::id::RepoPath;
use crate::manifest::sealed_root;
use std::collections::BTreeMap;

const ROOT: &str = "a folder that ends in \"/\" or the exact path of a file: relative, without \".\", \"..\", patterns or .git";
const FOLDER: &str =
    "a folder that ends in \"/\": relative, without \".\", \"..\", patterns or .git";
const FILE: &str = "the exact path of a file: relative, without \".\", \"..\", patterns or .git";

/// `[paths]`.
pub(super) fn read(mut reader: Reader<'_>, paths: &mut Paths) {
    reader.list("src", ROOT, &mut paths.src, root);
    reader.list("sealed", ROOT, &mut paths.sealed, root);
    reader.list("proposed", ROOT, &mut paths.proposed, root);
    reader.list("tests", ROOT, &mut paths.tests, root);
    reader.text("cassettes", FOLDER, &mut paths.cassettes, folder);
    reader.text("manifest", FILE, &mut paths.manifest, file);
    reader.text("leases", FILE, &mut paths.leases, file);
    reader.text("ledger", FILE, &mut paths.ledger, file);
    reader.list("protect", ROOT, &mut paths.protect, root);
    // Lists that were not read cannot contradict one another.
    if reader.mistaken() == 0 {
        consistent(&mut reader, paths);
    }
    reader.finish();
}

/// A folder or a file.
pub(super) fn root(text: &str) -> Option<String> {
    plain(text.strip_suffix('/').unwrap_or(text)).then(|| text.to_owned())
}

/// A folder.
fn folder(text: &str) -> Option<String> {
    root(text).filter(|text| text.ends_with('/'))
}

/// A file.
pub(super) fn file(text: &str) -> Option<RepoPath> {
    plain(text).then(|| text.parse().ok())?
}

fn plain(text: &str) -> bool {
    // A pattern would silently protect nothing, since paths here are compared and never matched.
    text.parse::<RepoPath>().is_ok()
        && !text.contains(['\\', '*', '?'])
        && !text.contains(char::is_control)
        && !text
            .split('/')
            .any(|part| part.eq_ignore_ascii_case(".git"))
}

fn consistent(reader: &mut Reader<'_>, paths: &Paths) {
    for (list, key) in [(&paths.src, "src"), (&paths.sealed, "sealed")] {
        if list.is_empty() {
            let key = reader.key(key);
            reader.told(key, "must name at least one path");
        }
    }
    one_class_each(reader, paths);
    let root = sealed_root(&paths.manifest);
    let inside = GitPath::from(format!("{root}test_a.py").as_str());
    if root.is_empty() || class_of(paths, &inside) != PathClass::Oracle {
        let key = reader.key("manifest");
        let told = format!(
            "must lie in a folder under paths.sealed, the folder of all sealed tests, got \"{}\"",
            paths.manifest
        );
        reader.told(key, told);
    }
}

/// Prefixes may overlap, the longest wins; the very same path in two places would have two classes.
fn one_class_each(reader: &mut Reader<'_>, paths: &Paths) {
    let lists = [
        ("src", &paths.src),
        ("sealed", &paths.sealed),
        ("proposed", &paths.proposed),
        ("tests", &paths.tests),
        ("protect", &paths.protect),
    ];
    let single = [
        ("cassettes", paths.cassettes.as_str()),
        ("manifest", paths.manifest.as_str()),
        ("leases", paths.leases.as_str()),
        ("ledger", paths.ledger.as_str()),
        ("", POLICY_PATH),
    ];
    let every = lists
        .into_iter()
        .flat_map(|(key, list)| list.iter().map(move |path| (key, path.as_str())))
        .chain(single);
    let mut claimed: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, path) in every {
        let name = path.strip_suffix('/').unwrap_or(path);
        let Some(other) = claimed.insert(name, key).filter(|other| *other != key) else {
            continue;
        };
        // Sealing by name what is sealed anyway is no contradiction.
        let sealing = |key: &str| matches!(key, "sealed" | "protect");
        let sealed = |key: &str| sealing(key) || matches!(key, "manifest" | "leases" | "");
        if sealed(key) && sealed(other) && (sealing(key) || sealing(other)) {
            continue;
        }
        let told = match key {
            "" => {
                format!("is the policy itself, which is always sealed, but stands in paths.{other}")
            }
            _ => format!("is in paths.{other} as well: a path has one class"),
        };
        let key = reader.key(if key.is_empty() { other } else { key });
        reader.told(key, format!("\"{path}\" {told}"));
    }
}
