//! Where something is told: one absolute address that the operator wrote down, and nobody else.

use hyper::Uri;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// `https://host[:port][/path][?query]`, or `http://` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    host: String,
    port: u16,
    target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Plain,
    Secure,
}

/// It is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "read an address: want https://host[:port][/path], or http:// with a loopback host, without a name or password in it"
)]
pub struct NoEndpoint;

impl FromStr for Endpoint {
    type Err = NoEndpoint;

    fn from_str(text: &str) -> Result<Self, NoEndpoint> {
        let uri: Uri = text.parse().map_err(|_| NoEndpoint)?;
        let authority = uri.authority().ok_or(NoEndpoint)?;
        if authority.as_str().contains('@') || text.contains('#') {
            return Err(NoEndpoint);
        }
        let host = authority.host().to_ascii_lowercase();
        let (scheme, usual) = match uri.scheme_str() {
            Some("https") => (Scheme::Secure, 443),
            Some("http") if is_loopback(&host) => (Scheme::Plain, 80),
            Some(_) | None => return Err(NoEndpoint),
        };
        let target = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            scheme,
            port: authority.port_u16().unwrap_or(usual),
            host,
            target: target.to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Plain => "http",
            Scheme::Secure => "https",
        };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.target)
    }
}

impl Endpoint {
    pub(super) const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// As a certificate names it: an IPv6 address without its brackets.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// For the `Host` header.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Path and query.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The same place with this behind its path.
    #[must_use]
    pub(super) fn below(&self, path: &str) -> Self {
        Self {
            target: format!("{}{path}", self.target.trim_end_matches('/')),
            ..self.clone()
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    #[test]
    fn an_address_reads_back_and_plain_text_stays_here() {
        for (text, shown) in [
            (
                "https://Hooks.example.com",
                "https://hooks.example.com:443/",
            ),
            (
                "https://h.example:8443/a/b?c=d",
                "https://h.example:8443/a/b?c=d",
            ),
            ("http://127.0.0.1:9/x", "http://127.0.0.1:9/x"),
            ("http://[::1]:9", "http://[::1]:9/"),
            ("http://localhost", "http://localhost:80/"),
        ] {
            let endpoint: Endpoint = text.parse().unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(shown.parse::<Endpoint>().unwrap(), endpoint);
        }
        for bad in [
            "",
            "hooks.example.com",
            "http://hooks.example.com/",
            "http://127.0.0.1.example.com/",
            "ftp://h.example/",
            "https://name:password@h.example/",
            "https://h.example/#part",
            "/path",
        ] {
            assert_eq!(bad.parse::<Endpoint>(), Err(NoEndpoint), "{bad}");
        }
        let api: Endpoint = "https://git.example/root/".parse().unwrap();
        assert_eq!(api.below("/api").target(), "/root/api");
    }
}
