//! Connections: a socket's streams in plain text, or behind TLS with the certificates of the moment.
//!
//! Certificates can be exchanged while the socket stays: a handshake that begins afterwards gets the new ones, what is
//! connected stays connected. A handshake has a deadline of its own and holds up nobody else's.

use super::listen::ListenError;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes at the same time; more wait in the kernel.
const AT_ONCE: usize = 256;
/// After the system refused a connection (out of files), so long until the next is asked for.
const RESPITE: Duration = Duration::from_millis(100);

/// Certificate, key and, for mTLS, who may call. PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate chain.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: zeroize::Zeroizing<Vec<u8>>,
    /// Clients must have a certificate of these authorities.
    pub client_ca: Option<Vec<u8>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("client_ca", &self.client_ca.is_some())
            .finish_non_exhaustive()
    }
}

impl Tls {
    fn config(&self) -> Result<ServerConfig, ListenError> {
        let wrong = |what: &str| ListenError::Tls(what.to_owned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| wrong(&e.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                let (taken, _) = roots.add_parsable_certificates(certificates(ca)?);
                if taken == 0 {
                    return Err(wrong("listen.client_ca holds no certificate"));
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(|e| wrong(&e.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = certificates(&self.certificate)?;
        if chain.is_empty() {
            return Err(wrong("listen.certificate holds no certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| wrong("listen.key holds no private key"))?;
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|e| wrong(&e.to_string()))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(config)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ListenError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ListenError::Tls(format!("a certificate file is none: {error}")))
}

/// The certificates of the moment. Cheap to clone.
#[derive(Clone)]
pub struct Certificates(Arc<RwLock<Option<Arc<ServerConfig>>>>);

impl Certificates {
    /// These, or plain text.
    ///
    /// # Errors
    /// `Tls`.
    pub(super) fn new(tls: Option<&Tls>) -> Result<Self, ListenError> {
        let config = tls.map(Tls::config).transpose()?;
        Ok(Self(Arc::new(RwLock::new(config.map(Arc::new)))))
    }

    /// Handshakes that begin from now on get these. Where they do not hold, the old ones stay.
    ///
    /// # Errors
    /// `Tls`.
    pub fn exchange(&self, tls: &Tls) -> Result<(), ListenError> {
        let config = Arc::new(tls.config()?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(config);
        Ok(())
    }

    fn now(&self) -> Option<Arc<ServerConfig>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// One connection.
pub(super) enum Connection {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

/// The socket's connections, until nobody takes them any more.
pub(super) fn connections(
    listener: TcpListener,
    certificates: Certificates,
    keepalive: Duration,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    tokio::time::sleep(RESPITE).await;
                    continue;
                }
            };
            tune(&stream, keepalive);
            let (sender, config) = (sender.clone(), certificates.now());
            tokio::spawn(async move {
                let _place = place;
                if let Some(connection) = greeted(stream, config).await {
                    let _gone = sender.send(Ok(connection)).await;
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

fn tune(stream: &TcpStream, keepalive: Duration) {
    let socket = rustix::net::sockopt::set_tcp_nodelay(stream, true)
        .and_then(|()| rustix::net::sockopt::set_socket_keepalive(stream, true))
        .and_then(|()| rustix::net::sockopt::set_tcp_keepidle(stream, keepalive));
    if let Err(error) = socket {
        tracing::debug!(%error, "a connection could not be tuned");
    }
}

async fn greeted(stream: TcpStream, config: Option<Arc<ServerConfig>>) -> Option<Connection> {
    let Some(config) = config else {
        return Some(Connection::Plain(stream));
    };
    let handshake = TlsAcceptor::from(config).accept(stream);
    match tokio::time::timeout(HANDSHAKE, handshake).await {
        Ok(Ok(stream)) => Some(Connection::Secure(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match self {
            Self::Plain(stream) => stream.connect_info(),
            Self::Secure(stream) => stream.get_ref().0.connect_info(),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
