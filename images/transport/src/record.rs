//! The cassettes of a room, and which one is on: a request goes in, the exchange that answers it comes out, once.
//!
//! Equal requests are answered in the order of the list. What no exchange answers is a miss, and so is a name that was
//! looked up and is neither recorded nor asked anything. Never waits, never speaks to anybody.

use super::control::{BodyPart, Cassette, Exchange, Mode, Summary};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Misses told of one case, and characters of each.
const MISSES: usize = 100;
const MISS_CHARACTERS: usize = 300;

/// The digest of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[derive(Debug, Default)]
pub(crate) struct Record {
    cassettes: HashMap<String, Vec<Exchange>>,
    bodies: HashMap<String, Bytes>,
    coming: BTreeMap<String, Vec<u8>>,
    on: Option<Case>,
}

/// The case that runs.
#[derive(Debug)]
struct Case {
    exchanges: Vec<Exchange>,
    taken: Vec<bool>,
    misses: Vec<String>,
    looked_up: BTreeSet<String>,
    asked: BTreeSet<String>,
    mode: Mode,
}

/// A request, as far as records tell them apart.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// In lower case, without a port that is the scheme's own.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Found {
    /// This is its answer.
    Answer(Exchange, Bytes),
    /// Nothing is: the miss, as it is told.
    Miss(String),
    /// Somebody outside is to be asked.
    Ask,
    /// No case with a cassette runs.
    Off,
}

impl Record {
    pub(crate) fn learn(&mut self, cassette: Cassette) {
        self.cassettes.insert(cassette.node, cassette.http);
    }

    /// A part of a body; the whole must be what its name says.
    pub(crate) fn body(&mut self, part: &BodyPart) -> Result<(), String> {
        let data = STANDARD
            .decode(&part.data)
            .map_err(|error| format!("decode body {}: {error}", part.sha256))?;
        let whole = self.coming.entry(part.sha256.clone()).or_default();
        whole.extend_from_slice(&data);
        if part.more {
            return Ok(());
        }
        let whole = self.coming.remove(&part.sha256).unwrap_or_default();
        if hex(&Sha256::digest(&whole)) != part.sha256 {
            return Err(format!("take body {}: it is another one", part.sha256));
        }
        self.bodies.insert(part.sha256.clone(), Bytes::from(whole));
        Ok(())
    }

    /// Whether there is a cassette for this case; it is on in any case.
    pub(crate) fn on(&mut self, node: &str, mode: Mode) -> bool {
        let exchanges = self.cassettes.get(node).cloned();
        let known = exchanges.is_some();
        let exchanges = exchanges.unwrap_or_default();
        self.on = Some(Case {
            taken: vec![false; exchanges.len()],
            exchanges,
            misses: Vec::new(),
            looked_up: BTreeSet::new(),
            asked: BTreeSet::new(),
            mode,
        });
        known
    }

    pub(crate) fn off(&mut self) -> Summary {
        let Some(mut case) = self.on.take() else {
            return Summary::default();
        };
        let lonely: Vec<String> = case.looked_up.difference(&case.asked).cloned().collect();
        for name in lonely {
            if case.mode == Mode::Replay && !case.records(&name) {
                case.miss(format!("name:{name}"));
            }
        }
        let used = case.exchanges.iter().zip(&case.taken);
        Summary {
            used: used
                .filter(|(_, taken)| **taken)
                .map(|(exchange, _)| pin(exchange))
                .collect(),
            misses: case.misses,
        }
    }

    /// Whether a name resolves now.
    pub(crate) fn resolve(&mut self, name: &str) -> bool {
        let Some(case) = &mut self.on else {
            return false;
        };
        if case.looked_up.len() < MISSES {
            case.looked_up.insert(name.to_owned());
        }
        true
    }

