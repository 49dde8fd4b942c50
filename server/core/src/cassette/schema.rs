//! `cassette.v1`: one test's record, and the names of its pins.

use super::json::{Document, Mistake, mistake};
use crate::id::NodeId;
use crate::policy::clock;
use crate::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The only schema there is.
const SCHEMA: &str = "cassette.v1";
/// Entries of all lists of one record.
const ENTRIES: usize = 100_000;

/// What is replayed to one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cassette {
    /// The test.
    pub test: NodeId,
    /// The wall clock, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rng_seed: Option<u32>,
    /// Directories and the names that they list, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fs: BTreeMap<String, Vec<String>>,
    /// Exchanges; equal requests are answered in the order of the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Exchange>,
}

/// One HTTP request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The method, in capitals.
    pub method: String,
    /// The host with its port where it is not the scheme's; any where it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path as it is sent, without the query.
    pub path: String,
    /// The query without its mark; any where it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// SHA-256 of the request's body, in hex; any where it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_sha256: Option<String>,
    /// The status.
    pub status: u16,
    /// Headers of the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// SHA-256 of the answer's body, in hex.
    pub body_sha256: String,
}

impl Exchange {
    /// The name of its pin.
    #[must_use]
    pub fn pin(&self) -> String {
        format!("http:{} {}", self.method, self.path)
    }
}

impl Cassette {
    /// Parse a record's bytes.
    ///
    /// # Errors
    /// The first mistake, with its key and position.
    pub fn parse(bytes: &[u8]) -> Result<Self, Mistake> {
        const KEYS: [&str; 6] = ["schema", "test", "clock", "rng_seed", "fs", "http"];
        let (document, root) = Document::of(bytes)?;
        let members = document.object(root, "a cassette", &KEYS)?;
        let schema = members.need(document, root, "schema")?;
        document.fitting(schema, "schema", &format!("`{SCHEMA}`"), |s| s == SCHEMA)?;
        let test = members.need(document, root, "test")?;
        let reader = Reader { document };
        let this = Self {
            test: reader.test(test)?,
            clock: members
                .get("clock")
                .map(|raw| reader.clock(raw))
                .transpose()?,
            rng_seed: members
                .get("rng_seed")
                .map(|raw| document.whole(raw, "rng_seed", u32::MAX))
                .transpose()?,
            fs: members
                .get("fs")
                .map(|raw| reader.fs(raw))
                .transpose()?
                .unwrap_or_default(),
            http: members
                .get("http")
                .map(|raw| reader.http(raw))
                .transpose()?
                .unwrap_or_default(),
        };
        if this.fs.values().map(Vec::len).sum::<usize>() + this.http.len() > ENTRIES {
            return Err(mistake(
                (1, 1),
                format!("the record has more than {ENTRIES} entries"),
            ));
        }
        Ok(this)
    }

    /// The record as a file.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct File<'a> {
            schema: &'static str,
            #[serde(flatten)]
            record: &'a Cassette,
        }
        let file = File {
            schema: SCHEMA,
            record: self,
        };
        // Texts, numbers and maps with text keys always have a JSON form.
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }

    /// Its pins: each name with what is pinned, one element an exchange.
    #[must_use]
    pub fn pins(&self) -> BTreeMap<String, Vec<String>> {
        let mut pins: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if let Some(clock) = &self.clock {
            pins.insert("clock".to_owned(), vec![clock.clone()]);
        }
        if let Some(seed) = self.rng_seed {
            pins.insert("rng_seed".to_owned(), vec![seed.to_string()]);
        }
        for (directory, names) in &self.fs {
            pins.insert(format!("fs:{directory}"), vec![names.join("\0")]);
        }
        for exchange in &self.http {
            let told = serde_json::to_string(exchange).unwrap_or_default();
            pins.entry(exchange.pin()).or_default().push(told);
        }
        pins
    }

    /// Hashes of the bodies that it needs; the empty body needs no file.
    #[must_use]
    pub fn bodies(&self) -> BTreeSet<&str> {
        let all = self
            .http
            .iter()
            .map(|exchange| exchange.body_sha256.as_str());
        all.filter(|hex| *hex != EMPTY).collect()
    }

    /// The file of its test.
    #[must_use]
    pub fn file(&self) -> &str {
        let test = self.test.as_str();
        test.split("::").next().unwrap_or(test)
    }
}

/// SHA-256 of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[derive(Clone, Copy)]
struct Reader<'a> {
    document: Document<'a>,
}

impl<'a> Reader<'a> {
    fn test(self, raw: &RawValue) -> Result<NodeId, Mistake> {
        const RULE: &str = "a node id, `path/test_x.py::test_y`";
        let text = self.document.fitting(raw, "test", RULE, |text| {
            let parts = text.split_once("::");
            parts.is_some_and(|(file, rest)| file.ends_with(".py") && !rest.is_empty())
        })?;
        text.parse()
            .map_err(|_| self.document.wrong(raw, "test", RULE))
    }

