//! A three-way merge of trees, and of files that each side changed in one place.
//!
//! No renames. Two changes of one file that touch or overlap conflict; so does everything that needs thought.

use super::super::walk::{by_name, tree_id};
use super::super::{Merged, Objects, RepositoryError, internal};
use super::view::View;
use gix::objs::Kind;
use std::collections::BTreeSet;
use tribunal_core::git::{Entry, GitPath, Mode};
use tribunal_core::id::CommitId;

/// Merge two commits that have one merge base.
pub(super) fn merge(
    view: &View,
    base: &CommitId,
    head: &CommitId,
) -> Result<Merged, RepositoryError> {
    let [from] = &view.merge_bases(base, head)?[..] else {
        return Err(internal(
            "only histories with one merge base are merged in memory",
        ));
    };
    let root = |id: &CommitId| -> Result<Option<Entry>, RepositoryError> {
        let tree = view.commit(id)?.0.tree;
        let id = tree.as_str().parse();
        let id = id.map_err(|error: tribunal_core::id::IdError| internal(error.to_string()))?;
        Ok(Some(Entry {
            mode: Mode::Tree,
            id,
        }))
    };
    let mut merging = Merging {
        view,
        conflicts: Vec::new(),
    };
    let sides = [root(from)?, root(base)?, root(head)?];
    let merged = merging.entry(&GitPath::new(Vec::new()), sides)?;
    let merged = merged.ok_or_else(|| internal("a merge left nothing"))?;
    merging.conflicts.sort();
    Ok(Merged {
        tree: tree_id(&merged)?,
        conflicts: merging.conflicts,
    })
}

struct Merging<'a> {
    view: &'a View,
    conflicts: Vec<GitPath>,
}

/// What was, and what each side made of it.
type Sides = [Option<Entry>; 3];

impl Merging<'_> {
    fn entry(&mut self, path: &GitPath, sides: Sides) -> Result<Option<Entry>, RepositoryError> {
        let [from, ours, theirs] = &sides;
        if ours == theirs || from == theirs {
            return Ok(ours.clone());
        }
        if from == ours {
            return Ok(theirs.clone());
        }
        let is = |entry: &Option<Entry>, mode: Mode| entry.as_ref().is_none_or(|e| e.mode == mode);
        if sides.iter().all(|entry| is(entry, Mode::Tree)) {
            return self.tree(path, sides);
        }
        if let [Some(from), Some(ours), Some(theirs)] = &sides
            && [from, ours, theirs].iter().all(|e| e.mode == Mode::File)
            && let Some(merged) = self.file([from, ours, theirs])?
        {
            return Ok(Some(merged));
        }
        self.conflicts.push(path.clone());
        Ok(ours.clone())
    }

    fn tree(&mut self, path: &GitPath, sides: Sides) -> Result<Option<Entry>, RepositoryError> {
        let mut listings = Vec::new();
        for side in &sides {
            listings.push(match side {
                Some(entry) => by_name(self.view.tree(&tree_id(entry)?)?),
                None => by_name(Vec::new()),
            });
        }
        let names: BTreeSet<_> = listings.iter().flat_map(|l| l.keys().cloned()).collect();
        let mut merged = Vec::new();
        for name in names {
            let mut side = listings.iter().map(|listing| listing.get(&name).cloned());
            let sides = [
                side.next().flatten(),
                side.next().flatten(),
                side.next().flatten(),
            ];
            if let Some(entry) = self.entry(&path.join(&name), sides)? {
                merged.push((name, entry));
            }
        }
        if merged.is_empty() && !path.as_bytes().is_empty() {
            return Ok(None);
        }
        // Git sorts a directory as if its name ended with a slash.
        merged.sort_by_key(|(name, entry)| match entry.mode {
            Mode::Tree => [name.as_slice(), b"/"].concat(),
            Mode::File | Mode::Executable | Mode::Symlink | Mode::Gitlink => name.clone(),
        });
        let mut bytes = Vec::new();
        for (name, entry) in merged {
            let mode = match entry.mode {
                Mode::File => "100644",
                Mode::Executable => "100755",
                Mode::Symlink => "120000",
                Mode::Gitlink => "160000",
                Mode::Tree => "40000",
            };
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(&name);
            bytes.push(0);
            let id = hex::decode(entry.id.as_str()).map_err(|e| internal(e.to_string()))?;
            bytes.extend_from_slice(&id);
        }
        self.written(Kind::Tree, Mode::Tree, bytes).map(Some)
    }

    fn file(&self, sides: [&Entry; 3]) -> Result<Option<Entry>, RepositoryError> {
        let mut texts = Vec::new();
        for side in sides {
            texts.push(self.view.blob(&side.id, u64::MAX)?);
        }
        match lines(&texts[0], &texts[1], &texts[2]) {
            Some(merged) => self.written(Kind::Blob, Mode::File, merged).map(Some),
            None => Ok(None),
        }
    }

    fn written(&self, kind: Kind, mode: Mode, bytes: Vec<u8>) -> Result<Entry, RepositoryError> {
        let id = super::super::objects::ours(self.view.write(kind, bytes)?)?;
        Ok(Entry { mode, id })
    }
}

/// Both changes, where a line that neither side touched lies between them.
fn lines(from: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let split = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |b| *b == b'\n').collect() };
    let (from, ours, theirs) = (split(from), split(ours), split(theirs));
    let (a, b) = (changed(&from, &ours), changed(&from, &theirs));
    let (first, first_text, second, second_text) = if a.end < b.start {
        (a, &ours, b, &theirs)
    } else if b.end < a.start {
        (b, &theirs, a, &ours)
    } else {
        return None;
    };
    let put = |text: &[&[u8]], at: &std::ops::Range<usize>| {
        text[at.start..text.len() - (from.len() - at.end)].concat()
    };
    Some(
        [
            from[..first.start].concat(),
            put(first_text, &first),
            from[first.end..second.start].concat(),
            put(second_text, &second),
            from[second.end..].concat(),
        ]
        .concat(),
    )
}

/// The lines of `from` between what both texts begin and end with.
fn changed(from: &[&[u8]], to: &[&[u8]]) -> std::ops::Range<usize> {
    let shorter = from.len().min(to.len());
    let equal = |(a, b): &(&&[u8], &&[u8])| a == b;
    let start = from.iter().zip(to).take_while(equal).count();
    let ends = from.iter().rev().zip(to.iter().rev());
    let end = ends.take_while(equal).count().min(shorter - start);
    start..from.len() - end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_apart_are_both_made_and_others_are_not() {
        let from = b"1\n2\n3\n4\n5\n";
        let ours = b"one\n2\n3\n4\n5\n";
        let theirs = b"1\n2\n3\n4\nfive\nsix\n";
        let both = b"one\n2\n3\n4\nfive\nsix\n".to_vec();
        assert_eq!(lines(from, ours, theirs), Some(both.clone()));
        assert_eq!(lines(from, theirs, ours), Some(both));
        assert_eq!(lines(from, ours, b"uno\n2\n3\n4\n5\n"), None);
        assert_eq!(lines(from, ours, b"1\nzwei\n3\n4\n5\n"), None);
        assert_eq!(
            lines(from, ours, b"1\n2\n3\n5\n"),
            Some(b"one\n2\n3\n5\n".to_vec())
        );
    }
}
