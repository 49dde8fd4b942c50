//! Bytes to frames and back: `u32 length | u8 kind | body`, never more than 1 MiB.
//!
//! Knows nothing of what a frame says. A frame that is empty, too large or of an unknown kind ends the conversation; the
//! decoder never holds more than one frame and one chunk.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use std::collections::VecDeque;

/// The most that the length field may say: the kind byte and the body.
pub(crate) const LARGEST: usize = 1 << 20;
/// Bytes of tar in one frame: large enough to be quick, small enough to keep the other side's buffer small.
const TAR_PIECE: usize = 256 << 10;
const JSON: u8 = b'J';
const TAR: u8 = b'T';

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// One JSON object, not parsed yet.
    Json(Bytes),
    /// Raw tar bytes.
    Tar(Bytes),
}

/// Why bytes are not frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The length field is 0 or over the limit.
    #[error("a frame of {0} bytes")]
    Size(usize),
    /// Neither JSON nor tar.
    #[error("a frame of kind {0:#04x}")]
    Kind(u8),
    /// The bytes ended inside a frame.
    #[error("a frame that breaks off")]
    Cut,
}

/// A JSON frame, ready to be written.
pub(crate) fn json(body: &impl serde::Serialize) -> Result<Bytes, FrameError> {
    let mut out = BytesMut::with_capacity(512);
    out.put_u32(0);
    out.put_u8(JSON);
    // Our own types always serialise; a writer that grows never fails.
    let mut writer = out.writer();
    serde_json::to_writer(&mut writer, body).map_err(|_| FrameError::Size(0))?;
    let mut out = writer.into_inner();
    let length = out.len() - 4;
    if length > LARGEST {
        return Err(FrameError::Size(length));
    }
    let field = u32::try_from(length).map_err(|_| FrameError::Size(length))?;
    out[..4].copy_from_slice(&field.to_be_bytes());
    Ok(out.freeze())
}

/// A tar as frames, header and piece in turn; the pieces share the tar's memory.
pub(crate) fn tar(mut tar: Bytes) -> impl Iterator<Item = Bytes> + Send {
    let mut head_next = true;
    std::iter::from_fn(move || {
        if tar.is_empty() {
            return None;
        }
        let piece = tar.len().min(TAR_PIECE);
        if head_next {
            head_next = false;
            let mut head = BytesMut::with_capacity(5);
            head.put_u32(u32::try_from(piece + 1).unwrap_or(u32::MAX));
            head.put_u8(TAR);
            Some(head.freeze())
        } else {
            head_next = true;
            Some(tar.split_to(piece))
        }
    })
}

/// Turns chunks of any size into frames.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    bytes: BytesMut,
}

impl Decoder {
    /// Take the next chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// The next whole frame, if the chunks so far hold one.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(field) = self.bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*field)).unwrap_or(usize::MAX);
        if length == 0 || length > LARGEST {
            return Err(FrameError::Size(length));
        }
        let Some(&kind) = self.bytes.get(4) else {
            return Ok(None);
        };
        // Refused at its first byte: a megabyte of the wrong kind is not waited for.
        if kind != JSON && kind != TAR {
            return Err(FrameError::Kind(kind));
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        self.bytes.advance(5);
        let body = self.bytes.split_to(length - 1).freeze();
        Ok(Some(if kind == JSON {
            Frame::Json(body)
        } else {
            Frame::Tar(body)
        }))
    }

    /// Whether the bytes end between two frames.
    pub(crate) fn at_boundary(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// What can be heard on a line.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A frame.
    Frame(Frame),
    /// The other end is gone; the text says how, for the log.
    End(String),
}

/// Frames out of a stream of chunks.
pub(crate) struct Incoming<S> {
    chunks: S,
    decoder: Decoder,
    early: VecDeque<Frame>,
}

impl<S, E> Incoming<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    pub(crate) fn new(chunks: S) -> Self {
        Self {
            chunks,
            decoder: Decoder::default(),
            early: VecDeque::new(),
        }
    }

