//! One request to one endpoint: straight, over TLS but on this machine, with a deadline. Follows nothing, uses no proxy, and
//! reads no more of an answer than its status and one header.

use super::NotifyError;
use super::endpoint::{Endpoint, Scheme};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// Connect, handshake, request, head of the answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// A header; what may be a secret is marked so that nothing shows it.
pub(super) type Header = (&'static str, Zeroizing<String>);

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
}

/// Whom to trust.
#[derive(Clone)]
pub(super) struct Post(TlsConnector);

impl Post {
    /// The system's authorities, and these.
    pub(super) fn new(ca: Option<&Path>) -> Result<Self, NotifyError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = ca {
            let wrong = |error: &dyn std::fmt::Display| NotifyError::Authorities {
                path: path.to_owned(),
                what: error.to_string(),
            };
            for one in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
                let one = one.map_err(|e| wrong(&e))?;
                roots.add(one).map_err(|e| wrong(&e))?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| NotifyError::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn send(
        &self,
        to: &Endpoint,
        headers: &[Header],
        body: &str,
    ) -> Result<Answer, NotifyError> {
        let exchange = self.exchange(to, request(to, headers, body)?);
        match tokio::time::timeout(DEADLINE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(NotifyError::Unheard(format!("{to} took too long"))),
        }
    }

    async fn exchange(
        &self,
        to: &Endpoint,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, NotifyError> {
        let unheard =
            |error: &dyn std::fmt::Display| NotifyError::Unheard(format!("{to}: {error}"));
        let stream = TcpStream::connect((to.host(), to.port()))
            .await
            .map_err(|e| unheard(&e))?;
        match to.scheme() {
            Scheme::Plain => spoken(stream, request).await,
            Scheme::Secure => {
                let name = ServerName::try_from(to.host().to_owned()).map_err(|e| unheard(&e))?;
                let stream = self
                    .0
                    .connect(name, stream)
                    .await
                    .map_err(|e| unheard(&e))?;
                spoken(stream, request).await
            }
        }
        .map_err(|error| unheard(&error))
    }
}

async fn spoken<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the exchange: the sender is dropped then.
    let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let answer = sender.send_request(request).await?;
    drop(connection);
    let wait = answer.headers().get(RETRY_AFTER);
    let seconds = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
    Ok(Answer {
        status: answer.status().as_u16(),
        retry_after: seconds.map(Duration::from_secs),
    })
}

fn request(
    to: &Endpoint,
    headers: &[Header],
    body: &str,
) -> Result<Request<Full<Bytes>>, NotifyError> {
    // What is wrong with a header may be a secret, so it is not said.
    let unfit = |_| NotifyError::Unheard(format!("{to}: a header does not fit"));
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(to.target())
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .map_err(|_| NotifyError::Unheard(format!("{to}: its path does not fit")))?;
    let all = request.headers_mut();
    let agent = concat!("tribunal/", env!("CARGO_PKG_VERSION"));
    all.insert(HOST, HeaderValue::from_str(&to.authority()).map_err(unfit)?);
    all.insert(USER_AGENT, HeaderValue::from_static(agent));
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value).map_err(unfit)?;
        value.set_sensitive(true);
        all.insert(HeaderName::from_static(name), value);
    }
    Ok(request)
}