    fn clock(self, raw: &RawValue) -> Result<String, Mistake> {
        let rule = "must be a time with its offset, from 1980 to 2200";
        let text = self.document.string(raw, "clock")?;
        clock(&text).ok_or_else(|| self.document.wrong(raw, "clock", rule))
    }

    fn fs(self, raw: &'a RawValue) -> Result<BTreeMap<String, Vec<String>>, Mistake> {
        let document = self.document;
        let mut fs = BTreeMap::new();
        for (directory, names) in document.map(raw, "fs")?.iter() {
            let key = format!("fs:{directory}");
            if !is_directory(directory) {
                let rule = "must be an absolute path without `.`, `..`, empty or trailing parts";
                return Err(document.wrong(names, &key, rule));
            }
            let mut listed = Vec::new();
            for name in document.list(names, &key)? {
                let text = document.fitting(name, &key, "a list of file names", is_name)?;
                if listed.contains(&text) {
                    return Err(document.wrong(name, &key, "lists a name twice"));
                }
                listed.push(text);
            }
            fs.insert(directory.to_owned(), listed);
        }
        Ok(fs)
    }

    fn http(self, raw: &'a RawValue) -> Result<Vec<Exchange>, Mistake> {
        let all = self.document.list(raw, "http")?;
        all.into_iter().map(|raw| self.exchange(raw)).collect()
    }

    fn exchange(self, raw: &'a RawValue) -> Result<Exchange, Mistake> {
        const KEYS: [&str; 8] = [
            "method",
            "host",
            "path",
            "query",
            "request_sha256",
            "status",
            "headers",
            "body_sha256",
        ];
        let document = self.document;
        let members = document.object(raw, "an exchange", &KEYS)?;
        let need = |key: &str| members.need(document, raw, key);
        let maybe = |key: &str, rule: &str, fits: fn(&str) -> bool| {
            let found = members.get(key);
            found
                .map(|raw| document.fitting(raw, key, rule, fits))
                .transpose()
        };
        let status = need("status")?;
        let number = document.whole(status, "status", 599)?;
        let number = u16::try_from(number).ok().filter(|n| *n >= 200);
        const HEX: &str = "64 lower-case hex digits";
        Ok(Exchange {
            method: document.fitting(need("method")?, "method", "a method in capitals", |m| {
                !m.is_empty()
                    && m.len() <= 20
                    && m.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
            })?,
            host: maybe(
                "host",
                "a host in lower case, with its port where it has one",
                is_host,
            )?,
            path: document.fitting(
                need("path")?,
                "path",
                "a path that begins with `/`, without query",
                |p| p.starts_with('/') && visible(p) && !p.contains(['?', '#']),
            )?,
            query: maybe("query", "a query without `?` and `#`", |q| {
                visible(q) && !q.starts_with('?') && !q.contains('#')
            })?,
            request_sha256: maybe("request_sha256", HEX, is_sha256)?,
            status: number
                .ok_or_else(|| document.wrong(status, "status", "must be of 200 to 599"))?,
            headers: members
                .get("headers")
                .map(|raw| self.headers(raw))
                .transpose()?
                .unwrap_or_default(),
            body_sha256: document.fitting(need("body_sha256")?, "body_sha256", HEX, is_sha256)?,
        })
    }

    fn headers(self, raw: &'a RawValue) -> Result<BTreeMap<String, String>, Mistake> {
        let document = self.document;
        let mut headers = BTreeMap::new();
        for (name, value) in document.map(raw, "headers")?.iter() {
            // The value of a header may be a secret: it is not shown.
            let wrong = |why: &str| {
                let place = document.wrong(value, name, why);
                mistake(
                    (place.line, place.column),
                    format!("header `{}` {why}", shown(name, 80)),
                )
            };
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return Err(wrong("has no name that HTTP knows"));
            }
            let text: String =
                serde_json::from_str(value.get()).map_err(|_| wrong("is not a string"))?;
            if text.contains(['\r', '\n', '\0']) {
                return Err(wrong("breaks its line"));
            }
            let lower = name.to_ascii_lowercase();
            if headers.insert(lower, text).is_some() {
                return Err(wrong("stands twice"));
            }
        }
        Ok(headers)
    }
}

/// 64 lower-case hex digits.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn visible(text: &str) -> bool {
    text.chars().all(|c| !c.is_whitespace() && !c.is_control())
}

fn is_host(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.:[]".contains(&b);
    !text.is_empty() && text.len() <= 260 && text.bytes().all(fits)
}

fn is_directory(text: &str) -> bool {
    let parts = |text: &str| text.split('/').all(|part| !matches!(part, "" | "." | ".."));
    text == "/"
        || text
            .strip_prefix('/')
            .is_some_and(|rest| parts(rest) && !rest.contains('\0'))
}

fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(['/', '\0'])
}
