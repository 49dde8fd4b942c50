//! Assembling: wheels and harness go into a container of the bare base, the image's own Python unpacks
//! and compiles them there, one layer comes out. The container has no network and is removed whatever
//! happens; one that a killed build left behind goes first.

use super::archive::{Image, header};
use super::error::last_words;
use super::files::{self, Blob};
use super::record::Package;
use super::wheels::Wheel;
use super::{EPOCH, ImageError, embedded, engine};
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, UploadToContainerOptionsBuilder,
    WaitContainerOptions,
};
use futures::{StreamExt, TryStreamExt};
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tribunal_core::id::Digest;

const ROOM: &str = "tmp/assemble";
const LAYER: &str = "/tmp/assemble/layer.tar";
const SCRIPT: &str = "python3 -s -S -B /tmp/assemble/assemble.py install \
    && python3 -s -S -B /tmp/assemble/assemble.py pack /tmp/assemble/layer.tar";
const ANSWER: Duration = Duration::from_secs(60);
/// Unpacking and compiling a project's dependencies can be much.
const WORK: Duration = Duration::from_secs(900);
const REPORT_MOST: usize = 1 << 20;

/// What was assembled; its layer lives as long as this does.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) layer: Blob,
    pub(super) python: String,
    pub(super) runner: Vec<Package>,
    pub(super) deps: Vec<Package>,
    _folder: tempfile::TempDir,
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    problems: Vec<String>,
    #[serde(default)]
    packages: HashMap<String, Vec<(String, String)>>,
    #[serde(default)]
    python: String,
}

pub(super) async fn run(
    docker: &Docker,
    folder: &Path,
    base: &Image,
    runner: &[Wheel],
    deps: &[Wheel],
) -> Result<Assembled, ImageError> {
    let place = Digest::of(folder.as_os_str().as_encoded_bytes());
    let name = format!(
        "tribunal-assemble-{}",
        place.hex().get(..12).unwrap_or_default()
    );
    remove(docker, &name).await?;
    let result = assembled(docker, &name, folder, base, runner, deps).await;
    let removed = remove(docker, &name).await;
    let assembled = result?;
    removed?;
    Ok(assembled)
}

async fn assembled(
    docker: &Docker,
    name: &str,
    folder: &Path,
    base: &Image,
    runner: &[Wheel],
    deps: &[Wheel],
) -> Result<Assembled, ImageError> {
    create(docker, name, &base.tag).await?;
    upload(docker, name, runner.to_vec(), deps.to_vec()).await?;
    engine::in_time(
        ANSWER,
        "start a container",
        docker.start_container(name, None::<StartContainerOptions>),
    )
    .await?
    .map_err(ImageError::engine("start a container"))?;
    let code = engine::in_time(WORK, "assemble the image", exit_code(docker, name)).await??;
    let (stdout, stderr) =
        engine::in_time(ANSWER, "show a container's output", output(docker, name)).await??;
    let report: Option<Report> = serde_json::from_slice(&stdout).ok();
    let report = match report {
        Some(report) if !report.problems.is_empty() => {
            return Err(ImageError::Packages(report.problems.join("; ")));
        }
        Some(report) if code == 0 => report,
        _ => {
            return Err(ImageError::Assemble {
                code,
                text: last_words(&[stdout, stderr].concat()),
            });
        }
    };
    let (layer, folder) = download(docker, name, folder).await?;
    let room = |name: &str| {
        let packages = report.packages.get(name).cloned().unwrap_or_default();
        packages
            .into_iter()
            .map(|(name, version)| Package { name, version })
            .collect()
    };
    Ok(Assembled {
        layer,
        runner: room("runner"),
        deps: room("deps"),
        python: report.python,
        _folder: folder,
    })
}

async fn create(docker: &Docker, name: &str, image: &str) -> Result<(), ImageError> {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        cmd: Some(["/bin/sh", "-c", SCRIPT].map(str::to_owned).to_vec()),
        env: Some(vec![
            "PYTHONHASHSEED=0".to_owned(),
            format!("SOURCE_DATE_EPOCH={EPOCH}"),
        ]),
        network_disabled: Some(true),
        labels: Some(HashMap::from([(
            "tribunal.role".to_owned(),
            "image-build".to_owned(),
        )])),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: None,
            }),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    engine::in_time(
        ANSWER,
        "create a container",
        docker.create_container(Some(options), body),
    )
    .await?
    .map_err(ImageError::engine("create a container"))?;
    Ok(())
}

async fn upload(
    docker: &Docker,
    name: &str,
    runner: Vec<Wheel>,
    deps: Vec<Wheel>,
) -> Result<(), ImageError> {
    let body = bollard::body_try_stream(engine::written(move |to| inputs(to, &runner, &deps)));
    let options = UploadToContainerOptionsBuilder::new().path("/").build();
    engine::in_time(
        WORK,
        "take the packages",
        docker.upload_to_container(name, Some(options), body),
    )
    .await?
    .map_err(ImageError::engine("take the packages"))
}

