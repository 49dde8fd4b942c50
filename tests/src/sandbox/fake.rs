//! The suite's view of rooms in this process.

use super::Subject;
use std::sync::Arc;
use tribunal_server::sandbox::Sandbox;
use tribunal_server::sandbox::fake::FakeSandbox;

/// A fake sandbox of its own.
pub struct Fake {
    sandbox: FakeSandbox,
}

impl Fake {
    /// Two cores, as small machines have.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sandbox: FakeSandbox::on(2),
        }
    }
}

impl Default for Fake {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait::async_trait]
impl Subject for Fake {
    fn sandbox(&self) -> Arc<dyn Sandbox> {
        Arc::new(self.sandbox.clone())
    }
    fn image(&self) -> String {
        "sha256:none".to_owned()
    }
    async fn rooms(&self) -> anyhow::Result<usize> {
        Ok(self.sandbox.rooms())
    }
    async fn trees(&self) -> anyhow::Result<usize> {
        Ok(self.sandbox.trees())
    }
    async fn kill_rooms(&self) -> anyhow::Result<()> {
        self.sandbox.kill_rooms();
        Ok(())
    }
    async fn drain(&self) {
        self.sandbox.drain().await;
    }
}
