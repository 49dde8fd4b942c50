//! A checkout and the commit it is compared with become the facts that core judges.
//!
//! As the server sees a patch: what the checkout changed since it branched is laid over base, so that a branch which is
//! merely behind brings and loses nothing. Reads only; what is not committed yet counts as if it were.

use crate::checkout::{policy_in, read};
use crate::failure::Failure;
use crate::workspace::Workspace;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tribunal_core::cassette::{Cassette, CassetteFacts, Kind, Leaf, Shelf};
use tribunal_core::git::GitPath;
use tribunal_core::id::CommitId;
use tribunal_core::policy::{POLICY_PATH, Paths, Policy};
use tribunal_core::text::shown;

/// Who may accept.
const SIGNERS: &str = "ci/allowed_signers";
/// Where base is looked for when nobody says.
const USUAL: [&str; 5] = [
    "origin/HEAD",
    "origin/main",
    "origin/master",
    "main",
    "master",
];

/// What a checkout without base is compared with.
const ITSELF: &str = "itself";

/// Leaves of class cassette, by path.
type Leaves = BTreeMap<GitPath, Leaf>;

/// Both sides, ready to be judged.
pub(super) struct Shelves {
    /// The policy that judges: base's.
    pub(super) policy: Policy,
    /// Both sides.
    pub(super) facts: CassetteFacts,
    /// What the checkout was compared with, for people.
    pub(super) against: String,
    /// The root of the checkout.
    pub(super) top: PathBuf,
}

impl Shelves {
    /// Read the checkout that `dir` is in, and base.
    pub(super) fn read(dir: &Path, base: Option<&str>) -> Result<Self, Failure> {
        match Workspace::discover(dir)? {
            Some(workspace) => Self::of_workspace(&workspace, base),
            None if base.is_none() => Self::of_folder(dir),
            None => Err(Failure::usage(
                "find base",
                format!(
                    "{} is in no git repository",
                    shown(&dir.to_string_lossy(), 300)
                ),
                "leave out --base, or run this in a checkout",
            )),
        }
    }

    /// Whether there is no base.
    pub(super) fn is_alone(&self) -> bool {
        self.against == ITSELF
    }

    /// How many records the checkout has.
    pub(super) fn records(&self) -> usize {
        let paths = self.facts.head.files.keys();
        paths
            .filter(|path| Kind::of(&self.policy.paths, path) == Some(Kind::Record))
            .count()
    }

    fn of_workspace(workspace: &Workspace, base: Option<&str>) -> Result<Self, Failure> {
        let top = workspace.top().ok_or_else(|| {
            Failure::usage(
                "read the cassettes",
                "a bare repository has no work tree",
                "run this in a checkout",
            )
        })?;
        let Some((name, base)) = base_of(workspace, base)? else {
            return Self::of_folder(top);
        };
        let policy = policy_of(workspace, &base)?;
        let listed = workspace.paths()?;
        let now = in_folder(top, &policy.paths, listed.iter().map(Vec::as_slice))?;
        let before = in_commit(workspace, &base, &policy.paths)?;
        let mut forks = Vec::new();
        if let Ok(head) = workspace.commit("HEAD") {
            for fork in workspace.merge_bases(&base, &head)? {
                forks.push(in_commit(workspace, &fork, &policy.paths)?);
            }
        }
        let head = merged(&before, &now, &forks);
        let signers = workspace
            .blobs(&base, &[SIGNERS])?
            .into_iter()
            .find_map(|blob| blob.bytes);
        Ok(Self {
            facts: facts(&policy.paths, top, &before, &head, signers)?,
            policy,
            against: format!("{name} ({base})"),
            top: top.to_owned(),
        })
    }

    /// A folder with nothing to compare it with: judged by itself.
    fn of_folder(top: &Path) -> Result<Self, Failure> {
        let policy = policy_in(top)?;
        let mut listed = Vec::new();
        walk(top, &top.join(&policy.paths.cassettes), &mut listed)?;
        listed.push(policy.paths.ledger.as_str().as_bytes().to_vec());
        let now = in_folder(top, &policy.paths, listed.iter().map(Vec::as_slice))?;
        let signers = read(&top.join(SIGNERS))?;
        Ok(Self {
            facts: facts(&policy.paths, top, &now, &now, signers)?,
            policy,
            against: ITSELF.to_owned(),
            top: top.to_owned(),
        })
    }
}

