//! What planning needs to know of touched tests: what merges at each changed path, which test files run for it, and where
//! the texts are whose marks are compared.
//!
//! Only reads and counts, like `facts`; no text is parsed here.

use super::facts::{Listing, leaf_facts};
use super::walk::{Budget, Finder, leaves, tree_id};
use super::{Objects, RepositoryError};
use std::collections::BTreeSet;
use tribunal_core::classify::{PathClass, class_of};
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::{ObjectId, RepoPath, TreeId};
use tribunal_core::plan::{
    ProposedFacts, SrcEntry, Text, TextKind, TouchedFacts, TouchedText, is_test_file,
};
use tribunal_core::policy::Policy;

/// Entries below the folders of changed files that may be looked at.
const ENTRIES: u64 = 400_000;
/// Bytes of a Python file whose marks are read. A parser needs some two hundred times as much.
const TEXT_BYTES: u64 = 2 << 20;

/// Where touched tests are read from.
pub(super) struct Sides<'a> {
    pub(super) objects: &'a dyn Objects,
    pub(super) policy: &'a Policy,
    /// The tree that supplies the oracle, whole.
    pub(super) oracle: &'a Listing,
    /// The tree that merges.
    pub(super) merged: &'a TreeId,
    /// Base's tree and those of the merge bases.
    pub(super) before: &'a [TreeId],
}

type Changes = Vec<(GitPath, Option<SrcEntry>)>;

impl Sides<'_> {
    /// The facts about these changed paths.
    pub(super) fn facts(
        &self,
        touched: &[&GitPath],
        proposed: &[&GitPath],
    ) -> Result<TouchedFacts, RepositoryError> {
        let mut merged = Finder::new(self.objects, self.merged);
        let folders = folders(touched);
        let runs = |path: &[u8]| {
            is_test_file(path)
                && (touched.iter().any(|changed| changed.as_bytes() == path)
                    || folders.iter().any(|folder| path.starts_with(folder)))
        };
        let of_base = self.oracle.iter().map(|(path, entry)| (path, entry.mode));
        Ok(TouchedFacts {
            changes: self.changes(&mut merged, touched)?,
            files: self.tests(
                PathClass::Touched,
                &self.policy.paths.tests,
                &mut merged,
                &runs,
            )?,
            base_files: self.named(PathClass::Touched, of_base, &runs),
            texts: self.texts(&mut merged, touched)?,
            proposed: ProposedFacts {
                changes: self.changes(&mut merged, proposed)?,
                files: if proposed.is_empty() {
                    Vec::new()
                } else {
                    let roots = &self.policy.paths.proposed;
                    self.tests(PathClass::Proposed, roots, &mut merged, &is_test_file)?
                },
            },
        })
    }

    fn changes(
        &self,
        merged: &mut Finder<'_>,
        paths: &[&GitPath],
    ) -> Result<Changes, RepositoryError> {
        let mut changes = Vec::new();
        for path in paths {
            let entry = match leaf(merged, path)? {
                Some(entry) => Some(leaf_facts(self.objects, (*path).clone(), entry)?),
                None => None,
            };
            changes.push(((*path).clone(), entry));
        }
        Ok(changes)
    }

    /// Test files of this class under these roots of the tree that merges.
    fn tests(
        &self,
        class: PathClass,
        roots: &[String],
        merged: &mut Finder<'_>,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<RepoPath>, RepositoryError> {
        let mut found = Vec::new();
        let mut budget = Budget::of(ENTRIES);
        for root in roots {
            let path = GitPath::new(root.strip_suffix('/').unwrap_or(root).as_bytes());
            match merged.find(path.as_bytes())? {
                Some(entry) if entry.mode == Mode::Tree => {
                    let tree = tree_id(&entry)?;
                    leaves(
                        self.objects,
                        &tree,
                        &path,
                        &mut budget,
                        &mut |path, entry| {
                            found.push((path, entry.mode));
                            Ok(())
                        },
                    )?;
                }
                Some(entry) => found.push((path, entry.mode)),
                None => {}
            }
        }
        let found = found.iter().map(|(path, mode)| (path, *mode));
        Ok(self.named(class, found, wanted))
    }

    /// Those that are files by a name that a runner can be told, sorted, none twice.
    fn named<'p>(
        &self,
        class: PathClass,
        leaves: impl Iterator<Item = (&'p GitPath, Mode)>,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Vec<RepoPath> {
        let found: BTreeSet<RepoPath> = leaves
            .filter(|(path, mode)| *mode != Mode::Gitlink && wanted(path.as_bytes()))
            .filter(|(path, _)| class_of(&self.policy.paths, path) == class)
            .filter_map(|(path, _)| path.as_utf8()?.parse().ok())
            .collect();
        found.into_iter().collect()
    }

    /// Changed Python files that are still there.
    fn texts(
        &self,
        merged: &mut Finder<'_>,
        touched: &[&GitPath],
    ) -> Result<Vec<TouchedText>, RepositoryError> {
        let trees: BTreeSet<&TreeId> = self.before.iter().collect();
        let mut before: Vec<Finder<'_>> = trees
            .iter()
            .map(|tree| Finder::new(self.objects, tree))
            .collect();
        let mut texts = Vec::new();
        for path in touched {
            let Some(file) = path
                .as_utf8()
                .and_then(|text| text.parse::<RepoPath>().ok())
            else {
                continue;
            };
            let Some(entry) = leaf(merged, path)?.filter(|_| file.as_str().ends_with(".py")) else {
                continue;
            };
            let mut ids: BTreeSet<ObjectId> = BTreeSet::new();
            for tree in &mut before {
                ids.extend(self.text(leaf(tree, path)?)?);
            }
            texts.push(TouchedText {
                kind: if is_test_file(path.as_bytes()) {
                    TextKind::Test
                } else {
                    TextKind::Helper
                },
                now: match entry.mode {
                    Mode::Symlink => Text::None("a symlink"),
                    Mode::Gitlink | Mode::Tree => Text::None("no file"),
                    Mode::File | Mode::Executable => match self.text(Some(entry))? {
                        Some(id) => Text::Blob(id),
                        None => Text::None("longer than 2 MiB"),
                    },
                },
                file,
                before: ids.into_iter().collect(),
            });
        }
        Ok(texts)
    }

    /// The blob, where it is a file that is not too long to be read.
    fn text(&self, entry: Option<Entry>) -> Result<Option<ObjectId>, RepositoryError> {
        match entry {
            Some(Entry {
                mode: Mode::File | Mode::Executable,
                id,
            }) => Ok((self.objects.blob_size(&id)? <= TEXT_BYTES).then_some(id)),
            Some(Entry {
                mode: Mode::Symlink | Mode::Gitlink | Mode::Tree,
                ..
            })
            | None => Ok(None),
        }
    }
}

/// What stands at a path, if it is no folder.
fn leaf(finder: &mut Finder<'_>, path: &GitPath) -> Result<Option<Entry>, RepositoryError> {
    let found = finder.find(path.as_bytes())?;
    Ok(found.filter(|entry| entry.mode != Mode::Tree))
}

/// The folders of changed files that are no tests themselves: they touch every test below.
fn folders(touched: &[&GitPath]) -> BTreeSet<Vec<u8>> {
    let others = touched.iter().filter(|path| !is_test_file(path.as_bytes()));
    others
        .map(|path| {
            let path = path.as_bytes();
            let end = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
            path[..end].to_vec()
        })
        .collect()
}
