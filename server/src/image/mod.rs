//! The runner image: Debian packages, hashed wheels, our harness and the pin library go in; one image
//! whose id is that of its content comes out, loaded into the engine and on record in the data folder.
//!
//! Never runs a package's code, never takes a wheel whose hash the requirements do not name, and never
//! needs a registry of images. The same inputs give the same id, on any machine: every file's time,
//! owner and order is ours. Fails with an `ImageError` that says what to install or do.
//!
//! ```text
//! base (mmdebstrap, cached) ─┐
//! wheels (pip, cached) ──────┼─> assemble (in a container of the base) ─> archive ─> engine ─> record
//! embedded harness and pins ─┘
//! ```

mod archive;
mod assemble;
mod base;
mod embedded;
mod engine;
mod error;
mod files;
mod record;
mod requirements;
mod wheels;

pub use engine::{Presence, connect, presence};
pub use error::ImageError;
pub use record::{BuiltImage, Package, find, list};

use bollard::Docker;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tribunal_core::id::Digest;

/// The tag of the image that every policy names by default.
pub const DEFAULT_TAG: &str = "tribunal/python:3.13";
/// The only Python that the Debian release of the base has.
pub const PYTHON: &str = "3.13";
/// The time of every file in the image, and of the image.
const EPOCH: u64 = 1_700_000_000;

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The server's data folder; caches and records live in `images/` below it.
    pub data: PathBuf,
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
        Self {
            data: data.into(),
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

/// Builds the image, loads it into the engine and puts it on record.
///
/// # Errors
/// Anything that is missing on this machine, cannot be fetched, or is refused; each says what to do.
pub async fn build(
    docker: &Docker,
    options: &BuildOptions,
    progress: Progress<'_>,
) -> Result<BuiltImage, ImageError> {
    if options.python != PYTHON {
        return Err(ImageError::Python(options.python.clone()));
    }
    let architecture = engine::architecture(docker).await?;
    let folder = options.data.join("images");
    let _building = lock(&folder).await?;
    let project = read_requirements(options.requirements.as_deref())?;
    let runner = requirements::parse(
        Path::new("images/python/requirements.txt"),
        embedded::REQUIREMENTS,
    )?;

    let base = base::provide(&folder, options, architecture, progress).await?;
    let runner_wheels = wheels::provide(&folder, &runner, architecture, progress).await?;
    let deps_wheels = match &project {
        Some(project) => wheels::provide(&folder, project, architecture, progress).await?,
        None => Vec::new(),
    };

    progress(Step::Assembling);
    let base_image = Arc::new(archive::Image::base(architecture, &base));
    engine::load(docker, &base_image, &|_| {}).await?;
    let assembled =
        assemble::run(docker, &folder, &base_image, &runner_wheels, &deps_wheels).await?;

    let identity = archive::Identity {
        tag: tag(project.as_ref().map(|project| &project.digest)),
        runner: embedded::runner_digest(&runner_wheels),
        requirements: project.map(|project| project.digest),
    };
    let image = Arc::new(archive::Image::runner(
        architecture,
        &base,
        &assembled.layer,
        &identity,
    ));
    progress(Step::Loading);
    let engine_id = engine::load(docker, &image, progress).await?;
    let built = BuiltImage {
        tag: identity.tag,
        digest: image.digest(),
        engine_id,
        python: assembled.python,
        architecture: architecture.to_owned(),
        runner_digest: identity.runner,
        requirements_digest: identity.requirements,
        base: base.packages,
        runner: assembled.runner,
        deps: assembled.deps,
        built_at: jiff::Timestamp::now().as_second(),
    };
    record::add(&options.data, &built)?;
    Ok(built)
}

/// One build at a time in a data folder: two would remove each other's container. Ends with the file.
async fn lock(folder: &Path) -> Result<std::fs::File, ImageError> {
    files::folder(folder)?;
    let path = folder.join("lock");
    let locked = tokio::task::spawn_blocking(move || {
        let failed = |error| ImageError::file("lock", &path, error);
        let file = std::fs::File::create(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    });
    locked.await.unwrap_or_else(|error| {
        Err(ImageError::file(
            "lock",
            folder,
            std::io::Error::other(error),
        ))
    })
}

/// A project's own dependencies make an image of their own, so that no other repository's changes.
fn tag(requirements: Option<&Digest>) -> String {
    match requirements {
        None => DEFAULT_TAG.to_owned(),
        Some(digest) => format!(
            "{DEFAULT_TAG}-{}",
            digest.hex().get(..12).unwrap_or_default()
        ),
    }
}

fn read_requirements(
    path: Option<&Path>,
) -> Result<Option<requirements::Requirements>, ImageError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let text =
        std::fs::read_to_string(path).map_err(|error| ImageError::file("read", path, error))?;
    requirements::parse(path, &text).map(Some)
}
