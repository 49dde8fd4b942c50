//! One upload: messages of a stream become a reader for the repository room, which blocks on a thread of its own. Bounded
//! at every joint: chunks in flight, bytes, time, uploads at once. A stream that stops half-way is an error for the
//! reader, never its end.

use super::access::{Act, reach, require};
use super::status::{self, IntoStatus as _};
use super::{caller, name};
use crate::metrics::{Happening, Observer};
use crate::repository::{Repository, UploadLimits, Viewer};
use bytes::{Buf as _, Bytes};
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, Streaming};
use tribunal_core::id::{CommitId, RepoName};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::Caller;
use tribunal_proto::v1;
use tribunal_proto::v1::upload_commits_request::Part;

/// Chunks between the stream and the reader.
const IN_FLIGHT: usize = 4;
/// Bytes of one chunk, as the interface says.
pub(super) const CHUNK: usize = 1024 * 1024;

pub(super) struct Uploads {
    pub(super) repository: Arc<dyn Repository>,
    pub(super) limits: UploadLimits,
    pub(super) observer: Arc<dyn Observer>,
    /// Uploads at once, of all tokens: each one may take an indexer's memory.
    pub(super) at_once: Arc<Semaphore>,
}

/// What goes to the reader. That there will be nothing more is said, or the upload broke off.
enum Piece {
    Bytes(Bytes),
    Whole,
}

impl Uploads {
    pub(super) async fn take(
        &self,
        request: Request<Streaming<v1::UploadCommitsRequest>>,
    ) -> Result<Response<v1::UploadCommitsResponse>, Status> {
        let caller = caller(&request)?;
        require(&caller, Act::Upload).map_err(|r| r.into_status())?;
        let deadline = Instant::now() + Duration::from_secs(self.limits.seconds);
        let mut stream = request.into_inner();
        let (repository, size) = header(next(&mut stream, deadline).await?, self.limits.bytes)?;
        reach(&caller, &repository).map_err(|r| r.into_status())?;
        let taken = self.bundle(caller, repository, size, stream, deadline);
        let taken = taken.await;
        self.observer.note(match &taken {
            Ok(_) => Happening::Uploaded { bytes: size },
            Err(_) => Happening::UploadFailed,
        });
        taken
    }

    /// Everything after the header.
    async fn bundle(
        &self,
        caller: Caller,
        repository: RepoName,
        size: u64,
        mut stream: Streaming<v1::UploadCommitsRequest>,
        deadline: Instant,
    ) -> Result<Response<v1::UploadCommitsResponse>, Status> {
        let _place = Arc::clone(&self.at_once).try_acquire_owned().map_err(|_| {
            Refused::new(RefusedCode::QueueFull, "too many uploads are going on").into_status()
        })?;

        let viewer = Viewer {
            token: caller.token,
            role: caller.role,
        };
        let (sender, receiver) = mpsc::channel(IN_FLIGHT);
        let (room, limits) = (Arc::clone(&self.repository), self.limits.clone());
        let ingest = tokio::task::spawn_blocking(move || {
            let mut reader = Pieces::new(receiver);
            room.ingest(&repository, &viewer, &mut reader, &limits)
        });
        let fed = feed(&mut stream, sender, size, deadline).await;
        let commits = match (fed, ingest.await) {
            // The room knows best what is wrong with what it read; what we know is that it did not read all.
            (Err(status), _) => return Err(status),
            (Ok(()), Ok(Ok(commits))) => commits,
            (Ok(()), Ok(Err(error))) => return Err(error.into_status()),
            (Ok(()), Err(error)) => {
                tracing::error!(%error, "an ingest broke");
                return Err(Aborted::new(AbortedCode::Internal, "the ingest broke").into_status());
            }
        };
        Ok(Response::new(v1::UploadCommitsResponse {
            commits: commits.iter().map(CommitId::to_string).collect(),
        }))
    }
}

