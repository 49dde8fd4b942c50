//! The engine's part: whether it answers, has an image, and takes one.

use super::archive::Image;
use super::{ImageError, record::BuiltImage};
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{ImportImageOptionsBuilder, TagImageOptionsBuilder};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// For questions.
const ANSWER: Duration = Duration::from_secs(30);
/// For taking an image, on a slow disk.
const LOAD: Duration = Duration::from_secs(600);
const CHUNK: usize = 256 * 1024;

/// Whether the engine has an image that is on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has exactly that one.
    Present,
    /// Not this one, whatever its tag now names.
    Absent,
}

/// The engine at this address, as in `unix:///var/run/docker.sock`; `None` is the local socket.
///
/// # Errors
/// It does not answer.
pub async fn connect(host: Option<&str>) -> Result<Docker, ImageError> {
    let docker = match host {
        Some(host) => Docker::connect_with_host(host),
        None => Docker::connect_with_socket_defaults(),
    }
    .map_err(ImageError::Engine)?;
    in_time(ANSWER, "answer", docker.negotiate_version())
        .await?
        .map_err(ImageError::Engine)
}

/// Asks the engine for an image on record.
///
/// # Errors
/// The engine does not answer.
pub async fn presence(docker: &Docker, image: &BuiltImage) -> Result<Presence, ImageError> {
    Ok(match id_of(docker, &image.engine_id).await? {
        Some(_) => Presence::Present,
        None => Presence::Absent,
    })
}

/// Waits no longer than this for the engine.
pub(super) async fn in_time<T>(
    limit: Duration,
    what: &'static str,
    act: impl Future<Output = T>,
) -> Result<T, ImageError> {
    tokio::time::timeout(limit, act)
        .await
        .map_err(|_| ImageError::EngineSlow(what))
}

/// The engine's architecture as images spell it, which must be this program's: the pin library is.
pub(super) async fn architecture(docker: &Docker) -> Result<&'static str, ImageError> {
    let server = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let version = in_time(ANSWER, "answer", docker.version())
        .await?
        .map_err(ImageError::Engine)?;
    match version.arch {
        Some(engine) if engine != server => Err(ImageError::Architecture { engine, server }),
        _ => Ok(server),
    }
}

/// Gives the engine the image unless it has it; answers with the engine's own id for it.
pub(super) async fn load(docker: &Docker, image: &Arc<Image>) -> Result<String, ImageError> {
    if let Some(id) = id_of(docker, image.digest().as_str()).await? {
        tag(docker, &id, &image.tag).await?;
        return Ok(id);
    }
    let source = Arc::clone(image);
    take(docker, written(move |to| source.write(to))).await?;
    id_of(docker, &image.tag)
        .await?
        .ok_or(ImageError::EngineSlow("show the image it took"))
}

/// Gives the engine an archive.
pub(super) async fn take(
    docker: &Docker,
    archive: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
) -> Result<(), ImageError> {
    let options = ImportImageOptionsBuilder::new().quiet(true).build();
    let mut answers = docker.import_image_stream(options, archive, None);
    in_time(LOAD, "take the image", async {
        while let Some(answer) = answers.next().await {
            answer.map_err(ImageError::engine("take the image"))?;
        }
        Ok(())
    })
    .await?
}

pub(super) async fn id_of(docker: &Docker, name: &str) -> Result<Option<String>, ImageError> {
    match in_time(ANSWER, "answer", docker.inspect_image(name)).await? {
        Ok(image) => Ok(image.id),
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(None),
        Err(error) => Err(ImageError::EngineStep {
            what: "look for the image",
            source: error,
        }),
    }
}

pub(super) async fn tag(docker: &Docker, id: &str, name: &str) -> Result<(), ImageError> {
    let (repo, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
    let options = TagImageOptionsBuilder::new().repo(repo).tag(tag).build();
    in_time(ANSWER, "answer", docker.tag_image(id, Some(options)))
        .await?
        .map_err(ImageError::engine("tag the image"))
}

/// What a blocking writer writes, as a stream that holds only a little of it at a time.
pub(super) fn written(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut to = io::BufWriter::with_capacity(CHUNK, Sending(&sender));
        if let Err(error) = write(&mut to).and_then(|()| to.flush()) {
            // Nobody listens any more: then nobody needs the reason either.
            let _ = sender.blocking_send(Err(error));
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

struct Sending<'a>(&'a mpsc::Sender<Result<Bytes, io::Error>>);

impl Write for Sending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .blocking_send(Ok(Bytes::copy_from_slice(bytes)))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