    /// The next frame, or the end. Safe to drop half-way: what was read stays in the decoder.
    pub(crate) async fn next(&mut self) -> Result<Heard, FrameError> {
        if let Some(frame) = self.early.pop_front() {
            return Ok(Heard::Frame(frame));
        }
        loop {
            if let Some(frame) = self.decoder.next()? {
                return Ok(Heard::Frame(frame));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.decoder.push(&chunk),
                Some(Err(error)) => return Ok(Heard::End(error.to_string())),
                None if self.decoder.at_boundary() => {
                    return Ok(Heard::End("end of stream".to_owned()));
                }
                None => return Ok(Heard::End(FrameError::Cut.to_string())),
            }
        }
    }

    /// Put a frame back, to be heard next.
    pub(crate) fn keep(&mut self, frame: Frame) {
        self.early.push_back(frame);
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test may stop at the first surprise"
    )]
    use super::*;
    use proptest::prelude::*;

    fn frames_of(bytes: &[u8], cuts: usize) -> Result<Vec<Frame>, FrameError> {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for chunk in bytes.chunks(cuts.max(1)) {
            decoder.push(chunk);
            while let Some(frame) = decoder.next()? {
                out.push(frame);
            }
        }
        assert!(decoder.at_boundary() || !out.is_empty() || bytes.len() < 5);
        Ok(out)
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_frames(texts in proptest::collection::vec(".{0,40}", 1..6), cuts in 1usize..70) {
            let mut bytes = Vec::new();
            for text in &texts {
                bytes.extend_from_slice(&json(&serde_json::json!({ "t": text })).unwrap());
            }
            let frames = frames_of(&bytes, cuts).unwrap();
            prop_assert_eq!(frames.len(), texts.len());
            for (frame, text) in frames.iter().zip(&texts) {
                let Frame::Json(body) = frame else { panic!("not JSON") };
                let value: serde_json::Value = serde_json::from_slice(body).unwrap();
                prop_assert_eq!(value["t"].as_str(), Some(text.as_str()));
            }
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cuts in 1usize..50) {
            let mut decoder = Decoder::default();
            for chunk in bytes.chunks(cuts) {
                decoder.push(chunk);
                loop {
                    match decoder.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
            }
        }
    }

    #[test]
    fn a_tar_goes_in_pieces_and_comes_out_whole() {
        let tar_bytes: Vec<u8> = (0..TAR_PIECE * 2 + 17).map(|n| (n % 251) as u8).collect();
        let mut wire = Vec::new();
        for part in tar(Bytes::from(tar_bytes.clone())) {
            wire.extend_from_slice(&part);
        }
        let frames = frames_of(&wire, 70_000).unwrap();
        assert_eq!(frames.len(), 3);
        let mut back = Vec::new();
        for frame in frames {
            let Frame::Tar(piece) = frame else {
                panic!("not tar")
            };
            back.extend_from_slice(&piece);
        }
        assert_eq!(back, tar_bytes);
        assert_eq!(tar(Bytes::new()).count(), 0);
    }

    #[test]
    fn too_large_empty_and_unknown_frames_are_errors() {
        let mut decoder = Decoder::default();
        decoder.push(&u32::to_be_bytes(LARGEST as u32 + 1));
        assert_eq!(decoder.next(), Err(FrameError::Size(LARGEST + 1)));
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 0, 0]);
        assert_eq!(decoder.next(), Err(FrameError::Size(0)));
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 1, 0, b'X']);
        assert_eq!(decoder.next(), Err(FrameError::Kind(b'X')));
        let huge = "x".repeat(LARGEST);
        assert!(matches!(
            json(&serde_json::json!({ "t": huge })),
            Err(FrameError::Size(_))
        ));
    }

    #[tokio::test]
    async fn the_end_of_the_chunks_says_whether_a_frame_was_cut() {
        let whole = json(&serde_json::json!({})).unwrap();
        let chunks = vec![Ok::<_, std::io::Error>(whole.clone()), Ok(whole.slice(..3))];
        let mut incoming = Incoming::new(futures::stream::iter(chunks));
        assert!(matches!(
            incoming.next().await,
            Ok(Heard::Frame(Frame::Json(_)))
        ));
        let Ok(Heard::End(how)) = incoming.next().await else {
            panic!("not the end")
        };
        assert!(how.contains("breaks off"));
    }
}
