//! Trusted bare mirrors: only the operator names them, only the server fetches into them, and only one branch.
//!
//! Nothing is ever pruned here: uploads borrow from it, also from history that a force push left behind. No tag is
//! followed, no submodule, no hook, no upkeep in the background; what base's history holds of old oddities is taken.

use super::command::{Ending, Finished, Git};
use super::git::{GitRepository, RepositorySettings, subdirectories};
use super::remote::{checked_branch, checked_remote, invalid, login};
use super::{ProtectedTip, RepositoryError, disk, internal, refused};
use gix::hash::Kind;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::RefusedCode::UnknownRepository;

/// What was registered, kept in the mirror itself.
const REGISTRATION: &str = "tribunal.json";
/// Held while a mirror is fetched into.
const LOCK: &str = "tribunal.lock";
/// No attribute of any tree means anything here: this file outranks them all.
const ATTRIBUTES: &str =
    "* !merge !conflict-marker-size !diff !text !eol !ident !filter !working-tree-encoding\n";
/// Packs that may pile up, one a fetch, before they are put together.
const LOOSE_PACKS: usize = 50;

/// A mirror as the operator registered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Where it is fetched from.
    pub remote: String,
    /// The protected branch, as a full ref name.
    pub branch: String,
}

/// One registered mirror.
#[derive(Debug)]
pub(super) struct Mirror<'a> {
    name: RepoName,
    directory: PathBuf,
    registration: Registration,
    settings: &'a RepositorySettings,
    fetch_config: PathBuf,
}

impl GitRepository {
    /// Register a repository and fetch its protected branch for the first time.
    ///
    /// # Errors
    /// `invalid-argument` for a remote or branch that cannot be; ours where the remote does not answer. Nothing is
    /// registered then.
    pub fn add(
        &self,
        name: &RepoName,
        remote: &str,
        branch: &str,
    ) -> Result<ProtectedTip, RepositoryError> {
        let directory = self.layout.mirror(name);
        if directory.exists() {
            return Err(invalid(format!("{name} is registered already")));
        }
        let registration = Registration {
            remote: checked_remote(remote, &self.settings.protocols)?,
            branch: checked_branch(branch)?,
        };
        let scratch = self.new_scratch("mirror")?;
        let fresh = Mirror {
            name: name.clone(),
            directory: scratch.path().join("fresh.git"),
            registration,
            settings: &self.settings,
            fetch_config: self.fetch_config(),
        };
        let tip = fresh.create()?;
        fs::rename(&fresh.directory, &directory)
            .map_err(|error| disk("put the mirror in its place", &error))?;
        Ok(tip)
    }

    /// Fetch now, and put piled-up packs together.
    ///
    /// # Errors
    /// `unknown-repository`; ours where the remote does not answer.
    pub fn sync(&self, name: &RepoName) -> Result<ProtectedTip, RepositoryError> {
        let mirror = self.mirror(name)?;
        let tip = mirror.refresh()?;
        mirror.put_packs_together()?;
        Ok(tip)
    }

    /// Forget a repository, its mirror and all that was uploaded for it.
    ///
    /// # Errors
    /// `unknown-repository`; ours where files cannot be removed.
    pub fn remove(&self, name: &RepoName) -> Result<(), RepositoryError> {
        let mirror = self.mirror(name)?;
        let scratch = self.new_scratch("removed")?;
        // Out of sight in one step; the scratch directory takes it along.
        fs::rename(&mirror.directory, scratch.path().join("mirror.git"))
            .map_err(|error| disk("remove the mirror", &error))?;
        match fs::rename(self.layout.uploads(name), scratch.path().join("uploads")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(disk("remove the uploads", &error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What the operator registered under this name.
    ///
    /// # Errors
    /// `unknown-repository`.
    pub fn registration(&self, name: &RepoName) -> Result<Registration, RepositoryError> {
        self.mirror(name).map(|mirror| mirror.registration)
    }

    pub(super) fn mirror_names(&self) -> Result<Vec<RepoName>, RepositoryError> {
        let directories = subdirectories(&self.layout.mirrors())?;
        let names = directories.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".git")?;
            name.parse().ok()
        });
        Ok(names.collect())
    }

    pub(super) fn mirror(&self, name: &RepoName) -> Result<Mirror<'_>, RepositoryError> {
        let directory = self.layout.mirror(name);
        let text = match fs::read(directory.join(REGISTRATION)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = format!("no repository {name} is registered");
                return Err(refused(UnknownRepository, message));
            }
            Err(error) => return Err(disk("read a registration", &error)),
        };
        let registration = serde_json::from_slice(&text)
            .map_err(|error| internal(format!("the registration of {name} is broken: {error}")))?;
        Ok(Mirror {
            name: name.clone(),
            directory,
            registration,
            settings: &self.settings,
            fetch_config: self.fetch_config(),
        })
    }
}

