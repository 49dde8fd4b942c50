//! A built image on its way to another engine: one file with its record, then the engine's own archive of it. For machines
//! that cannot build, as a server in a container or one without a mirror.
//!
//! Nothing of a file reaches the engine before all of it was looked at: one image, of the configuration that the record names,
//! for this processor and this very server. Whether layers are those of the configuration, the engine checks. Never builds,
//! never fetches.

use super::engine::{self, in_time};
use super::{BuiltImage, ImageError, archive, files, record, runner_digest};
use bollard::Docker;
use futures::StreamExt as _;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;
use tribunal_core::id::Digest;

const RECORD: &str = "tribunal-image.json";
const ARCHIVE: &str = "image.tar";
/// For giving an image away, on a slow disk.
const SAVE: Duration = Duration::from_secs(600);
/// Of a record, a manifest or a configuration.
const MOST: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Manifest {
    config: String,
    repo_tags: Option<Vec<String>>,
}

/// Write the image of this tag into a file that is not there before it is whole.
///
/// # Errors
/// No such image is on record, or the engine lost it; the disk.
pub async fn export(
    docker: &Docker,
    data: &Path,
    tag: &str,
    to: &Path,
) -> Result<BuiltImage, ImageError> {
    let image = record::find(data, tag)?.ok_or_else(|| ImageError::Unknown(tag.to_owned()))?;
    // Under its tag, which the archive carries, and which may have gone to another since.
    if engine::id_of(docker, &image.tag).await?.as_ref() != Some(&image.engine_id) {
        return Err(ImageError::Unknown(tag.to_owned()));
    }
    let failed = |error| ImageError::file("write", to, error);
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let partial = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut partial = partial.map_err(failed)?;
    let begin = begun(partial.as_file_mut(), &image).map_err(failed)?;
    let mut pieces = std::pin::pin!(docker.export_image(&image.tag));
    let size = in_time(SAVE, "give the image", async {
        let mut size = 0_u64;
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(ImageError::engine("give the image"))?;
            partial.write_all(&piece).map_err(failed)?;
            size += piece.len() as u64;
        }
        Ok::<_, ImageError>(size)
    })
    .await??;
    ended(partial.as_file_mut(), begin, size).map_err(failed)?;
    partial.persist(to).map_err(|error| failed(error.error))?;
    Ok(image)
}

/// The record, and room for the header of what follows, whose size is known once it is there.
fn begun(file: &mut File, image: &BuiltImage) -> io::Result<u64> {
    let record = serde_json::to_vec_pretty(image)?;
    let mut header = archive::header(record.len() as u64);
    header.set_path(RECORD)?;
    header.set_cksum();
    file.write_all(header.as_bytes())?;
    file.write_all(&record)?;
    pad(file, record.len() as u64)?;
    let begin = file.stream_position()?;
    file.write_all(&[0; 512])?;
    Ok(begin)
}

fn ended(file: &mut File, begin: u64, size: u64) -> io::Result<()> {
    pad(file, size)?;
    file.write_all(&[0; 1024])?;
    file.seek(SeekFrom::Start(begin))?;
    let mut header = archive::header(size);
    header.set_path(ARCHIVE)?;
    header.set_cksum();
    file.write_all(header.as_bytes())?;
    file.sync_all()
}

fn pad(file: &mut File, size: u64) -> io::Result<()> {
    let rest = usize::try_from(size.next_multiple_of(512) - size).unwrap_or(0);
    file.write_all(&[0; 512][..rest])
}

