//! What can go wrong with a workspace, and what to do then.

use crate::exit::Exit;
use crate::failure::Failure;
use tribunal_core::reason::RefusedCode;

/// What can go wrong with a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Git cannot be started.
    #[error("git cannot be started: {0}")]
    NoGit(std::io::Error),
    /// Git says no.
    #[error("git {command}: {message}")]
    Git {
        /// Its subcommand.
        command: String,
        /// What it said, escaped.
        message: String,
    },
    /// The folder belongs to somebody else and git will not read it.
    #[error("git does not trust {0}: it belongs to another user")]
    Untrusted(String),
    /// This is no workspace.
    #[error("{0} is not in a git repository")]
    Outside(String),
    /// The revision names no commit here.
    #[error("{0} names no commit here")]
    NoCommit(String),
    /// A full id of something else: it is never peeled, for a verdict names what was asked for.
    #[error("{id} is a {kind}")]
    NotACommit {
        /// The id.
        id: String,
        /// What it is.
        kind: String,
    },
    /// The index is in the middle of a merge.
    #[error("a merge is not finished: {0}")]
    Unmerged(String),
    /// A temporary file could not be written.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        let next = match &error {
            WorkspaceError::NoGit(_) => "install git".to_owned(),
            WorkspaceError::Git { .. } => "mend what git says".to_owned(),
            WorkspaceError::Untrusted(folder) => {
                format!("git config --global --add safe.directory '{folder}'")
            }
            WorkspaceError::Outside(_) => "run this inside the repository".to_owned(),
            WorkspaceError::NoCommit(_) => {
                "commit first, or name another revision with --head".to_owned()
            }
            WorkspaceError::NotACommit { .. } => {
                let code = RefusedCode::NotACommit;
                return Self::new(Exit::Refused, "ask for a score", &error, code.advice())
                    .coded(code.code());
            }
            WorkspaceError::Unmerged(_) => "resolve the merge, then ask again".to_owned(),
            WorkspaceError::Io(..) => "make room in the temporary directory".to_owned(),
        };
        Self::usage("read the git workspace", error, next)
    }
}
