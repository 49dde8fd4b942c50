//! The Debian base: mmdebstrap's root file system as one layer with our times, without what a sealed
//! room does not need, and with the standard library compiled to caches that are never checked.
//!
//! Made once for a recipe and kept in the cache; a kept layer whose digest is not its name is made
//! again before anything is built of it.

use super::error::last_words;
use super::files::{self, Blob};
use super::record::Package;
use super::{BaseCache, BuildOptions, EPOCH, ImageError, Progress, Step};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tribunal_core::id::Digest;

const SUITE: &str = "trixie";
/// Legacy zone names are apart since Debian 13; tests still use them.
const PACKAGES: &str = "python3,tzdata,tzdata-legacy,ca-certificates";
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
    Ok(Base { layer, packages })
}

/// mmdebstrap's tar, in its order (sorted by name), with our times and without what `kept_path` drops.
fn rewrite(from: &mut dyn Read, to: &mut dyn Write, packages: &mut Vec<Package>) -> io::Result<()> {
    let mut source = tar::Archive::new(from);
    let mut target = tar::Builder::new(to);
    for entry in source.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Some(name) = path.to_str().map(|name| {
            name.trim_start_matches("./")
                .trim_end_matches('/')
                .to_owned()
        }) else {
            continue;
        };
        if !kept_path(&name) {
            continue;
        }
        let kind = entry.header().entry_type();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        // Nothing in a sealed room may gain a right by being run.
        header.set_mode(entry.header().mode()? & 0o1777);
        header.set_uid(entry.header().uid()?);
        header.set_gid(entry.header().gid()?);
        header.set_mtime(EPOCH);
        if kind.is_symlink() || kind.is_hard_link() {
            let link = entry.link_name()?.unwrap_or_default().into_owned();
            let link = if kind.is_hard_link() {
                link.strip_prefix("./").unwrap_or(&link)
            } else {
                &link
            };
            header.set_size(0);
            target.append_link(&mut header, &name, link)?;
        } else if kind.is_dir() {
            header.set_size(0);
            target.append_data(&mut header, &name, io::empty())?;
        } else if kind.is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if name == "var/lib/dpkg/status" {
                packages.extend(installed(&String::from_utf8_lossy(&content)));
            }
            header.set_size(content.len() as u64);
            target.append_data(&mut header, &name, content.as_slice())?;
        }
    }
    target.into_inner()?.flush()
}

/// Devices come from the engine; logs, lists, backups and caches differ from build to build; the two
/// files that the host lends are its own; compiled files of packages outside Python's two folders
/// carry times.
fn kept_path(name: &str) -> bool {
    const DROPPED: [&str; 10] = [
        "dev/",
        "proc/",
        "sys/",
        "run/",
        "tmp/",
        "var/cache/",
        "var/log/",
        "var/lib/apt/lists/",
        "var/tmp/",
        "boot/",
    ];
    const FILES: [&str; 8] = [
        "etc/machine-id",
        "etc/resolv.conf",
        "etc/hostname",
        "etc/passwd-",
        "etc/group-",
        "etc/shadow-",
        "etc/gshadow-",
        "etc/.pwd.lock",
    ];
    let python = name.starts_with("usr/lib/python3");
    !(name.is_empty()
        || DROPPED.iter().any(|folder| name.starts_with(folder))
        || FILES.contains(&name)
        || (name.starts_with("var/lib/dpkg/") && name.ends_with("-old"))
        || (!python && name.contains("__pycache__")))
}

fn installed(status: &str) -> Vec<Package> {
    let field = |paragraph: &str, name: &str| {
        paragraph
            .lines()
            .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    status
        .split("\n\n")
        .filter(|paragraph| {
            field(paragraph, "Status:").is_some_and(|status| status.ends_with(" installed"))
        })
        .filter_map(|paragraph| {
            Some(Package {
                name: field(paragraph, "Package:")?,
                version: field(paragraph, "Version:")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{EPOCH, installed, kept_path, rewrite};

    #[test]
    fn installed_packages_are_read_from_dpkgs_own_file() {
        let status = "Package: a\nStatus: install ok installed\nVersion: 1:2-3\n\nPackage: b\n\
                      Status: deinstall ok config-files\nVersion: 1\n";
        let found = installed(status);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found.first().map(|p| (p.name.as_str(), p.version.as_str())),
            Some(("a", "1:2-3"))
        );
    }

    #[test]
    fn what_differs_from_build_to_build_is_dropped_and_its_folder_kept() {
        for name in [
            "dev/null",
            "var/log/dpkg.log",
            "etc/machine-id",
            "usr/share/python3/__pycache__/x.pyc",
            "",
        ] {
            assert!(!kept_path(name), "{name}");
        }
        for name in [
            "dev",
            "var/log",
            "usr/lib/python3.13/__pycache__/os.cpython-313.pyc",
            "etc/passwd",
        ] {
            assert!(kept_path(name), "{name}");
        }
    }

    #[test]
    fn times_and_set_user_bits_do_not_pass() {
        let mut source = tar::Builder::new(Vec::new());
        let mut header = crate::image::archive::header(0);
        header.set_mode(0o4755);
        header.set_mtime(12345);
        header.set_size(1);
        source
            .append_data(&mut header, "./bin/su", b"x".as_slice())
            .unwrap();
        let mut header = crate::image::archive::header(0);
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        source
            .append_link(&mut header, "./bin/su2", "./bin/su")
            .unwrap();
        let bytes = source.into_inner().unwrap();
        let mut layer = Vec::new();
        rewrite(&mut bytes.as_slice(), &mut layer, &mut Vec::new()).unwrap();
        let mut archive = tar::Archive::new(layer.as_slice());
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let link = entry
                    .link_name()
                    .unwrap()
                    .map(|link| link.display().to_string());
                (
                    entry.path().unwrap().display().to_string(),
                    entry.header().mode().unwrap(),
                    entry.header().mtime().unwrap(),
                    link,
                )
            })
            .collect();
        assert_eq!(
            entries,
            [
                ("bin/su".to_owned(), 0o755, EPOCH, None),
                (
                    "bin/su2".to_owned(),
                    0o644,
                    EPOCH,
                    Some("bin/su".to_owned())
                ),
            ]
        );
    }
}
