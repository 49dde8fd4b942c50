//! Requests of a case that is recorded, performed on this machine's network: a request goes in, what came back goes out.
//!
//! The case is code that nobody has to trust, so nothing is asked but the hosts that the maintainer named; the rest is
//! refused and told. Follows no redirect, keeps no cookie, asks for no compression: what is recorded can be read.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The largest body that is taken.
const BODY: usize = 16 << 20;
/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// What belongs to one connection, and compression.
const OWN: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
    "host",
];

/// A request as the server hands it over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// All of them.
    pub headers: Vec<(String, String)>,
    /// Whole.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// All headers, in order.
    pub headers: Vec<(String, String)>,
    /// Whole.
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    /// Nobody allowed this host.
    #[error("{0} is not among the hosts that may be asked")]
    Host(String),
    /// It was asked.
    #[error("{host} gave no answer: {why}")]
    Silent {
        /// Who.
        host: String,
        /// Why.
        why: String,
    },
    /// A file of authorities.
    #[error("failed to read authorities: {0}")]
    Authorities(String),
}

/// Who may be asked, and how.
pub struct Outside {
    hosts: BTreeSet<String>,
    places: BTreeMap<String, String>,
    tls: TlsConnector,
}

impl Outside {
    /// `places` says where a host's requests go instead of where its name resolves to.
    ///
    /// # Errors
    /// The system has no authorities, or the file is none.
    pub fn new(
        hosts: &[String],
        places: &[(String, String)],
        authorities: Option<&Path>,
    ) -> Result<Self, OutsideError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = authorities {
            let bad = |e: &dyn std::fmt::Display| {
                OutsideError::Authorities(format!("{}: {e}", path.display()))
            };
            for one in CertificateDer::pem_file_iter(path).map_err(|e| bad(&e))? {
                let one = one.map_err(|e| bad(&e))?;
                roots.add(one).map_err(|e| bad(&e))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| OutsideError::Authorities(e.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            hosts: hosts.iter().map(|host| host.to_lowercase()).collect(),
            places: places
                .iter()
                .map(|(host, place)| (host.to_lowercase(), place.clone()))
                .collect(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Perform one request.
    ///
    /// # Errors
    /// Its host is not allowed, or gave no answer that could be taken.
    pub async fn perform(&self, asked: &Asked) -> Result<Answered, OutsideError> {
        let host = asked.host.to_lowercase();
        let (name, port) = split(&host, &asked.scheme);
        if !self.hosts.contains(&host) && !self.hosts.contains(name) {
            return Err(OutsideError::Host(host));
        }
        let place = self.places.get(&host).or_else(|| self.places.get(name));
        let place = place.map_or_else(|| format!("{name}:{port}"), Clone::clone);
        let exchange = self.exchange(asked, name, &place);
        let exchanged = match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err("it took too long".to_owned()),
        };
        exchanged.map_err(|why| OutsideError::Silent { host, why })
    }

    async fn exchange(&self, asked: &Asked, name: &str, place: &str) -> Result<Answered, String> {
        let request = request(asked)?;
        let stream = TcpStream::connect(place).await.map_err(told)?;
        let response = if asked.scheme == "https" {
            let name = ServerName::try_from(name.to_owned()).map_err(told)?;
            let stream = self.tls.connect(name, stream).await.map_err(told)?;
            spoken(stream, request).await?
        } else {
            spoken(stream, request).await?
        };
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY).collect().await.map_err(told)?;
        Ok(Answered {
            status: head.status.as_u16(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| {
                    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                    (name.to_string(), value)
                })
                .collect(),
            body: body.to_bytes(),
        })
    }
}

async fn spoken<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(told)?;
    // Ends with the exchange: the sender is dropped then.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(told)
}

fn request(asked: &Asked) -> Result<Request<Full<Bytes>>, String> {
    let target = match &asked.query {
        Some(query) => format!("{}?{query}", asked.path),
        None => asked.path.clone(),
    };
    let mut request = Request::builder()
        .method(asked.method.as_str())
        .uri(target)
        .body(Full::new(Bytes::from(asked.body.clone())))
        .map_err(told)?;
    let headers = request.headers_mut();
    let host = HeaderValue::from_str(&asked.host).map_err(told)?;
    headers.insert(HOST, host);
    for (name, value) in &asked.headers {
        if OWN.contains(&name.as_str()) || name == "content-length" {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(told)?;
        headers.append(name, HeaderValue::from_str(value).map_err(told)?);
    }
    Ok(request)
}

fn split<'a>(host: &'a str, scheme: &str) -> (&'a str, &'a str) {
    let own = if scheme == "https" { "443" } else { "80" };
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, port)
        }
        Some(_) | None => (host, own),
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
    use super::*;

    #[tokio::test]
    async fn nobody_is_asked_who_was_not_named() {
        let outside = Outside::new(&["api.example.org".to_owned()], &[], None).unwrap();
        for host in [
            "169.254.169.254",
            "localhost:8080",
            "example.org",
            "api.example.org.evil.example",
        ] {
            let asked = Asked {
                scheme: "http".to_owned(),
                method: "GET".to_owned(),
                host: host.to_owned(),
                path: "/".to_owned(),
                ..Asked::default()
            };
            let refused = outside.perform(&asked).await.unwrap_err();
            assert!(
                matches!(refused, OutsideError::Host(_)),
                "{host}: {refused}"
            );
        }
    }

    #[test]
    fn what_belongs_to_a_connection_does_not_go_on() {
        let asked = Asked {
            scheme: "https".to_owned(),
            method: "POST".to_owned(),
            host: "api.example.org".to_owned(),
            path: "/a%20b".to_owned(),
            query: Some("x=1".to_owned()),
            headers: ["host", "accept-encoding", "connection", "authorization"]
                .map(|name| (name.to_owned(), "v".to_owned()))
                .to_vec(),
            body: b"x".to_vec(),
        };
        let request = request(&asked).unwrap();
        assert_eq!(request.uri(), "/a%20b?x=1");
        let names: Vec<&str> = request.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host", "authorization"]);
        assert_eq!(request.headers()["host"], "api.example.org");
    }

    #[test]
    fn ports() {
        assert_eq!(split("a.example", "https"), ("a.example", "443"));
        assert_eq!(split("a.example", "http"), ("a.example", "80"));
        assert_eq!(split("a.example:8443", "https"), ("a.example", "8443"));
    }
}
