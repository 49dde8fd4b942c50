//! What the operator decides: a TOML file, the environment and flags become one inert `Config`, every mistake told at once.
//!
//! Never opens a socket, never reads a key; the paths it names are looked at by `check`. Later sources win: the built-in
//! defaults, the file, `TRIBUNAL_…` variables, flags. Fails with `Mistakes`.

mod changes;
mod check;
mod file;
mod notify;
mod secret;
mod table;
mod unit;

pub use changes::Changes;
pub use check::check;
pub use file::from_toml;
pub use secret::{CredentialName, SecretError, SecretFile};
pub use unit::duration;

use crate::notify::{Endpoint, Notify};
use crate::queue::QueueLimits;
use crate::repository::{Protocol, UploadLimits};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything, defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What statements call this server.
    pub name: String,
    /// Where it listens.
    pub listen: Listen,
    /// What signs.
    pub signing: Signing,
    /// How much runs and waits.
    pub queue: QueueLimits,
    /// How long running scores have when the server is told to leave.
    pub drain: Duration,
    /// How calls are bounded.
    pub calls: Calls,
    /// How uploads are bounded.
    pub uploads: Uploads,
    /// How mirrors are fetched.
    pub fetch: Fetch,
    /// The engine that runs containers.
    pub engine: Engine,
    /// Rooms that are ready before anybody asks.
    pub rooms: ReadyRooms,
    /// How oracles are looked after.
    pub oracle: Oracle,
    /// What stays how long.
    pub keep: Keep,
    /// Who is told of ends.
    pub notify: Notify,
    /// Where the operator looks.
    pub admin: Admin,
    /// Who is told where time went.
    pub traces: Traces,
    /// What is logged, as `RUST_LOG` writes it.
    pub log: String,
    /// How it is written.
    pub log_format: LogFormat,
}

/// The admin port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// Loopback; port 0 picks one; `None`: there is none.
    pub listen: Option<SocketAddr>,
    /// Whether the page for people is there.
    pub page: PageShown,
    /// Host names beside this machine's own that the page answers to, as of a proxy with TLS before it.
    pub names: Vec<String>,
}

/// Whether the page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageShown {
    /// It is, behind tokens.
    On,
    /// The admin port has numbers alone.
    Off,
}

/// Spans of scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    /// An OpenTelemetry collector that takes OTLP over gRPC; `None`: nobody is told.
    pub collector: Option<Endpoint>,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Address and port; port 0 picks one.
    pub address: SocketAddr,
    /// Certificate chain and private key, PEM files. Without it only loopback is allowed.
    pub tls: Option<TlsFiles>,
}

/// Files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate chain.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: SecretFile,
    /// Callers must have a certificate of these authorities.
    pub client_ca: Option<PathBuf>,
}

/// The signing key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// It stands outside of the data directory, and others bring it there; `None`: `init` and `key rotate` do.
    pub key: Option<SecretFile>,
}

/// Calls and streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Calls {
    /// Calls of one token a second, in the long run.
    pub per_second: u32,
    /// Calls of one token at once.
    pub burst: u32,
    /// A silent watch says that it lives so often.
    pub heartbeat: Duration,
    /// A silent connection is asked whether it lives so often.
    pub keepalive: Duration,
    /// Lists of cases that are made at the same time.
    pub collections: usize,
}

/// Uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploads {
    /// Of one upload.
    pub limits: UploadLimits,
    /// At the same time.
    pub at_once: usize,
}

/// Fetching of mirrors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// What may be fetched with.
    pub protocols: Vec<Protocol>,
    /// How long one fetch may take.
    pub timeout: Duration,
    /// A git configuration for fetching, as for credentials.
    pub git_config: Option<PathBuf>,
    /// Names of environment variables that fetching sees; their values are never shown.
    pub environment: Vec<String>,
}

/// The container engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// `unix:///…` or `tcp://…`; without it `DOCKER_HOST`, or the local socket.
    pub host: Option<String>,
}

/// Rooms that are ready before anybody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyRooms {
    /// At most so many at a time, over all repositories; 0: every score makes its own.
    pub ready: usize,
}

/// Oracles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oracle {
    /// Whether changes are planted in the bases that were scored, while no score runs.
    pub plant: Plant,
}

/// Whether a server plants changes by itself; `repo add` and `repo sync` do anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// While nothing else is to do.
    Idle,
    /// Only when it is asked.
    Asked,
}

/// What stays how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Uploads since they were last needed.
    pub uploads: Duration,
    /// Sealed trees since they were last needed.
    pub trees: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            name: "tribunal".to_owned(),
            listen: Listen {
                address: SocketAddr::from(([127, 0, 0, 1], 7443)),
                tls: None,
            },
            signing: Signing { key: None },
            queue: QueueLimits {
                // Never more running attempts than cores: a time-out counts only if the attempt had its CPU.
                workers: cores,
                capacity: 256,
                running_per_token: cores,
                open_per_token: 32,
                hourly_per_token: 600,
                stall: Duration::from_secs(30 * 60),
            },
            drain: Duration::from_secs(30),
            calls: Calls {
                per_second: 20,
                burst: 100,
                heartbeat: Duration::from_secs(10),
                keepalive: Duration::from_secs(30),
                collections: 1,
            },
            uploads: Uploads {
                limits: UploadLimits::default(),
                at_once: 4,
            },
            fetch: Fetch {
                protocols: vec![Protocol::File, Protocol::Https, Protocol::Ssh],
                timeout: Duration::from_secs(120),
                git_config: None,
                environment: Vec::new(),
            },
            engine: Engine { host: None },
            rooms: ReadyRooms { ready: 4 },
            oracle: Oracle { plant: Plant::Idle },
            keep: Keep {
                uploads: Duration::from_secs(14 * 86_400),
                trees: Duration::from_secs(30 * 86_400),
            },
            notify: Notify::default(),
            admin: Admin {
                listen: None,
                page: PageShown::On,
                names: Vec::new(),
            },
            traces: Traces { collector: None },
            log: "info".to_owned(),
            log_format: LogFormat::Text,
        }
    }
}

/// What flags and the environment say; they outrank the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Where to listen.
    pub listen: Option<SocketAddr>,
    /// How many scores run at the same time.
    pub workers: Option<usize>,
    /// What is logged.
    pub log: Option<String>,
}

impl Config {
    /// The same with what flags and the environment say.
    #[must_use]
    pub fn with(mut self, overrides: Overrides) -> Self {
        if let Some(address) = overrides.listen {
            self.listen.address = address;
        }
        if let Some(workers) = overrides.workers {
            self.queue.workers = workers;
        }
        if let Some(log) = overrides.log {
            self.log = log;
        }
        self
    }
}

/// One mistake, with the key it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// `queue.workers`, or empty where the file as a whole is meant.
    pub key: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the configuration:{}", listed(.0))]
pub struct Mistakes(pub Vec<Mistake>);

fn listed(mistakes: &[Mistake]) -> String {
    mistakes
        .iter()
        .map(|mistake| format!("\n  {mistake}"))
        .collect()
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "{}: {}", self.key, self.what)
        }
    }
}

#[cfg(test)]
mod tests;
