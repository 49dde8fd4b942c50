//! Reading a mirror and the uploads in view with gix, as one set of objects.
//!
//! A view is an empty object directory of its own that borrows from the mirror and from what its viewer may see; what a
//! merge makes is written into it and goes with it. Full ids only. No ref is followed, no replacement, no graft, no
//! attribute; a tag object is not the commit it points to.

use super::git::{RepositorySettings, write_alternates};
use super::history::{Step, merge_bases};
use super::ingest::index_bytes;
use super::mirror::Mirror;
use super::scratch::Scratch;
use super::{Merged, Objects, RepositoryError, TreeEntry, disk, internal, merge, refused};
use gix::hash::Kind as Format;
use gix::objs::{CommitRefIter, Find, Kind, TreeRefIter};
use gix::odb::{HandleArc, Header as _, Store};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tribunal_core::git::{Commit, Mode, Relation};
use tribunal_core::id::{CommitId, Digest, ObjectId, TreeId};
use tribunal_core::reason::RefusedCode::{NotACommit, TooLarge, UnknownCommit};

/// A directory with more entries than this many bytes spell is not unfolded.
const TREE_BYTES: u64 = 16 << 20;
/// A commit says no more than this.
const COMMIT_BYTES: u64 = 4 << 20;

/// The objects one viewer may see.
pub(super) struct GitObjects {
    reader: Mutex<HandleArc>,
    format: Format,
    mirror: PathBuf,
    view: Scratch,
    borrowed: Vec<PathBuf>,
    settings: RepositorySettings,
}

impl GitObjects {
    /// Open a view of the mirror and of these further object directories.
    pub(super) fn open(
        settings: &RepositorySettings,
        mirror: &Mirror<'_>,
        view: Scratch,
        visible: &[PathBuf],
    ) -> Result<Self, RepositoryError> {
        let format = mirror.format()?;
        let borrowed = [&[mirror.objects()], visible].concat();
        let own = own_objects(&view);
        write_alternates(&own, &borrowed).map_err(|error| disk("make a view", &error))?;
        Ok(Self {
            reader: Mutex::new(reader(&own, format)?),
            format,
            mirror: mirror.directory().to_owned(),
            view,
            borrowed,
            settings: settings.clone(),
        })
    }

    /// The object's kind and bytes; `None` where it is absent.
    fn read(&self, id: &str, limit: u64) -> Result<Option<(Kind, Vec<u8>)>, RepositoryError> {
        let Some(id) = full_id(id, self.format) else {
            return Ok(None);
        };
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(header) = reader.try_header(&id).map_err(|e| unreadable(&id, &e))? else {
            return Ok(None);
        };
        if header.size() > limit {
            return Err(too_large(&id, header.size(), limit));
        }
        let mut bytes = Vec::new();
        let kind = reader
            .try_find(&id, &mut bytes)
            .map_err(|e| unreadable(&id, &e))?;
        let Some(kind) = kind.map(|data| data.kind) else {
            return Ok(None);
        };
        Ok(Some((kind, bytes)))
    }

    /// What stands at an id that a commit of a checked history needs: its absence is our trouble, not the request's.
    fn need(&self, id: &str, kind: Kind, limit: u64) -> Result<Vec<u8>, RepositoryError> {
        match self.read(id, limit)? {
            Some((found, bytes)) if found == kind => Ok(bytes),
            Some((found, _)) => Err(internal(format!(
                "{id} is a {found} where a {kind} belongs"
            ))),
            None => Err(internal(format!(
                "the {kind} {id} is not here any more; send the commits again"
            ))),
        }
    }

    fn step(&self, id: &gix::ObjectId) -> Result<Step<gix::ObjectId>, RepositoryError> {
        let bytes = self.need(&id.to_string(), Kind::Commit, COMMIT_BYTES)?;
        let parents = CommitRefIter::from_bytes(&bytes, self.format).parent_ids();
        // The date only steers the walk: one that does not parse is as good as none.
        let time = CommitRefIter::from_bytes(&bytes, self.format)
            .committer()
            .ok()
            .and_then(|committer| committer.time().ok())
            .map_or(0, |time| time.seconds);
        Ok(Step {
            parents: parents.collect(),
            time,
        })
    }
}

impl GitObjects {
    /// A commit that somebody named.
    fn named(&self, id: &CommitId) -> Result<Vec<u8>, RepositoryError> {
        match self.read(id.as_str(), COMMIT_BYTES)? {
            Some((Kind::Commit, bytes)) => Ok(bytes),
            Some((kind @ (Kind::Tree | Kind::Blob | Kind::Tag), _)) => {
                Err(refused(NotACommit, format!("{id} is a {kind}")))
            }
            None => Err(refused(
                UnknownCommit,
                format!("there is no commit {id} here"),
            )),
        }
    }
}

impl Objects for GitObjects {
    fn commit(&self, id: &CommitId) -> Result<(Commit, Vec<CommitId>), RepositoryError> {
        let bytes = self.named(id)?;
        let broken = |error: gix::Error| unreadable(id, &error);
        let mut fields = CommitRefIter::from_bytes(&bytes, self.format);
        let tree = ours(fields.tree_id().map_err(broken)?)?;
        let parents = CommitRefIter::from_bytes(&bytes, self.format).parent_ids();
        let commit = Commit {
            id: id.clone(),
            tree,
            sha256: Digest::of(&bytes),
        };
        Ok((commit, parents.map(ours).collect::<Result<_, _>>()?))
    }

