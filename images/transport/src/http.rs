//! HTTP/1.1 on one connection, plain or under TLS: a request goes in, its recorded answer comes out, byte for byte in
//! body and allowed headers. A miss is answered with status 599 and told.
//!
//! Adds no header of its own (a date would be another one in each attempt). Bodies of requests are bounded, and so is how
//! many of them are taken in at once.

use super::control::{AnswerPart, AskHead, AskPart, Exchange, Said};
use super::record::{Found, Record, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The largest body of a request, and how many are taken in at the same time.
const BODY: usize = 8 << 20;
const BODIES: usize = 4;
/// Bytes of a body in one line to PID 1.
const PART: usize = 256 << 10;
/// Not a status that anybody sends: the record has no answer.
const MISS: u16 = 599;

/// What the connections of a room share.
pub(crate) struct Room {
    record: Mutex<Record>,
    said: mpsc::UnboundedSender<Said>,
    asks: Mutex<Asks>,
    bodies: Semaphore,
}

#[derive(Default)]
struct Asks {
    last: u64,
    open: HashMap<u64, Pending>,
}

struct Pending {
    to: oneshot::Sender<Answer>,
    head: Option<(u16, Vec<(String, String)>)>,
    body: Vec<u8>,
}

/// What came back from outside.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

type Reply = Response<BoxBody<Bytes, Infallible>>;

impl Room {
    pub(crate) fn new(said: mpsc::UnboundedSender<Said>) -> Self {
        Self {
            record: Mutex::default(),
            said,
            asks: Mutex::default(),
            bodies: Semaphore::new(BODIES),
        }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asks(&self) -> MutexGuard<'_, Asks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request of a case.
    pub(crate) async fn answer(&self, scheme: &str, request: hyper::Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let host = host(scheme, &head.uri, &head.headers);
        let Some(body) = self.taken_in(body).await else {
            let miss = format!(
                "http:{} {host}{} (its body is too long)",
                head.method,
                head.uri.path()
            );
            self.record().miss(miss.clone(), Some(&host));
            return missed(&miss);
        };
        let asked = Request {
            method: head.method.as_str(),
            host: &host,
            path: head.uri.path(),
            query: head.uri.query(),
            body: &body,
        };
        let found = self.record().find(&asked);
        match found {
            Found::Answer(exchange, body) => replayed(&head.method, exchange, body),
            Found::Miss(miss) => missed(&miss),
            Found::Off => missed("no case runs"),
            Found::Ask => {
                let ask = AskHead {
                    scheme: scheme.to_owned(),
                    method: asked.method.to_owned(),
                    host: host.clone(),
                    path: asked.path.to_owned(),
                    query: asked.query.map(str::to_owned),
                    headers: listed(&head.headers),
                };
                match self.asked_outside(ask, &body).await {
                    Some(answer) => relayed(&head.method, answer),
                    None => missed("nothing answered outside"),
                }
            }
        }
    }

    async fn taken_in(&self, body: Incoming) -> Option<Bytes> {
        if body.is_end_stream() {
            return Some(Bytes::new());
        }
        let _turn = self.bodies.acquire().await.ok()?;
        let whole = Limited::new(body, BODY).collect().await.ok()?;
        Some(whole.to_bytes())
    }

    async fn asked_outside(&self, head: AskHead, body: &[u8]) -> Option<Answer> {
        let (to, answer) = oneshot::channel();
        let id = {
            let mut asks = self.asks();
            asks.last += 1;
            let id = asks.last;
            let pending = Pending {
                to,
                head: None,
                body: Vec::new(),
            };
            asks.open.insert(id, pending);
            id
        };
        let mut head = Some(head);
        let mut parts = body.chunks(PART).peekable();
        loop {
            let part = parts.next().unwrap_or_default();
            let more = parts.peek().is_some();
            let said = AskPart {
                id,
                request: head.take(),
                data: STANDARD.encode(part),
                more,
            };
            self.said.send(Said::Ask(said)).ok()?;
            if !more {
                break;
            }
        }
        answer.await.ok()
    }

    /// A part of what came back. One for a request that nobody waits for any more is dropped.
    pub(crate) fn answered(&self, part: AnswerPart) -> Result<(), String> {
        let data = STANDARD
            .decode(&part.data)
            .map_err(|error| format!("decode answer {}: {error}", part.id))?;
        let mut asks = self.asks();
        let Some(pending) = asks.open.get_mut(&part.id) else {
            return Ok(());
        };
        pending.head.get_or_insert((part.status, part.headers));
        pending.body.extend_from_slice(&data);
        if part.more {
            return Ok(());
        }
        if let Some(Pending {
            to,
            head: Some((status, headers)),
            body,
        }) = asks.open.remove(&part.id)
            && status != 0
        {
            let _ = to.send(Answer {
                status,
                headers,
                body: Bytes::from(body),
            });
        }
        Ok(())
    }

    /// The case is over: nobody waits for its answers.
    pub(crate) fn forget_asks(&self) {
        self.asks().open.clear();
    }
}

/// Whom a request is for: in lower case, without a port that is the scheme's own.
fn host(scheme: &str, uri: &hyper::Uri, headers: &HeaderMap) -> String {
    let named = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = uri
        .authority()
        .map(hyper::http::uri::Authority::as_str)
        .or(named);
    let host = host.unwrap_or("127.0.0.1").to_lowercase();
    let own = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(own).map_or(host.clone(), str::to_owned)
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect()
}

fn missed(what: &str) -> Reply {
    let mut reply =
        Response::new(Full::new(Bytes::from(format!("cassette-miss: {what}\n"))).boxed());
    *reply.status_mut() = StatusCode::from_u16(MISS).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = reply.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert("x-tribunal", HeaderValue::from_static("cassette-miss"));
    reply
}

fn replayed(method: &Method, exchange: Exchange, body: Bytes) -> Reply {
    built(method, exchange.status, exchange.headers.into_iter(), body)
}

fn relayed(method: &Method, answer: Answer) -> Reply {
    built(
        method,
        answer.status,
        answer.headers.into_iter(),
        answer.body,
    )
}

fn built(
    method: &Method,
    status: u16,
    headers: impl Iterator<Item = (String, String)>,
    body: Bytes,
) -> Reply {
    let mut kept = HeaderMap::new();
    let mut chunked = false;
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value))
        else {
            continue;
        };
        if name == header::TRANSFER_ENCODING {
            chunked = value.as_bytes().eq_ignore_ascii_case(b"chunked");
        } else if name == header::CONTENT_LENGTH {
            // Only where it may differ from what is sent.
            if method == Method::HEAD || status == 304 {
                kept.insert(name, value);
            }
        } else if name != header::CONNECTION && name.as_str() != "keep-alive" {
            kept.append(name, value);
        }
    }
    let body = if chunked && method != Method::HEAD {
        StreamBody::new(Parts(split(&body))).boxed()
    } else {
        Full::new(body).boxed()
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *reply.headers_mut() = kept;
    reply
}

/// Two chunks, so that a client that reads only the first is seen.
fn split(body: &Bytes) -> VecDeque<Bytes> {
    let middle = body.len() / 2;
    [body.slice(..middle), body.slice(middle..)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect()
}

/// A body whose length is not announced.
struct Parts(VecDeque<Bytes>);

impl futures_core::Stream for Parts {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
    }
}