    pub(crate) fn find(&mut self, request: &Request<'_>) -> Found {
        let Some(case) = &mut self.on else {
            return Found::Off;
        };
        case.visited(request.host);
        if case.mode == Mode::Relay {
            return Found::Ask;
        }
        let digest = hex(&Sha256::digest(request.body));
        let place = case
            .exchanges
            .iter()
            .zip(&case.taken)
            .position(|(exchange, taken)| !taken && answers(exchange, request, &digest));
        let Some(place) = place else {
            let miss = shown(request);
            return Found::Miss(case.miss(miss));
        };
        if let Some(taken) = case.taken.get_mut(place) {
            *taken = true;
        }
        let Some(exchange) = case.exchanges.get(place).cloned() else {
            return Found::Off;
        };
        let body = match &exchange.body_sha256 {
            None => Bytes::new(),
            // Nobody sends what is empty.
            Some(name) if name == EMPTY => Bytes::new(),
            Some(name) => match self.bodies.get(name) {
                Some(body) => body.clone(),
                // The server sends what a cassette names, or no verdict comes of it: never an empty answer instead.
                None => {
                    return Found::Miss(
                        case.miss(format!("{} (its body is missing)", pin(&exchange))),
                    );
                }
            },
        };
        Found::Answer(exchange, body)
    }

    /// A connection that was not a request, as it is told.
    pub(crate) fn miss(&mut self, what: String, host: Option<&str>) {
        if let Some(case) = &mut self.on {
            if let Some(host) = host {
                case.visited(host);
            }
            case.miss(what);
        }
    }
}

impl Case {
    fn miss(&mut self, what: String) -> String {
        let what: String = what.chars().take(MISS_CHARACTERS).collect();
        let what = what.replace(|c: char| c.is_control(), "\u{fffd}");
        if self.misses.len() < MISSES {
            self.misses.push(what.clone());
        }
        what
    }

    fn visited(&mut self, host: &str) {
        if self.asked.len() < MISSES {
            self.asked.insert(without_port(host).to_owned());
        }
    }

    fn records(&self, name: &str) -> bool {
        self.exchanges.iter().any(|exchange| {
            let host = exchange.host.as_deref();
            host.is_some_and(|host| without_port(&host.to_lowercase()) == name)
        })
    }
}

fn answers(exchange: &Exchange, request: &Request<'_>, digest: &str) -> bool {
    exchange.method == request.method
        && exchange.path == request.path
        && exchange.host.as_ref().is_none_or(|host| {
            let host = host.to_lowercase();
            host == request.host || own_port(&host) == Some(request.host)
        })
        && exchange
            .query
            .as_ref()
            .is_none_or(|query| query == request.query.unwrap_or_default())
        && exchange
            .request_sha256
            .as_ref()
            .is_none_or(|sha256| sha256 == digest)
}

/// A host whose recorded port is a scheme's own.
fn own_port(host: &str) -> Option<&str> {
    host.strip_suffix(":80")
        .or_else(|| host.strip_suffix(":443"))
}

pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

/// The pin's name, as notes and warnings have it.
fn pin(exchange: &Exchange) -> String {
    format!("http:{} {}", exchange.method, exchange.path)
}

