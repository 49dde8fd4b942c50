//! Sealed trees as named volumes: written once per digest through a container that is never started, then only read.

use super::super::{SealedTree, TreeToSeal};
use super::Inner;
use super::container::Container;
use super::engine::{Failed, QUICK, SLOW, call, failed};
use super::names::{Kind, TREE as TREE_LABEL};
use super::spec;
use bollard::models::{Volume, VolumeCreateRequest};
use bollard::query_parameters::{RemoveVolumeOptions, UploadToContainerOptionsBuilder};
use bytes::{Bytes, BytesMut};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockReadGuard, mpsc};
use tokio_util::sync::CancellationToken;
use tribunal_core::reason::{Aborted, AbortedCode};

/// Bytes read ahead of the engine: two pieces of this size.
const PIECE: usize = 256 << 10;
/// The engine may take this long for one piece, and for its answer once it has all.
const STALL: Duration = Duration::from_secs(120);

/// Make the tree available. Those who ask for the same digest meanwhile wait and find it there.
pub(super) async fn seal(
    inner: Arc<Inner>,
    tree: TreeToSeal,
    cancel: CancellationToken,
) -> Result<SealedTree, Aborted> {
    let digest = tree.digest.clone();
    let _turn = inner.trees.write(&digest).await;
    let volume = inner.instance.volume(&digest);
    // A room that has it mounted keeps it from being removed, so the engine need not be asked.
    let there = inner.pool.holds(&digest) || inspect(&inner, &volume).await?.is_some();
    if there && inner.marks.is_complete(&digest).await? {
        // Marked once more: a store that ages its marks sees that this one is in use.
        inner.marks.mark_complete(&digest).await?;
        return Ok(SealedTree { digest });
    }
    // The mark goes first: a crash below never leaves a mark over a half-written volume.
    inner.marks.forget(&digest).await?;
    if there {
        tracing::info!(%volume, "a tree was left half-written; written again");
        remove(&inner, &volume).await?;
    }
    let written = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(inner.owned.why_cancelled()),
        written = write(&inner, tree, &volume) => written,
    };
    match written {
        Ok(()) => {
            inner.marks.mark_complete(&digest).await?;
            Ok(SealedTree { digest })
        }
        Err(aborted) => {
            if let Err(error) = remove(&inner, &volume).await {
                tracing::warn!(%volume, %error, "a half-written tree is left for the next sweep");
            }
            Err(aborted)
        }
    }
}

async fn write(inner: &Arc<Inner>, tree: TreeToSeal, volume: &str) -> Result<(), Aborted> {
    let engine = inner.engine.get().await?;
    let mut labels = inner.instance.labels(Kind::Tree);
    labels.insert(TREE_LABEL.to_owned(), tree.digest.to_string());
    let request = VolumeCreateRequest {
        name: Some(volume.to_owned()),
        driver: Some("local".to_owned()),
        labels: Some(labels),
        ..VolumeCreateRequest::default()
    };
    call(
        "create a volume",
        SLOW,
        engine.docker.create_volume(request),
    )
    .await?;
    let mut labels = inner.instance.labels(Kind::Sealer);
    labels.insert(TREE_LABEL.to_owned(), tree.digest.to_string());
    let request = spec::sealer(&tree.image, volume, labels);
    let sealer = Container::create(inner, Kind::Sealer, request).await?;
    let written = upload(&engine.docker, sealer.name(), tree.tar).await;
    // Awaited before anything else: a volume in use cannot be removed.
    sealer.remove().await;
    written
}

type MakeTar = Box<dyn FnOnce() -> Result<Box<dyn Read + Send>, Aborted> + Send>;

