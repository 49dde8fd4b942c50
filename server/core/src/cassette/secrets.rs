//! Credentials in a record: where one stands, never what it is.
//!
//! Headers, queries, paths, names and bodies are looked at: names that carry credentials, values that look like one.
//! A value that says of itself that it was redacted is none.

use super::schema::{Cassette, Exchange};
use crate::text::shown;

/// Headers that carry a credential, whatever they hold.
const HEADERS: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "set-cookie2",
    "x-api-key",
    "api-key",
    "apikey",
    "x-auth-token",
    "x-access-token",
    "x-csrf-token",
    "x-amz-security-token",
    "x-vault-token",
    "private-token",
];
/// Keys of bodies and queries that carry one; compared without case, `-` and `_`.
const KEYS: [&str; 24] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "clientsecret",
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "apikey",
    "apisecret",
    "secretkey",
    "privatekey",
    "accesskey",
    "secretaccesskey",
    "sessiontoken",
    "sessionid",
    "sessid",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "xamzsignature",
];
/// How tokens of well-known services begin, and how many characters of theirs follow at least.
const PREFIXES: [(&str, usize); 19] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("ghu_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AIza", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("hf_", 30),
    ("ya29.", 20),
];
/// What stands for a value that was taken out.
const REDACTED: [&str; 6] = ["redacted", "removed", "hidden", "none", "null", "example"];

/// Every place of a record, in its file or its bodies, that holds a credential.
pub(super) fn places<'a>(
    cassette: &Cassette,
    body: impl Fn(&str) -> Option<&'a [u8]>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (directory, names) in &cassette.fs {
        if std::iter::once(directory)
            .chain(names)
            .any(|text| token(text).is_some())
        {
            found.push(format!("`fs:{}` holds a token", shown(directory, 80)));
        }
    }
    for exchange in &cassette.http {
        let mut told = in_exchange(exchange);
        if let Some(why) = body(&exchange.body_sha256).and_then(in_bytes) {
            told.push(format!("its body holds {why}"));
        }
        let path = exchange.path.split(';').next().unwrap_or_default();
        let pin = if token(path).is_some() {
            format!("http:{} …", exchange.method)
        } else {
            shown(&exchange.pin(), 120)
        };
        found.extend(told.into_iter().map(|why| format!("`{pin}`: {why}")));
    }
    found.dedup();
    found
}

fn in_exchange(exchange: &Exchange) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(why) = token(&exchange.path) {
        told.push(format!("its path holds {why}"));
    }
    if let Some(query) = &exchange.query {
        if let Some(key) = form_key(query) {
            told.push(format!("its query has `{}`", shown(&key, 60)));
        } else if let Some(why) = token(query) {
            told.push(format!("its query holds {why}"));
        }
    }
    for (name, value) in &exchange.headers {
        if is_redacted(value) {
            continue;
        }
        if HEADERS.contains(&name.as_str()) {
            told.push(format!(
                "its header `{}` carries a credential",
                shown(name, 60)
            ));
        } else if let Some(key) = form_key(value.split_once('?').map_or("", |(_, query)| query)) {
            told.push(format!(
                "its header `{}` has `{}`",
                shown(name, 60),
                shown(&key, 60)
            ));
        } else if let Some(why) = token(value) {
            told.push(format!("its header `{}` holds {why}", shown(name, 60)));
        }
    }
    told
}

/// What a body holds, if it holds a credential. Bytes that are no text are looked at all the same.
pub(super) fn in_bytes(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
        return json_key(&value)
            .map(|key| format!("`{}`", shown(&key, 60)))
            .or_else(|| token(&text).map(str::to_owned));
    }
    let form =
        text.len() < 65_536 && text.contains('=') && !text.trim().contains(char::is_whitespace);
    let key = form.then(|| form_key(text.trim())).flatten();
    key.map(|key| format!("`{}`", shown(&key, 60)))
        .or_else(|| token(&text).map(str::to_owned))
}

fn json_key(value: &serde_json::Value) -> Option<String> {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        Value::Array(all) => all.iter().find_map(json_key),
        Value::Object(members) => members.iter().find_map(|(key, value)| match value {
            Value::String(text) => (carries(key) && !is_redacted(text)).then(|| key.clone()),
            Value::Number(_) => carries(key).then(|| key.clone()),
            Value::Null | Value::Bool(_) => None,
            Value::Array(_) | Value::Object(_) => json_key(value),
        }),
    }
}

/// A key of `a=b&c=d` that carries a credential.
fn form_key(text: &str) -> Option<String> {
    let pairs = text
        .split(['&', ';'])
        .filter_map(|pair| pair.split_once('='));
    let mut carrying = pairs.filter(|(key, value)| carries(key) && !is_redacted(value));
    carrying.next().map(|(key, _)| key.trim().to_owned())
}

fn carries(key: &str) -> bool {
    let bare: String = key
        .chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .collect();
    let bare = bare.to_ascii_lowercase();
    KEYS.contains(&bare.as_str())
}

fn is_redacted(value: &str) -> bool {
    let bare = value
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_ascii_lowercase();
    bare.is_empty() || bare.chars().all(|c| c == 'x') || REDACTED.contains(&bare.as_str())
}

