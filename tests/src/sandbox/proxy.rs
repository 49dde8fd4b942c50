//! A socket in front of the engine that can be taken away, so that a test can stop "the engine" and nobody else's.

use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The real one.
const ENGINE: &str = "/var/run/docker.sock";

/// A socket that leads to the engine while it is up.
pub struct Proxy {
    folder: tempfile::TempDir,
    up: Option<(CancellationToken, tokio::task::JoinHandle<()>)>,
}

impl Proxy {
    /// One that is up.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[must_use]
    pub fn up() -> Self {
        let mut proxy = Self {
            folder: tempfile::tempdir().unwrap(),
            up: None,
        };
        proxy.start();
        proxy
    }

    /// What a sandbox is told.
    #[must_use]
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Let it lead to the engine again.
    ///
    /// # Panics
    ///
    /// When the socket cannot be made.
    pub fn start(&mut self) {
        let listener = UnixListener::bind(self.socket()).unwrap();
        let token = CancellationToken::new();
        let task = tokio::spawn(lead(listener, token.clone()));
        self.up = Some((token, task));
    }

    /// Take it away, every open connection included, as an engine that is stopped does.
    ///
    /// # Panics
    ///
    /// When it is down already.
    pub async fn stop(&mut self) {
        let (token, task) = self.up.take().unwrap();
        token.cancel();
        task.await.unwrap();
        std::fs::remove_file(self.socket()).unwrap();
    }
}

async fn lead(listener: UnixListener, down: CancellationToken) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            () = down.cancelled() => break,
            accepted = listener.accept() => {
                let (mut near, _) = accepted.unwrap();
                open.spawn(async move {
                    if let Ok(mut far) = UnixStream::connect(Path::new(ENGINE)).await {
                        let _over = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        }
    }
    open.shutdown().await;
}
