//! Which images were built, in `images/images.json` of the data folder: one record a tag, the newest.
//! Beside them, in the cache, which inputs made which image, so that they need not make it again.

use super::{ImageError, files};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tribunal_core::id::Digest;

/// One image, as `image list` shows it and as statements name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuiltImage {
    /// What a policy's `image` says.
    pub tag: String,
    /// Of its configuration, which names its layers: the content's own identity, on any machine.
    pub digest: Digest,
    /// What the engine calls it; the same as `digest`, but on engines that keep images in containerd.
    pub engine_id: String,
    /// The interpreter's full version.
    pub python: String,
    /// As the engine spells it.
    pub architecture: String,
    /// Over harness, pins and runner packages.
    pub runner_digest: Digest,
    /// Over the project's own requirements.
    pub requirements_digest: Option<Digest>,
    /// Debian packages.
    pub base: Vec<Package>,
    /// pytest, Hypothesis and what they need.
    pub runner: Vec<Package>,
    /// The project's own.
    pub deps: Vec<Package>,
    /// When, in seconds since 1970.
    pub built_at: i64,
}

/// A package and its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

fn path(data: &Path) -> PathBuf {
    data.join("images").join("images.json")
}

/// All images on record, by tag.
///
/// # Errors
/// The record cannot be read.
pub fn list(data: &Path) -> Result<Vec<BuiltImage>, ImageError> {
    let path = path(data);
    match files::read_if_there(&path)? {
        None => Ok(Vec::new()),
        Some(bytes) => {
            serde_json::from_slice(&bytes).map_err(|source| ImageError::Record { path, source })
        }
    }
}

/// The image on record under a tag.
///
/// # Errors
/// The record cannot be read.
pub fn find(data: &Path, tag: &str) -> Result<Option<BuiltImage>, ImageError> {
    Ok(list(data)?.into_iter().find(|image| image.tag == tag))
}

pub(super) fn add(data: &Path, image: &BuiltImage) -> Result<(), ImageError> {
    let path = path(data);
    let mut images = list(data)?;
    images.retain(|other| other.tag != image.tag);
    images.push(image.clone());
    images.sort_by(|a, b| a.tag.cmp(&b.tag));
    let bytes = serde_json::to_vec_pretty(&images).map_err(|source| ImageError::Record {
        path: path.clone(),
        source,
    })?;
    files::replace(&path, &bytes)
}

/// The image that these inputs made before.
pub(super) fn known(cache: &Path, inputs: &Digest) -> Result<Option<BuiltImage>, ImageError> {
    let bytes = files::read_if_there(&known_path(cache, inputs))?;
    // A record of another version is no record: the image is built again.
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

pub(super) fn know(cache: &Path, inputs: &Digest, image: &BuiltImage) -> Result<(), ImageError> {
    let path = known_path(cache, inputs);
    let bytes = serde_json::to_vec_pretty(image).map_err(|source| ImageError::Record {
        path: path.clone(),
        source,
    })?;
    files::replace(&path, &bytes)
}

fn known_path(cache: &Path, inputs: &Digest) -> PathBuf {
    cache.join("known").join(format!("{}.json", inputs.hex()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{BuiltImage, Package, add, find, list};
    use tribunal_core::id::Digest;

    fn image(tag: &str, built_at: i64) -> BuiltImage {
        BuiltImage {
            tag: tag.to_owned(),
            digest: Digest::of(tag.as_bytes()),
            engine_id: Digest::of(tag.as_bytes()).to_string(),
            python: "3.13.5".to_owned(),
            architecture: "amd64".to_owned(),
            runner_digest: Digest::of(b"runner"),
            requirements_digest: None,
            base: vec![Package {
                name: "libc6".to_owned(),
                version: "2.41-12".to_owned(),
            }],
            runner: Vec::new(),
            deps: Vec::new(),
            built_at,
        }
    }

    #[test]
    fn a_tag_has_one_record_and_it_is_the_newest() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(list(data.path()).unwrap(), []);
        for image in [image("b", 1), image("a", 2), image("b", 3)] {
            add(data.path(), &image).unwrap();
        }
        assert_eq!(list(data.path()).unwrap(), [image("a", 2), image("b", 3)]);
        assert_eq!(find(data.path(), "b").unwrap(), Some(image("b", 3)));
        assert_eq!(find(data.path(), "c").unwrap(), None);
    }

    #[test]
    fn a_damaged_record_says_so() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("images")).unwrap();
        std::fs::write(data.path().join("images/images.json"), "[{]").unwrap();
        assert!(
            list(data.path())
                .unwrap_err()
                .to_string()
                .contains("build the image again")
        );
    }
}
