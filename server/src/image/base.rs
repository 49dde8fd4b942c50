//! The Debian base: mmdebstrap's root file system as one layer with our times, without what a sealed
//! room does not need, and with the standard library compiled to caches that are never checked.
//!
//! Made once for a recipe and kept in the cache; a kept layer whose digest is not its name is made
//! again before anything is built of it.

use super::error::last_words;
use super::files::{self, Blob};
use super::record::Package;
use super::rootfs::rewrite;
use super::{BaseCache, BuildOptions, EPOCH, ImageError, Progress, Step};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tribunal_core::id::Digest;

const SUITE: &str = "trixie";
/// Legacy zone names are apart since Debian 13; tests still use them. Nothing but loopback is there for curl to reach:
/// it is for cases whose cassette answers a script's request.
const PACKAGES: &str = "python3,tzdata,tzdata-legacy,ca-certificates,curl";
/// Not unpacked at all: nothing in a sealed room reads them. Licences stay.
const DPKG: [&str; 6] = [
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/lintian/*",
];
/// One process, in order, with a fixed hash seed: else the caches differ from build to build.
const COMPILE: &str = "chroot \"$1\" /usr/bin/env -i PATH=/usr/bin:/bin PYTHONHASHSEED=0 python3 -s -S -B -m compileall \
    -q -f -j 1 --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.13";
/// Raised when the filter below changes what a layer holds.
const LAYOUT: u32 = 1;

/// The base of an image.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) layer: Blob,
    pub(super) packages: Vec<Package>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    layer: Digest,
    size: u64,
    packages: Vec<Package>,
}

pub(super) async fn provide(
    options: &BuildOptions,
    architecture: &'static str,
    progress: Progress<'_>,
) -> Result<Base, ImageError> {
    match options.base {
        BaseCache::Reuse => {
            let (folder, key) = places(options, architecture);
            if let Some(base) = kept(&folder, &key)? {
                progress(Step::ReusingBase);
                return Ok(base);
            }
        }
        BaseCache::Renew => {}
    }
    made(options, architecture, progress).await
}

/// The base if its layer is what its name says, else a new one.
pub(super) async fn sound(
    base: Base,
    options: &BuildOptions,
    architecture: &'static str,
    progress: Progress<'_>,
) -> Result<Base, ImageError> {
    let layer = base.layer.clone();
    let whole = tokio::task::spawn_blocking(move || {
        files::digest(&layer.path).is_ok_and(|found| found == layer.digest)
    });
    if whole.await.unwrap_or_default() {
        return Ok(base);
    }
    made(options, architecture, progress).await
}

async fn made(
    options: &BuildOptions,
    architecture: &'static str,
    progress: Progress<'_>,
) -> Result<Base, ImageError> {
    progress(Step::BuildingBase);
    let (folder, key) = places(options, architecture);
    let mirror = options.mirror.clone();
    let made = tokio::task::spawn_blocking(move || make(&folder, &key, mirror.as_deref())).await;
    made.unwrap_or_else(|error| Err(ImageError::Base(error.to_string())))
}

/// The folder of bases, and the file that says which one a recipe made.
fn places(options: &BuildOptions, architecture: &str) -> (PathBuf, PathBuf) {
    let recipe = format!(
        "{LAYOUT} {SUITE} {architecture} {PACKAGES} {DPKG:?} {COMPILE} {EPOCH} {:?}",
        options.mirror
    );
    let folder = options.cache.join("base");
    let key = folder.join(format!("{}.json", Digest::of(recipe.as_bytes()).hex()));
    (folder, key)
}

fn kept(folder: &Path, key: &Path) -> Result<Option<Base>, ImageError> {
    let Some(bytes) = files::read_if_there(key)? else {
        return Ok(None);
    };
    let Ok(kept) = serde_json::from_slice::<Kept>(&bytes) else {
        return Ok(None);
    };
    let path = folder.join(format!("{}.tar", kept.layer.hex()));
    if !path.metadata().is_ok_and(|file| file.len() == kept.size) {
        return Ok(None);
    }
    let layer = Blob {
        path,
        digest: kept.layer,
        size: kept.size,
    };
    Ok(Some(Base {
        layer,
        packages: kept.packages,
    }))
}

fn make(folder: &Path, key: &Path, mirror: Option<&str>) -> Result<Base, ImageError> {
    files::folder(folder)?;
    let mut errors =
        tempfile::tempfile().map_err(|error| ImageError::file("write below", folder, error))?;
    let stderr = errors
        .try_clone()
        .map_err(|error| ImageError::file("write below", folder, error))?;
    let mut command = Command::new("mmdebstrap");
    command
        .args(["--variant=minbase", "--format=tar", "--quiet"])
        .arg(format!("--include={PACKAGES}"))
        .args(DPKG.iter().map(|option| format!("--dpkgopt={option}")))
        .arg(format!("--customize-hook={COMPILE}"))
        .args([SUITE, "-"])
        .args(mirror)
        .env("SOURCE_DATE_EPOCH", EPOCH.to_string())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(stderr);
    let mut child = command
        .spawn()
        .map_err(ImageError::spawning("mmdebstrap", "mmdebstrap"))?;
    let mut packages = Vec::new();
    let kept = match child.stdout.take() {
        Some(mut stdout) => files::keep_blob(folder, ".tar", |layer| {
            let written = rewrite(&mut stdout, layer, &mut packages);
            // Left unread, the rest would end mmdebstrap with a broken pipe.
            io::copy(&mut stdout, &mut io::sink())
                .and(written)
                .map_err(|error| ImageError::Base(error.to_string()))
        }),
        None => Err(ImageError::Base("it has no output".to_owned())),
    };
    let status = child
        .wait()
        .map_err(|error| ImageError::Base(error.to_string()))?;
    if !status.success() {
        let mut text = Vec::new();
        let _ = errors.rewind().and_then(|()| errors.read_to_end(&mut text));
        return Err(ImageError::Base(last_words(&text)));
    }
    let layer = kept?;
    packages.sort();
    let record = Kept {
        layer: layer.digest.clone(),
        size: layer.size,
        packages: packages.clone(),
    };
    let bytes = serde_json::to_vec_pretty(&record).map_err(|source| ImageError::Record {
        path: key.to_owned(),
        source,
    })?;
    files::replace(key, &bytes)?;
    prune(folder);
    Ok(Base { layer, packages })
}

/// Layers that no recipe names any more: a hundred megabytes each. What cannot be removed stays.
fn prune(folder: &Path) {
    let named = |path: &Path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    let paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let kept: Vec<String> = paths
        .iter()
        .filter(|path| named(path))
        .filter_map(|path| serde_json::from_slice::<Kept>(&fs::read(path).ok()?).ok())
        .map(|kept| kept.layer.hex().to_owned())
        .collect();
    for path in paths.iter().filter(|path| !named(path)) {
        if !path
            .file_stem()
            .is_some_and(|stem| kept.iter().any(|hex| stem == hex.as_str()))
        {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{Kept, prune};
    use tribunal_core::id::Digest;

    #[test]
    fn a_layer_that_no_recipe_names_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let layer = Digest::of(b"kept");
        let record = Kept {
            layer: layer.clone(),
            size: 4,
            packages: Vec::new(),
        };
        let named = folder.path().join(format!("{}.tar", layer.hex()));
        let unnamed = folder
            .path()
            .join(format!("{}.tar", Digest::of(b"old").hex()));
        std::fs::write(&named, "kept").unwrap();
        std::fs::write(&unnamed, "old").unwrap();
        std::fs::write(
            folder.path().join("recipe.json"),
            serde_json::to_vec(&record).unwrap(),
        )
        .unwrap();
        prune(folder.path());
        assert!(named.exists() && !unnamed.exists());
    }
}
