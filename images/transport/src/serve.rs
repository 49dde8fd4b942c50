//! The conversation with PID 1: orders in, answers out, until its pipe ends.
//!
//! One order at a time, in the order received: when `on` is answered the ports listen, when `off` is answered no
//! connection of the case is left. An order that cannot be read ends everything: it is a mistake of our own.

use super::authority::Authority;
use super::control::{Mode, Onset, Order, Ready, Said};
use super::doors::{Door, Inside};
use super::http::Room;
use super::names;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Where to be.
#[derive(Debug, Clone)]
pub struct Config {
    /// The only address.
    pub address: Ipv4Addr,
    /// TCP ports; 0 is any.
    pub ports: Vec<u16>,
    /// The UDP port for names; 0 is any.
    pub names: u16,
    /// The room's own name, which does not resolve.
    pub own_name: String,
}

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// A word on the command line.
    #[error("read the port {0:?}")]
    Port(String),
    /// The pipes of PID 1.
    #[error("speak to PID 1: {0}")]
    Pipe(#[source] io::Error),
    /// A port is not to be had.
    #[error("take port {port}: {source}")]
    Bind {
        /// Which.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// No certificate.
    #[error("make an authority: {0}")]
    Authority(String),
    /// Something PID 1 said.
    #[error("{0}")]
    Order(String),
}

impl Config {
    /// A room's: the two ports of HTTP, those given, and that of names.
    ///
    /// # Errors
    /// An argument that is no port.
    pub fn of_room(more: impl Iterator<Item = String>) -> Result<Self, TransportError> {
        let mut ports = vec![80, 443];
        for word in more {
            let port = word.parse().map_err(|_| TransportError::Port(word))?;
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        Ok(Self {
            address: Ipv4Addr::LOCALHOST,
            ports,
            names: 53,
            own_name: std::fs::read_to_string("/proc/sys/kernel/hostname")
                .unwrap_or_default()
                .trim()
                .to_lowercase(),
        })
    }
}

/// Serves until `orders` ends.
///
/// # Errors
/// A port or a certificate that is not to be had, or an order that cannot be read.
pub async fn serve<R, W>(config: Config, orders: R, answers: W) -> Result<(), TransportError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let authority =
        Authority::new().map_err(|error| TransportError::Authority(error.to_string()))?;
    let authority = Arc::new(authority);
    let held = |port| {
        Door::held(config.address, port).map_err(|source| TransportError::Bind { port, source })
    };
    let doors: Vec<Door> = config
        .ports
        .iter()
        .copied()
        .map(held)
        .collect::<Result<_, _>>()?;
    let (said, saying) = mpsc::unbounded_channel();
    let room = Arc::new(Room::new(said.clone()));
    let inside = Inside::new(Arc::clone(&room), Arc::clone(&authority))
        .map_err(|error| TransportError::Authority(error.to_string()))?;
    let mut tasks = JoinSet::new();
    tasks.spawn(say(saying, answers));
    let names = listening_for_names(&config, Arc::clone(&room)).await?;
    tasks.spawn(names.1);
    let say = |what| {
        let gone = || TransportError::Pipe(io::ErrorKind::BrokenPipe.into());
        said.send(what).map_err(|_| gone())
    };
    say(Said::Ready(Ready {
        authority: authority.pem().to_owned(),
        ports: doors.iter().map(Door::port).collect(),
        names: names.0,
    }))?;
    let mut open = JoinSet::new();
    let mut lines = BufReader::new(orders).lines();
    while let Some(line) = lines.next_line().await.map_err(TransportError::Pipe)? {
        let order: Order = serde_json::from_str(&line)
            .map_err(|error| TransportError::Order(format!("read an order: {error}")))?;
        match order {
            Order::Cassette(cassette) => room.record().learn(cassette),
            Order::Body(part) => room.record().body(&part).map_err(TransportError::Order)?,
            Order::Answer(part) => room.answered(part).map_err(TransportError::Order)?,
            Order::On(on) => {
                close(&doors, &mut open).await;
                let known = room.record().on(&on.node, on.mode);
                for door in &doors {
                    let port = door.port();
                    let task = door
                        .open(inside.clone())
                        .map_err(|source| TransportError::Bind { port, source })?;
                    open.spawn(task);
                }
                say(Said::On(Onset {
                    known: known || on.mode == Mode::Relay,
                }))?;
            }
            Order::Off(_) => {
                close(&doors, &mut open).await;
                room.forget_asks();
                let summary = room.record().off();
                say(Said::Off(summary))?;
            }
        }
    }
    Ok(())
}

/// No connection is left when this returns.
async fn close(doors: &[Door], open: &mut JoinSet<()>) {
    if open.is_empty() {
        return;
    }
    for door in doors {
        // A door that is shut already is what is wanted.
        let _ = door.shut();
    }
    open.shutdown().await;
}

async fn say<W: AsyncWrite + Unpin>(mut saying: mpsc::UnboundedReceiver<Said>, mut to: W) {
    while let Some(said) = saying.recv().await {
        let Ok(mut line) = serde_json::to_vec(&said) else {
            return;
        };
        line.push(b'\n');
        if to.write_all(&line).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

async fn listening_for_names(
    config: &Config,
    room: Arc<Room>,
) -> Result<(u16, impl Future<Output = ()> + Send + use<>), TransportError> {
    let bind = |source| TransportError::Bind {
        port: config.names,
        source,
    };
    let address = SocketAddr::from((config.address, config.names));
    let socket = UdpSocket::bind(address).await.map_err(bind)?;
    let port = socket.local_addr().map_err(bind)?.port();
    let own = config.own_name.clone();
    let task = async move {
        let mut packet = [0; 1500];
        loop {
            // An error here is that of an earlier reply: its receiver is gone.
            let Ok((length, from)) = socket.recv_from(&mut packet).await else {
                tokio::task::yield_now().await;
                continue;
            };
            let asked = packet.get(..length).unwrap_or_default();
            let Some(question) = names::question(asked) else {
                continue;
            };
            let resolves = question.name != own && room.record().resolve(&question.name);
            if let Some(reply) = names::answer(asked, &question, resolves) {
                let _ = socket.send_to(&reply, from).await;
            }
        }
    };
    Ok((port, task))
}
