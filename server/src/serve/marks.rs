//! Which sealed trees are complete, as the store knows it. Never marks one by itself.

use crate::clock;
use crate::sandbox::SealMarks;
use crate::store::{self, Sealed, Store};
use std::sync::Arc;
use tribunal_core::id::Digest;
use tribunal_core::reason::Aborted;

/// Marks of complete trees, kept with everything else that must not be lost.
pub(super) struct StoredMarks(pub(super) Arc<dyn Store>);

#[async_trait::async_trait]
impl SealMarks for StoredMarks {
    async fn is_complete(&self, digest: &Digest) -> Result<bool, Aborted> {
        let digest = digest.clone();
        let sealed = store::off(&self.0, move |s| s.is_sealed(&digest)).await?;
        Ok(sealed == Sealed::Complete)
    }
    async fn mark_complete(&self, digest: &Digest) -> Result<(), Aborted> {
        let digest = digest.clone();
        Ok(store::off(&self.0, move |s| s.mark_sealed(&digest, clock::now())).await?)
    }
    async fn forget(&self, digest: &Digest) -> Result<(), Aborted> {
        let digest = digest.clone();
        Ok(store::off(&self.0, move |s| s.forget_sealed(&digest)).await?)
    }
}