/// Stream the tar into the container, never more than two pieces in memory.
async fn upload(docker: &bollard::Docker, name: &str, make: MakeTar) -> Result<(), Aborted> {
    let (pieces, mut queue) = mpsc::channel::<std::io::Result<Bytes>>(1);
    let (to_engine, body) = mpsc::channel::<std::io::Result<Bytes>>(1);
    let reading = tokio::task::spawn_blocking(move || read(make, &pieces));
    let options = UploadToContainerOptionsBuilder::new()
        .path(spec::TREE)
        .build();
    let body = bollard::body_try_stream(tokio_stream::wrappers::ReceiverStream::new(body));
    let sending = docker.upload_to_container(name, Some(options), body);
    tokio::pin!(sending);
    // Hand piece after piece over; whichever side is slow, the wait for one piece is bounded.
    let feeding = async move {
        while let Some(piece) = queue.recv().await {
            match tokio::time::timeout(STALL, to_engine.send(piece)).await {
                Ok(Ok(())) => {}
                // The request is over; its result says why.
                Ok(Err(_)) => return Ok(()),
                Err(_) => return Err(super::engine::silent("write a tree")),
            }
        }
        Ok(())
    };
    let sent = tokio::select! {
        biased;
        sent = &mut sending => sent.map_err(|error| failed("write a tree", &error)),
        fed = feeding => match fed {
            Ok(()) => call("write a tree", STALL, sending).await,
            Err(silent) => Err(silent),
        },
    };
    // The reader ends when its queue does. What it says goes before what the engine made of a tar that broke off.
    let read = reading.await.map_err(|error| {
        Aborted::new(
            AbortedCode::Internal,
            format!("the reader of a tree broke: {error}"),
        )
    })?;
    read?;
    Ok(sent?)
}

/// Read the tar to its end, on a thread that may block.
fn read(make: MakeTar, pieces: &mpsc::Sender<std::io::Result<Bytes>>) -> Result<(), Aborted> {
    let broke = |aborted: Aborted| {
        // The engine must see an error, not an end: else it takes half a tree for a whole one.
        let _gone = pieces.blocking_send(Err(std::io::Error::other(aborted.to_string())));
        aborted
    };
    let mut tar = make().map_err(broke)?;
    loop {
        let mut piece = BytesMut::zeroed(PIECE);
        let length = match tar.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(broke(Aborted::new(
                    AbortedCode::Internal,
                    format!("failed to read a tree: {error}"),
                )));
            }
        };
        piece.truncate(length);
        if pieces.blocking_send(Ok(piece.freeze())).is_err() {
            return Ok(());
        }
    }
}

/// Hold the tree as it is until the guard is dropped, which may be as soon as a container has it mounted.
pub(super) async fn hold(
    inner: &Inner,
    tree: &SealedTree,
) -> Result<OwnedRwLockReadGuard<()>, Aborted> {
    let guard = inner.trees.read(&tree.digest).await;
    let there = inspect(inner, &inner.instance.volume(&tree.digest)).await?;
    // The engine makes a volume that is not there, and an empty tree has no cases to fail.
    if there.is_none() || !inner.marks.is_complete(&tree.digest).await? {
        return Err(Aborted::new(
            AbortedCode::Internal,
            "the sealed tree is gone; ask again",
        ));
    }
    Ok(guard)
}

/// End the tree. Its mark goes first, so that one whose volume stays is swept.
pub(super) async fn unseal(inner: &Inner, tree: &SealedTree) -> Result<(), Aborted> {
    let _turn = inner.trees.write(&tree.digest).await;
    inner.marks.forget(&tree.digest).await?;
    remove(inner, &inner.instance.volume(&tree.digest)).await
}

/// The volume, if it is there.
pub(super) async fn inspect(inner: &Inner, volume: &str) -> Result<Option<Volume>, Aborted> {
    let engine = inner.engine.get().await?;
    match call(
        "inspect a volume",
        QUICK,
        engine.docker.inspect_volume(volume),
    )
    .await
    {
        Ok(found) => Ok(Some(found)),
        Err(Failed {
            status: Some(404), ..
        }) => Ok(None),
        Err(failed) => Err(failed.aborted),
    }
}

/// Remove the volume; one that is not there is gone already.
pub(super) async fn remove(inner: &Inner, volume: &str) -> Result<(), Aborted> {
    let engine = inner.engine.get().await?;
    let none = None::<RemoveVolumeOptions>;
    match call(
        "remove a volume",
        SLOW,
        engine.docker.remove_volume(volume, none),
    )
    .await
    {
        Ok(())
        | Err(Failed {
            status: Some(404), ..
        }) => Ok(()),
        Err(failed) => Err(failed.aborted),
    }
}
