//! Exchanges and what else a case read become a draft: a record without credentials, and without what differs each time.
//!
//! Pure. Of an answer's headers only those are kept that a client acts on; of a request what tells it from another one.
//! What is left out is told, so that a person can ask for it by name.

use crate::outside::{Answered, Asked};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use tribunal_core::cassette::{
    Cassette, Exchange, credential_in, is_credential, is_credential_header, redacted,
};
use tribunal_core::id::NodeId;
use tribunal_core::text::shown;
use tribunal_proto::v1::Recording;

/// Headers of an answer that clients act on, and that are the same each time.
const KEPT: [&str; 9] = [
    "allow",
    "content-encoding",
    "content-language",
    "content-range",
    "content-type",
    "link",
    "location",
    "retry-after",
    "transfer-encoding",
];
/// Parameters of a query that are another one each time.
const PASSING: [&str; 12] = [
    "_",
    "cachebust",
    "date",
    "expires",
    "nonce",
    "now",
    "requestid",
    "signature",
    "sig",
    "timestamp",
    "traceid",
    "ts",
];

/// One exchange as it went over the network.
pub(super) struct Taken {
    pub(super) asked: Asked,
    pub(super) answered: Answered,
}

/// What is written.
pub(super) struct Draft {
    pub(super) cassette: Cassette,
    /// By their digest.
    pub(super) bodies: BTreeMap<String, Vec<u8>>,
    /// What was taken out or left unpinned, for people. Never a value.
    pub(super) told: Vec<String>,
}

/// `asked_for` names what is pinned besides: headers of answers, and `request_sha256` for bodies of requests.
pub(super) fn draft(
    test: NodeId,
    taken: &[Taken],
    recording: &Recording,
    listings: &BTreeMap<String, Vec<String>>,
    asked_for: &BTreeSet<String>,
) -> Draft {
    let mut drafting = Drafting {
        asked_for,
        bodies: BTreeMap::new(),
        told: Vec::new(),
    };
    let http = taken.iter().map(|one| drafting.exchange(one)).collect();
    let listed = recording.listed_directories.iter();
    let fs = listed
        .filter_map(|directory| Some((directory.clone(), listings.get(directory)?.clone())))
        .collect();
    drafting.told.dedup();
    Draft {
        cassette: Cassette {
            test,
            clock: Some(recording.clock.clone()).filter(|clock| !clock.is_empty()),
            rng_seed: recording.rng_seed,
            fs,
            http,
        },
        bodies: drafting.bodies,
        told: drafting.told,
    }
}

struct Drafting<'a> {
    asked_for: &'a BTreeSet<String>,
    bodies: BTreeMap<String, Vec<u8>>,
    told: Vec<String>,
}

