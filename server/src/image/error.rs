//! Everything that can go wrong with an image, and what to do about it.

use std::path::{Path, PathBuf};

/// Completes "failed to build the runner image: …".
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Another Python than the base's.
    #[error("there is no base with Python {0}; only 3.13 can be built")]
    Python(String),
    /// The engine does not answer.
    #[error(
        "the Docker Engine does not answer ({0}); run deploy/bootstrap.sh, or set DOCKER_HOST to an engine that runs"
    )]
    Engine(#[source] bollard::errors::Error),
    /// The engine refused or failed at something.
    #[error("the Docker Engine failed to {what}: {source}")]
    EngineStep {
        /// What it was asked to do.
        what: &'static str,
        /// Its answer.
        source: bollard::errors::Error,
    },
    /// The engine took longer than it may.
    #[error("the Docker Engine did not {0} in time; is the machine out of memory or disk?")]
    EngineSlow(&'static str),
    /// Images are built for this machine's processor only.
    #[error(
        "the engine runs on {engine} and this server was built for {server}; build the image with a server of the engine's architecture"
    )]
    Architecture {
        /// The engine's.
        engine: String,
        /// Ours.
        server: &'static str,
    },
    /// A program that is not installed.
    #[error(
        "{program} is not installed; run deploy/bootstrap.sh, or: apt-get install {package}; where nothing can be installed, \
         as in a container, bring an image from another machine: `tribunal-server image export`, `image import`"
    )]
    Missing {
        /// Its name.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// mmdebstrap failed.
    #[error(
        "mmdebstrap failed; is a Debian mirror reachable from here (proxies come from http_proxy)? its last words: {0}"
    )]
    Base(String),
    /// pip failed.
    #[error(
        "pip could not fetch the packages; is a package index reachable (pip's own configuration is used)? its last words: {0}"
    )]
    Pip(String),
    /// A line of a requirements file that is refused.
    #[error("{}:{line}: {why}", file.display())]
    Requirement {
        /// The file.
        file: PathBuf,
        /// Where the requirement begins.
        line: usize,
        /// What is wrong and what to write instead.
        why: String,
    },
    /// A wheel is not what the requirements say.
    #[error(
        "{file} does not have a hash that the requirements name; whoever served it served something else"
    )]
    Hash {
        /// The wheel.
        file: String,
    },
    /// A requirement for which no wheel came.
    #[error(
        "no wheel for {0}; a package that exists as source only cannot be used, build a wheel of it first"
    )]
    NoWheel(String),
    /// The packages do not fit together.
    #[error("the packages do not fit together: {0}")]
    Packages(String),
    /// The assembly ended without a report.
    #[error("assembling failed with exit code {code}: {text}")]
    Assemble {
        /// Its exit code.
        code: i64,
        /// Its last words.
        text: String,
    },
    /// A file of ours.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The verb.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Nothing to give away.
    #[error(
        "{0} is not on record here, or the engine has not this image under that tag; `tribunal-server image build` makes it"
    )]
    Unknown(String),
    /// A file that `image export` did not write, or not for us.
    #[error("the file is no exported runner image that can be used here: {0}")]
    NotExported(String),
    /// A record that is not one.
    #[error("{} is damaged ({source}); remove it and build the image again", path.display())]
    Record {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl ImageError {
    pub(super) fn file(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File {
            what,
            path: path.to_owned(),
            source,
        }
    }

    /// A program that did not start: nearly always one that is not there.
    pub(super) fn spawning(
        program: &'static str,
        package: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        move |error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                Self::Missing { program, package }
            } else {
                Self::file("run", Path::new(program), error)
            }
        }
    }

    pub(super) fn engine(what: &'static str) -> impl FnOnce(bollard::errors::Error) -> Self {
        move |source| Self::EngineStep { what, source }
    }
}

/// The end of what a program printed, on one line, for an error.
pub(super) fn last_words(bytes: &[u8]) -> String {
    const MOST: usize = 600;
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let joined = lines
        .get(lines.len().saturating_sub(8)..)
        .unwrap_or_default()
        .join(" | ");
    let printable: Vec<char> = joined
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    printable
        .get(printable.len().saturating_sub(MOST)..)
        .unwrap_or_default()
        .iter()
        .collect()
}
