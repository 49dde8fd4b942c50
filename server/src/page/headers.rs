//! Around every answer: who it may be called by, and what a browser may do with it.
//!
//! A page in a browser on this machine could have its own name point here; so names that are not ours are not answered. A
//! form of a stranger's page could be sent here; so what is sent has to come from here.

use crate::metrics::is_own;
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Nothing but what this server serves: no inline script or style, no other host, no frame, no base.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const FIXED: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Names beside this machine's own that the page is called by.
pub(super) struct Names(Vec<String>);

/// How a request called us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// By a name of this machine's own: plain HTTP on loopback.
    Own,
    /// By a name that the operator gave: a proxy with TLS stands before us.
    Given,
}

impl Names {
    pub(super) const fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    fn called(&self, host: &str) -> Option<Called> {
        if is_own(host) {
            return Some(Called::Own);
        }
        let name = host.split_once(':').map_or(host, |(name, port)| {
            if port.bytes().all(|b| b.is_ascii_digit()) {
                name
            } else {
                host
            }
        });
        let given = self.0.iter().any(|known| known.eq_ignore_ascii_case(name));
        given.then_some(Called::Given)
    }
}

/// Refuse strangers' names and strangers' forms; say on every answer what may be done with it.
pub(super) async fn guarded(
    State(names): State<Arc<Names>>,
    mut request: Request,
    next: Next,
) -> Response {
    let host = text(request.headers(), &header::HOST).unwrap_or_default();
    let Some(called) = names.called(host) else {
        return finished(StatusCode::MISDIRECTED_REQUEST.into_response());
    };
    if *request.method() == Method::POST && !is_from_here(request.headers(), host) {
        return finished(StatusCode::FORBIDDEN.into_response());
    }
    request.extensions_mut().insert(called);
    finished(next.run(request).await)
}

/// What a browser says of where a form stood: the site where it says that, for our own policy makes it send `null` as the
/// origin of our own forms; else the origin. Other programs say nothing, and carry no cookie unless they mean to.
fn is_from_here(headers: &HeaderMap, host: &str) -> bool {
    let site = text(headers, &HeaderName::from_static("sec-fetch-site"));
    let origin = text(headers, &header::ORIGIN);
    let same = |origin: &str| {
        let rest = origin.split_once("://");
        rest.is_some_and(|(_, name)| name.eq_ignore_ascii_case(host))
    };
    match site {
        Some(site) => {
            site == "same-origin" && origin.is_none_or(|origin| origin == "null" || same(origin))
        }
        None => origin.is_none_or(same),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or(""))
}

fn finished(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let kept = headers.entry(header::CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-store"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_this_machines_own_or_given() {
        let names = Names::new(vec!["tribunal.example.com".to_owned()]);
        for (host, called) in [
            ("localhost:7444", Some(Called::Own)),
            ("[::1]", Some(Called::Own)),
            ("tribunal.example.com", Some(Called::Given)),
            ("Tribunal.example.COM:443", Some(Called::Given)),
            ("tribunal.example.com:443.evil.example", None),
            ("tribunal.example.com.evil.example", None),
            ("xtribunal.example.com", None),
            ("evil.example:7444", None),
            ("", None),
        ] {
            assert_eq!(names.called(host), called, "{host}");
        }
    }

    #[test]
    fn a_strangers_form_is_told_from_ours() {
        let with = |fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            is_from_here(&headers, "localhost:7444")
        };
        assert!(with(&[]));
        assert!(with(&[("origin", "http://localhost:7444")]));
        assert!(with(&[
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://localhost:7444")
        ]));
        assert!(with(&[
            ("sec-fetch-site", "same-origin"),
            ("origin", "null")
        ]));
        for stranger in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:7445")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("origin", "http://localhost:7444"),
            ],
            &[("sec-fetch-site", "cross-site"), ("origin", "null")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
            ],
        ] {
            assert!(!with(stranger), "{stranger:?}");
        }
    }
}
