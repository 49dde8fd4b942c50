//! `image build|list|export|import`.

use super::{AdminError, Answer, Data};
use crate::image::{self, BuildOptions, BuiltImage, Presence, Step};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use tribunal_core::id::UnixTime;

/// Build and register; `progress` is told each step.
///
/// # Errors
/// See `ImageError`.
pub async fn build_image(
    engine: Option<&str>,
    options: &BuildOptions,
    progress: &(dyn Fn(Step) + Send + Sync),
) -> Result<Answer, AdminError> {
    let docker = image::connect(engine).await?;
    let built = image::build(&docker, options, progress).await?;
    let text = format!("{} is {}\n", built.tag, built.digest);
    Ok(Answer::lines(text, document(&built)))
}

/// Into a file, for another engine.
///
/// # Errors
/// See `ImageError`.
pub async fn export_image(
    data: &Data,
    engine: Option<&str>,
    tag: &str,
    file: &Path,
) -> Result<Answer, AdminError> {
    let docker = image::connect(engine).await?;
    let image = image::export(&docker, data.path(), tag, file).await?;
    let text = format!("{} {} is in {}\n", image.tag, image.digest, file.display());
    Ok(Answer::lines(text, document(&image)))
}

/// From a file of `export_image`, or from stdin where it is `-`.
///
/// # Errors
/// See `ImageError`.
pub async fn import_image(
    data: &Data,
    engine: Option<&str>,
    file: &Path,
) -> Result<Answer, AdminError> {
    let from: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(
            std::fs::File::open(file).map_err(|source| AdminError::File {
                what: format!("read {}", file.display()),
                source,
            })?,
        )
    };
    let docker = image::connect(engine).await?;
    let image = image::import(&docker, data.path(), from).await?;
    let text = format!("{} is {}\n", image.tag, image.digest);
    Ok(Answer::lines(text, document(&image)))
}

/// The default image, built first where it is not there or is an older server's.
///
/// # Errors
/// See `ImageError`.
pub(crate) async fn provide_default(
    data: &Data,
    engine: Option<&str>,
    progress: &(dyn Fn(Step) + Send + Sync),
) -> Result<BuiltImage, AdminError> {
    let docker = image::connect(engine).await?;
    if let Some(known) = image::find(data.path(), image::DEFAULT_TAG)?
        && known.runner_digest == image::runner_digest()
        && image::presence(&docker, &known).await? == Presence::Present
    {
        return Ok(known);
    }
    let options = BuildOptions::new(data.path());
    Ok(image::build(&docker, &options, progress).await?)
}

/// All images on record.
///
/// # Errors
/// The disk.
pub fn list_images(data: &Data) -> Result<Answer, AdminError> {
    let images = image::list(data.path())?;
    let rows = images
        .iter()
        .map(|image| {
            vec![
                image.tag.clone(),
                image.digest.to_string(),
                image.python.clone(),
                UnixTime(image.built_at).rfc3339(),
            ]
        })
        .collect();
    let mut answer = Answer::table("images", &["tag", "digest", "python", "built"], rows);
    answer.json = json!({ "images": images.iter().map(document).collect::<Vec<_>>() });
    Ok(answer)
}

fn document(image: &BuiltImage) -> Value {
    serde_json::to_value(image).unwrap_or_default()
}
