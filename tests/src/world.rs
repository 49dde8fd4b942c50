//! A repository room with one registered repository, fed by a real one.

use crate::Repo;
use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tribunal_core::id::{CommitId, RepoName, TokenId};
use tribunal_core::request::Role;
use tribunal_server::repository::memory::MemoryRepository;
use tribunal_server::repository::{
    GitRepository, Objects, Repository, RepositoryError, RepositorySettings, UploadLimits, Viewer,
};

/// A room, and the means to move its protected branch.
pub struct World {
    pub repository: Arc<dyn Repository>,
    pub name: RepoName,
    kind: Kind,
}

enum Kind {
    OnDisk {
        room: Arc<GitRepository>,
        data: TempDir,
        origin: Mutex<Option<Repo>>,
    },
    InMemory(Arc<MemoryRepository>),
}

impl World {
    pub fn on_disk() -> Self {
        let data = tempfile::tempdir().unwrap();
        let settings = RepositorySettings::new(data.path());
        let room = Arc::new(GitRepository::open(settings).unwrap());
        Self {
            repository: Arc::clone(&room) as Arc<dyn Repository>,
            name: "product".parse().unwrap(),
            kind: Kind::OnDisk {
                room,
                data,
                origin: Mutex::new(None),
            },
        }
    }

    pub fn in_memory() -> Self {
        let room = Arc::new(MemoryRepository::new());
        Self {
            repository: Arc::clone(&room) as Arc<dyn Repository>,
            name: "product".parse().unwrap(),
            kind: Kind::InMemory(room),
        }
    }

    /// The room on disk and its data directory.
    pub fn disk(&self) -> (&GitRepository, &std::path::Path) {
        match &self.kind {
            Kind::OnDisk { room, data, .. } => (room, data.path()),
            Kind::InMemory(_) => panic!("this world is not on disk"),
        }
    }

    /// The protected branch is at this commit now.
    pub fn publish(&self, repo: &Repo, commit: &str) {
        match &self.kind {
            Kind::OnDisk { room, origin, .. } => {
                let mut origin = origin.lock().unwrap();
                match &*origin {
                    Some(origin) => {
                        let path = origin.path().to_str().unwrap();
                        repo.git(&["push", "-qf", path, &format!("{commit}:refs/heads/main")]);
                    }
                    None => {
                        let made = repo.origin_at(commit);
                        room.add(&self.name, made.path().to_str().unwrap(), "main")
                            .unwrap();
                        *origin = Some(made);
                    }
                }
            }
            Kind::InMemory(room) => {
                let bundle = repo.bundle(commit, &[]);
                room.push(&self.name, "main", &mut &bundle[..]).unwrap();
            }
        }
    }

    pub fn tip(&self) -> String {
        self.repository
            .refresh(&self.name)
            .unwrap()
            .commit
            .to_string()
    }

    pub fn agent(&self, token: &str) -> Viewer {
        viewer(token, Role::Agent)
    }
    pub fn maintainer(&self, token: &str) -> Viewer {
        viewer(token, Role::Maintainer)
    }
    pub fn ci(&self, token: &str) -> Viewer {
        viewer(token, Role::Ci)
    }

    /// Upload as this agent.
    pub fn send(&self, token: &str, bundle: &[u8]) -> Result<Vec<CommitId>, RepositoryError> {
        self.send_from(token, &mut &bundle[..], &UploadLimits::default())
    }

    pub fn send_from(
        &self,
        token: &str,
        bundle: &mut dyn Read,
        limits: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError> {
        let agent = self.agent(token);
        self.repository.ingest(&self.name, &agent, bundle, limits)
    }

    /// What this agent sees.
    pub fn open(&self, token: &str) -> Arc<dyn Objects> {
        self.open_as(self.agent(token))
    }

    pub fn open_as(&self, viewer: Viewer) -> Arc<dyn Objects> {
        self.repository.open(&self.name, &viewer).unwrap()
    }
}

fn viewer(token: &str, role: Role) -> Viewer {
    let token: TokenId = format!("{token:0>16}").parse().unwrap();
    Viewer { token, role }
}

/// An id that is one.
pub fn id(text: &str) -> CommitId {
    text.parse().unwrap()
}

/// The code of a failure.
pub fn code<T>(result: Result<T, RepositoryError>) -> String {
    match result {
        Ok(_) => "no failure".to_owned(),
        Err(RepositoryError::Refused(refused)) => refused.code.to_string(),
        Err(RepositoryError::Aborted(aborted)) => {
            panic!("aborted {}: {}", aborted.code, aborted.message)
        }
    }
}

/// Run git with this on its standard input; its trimmed output.
pub fn feed(repo: &Repo, args: &[&str], input: &[u8]) -> String {
    let mut child = crate::repo::git(repo.path())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
