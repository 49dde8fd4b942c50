//! Around every call: the caller is known, the deadline holds for streams too, streams end when the server leaves, and
//! no error goes out without its ErrorInfo, whoever made it.

use super::door::{self, Door};
use super::listen::Stops;
use super::status::{self, IntoStatus as _};
use futures::future::BoxFuture;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::service::Routes;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tracing::{Instrument as _, Span};
use tribunal_core::reason::{Aborted, AbortedCode};
use tribunal_core::trace::TraceParent;

const DETAILS: &str = "grpc-status-details-bin";

#[derive(Clone)]
pub(super) struct Gate {
    routes: Routes,
    door: Arc<Door>,
    stops: Stops,
}

impl Gate {
    /// From the first stop on nothing is begun; at the last one what still streams is ended.
    pub(super) fn new(routes: Routes, door: Door, stops: Stops) -> Self {
        Self {
            routes: routes.prepare(),
            door: Arc::new(door),
            stops,
        }
    }
}

/// What may be asked without a token: whether the server lives, and what its interface is. Nothing about its work.
fn is_public(path: &str) -> bool {
    path.starts_with("/grpc.health.v1.Health/")
        || path.starts_with("/grpc.reflection.v1.ServerReflection/")
        || path.starts_with("/grpc.reflection.v1alpha.ServerReflection/")
}

/// What would keep a server that leaves: bundles, and rooms outside of the queue, which refuses for itself.
fn begins_work(path: &str) -> bool {
    [
        "/tribunal.v1.RepositoryService/UploadCommits",
        "/tribunal.v1.RepositoryService/ListCases",
        "/tribunal.v1.RepositoryService/ListModes",
        "/tribunal.v1.CassetteService/Record",
    ]
    .contains(&path)
}

/// The span of a call that belongs to somebody's trace; of any other, none.
fn traced(headers: &HeaderMap) -> Span {
    let mut values = headers.get_all("traceparent").into_iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Span::none();
    };
    let parent = value.to_str().ok().and_then(|text| text.parse().ok());
    parent.map_or_else(Span::none, |parent: TraceParent| {
        let span = tracing::info_span!("call", trace_id = parent.trace_id());
        crate::traces::follow(&span, &parent);
        span
    })
}

/// A little before the caller's own clock, so that it gets our answer and not its own.
fn deadline(headers: &HeaderMap) -> Option<Instant> {
    let timeout = door::timeout(headers)?;
    let margin = (timeout / 10).min(Duration::from_millis(20));
    Instant::now().checked_add(timeout - margin)
}

impl Service<Request<Body>> for Gate {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request<Body>>::poll_ready(&mut self.routes, context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let mut routes = self.routes.clone();
        let door = Arc::clone(&self.door);
        let Stops { leave, close, .. } = self.stops.clone();
        Box::pin(async move {
            let deadline = deadline(request.headers());
            let path = request.uri().path().to_owned();
            let started = Instant::now();
            let span = traced(request.headers());
            let answer = async {
                if !is_public(&path) {
                    match door.caller(request.headers()).await {
                        Ok(caller) => drop(request.extensions_mut().insert(caller)),
                        Err(refused) => return Ok(refused.into_status().into_http()),
                    }
                }
                if leave.is_cancelled() && begins_work(&path) {
                    return Ok(status::aborted(&leaving("the server shuts down")).into_http());
                }
                routes.call(request).await
            }
            .instrument(span);
            let mut response = match deadline {
                Some(at) => match timeout_at(at, answer).await {
                    Ok(response) => response?,
                    Err(_) => status::deadline().into_http(),
                },
                None => answer.await?,
            };
            explain(response.headers_mut());
            tracing::debug!(path, ms = started.elapsed().as_millis() as u64, "answered");
            Ok(response.map(|body| Body::new(Ending::new(body, deadline, close))))
        })
    }
}

fn leaving(message: &str) -> Aborted {
    Aborted::new(AbortedCode::ServerRestarted, message)
}

/// Put an ErrorInfo on a status that has none.
fn explain(headers: &mut HeaderMap) {
    let Some(bare) = Status::from_header_map(headers) else {
        return;
    };
    if bare.code() == Code::Ok || headers.contains_key(DETAILS) {
        return;
    }
    let details = status::details_for(bare.code());
    let told = Status::with_error_details(bare.code(), bare.message(), details);
    if told.add_header(headers).is_err() {
        tracing::warn!("a status could not be explained");
    }
}

/// A response's body that ends in time.
struct Ending {
    body: Option<Body>,
    deadline: Option<Pin<Box<Sleep>>>,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Ending {
    fn new(body: Body, deadline: Option<Instant>, closing: CancellationToken) -> Self {
        Self {
            body: Some(body),
            deadline: deadline.map(|at| Box::pin(sleep_until(at))),
            closing: Box::pin(closing.cancelled_owned()),
        }
    }

    /// Why it must end now, if it must.
    fn overdue(&mut self, context: &mut Context<'_>) -> Option<Status> {
        if let Some(sleep) = &mut self.deadline
            && sleep.as_mut().poll(context).is_ready()
        {
            return Some(status::deadline());
        }
        if self.closing.as_mut().poll(context).is_ready() {
            let message = "the server shuts down; watch again once it is back";
            return Some(status::aborted(&leaving(message)));
        }
        None
    }
}

impl http_body::Body for Ending {
    type Data = bytes::Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        match Pin::new(body).poll_frame(context) {
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    explain(trailers);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => match self.overdue(context) {
                None => Poll::Pending,
                Some(status) => {
                    // What made the stream is dropped with it.
                    self.body = None;
                    let mut trailers = HeaderMap::new();
                    Poll::Ready(Some(
                        status
                            .add_header(&mut trailers)
                            .map(|()| Frame::trailers(trailers)),
                    ))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, http_body::Body::size_hint)
    }
}
