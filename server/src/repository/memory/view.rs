//! Reading shelves of objects as one set.

use super::super::objects::{full_id, message_of, mode_of, ours, too_large};
use super::super::{Merged, Objects, RepositoryError, TreeEntry, internal, refused};
use super::Shelf;
use gix::ObjectId as GitId;
use gix::hash::Kind as Format;
use gix::objs::{CommitRefIter, Kind, TreeRefIter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tribunal_core::git::{Commit, Relation};
use tribunal_core::id::{CommitId, Digest, ObjectId, TreeId};
use tribunal_core::reason::RefusedCode::{NotACommit, UnknownCommit};

/// What one viewer may see.
pub(super) struct View {
    shelves: Vec<Arc<Shelf>>,
    pub(super) format: Format,
    /// What a merge made.
    made: Mutex<Shelf>,
}

impl View {
    pub(super) fn new(shelves: Vec<Arc<Shelf>>, format: Format) -> Self {
        Self {
            shelves,
            format,
            made: Mutex::new(Shelf::new()),
        }
    }

    fn find(&self, id: &str) -> Option<(Kind, Vec<u8>)> {
        let id = full_id(id, self.format)?;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.shelves.iter().find_map(|shelf| shelf.get(&id));
        kept.or_else(|| made.get(&id)).cloned()
    }

    fn need(&self, id: &str, wanted: Kind) -> Result<Vec<u8>, RepositoryError> {
        match self.find(id) {
            Some((kind, bytes)) if kind == wanted => Ok(bytes),
            Some((kind, _)) => Err(internal(format!("{id} is a {kind}, not a {wanted}"))),
            None => Err(internal(format!("the {wanted} {id} is not here"))),
        }
    }

    pub(super) fn write(&self, kind: Kind, bytes: Vec<u8>) -> Result<GitId, RepositoryError> {
        let id = gix::objs::compute_hash(self.format, kind, &bytes)
            .map_err(|error| internal(error.to_string()))?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.insert(id, (kind, bytes));
        Ok(id)
    }

    /// Each commit of a history with its whole history: slow, and right by definition.
    fn ancestors(&self, id: &CommitId) -> Result<BTreeSet<CommitId>, RepositoryError> {
        let mut seen = BTreeSet::new();
        let mut left = vec![id.clone()];
        while let Some(id) = left.pop() {
            if seen.insert(id.clone()) {
                left.extend(self.commit(&id)?.1);
            }
        }
        Ok(seen)
    }
}

impl View {
    fn named(&self, id: &CommitId) -> Result<Vec<u8>, RepositoryError> {
        match self.find(id.as_str()) {
            Some((Kind::Commit, bytes)) => Ok(bytes),
            Some((kind, _)) => Err(refused(NotACommit, format!("{id} is a {kind}"))),
            None => Err(refused(
                UnknownCommit,
                format!("there is no commit {id} here"),
            )),
        }
    }
}

impl Objects for View {
    fn commit(&self, id: &CommitId) -> Result<(Commit, Vec<CommitId>), RepositoryError> {
        let bytes = self.named(id)?;
        let tree = CommitRefIter::from_bytes(&bytes, self.format).tree_id();
        let tree = tree.map_err(|error| internal(error.to_string()))?;
        let parents = CommitRefIter::from_bytes(&bytes, self.format).parent_ids();
        let commit = Commit {
            id: id.clone(),
            tree: ours(tree)?,
            sha256: Digest::of(&bytes),
        };
        Ok((commit, parents.map(ours).collect::<Result<_, _>>()?))
    }

    fn message(&self, id: &CommitId) -> Result<Vec<u8>, RepositoryError> {
        Ok(message_of(&self.named(id)?))
    }

    fn merge_bases(&self, a: &CommitId, b: &CommitId) -> Result<Vec<CommitId>, RepositoryError> {
        let left = self.ancestors(a)?;
        let right = self.ancestors(b)?;
        let mut histories = BTreeMap::new();
        for id in left.intersection(&right) {
            histories.insert(id.clone(), self.ancestors(id)?);
        }
        let behind = |id: &CommitId| {
            let mut others = histories.iter().filter(|(other, _)| *other != id);
            others.any(|(_, history)| history.contains(id))
        };
        Ok(histories.keys().filter(|id| !behind(id)).cloned().collect())
    }

    fn relation(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<Relation, RepositoryError> {
        Ok(if self.ancestors(descendant)?.contains(ancestor) {
            Relation::Contains
        } else {
            Relation::Behind
        })
    }

    fn tree(&self, id: &TreeId) -> Result<Vec<TreeEntry>, RepositoryError> {
        let bytes = self.need(id.as_str(), Kind::Tree)?;
        TreeRefIter::from_bytes(&bytes, self.format)
            .map(|entry| {
                let entry = entry.map_err(|error| internal(error.to_string()))?;
                Ok(TreeEntry {
                    name: entry.filename.to_vec(),
                    mode: mode_of(entry.mode),
                    id: ours(entry.oid.to_owned())?,
                })
            })
            .collect()
    }

    fn blob(&self, id: &ObjectId, limit: u64) -> Result<Vec<u8>, RepositoryError> {
        let bytes = self.need(id.as_str(), Kind::Blob)?;
        if bytes.len() as u64 > limit {
            return Err(too_large(id, bytes.len() as u64, limit));
        }
        Ok(bytes)
    }

    fn blob_size(&self, id: &ObjectId) -> Result<u64, RepositoryError> {
        Ok(self.need(id.as_str(), Kind::Blob)?.len() as u64)
    }

    fn merge(&self, base: &CommitId, head: &CommitId) -> Result<Merged, RepositoryError> {
        super::merge::merge(self, base, head)
    }
}
