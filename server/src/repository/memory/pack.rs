//! A pack in memory becomes objects: plain ones, and differences against others of the pack or against known ones.

use super::super::bundle::BundleHead;
use super::super::objects::too_large;
use super::super::{RepositoryError, UploadLimits, refused};
use super::{Find, Shelf};
use gix::ObjectId;
use gix::hash::Kind as Format;
use gix::objs::Kind;
use gix::zlib::{Inflate, Status};
use std::collections::HashMap;
use tribunal_core::reason::RefusedCode::{
    BadObject, MissingPrerequisite, TooLarge, UploadIncomplete,
};

/// What an entry is before differences are applied.
enum Raw {
    Whole(Kind),
    AgainstOffset(usize),
    AgainstId(ObjectId),
}

/// All objects of a pack.
pub(super) fn decode<'a>(
    pack: &[u8],
    head: &BundleHead,
    limits: &UploadLimits,
    known: &Find<'a>,
) -> Result<Shelf, RepositoryError> {
    let end = checked_end(pack, head.format)?;
    let mut reader = Reader {
        pack: &pack[..end],
        at: head.pack_start.len(),
        format: head.format,
        limit: limits.object_bytes,
    };
    let mut waiting = Vec::new();
    let mut by_offset: HashMap<usize, ObjectId> = HashMap::new();
    let mut done = Shelf::new();
    for _ in 0..head.objects {
        let offset = reader.at;
        let (raw, bytes) = reader.entry(offset)?;
        match raw {
            Raw::Whole(kind) => {
                let id = hash(head.format, kind, &bytes)?;
                by_offset.insert(offset, id);
                done.insert(id, (kind, bytes));
            }
            Raw::AgainstOffset(_) | Raw::AgainstId(_) => waiting.push((offset, raw, bytes)),
        }
    }
    // A difference may come before what it builds on: round after round, until nothing moves any more.
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for (offset, raw, bytes) in waiting {
            let base = match &raw {
                Raw::AgainstOffset(base) => by_offset.get(base).copied(),
                Raw::AgainstId(id) => Some(*id),
                Raw::Whole(_) => None,
            };
            let base = base.and_then(|id| done.get(&id).or_else(|| known(&id)));
            let Some((kind, base)) = base else {
                left.push((offset, raw, bytes));
                continue;
            };
            let (kind, bytes) = (*kind, apply(base, &bytes, limits.object_bytes)?);
            let id = hash(head.format, kind, &bytes)?;
            by_offset.insert(offset, id);
            done.insert(id, (kind, bytes));
        }
        if left.len() == before {
            let message = "the bundle builds on objects that are not here";
            return Err(refused(MissingPrerequisite, message));
        }
        waiting = left;
    }
    Ok(done)
}

fn hash(format: Format, kind: Kind, bytes: &[u8]) -> Result<ObjectId, RepositoryError> {
    gix::objs::compute_hash(format, kind, bytes)
        .map_err(|error| refused(BadObject, format!("an object cannot be hashed: {error}")))
}

/// Where the entries end and the checksum begins.
fn checked_end(pack: &[u8], format: Format) -> Result<usize, RepositoryError> {
    let cut = || refused(UploadIncomplete, "the pack ended early");
    let end = pack
        .len()
        .checked_sub(format.len_in_bytes())
        .ok_or_else(cut)?;
    let mut hasher = gix::hash::hasher(format);
    hasher.update(&pack[..end]);
    let sum = hasher
        .try_finalize()
        .map_err(|error| refused(BadObject, error.to_string()))?;
    if sum.as_bytes() == &pack[end..] {
        Ok(end)
    } else {
        Err(cut())
    }
}

struct Reader<'a> {
    pack: &'a [u8],
    at: usize,
    format: Format,
    limit: u64,
}

