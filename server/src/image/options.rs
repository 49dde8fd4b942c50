//! What is asked of a build, and what it tells whoever watches.

use super::PYTHON;
use std::fmt;
use std::path::PathBuf;

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The server's data folder; records live in `images/` below it.
    pub data: PathBuf,
    /// Where bases and wheels are kept, also for other servers of this machine.
    pub cache: PathBuf,
    /// The Python version asked for.
    pub python: String,
    /// A project's own hashed dependencies.
    pub requirements: Option<PathBuf>,
    /// A Debian mirror instead of mmdebstrap's own choice.
    pub mirror: Option<String>,
    /// Whether a base that was built before will do.
    pub base: BaseCache,
}

impl BuildOptions {
    /// The default image, with what is cached in this data folder.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self {
            cache: data.join("images"),
            data,
            python: PYTHON.to_owned(),
            requirements: None,
            mirror: None,
            base: BaseCache::Reuse,
        }
    }
}

/// What to do with a base from an earlier build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseCache {
    /// Take it: the packages stay those of that day.
    Reuse,
    /// Make a new one, with today's packages.
    Renew,
}

/// One step of a build, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// mmdebstrap runs, about half a minute.
    BuildingBase,
    /// The base of an earlier build is used.
    ReusingBase,
    /// pip fetches so many wheels.
    FetchingWheels(usize),
    /// So many wheels are here from an earlier build.
    ReusingWheels(usize),
    /// Packages and harness are put in place and compiled.
    Assembling,
    /// The image goes to the engine.
    Loading,
    /// The engine has this very image already.
    AlreadyThere,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuildingBase => f.write_str("building the Debian base (about half a minute)"),
            Self::ReusingBase => f.write_str("using the Debian base of an earlier build"),
            Self::FetchingWheels(count) => write!(f, "fetching {count} Python packages"),
            Self::ReusingWheels(count) => {
                write!(f, "using {count} Python packages of an earlier build")
            }
            Self::Assembling => f.write_str("assembling and compiling"),
            Self::Loading => f.write_str("loading the image into the engine"),
            Self::AlreadyThere => f.write_str("the engine has this image already"),
        }
    }
}

/// Told of each step as it begins.
pub type Progress<'a> = &'a (dyn Fn(Step) + Send + Sync);