    fn message(&self, id: &CommitId) -> Result<Vec<u8>, RepositoryError> {
        Ok(message_of(&self.named(id)?))
    }

    fn merge_bases(&self, a: &CommitId, b: &CommitId) -> Result<Vec<CommitId>, RepositoryError> {
        let (Some(left), Some(right)) = (
            full_id(a.as_str(), self.format),
            full_id(b.as_str(), self.format),
        ) else {
            return Err(refused(
                UnknownCommit,
                format!("there is no commit {a} or {b} here"),
            ));
        };
        let found = merge_bases(&left, &right, &mut |id| self.step(id))?;
        found.into_iter().map(ours).collect()
    }

    fn relation(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<Relation, RepositoryError> {
        let bases = self.merge_bases(ancestor, descendant)?;
        Ok(if bases == [ancestor.clone()] {
            Relation::Contains
        } else {
            Relation::Behind
        })
    }

    fn tree(&self, id: &TreeId) -> Result<Vec<TreeEntry>, RepositoryError> {
        let bytes = self.need(id.as_str(), Kind::Tree, TREE_BYTES)?;
        TreeRefIter::from_bytes(&bytes, self.format)
            .map(|entry| {
                let entry = entry.map_err(|error| unreadable(id, &error))?;
                Ok(TreeEntry {
                    name: entry.filename.to_vec(),
                    mode: mode_of(entry.mode),
                    id: ours(entry.oid.to_owned())?,
                })
            })
            .collect()
    }

    fn blob(&self, id: &ObjectId, limit: u64) -> Result<Vec<u8>, RepositoryError> {
        self.need(id.as_str(), Kind::Blob, limit)
    }

    fn blob_size(&self, id: &ObjectId) -> Result<u64, RepositoryError> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let header = match full_id(id.as_str(), self.format) {
            Some(full) => reader.try_header(&full).map_err(|e| unreadable(id, &e))?,
            None => None,
        };
        match header {
            Some(header) if header.kind() == Kind::Blob => Ok(header.size()),
            Some(header) => Err(internal(format!("{id} is a {}, not a blob", header.kind()))),
            None => Err(internal(format!(
                "the blob {id} is not here any more; send the commits again"
            ))),
        }
    }

    fn merge(&self, base: &CommitId, head: &CommitId) -> Result<Merged, RepositoryError> {
        let view = own_objects(&self.view);
        let index_bytes = index_bytes(&self.borrowed)?;
        let both = (base, head);
        let merged = merge::merge(&self.settings, &self.mirror, &view, index_bytes, both)?;
        // The merge wrote new objects; a reader that has looked already would not look again.
        let fresh = reader(&view, self.format)?;
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(merged)
    }
}

/// What stands below the empty line that ends a commit's fields; a field that goes on has a space in its empty lines.
pub(super) fn message_of(commit: &[u8]) -> Vec<u8> {
    let end = commit.windows(2).position(|two| two == b"\n\n");
    end.map_or_else(Vec::new, |end| commit[end + 2..].to_vec())
}

fn own_objects(view: &Scratch) -> PathBuf {
    view.path().join("objects")
}

/// A reader of one object directory and all it borrows from. No replacements are given to it.
pub(super) fn reader(directory: &Path, format: Format) -> Result<HandleArc, RepositoryError> {
    let store = Store::at_opts(
        directory.to_owned(),
        format,
        &mut std::iter::empty(),
        gix::odb::store::init::Options::default(),
    )
    .map_err(|error| disk("open the objects", &error))?;
    Ok(gix::odb::Cache::from(Arc::new(store).to_handle_arc()))
}

/// An id of this format; any other is an id of nothing here.
pub(super) fn full_id(id: &str, format: Format) -> Option<gix::ObjectId> {
    let parsed = gix::ObjectId::from_hex(id.as_bytes()).ok();
    parsed.filter(|id| id.kind() == format)
}

/// An id as core names it.
pub(super) fn ours<T>(id: gix::ObjectId) -> Result<T, RepositoryError>
where
    T: std::str::FromStr<Err = tribunal_core::id::IdError>,
{
    let text = id.to_string();
    text.parse()
        .map_err(|error: T::Err| internal(error.to_string()))
}

/// Modes as git reads them: of a file's permissions only the owner's x counts.
pub(super) fn mode_of(mode: gix::objs::tree::EntryMode) -> Mode {
    use gix::objs::tree::EntryKind;
    match mode.kind() {
        EntryKind::Blob => Mode::File,
        EntryKind::BlobExecutable => Mode::Executable,
        EntryKind::Link => Mode::Symlink,
        EntryKind::Commit => Mode::Gitlink,
        EntryKind::Tree => Mode::Tree,
    }
}

pub(super) fn too_large(id: &impl std::fmt::Display, size: u64, limit: u64) -> RepositoryError {
    refused(
        TooLarge,
        format!("object {id} has {size} bytes, more than {limit}"),
    )
}

fn unreadable(id: &impl std::fmt::Display, error: &gix::Error) -> RepositoryError {
    let why = tribunal_core::text::shown(&error.to_string(), 200);
    internal(format!("object {id} cannot be read: {why}"))
}
