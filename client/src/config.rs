//! Flags, environment and file become one `Settings`: the first of the three that says something wins, key by key.
//!
//! Never reads a token from an argument, never prints one, never reaches for the network. All mistakes are told at once.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tribunal_core::id::RepoName;

mod endpoint;
mod file;
mod token;

pub use endpoint::{Endpoint, PlainText, Scheme};
pub use token::Token;
use token::TokenSource;

/// The environment as it was when the process began.
pub type Environment = BTreeMap<String, String>;

/// What the command line says; an absent flag says nothing.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Where the server is, as in `https://tribunal.example:7443` [env: TRIBUNAL_SERVER]
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The repository's name on the server [env: TRIBUNAL_REPO]
    #[arg(long, global = true, value_name = "NAME")]
    pub repo: Option<String>,
    /// A file that holds the token [env: TRIBUNAL_TOKEN_FILE, or the token itself in TRIBUNAL_TOKEN]
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The key that verdicts must be signed with: PEM, or an allowed_signers file
    #[arg(long, global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Certificate authorities to trust instead of the system's, PEM
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub ca: Option<PathBuf>,
    /// This client's own certificate, PEM; needs --client-key
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub client_cert: Option<PathBuf>,
    /// The private key of --client-cert, PEM
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub client_key: Option<PathBuf>,
    /// Allow http:// to other machines: the token and the verdicts travel in the clear
    #[arg(long, global = true, help_heading = "Connection")]
    pub insecure: bool,
    /// The configuration file [default: ~/.config/tribunal/config.toml]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub config: Option<PathBuf>,
}

/// Files for TLS; absent ones mean the system's authorities and no certificate of our own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities to trust.
    pub ca: Option<PathBuf>,
    /// Our certificate and its private key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// What flags, environment and file came to. A command asks for what it needs.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    server: Option<Endpoint>,
    repo: Option<RepoName>,
    token: Option<Token>,
    key: Option<PathBuf>,
    tls: Tls,
}

/// How much of the settings a command is going to use; mistakes in the rest are none of its business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing yet: what is needed is resolved later.
    Nothing,
    /// Repository and key: a gate must not stumble over a token that it does not use.
    Offline,
    /// All of it.
    Server,
}

/// What does not hold in flags, environment and file.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(
            "read the configuration",
            error,
            "mend what is named; flags win over the environment, the environment over the file",
        )
    }
}

impl Settings {
    /// Resolve all keys.
    ///
    /// # Errors
    /// Every mistake there is, together.
    pub fn resolve(flags: &Flags, env: &Environment, needs: Needs) -> Result<Self, ConfigError> {
        if needs == Needs::Nothing {
            return Ok(Self::default());
        }
        let mut mistakes = Vec::new();
        let mut unreachable = Vec::new();
        let (file, folder) = file::read(flags, env, &mut mistakes);
        let from_env = |name: &str| env.get(name).filter(|v| !v.trim().is_empty()).cloned();
        let beside = |path: Option<PathBuf>| path.map(|p| folder.join(p));

        let plain = if flags.insecure || file.insecure == Some(true) {
            PlainText::Anywhere
        } else {
            PlainText::Loopback
        };
        let server = flags
            .server
            .clone()
            .map(|v| ("--server", v))
            .or_else(|| from_env("TRIBUNAL_SERVER").map(|v| ("TRIBUNAL_SERVER", v)))
            .or_else(|| file.server.map(|v| ("server in the file", v)))
            .and_then(|(origin, text)| {
                Endpoint::parse(text.trim(), plain)
                    .map_err(|e| unreachable.push(format!("{origin}: {e}")))
                    .ok()
            });
        let repo = flags
            .repo
            .clone()
            .map(|v| ("--repo", v))
            .or_else(|| from_env("TRIBUNAL_REPO").map(|v| ("TRIBUNAL_REPO", v)))
            .or_else(|| file.repo.map(|v| ("repo in the file", v)))
            .and_then(|(origin, text)| {
                text.trim()
                    .parse()
                    .map_err(|e| mistakes.push(format!("{origin}: {e}")))
                    .ok()
            });
        let token = match flags.token_file.clone() {
            Some(path) => Some(TokenSource::File("--token-file", path)),
            None => from_env("TRIBUNAL_TOKEN")
                .map(|t| TokenSource::Text("TRIBUNAL_TOKEN", t))
                .or_else(|| {
                    from_env("TRIBUNAL_TOKEN_FILE")
                        .map(|p| TokenSource::File("TRIBUNAL_TOKEN_FILE", p.into()))
                })
                .or_else(|| {
                    file.token
                        .map(|t| TokenSource::Text("token in the file", t))
                })
                .or_else(|| {
                    beside(file.token_file).map(|p| TokenSource::File("token_file in the file", p))
                }),
        }
        .and_then(|source| source.read().map_err(|m| unreachable.push(m)).ok());
        let client_cert = flags.client_cert.clone().or(beside(file.client_cert));
        let client_key = flags.client_key.clone().or(beside(file.client_key));
        let client = match (client_cert, client_key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => {
                unreachable.push("a client certificate needs its key (--client-key)".to_owned());
                None
            }
            (None, Some(_)) => {
                unreachable.push("a client key needs its certificate (--client-cert)".to_owned());
                None
            }
        };
        let settings = Self {
            server,
            repo,
            token,
            key: flags
                .key
                .clone()
                .or_else(|| from_env("TRIBUNAL_KEY").map(PathBuf::from))
                .or(beside(file.key)),
            tls: Tls {
                ca: flags.ca.clone().or(beside(file.ca)),
                client,
            },
        };
        match needs {
            Needs::Server => mistakes.append(&mut unreachable),
            Needs::Nothing | Needs::Offline => {}
        }
        if mistakes.is_empty() {
            Ok(settings)
        } else {
            Err(ConfigError(mistakes))
        }
    }

    /// The server to ask.
    ///
    /// # Errors
    /// None is configured.
    pub fn server(&self) -> Result<&Endpoint, Failure> {
        self.server.as_ref().ok_or_else(|| {
            Failure::usage(
                "find the server",
                "no server is configured",
                "set TRIBUNAL_SERVER, or pass --server URL",
            )
        })
    }

    /// The repository that is meant.
    ///
    /// # Errors
    /// None is configured.
    pub fn repo(&self) -> Result<&RepoName, Failure> {
        self.repo.as_ref().ok_or_else(|| {
            Failure::usage(
                "find the repository",
                "no repository is configured",
                "set TRIBUNAL_REPO, or pass --repo NAME",
            )
        })
    }

    /// The repository, where one is configured.
    #[must_use]
    pub fn known_repo(&self) -> Option<&RepoName> {
        self.repo.as_ref()
    }

    /// The token, where one is configured; what is missing the server will say.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// The file with the key that verdicts must be signed with.
    #[must_use]
    pub fn key(&self) -> Option<&Path> {
        self.key.as_deref()
    }

    /// Files for TLS.
    #[must_use]
    pub fn tls(&self) -> &Tls {
        &self.tls
    }
}

#[cfg(test)]
mod tests;
