//! The style, the script and the icon, out of this program. Asked for again, they are answered by their tags alone.

use super::Trouble;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tribunal_core::id::Digest;

const FILES: [(&str, &str, &str); 3] = [
    (
        "page.css",
        "text/css; charset=utf-8",
        include_str!("assets/page.css"),
    ),
    (
        "page.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/page.js"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// One of them.
pub(super) async fn file(Path(name): Path<String>, asked: HeaderMap) -> Result<Response, Trouble> {
    let mut files = FILES.into_iter();
    let (_, kind, text) = files
        .find(|(known, ..)| *known == name)
        .ok_or(Trouble::NoSuch)?;
    let tag = format!("\"{}\"", &Digest::of(text.as_bytes()).hex()[..32]);
    let known = asked.get(header::IF_NONE_MATCH);
    let known = known.and_then(|value| value.to_str().ok()).unwrap_or("");
    let fresh = known
        .split(',')
        .any(|one| one.trim().trim_start_matches("W/") == tag);
    let mut answer = if fresh {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        text.into_response()
    };
    let value = HeaderValue::from_str(&tag).map_err(|error| Trouble::Ours(error.to_string()))?;
    let headers = answer.headers_mut();
    headers.insert(header::ETAG, value);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(answer)
}
