//! The `git` subprocess: one way to start it, in an environment that neither a hook nor a caller can bend.
//!
//! Repository-choosing variables are dropped (a hook sets them), configuration variables are kept (CI marks its
//! checkout as safe with them). Never prompts, never runs a hook or a file-system monitor, never follows replace refs
//! or grafts: history is what the commit objects say.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tribunal_core::text::{shown, shown_block};

use super::WorkspaceError;

/// Variables that configure git and may stay.
const KEPT: [&str; 7] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// How to start git here: where, and over which objects and index.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    index: Option<PathBuf>,
    objects: Option<PathBuf>,
}

impl Git {
    /// Git in this folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            index: None,
            objects: None,
        }
    }

    /// The same with another index.
    #[must_use]
    pub fn with_index(mut self, index: &Path) -> Self {
        self.index = Some(index.to_owned());
        self
    }

    /// The same with another object directory, which names the real one as its alternate.
    #[must_use]
    pub fn with_objects(mut self, objects: &Path) -> Self {
        self.objects = Some(objects.to_owned());
        self
    }

    /// A command with these arguments, nothing on its stdin.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_dropped) {
                command.env_remove(name);
            }
        }
        command
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_ADVICE", "0");
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "core.quotePath=false",
            "core.commitGraph=false",
            "protocol.ext.allow=never",
            "gc.auto=0",
            "maintenance.auto=false",
            "advice.graftFileDeprecated=false",
        ] {
            command.args(["-c", setting]);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if let Some(objects) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Run to the end, whatever its status.
    ///
    /// # Errors
    /// Git is not there.
    pub fn output(&self, args: &[&str]) -> Result<Output, WorkspaceError> {
        self.command(args).output().map_err(no_git)
    }

    /// Started, and told this text on its stdin. Few words: git reads all of them before it has much to say.
    ///
    /// # Errors
    /// Git is not there.
    pub fn start(&self, args: &[&str], text: &str, out: Stdio) -> Result<Child, WorkspaceError> {
        let mut command = self.command(args);
        let piped = command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.stdout(out).spawn().map_err(no_git)?;
        let stdin = child.stdin.take();
        let told = stdin.map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
        match told {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                let _ = child.kill();
                let _ = child.wait();
                Err(WorkspaceError::Io("what git is told".to_owned(), e))
            }
            // One that left before it heard everything says why when it is waited for.
            _ => Ok(child),
        }
    }

    /// Run to the end; its stdout where it succeeds.
    ///
    /// # Errors
    /// Git is not there, or says no.
    pub fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, WorkspaceError> {
        let output = self.output(args)?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(said_no(args, &output))
        }
    }

    /// The same as one trimmed text.
    ///
    /// # Errors
    /// As [`Git::bytes`].
    pub fn text(&self, args: &[&str]) -> Result<String, WorkspaceError> {
        let bytes = self.bytes(args)?;
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}

fn is_dropped(name: &str) -> bool {
    let config_pair = name.starts_with("GIT_CONFIG_KEY_")
        || name.starts_with("GIT_CONFIG_VALUE_")
        || name == "GIT_CONFIG_COUNT";
    name.starts_with("GIT_") && !config_pair && !KEPT.contains(&name)
}

pub(super) fn no_git(error: std::io::Error) -> WorkspaceError {
    WorkspaceError::NoGit(error)
}

pub(super) fn said_no(args: &[&str], output: &Output) -> WorkspaceError {
    WorkspaceError::Git {
        command: shown(args.first().unwrap_or(&""), 40),
        message: shown_block(String::from_utf8_lossy(&output.stderr).trim(), 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::is_dropped;

    #[test]
    fn what_chooses_a_repository_is_dropped_and_what_configures_git_stays() {
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_GRAFT_FILE",
            "GIT_SHALLOW_FILE",
            "GIT_CONFIG",
            "GIT_EXTERNAL_DIFF",
            "GIT_TRACE",
            "GIT_AUTHOR_NAME",
        ] {
            assert!(is_dropped(name), "{name}");
        }
        for name in [
            "GIT_CONFIG_GLOBAL",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "GIT_CONFIG_VALUE_12",
            "PATH",
            "HOME",
        ] {
            assert!(!is_dropped(name), "{name}");
        }
    }
}
