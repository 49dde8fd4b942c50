//! Wheels: fetched by this machine's pip, with the user's own pip configuration, for the image's Python
//! and never for this machine's; each checked here once more against the hashes of the requirements.
//!
//! Nothing is installed or executed here. Kept in the data folder by the requirements' digest.

use super::error::last_words;
use super::files;
use super::requirements::{Need, Requirement, Requirements, normalised};
use super::{ImageError, Progress, Step};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tribunal_core::id::Digest;

/// The base's C library: wheels built for a newer one would not load.
const GLIBC_MINOR: u32 = 41;
const COMPLETE: &str = "complete";

/// One file of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wheel {
    /// Its file name.
    pub(super) file: String,
    pub(super) digest: Digest,
    pub(super) path: PathBuf,
}

pub(super) async fn provide(
    folder: &Path,
    requirements: &Requirements,
    architecture: &'static str,
    progress: Progress<'_>,
) -> Result<Vec<Wheel>, ImageError> {
    if requirements.items.is_empty() {
        return Ok(Vec::new());
    }
    let folder = folder.to_owned();
    let pool = folder
        .join("wheels")
        .join(format!("{}-{architecture}", requirements.digest.hex()));
    if pool.join(COMPLETE).exists()
        && let Ok(wheels) = checked(&pool, requirements)
    {
        progress(Step::ReusingWheels(wheels.len()));
        return Ok(wheels);
    }
    progress(Step::FetchingWheels(requirements.items.len()));
    let requirements = requirements.clone();
    let fetched =
        tokio::task::spawn_blocking(move || fetch(&folder, &pool, &requirements, architecture))
            .await;
    fetched.unwrap_or_else(|error| Err(ImageError::Pip(error.to_string())))
}

fn fetch(
    folder: &Path,
    pool: &Path,
    requirements: &Requirements,
    architecture: &str,
) -> Result<Vec<Wheel>, ImageError> {
    let parent = folder.join("wheels");
    files::folder(&parent)?;
    let partial = tempfile::tempdir_in(&parent)
        .map_err(|error| ImageError::file("create a folder below", &parent, error))?;
    let list = partial.path().join("requirements.txt");
    fs::write(&list, listing(&requirements.items))
        .map_err(|error| ImageError::file("write", &list, error))?;
    let python = python_with_pip(folder)?;
    let output = run(Command::new(python)
        .args([
            "-m",
            "pip",
            "download",
            "--no-input",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args([
            "--require-hashes",
            "--only-binary=:all:",
            "--python-version=3.13",
            "--implementation=cp",
        ])
        .args(["--abi=cp313", "--abi=abi3", "--abi=none"])
        .args(platforms(architecture))
        .arg("--dest")
        .arg(partial.path())
        .arg("--requirement")
        .arg(&list))?;
    if !output.status.success() {
        return Err(ImageError::Pip(last_words(
            &[output.stdout, output.stderr].concat(),
        )));
    }
    checked(partial.path(), requirements)?;
    let complete = partial.path().join(COMPLETE);
    fs::write(&complete, "").map_err(|error| ImageError::file("write", &complete, error))?;
    match fs::remove_dir_all(pool) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ImageError::file("replace", pool, error));
        }
        _ => fs::rename(partial.keep(), pool)
            .map_err(|error| ImageError::file("create", pool, error))?,
    }
    checked(pool, requirements)
}

fn listing(items: &[Requirement]) -> String {
    items
        .iter()
        .map(|item| {
            let hashes: Vec<String> = item
                .hashes
                .iter()
                .map(|hash| format!("--hash=sha256:{}", hash.hex()))
                .collect();
            format!("{} {}\n", item.text, hashes.join(" "))
        })
        .collect()
}

/// Every name under which a wheel for this C library or an older one may go; pip does not derive them.
fn platforms(architecture: &str) -> Vec<String> {
    let (machine, oldest, aliases): (_, _, &[&str]) = match architecture {
        "arm64" => ("aarch64", 17, &["manylinux2014"]),
        _ => (
            "x86_64",
            5,
            &["manylinux2014", "manylinux2010", "manylinux1"],
        ),
    };
    let numbered = (oldest..=GLIBC_MINOR)
        .rev()
        .map(|minor| format!("--platform=manylinux_2_{minor}_{machine}"));
    let named = aliases
        .iter()
        .map(|alias| format!("--platform={alias}_{machine}"));
    numbered
        .chain(named)
        .chain([format!("--platform=linux_{machine}")])
        .collect()
}

