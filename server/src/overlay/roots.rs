//! The policy's src roots as a tree of names, to be laid over a tree of directories.

use std::collections::BTreeMap;

/// A directory on the way to src roots, or a root itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Roots {
    below: BTreeMap<Vec<u8>, Place>,
}

/// What the policy says of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Roots lie further down.
    Above(Roots),
    /// A root that is a directory.
    Directory,
    /// A root that is one file.
    File,
}

impl Roots {
    /// Those of a policy. A root inside another one belongs to the outer.
    pub(super) fn of(list: &[String]) -> Self {
        let mut all = Self::default();
        for root in list {
            let (path, place) = match root.strip_suffix('/') {
                Some(path) => (path, Place::Directory),
                None => (root.as_str(), Place::File),
            };
            let parts: Vec<_> = path.split('/').map(str::as_bytes).collect();
            all.add(&parts, place);
        }
        all
    }

    fn add(&mut self, path: &[&[u8]], place: Place) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let name = first.to_vec();
        if rest.is_empty() {
            self.below.insert(name, place);
            return;
        }
        let empty = Place::Above(Self::default());
        match self.below.entry(name).or_insert(empty) {
            Place::Above(roots) => roots.add(rest, place),
            Place::Directory | Place::File => {}
        }
    }

    /// What is said of a name in this directory.
    pub(super) fn at(&self, name: &[u8]) -> Option<&Place> {
        self.below.get(name)
    }

    /// The names something is said of.
    pub(super) fn names(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.below.keys()
    }

    /// The length of the root that this path lies strictly under, or is as a file.
    pub(super) fn covering(&self, path: &[u8]) -> Option<usize> {
        let mut here = self;
        let mut end = 0;
        for name in path.split(|b| *b == b'/') {
            end += name.len();
            match here.at(name)? {
                Place::Above(roots) => here = roots,
                Place::Directory if end < path.len() => return Some(end),
                Place::File if end == path.len() => return Some(end),
                Place::Directory | Place::File => return None,
            }
            end += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(list: &[&str]) -> Roots {
        Roots::of(&list.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_root_inside_a_root_belongs_to_the_outer() {
        let outer = roots(&["lib/"]);
        assert_eq!(roots(&["lib/", "lib/a/"]), outer);
        assert_eq!(roots(&["lib/a/", "lib/"]), outer);
    }

    #[test]
    fn paths_find_their_root() {
        let roots = roots(&["src/", "lib/py/", "one.py", "pkg/mod.py"]);
        for (path, root) in [
            ("src/a", Some(3)),
            ("src/a/b", Some(3)),
            ("src", None),
            ("src2/a", None),
            ("lib/py/x", Some(6)),
            ("lib/x", None),
            ("one.py", Some(6)),
            ("one.py/x", None),
            ("pkg/mod.py", Some(10)),
            ("pkg/x", None),
        ] {
            assert_eq!(roots.covering(path.as_bytes()), root, "{path}");
        }
    }
}