fn shown(request: &Request<'_>) -> String {
    let (method, host, path) = (request.method, request.host, request.path);
    match request.query {
        Some(query) => format!("http:{method} {host}{path}?{query}"),
        None => format!("http:{method} {host}{path}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]
    use super::*;

    const NODE: &str = "tests/sealed/test_a.py::test_x";

    fn record(http: &str) -> Record {
        let mut record = Record::default();
        let text = format!(r#"{{"node":"{NODE}","http":{http}}}"#);
        record.learn(serde_json::from_str(&text).unwrap());
        for body in ["one", "two"] {
            let part = BodyPart {
                sha256: hex(&Sha256::digest(body)),
                data: STANDARD.encode(body),
                more: false,
            };
            record.body(&part).unwrap();
        }
        record
    }

    fn get<'a>(host: &'a str, path: &'a str, query: Option<&'a str>) -> Request<'a> {
        Request {
            method: "GET",
            host,
            path,
            query,
            body: b"",
        }
    }

    fn status(found: &Found) -> u16 {
        match found {
            Found::Answer(exchange, _) => exchange.status,
            Found::Miss(_) | Found::Ask | Found::Off => 0,
        }
    }

    #[test]
    fn equal_requests_are_answered_in_order_and_then_missed() {
        let mut record = record(
            r#"[{"method":"GET","path":"/a","status":200},{"method":"GET","path":"/a","status":201}]"#,
        );
        assert!(record.on(NODE, Mode::Replay));
        let told: Vec<u16> = (0..3)
            .map(|_| status(&record.find(&get("h", "/a", None))))
            .collect();
        assert_eq!(told, [200, 201, 0]);
        let summary = record.off();
        assert_eq!(summary.used, ["http:GET /a", "http:GET /a"]);
        assert_eq!(summary.misses, ["http:GET h/a"]);
        assert!(record.on(NODE, Mode::Replay));
        assert_eq!(
            status(&record.find(&get("h", "/a", None))),
            200,
            "every case begins anew"
        );
    }

    #[test]
    fn what_is_recorded_is_compared_and_the_rest_is_not() {
        let exchange =
            |more: &str| format!(r#"[{{"method":"GET","path":"/a","status":200{more}}}]"#);
        let sha = hex(&Sha256::digest(b""));
        for (more, host, query, hit) in [
            ("", "anything", Some("x=1"), true),
            (
                r#","host":"API.example.org""#,
                "api.example.org",
                None,
                true,
            ),
            (
                r#","host":"api.example.org:443""#,
                "api.example.org",
                None,
                true,
            ),
            (
                r#","host":"api.example.org:8443""#,
                "api.example.org",
                None,
                false,
            ),
            (
                r#","host":"api.example.org""#,
                "evil.example.org",
                None,
                false,
            ),
            (r#","query":"x=1""#, "h", Some("x=1"), true),
            (r#","query":"x=1""#, "h", Some("x=2"), false),
            (r#","query":"""#, "h", None, true),
            (r#","query":"""#, "h", Some("x=2"), false),
            (&format!(r#","request_sha256":"{sha}""#), "h", None, true),
            (r#","request_sha256":"00""#, "h", None, false),
        ] {
            let mut record = record(&exchange(more));
            record.on(NODE, Mode::Replay);
            let found = record.find(&get(host, "/a", query));
            assert_eq!(status(&found) == 200, hit, "{more} {host} {query:?}");
        }
    }

    #[test]
    fn names_that_nobody_asked_anything_are_misses_unless_recorded() {
        let mut record =
            record(r#"[{"method":"GET","path":"/a","host":"api.example.org:8443","status":200}]"#);
        assert!(!record.resolve("early.example.org"), "nothing is on");
        record.on(NODE, Mode::Replay);
        for name in ["api.example.org", "db.example.org", "seen.example.org"] {
            assert!(record.resolve(name));
        }
        record.find(&get("seen.example.org:81", "/", None));
        let misses = record.off().misses;
        assert_eq!(
            misses,
            ["http:GET seen.example.org:81/", "name:db.example.org"]
        );
        assert_eq!(record.off(), Summary::default());
    }

    #[test]
    fn a_body_is_what_its_name_says_or_nothing() {
        let mut record = record("[]");
        let part = |data: &str, more| BodyPart {
            sha256: hex(&Sha256::digest(b"onetwo")),
            data: STANDARD.encode(data),
            more,
        };
        record.body(&part("one", true)).unwrap();
        record.body(&part("two", false)).unwrap();
        assert!(
            record
                .body(&part("another", false))
                .unwrap_err()
                .contains("another one")
        );
        let named = hex(&Sha256::digest(b"never sent"));
        let text = format!(
            r#"{{"node":"n","http":[{{"method":"GET","path":"/a","status":200,"body_sha256":"{named}"}}]}}"#
        );
        record.learn(serde_json::from_str(&text).unwrap());
        record.on("n", Mode::Replay);
        assert_eq!(status(&record.find(&get("h", "/a", None))), 0);
        assert_eq!(record.off().misses.len(), 1);
    }

    #[test]
    fn misses_are_few_short_and_plain() {
        let mut record = record("[]");
        record.on("unknown", Mode::Replay);
        let long = format!("/\u{1b}[31m{}", "x".repeat(5000));
        for _ in 0..500 {
            record.find(&get("h", &long, None));
        }
        let misses = record.off().misses;
        assert_eq!(misses.len(), MISSES);
        assert!(
            misses
                .iter()
                .all(|miss| miss.chars().count() <= MISS_CHARACTERS && !miss.contains('\u{1b}'))
        );
    }
}
