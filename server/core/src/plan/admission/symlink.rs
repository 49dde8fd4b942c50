//! Where symlinks under src lead, resolved on paper: never outside their root, not even on the way, and never into `.git`.

use super::artifact::is_dot_git;
use super::{Src, root_of, told};
use crate::classify::folded;
use crate::git::Mode;
use crate::plan::{Finding, SrcEntry};
use crate::reason::Reason;

/// Links that a kernel follows in one path, the longest target that it stores, and a bound on what a walk may build up.
const LINKS: usize = 40;
const TARGET_BYTES: usize = 4095;
const PATH_BYTES: usize = 8192;

/// Bytes of targets that are followed for one src in all: twenty thousand links of forty long hops each are an attack, not
/// a layout.
const TARGETS_BYTES: usize = 16_000_000;

/// A way that leads out, or that nobody can follow.
struct Escape {
    why: String,
}

/// What a walk saw.
struct Walk<'s, 'a> {
    src: &'s Src<'a>,
    /// Length of the root's path, above which the walk may not go.
    root: usize,
    here: Vec<u8>,
    /// A part of the way is not what it is on base.
    changed: bool,
    links: usize,
}

/// Symlinks that lead out of their src root and are the patch's doing: changed themselves, or led out by a change on
/// their way.
pub(super) fn escapes(roots: &[String], src: &Src<'_>) -> Vec<Finding> {
    let mut bytes_left = TARGETS_BYTES;
    let links = src
        .scored
        .values()
        .filter(|entry| entry.entry.mode == Mode::Symlink);
    links
        .filter_map(|link| {
            let path = link.path.as_bytes();
            // A link in the place of a root is told as such.
            let root = root_of(roots, path)?;
            let here = path.rsplitn(2, |b| *b == b'/').nth(1).unwrap_or_default();
            let mut walk = Walk {
                src,
                root: root.strip_suffix(b"/").unwrap_or(root).len(),
                here: here.to_vec(),
                changed: src.differs(path),
                links: 0,
            };
            let escape = if root == path {
                Err(Escape {
                    why: "it stands in the place of a src root that is one file".to_owned(),
                })
            } else {
                walk.follow(link, &mut bytes_left)
            };
            match escape {
                Err(escape) if walk.changed => Some(Finding::at(
                    Reason::OverlaySymlinkEscape,
                    &link.path,
                    format!("a symlink to {}: {}", target(link), escape.why),
                )),
                Ok(()) | Err(_) => None,
            }
        })
        .collect()
}

impl<'a> Walk<'_, 'a> {
    fn follow(&mut self, link: &'a SrcEntry, bytes_left: &mut usize) -> Result<(), Escape> {
        let mut todo: Vec<&'a [u8]> = Vec::new();
        self.enter(link, &mut todo, bytes_left)?;
        while let Some(part) = todo.pop() {
            match part {
                b"" | b"." => {}
                b".." if self.here.len() <= self.root => {
                    return escape("it leads above its src root");
                }
                b".." => self.leave(),
                name if is_dot_git(&folded(name)) => return escape("it leads into .git"),
                name => {
                    self.here.push(b'/');
                    self.here.extend_from_slice(name);
                    if self.here.len() > PATH_BYTES {
                        return escape("its way is longer than a path can be");
                    }
                    self.changed |= self.src.differs(&self.here);
                    let met = self.src.scored.get(self.here.as_slice());
                    if let Some(next) = met.filter(|e| e.entry.mode == Mode::Symlink) {
                        self.leave();
                        self.enter(next, &mut todo, bytes_left)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// To the folder above.
    fn leave(&mut self) {
        let end = self.here.iter().rposition(|b| *b == b'/').unwrap_or(0);
        self.here.truncate(end);
    }

    /// Put the parts of the link's target before what is still to be walked.
    fn enter(
        &mut self,
        link: &'a SrcEntry,
        todo: &mut Vec<&'a [u8]>,
        bytes_left: &mut usize,
    ) -> Result<(), Escape> {
        self.links += 1;
        if self.links > LINKS {
            return escape("it does not resolve within 40 links");
        }
        match link.link_target.as_deref() {
            None | Some(b"") => escape("its target is empty"),
            Some(target) if target.len() > TARGET_BYTES || target.contains(&0) => {
                escape("no file system can hold its target")
            }
            Some(target) if target.starts_with(b"/") => escape("its target is absolute"),
            Some(target) if target.len() > *bytes_left => {
                escape("src holds more symlinks than can be followed")
            }
            Some(target) => {
                *bytes_left -= target.len();
                todo.extend(parts(target).rev());
                Ok(())
            }
        }
    }
}

fn escape(why: &str) -> Result<(), Escape> {
    Err(Escape {
        why: why.to_owned(),
    })
}

fn parts(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|b| *b == b'/')
}

fn target(link: &SrcEntry) -> String {
    link.link_target
        .as_deref()
        .map_or_else(|| "nothing".to_owned(), told)
}