impl Drafting<'_> {
    fn exchange(&mut self, taken: &Taken) -> Exchange {
        let Taken { asked, answered } = taken;
        let which = format!("{} {}", asked.method, shown(&asked.path, 120));
        let mut exchange = Exchange {
            method: asked.method.clone(),
            host: Some(asked.host.clone()),
            path: asked.path.clone(),
            query: self.query(&which, asked.query.as_deref()),
            request_sha256: None,
            status: answered.status,
            headers: BTreeMap::new(),
            body_sha256: String::new(),
        };
        if self.asked_for.contains("request_sha256") {
            exchange.request_sha256 = Some(sha256(&asked.body));
        }
        let mut left = Vec::new();
        for (name, value) in &answered.headers {
            let wanted = KEPT.contains(&name.as_str()) || self.asked_for.contains(name);
            let secret = is_credential_header(name) || credential_in(value).is_some();
            match (wanted, secret) {
                (true, false) => {
                    let value = value.clone();
                    exchange.headers.entry(name.clone()).or_insert(value);
                }
                (_, true) => self
                    .told
                    .push(format!("{which}: took out the header {}", shown(name, 60))),
                (false, false) => left.push(name.as_str()),
            }
        }
        if asked.method == "HEAD"
            && let Some((name, value)) = answered
                .headers
                .iter()
                .find(|(name, _)| name == "content-length")
        {
            exchange.headers.insert(name.clone(), value.clone());
        }
        left.retain(|name| !matches!(*name, "content-length" | "connection" | "keep-alive"));
        if !left.is_empty() {
            let left = shown(&left.join(", "), 300);
            self.told.push(format!(
                "{which}: left unpinned: {left} (--pin NAME keeps one)"
            ));
        }
        let (body, out) = redacted(&answered.body);
        if !out.is_empty() {
            let out = shown(&out.join(", "), 300);
            self.told
                .push(format!("{which}: took out of the body: {out}"));
        }
        exchange.body_sha256 = sha256(&body);
        if !body.is_empty() {
            self.bodies.insert(exchange.body_sha256.clone(), body);
        }
        exchange
    }

    /// The query, where it is the same each time and holds no credential; unpinned otherwise.
    fn query(&mut self, which: &str, query: Option<&str>) -> Option<String> {
        let query = query?;
        let keys = query
            .split('&')
            .map(|pair| pair.split('=').next().unwrap_or_default());
        let passing = |key: &str| {
            let bare: String = key.chars().filter(|c| !matches!(c, '-' | '_')).collect();
            key == "_" || PASSING.contains(&bare.to_lowercase().as_str())
        };
        let secret = credential_in(query).is_some() || keys.clone().any(is_credential);
        let why = if secret {
            "it carries a credential"
        } else if keys.clone().any(passing) && !self.asked_for.contains("query") {
            "it differs each time (--pin query keeps it)"
        } else {
            return Some(query.to_owned());
        };
        self.told
            .push(format!("{which}: left the query unpinned: {why}"));
        None
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
    use super::*;

    fn taken(query: Option<&str>, headers: &[(&str, &str)], body: &str) -> Taken {
        Taken {
            asked: Asked {
                scheme: "https".to_owned(),
                method: "GET".to_owned(),
                host: "api.example.org".to_owned(),
                path: "/rates".to_owned(),
                query: query.map(str::to_owned),
                headers: vec![(
                    "authorization".to_owned(),
                    "Bearer abcdefgh12345678".to_owned(),
                )],
                body: Vec::new(),
            },
            answered: Answered {
                status: 200,
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                body: body.as_bytes().to_vec().into(),
            },
        }
    }

    fn drafted(taken: &[Taken], asked_for: &[&str]) -> Draft {
        let asked_for = asked_for.iter().map(|name| (*name).to_owned()).collect();
        let node = "tests/test_a.py::test_b".parse().unwrap();
        let listings = BTreeMap::from([
            ("/srv/a".to_owned(), vec!["x".to_owned()]),
            ("/srv/b".to_owned(), Vec::new()),
        ]);
        let recording = Recording {
            listed_directories: vec!["/srv/a".to_owned()],
            ..Recording::default()
        };
        draft(node, taken, &recording, &listings, &asked_for)
    }

    #[test]
    fn only_what_was_read_is_pinned_and_what_passes_is_not() {
        let headers = [
            ("content-type", "application/json"),
            ("date", "Mon, 30 Nov 2026 00:00:00 GMT"),
            ("x-request-id", "42"),
            ("etag", "\"1\""),
        ];
        let draft = drafted(&[taken(Some("day=1"), &headers, "{}")], &["etag"]);
        let exchange = draft.cassette.http.first().unwrap();
        let names: Vec<&str> = exchange.headers.keys().map(String::as_str).collect();
        assert_eq!(names, ["content-type", "etag"]);
        assert_eq!(exchange.query.as_deref(), Some("day=1"));
        assert_eq!(exchange.host.as_deref(), Some("api.example.org"));
        assert_eq!(
            (&exchange.request_sha256, draft.cassette.rng_seed),
            (&None, None)
        );
        assert_eq!(draft.cassette.clock, None);
        assert_eq!(draft.cassette.fs.keys().collect::<Vec<_>>(), ["/srv/a"]);
        assert_eq!(draft.told.len(), 1, "{:?}", draft.told);
        assert!(
            draft.told[0].contains("date, x-request-id"),
            "{:?}",
            draft.told
        );
    }

    #[test]
    fn credentials_are_in_no_part_of_a_draft() {
        let secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl";
        let headers = [
            ("set-cookie", "sid=hunter2hunter2"),
            ("location", "https://api.example.org/x?ok=1"),
            ("link", secret),
        ];
        let body = format!(r#"{{"access_token":"{secret}","note":"kept"}}"#);
        let query = format!("access_token={secret}");
        let draft = drafted(
            &[taken(Some(&query), &headers, &body)],
            &["set-cookie", "query"],
        );
        let bodies: Vec<u8> = draft.bodies.values().flatten().copied().collect();
        let all = format!(
            "{} {} {:?}",
            draft.cassette.to_json(),
            String::from_utf8(bodies).unwrap(),
            draft.told
        );
        for hidden in [secret, "hunter2", "abcdefgh12345678"] {
            assert!(!all.contains(hidden), "{all}");
        }
        assert!(all.contains("kept") && all.contains("REDACTED"), "{all}");
        assert_eq!(draft.told.len(), 4, "{:?}", draft.told);
    }

    #[test]
    fn a_query_that_differs_each_time_is_left_open() {
        for (query, asked_for, kept) in [
            ("ts=17", &[][..], None),
            ("request_id=17&a=1", &[], None),
            ("ts=17", &["query"], Some("ts=17")),
            ("a=1", &[], Some("a=1")),
        ] {
            let draft = drafted(&[taken(Some(query), &[], "")], asked_for);
            let exchange = draft.cassette.http.first().unwrap();
            assert_eq!(exchange.query.as_deref(), kept, "{query}");
        }
    }
}
