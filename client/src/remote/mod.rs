//! The connection to a server: settings become a channel, statuses become failures with an exit code.
//!
//! Never retries what is not safe to repeat, never shows a token, never trusts a name or a text that comes back.

mod record;
mod scores;
mod status;
mod upload;
mod watch;

pub use record::{Heard, Recorder};
pub use scores::ListFilter;
pub use status::failure_of;
pub use upload::UploadProgress;
pub use watch::{End, Next, Watch};

use crate::config::{Endpoint, Scheme, Settings, Tls, Token};
use crate::exit::Exit;
use crate::failure::Failure;
use std::path::Path;
use std::time::Duration;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Request, Status};
use tribunal_core::id::{RepoName, ScoreId};
use tribunal_core::text::shown;
use tribunal_proto::v1::key_service_client::KeyServiceClient;
use tribunal_proto::v1::repository_service_client::RepositoryServiceClient;
use tribunal_proto::v1::score_service_client::ScoreServiceClient;

/// A whole set of files comes in one message.
const ANSWER_LIMIT: usize = 256 * 1024 * 1024;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one unary call may take; admission fetches from a remote and a queue may be long.
const CALL: Duration = Duration::from_secs(120);

/// Says who we are with every call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request
            .metadata_mut()
            .insert("authorization", self.0.clone());
        Ok(request)
    }
}

type Authorized = InterceptedService<Channel, Bearer>;

/// A server that answers, and the token that it will be asked with.
#[derive(Clone)]
pub struct Remote {
    channel: Channel,
    bearer: Bearer,
    address: String,
}

impl Remote {
    /// Connect as the settings say.
    ///
    /// # Errors
    /// No server or token is configured, a TLS file cannot be read, or nobody answers.
    pub async fn connect(settings: &Settings) -> Result<Self, Failure> {
        let endpoint = settings.server()?;
        let bearer = bearer(settings.token())?;
        let transport = transport(endpoint, settings.tls())?;
        let channel = transport
            .connect()
            .await
            .map_err(|e| unreachable(&endpoint.to_string(), &e))?;
        Ok(Self {
            channel,
            bearer,
            address: endpoint.to_string(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    fn scores(&self) -> ScoreServiceClient<Authorized> {
        ScoreServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_LIMIT)
    }

    fn repositories(&self) -> RepositoryServiceClient<Authorized> {
        RepositoryServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
            .max_decoding_message_size(ANSWER_LIMIT)
    }

    fn keys(&self) -> KeyServiceClient<Authorized> {
        KeyServiceClient::with_interceptor(self.channel.clone(), self.bearer.clone())
    }
}

/// `repositories/{repository}`.
#[must_use]
pub fn repository_name(repo: &RepoName) -> String {
    format!("repositories/{repo}")
}

/// A score's full name from what a person types: the full name, or its id alone within `repo`.
///
/// # Errors
/// It is neither.
pub fn score_name(text: &str, repo: Option<&RepoName>) -> Result<String, Failure> {
    let bad = || {
        Failure::usage(
            "find the score",
            format!("{} is not a score's name", shown(text, 100)),
            "give repositories/REPO/scores/ID as `tribunal list` prints it, or the id with --repo",
        )
    };
    if let Ok(id) = text.parse::<ScoreId>() {
        let repo = repo.ok_or_else(bad)?;
        return Ok(format!("repositories/{repo}/scores/{id}"));
    }
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        ["repositories", repo, "scores", id]
            if repo.parse::<RepoName>().is_ok() && id.parse::<ScoreId>().is_ok() =>
        {
            Ok(text.to_owned())
        }
        _ => Err(bad()),
    }
}

/// The wire's time as RFC 3339 in UTC; `None` where it is no time.
#[must_use]
pub fn rfc3339(time: &prost_types::Timestamp) -> Option<String> {
    let second = tribunal_core::id::UnixTime(time.seconds);
    (time.seconds > 0).then(|| second.rfc3339())
}

/// A call with a deadline; streams are bounded elsewhere.
fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL);
    request
}

fn bearer(token: Option<&Token>) -> Result<Bearer, Failure> {
    let token = token.ok_or_else(|| {
        Failure::new(
            Exit::NotAllowed,
            "ask the server",
            "no token is configured",
            "set TRIBUNAL_TOKEN or TRIBUNAL_TOKEN_FILE, or pass --token-file FILE",
        )
    })?;
    let mut value: MetadataValue<Ascii> =
        format!("Bearer {}", token.reveal()).parse().map_err(|_| {
            Failure::usage(
                "ask the server",
                "the token holds odd characters",
                "get a new token",
            )
        })?;
    value.set_sensitive(true);
    Ok(Bearer(value))
}

fn transport(endpoint: &Endpoint, tls: &Tls) -> Result<tonic::transport::Endpoint, Failure> {
    let bad = |e: tonic::transport::Error| {
        Failure::usage(
            "prepare the connection",
            cause(&e),
            "mend the address, or the certificate files that are configured",
        )
    };
    let mut transport = tonic::transport::Endpoint::from_shared(endpoint.to_string())
        .map_err(bad)?
        .user_agent(concat!("tribunal/", env!("CARGO_PKG_VERSION")))
        .map_err(bad)?
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20));
    match endpoint.scheme() {
        Scheme::Http => {}
        Scheme::Https => {
            let mut config = ClientTlsConfig::new();
            config = match &tls.ca {
                Some(path) => config.ca_certificate(Certificate::from_pem(pem(path)?)),
                None => config.with_native_roots(),
            };
            if let Some((cert, key)) = &tls.client {
                config = config.identity(Identity::from_pem(pem(cert)?, pem(key)?));
            }
            transport = transport.tls_config(config).map_err(bad)?;
        }
    }
    Ok(transport)
}

fn pem(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|e| {
        Failure::usage(
            "read a certificate file",
            format!("{}: {e}", path.display()),
            "name a PEM file that can be read",
        )
    })
}

fn unreachable(address: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(
        Exit::Unreachable,
        format!("reach {address}"),
        cause(error),
        "check the address and that the server runs, then ask again",
    )
}

/// The innermost cause, which is where the transport hides what happened.
fn cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    shown(&deepest.to_string(), 300)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn score_names() {
        let repo: RepoName = "app".parse().unwrap();
        let id = "0123456789abcdef0123456789abcdef";
        let full = format!("repositories/app/scores/{id}");
        assert_eq!(score_name(&full, None).unwrap(), full);
        assert_eq!(score_name(id, Some(&repo)).unwrap(), full);
        assert_eq!(score_name(id, None).unwrap_err().exit, Exit::Usage);
        for bad in [
            "",
            "x",
            "repositories/app/scores/..",
            "repositories/../scores/1",
        ] {
            assert!(score_name(bad, Some(&repo)).is_err(), "{bad}");
        }
    }
}
