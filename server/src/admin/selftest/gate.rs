//! A plain gate, for real: head is checked out and `pytest` runs in a container of the same image, with no options but one
//! for the JUnit file. What most pipelines ask for, an exit code of 0 or a file without failures, is what is told here.

use super::corpus::{Built, clean, run};
use crate::admin::AdminError;
use crate::image::ImageError;
use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, UploadToContainerOptionsBuilder,
    WaitContainerOptions,
};
use bytes::Bytes;
use futures::StreamExt as _;
use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

const MEMORY: i64 = 1 << 30;
const PIDS: i64 = 256;
const JUNIT: &str = "/tmp/junit.xml";
const JUNIT_MOST: usize = 8 << 20;
/// The project's root comes first on the path, as with `python -m pytest`.
const PATH: &str = "PYTHONPATH=/opt/tribunal/runner:/opt/tribunal/deps";

/// What it says of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plain {
    /// git would not check head out: no pipeline comes as far as its tests.
    NoCheckout,
    /// It did not end in time.
    Hung,
    /// It ended.
    Ended {
        /// With this code.
        exit_code: i64,
        /// And this is what the JUnit file says.
        junit: Junit,
    },
}

/// What a JUnit file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Junit {
    /// There is none, or none that lists a case.
    Nothing,
    /// Cases, and no failure or error among them.
    Green,
    /// At least one failure or error.
    Red,
}

impl Plain {
    /// Whether it lets the change through, by exit code.
    #[must_use]
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Ended { exit_code: 0, .. })
    }
    /// Whether a gate that only reads the JUnit file lets it through.
    #[must_use]
    pub const fn junit_passes(&self) -> bool {
        matches!(
            self,
            Self::Ended {
                junit: Junit::Green,
                ..
            }
        )
    }
}

pub(super) struct Gate {
    docker: Docker,
    image: String,
    instance: String,
    deadline: Duration,
}

impl Gate {
    pub(super) fn new(docker: Docker, image: String, instance: &str, deadline: Duration) -> Self {
        Self {
            docker,
            image,
            instance: instance.to_owned(),
            deadline,
        }
    }

    /// Ask it. The container is gone afterwards, whatever it came to.
    pub(super) async fn ask(&self, built: &Built, number: usize) -> Result<Plain, AdminError> {
        let place = built.workspace.with_file_name("checkout");
        let (from, to, head) = (built.workspace.clone(), place.clone(), built.head.clone());
        let tree = tokio::task::spawn_blocking(move || checked_out(&from, &to, &head))
            .await
            .map_err(io::Error::other)
            .and_then(|tree| tree)
            .map_err(AdminError::file("check a case out"))?;
        let Some(tree) = tree else {
            return Ok(Plain::NoCheckout);
        };
        let name = format!("tribunal-{}-gate-{number}", self.instance);
        let asked = self.ran(&name, tree).await;
        let options = RemoveContainerOptionsBuilder::new()
            .force(true)
            .v(true)
            .build();
        let removed = self.docker.remove_container(&name, Some(options)).await;
        let asked = asked.map_err(trouble)?;
        removed.map_err(trouble)?;
        Ok(asked)
    }

