//! Everything that can go wrong at the command line, and the exit code of each.

use crate::config::Mistakes;
use crate::draws::DrawsError;
use crate::image::ImageError;
use crate::metrics::PortError;
use crate::repository::RepositoryError;
use crate::sign::KeyFolderError;
use crate::store::StoreError;
use crate::traces::TracesError;
use crate::wire::ListenError;
use crate::wire::token::NoEntropy;
use std::path::PathBuf;
use tribunal_core::id::IdError;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Completes "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no data directory.
    #[error("open {0}: it is no data directory; run `tribunal-server init --data {0}` first")]
    NoData(PathBuf),
    /// There is one.
    #[error("make {0}: it exists and is not empty; give another directory")]
    DataExists(PathBuf),
    /// Two servers would tear each other's rooms down.
    #[error("serve {0}: another server runs on this data directory")]
    Serving(PathBuf),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository room.
    #[error("{what}: {source}")]
    Repository {
        /// What was tried.
        what: String,
        /// What it said.
        source: RepositoryError,
    },
    /// The image room.
    #[error("build or find the runner image: {0}")]
    Image(#[from] ImageError),
    /// The keys.
    #[error(transparent)]
    Keys(#[from] KeyFolderError),
    /// The secret of held-out pins.
    #[error(transparent)]
    Draws(#[from] DrawsError),
    /// A key that signs now.
    #[error("revoke {0}: it is the key that signs now; run `tribunal-server key rotate` first")]
    KeySigns(String),
    /// A key from outside that may not sign any more.
    #[error("sign with the key that the configuration names: {0}")]
    KeyOver(String),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] Mistakes),
    /// The socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A collector of traces.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// The admin port.
    #[error(transparent)]
    AdminPort(#[from] PortError),
    /// An argument.
    #[error("read the command line: {0}")]
    Argument(#[from] IdError),
    /// An argument without a type of its own.
    #[error("read the command line: {0}")]
    Usage(String),
    /// A token.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The engine, or another part of ours.
    #[error("{what}: {source}")]
    Aborted {
        /// What was tried.
        what: &'static str,
        /// What it came to.
        source: Aborted,
    },
    /// A file.
    #[error("{what}: {source}")]
    File {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A check did not hold; what was found is in the answer.
    #[error("find everything in order")]
    NotInOrder(Box<super::Answer>),
}

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Something broke, or is not in order.
    Failed,
    /// Usage or configuration.
    Usage,
    /// What was named is not there.
    Missing,
    /// The engine or a remote does not answer.
    Unreachable,
    /// It exists already, or is in use.
    Exists,
}

impl Exit {
    /// All of them, in the order of `--help`.
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::Missing,
        Self::Unreachable,
        Self::Exists,
    ];

    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 64,
            Self::Missing => 66,
            Self::Unreachable => 69,
            Self::Exists => 73,
        }
    }

    /// What it means, for `--help`.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => {
                "something broke, or `doctor` or `selftest` found something that is not in order"
            }
            Self::Usage => "usage or configuration",
            Self::Missing => {
                "what was named is not there (a data directory, repository, token, key)"
            }
            Self::Unreachable => "the container engine or a remote repository does not answer",
            Self::Exists => "it exists already, or another server uses it",
        }
    }
}

impl AdminError {
    /// How the command ends with it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoData(_) => Exit::Missing,
            Self::DataExists(_) | Self::Serving(_) => Exit::Exists,
            Self::Store(error) => match error {
                StoreError::Exists(_) => Exit::Exists,
                StoreError::Missing(_) => Exit::Missing,
                StoreError::DiskFull
                | StoreError::Ended(_)
                | StoreError::Newer { .. }
                | StoreError::Corrupt(_)
                | StoreError::File { .. }
                | StoreError::Database(_)
                | StoreError::Thread => Exit::Failed,
            },
            Self::Repository { source, .. } => match source {
                RepositoryError::Refused(refused) => refusal(refused.code),
                RepositoryError::Aborted(_) => Exit::Unreachable,
            },
            Self::Image(error) => match error {
                ImageError::Engine(_) | ImageError::EngineSlow(_) => Exit::Unreachable,
                ImageError::Python(_)
                | ImageError::Requirement { .. }
                | ImageError::Unknown(_)
                | ImageError::NotExported(_) => Exit::Usage,
                ImageError::EngineStep { .. }
                | ImageError::Architecture { .. }
                | ImageError::Missing { .. }
                | ImageError::Base(_)
                | ImageError::Pip(_)
                | ImageError::Hash { .. }
                | ImageError::NoWheel(_)
                | ImageError::Packages(_)
                | ImageError::Assemble { .. }
                | ImageError::File { .. }
                | ImageError::Record { .. } => Exit::Failed,
            },
            Self::Config(_)
            | Self::Argument(_)
            | Self::Usage(_)
            | Self::KeySigns(_)
            | Self::KeyOver(_)
            | Self::Traces(_)
            | Self::Listen(ListenError::PlainText(_))
            | Self::AdminPort(PortError::Beyond(_)) => Exit::Usage,
            Self::Aborted { source, .. } => match source.code {
                AbortedCode::EngineUnavailable => Exit::Unreachable,
                AbortedCode::ImageMissing
                | AbortedCode::DiskFull
                | AbortedCode::ServerRestarted
                | AbortedCode::Cancelled
                | AbortedCode::Deadline
                | AbortedCode::Internal => Exit::Failed,
            },
            Self::Keys(_)
            | Self::Draws(_)
            | Self::AdminPort(PortError::Bind { .. })
            | Self::Listen(
                ListenError::Bind { .. }
                | ListenError::Tls(_)
                | ListenError::Reflection(_)
                | ListenError::Serve(_),
            )
            | Self::Entropy(_)
            | Self::File { .. }
            | Self::NotInOrder(_) => Exit::Failed,
        }
    }

    pub(crate) fn repository(what: impl Into<String>) -> impl FnOnce(RepositoryError) -> Self {
        let what = what.into();
        move |source| Self::Repository { what, source }
    }

    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::File { what, source }
    }
}

fn refusal(code: tribunal_core::reason::RefusedCode) -> Exit {
    use tribunal_core::reason::RefusedCode;
    if code == RefusedCode::UnknownRepository {
        Exit::Missing
    } else {
        Exit::Usage
    }
}
