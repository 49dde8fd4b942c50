//! The other implementation of the seam: everything in memory, no git, no disk.
//!
//! For tests of other rooms, and to keep the seam honest: both pass one conformance suite. It is fed with real bundles
//! and decodes their packs itself. Where git knows better (fsck in full, renames, merges of one file in many places) it
//! refuses rather than guess.

mod fsck;
mod merge;
mod pack;
mod view;

use super::bundle::{BundleHead, Flow, Metered, read_head};
use super::objects::ours;
use super::{Objects, ProtectedTip, Repository, RepositoryError, UploadLimits, Viewer, refused};
use gix::ObjectId;
use gix::hash::Kind as Format;
use gix::objs::{CommitRefIter, Kind, TreeRefIter};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tribunal_core::id::{CommitId, RepoName, TokenId};
use tribunal_core::reason::RefusedCode::{
    BadObject, InvalidArgument, MissingPrerequisite, NotACommit, TooLarge, UnknownRepository,
    UploadIncomplete,
};
use tribunal_core::request::Role;
use view::View;

/// An object as it is hashed, without its header.
type Object = (Kind, Vec<u8>);
/// Objects by id.
type Shelf = HashMap<ObjectId, Object>;
/// Looks an object up.
type Find<'a> = dyn Fn(&ObjectId) -> Option<&'a Object> + 'a;

/// Mirrors and uploads in memory.
#[derive(Debug, Default)]
pub struct MemoryRepository {
    all: Mutex<BTreeMap<RepoName, Mirror>>,
}

#[derive(Debug)]
struct Mirror {
    branch: String,
    tip: ObjectId,
    format: Format,
    objects: Arc<Shelf>,
    sent: BTreeMap<TokenId, Arc<Shelf>>,
}