impl Reader<'_> {
    fn entry(&mut self, offset: usize) -> Result<(Raw, Vec<u8>), RepositoryError> {
        let first = self.byte()?;
        let mut size = u64::from(first & 15);
        let (mut shift, mut more) = (4, first & 128 != 0);
        while more {
            let byte = self.byte()?;
            size |= u64::from(byte & 127).checked_shl(shift).unwrap_or(0);
            (shift, more) = (shift + 7, byte & 128 != 0);
        }
        let raw = match first >> 4 & 7 {
            1 => Raw::Whole(Kind::Commit),
            2 => Raw::Whole(Kind::Tree),
            3 => Raw::Whole(Kind::Blob),
            4 => Raw::Whole(Kind::Tag),
            6 => Raw::AgainstOffset(self.base_offset(offset)?),
            7 => {
                let end = self.at + self.format.len_in_bytes();
                let id = self.pack.get(self.at..end).ok_or_else(broken)?;
                self.at = end;
                Raw::AgainstId(ObjectId::from_bytes_or_panic(id))
            }
            _ => return Err(broken()),
        };
        if size > self.limit {
            return Err(too_large(&"in the pack", size, self.limit));
        }
        Ok((raw, self.inflate(size)?))
    }

    fn byte(&mut self) -> Result<u8, RepositoryError> {
        let byte = self.pack.get(self.at).copied().ok_or_else(broken)?;
        self.at += 1;
        Ok(byte)
    }

    fn base_offset(&mut self, offset: usize) -> Result<usize, RepositoryError> {
        let mut byte = self.byte()?;
        let mut back = usize::from(byte & 127);
        while byte & 128 != 0 {
            byte = self.byte()?;
            back = back
                .checked_add(1)
                .and_then(|b| b.checked_mul(128))
                .ok_or_else(broken)?;
            back |= usize::from(byte & 127);
        }
        offset.checked_sub(back).ok_or_else(broken)
    }

    fn inflate(&mut self, size: u64) -> Result<Vec<u8>, RepositoryError> {
        let size = usize::try_from(size).map_err(|_too_big| broken())?;
        // One byte more than it may have: a stream that is longer shows, and an empty one still ends.
        let mut out = vec![0; size + 1];
        let (status, read, written) = Inflate::default()
            .once(&self.pack[self.at..], &mut out)
            .map_err(|_bad_stream| broken())?;
        if status != Status::StreamEnd || written != size {
            return Err(broken());
        }
        self.at += read;
        out.truncate(size);
        Ok(out)
    }
}

fn broken() -> RepositoryError {
    refused(BadObject, "the pack is broken")
}

/// Apply git's copy-and-insert instructions.
fn apply(base: &[u8], delta: &[u8], limit: u64) -> Result<Vec<u8>, RepositoryError> {
    let mut bytes = delta.iter().copied();
    let (from, to) = (varint(&mut bytes)?, varint(&mut bytes)?);
    if from != base.len() as u64 {
        return Err(broken());
    }
    if to > limit {
        return Err(refused(
            TooLarge,
            format!("an object has {to} bytes, more than {limit}"),
        ));
    }
    let mut out = Vec::new();
    while let Some(op) = bytes.next() {
        if op & 128 == 0 {
            let count = usize::from(op);
            let before = out.len();
            out.extend(bytes.by_ref().take(count));
            if count == 0 || out.len() - before != count {
                return Err(broken());
            }
        } else {
            let mut field = |bits: std::ops::Range<u8>| -> Result<usize, RepositoryError> {
                let mut value = 0;
                for (n, bit) in bits.enumerate() {
                    if op & (1 << bit) != 0 {
                        value |= usize::from(bytes.next().ok_or_else(broken)?) << (8 * n);
                    }
                }
                Ok(value)
            };
            let (offset, size) = (field(0..4)?, field(4..7)?);
            let size = if size == 0 { 0x1_0000 } else { size };
            out.extend_from_slice(base.get(offset..offset + size).ok_or_else(broken)?);
        }
        if out.len() as u64 > to {
            return Err(broken());
        }
    }
    if out.len() as u64 == to {
        Ok(out)
    } else {
        Err(broken())
    }
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> Result<u64, RepositoryError> {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = bytes.next().ok_or_else(broken)?;
        value |= u64::from(byte & 127)
            .checked_shl(shift)
            .ok_or_else(broken)?;
        if byte & 128 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}
