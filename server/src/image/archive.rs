//! An image as bytes of our own: a configuration and layers in the archive that `docker load` takes.
//!
//! The configuration's digest is the image's identity. It holds no time but ours and names its layers
//! by digest, so equal content is an equal image.

use super::EPOCH;
use super::base::Base;
use super::files::Blob;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use tribunal_core::id::Digest;

const CREATED: &str = "2023-11-14T22:13:20Z";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a runner image says about itself.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) tag: String,
    pub(super) runner: Digest,
    pub(super) requirements: Option<Digest>,
}

/// An image that can be written.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) tag: String,
    config: Vec<u8>,
    layers: Vec<Blob>,
}

#[derive(Serialize)]
struct Config<'a> {
    architecture: &'a str,
    config: Run<'a>,
    created: &'a str,
    history: Vec<History<'a>>,
    os: &'a str,
    rootfs: RootFs<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Run<'a> {
    entrypoint: Option<&'a [&'a str]>,
    env: [&'a str; 2],
    labels: BTreeMap<&'a str, &'a str>,
    working_dir: &'a str,
}

#[derive(Serialize)]
struct History<'a> {
    created: &'a str,
    created_by: &'a str,
}

#[derive(Serialize)]
struct RootFs<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    diff_ids: Vec<&'a Digest>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest<'a> {
    config: &'a str,
    repo_tags: [&'a str; 1],
    layers: Vec<String>,
}

impl Image {
    /// The bare base, in which the rest is assembled.
    pub(super) fn base(architecture: &str, base: &Base) -> Self {
        let tag = format!(
            "tribunal/base:{}",
            base.layer.digest.hex().get(..12).unwrap_or_default()
        );
        Self::new(
            tag,
            architecture,
            None,
            "/",
            BTreeMap::new(),
            vec![(base.layer.clone(), "mmdebstrap")],
        )
    }

    /// The runner: the base and what was assembled upon it.
    pub(super) fn runner(
        architecture: &str,
        base: &Base,
        assembled: &Blob,
        identity: &Identity,
    ) -> Self {
        let mut labels = BTreeMap::from([
            ("org.opencontainers.image.title", "tribunal runner"),
            (
                "org.opencontainers.image.version",
                env!("CARGO_PKG_VERSION"),
            ),
            ("tribunal.runner.digest", identity.runner.as_str()),
        ]);
        if let Some(requirements) = &identity.requirements {
            labels.insert("tribunal.requirements.digest", requirements.as_str());
        }
        let entrypoint = [
            "python3",
            "-I",
            "-S",
            "-B",
            "/opt/tribunal/harness",
            "supervise",
        ];
        let layers = vec![
            (base.layer.clone(), "mmdebstrap"),
            (assembled.clone(), "assemble.py"),
        ];
        Self::new(
            identity.tag.clone(),
            architecture,
            Some(&entrypoint),
            "/tree",
            labels,
            layers,
        )
    }

    fn new(
        tag: String,
        architecture: &str,
        entrypoint: Option<&[&str]>,
        working_dir: &str,
        labels: BTreeMap<&str, &str>,
        layers: Vec<(Blob, &str)>,
    ) -> Self {
        let config = Config {
            architecture,
            config: Run {
                entrypoint,
                env: [PATH, "LANG=C.UTF-8"],
                labels,
                working_dir,
            },
            created: CREATED,
            history: layers
                .iter()
                .map(|(_, created_by)| History {
                    created: CREATED,
                    created_by,
                })
                .collect(),
            os: "linux",
            rootfs: RootFs {
                kind: "layers",
                diff_ids: layers.iter().map(|(blob, _)| &blob.digest).collect(),
            },
        };
        // Text and maps with text keys: this cannot fail, and an empty configuration would not load.
        let config = serde_json::to_vec(&config).unwrap_or_default();
        Self {
            tag,
            config,
            layers: layers.into_iter().map(|(blob, _)| blob).collect(),
        }
    }

    /// The identity.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.config)
    }

    /// Writes the archive.
    pub(super) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let digest = self.digest();
        let config = format!("{}.json", digest.hex());
        let names: Vec<String> = self
            .layers
            .iter()
            .map(|layer| format!("{}.tar", layer.digest.hex()))
            .collect();
        let manifest = [Manifest {
            config: &config,
            repo_tags: [&self.tag],
            layers: names.clone(),
        }];
        let manifest = serde_json::to_vec(&manifest)?;
        let mut archive = tar::Builder::new(to);
        archive.append_data(
            &mut header(manifest.len() as u64),
            "manifest.json",
            manifest.as_slice(),
        )?;
        archive.append_data(
            &mut header(self.config.len() as u64),
            &config,
            self.config.as_slice(),
        )?;
        for (layer, name) in self.layers.iter().zip(names) {
            archive.append_data(&mut header(layer.size), name, File::open(&layer.path)?)?;
        }
        archive.into_inner()?.flush()
    }
}

/// A plain file of ours.
pub(super) fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(EPOCH);
    header.set_size(size);
    header
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{Base, Blob, CREATED, EPOCH, Identity, Image};
    use tribunal_core::id::{Digest, UnixTime};

    fn blob(folder: &std::path::Path, content: &str) -> Blob {
        let path = folder.join(content);
        std::fs::write(&path, content).unwrap();
        Blob {
            path,
            digest: Digest::of(content.as_bytes()),
            size: content.len() as u64,
        }
    }

    #[test]
    fn the_time_of_the_image_is_that_of_its_files() {
        assert_eq!(UnixTime(i64::try_from(EPOCH).unwrap()).rfc3339(), CREATED);
    }

    #[test]
    fn equal_content_is_an_equal_image_and_its_bytes_are_frozen() {
        let folder = tempfile::tempdir().unwrap();
        let base = Base {
            layer: blob(folder.path(), "base"),
            packages: Vec::new(),
        };
        let identity = Identity {
            tag: "t:1".to_owned(),
            runner: Digest::of(b"runner"),
            requirements: None,
        };
        let image = Image::runner("amd64", &base, &blob(folder.path(), "runner"), &identity);
        let config = String::from_utf8(image.config.clone()).unwrap();
        assert!(
            config.contains(
                r#""Entrypoint":["python3","-I","-S","-B","/opt/tribunal/harness","supervise"]"#
            ),
            "{config}"
        );
        assert!(config.contains(Digest::of(b"base").as_str()));
        let mut bytes = Vec::new();
        image.write(&mut bytes).unwrap();
        let mut again = Vec::new();
        Image::runner("amd64", &base, &blob(folder.path(), "runner"), &identity)
            .write(&mut again)
            .unwrap();
        assert_eq!(bytes, again);
        let other = Identity {
            runner: Digest::of(b"another"),
            ..identity
        };
        assert_ne!(
            image.digest(),
            Image::runner("amd64", &base, &blob(folder.path(), "runner"), &other).digest()
        );
    }
}
