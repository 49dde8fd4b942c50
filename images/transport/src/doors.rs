//! TCP ports of loopback: held from the start, so that nobody else in the room can have them; listened on only while a
//! cassette is on. What comes in is TLS if its first byte says so, HTTP otherwise, on every port.
//!
//! When a case is over its connections are cut. A connection that carries no request is told as a miss; one that
//! carries nothing at all is not.

use super::authority::Authority;
use super::http::Room;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use socket2::{Domain, SockAddr, Socket, Type};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::LazyConfigAcceptor;

const BACKLOG: i32 = 256;
/// Below what a process may open.
const CONNECTIONS: usize = 400;
const TLS_HANDSHAKE: u8 = 0x16;

/// One port.
pub(crate) struct Door {
    socket: Socket,
    port: u16,
}

/// What a connection needs.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) room: Arc<Room>,
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) places: Arc<Semaphore>,
}

impl Inside {
    pub(crate) fn new(room: Arc<Room>, authority: Arc<Authority>) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(authority);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            room,
            tls: Arc::new(tls),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }
}

impl Door {
    /// Takes the port; whoever connects is refused.
    pub(crate) fn held(address: Ipv4Addr, port: u16) -> io::Result<Self> {
        // A port that the kernel chose would not survive `shut`: it is chosen here, and then asked for.
        let port = match port {
            0 => std::net::TcpListener::bind((address, 0))?
                .local_addr()?
                .port(),
            port => port,
        };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        // Else what is left of an earlier case's connections keeps the port from being listened on. No other user can
        // share it for that, as with SO_REUSEADDR.
        socket.set_reuse_port(true)?;
        socket.bind(&SockAddr::from(SocketAddr::from((address, port))))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, port })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Lets connections in; they and this end with the task that is returned.
    pub(crate) fn open(
        &self,
        inside: Inside,
    ) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        self.socket.listen(BACKLOG)?;
        let listener = TcpListener::from_std(self.socket.try_clone()?.into())?;
        let port = self.port;
        Ok(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok(place) = Arc::clone(&inside.places).acquire_owned().await else {
                    return;
                };
                // Out of descriptors, or a connection that is gone already: the next one may do.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let inside = inside.clone();
                connections.spawn(async move {
                    connected(&inside, stream, port).await;
                    drop(place);
                });
                while connections.try_join_next().is_some() {}
            }
        })
    }

    /// Refuses again, and stays the port's owner.
    pub(crate) fn shut(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Both)
    }
}

async fn connected(inside: &Inside, stream: TcpStream, port: u16) {
    let mut first = [0];
    match stream.peek(&mut first).await {
        Ok(1) => {}
        Ok(_) | Err(_) => return,
    }
    let _ = stream.set_nodelay(true);
    if first == [TLS_HANDSHAKE] {
        under_tls(inside, stream, port).await;
    } else {
        spoken(inside, stream, "http", port).await;
    }
}

async fn under_tls(inside: &Inside, stream: TcpStream, port: u16) {
    let tell = |name: Option<&str>, error: &io::Error| {
        let shown = name.unwrap_or("127.0.0.1");
        let miss = format!("https:{shown} (port {port}, no TLS connection: {error})");
        inside.room.record().miss(miss, name);
    };
    let hello = match LazyConfigAcceptor::new(Acceptor::default(), stream).await {
        Ok(hello) => hello,
        Err(error) => return tell(None, &error),
    };
    let name = hello.client_hello().server_name().map(str::to_lowercase);
    match hello.into_stream(Arc::clone(&inside.tls)).await {
        Ok(stream) => spoken(inside, stream, "https", port).await,
        Err(error) => tell(name.as_deref(), &error),
    }
}

async fn spoken<S>(inside: &Inside, stream: S, scheme: &'static str, port: u16)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let room = &inside.room;
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(room.answer(scheme, request).await) },
        );
    let served = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served
        && error.is_parse()
    {
        room.record().miss(format!("tcp:{port} (not HTTP)"), None);
    }
}