/// What in a text looks like a credential.
fn token(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    if scheme(text) {
        return Some("an authorization");
    }
    for word in text.split(|c: char| {
        !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '~'))
    }) {
        for part in word.split('/') {
            if is_jwt(part) {
                return Some("a JSON web token");
            }
            let known = |(prefix, least): &(&str, usize)| {
                part.strip_prefix(prefix).is_some_and(|rest| {
                    let own = rest
                        .bytes()
                        .take_while(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b));
                    own.count() >= *least
                })
            };
            if PREFIXES.iter().any(known) {
                return Some("a token");
            }
        }
    }
    None
}

/// `Bearer …` or `Basic …` with something that is no word behind it.
fn scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|scheme| {
        lower.match_indices(scheme).any(|(at, _)| {
            let value = text.get(at + scheme.len()..).unwrap_or_default();
            let value: String = value
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-._~+/=".contains(*c))
                .collect();
            let mixed = value
                .bytes()
                .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || b == b'=');
            value.len() >= 16 && mixed && !is_redacted(&value)
        })
    })
}

fn is_jwt(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let url = |part: &&str| {
        part.len() >= 8
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    word.starts_with("eyJ")
        && matches!(parts.as_slice(), [head, body, _] if url(head) && url(body) && body.starts_with("eyJ"))
}

/// Whether a key of a body or a query carries a credential.
#[must_use]
pub fn is_credential(key: &str) -> bool {
    carries(key)
}

/// Whether a header carries one.
#[must_use]
pub fn is_credential_header(name: &str) -> bool {
    HEADERS.contains(&name.to_ascii_lowercase().as_str())
}

/// A text's own credential, if it holds one: what it is, never the value.
#[must_use]
pub fn credential_in(text: &str) -> Option<&'static str> {
    token(text)
}

/// A body without its credentials, and which were taken out; the body as it is where there are none. What cannot be
/// taken out alone takes the whole body with it.
#[must_use]
pub fn redacted(body: &[u8]) -> (Vec<u8>, Vec<String>) {
    let Some(first) = in_bytes(body) else {
        return (body.to_vec(), Vec::new());
    };
    let text = String::from_utf8_lossy(body);
    let mut told = Vec::new();
    let cleaned = match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(mut value) => {
            clean(&mut value, &mut told);
            serde_json::to_vec(&value).unwrap_or_default()
        }
        Err(_) => {
            let pairs = text
                .trim()
                .split('&')
                .map(|pair| match pair.split_once('=') {
                    Some((key, value)) if carries(key) && !is_redacted(value) => {
                        told.push(format!("`{}`", shown(key, 60)));
                        format!("{key}={WORD}")
                    }
                    Some(_) | None => pair.to_owned(),
                });
            pairs.collect::<Vec<_>>().join("&").into_bytes()
        }
    };
    if in_bytes(&cleaned).is_none() {
        return (cleaned, told);
    }
    (
        WORD.as_bytes().to_vec(),
        vec![format!("all of it, for {first}")],
    )
}

/// What a credential becomes.
const WORD: &str = "REDACTED";

fn clean(value: &mut serde_json::Value, told: &mut Vec<String>) {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let Some(what) = token(text) {
                told.push(what.to_owned());
                WORD.clone_into(text);
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|each| clean(each, told)),
        Value::Object(members) => {
            for (key, member) in members {
                let holds = match member {
                    Value::String(text) => !is_redacted(text),
                    Value::Number(_) => true,
                    Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
                };
                if holds && carries(key) {
                    told.push(format!("`{}`", shown(key, 60)));
                    *member = Value::String(WORD.to_owned());
                } else {
                    clean(member, told);
                }
            }
        }
    }
}

#[cfg(test)]
mod redaction {
    use super::{in_bytes, redacted};

    #[test]
    fn what_is_taken_out_is_what_would_be_found() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl";
        let key = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----";
        for (body, kept) in [
            (
                format!(r#"{{"user": "x", "access_token": "{jwt}"}}"#),
                Some("\"user\":\"x\""),
            ),
            (
                format!(r#"[{{"note": "use Bearer {jwt}"}}, {{"pwd": 12345}}]"#),
                Some("REDACTED"),
            ),
            (
                "grant=code&client_secret=hunter2hunter2".to_owned(),
                Some("grant=code"),
            ),
            (key.to_owned(), None),
        ] {
            let (clean, told) = redacted(body.as_bytes());
            assert!(
                in_bytes(body.as_bytes()).is_some() && in_bytes(&clean).is_none(),
                "{body}"
            );
            assert!(!told.is_empty());
            let clean = String::from_utf8_lossy(&clean);
            for secret in [jwt, "hunter2", "12345", "MIIB"] {
                assert!(
                    !clean.contains(secret) && !told.concat().contains(secret),
                    "{clean}"
                );
            }
            assert!(kept.is_none_or(|kept| clean.contains(kept)), "{clean}");
        }
        let plain = br#"{ "usd" : 1.08 }"#;
        assert_eq!(
            redacted(plain),
            (plain.to_vec(), Vec::new()),
            "byte for byte"
        );
    }
}
