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
//! embedded harness and pins ─┘                                          │
//!                                         another machine <─ one file <───┘
//! ```

mod archive;
mod assemble;
mod base;
mod embedded;
mod engine;
mod error;
mod files;
mod moved;
mod options;
mod record;
mod requirements;
mod rootfs;
mod wheels;

pub use embedded::runner_digest;
pub use engine::{Presence, connect, presence};
pub use error::ImageError;
pub use moved::{export, import};
pub use options::{BaseCache, BuildOptions, Progress, Step};
pub use record::{BuiltImage, Package, find, list};

use bollard::Docker;
use std::path::Path;
use std::sync::Arc;
use tribunal_core::id::Digest;

/// The tag of the image that every policy names by default.
pub const DEFAULT_TAG: &str = "tribunal/python:3.13";
/// The only Python that the Debian release of the base has.
pub const PYTHON: &str = "3.13";
/// The time of every file in the image, and of the image.
const EPOCH: u64 = 1_700_000_000;
/// Raised when an image of the same inputs would come out differently.
const CONFIG: u32 = 1;

/// Makes sure that the engine has the image and that it is on record. Nothing is built, and nothing is
/// fetched, when the same inputs made an image before that the engine still has: a server may call this
/// at every start.
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
    let _building = lock(&options.cache).await?;
    let inputs = inputs(options, architecture, progress).await?;
    let known = record::known(&options.cache, &inputs.digest())?;
    let built = match known {
        Some(image) if engine::presence(docker, &image).await? == Presence::Present => {
            progress(Step::AlreadyThere);
            engine::tag(docker, &image.engine_id, &image.tag).await?;
            image
        }
        _ => {
            let inputs = inputs.sound(options, progress).await?;
            let built = assembled(docker, &options.cache, &inputs, progress).await?;
            record::know(&options.cache, &inputs.digest(), &built)?;
            built
        }
    };
    record::add(&options.data, &built)?;
    Ok(built)
}

/// Everything an image is made of but what the server carries inside.
struct Inputs {
    architecture: &'static str,
    base: base::Base,
    runner: Vec<wheels::Wheel>,
    deps: Vec<wheels::Wheel>,
    requirements: Option<Digest>,
}

async fn inputs(
    options: &BuildOptions,
    architecture: &'static str,
    progress: Progress<'_>,
) -> Result<Inputs, ImageError> {
    let project = read_requirements(options.requirements.as_deref())?;
    let own = Path::new("images/python/requirements.txt");
    let runner = requirements::parse(own, embedded::REQUIREMENTS)?;
    let cache = &options.cache;
    Ok(Inputs {
        architecture,
        base: base::provide(options, architecture, progress).await?,
        runner: wheels::provide(cache, &runner, architecture, progress).await?,
        deps: match &project {
            Some(project) => wheels::provide(cache, project, architecture, progress).await?,
            None => Vec::new(),
        },
        requirements: project.map(|project| project.digest),
    })
}

impl Inputs {
    fn digest(&self) -> Digest {
        let wheels = self.runner.iter().chain(&self.deps);
        let wheels: Vec<&Digest> = wheels.map(|wheel| &wheel.digest).collect();
        let text = format!(
            "{CONFIG} {} {} {} {wheels:?} {:?}",
            self.architecture,
            self.base.layer.digest,
            runner_digest(),
            self.requirements,
        );
        Digest::of(text.as_bytes())
    }

    /// A kept base is trusted by its name until something is built of it.
    async fn sound(
        self,
        options: &BuildOptions,
        progress: Progress<'_>,
    ) -> Result<Self, ImageError> {
        let base = base::sound(self.base, options, self.architecture, progress).await?;
        Ok(Self { base, ..self })
    }
}

async fn assembled(
    docker: &Docker,
    cache: &Path,
    inputs: &Inputs,
    progress: Progress<'_>,
) -> Result<BuiltImage, ImageError> {
    progress(Step::Assembling);
    let architecture = inputs.architecture;
    let base = Arc::new(archive::Image::base(architecture, &inputs.base));
    engine::load(docker, &base).await?;
    let assembled = assemble::run(docker, cache, &base, &inputs.runner, &inputs.deps).await?;
    let identity = archive::Identity {
        tag: tag(inputs.requirements.as_ref()),
        runner: runner_digest(),
        requirements: inputs.requirements.clone(),
    };
    progress(Step::Loading);
    let image = Arc::new(archive::Image::runner(
        architecture,
        &inputs.base,
        &assembled.layer,
        &identity,
    ));
    Ok(BuiltImage {
        engine_id: engine::load(docker, &image).await?,
        tag: identity.tag,
        digest: image.digest(),
        python: assembled.python,
        architecture: architecture.to_owned(),
        runner_digest: identity.runner,
        requirements_digest: identity.requirements,
        base: inputs.base.packages.clone(),
        runner: assembled.runner,
        deps: assembled.deps,
        built_at: jiff::Timestamp::now().as_second(),
    })
}

/// One build at a time in a cache: two would remove each other's container. Ends with the file.
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
