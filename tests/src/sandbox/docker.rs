//! The suite's view of rooms in a Docker Engine: the same engine, asked past the sandbox.

use super::Subject;
use crate::binaries;
use anyhow::Context as _;
use bollard::Docker;
use bollard::query_parameters::{
    KillContainerOptionsBuilder, ListContainersOptionsBuilder, ListVolumesOptionsBuilder,
    RemoveContainerOptionsBuilder, RemoveVolumeOptions,
};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;
use tribunal_server::image::{self, BuildOptions};
use tribunal_server::sandbox::docker::{DockerOptions, DockerSandbox};
use tribunal_server::sandbox::{MarksInMemory, Sandbox};

/// Run a check over an engine of its own and clean up after it, whatever it came to.
///
/// # Panics
///
/// When the check does, or when there is no engine.
pub async fn over<F>(engine: Engine, check: impl FnOnce(Arc<Engine>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let engine = Arc::new(engine);
    let ended = tokio::spawn(check(Arc::clone(&engine))).await;
    engine.clean().await.unwrap();
    if let Err(failed) = ended {
        std::panic::resume_unwind(failed.into_panic());
    }
}

/// A sandbox with an instance name of its own; what it leaves behind is removed and is a failure.
pub struct Engine {
    /// The sandbox under test.
    pub sandbox: DockerSandbox,
    /// Its name in the engine.
    pub instance: String,
    /// The engine itself.
    pub docker: Docker,
    image: String,
}

impl Engine {
    /// Rooms of the runner image that this tree makes.
    ///
    /// # Errors
    ///
    /// When there is no engine.
    pub async fn new() -> anyhow::Result<Self> {
        Self::named(Self::fresh_instance()?).await
    }

    /// A name that no other test has.
    ///
    /// # Errors
    ///
    /// When the machine has no random numbers.
    pub fn fresh_instance() -> anyhow::Result<String> {
        let mut random = [0u8; 6];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(format!("test{}", hex::encode(random)))
    }

    /// The same, as a server that was there before.
    ///
    /// # Errors
    ///
    /// When there is no engine.
    pub async fn named(instance: String) -> anyhow::Result<Self> {
        Self::at(instance, None).await
    }

    /// The same, with the sandbox reaching its engine elsewhere.
    ///
    /// # Errors
    ///
    /// When there is no engine.
    pub async fn at(instance: String, host: Option<String>) -> anyhow::Result<Self> {
        let docker = Docker::connect_with_unix_defaults()
            .context("no engine")?
            .negotiate_version()
            .await
            .context("no engine")?;
        let image = runner_image(&docker).await?;
        let sandbox = DockerSandbox::new(DockerOptions {
            host,
            instance: instance.clone(),
            marks: Arc::new(MarksInMemory::default()),
            ready_rooms: 2,
            observer: tribunal_server::metrics::nobody(),
        })?;
        Ok(Self {
            sandbox,
            instance,
            docker,
            image,
        })
    }

    fn filter(&self) -> HashMap<String, Vec<String>> {
        HashMap::from([(
            "label".to_owned(),
            vec![format!("tribunal.instance={}", self.instance)],
        )])
    }

    /// Names of its containers, running or not.
    ///
    /// # Errors
    ///
    /// When the engine does not answer.
    pub async fn containers(&self) -> anyhow::Result<Vec<String>> {
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&self.filter())
            .build();
        let listed = self.docker.list_containers(Some(options)).await?;
        Ok(listed.into_iter().filter_map(|found| found.id).collect())
    }

    /// Names of its volumes.
    ///
    /// # Errors
    ///
    /// When the engine does not answer.
    pub async fn volumes(&self) -> anyhow::Result<Vec<String>> {
        let options = ListVolumesOptionsBuilder::new()
            .filters(&self.filter())
            .build();
        let listed = self.docker.list_volumes(Some(options)).await?;
        let volumes = listed.volumes.unwrap_or_default();
        Ok(volumes.into_iter().map(|volume| volume.name).collect())
    }

    /// Remove everything of this instance, whatever the test came to.
    ///
    /// # Errors
    ///
    /// When the engine does not answer.
    pub async fn clean(&self) -> anyhow::Result<()> {
        // What goes in the background is awaited, not raced with.
        self.sandbox.drain().await;
        for name in self.containers().await? {
            let options = RemoveContainerOptionsBuilder::new().force(true).build();
            self.docker.remove_container(&name, Some(options)).await?;
        }
        for name in self.volumes().await? {
            self.docker
                .remove_volume(&name, None::<RemoveVolumeOptions>)
                .await?;
        }
        Ok(())
    }
}

/// The runner image with this tree's harness, built where the engine does not have it yet.
async fn runner_image(docker: &Docker) -> anyhow::Result<String> {
    static IMAGE: OnceCell<String> = OnceCell::const_new();
    let image = IMAGE.get_or_try_init(|| async {
        // One cache with the servers under test.
        let options = BuildOptions::new(binaries::cache());
        let built = image::build(docker, &options, &|_| {}).await?;
        anyhow::Ok(built.engine_id)
    });
    Ok(image.await?.clone())
}

#[async_trait::async_trait]
impl Subject for Engine {
    fn sandbox(&self) -> Arc<dyn Sandbox> {
        Arc::new(self.sandbox.clone())
    }
    fn image(&self) -> String {
        self.image.clone()
    }
    async fn rooms(&self) -> anyhow::Result<usize> {
        Ok(self.containers().await?.len())
    }
    async fn trees(&self) -> anyhow::Result<usize> {
        Ok(self.volumes().await?.len())
    }
    async fn kill_rooms(&self) -> anyhow::Result<()> {
        for name in self.containers().await? {
            let options = KillContainerOptionsBuilder::new().signal("KILL").build();
            self.docker.kill_container(&name, Some(options)).await?;
        }
        Ok(())
    }
    async fn drain(&self) {
        self.sandbox.drain().await;
    }
}