/// Give the engine the image of an exported file, and put it on record.
///
/// # Errors
/// The file is not what `export` writes, or another server's; the engine; the disk.
pub async fn import(
    docker: &Docker,
    data: &Path,
    from: Box<dyn Read + Send>,
) -> Result<BuiltImage, ImageError> {
    let architecture = engine::architecture(docker).await?;
    let work = data.join("images");
    let looked = tokio::task::spawn_blocking(move || looked_at(from, &work, architecture));
    let (image, file) = looked
        .await
        .map_err(|error| ImageError::file("read", data, io::Error::other(error)))??;
    let stream = engine::written(move |to| io::copy(&mut &file, to).map(drop));
    engine::take(docker, stream).await?;
    let engine_id = engine::id_of(docker, &image.tag)
        .await?
        .ok_or(ImageError::EngineSlow("show the image it took"))?;
    let image = BuiltImage { engine_id, ..image };
    record::add(data, &image)?;
    Ok(image)
}

/// The record, and the archive in a file without a name.
fn looked_at(
    from: Box<dyn Read + Send>,
    work: &Path,
    architecture: &'static str,
) -> Result<(BuiltImage, File), ImageError> {
    files::folder(work)?;
    let no = |why: &str| ImageError::NotExported(why.to_owned());
    let unread = |error: io::Error| ImageError::NotExported(error.to_string());
    let mut outer = tar::Archive::new(from);
    let mut entries = outer.entries().map_err(unread)?;
    let mut next = |name: &str| {
        let entry = entries.next().ok_or_else(|| no("it ends too soon"))?;
        let entry = entry.map_err(unread)?;
        match entry.path() {
            Ok(path) if path == Path::new(name) => Ok(entry),
            _ => Err(no(&format!("`{name}` is not where it should be"))),
        }
    };
    let image = record_in(next(RECORD)?)?;
    if image.architecture != architecture {
        let own = &image.architecture;
        return Err(no(&format!(
            "it is for {own} and the engine here for {architecture}"
        )));
    }
    if image.runner_digest != runner_digest() {
        return Err(no(
            "another version of tribunal-server made it; export it with this one",
        ));
    }
    let failed = |error| ImageError::file("write", work, error);
    let mut kept = tempfile::tempfile_in(work).map_err(failed)?;
    let mut inner = next(ARCHIVE)?;
    let size = inner.size();
    let copied = io::copy(&mut inner, &mut kept).map_err(failed)?;
    if copied != size {
        return Err(no("it ends too soon"));
    }
    one_image(&mut kept, &image)?;
    kept.rewind().map_err(failed)?;
    Ok((image, kept))
}

fn record_in(entry: impl Read) -> Result<BuiltImage, ImageError> {
    let mut bytes = Vec::new();
    let read = entry.take(MOST).read_to_end(&mut bytes);
    let record = read.map_err(serde_json::Error::io);
    record
        .and_then(|_| serde_json::from_slice(&bytes))
        .map_err(|error| ImageError::NotExported(format!("its record: {error}")))
}

/// Whether the archive holds the image of the record, under its tag, and no other.
fn one_image(archive: &mut File, image: &BuiltImage) -> Result<(), ImageError> {
    let no = |why: &str| ImageError::NotExported(why.to_owned());
    let manifest = member(archive, "manifest.json")?.ok_or_else(|| no("it has no manifest"))?;
    let manifest: Vec<Manifest> =
        serde_json::from_slice(&manifest).map_err(|error| no(&format!("its manifest: {error}")))?;
    let [one] = manifest.as_slice() else {
        return Err(no("it holds more than one image"));
    };
    if one.repo_tags.as_deref() != Some(std::slice::from_ref(&image.tag)) {
        return Err(no("its image has another tag than its record says"));
    }
    let config = member(archive, &one.config)?.ok_or_else(|| no("it has no configuration"))?;
    if Digest::of(&config) != image.digest {
        return Err(no("its image is another than its record says"));
    }
    Ok(())
}

fn member(archive: &mut File, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
    let unread = |error: io::Error| ImageError::NotExported(error.to_string());
    archive.rewind().map_err(unread)?;
    for entry in tar::Archive::new(archive).entries().map_err(unread)? {
        let entry = entry.map_err(unread)?;
        if entry.path().is_ok_and(|path| path == Path::new(name)) {
            let mut bytes = Vec::new();
            entry.take(MOST).read_to_end(&mut bytes).map_err(unread)?;
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}
