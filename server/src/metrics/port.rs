//! The admin port: `/metrics`, `/healthz`, `/readyz`, on this machine only, read-only, plain HTTP; beside them the page.
//!
//! They ask for no token, so it listens on loopback alone, and they answer nobody who calls it by another name: a page in a
//! browser on this machine cannot read it by having its own name point here.

use super::Exporter;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why there is no admin port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Beyond this machine.
    #[error(
        "listen on {0} for the admin port: it asks for no token, so it may only be on loopback"
    )]
    Beyond(SocketAddr),
    /// The address.
    #[error("listen on {address} for the admin port: {source}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Whether scores are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet.
    Starting,
    /// Yes.
    Ready,
    /// Not any more.
    Leaving,
}

impl Readiness {
    const ALL: [Self; 3] = [Self::Starting, Self::Ready, Self::Leaving];

    const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting\n",
            Self::Ready => "ready\n",
            Self::Leaving => "leaving\n",
        }
    }
}

#[derive(Clone)]
struct Board {
    exporter: Arc<Exporter>,
    readiness: Arc<AtomicU8>,
}

/// The port, bound and answering until it is closed.
pub struct AdminPort {
    address: SocketAddr,
    readiness: Arc<AtomicU8>,
    serving: tokio::task::JoinHandle<()>,
    close: CancellationToken,
}

impl AdminPort {
    /// Bind, and answer from now on; `beside` are addresses of another room, which looks at its callers itself.
    ///
    /// # Errors
    /// See [`PortError`].
    pub async fn open(
        address: SocketAddr,
        exporter: Arc<Exporter>,
        beside: Option<Router>,
    ) -> Result<Self, PortError> {
        if !address.ip().is_loopback() {
            return Err(PortError::Beyond(address));
        }
        let bind = |source| PortError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let readiness = Arc::new(AtomicU8::new(Readiness::Starting as u8));
        let board = Board {
            exporter,
            readiness: Arc::clone(&readiness),
        };
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(|| async { "alive\n" }))
            .route("/readyz", get(ready))
            .with_state(board)
            .layer(middleware::from_fn(by_its_own_name));
        let routes = beside.map_or(routes.clone(), |beside| beside.merge(routes));
        let close = CancellationToken::new();
        let end = close.clone().cancelled_owned();
        let serving = tokio::spawn(async move {
            let server = axum::serve(listener, routes).with_graceful_shutdown(end);
            if let Err(error) = server.await {
                tracing::error!(%error, "the admin port broke");
            }
        });
        Ok(Self {
            address,
            readiness,
            serving,
            close,
        })
    }

    /// Where it listens, the port chosen.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What `/readyz` says from now on.
    pub fn say(&self, readiness: Readiness) {
        self.readiness.store(readiness as u8, Ordering::Relaxed);
    }

    /// Answer no more. A connection that somebody keeps open does not hold it up.
    pub async fn shut(self) {
        self.close.cancel();
        let last = std::time::Duration::from_millis(500);
        let mut serving = self.serving;
        if tokio::time::timeout(last, &mut serving).await.is_err() {
            serving.abort();
        }
    }
}

async fn metrics(State(board): State<Board>) -> Response {
    match board.exporter.text() {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn ready(State(board): State<Board>) -> Response {
    let now = board.readiness.load(Ordering::Relaxed);
    let readiness = Readiness::ALL
        .into_iter()
        .find(|r| *r as u8 == now)
        .unwrap_or(Readiness::Starting);
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        Readiness::Starting | Readiness::Leaving => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, readiness.word()).into_response()
}

async fn by_its_own_name(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST);
    match host.and_then(|host| host.to_str().ok()).is_some_and(is_own) {
        true => next.run(request).await,
        false => StatusCode::MISDIRECTED_REQUEST.into_response(),
    }
}

/// `localhost`, or a loopback address, with or without a port.
pub(crate) fn is_own(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return ip.is_loopback();
    }
    let name = host.split_once(':').map_or(host, |(name, _)| name);
    name == "localhost"
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn only_this_machine_is_its_own_name() {
        for own in [
            "localhost",
            "localhost:9090",
            "127.0.0.1:1",
            "127.0.0.1",
            "[::1]:9090",
            "[::1]",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "",
            "example.com",
            "localhost.example.com:80",
            "192.0.2.1:9090",
            "127.0.0.1.example.com",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