fn base_of(
    workspace: &Workspace,
    wanted: Option<&str>,
) -> Result<Option<(String, CommitId)>, Failure> {
    if let Some(wanted) = wanted {
        return Ok(Some((shown(wanted, 100), workspace.commit(wanted)?)));
    }
    let found = USUAL
        .iter()
        .find_map(|name| Some((*name, workspace.commit(name).ok()?)));
    Ok(found.map(|(name, commit)| (name.to_owned(), commit)))
}

fn policy_of(workspace: &Workspace, base: &CommitId) -> Result<Policy, Failure> {
    let found = workspace
        .blobs(base, &[POLICY_PATH])?
        .into_iter()
        .find_map(|blob| blob.bytes);
    match found {
        None => Ok(Policy::default()),
        Some(bytes) => Policy::parse(&bytes).map_err(|e| {
            Failure::usage(
                format!("read base's {POLICY_PATH}"),
                e,
                "mend what is listed",
            )
        }),
    }
}

fn in_commit(workspace: &Workspace, commit: &CommitId, paths: &Paths) -> Result<Leaves, Failure> {
    let blobs = workspace.blobs(commit, &[&paths.cassettes, paths.ledger.as_str()])?;
    let leaves = blobs.into_iter().map(|blob| {
        (
            GitPath::new(blob.path),
            blob.bytes.map_or(Leaf::NoFile, Leaf::of),
        )
    });
    Ok(leaves
        .filter(|(path, _)| Kind::of(paths, path).is_some())
        .collect())
}

fn in_folder<'a>(
    top: &Path,
    paths: &Paths,
    listed: impl Iterator<Item = &'a [u8]>,
) -> Result<Leaves, Failure> {
    let mut leaves = Leaves::new();
    for path in listed {
        let name = GitPath::new(path);
        if Kind::of(paths, &name).is_none() {
            continue;
        }
        let at = top.join(Path::new(std::ffi::OsStr::from_bytes(path)));
        let Ok(meta) = at.symlink_metadata() else {
            continue;
        };
        let leaf = if meta.is_file() {
            read(&at)?.map(Leaf::of)
        } else {
            Some(Leaf::NoFile)
        };
        leaves.extend(leaf.map(|leaf| (name, leaf)));
    }
    Ok(leaves)
}

/// Base with the changes of the checkout laid over it: what differs from base, and from where the branch began.
fn merged(base: &Leaves, now: &Leaves, forks: &[Leaves]) -> Leaves {
    let mut merged = base.clone();
    let paths: BTreeSet<&GitPath> = base.keys().chain(now.keys()).collect();
    for path in paths {
        let here = now.get(path);
        let changed = forks.is_empty() || forks.iter().any(|fork| fork.get(path) != here);
        if here == base.get(path) || !changed {
            continue;
        }
        match here {
            Some(leaf) => merged.insert(path.clone(), leaf.clone()),
            None => merged.remove(path),
        };
    }
    merged
}

fn facts(
    paths: &Paths,
    top: &Path,
    base: &Leaves,
    head: &Leaves,
    signers: Option<Vec<u8>>,
) -> Result<CassetteFacts, Failure> {
    let mut tests = BTreeMap::new();
    for (path, leaf) in head {
        let record = (Kind::of(paths, path) == Some(Kind::Record))
            .then(|| leaf.bytes())
            .flatten();
        let Some(cassette) = record.and_then(|bytes| Cassette::parse(bytes).ok()) else {
            continue;
        };
        let at = top.join(cassette.file());
        if at.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            tests.extend(read(&at)?.map(|text| (cassette.file().to_owned(), text)));
        }
    }
    Ok(CassetteFacts {
        base: shelf(paths, base),
        head: shelf(paths, head),
        signers,
        tests,
    })
}

fn shelf(paths: &Paths, leaves: &Leaves) -> Shelf {
    let mut shelf = Shelf::default();
    for (path, leaf) in leaves {
        match Kind::of(paths, path) {
            Some(Kind::Ledger) => shelf.ledger = Some(leaf.clone()),
            Some(Kind::Record | Kind::Body(_) | Kind::Stray) => {
                shelf.files.insert(path.clone(), leaf.clone());
            }
            Some(Kind::Other) | None => {}
        }
    }
    shelf
}

/// Every file below a folder, by its path from `top`; nothing where the folder is not there.
fn walk(top: &Path, folder: &Path, found: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
    let Ok(entries) = folder.read_dir() else {
        return Ok(());
    };
    for entry in entries {
        let entry =
            entry.map_err(|e| Failure::usage("read the cassettes", e, "make them readable"))?;
        let path = entry.path();
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            walk(top, &path, found)?;
        } else if let Ok(name) = path.strip_prefix(top) {
            found.push(name.as_os_str().as_bytes().to_vec());
        }
    }
    Ok(())
}
