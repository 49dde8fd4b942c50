//! A list of items becomes a tar stream, one blob in memory at a time.
//!
//! GNU format, so that names of any bytes and any length stay what they are. Owner 0, one time for all: the same items
//! give the same bytes. What is the oracle's alone belongs to its group, and to nobody else.

use super::items::{Content, Item, Readers};
use crate::repository::Objects;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use tar::{EntryType, Header};

const BLOCK: usize = 512;
/// A header's field for a name ends with NUL here, as not every reader takes a full one.
const SHORT_NAME: usize = 99;
/// Bytes of one file; more does not fit into a room's memory anyway.
const FILE_BYTES: u64 = 1 << 30;
/// The name under which GNU tar hands on names that are too long for a header.
const LONG_NAME: &[u8] = b"././@LongLink";

/// The tar of these items, made while it is read.
pub(super) fn stream(objects: Arc<dyn Objects>, items: Vec<Item>, mtime: u64) -> Stream {
    Stream {
        objects,
        items: items.into_iter(),
        mtime,
        ready: Cursor::new(Vec::new()),
        end: End::ToCome,
    }
}

/// See [`stream`].
pub(super) struct Stream {
    objects: Arc<dyn Objects>,
    items: std::vec::IntoIter<Item>,
    mtime: u64,
    ready: Cursor<Vec<u8>>,
    end: End,
}

/// Mode and group of an entry; its owner is always root.
#[derive(Clone, Copy)]
struct Access {
    mode: u32,
    group: u64,
}

impl Access {
    const NONE: Self = Self { mode: 0, group: 0 };

    fn of(readers: Readers, everyones: u32) -> Self {
        Self {
            mode: readers.mode(everyones),
            group: readers.group(),
        }
    }
}

/// Two empty blocks.
enum End {
    ToCome,
    Written,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let next = match (self.items.next(), &self.end) {
                (Some(item), _) => self.entry(&item)?,
                (None, End::ToCome) => {
                    self.end = End::Written;
                    vec![0; 2 * BLOCK]
                }
                (None, End::Written) => return Ok(0),
            };
            self.ready = Cursor::new(next);
        }
    }
}

impl Stream {
    fn entry(&self, item: &Item) -> io::Result<Vec<u8>> {
        let path = item.path.as_bytes();
        let blob = |id| self.objects.blob(id, FILE_BYTES).map_err(io::Error::other);
        let mut out = Vec::new();
        match &item.content {
            Content::Directory => {
                let path = [path, b"/"].concat();
                let access = Access::of(item.readers, 0o755);
                self.header(&mut out, &path, EntryType::Directory, access, &[], 0);
            }
            Content::Link(target) => {
                let access = Access::of(Readers::Everyone, 0o777);
                self.header(&mut out, path, EntryType::Symlink, access, target, 0);
            }
            Content::File(id) => {
                self.file(&mut out, path, Access::of(item.readers, 0o644), &blob(id)?);
            }
            Content::Executable(id) => {
                self.file(&mut out, path, Access::of(item.readers, 0o755), &blob(id)?);
            }
        }
        Ok(out)
    }

    fn file(&self, out: &mut Vec<u8>, path: &[u8], access: Access, content: &[u8]) {
        self.header(out, path, EntryType::Regular, access, &[], content.len());
        padded(out, content);
    }

    fn header(
        &self,
        out: &mut Vec<u8>,
        path: &[u8],
        kind: EntryType,
        access: Access,
        link: &[u8],
        size: usize,
    ) {
        for (long, kind) in [
            (link, EntryType::GNULongLink),
            (path, EntryType::GNULongName),
        ] {
            if long.len() > SHORT_NAME {
                let name = [long, b"\0"].concat();
                self.block(out, LONG_NAME, kind, Access::NONE, &[], name.len());
                padded(out, &name);
            }
        }
        self.block(out, path, kind, access, link, size);
    }

    fn block(
        &self,
        out: &mut Vec<u8>,
        path: &[u8],
        kind: EntryType,
        access: Access,
        link: &[u8],
        size: usize,
    ) {
        let mut header = Header::new_gnu();
        let old = header.as_old_mut();
        fill(&mut old.name, path);
        fill(&mut old.linkname, link);
        header.set_entry_type(kind);
        header.set_mode(access.mode);
        header.set_uid(0);
        header.set_gid(access.group);
        header.set_mtime(self.mtime);
        header.set_size(size as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
    }
}

fn fill(field: &mut [u8], bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(SHORT_NAME)];
    field[..bytes.len()].copy_from_slice(bytes);
}

fn padded(out: &mut Vec<u8>, content: &[u8]) {
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}