/// This machine's python3 if it has pip, else a virtual environment of ours.
fn python_with_pip(folder: &Path) -> Result<PathBuf, ImageError> {
    let python = PathBuf::from("python3");
    if run(Command::new(&python).args(["-m", "pip", "--version"]))?
        .status
        .success()
    {
        return Ok(python);
    }
    let environment = folder.join("pip");
    let own = environment.join("bin/python3");
    let has_pip = |python: &Path| {
        python.exists()
            && Command::new(python)
                .args(["-m", "pip", "--version"])
                .output()
                .is_ok_and(|o| o.status.success())
    };
    if !has_pip(&own) {
        run(Command::new(&python)
            .args(["-m", "venv", "--clear"])
            .arg(&environment))?;
    }
    if has_pip(&own) {
        Ok(own)
    } else {
        Err(ImageError::Missing {
            program: "pip",
            package: "python3-venv",
        })
    }
}

fn run(command: &mut Command) -> Result<Output, ImageError> {
    command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(ImageError::spawning("python3", "python3"))
}

/// The folder's wheels, sorted: each asked for, each with a hash that was asked for, none missing.
fn checked(folder: &Path, requirements: &Requirements) -> Result<Vec<Wheel>, ImageError> {
    let failed = |error| ImageError::file("read", folder, error);
    let mut wheels = Vec::new();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let Some(stem) = file.strip_suffix(".whl") else {
            continue;
        };
        let name = normalised(stem.split('-').next().unwrap_or_default());
        let digest = files::digest(&path).map_err(failed)?;
        let asked = requirements
            .items
            .iter()
            .any(|item| item.name == name && item.hashes.contains(&digest));
        if !asked {
            return Err(ImageError::Hash { file });
        }
        found.insert(name);
        wheels.push(Wheel { file, digest, path });
    }
    let missing = requirements
        .items
        .iter()
        .find(|item| item.need == Need::Always && !found.contains(&item.name));
    if let Some(item) = missing {
        return Err(ImageError::NoWheel(item.text.clone()));
    }
    wheels.sort();
    Ok(wheels)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::{checked, platforms};
    use crate::image::requirements::{Requirements, parse};
    use std::path::Path;
    use tribunal_core::id::Digest;

    fn requirements(content: &[u8]) -> Requirements {
        let text = format!("my-package==1 --hash=sha256:{}", Digest::of(content).hex());
        parse(Path::new("r.txt"), &text).unwrap()
    }

    #[test]
    fn only_what_was_asked_for_with_its_hash_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let asked = requirements(b"wheel");
        assert!(
            checked(folder.path(), &asked)
                .unwrap_err()
                .to_string()
                .contains("no wheel for my-package==1")
        );
        std::fs::write(folder.path().join("My_Package-1-py3-none-any.whl"), "wheel").unwrap();
        let wheels = checked(folder.path(), &asked).unwrap();
        assert_eq!(wheels.first().unwrap().digest, Digest::of(b"wheel"));
        let error = checked(folder.path(), &requirements(b"another")).unwrap_err();
        assert!(
            error.to_string().contains("does not have a hash"),
            "{error}"
        );
        std::fs::write(folder.path().join("other-1-py3-none-any.whl"), "wheel").unwrap();
        assert!(
            checked(folder.path(), &asked)
                .unwrap_err()
                .to_string()
                .starts_with("other-1")
        );
    }

    #[test]
    fn platforms_go_down_from_the_bases_own_library() {
        let amd64 = platforms("amd64");
        assert_eq!(
            amd64.first().map(String::as_str),
            Some("--platform=manylinux_2_41_x86_64")
        );
        assert!(amd64.contains(&"--platform=manylinux2014_x86_64".to_owned()));
        assert!(platforms("arm64").contains(&"--platform=manylinux_2_17_aarch64".to_owned()));
        assert!(!platforms("arm64").contains(&"--platform=manylinux_2_16_aarch64".to_owned()));
    }
}
