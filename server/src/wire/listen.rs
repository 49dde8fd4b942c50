//! The socket: TLS or a loopback address, limits of HTTP/2, health, reflection, and an end that waits, but not for ever.

use super::cassettes::Cassettes;
use super::door::Door;
use super::gate::Gate;
use super::incoming::{Certificates, Tls, connections};
use super::keys::Keys;
use super::repositories::Repositories;
use super::scores::Scores;
use super::upload::{CHUNK, Uploads};
use super::{Services, WireSettings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService as _;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tribunal_proto::FILE_DESCRIPTOR_SET;
use tribunal_proto::v1::cassette_service_server::CassetteServiceServer;
use tribunal_proto::v1::key_service_server::KeyServiceServer;
use tribunal_proto::v1::repository_service_server::RepositoryServiceServer;
use tribunal_proto::v1::score_service_server::ScoreServiceServer;

/// Requests other than chunks are small.
const REQUEST_BYTES: usize = 64 * 1024;
/// A chunk and what is around it.
const CHUNK_BYTES: usize = CHUNK + 1024;
/// How long open connections have once their streams are ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Why the server cannot listen or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Plain text beyond this machine.
    #[error(
        "listen on {0} without TLS: tokens would cross the network in the clear. Give listen.certificate and listen.key, or listen on 127.0.0.1"
    )]
    PlainText(SocketAddr),
    /// The address.
    #[error("listen on {address}: {source}")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates or keys.
    #[error("set up TLS: {0}")]
    Tls(String),
    /// The descriptor set that we compiled in.
    #[error("offer reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// While serving.
    #[error("serve: {0}")]
    Serve(#[source] tonic::transport::Error),
}

/// How it ends, in this order.
#[derive(Clone, Default)]
pub struct Stops {
    /// Health says NOT_SERVING, nothing is begun any more; what is there can be watched, fetched and cancelled.
    pub leave: CancellationToken,
    /// All work has ended: no connection is taken, no call begun.
    pub over: CancellationToken,
    /// What still streams is ended.
    pub close: CancellationToken,
}

/// A socket that is bound, its certificates read, not yet served.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Certificates,
}

impl Listener {
    /// Bind. Plain text only on loopback.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub async fn bind(address: SocketAddr, tls: Option<Tls>) -> Result<Self, ListenError> {
        if tls.is_none() && !address.ip().is_loopback() {
            return Err(ListenError::PlainText(address));
        }
        let certificates = Certificates::new(tls.as_ref())?;
        let bind = |source| ListenError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self {
            listener,
            address,
            certificates,
        })
    }

    /// What can be exchanged while it serves.
    #[must_use]
    pub fn certificates(&self) -> Certificates {
        self.certificates.clone()
    }

    /// Where it listens, the port chosen.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serve until all of the stops are reached.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub async fn serve(self, services: Services, stops: Stops) -> Result<(), ListenError> {
        let settings = services.settings.clone();
        let server = Server::builder()
            .max_concurrent_streams(256)
            .http2_max_header_list_size(16 * 1024)
            .http2_keepalive_interval(Some(settings.keepalive))
            .http2_keepalive_timeout(Some(Duration::from_secs(20)));
        let (routes, health) = routes(&services).await?;
        let door = Door::new(Arc::clone(&services.store), settings.call_rate);
        let gate = Gate::new(routes, door, stops.clone());
        let incoming = connections(self.listener, self.certificates, settings.keepalive);
        let Stops { leave, over, close } = stops;
        let stop = async move {
            leave.cancelled().await;
            for service in ["", ScoreServiceServer::<Scores>::NAME] {
                let not = ServingStatus::NotServing;
                health.set_service_status(service, not).await;
            }
            over.cancelled().await;
        };
        let serving = server.serve_with_incoming_shutdown(gate, incoming, stop);
        let late = async {
            close.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            result = serving => result.map_err(ListenError::Serve),
            () = late => {
                tracing::warn!("connections were still open when the server left");
                Ok(())
            }
        }
    }
}

async fn routes(services: &Services) -> Result<(Routes, HealthReporter), ListenError> {
    let WireSettings {
        heartbeat, uploads, ..
    } = services.settings.clone();
    let scores = Scores {
        store: Arc::clone(&services.store),
        queue: services.queue.clone(),
        heartbeat,
    };
    let repositories = Repositories {
        repository: Arc::clone(&services.repository),
        collector: Arc::clone(&services.collector),
        collections: Arc::new(Semaphore::new(services.settings.collections_at_once)),
        uploads: Uploads {
            repository: Arc::clone(&services.repository),
            limits: uploads,
            observer: Arc::clone(&services.observer),
            at_once: Arc::new(Semaphore::new(services.settings.uploads_at_once)),
        },
    };
    let cassettes = Cassettes {
        collector: Arc::clone(&services.collector),
        places: Arc::clone(&repositories.collections),
    };
    let keys = Keys {
        store: Arc::clone(&services.store),
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<ScoreServiceServer<Scores>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    let routes =
        Routes::new(ScoreServiceServer::new(scores).max_decoding_message_size(REQUEST_BYTES))
            .add_service(
                RepositoryServiceServer::new(repositories).max_decoding_message_size(CHUNK_BYTES),
            )
            .add_service(
                CassetteServiceServer::new(cassettes).max_decoding_message_size(CHUNK_BYTES),
            )
            .add_service(KeyServiceServer::new(keys).max_decoding_message_size(REQUEST_BYTES))
            .add_service(health)
            .add_service(reflection);
    Ok((routes, reporter))
}
