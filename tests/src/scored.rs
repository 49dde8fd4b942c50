//! A patch taken through the rooms as far as its overlay, the way the pipeline does.

use crate::Repo;
use crate::case::Materialized;
use crate::world::World;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use tribunal_core::classify::classify;
use tribunal_core::git::{Change, Relation};
use tribunal_core::plan::{Course, Plan};
use tribunal_core::policy::Policy;
use tribunal_core::request::Role;
use tribunal_server::overlay::{self, SealedOverlay};
use tribunal_server::repository::diff::DiffLimits;
use tribunal_server::repository::resolve::resolve;
use tribunal_server::repository::{RepositoryError, UploadLimits, Viewer};

/// How far a patch came.
#[derive(Debug)]
pub enum Outcome {
    Refused(String),
    Planned(Plan),
}

/// A patch and what became of it.
pub struct Scored {
    pub outcome: Outcome,
    pub changes: Vec<Change>,
    pub relation: Option<Relation>,
    overlay: Option<SealedOverlay>,
    workspace: Option<(Repo, String)>,
    world: World,
}

impl Scored {
    /// Upload what the mirror lacks, then resolve, classify, plan and build.
    pub fn of(case: Materialized, role: Role) -> Self {
        let mut scored = Self::of_commits(&case.workspace, &case.base, &case.head, role);
        scored.workspace = Some((case.workspace, case.head));
        scored
    }

    pub fn of_commits(repo: &Repo, base: &str, head: &str, role: Role) -> Self {
        let world = World::on_disk();
        world.publish(repo, base);
        let viewer = match role {
            Role::Agent => world.agent("a"),
            Role::Ci => world.ci("a"),
            Role::Maintainer | Role::Operator => world.maintainer("a"),
        };
        let mut scored = Self {
            outcome: Outcome::Refused("nothing happened".to_owned()),
            changes: Vec::new(),
            relation: None,
            overlay: None,
            workspace: None,
            world,
        };
        scored.outcome = match scored.walk(repo, &viewer, base, head) {
            Ok(plan) => Outcome::Planned(plan),
            Err(RepositoryError::Refused(refused)) => Outcome::Refused(refused.to_string()),
            Err(RepositoryError::Aborted(aborted)) => panic!("{aborted}"),
        };
        scored
    }

    fn walk(
        &mut self,
        repo: &Repo,
        viewer: &Viewer,
        base: &str,
        head: &str,
    ) -> Result<Plan, RepositoryError> {
        let room = Arc::clone(&self.world.repository);
        let name = self.world.name.clone();
        let bundle = repo.bundle(head, &[base]);
        room.ingest(&name, viewer, &mut &bundle[..], &UploadLimits::default())?;
        let resolved = resolve(&*room, &name, viewer, &head.parse().unwrap(), None)?;
        self.relation = Some(resolved.commits().relation);
        let policy = match resolved.policy_bytes()? {
            Some(bytes) => Policy::parse(&bytes).unwrap(),
            None => Policy::default(),
        };
        let patch = resolved.patch(&DiffLimits::default())?;
        self.changes = patch.changes.clone();
        let plan = match Course::of(classify(patch, policy, viewer.role)?) {
            Course::Barred(barred) => {
                let oracle = resolved.base_oracle(barred.diff().policy())?;
                Plan::Decided(Box::new(barred.decide(oracle)))
            }
            Course::Open(open) => {
                let (oracle, src) = resolved.facts(&open)?;
                open.admit(oracle, src)?
            }
        };
        if let Plan::Run(plan) = &plan {
            let objects = Arc::clone(resolved.objects());
            self.overlay = Some(overlay::build(objects, plan).unwrap());
        }
        Ok(plan)
    }

    pub fn overlay(&self) -> &SealedOverlay {
        match &self.overlay {
            Some(overlay) => overlay,
            None => panic!("{:?}", self.outcome),
        }
    }

    pub fn src_tar(&self) -> Tar {
        Tar::read(&self.overlay().src_tar())
    }

    pub fn tree_tar(&self) -> Tar {
        let mut bytes = Vec::new();
        let tree = self.overlay().tree("image");
        (tree.tar)().unwrap().read_to_end(&mut bytes).unwrap();
        Tar::read(&bytes)
    }

    /// What git itself says is below this folder of head.
    pub fn ls_tree(&self, folder: &str) -> Vec<File> {
        let (repo, head) = self.workspace.as_ref().unwrap();
        ls_tree(repo.path(), head, folder)
    }
}