/// The first message.
fn header(part: Option<Part>, limit: u64) -> Result<(RepoName, u64), Status> {
    let Some(Part::Header(header)) = part else {
        let violation = name::violation("header", "must be the first message of an upload");
        return Err(status::fields(&[violation]));
    };
    let repository = name::parse_repository("header.parent", &header.parent)
        .map_err(|v| status::fields(&[v]))?;
    if header.size > limit {
        let message = format!(
            "the bundle has {} bytes, {limit} are allowed; send from a later commit on, or ask the operator",
            header.size
        );
        return Err(Refused::new(RefusedCode::TooLarge, message).into_status());
    }
    if header.size == 0 {
        let violation = name::violation("header.size", "must be the size of the bundle");
        return Err(status::fields(&[violation]));
    }
    Ok((repository, header.size))
}

/// The whole bundle to the reader. An early end of the reader is its own affair: it says why.
async fn feed(
    stream: &mut Streaming<v1::UploadCommitsRequest>,
    sender: mpsc::Sender<Piece>,
    size: u64,
    deadline: Instant,
) -> Result<(), Status> {
    let mut sent = 0_u64;
    while let Some(part) = next(stream, deadline).await? {
        let Part::Chunk(chunk) = part else {
            let violation = name::violation("chunk", "must follow the header");
            return Err(status::fields(&[violation]));
        };
        if chunk.len() > CHUNK {
            let violation = name::violation("chunk", format!("must have at most {CHUNK} bytes"));
            return Err(status::fields(&[violation]));
        }
        sent += chunk.len() as u64;
        if sent > size {
            let violation = name::violation("header.size", "is less than what was sent");
            return Err(status::fields(&[violation]));
        }
        let delivered = timeout_at(deadline, sender.send(Piece::Bytes(chunk))).await;
        match delivered {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(late()),
        }
    }
    if sent < size {
        let message = format!("the stream ended after {sent} of {size} bytes");
        return Err(Refused::new(RefusedCode::UploadIncomplete, message).into_status());
    }
    // An error here is the reader's early end, too.
    drop(sender.send(Piece::Whole).await);
    Ok(())
}

async fn next(
    stream: &mut Streaming<v1::UploadCommitsRequest>,
    deadline: Instant,
) -> Result<Option<Part>, Status> {
    match timeout_at(deadline, stream.message()).await {
        Err(_) => Err(late()),
        Ok(Ok(None)) => Ok(None),
        Ok(Ok(Some(message))) => message.part.map(Some).ok_or_else(|| {
            status::fields(&[name::violation("part", "must be a header or a chunk")])
        }),
        // A frame that is too large or does not parse has its own status; a connection that broke reaches nobody.
        Ok(Err(status)) => Err(status),
    }
}

fn late() -> Status {
    Refused::new(
        RefusedCode::UploadIncomplete,
        "the upload took longer than is allowed",
    )
    .into_status()
}

/// Pieces as a reader. Ends only where the upload was whole.
struct Pieces {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Open,
    Whole,
    Broken,
}

impl Pieces {
    fn new(receiver: mpsc::Receiver<Piece>) -> Self {
        Self {
            receiver,
            current: Bytes::new(),
            state: State::Open,
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.state {
                State::Whole => return Ok(0),
                State::Broken => {
                    let what = "the upload broke off";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                State::Open => match self.receiver.blocking_recv() {
                    Some(Piece::Bytes(bytes)) => self.current = bytes,
                    Some(Piece::Whole) => self.state = State::Whole,
                    None => self.state = State::Broken,
                },
            }
        }
        let count = buffer.len().min(self.current.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    fn pieces(list: Vec<Piece>) -> Pieces {
        let (sender, receiver) = mpsc::channel(16);
        for piece in list {
            sender.try_send(piece).ok().unwrap();
        }
        Pieces::new(receiver)
    }

    #[test]
    fn a_whole_upload_reads_to_its_end() {
        let mut reader = pieces(vec![
            Piece::Bytes(Bytes::from_static(b"one ")),
            Piece::Bytes(Bytes::new()),
            Piece::Bytes(Bytes::from_static(b"two")),
            Piece::Whole,
        ]);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        assert_eq!(reader.read(&mut [0; 4]).unwrap(), 0);
    }

    #[test]
    fn a_broken_upload_is_an_error_and_stays_one() {
        let mut reader = pieces(vec![Piece::Bytes(Bytes::from_static(b"one"))]);
        let mut bytes = Vec::new();
        let error = reader.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(bytes, b"one");
        assert!(reader.read(&mut [0; 4]).is_err());
    }
}
