//! The real repository room: bare mirrors, uploads kept per token, scratch directories, all below the data directory.
//!
//! Holds no state of its own: another process (an administrator's command) may add, sync or remove while this one serves.

use super::objects::GitObjects;
use super::scratch::{self, Scratch};
use super::{Objects, ProtectedTip, Repository, RepositoryError, UploadLimits, Viewer, disk};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tribunal_core::id::{CommitId, RepoName, TokenId};
use tribunal_core::request::Role;

/// How a mirror may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// A path on this machine.
    File,
    /// `https://`.
    Https,
    /// `ssh://` or `user@host:path`.
    Ssh,
    /// `git://`, which neither hides nor proves anything.
    Git,
}

impl Protocol {
    /// Its name, as git's own allow-list wants it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::Git => "git",
        }
    }
}

/// What the operator decides about this room.
#[derive(Debug, Clone)]
pub struct RepositorySettings {
    /// The data directory.
    pub data: PathBuf,
    /// What a mirror may be fetched with.
    pub protocols: Vec<Protocol>,
    /// How long one fetch may take.
    pub fetch_timeout: Duration,
    /// A git configuration for fetching, as for credentials; without it local paths of any owner are read.
    pub fetch_config: Option<PathBuf>,
    /// Environment that only fetching sees, such as `SSH_AUTH_SOCK` or `HTTPS_PROXY`.
    pub fetch_environment: Vec<(String, String)>,
    /// How long one merge may take.
    pub merge_timeout: Duration,
    /// Bytes of memory one merge may take.
    pub merge_memory: u64,
}

impl RepositorySettings {
    /// What holds unless the operator says otherwise.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            protocols: vec![Protocol::File, Protocol::Https, Protocol::Ssh],
            fetch_timeout: Duration::from_secs(120),
            fetch_config: None,
            fetch_environment: Vec::new(),
            merge_timeout: Duration::from_secs(30),
            merge_memory: 1 << 30,
        }
    }
}

/// Mirrors and uploads on disk, read with gix, written by git.
#[derive(Debug)]
pub struct GitRepository {
    pub(super) settings: RepositorySettings,
    pub(super) layout: Layout,
}

/// Where things are below the data directory.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    data: PathBuf,
}

impl Layout {
    pub(super) fn mirrors(&self) -> PathBuf {
        self.data.join("repos")
    }
    pub(super) fn mirror(&self, name: &RepoName) -> PathBuf {
        self.mirrors().join(format!("{name}.git"))
    }
    pub(super) fn all_uploads(&self) -> PathBuf {
        self.data.join("uploads")
    }
    pub(super) fn uploads(&self, name: &RepoName) -> PathBuf {
        self.all_uploads().join(name.as_str())
    }
    /// The objects one token sent.
    pub(super) fn sent(&self, name: &RepoName, token: &TokenId) -> PathBuf {
        self.uploads(name).join(token.as_str()).join("objects")
    }
    pub(super) fn own_fetch_config(&self) -> PathBuf {
        self.mirrors().join("fetch.gitconfig")
    }
    pub(super) fn scratch(&self) -> PathBuf {
        self.data.join("scratch")
    }
}

impl GitRepository {
    /// The room below this data directory; makes what is missing of it.
    ///
    /// # Errors
    /// Ours, when the directory cannot be made.
    pub fn open(settings: RepositorySettings) -> Result<Self, RepositoryError> {
        let data = std::path::absolute(&settings.data)
            .map_err(|error| disk("find the data directory", &error))?;
        let layout = Layout { data };
        for directory in [layout.mirrors(), layout.all_uploads(), layout.scratch()] {
            fs::create_dir_all(&directory)
                .map_err(|error| disk("make the data directory", &error))?;
        }
        let room = Self { settings, layout };
        // The operator named each path that is fetched from: whose it is, is not git's to judge. This has to be a file,
        // git hands no other configuration on to the side that serves a local path.
        fs::write(room.layout.own_fetch_config(), "[safe]\n\tdirectory = *\n")
            .map_err(|error| disk("write the fetch configuration", &error))?;
        Ok(room)
    }

    pub(super) fn fetch_config(&self) -> PathBuf {
        let own = self.settings.fetch_config.clone();
        own.unwrap_or_else(|| self.layout.own_fetch_config())
    }

    /// Remove what an ended process left in quarantine; safe beside a running one. Says how many directories.
    ///
    /// # Errors
    /// Ours.
    pub fn sweep(&self) -> Result<u32, RepositoryError> {
        scratch::sweep(&self.layout.scratch())
            .map_err(|error| disk("sweep the scratch directories", &error))
    }

    pub(super) fn new_scratch(&self, kind: &str) -> Result<Scratch, RepositoryError> {
        Scratch::new(&self.layout.scratch(), kind)
            .map_err(|error| disk("make a scratch directory", &error))
    }

    /// The object directories this viewer may see beside the mirror's.
    fn visible(&self, name: &RepoName, viewer: &Viewer) -> Result<Vec<PathBuf>, RepositoryError> {
        let own = match viewer.role {
            Role::Agent => vec![self.layout.sent(name, &viewer.token)],
            Role::Ci | Role::Maintainer | Role::Operator => {
                let all = subdirectories(&self.layout.uploads(name))?;
                all.into_iter().map(|token| token.join("objects")).collect()
            }
        };
        Ok(own.into_iter().filter(|path| path.is_dir()).collect())
    }
}

impl Repository for GitRepository {
    fn refresh(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.mirror(repo)?.refresh()
    }

    fn last_tip(&self, repo: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        self.mirror(repo)?.last_tip()
    }

    fn open(&self, repo: &RepoName, viewer: &Viewer) -> Result<Arc<dyn Objects>, RepositoryError> {
        let mirror = self.mirror(repo)?;
        let view = self.new_scratch("view")?;
        let visible = self.visible(repo, viewer)?;
        let objects = GitObjects::open(&self.settings, &mirror, view, &visible)?;
        Ok(Arc::new(objects))
    }

    fn list(&self) -> Result<Vec<RepoName>, RepositoryError> {
        self.mirror_names()
    }

    fn ingest(
        &self,
        repo: &RepoName,
        viewer: &Viewer,
        bundle: &mut dyn Read,
        limits: &UploadLimits,
    ) -> Result<Vec<CommitId>, RepositoryError> {
        let mirror = self.mirror(repo)?;
        super::ingest::ingest(self, &mirror, repo, &viewer.token, bundle, limits)
    }
}

/// The directories in a directory, sorted; none where it is missing.
pub(super) fn subdirectories(path: &Path) -> Result<Vec<PathBuf>, RepositoryError> {
    let read = |error| disk("read a data directory", &error);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(read)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Write the list of object directories that `directory` borrows from, as git and gix read it.
pub(super) fn write_alternates(directory: &Path, borrowed: &[PathBuf]) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let mut text = Vec::new();
    for path in borrowed {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&b'\n') {
            return Err(std::io::Error::other(
                "the data directory's path holds a line break",
            ));
        }
        text.extend_from_slice(bytes);
        text.push(b'\n');
    }
    fs::create_dir_all(directory.join("info"))?;
    fs::create_dir_all(directory.join("pack"))?;
    fs::write(directory.join("info").join("alternates"), text)
}