/// Everything the assembly reads, as the tar that goes into the container.
fn inputs(to: &mut dyn Write, runner: &[Wheel], deps: &[Wheel]) -> io::Result<()> {
    let mut archive = tar::Builder::new(to);
    let mut bytes = |name: String, content: &[u8]| {
        archive.append_data(&mut header(content.len() as u64), name, content)
    };
    bytes(format!("{ROOM}/assemble.py"), embedded::ASSEMBLE.as_bytes())?;
    bytes(
        format!("{ROOM}/ld.so.preload"),
        embedded::PRELOAD.as_bytes(),
    )?;
    bytes(
        "opt/tribunal/lib/libtribunal_pins.so".to_owned(),
        embedded::PINS,
    )?;
    bytes(
        "opt/tribunal/lib/tribunal_witness.so".to_owned(),
        embedded::WITNESS,
    )?;
    bytes("opt/tribunal/bin/transport".to_owned(), embedded::TRANSPORT)?;
    for (name, content) in embedded::harness() {
        bytes(format!("opt/tribunal/harness/{name}"), content)?;
    }
    for (room, wheels) in [("runner", runner), ("deps", deps)] {
        for wheel in wheels {
            let file = File::open(&wheel.path)?;
            let size = file.metadata()?.len();
            archive.append_data(
                &mut header(size),
                format!("{ROOM}/{room}/{}", wheel.file),
                file,
            )?;
        }
    }
    archive.into_inner()?.flush()
}

async fn exit_code(docker: &Docker, name: &str) -> Result<i64, ImageError> {
    match docker
        .wait_container(name, None::<WaitContainerOptions>)
        .next()
        .await
    {
        Some(Ok(end)) => Ok(end.status_code),
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => Ok(code),
        Some(Err(error)) => Err(ImageError::EngineStep {
            what: "wait for a container",
            source: error,
        }),
        None => Err(ImageError::EngineSlow("say how a container ended")),
    }
}

async fn output(docker: &Docker, name: &str) -> Result<(Vec<u8>, Vec<u8>), ImageError> {
    let options = LogsOptionsBuilder::new().stdout(true).stderr(true).build();
    let mut lines = docker.logs(name, Some(options));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(line) = lines
        .try_next()
        .await
        .map_err(ImageError::engine("show a container's output"))?
    {
        let (to, message) = match line {
            LogOutput::StdErr { message } => (&mut stderr, message),
            LogOutput::StdOut { message }
            | LogOutput::StdIn { message }
            | LogOutput::Console { message } => (&mut stdout, message),
        };
        let room = REPORT_MOST.saturating_sub(to.len());
        to.extend_from_slice(message.get(..room.min(message.len())).unwrap_or_default());
    }
    Ok((stdout, stderr))
}

/// The layer, out of the tar that the engine wraps a file in.
async fn download(
    docker: &Docker,
    name: &str,
    folder: &Path,
) -> Result<(Blob, tempfile::TempDir), ImageError> {
    let failed = |error| ImageError::file("write below", folder, error);
    let own = tempfile::tempdir_in(folder).map_err(failed)?;
    let wrapped = own.path().join("download");
    let mut file = tokio::fs::File::create(&wrapped).await.map_err(failed)?;
    let options = DownloadFromContainerOptionsBuilder::new()
        .path(LAYER)
        .build();
    let mut parts = docker.download_from_container(name, Some(options));
    engine::in_time(WORK, "hand out the layer", async {
        while let Some(part) = parts
            .try_next()
            .await
            .map_err(ImageError::engine("hand out the layer"))?
        {
            file.write_all(&part).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)
    })
    .await??;
    let place = own.path().to_owned();
    let unwrapped = tokio::task::spawn_blocking(move || unwrap_layer(&wrapped, &place)).await;
    let layer = unwrapped.unwrap_or_else(|error| Err(failed(io::Error::other(error))))?;
    Ok((layer, own))
}

fn unwrap_layer(wrapped: &Path, folder: &Path) -> Result<Blob, ImageError> {
    let failed = |error| ImageError::file("read", wrapped, error);
    let mut archive = tar::Archive::new(File::open(wrapped).map_err(failed)?);
    let mut entries = archive.entries().map_err(failed)?;
    let mut entry = entries
        .next()
        .unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::UnexpectedEof)))
        .map_err(failed)?;
    files::keep_blob(folder, ".tar", |to| {
        io::copy(&mut entry, to).map(|_| ()).map_err(failed)
    })
}

async fn remove(docker: &Docker, name: &str) -> Result<(), ImageError> {
    let options = RemoveContainerOptionsBuilder::new()
        .force(true)
        .v(true)
        .build();
    match engine::in_time(
        ANSWER,
        "remove a container",
        docker.remove_container(name, Some(options)),
    )
    .await?
    {
        Ok(()) => Ok(()),
        Err(bollard::errors::Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        Err(error) => Err(ImageError::EngineStep {
            what: "remove a container",
            source: error,
        }),
    }
}