    async fn ran(&self, name: &str, tree: Bytes) -> Result<Plain, bollard::errors::Error> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        self.docker
            .create_container(Some(options), self.body())
            .await?;
        let options = UploadToContainerOptionsBuilder::new().path("/tree").build();
        self.docker
            .upload_to_container(name, Some(options), bollard::body_full(tree))
            .await?;
        self.docker
            .start_container(name, None::<StartContainerOptions>)
            .await?;
        let mut ends = self
            .docker
            .wait_container(name, None::<WaitContainerOptions>);
        let exit_code = match tokio::time::timeout(self.deadline, ends.next()).await {
            Err(_) => return Ok(Plain::Hung),
            Ok(Some(Ok(ended))) => ended.status_code,
            Ok(Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. }))) => code,
            Ok(Some(Err(error))) => return Err(error),
            Ok(None) => -1,
        };
        Ok(Plain::Ended {
            exit_code,
            junit: self.junit(name).await,
        })
    }

    fn body(&self) -> ContainerCreateBody {
        let command = ["-m", "pytest", "-q", &format!("--junitxml={JUNIT}")].map(str::to_owned);
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: Some(vec!["/usr/bin/python3".to_owned()]),
            cmd: Some(command.to_vec()),
            working_dir: Some("/tree".to_owned()),
            env: Some(vec![PATH.to_owned(), "HOME=/tmp".to_owned()]),
            // What is left behind is swept by this name.
            labels: Some(HashMap::from([(
                "tribunal.instance".to_owned(),
                self.instance.clone(),
            )])),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                memory: Some(MEMORY),
                memory_swap: Some(MEMORY),
                pids_limit: Some(PIDS),
                nano_cpus: Some(1_000_000_000),
                cap_drop: Some(vec!["ALL".to_owned()]),
                security_opt: Some(vec!["no-new-privileges".to_owned()]),
                log_config: Some(HostConfigLogConfig {
                    typ: Some("none".to_owned()),
                    config: None,
                }),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Anything that cannot be read is no file.
    async fn junit(&self, name: &str) -> Junit {
        let options = DownloadFromContainerOptionsBuilder::new()
            .path(JUNIT)
            .build();
        let mut parts = self.docker.download_from_container(name, Some(options));
        let mut tar = Vec::new();
        while let Some(Ok(part)) = parts.next().await {
            tar.extend_from_slice(&part);
            if tar.len() > JUNIT_MOST {
                return Junit::Nothing;
            }
        }
        junit(&tar).unwrap_or(Junit::Nothing)
    }
}

fn junit(tar: &[u8]) -> Option<Junit> {
    let mut archive = tar::Archive::new(tar);
    let mut text = String::new();
    let mut entry = archive.entries().ok()?.next()?.ok()?;
    entry.read_to_string(&mut text).ok()?;
    Some(if !text.contains("<testcase") {
        Junit::Nothing
    } else if text.contains("<failure") || text.contains("<error") {
        Junit::Red
    } else {
        Junit::Green
    })
}

/// Head as a pipeline would check it out, as a tar; `None` where git refuses.
fn checked_out(from: &Path, to: &Path, head: &str) -> io::Result<Option<Bytes>> {
    let mut clone = clean("git");
    clone
        .args(["clone", "-q", "--no-checkout"])
        .arg(format!("file://{}", from.display()))
        .arg(to);
    let mut checkout = clean("git");
    checkout
        .args(["-C"])
        .arg(to)
        .args(["checkout", "-q", "--detach", head]);
    if run(clone).and_then(|_| run(checkout)).is_err() {
        return Ok(None);
    }
    std::fs::remove_dir_all(to.join(".git"))?;
    let mut builder = tar::Builder::new(Vec::new());
    builder.follow_symlinks(false);
    builder.append_dir_all(".", to)?;
    Ok(Some(Bytes::from(builder.into_inner()?)))
}

fn trouble(source: bollard::errors::Error) -> AdminError {
    AdminError::Image(ImageError::EngineStep {
        what: "run the plain gate",
        source,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn of(text: &str) -> Option<Junit> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        builder
            .append_data(&mut header, "junit.xml", text.as_bytes())
            .unwrap();
        junit(&builder.into_inner().unwrap())
    }

    #[test]
    fn a_junit_file_is_green_only_with_cases_and_without_failures() {
        let case = "<testsuites><testsuite><testcase name=\"x\"/>";
        assert_eq!(of(case), Some(Junit::Green));
        assert_eq!(of(&format!("{case}<failure/>")), Some(Junit::Red));
        assert_eq!(of(&format!("{case}<error/>")), Some(Junit::Red));
        assert_eq!(of("<testsuites/>"), Some(Junit::Nothing));
        assert_eq!(junit(b""), None);
    }
}