impl Mirror<'_> {
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn objects(&self) -> PathBuf {
        self.directory.join("objects")
    }

    /// The hash that its object ids are.
    pub(super) fn format(&self) -> Result<Kind, RepositoryError> {
        let tip = self.tip()?;
        let tip = tip.ok_or_else(|| internal(format!("the mirror of {} is empty", self.name)))?;
        Ok(format_of(&tip))
    }

    /// Ask the remote where the branch is, and fetch it if it is elsewhere than here.
    pub(super) fn refresh(&self) -> Result<ProtectedTip, RepositoryError> {
        let there = self.remote_tip()?;
        if self.tip()?.as_ref() != Some(&there) {
            let lock = File::create(self.directory.join(LOCK))
                .and_then(|lock| lock.lock().map(|()| lock))
                .map_err(|error| disk("lock a mirror", &error))?;
            // Another score may have fetched it while this one waited.
            if self.tip()?.as_ref() != Some(&there) {
                self.clear_stale_locks();
                self.fetch()?;
            }
            drop(lock);
        }
        // What was fetched, not what was asked: the branch may have moved in between.
        self.last_tip()
    }

    /// Where the last fetch left the branch.
    pub(super) fn last_tip(&self) -> Result<ProtectedTip, RepositoryError> {
        let commit = self
            .tip()?
            .ok_or_else(|| self.unreachable("its branch is gone"))?;
        Ok(ProtectedTip {
            name: self.registration.branch.clone(),
            commit,
        })
    }

    fn create(&self) -> Result<ProtectedTip, RepositoryError> {
        let tip = self.remote_tip()?;
        let made = Git::outside("init")
            .args(["--quiet", "--bare", "--template="])
            .arg(format!("--object-format={}", format_of(&tip)))
            // A HEAD that is never born: newer git reads attributes from it.
            .arg("--initial-branch=none")
            .arg(&self.directory)
            .run()?;
        if !made.succeeded() {
            return Err(internal(format!(
                "failed to make a mirror: {}",
                made.complaint()
            )));
        }
        let write = || -> std::io::Result<()> {
            let info = self.directory.join("info");
            fs::create_dir_all(&info)?;
            fs::write(info.join("attributes"), ATTRIBUTES)?;
            let registration = serde_json::to_vec_pretty(&self.registration)?;
            fs::write(self.directory.join(REGISTRATION), registration)
        };
        write().map_err(|error| disk("register a repository", &error))?;
        self.refresh()
    }

    /// Where the mirror has the branch; only our own fetch writes this file.
    fn tip(&self) -> Result<Option<CommitId>, RepositoryError> {
        match fs::read_to_string(self.directory.join(&self.registration.branch)) {
            Ok(text) => {
                let id = text.trim().parse();
                id.map(Some)
                    .map_err(|_bad| internal(format!("the mirror of {} is broken", self.name)))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(disk("read a mirror", &error)),
        }
    }

    fn remote_tip(&self) -> Result<CommitId, RepositoryError> {
        let branch = &self.registration.branch;
        let git = Git::outside("ls-remote").args(["--quiet", "--refs", "--"]);
        let listed = self
            .fetching(git)
            .args([&self.registration.remote, branch])
            .run()?;
        self.check(&listed)?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let wanted = text.lines().find_map(|line| {
            let (id, name) = line.split_once('\t')?;
            (name == branch).then(|| id.parse::<CommitId>())
        });
        match wanted {
            Some(Ok(id)) => Ok(id),
            Some(Err(error)) => Err(self.unreachable(&error.to_string())),
            None => Err(self.unreachable(&format!("it has no {branch}"))),
        }
    }

    fn fetch(&self) -> Result<(), RepositoryError> {
        let branch = &self.registration.branch;
        let git = Git::new(&self.directory, "fetch")
            .args(["--quiet", "--no-tags", "--no-recurse-submodules"])
            .args([
                "--no-write-fetch-head",
                "--no-auto-maintenance",
                "--no-show-forced-updates",
            ])
            .arg("--");
        let fetched = self
            .fetching(git)
            .arg(&self.registration.remote)
            .arg(format!("+{branch}:{branch}"))
            .run()?;
        self.check(&fetched)
    }

    /// A git that was killed leaves its locks, and every later fetch would stumble over them. Ours is the only one that
    /// fetches here; one that a killed server left running has ended by the time these are removed.
    fn clear_stale_locks(&self) {
        let old = 2 * self.settings.fetch_timeout;
        for name in [
            &self.registration.branch,
            "packed-refs",
            "shallow",
            "config",
        ] {
            let lock = self.directory.join(format!("{name}.lock"));
            let age = lock.metadata().and_then(|data| data.modified());
            let age = age.ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > old) && fs::remove_file(&lock).is_ok() {
                tracing::warn!(lock = %lock.display(), "removed a lock that a killed git left");
            }
        }
    }

    /// A command that may use the network, as far as the operator allows.
    fn fetching(&self, git: Git) -> Git {
        let settings = self.settings;
        let protocols: Vec<_> = settings.protocols.iter().map(|p| p.name()).collect();
        let git = git
            .env("GIT_ALLOW_PROTOCOL", protocols.join(":"))
            .env("GIT_PROTOCOL_FROM_USER", "1")
            .env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        // Kept as packs: a mirror of loose objects is slow to read.
        let git = git
            .env("GIT_CONFIG_GLOBAL", &self.fetch_config)
            .env("GIT_CONFIG_COUNT", "2")
            .env("GIT_CONFIG_KEY_0", "fetch.unpackLimit")
            .env("GIT_CONFIG_VALUE_0", "1")
            .env("GIT_CONFIG_KEY_1", "fetch.fsckObjects")
            .env("GIT_CONFIG_VALUE_1", "false");
        let extra = settings.fetch_environment.iter();
        extra
            .fold(git, |git, (name, value)| git.env(name, value))
            .deadline(settings.fetch_timeout)
    }

    fn check(&self, finished: &Finished) -> Result<(), RepositoryError> {
        if finished.succeeded() {
            return Ok(());
        }
        if finished.disk_was_full() {
            return Err(disk("fetch", &std::io::ErrorKind::StorageFull.into()));
        }
        Err(match finished.ending {
            Ending::Expired => {
                let seconds = self.settings.fetch_timeout.as_secs();
                self.unreachable(&format!("no answer within {seconds} s"))
            }
            Ending::Exited(_) | Ending::Killed(_) => self.unreachable(&finished.complaint()),
        })
    }

    /// The remote's own words can hold its address, and an address can hold a password.
    fn unreachable(&self, why: &str) -> RepositoryError {
        let mut why = why.replace(&self.registration.remote, "the remote");
        if let Some(login) = login(&self.registration.remote) {
            why = why.replace(login, "…");
        }
        internal(format!("remote of {} unreachable: {why}", self.name))
    }

    fn put_packs_together(&self) -> Result<(), RepositoryError> {
        let packs = fs::read_dir(self.objects().join("pack"))
            .map_err(|error| disk("read a mirror", &error))?
            .filter_map(Result::ok)
            .filter(|entry| entry.path().extension().is_some_and(|e| e == "pack"));
        if packs.count() <= LOOSE_PACKS {
            return Ok(());
        }
        // Geometric, so that nothing unreachable is dropped and the large packs stay as they are.
        let repacked = Git::new(&self.directory, "repack")
            .args(["--quiet", "--geometric=2", "-d"])
            .deadline(self.settings.fetch_timeout)
            .run()?;
        if repacked.succeeded() {
            return Ok(());
        }
        Err(internal(format!(
            "failed to repack: {}",
            repacked.complaint()
        )))
    }
}

/// The hash an id was made with.
pub(super) fn format_of(id: &CommitId) -> Kind {
    if id.as_str().len() == 64 {
        Kind::Sha256
    } else {
        Kind::Sha1
    }
}
