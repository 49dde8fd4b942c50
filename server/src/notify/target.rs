//! Whom to tell: what the operator wrote into the configuration. A candidate, an agent or a repository chooses none of it.

use super::endpoint::Endpoint;
use crate::config::SecretFile;
use std::path::PathBuf;
use std::time::Duration;
use tribunal_core::id::RepoName;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// The first pause before something is tried again; it doubles from try to try.
    pub retry: Duration,
    /// What could not be told for so long is given up.
    pub give_up: Duration,
    /// Authorities beside those of the system, for certificates of receivers. PEM.
    pub ca: Option<PathBuf>,
    /// Who hears of every end.
    pub webhooks: Vec<Webhook>,
    /// Where commits get statuses.
    pub statuses: Vec<StatusTarget>,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(5),
            give_up: Duration::from_secs(24 * 3600),
            ca: None,
            webhooks: Vec::new(),
            statuses: Vec::new(),
        }
    }
}

/// Signed messages, as the Standard Webhooks specification has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// What the log and the store call it.
    pub name: String,
    /// Of these repositories; empty: of all.
    pub repositories: Vec<RepoName>,
    /// Where.
    pub url: Endpoint,
    /// A file with `whsec_` and the key in base64.
    pub secret: SecretFile,
}

/// Commit statuses of one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusTarget {
    /// Its name here.
    pub repository: RepoName,
    /// Whose interface.
    pub api: Api,
    /// Its root, such as `https://api.github.com` or `https://gitlab.example.com`.
    pub url: Endpoint,
    /// Its name there: `owner/name`.
    pub project: Project,
    /// A file with the token.
    pub token: SecretFile,
}

/// Interfaces for statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// GitHub, and what speaks like it.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::GitHub, Self::GitLab, Self::Gitea];

    /// As the configuration says it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
        }
    }
}

/// Names joined by slashes, fit for the path of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project(String);

/// It is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read a project: want names of A-Z a-z 0-9 - _ . joined by slashes")]
pub struct NoProject;

impl std::str::FromStr for Project {
    type Err = NoProject;

    fn from_str(text: &str) -> Result<Self, NoProject> {
        let fits = |name: &str| {
            let mut bytes = name.bytes();
            let known = bytes.all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
            known && !matches!(name, "" | "." | "..")
        };
        if text.len() <= 256 && text.split('/').all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoProject)
        }
    }
}

impl std::fmt::Display for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Webhook {
    /// Its name in the store.
    pub(super) fn key(&self) -> String {
        format!("webhook {}", self.name)
    }

    pub(super) fn wants(&self, repository: &RepoName) -> bool {
        self.repositories.is_empty() || self.repositories.contains(repository)
    }
}

impl StatusTarget {
    /// Its name in the store.
    pub(super) fn key(&self) -> String {
        format!("status {}", self.repository)
    }
}
