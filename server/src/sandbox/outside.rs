//! Requests of a case that is recorded: out of the room they come, somebody performs them, back they go.
//!
//! Nobody in this process performs any: whoever ordered the recording brings a way to somebody who does. One request at a
//! time, in the order in which they come.

use super::messages::{AnswerPiece, AskPiece, Order};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use std::collections::HashMap;

/// Requests that are on their way out of a room, and bytes of each.
const OPEN: usize = 512;
const REQUEST: usize = 16 << 20;

/// A request, as a case made it. Candidate-controlled in every part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `http` or `https`.
    pub scheme: String,
    /// In capitals.
    pub method: String,
    /// With its port where that is not the scheme's own.
    pub host: String,
    /// As it was sent.
    pub path: String,
    /// Without the question mark.
    pub query: Option<String>,
    /// All of them, in order.
    pub headers: Vec<(String, String)>,
    /// Whole.
    pub body: Bytes,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// 0 when nothing did.
    pub status: u16,
    /// All of them, in order.
    pub headers: Vec<(String, String)>,
    /// Whole.
    pub body: Bytes,
}

/// Somebody outside of the room who performs requests.
#[async_trait::async_trait]
pub trait Outside: Send + Sync {
    /// Perform this one.
    async fn perform(&self, asked: Asked) -> Answered;
}

/// Requests whose pieces are still coming.
#[derive(Default)]
pub(crate) struct Asks {
    open: HashMap<u64, Asked>,
}

impl Asks {
    /// A request, once it is whole. An error says what is wrong with the piece.
    pub(crate) fn piece(&mut self, piece: AskPiece) -> Result<Option<(u64, Asked)>, String> {
        if let Some(head) = piece.request {
            if self.open.len() >= OPEN {
                return Err("too many requests at once".to_owned());
            }
            let asked = Asked {
                scheme: head.scheme,
                method: head.method,
                host: head.host,
                path: head.path,
                query: head.query,
                headers: head.headers,
                body: Bytes::new(),
            };
            self.open.insert(piece.id, asked);
        }
        let Some(asked) = self.open.get_mut(&piece.id) else {
            return Err("a piece of no request".to_owned());
        };
        let data = BASE64
            .decode(&piece.data)
            .map_err(|error| format!("a request's body: {error}"))?;
        if asked.body.len() + data.len() > REQUEST {
            return Err("a request is too long".to_owned());
        }
        asked.body = [asked.body.as_ref(), &data].concat().into();
        if piece.more {
            return Ok(None);
        }
        Ok(self.open.remove(&piece.id).map(|asked| (piece.id, asked)))
    }
}

/// The orders that carry an answer in.
pub(crate) fn orders(id: u64, answer: &Answered) -> impl Iterator<Item = Order<'_>> {
    AnswerPiece::all(id, answer).map(Order::Answer)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::super::messages::AskHead;
    use super::*;

    fn piece(id: u64, head: bool, data: &str, more: bool) -> AskPiece {
        AskPiece {
            id,
            request: head.then(|| AskHead {
                scheme: "https".to_owned(),
                method: "POST".to_owned(),
                host: "api.example.org".to_owned(),
                path: "/".to_owned(),
                query: None,
                headers: Vec::new(),
            }),
            data: BASE64.encode(data),
            more,
        }
    }

    #[test]
    fn requests_come_in_pieces_that_may_be_mixed() {
        let mut asks = Asks::default();
        assert_eq!(asks.piece(piece(1, true, "a", true)).unwrap(), None);
        let (id, whole) = asks.piece(piece(2, true, "b", false)).unwrap().unwrap();
        assert_eq!((id, whole.body.as_ref()), (2, b"b".as_ref()));
        let (id, whole) = asks.piece(piece(1, false, "c", false)).unwrap().unwrap();
        assert_eq!((id, whole.body.as_ref()), (1, b"ac".as_ref()));
        assert!(asks.piece(piece(1, false, "late", false)).is_err());
    }

    #[test]
    fn an_answer_is_cut_so_that_it_fits_into_frames() {
        let answer = Answered {
            status: 200,
            headers: Vec::new(),
            body: vec![7; 1_300_000].into(),
        };
        let sizes: Vec<usize> = orders(1, &answer)
            .map(|order| serde_json::to_string(&order).unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 3);
        assert!(sizes.iter().all(|size| *size < 1 << 20));
        let none = Answered {
            body: Bytes::new(),
            ..answer
        };
        assert_eq!(orders(1, &none).count(), 1);
    }
}
