//! What an earlier process of this server left behind, found by its label and removed.

use super::super::Swept;
use super::Inner;
use super::container;
use super::engine::{QUICK, SLOW, call};
use super::names::{KIND, Kind, TREE};
use super::volume;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListVolumesOptionsBuilder};
use tribunal_core::id::Digest;
use tribunal_core::reason::Aborted;

/// Remove containers that no live task owns, trees that are not complete, and, where `keep` is given, those not in it.
pub(super) async fn sweep(inner: &Inner, keep: Option<&[Digest]>) -> Result<Swept, Aborted> {
    let engine = inner.engine.get().await?;
    let mut swept = Swept::default();
    let filters = inner.instance.filter();
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters)
        .build();
    let listed = call(
        "list containers",
        SLOW,
        engine.docker.list_containers(Some(options)),
    )
    .await?;
    for found in listed {
        let names = found.names.unwrap_or_default();
        let Some(name) = names.first().map(|name| name.trim_start_matches('/')) else {
            continue;
        };
        if inner.ledger.is_owned(name) {
            continue;
        }
        container::remove(inner, name).await?;
        swept.rooms += 1;
    }
    let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
    let listed = call(
        "list volumes",
        QUICK,
        engine.docker.list_volumes(Some(options)),
    )
    .await?;
    for found in listed.volumes.unwrap_or_default() {
        let is_tree = found
            .labels
            .get(KIND)
            .is_some_and(|kind| kind == Kind::Tree.word());
        let digest = found
            .labels
            .get(TREE)
            .and_then(|text| text.parse::<Digest>().ok());
        let Some(digest) = digest.filter(|_| is_tree) else {
            continue;
        };
        let Some(_alone) = inner.trees.try_write(&digest) else {
            continue;
        };
        let wanted = keep.is_none_or(|keep| keep.contains(&digest));
        if wanted && inner.marks.is_complete(&digest).await? {
            continue;
        }
        inner.marks.forget(&digest).await?;
        match volume::remove(inner, &found.name).await {
            Ok(()) => swept.trees += 1,
            // In use by a live room: it goes with the next sweep.
            Err(aborted) => {
                tracing::info!(volume = %found.name, %aborted, "a tree is still in use")
            }
        }
    }
    Ok(swept)
}
