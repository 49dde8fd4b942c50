//! A bundle goes to the server in chunks, no faster than the server takes them; an upload that broke is sent again.

use super::status::{Again, again, failure_of};
use super::{Remote, repository_name};
use crate::failure::Failure;
use crate::workspace::Bundle;
use std::io::Read as _;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tribunal_core::id::RepoName;
use tribunal_proto::v1::upload_commits_request::Part;
use tribunal_proto::v1::{UploadCommitsRequest, UploadHeader};

/// The contract allows 1 MiB; half of it keeps the bar moving on slow lines.
const CHUNK: usize = 512 * 1024;
/// How often a whole bundle is sent.
const TRIES: u32 = 3;

/// Told how many bytes are on their way.
pub type UploadProgress = std::sync::Arc<dyn Fn(u64) + Send + Sync>;

impl Remote {
    /// Send the bundle.
    ///
    /// # Errors
    /// As the server says; its code is in the failure.
    pub async fn upload(
        &self,
        repo: &RepoName,
        bundle: &Bundle,
        progress: &UploadProgress,
    ) -> Result<(), Failure> {
        let what = "send the commits that the server lacks";
        let mut tries = 0;
        loop {
            tries += 1;
            let parts = self.parts(repo, bundle, progress)?;
            let status = match self
                .repositories()
                .upload_commits(Request::new(parts))
                .await
            {
                Ok(_) => return Ok(()),
                Err(status) => status,
            };
            match again(&status) {
                Again::After(pause) if tries < TRIES => {
                    tokio::time::sleep(pause.min(Duration::from_secs(15))).await;
                }
                Again::After(_) | Again::Pointless => return Err(failure_of(what, &status)),
            }
        }
    }

    /// The header and the chunks; a reader that fails ends the stream early, which the server refuses by its size.
    fn parts(
        &self,
        repo: &RepoName,
        bundle: &Bundle,
        progress: &UploadProgress,
    ) -> Result<ReceiverStream<UploadCommitsRequest>, Failure> {
        let mut reader = bundle.reader().map_err(|e| {
            Failure::usage(
                "read the temporary bundle",
                e,
                "make room in the temporary directory",
            )
        })?;
        let header = Part::Header(UploadHeader {
            parent: repository_name(repo),
            size: bundle.size(),
        });
        let progress = progress.clone();
        let (send, receive) = mpsc::channel(4);
        tokio::task::spawn_blocking(move || {
            let mut sent = 0;
            let mut part = header;
            while send
                .blocking_send(UploadCommitsRequest { part: Some(part) })
                .is_ok()
            {
                progress(sent);
                let mut chunk = Vec::with_capacity(CHUNK);
                match reader.by_ref().take(CHUNK as u64).read_to_end(&mut chunk) {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return,
                }
                sent += chunk.len() as u64;
                part = Part::Chunk(chunk.into());
            }
        });
        Ok(ReceiverStream::new(receive))
    }
}
