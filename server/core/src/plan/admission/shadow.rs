//! Modules that take the place of others: what a reviewer reads in one file, the interpreter would import from another.
//!
//! In one folder a package wins over an extension module, that over `name.py`, that over `name.pyc`, and all but the
//! package over a folder without `__init__`. Between import roots the earlier one wins. Two of one name that base does not
//! have beside each other are refused, whichever of both is new; a module that *becomes* a package loses its file.

use super::{Src, prefix_of};
use crate::classify::folded;
use crate::git::{GitPath, Mode};
use crate::plan::Finding;
use crate::reason::Reason;
use std::collections::BTreeMap;

/// What a name can be imported from, the winner first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// `name/__init__.py`, or a link that may lead to such a folder.
    Package,
    /// `name.so`, `name.cpython-313-x86_64-linux-gnu.so`.
    Extension,
    /// `name.py`.
    Module,
    /// `name.pyc`.
    Bytecode,
    /// `name/` with modules below it and no `__init__`.
    Namespace,
}

/// Folder and name, folded as file systems that ignore case and composition would.
type Key = (String, String);
/// Every form that a name has, with the path that gives it.
type Forms<'a> = BTreeMap<Key, BTreeMap<Form, &'a [u8]>>;

/// Names that head can be imported from two places where base had one.
pub(super) fn shadows(import_roots: &[String], src: &Src<'_>) -> Vec<Finding> {
    let scored = forms(src.scored.iter().map(|(path, e)| (*path, e.entry.mode)));
    let base = forms(src.base.iter().map(|(path, e)| (*path, e.mode)));
    let mut findings = beside(&scored, &base);
    findings.extend(between(import_roots, &scored, &base));
    findings
}

/// Two forms of one name in one folder.
fn beside(scored: &Forms<'_>, base: &Forms<'_>) -> Vec<Finding> {
    let none = BTreeMap::new();
    let mut findings = Vec::new();
    for (key, now) in scored {
        let before = base.get(key).unwrap_or(&none);
        let mut forms = now.iter();
        let Some((winner, won)) = forms.next() else {
            continue;
        };
        for (loser, lost) in forms {
            let both = before.contains_key(winner) && before.contains_key(loser);
            let told = match (loser, before.contains_key(winner)) {
                // A folder beside a module is as dead as it was; a package has its modules below it.
                (Form::Namespace, true) => continue,
                (Form::Namespace, false) if *winner == Form::Package => continue,
                _ if both => continue,
                // Dead from the start: what is read in the difference is not what runs.
                (_, true) => (lost, format!("{} would be imported instead", path(won))),
                (_, false) => (
                    won,
                    format!("it would be imported instead of {}", path(lost)),
                ),
            };
            let (at, told) = told;
            findings.push(Finding::at(
                Reason::OverlayModuleShadow,
                &GitPath::new(*at),
                told,
            ));
        }
    }
    findings
}

/// A new top-level name on an import root, before base's own on a later one.
fn between(import_roots: &[String], scored: &Forms<'_>, base: &Forms<'_>) -> Vec<Finding> {
    let folder = |root: &String| folded(prefix_of(root).trim_end_matches('/').as_bytes());
    let roots: Vec<String> = import_roots.iter().map(folder).collect();
    let solid = |forms: &Forms<'_>, root: &str, name: &str| -> Option<Vec<u8>> {
        let forms = forms.get(&(root.to_owned(), name.to_owned()))?;
        let (form, path) = forms.iter().next()?;
        (*form != Form::Namespace).then(|| path.to_vec())
    };
    let mut findings = Vec::new();
    for (n, root) in roots.iter().enumerate() {
        let later = roots.get(n + 1..).unwrap_or_default();
        for (of, name) in scored.keys().filter(|(of, _)| of == root) {
            let (Some(new), None) = (solid(scored, of, name), solid(base, of, name)) else {
                continue;
            };
            let mut behind = later.iter().filter(|later| *later != root);
            let lost = behind.find_map(|later| {
                solid(base, later, name)?;
                solid(scored, later, name)
            });
            if let Some(lost) = lost {
                findings.push(Finding::at(
                    Reason::OverlayModuleShadow,
                    &GitPath::new(new),
                    format!("it would be imported instead of {}", path(&lost)),
                ));
            }
        }
    }
    findings
}

fn forms<'a>(leaves: impl Iterator<Item = (&'a [u8], Mode)>) -> Forms<'a> {
    let mut forms: Forms<'a> = BTreeMap::new();
    let mut add = |folder: &[u8], name: &[u8], form: Form, path: &'a [u8]| {
        let key = (folded(folder), folded(name));
        forms.entry(key).or_default().entry(form).or_insert(path);
    };
    for (path, mode) in leaves {
        let (folder, leaf) = split(path);
        let Some((name, form)) = importable(leaf, mode) else {
            continue;
        };
        add(folder, name, form, path);
        if name == b"__init__" {
            let (above, package) = split(folder);
            add(above, package, Form::Package, path);
        }
        // Every folder above may be a namespace; one with an `__init__` is a package first.
        let mut folder = folder;
        while !folder.is_empty() {
            let (above, name) = split(folder);
            add(above, name, Form::Namespace, path);
            folder = above;
        }
    }
    forms
}

/// The name that a leaf gives a module to.
fn importable(leaf: &[u8], mode: Mode) -> Option<(&[u8], Form)> {
    let dot = leaf.iter().position(|b| *b == b'.');
    let (name, ending) = leaf.split_at(dot.unwrap_or(leaf.len()));
    let form = match (ending, mode) {
        (b"", Mode::Symlink | Mode::Gitlink) => Form::Package,
        (b"", Mode::File | Mode::Executable | Mode::Tree) => return None,
        (b".py", _) => Form::Module,
        (b".pyc", _) => Form::Bytecode,
        (ending, _) if ending.ends_with(b".so") => Form::Extension,
        (_, _) => return None,
    };
    (!name.is_empty()).then_some((name, form))
}

/// A path's folder, without its slash, and its last part.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (
            path.get(..at).unwrap_or_default(),
            path.get(at + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

fn path(bytes: &[u8]) -> String {
    super::told(bytes)
}