/// Path, executable or link or plain, content.
pub type File = (Vec<u8>, &'static str, Vec<u8>);

/// Files and links below a folder of a commit, as git lists them: raw names, raw bytes.
#[must_use]
pub fn ls_tree(repo: &std::path::Path, commit: &str, folder: &str) -> Vec<File> {
    let mut command = crate::repo::git(repo);
    command.args(["ls-tree", "-r", "-z", "--full-tree", commit]);
    if !folder.is_empty() {
        command.args(["--", folder]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "git ls-tree {commit}");
    let mut leaves = Vec::new();
    for line in output
        .stdout
        .split(|b| *b == 0)
        .filter(|line| !line.is_empty())
    {
        let tab = line.iter().position(|b| *b == b'\t').unwrap();
        let head = String::from_utf8(line[..tab].to_vec()).unwrap();
        let fields: Vec<_> = head.split(' ').collect();
        let kind = match fields[0] {
            "100755" => "executable",
            "120000" => "link",
            _ => "file",
        };
        leaves.push((line[tab + 1..].to_vec(), kind, fields[2].to_owned()));
    }
    let ids: Vec<_> = leaves.iter().map(|(.., id)| id.as_str()).collect();
    let contents = blobs(repo, &ids);
    let mut files: Vec<File> = leaves
        .into_iter()
        .zip(contents)
        .map(|((path, kind, _), content)| (path, kind, content))
        .collect();
    files.sort();
    files
}

/// The contents of these blobs.
fn blobs(repo: &std::path::Path, ids: &[&str]) -> Vec<Vec<u8>> {
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), ids.join("\n") + "\n").unwrap();
    let output = crate::repo::git(repo)
        .args(["cat-file", "--batch"])
        .stdin(std::fs::File::open(list.path()).unwrap())
        .output()
        .unwrap();
    let mut rest = output.stdout.as_slice();
    let mut contents = Vec::new();
    for _ in ids {
        let end = rest.iter().position(|b| *b == b'\n').unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let size: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
        contents.push(rest[end + 1..end + 1 + size].to_vec());
        rest = &rest[end + 2 + size..];
    }
    contents
}

/// A tar as a reader sees it.
#[derive(Debug)]
pub struct Tar {
    entries: BTreeMap<Vec<u8>, (&'static str, Vec<u8>)>,
    pub order: Vec<Vec<u8>>,
    /// Entries that belong to the oracle's group and are closed to everybody else, with their modes.
    pub closed: BTreeMap<String, u32>,
}

impl Tar {
    pub fn read(bytes: &[u8]) -> Self {
        let mut entries = BTreeMap::new();
        let mut order = Vec::new();
        let mut closed = BTreeMap::new();
        for entry in tar::Archive::new(bytes).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path_bytes().into_owned();
            let header = entry.header();
            assert_eq!(header.uid().unwrap(), 0);
            let mode = match (header.gid().unwrap(), header.mode().unwrap()) {
                (0, mode) => mode,
                (990, mode) => {
                    closed.insert(String::from_utf8_lossy(&path).into_owned(), mode);
                    assert!([0, 1].contains(&(mode & 0o7)), "{mode:o}");
                    mode | (mode & 0o050) >> 3
                }
                other => panic!("{other:?}"),
            };
            let kind = header.entry_type();
            let kind = if kind.is_dir() {
                "directory"
            } else if kind.is_symlink() {
                "link"
            } else {
                assert!(kind.is_file(), "{kind:?}");
                assert!([0o755, 0o644].contains(&mode), "{mode:o}");
                if mode == 0o755 { "executable" } else { "file" }
            };
            if kind == "directory" {
                assert!(path.ends_with(b"/"));
                assert_eq!(mode, 0o755);
            }
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            if let Some(target) = entry.link_name_bytes() {
                content = target.into_owned();
            }
            order.push(path.clone());
            let before = entries.insert(path, (kind, content));
            assert!(before.is_none(), "an entry stands there twice");
        }
        Self {
            entries,
            order,
            closed,
        }
    }

    pub fn has(&self, path: &str) -> bool {
        self.entries.contains_key(path.as_bytes())
    }

    pub fn get(&self, path: &str) -> Option<(&'static str, &[u8])> {
        let entry = self.entries.get(path.as_bytes());
        entry.map(|(kind, content)| (*kind, content.as_slice()))
    }

    /// Everything but directories, by path.
    pub fn files(&self) -> Vec<File> {
        let entries = self.entries.iter();
        entries
            .filter(|(_, (kind, _))| *kind != "directory")
            .map(|(path, (kind, content))| (path.clone(), *kind, content.clone()))
            .collect()
    }
}
