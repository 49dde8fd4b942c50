//! Where the server is: a URL becomes an endpoint, and plain text stays on this machine unless it is asked for.

use std::fmt;
use std::net::IpAddr;
use tribunal_core::text::shown;

/// Where `http://` may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainText {
    /// To this machine only.
    Loopback,
    /// Anywhere: somebody said `--insecure`.
    Anywhere,
}

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// TLS.
    Https,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    authority: String,
}

/// Why a text is not the address of a server that may be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL of this kind.
    #[error("{0} is not http://HOST:PORT or https://HOST:PORT")]
    Malformed(String),
    /// Plain text to another machine.
    #[error("{0} would send the token in the clear; use https://, or --insecure if that is meant")]
    InTheClear(String),
}

impl Endpoint {
    /// Parse an address. Without a scheme, loopback is taken as plain text and everything else as TLS.
    ///
    /// # Errors
    /// It is none, or leads in the clear to where that is not allowed.
    pub fn parse(text: &str, plain: PlainText) -> Result<Self, EndpointError> {
        let malformed = || EndpointError::Malformed(shown(text, 200));
        let (scheme, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Some(Scheme::Http), rest),
            Some(("https", rest)) => (Some(Scheme::Https), rest),
            Some(_) => return Err(malformed()),
            None => (None, text),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let host = host_of(authority).ok_or_else(malformed)?;
        let loopback = is_loopback(host);
        let scheme = scheme.unwrap_or(if loopback {
            Scheme::Http
        } else {
            Scheme::Https
        });
        match (scheme, loopback, plain) {
            (Scheme::Http, false, PlainText::Loopback) => {
                Err(EndpointError::InTheClear(shown(text, 200)))
            }
            (Scheme::Http | Scheme::Https, _, _) => Ok(Self {
                scheme,
                authority: authority.to_owned(),
            }),
        }
    }

    /// Whether it is encrypted.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// The host of `HOST`, `HOST:PORT`, `[V6]` or `[V6]:PORT`; nothing that carries a user, a path or a query.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        (
            host,
            port.strip_prefix(':')
                .or_else(|| port.is_empty().then_some("1"))?,
        )
    } else {
        authority.split_once(':').unwrap_or((authority, "1"))
    };
    let host_holds = !host.is_empty()
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._:%".contains(&b));
    let port_holds = port.parse::<u16>().is_ok_and(|p| p > 0);
    (host_holds && port_holds).then_some(host)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_or_error(text: &str, plain: PlainText) -> String {
        match Endpoint::parse(text, plain) {
            Ok(endpoint) => endpoint.to_string(),
            Err(EndpointError::Malformed(_)) => "malformed".to_owned(),
            Err(EndpointError::InTheClear(_)) => "in the clear".to_owned(),
        }
    }

    #[test]
    fn table() {
        let rows = [
            ("http://127.0.0.1:7443", "http://127.0.0.1:7443"),
            ("http://127.9.9.9:1/", "http://127.9.9.9:1"),
            ("http://localhost:7443", "http://localhost:7443"),
            ("http://[::1]:7443", "http://[::1]:7443"),
            ("127.0.0.1:7443", "http://127.0.0.1:7443"),
            ("tribunal.example:7443", "https://tribunal.example:7443"),
            ("https://10.0.0.1", "https://10.0.0.1"),
            ("http://10.0.0.1:7443", "in the clear"),
            ("http://localhost.example:7443", "in the clear"),
            ("http://127.0.0.1.example:7443", "in the clear"),
            ("http://0.0.0.0:7443", "in the clear"),
            ("ftp://127.0.0.1", "malformed"),
            ("https://user@host:1", "malformed"),
            ("http://127.0.0.1:7443/path", "malformed"),
            ("http://127.0.0.1:99999", "malformed"),
            ("http://127.0.0.1:0", "malformed"),
            ("http://127.0.0.1@evil.example:80", "malformed"),
            ("", "malformed"),
            ("https://", "malformed"),
        ];
        for (text, want) in rows {
            assert_eq!(shown_or_error(text, PlainText::Loopback), want, "{text}");
        }
        assert_eq!(
            shown_or_error("http://10.0.0.1:7443", PlainText::Anywhere),
            "http://10.0.0.1:7443"
        );
    }
}