impl MemoryRepository {
    /// One without repositories.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Register a repository, or move its protected branch: `bundle` holds what is new, and its one tip is where the
    /// branch is now.
    ///
    /// # Errors
    /// Whatever would refuse an upload.
    pub fn push(
        &self,
        name: &RepoName,
        branch: &str,
        bundle: &mut dyn Read,
    ) -> Result<ProtectedTip, RepositoryError> {
        let mut all = self.all();
        let known = all.get(name).map(|mirror| Arc::clone(&mirror.objects));
        let known: Vec<_> = known.into_iter().collect();
        let limits = UploadLimits::default();
        let (head, mut objects) = take(bundle, &known, None, &limits)?;
        let [tip] = head.tips[..] else {
            return Err(refused(InvalidArgument, "a protected branch has one tip"));
        };
        for shelf in known {
            objects.extend(shelf.iter().map(|(id, object)| (*id, object.clone())));
        }
        let sent = all.remove(name).map(|mirror| mirror.sent);
        let mirror = Mirror {
            branch: format!("refs/heads/{branch}"),
            tip,
            format: head.format,
            objects: Arc::new(objects),
            sent: sent.unwrap_or_default(),
        };
        let tip = mirror.tip()?;
        all.insert(name.clone(), mirror);
        Ok(tip)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<RepoName, Mirror>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mirror {
    fn tip(&self) -> Result<ProtectedTip, RepositoryError> {
        Ok(ProtectedTip {
            name: self.branch.clone(),
            commit: ours(self.tip)?,
        })
    }
}

fn unknown(name: &RepoName) -> RepositoryError {
    refused(
        UnknownRepository,
        format!("no repository {name} is registered"),
    )
}

impl Repository for MemoryRepository {
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.all().get(repo).ok_or_else(|| unknown(repo))?.tip()
    }

    fn last_tip(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.refresh(repo)
    }

    fn open(&self, repo: &RepoName, viewer: &Viewer) -> Result<Arc<dyn Objects>, RepositoryError> {
        let all = self.all();
        let mirror = all.get(repo).ok_or_else(|| unknown(repo))?;
        let sees = |token: &TokenId| match viewer.role {
            Role::Agent => *token == viewer.token,
            Role::Ci | Role::Maintainer | Role::Operator => true,
        };
        let sent = mirror.sent.iter().filter(|(token, _)| sees(token));
        let shelves = sent.map(|(_, shelf)| Arc::clone(shelf));
        let shelves = shelves.chain([Arc::clone(&mirror.objects)]).collect();
        Ok(Arc::new(View::new(shelves, mirror.format)))
    }

    fn list(&self) -> Result<Vec<RepoName>, RepositoryError> {
        Ok(self.all().keys().cloned().collect())
    }

    fn ingest(
        &self,
        repo: &RepoName,
        viewer: &Viewer,
        bundle: &mut dyn Read,
        limits: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError> {
        let mut all = self.all();
        let mirror = all.get_mut(repo).ok_or_else(|| unknown(repo))?;
        let own = mirror.sent.get(&viewer.token).cloned();
        let known = [vec![Arc::clone(&mirror.objects)], own.into_iter().collect()].concat();
        let (head, objects) = take(bundle, &known, Some(mirror.format), limits)?;
        let sent = mirror.sent.entry(viewer.token.clone()).or_default();
        Arc::make_mut(sent).extend(objects);
        head.tips.into_iter().map(ours).collect()
    }
}

/// Read a bundle whole and check it; nothing is kept here.
fn take(
    bundle: &mut dyn Read,
    known: &[Arc<Shelf>],
    format: Option<Format>,
    limits: &UploadLimits,
) -> Result<(BundleHead, Shelf), RepositoryError> {
    let mut metered = Metered::new(bundle, limits.bytes);
    let read = read_head(&mut metered).map(|head| {
        let mut pack = head.pack_start.to_vec();
        let whole = metered.read_to_end(&mut pack);
        (head, pack, whole)
    });
    let (head, pack) = match (metered.state(), read) {
        (Flow::OverLimit, _) => return Err(refused(TooLarge, "the bundle is too long")),
        (Flow::Broken, _) | (Flow::Fine, Ok((_, _, Err(_)))) => {
            return Err(refused(UploadIncomplete, "the upload broke off"));
        }
        (Flow::Fine, Err(error)) => return Err(error),
        (Flow::Fine, Ok((head, pack, Ok(_)))) => (head, pack),
    };
    if format.is_some_and(|format| format != head.format) {
        return Err(refused(
            InvalidArgument,
            "the bundle's ids are of another format",
        ));
    }
    if u64::from(head.objects) > limits.objects {
        return Err(refused(TooLarge, "the bundle holds too many objects"));
    }
    let find = |id: &ObjectId| known.iter().find_map(|shelf| shelf.get(id));
    for id in &head.prerequisites {
        if find(id).is_none_or(|(kind, _)| *kind != Kind::Commit) {
            let message = format!("the bundle builds on {id}, which is not here");
            return Err(refused(MissingPrerequisite, message));
        }
    }
    let objects = pack::decode(&pack, &head, limits, &find)?;
    for (id, (kind, bytes)) in &objects {
        fsck::check(id, *kind, bytes, head.format)?;
    }
    let all = |id: &ObjectId| objects.get(id).or_else(|| find(id));
    for id in &head.tips {
        match all(id) {
            Some((Kind::Commit, _)) => {}
            Some((kind, _)) => {
                return Err(refused(
                    NotACommit,
                    format!("the bundle names {id}, a {kind}"),
                ));
            }
            None => return Err(refused(BadObject, format!("the bundle does not hold {id}"))),
        }
    }
    check_reachable(&head, &all)?;
    Ok((head, objects))
}

/// Everything that the tips reach is there.
fn check_reachable<'a>(head: &BundleHead, find: &Find<'a>) -> Result<(), RepositoryError> {
    let mut left = head.tips.clone();
    let mut seen = HashSet::new();
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Some((kind, bytes)) = find(&id) else {
            let message = format!("the bundle's history is not whole: {id} is missing");
            return Err(refused(MissingPrerequisite, message));
        };
        match kind {
            Kind::Commit => {
                left.extend(CommitRefIter::from_bytes(bytes, head.format).tree_id().ok());
                left.extend(CommitRefIter::from_bytes(bytes, head.format).parent_ids());
            }
            Kind::Tree => {
                let entries = TreeRefIter::from_bytes(bytes, head.format).filter_map(Result::ok);
                left.extend(
                    entries
                        .filter(|e| !e.mode.is_commit())
                        .map(|e| e.oid.to_owned()),
                );
            }
            Kind::Blob | Kind::Tag => {}
        }
    }
    Ok(())
}
