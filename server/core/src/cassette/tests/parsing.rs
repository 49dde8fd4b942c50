//! What is no cassette, and what is told of it.

use super::tree::*;
use crate::cassette::{Cassette, Ledger};

fn cassette(inner: &str) -> String {
    format!("{{\n \"schema\": \"cassette.v1\",\n \"test\": \"{TEST}\"{inner}\n}}\n")
}

#[test]
fn seeds() {
    for (seed, right) in [
        ("0", true),
        ("4294967295", true),
        ("7", true),
        ("4294967296", false),
        ("-1", false),
        ("-0", false),
        ("9007199254740993", false),
        ("7.0", false),
        ("7e0", false),
        ("true", false),
        ("\"7\"", false),
        ("null", false),
        ("NaN", false),
        ("Infinity", false),
        ("[7]", false),
        ("07", false),
        ("+7", false),
    ] {
        let text = cassette(&format!(",\n \"rng_seed\": {seed}"));
        match Cassette::parse(text.as_bytes()) {
            Ok(parsed) => assert!(
                right && parsed.rng_seed.map(|s| s.to_string()).as_deref() == Some(seed),
                "{seed}"
            ),
            Err(mistake) => {
                let told = mistake.to_string();
                assert!(
                    !right && told.contains("`rng_seed`") && told.starts_with("line 4, "),
                    "{seed}: {told}"
                );
            }
        }
    }
}

#[rustfmt::skip]
const WRONG: &[(&str, &str)] = &[
    (",\n \"sead\": 7", "line 4, column 2: `sead` is no key of a cassette"),
    (",\n \"clock\": \"2026-09-12T00:00:00Z\",\n \"clock\": \"2026-09-12T00:00:00Z\"", "line 5, column 2: `clock` stands twice"),
    (",\n \"clock\": \"2026-09-12\"", "line 4, column 11: `clock` must be a time with its offset"),
    (",\n \"clock\": \"2026-09-12T00:00:00\"", "`clock` must be a time with its offset"),
    (",\n \"clock\": 1790000000", "`clock` is not a string"),
    (",\n \"fs\": []", "`fs` is not an object"),
    (",\n \"fs\": { \"tmp\": [] }", "`fs:tmp` must be an absolute path"),
    (",\n \"fs\": { \"/tmp/../etc\": [] }", "must be an absolute path"),
    (",\n \"fs\": { \"/tmp/\": [] }", "must be an absolute path"),
    (",\n \"fs\": { \"/tmp\": [\"a\"], \"/tmp\": [\"b\"] }", "`/tmp` stands twice"),
    (",\n \"fs\": { \"/tmp\": [\"a/b\"] }", "`fs:/tmp` must be a list of file names"),
    (",\n \"fs\": { \"/tmp\": [\"a\", \"a\"] }", "`fs:/tmp` lists a name twice"),
    (",\n \"fs\": { \"/tmp\": [1] }", "`fs:/tmp` is not a string"),
    (",\n \"http\": {}", "`http` is not a list"),
    (",\n \"http\": [ 1 ]", "`an exchange` is not an object"),
    (",\n \"http\": [ { \"method\": \"GET\" } ]", "line 4, column 12: `status` is missing"),
    (",\n \"http\": [ { \"method\": \"get\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\" } ]", "`method` must be a method in capitals"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"rates\", \"status\": 200, \"body_sha256\": \"@\" } ]", "`path` must be a path"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/?a=1\", \"status\": 200, \"body_sha256\": \"@\" } ]", "`path` must be a path"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 99, \"body_sha256\": \"@\" } ]", "`status` must be of 200 to 599"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200.0, \"body_sha256\": \"@\" } ]", "`status` must be an integer"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"9c1d\" } ]", "`body_sha256` must be 64 lower-case hex digits"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\", \"header\": {} } ]", "`header` is no key of an exchange"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\", \"headers\": { \"A\": \"1\", \"a\": \"2\" } } ]", "header `a` stands twice"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\", \"headers\": { \"A\": 1 } } ]", "header `A` is not a string"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\", \"headers\": { \"A\": \"1\\r\\nB: 2\" } } ]", "header `A` breaks its line"),
    (",\n \"http\": [ { \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"@\", \"host\": \"Api.example.org\" } ]", "`host` must be a host"),
    (",\n \"rng_seed\": 7,", "line 5, "),
];

#[test]
fn every_mistake_is_told_with_key_and_position() {
    for (inner, right) in WRONG {
        let text = cassette(&inner.replace('@', &hex("x")));
        let told = Cassette::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(told.contains(right), "{inner}: {told}");
    }
    for (text, right) in [
        ("", "line 1, "),
        ("[]", "`a cassette` is not an object"),
        ("{}", "`schema` is missing"),
        (
            "{\"schema\": \"cassette.v2\", \"test\": \"x\"}",
            "`schema` must be `cassette.v1`",
        ),
        ("{\"schema\": \"cassette.v1\"}", "`test` is missing"),
        (
            "{\"schema\": \"cassette.v1\", \"test\": \"test_x\"}",
            "`test` must be a node id",
        ),
        (
            "{\"schema\": \"cassette.v1\", \"test\": null}",
            "`test` is not a string",
        ),
        ("\u{feff}{}", "line 1, "),
    ] {
        let told = Cassette::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(told.contains(right), "{text}: {told}");
    }
    assert!(
        Cassette::parse(b"{\"schema\": \"\xff\"}")
            .unwrap_err()
            .to_string()
            .contains("not UTF-8")
    );
    assert!(
        Cassette::parse(&vec![b' '; 5 << 20])
            .unwrap_err()
            .to_string()
            .contains("is over")
    );
}

#[test]
fn a_header_s_value_is_never_told() {
    let inner = format!(
        ",\n \"http\": [ {{ \"method\": \"GET\", \"path\": \"/\", \"status\": 200, \"body_sha256\": \"{}\", \"headers\": {{ \"Authorization\": [\"hunter2\"] }} }} ]",
        hex("x")
    );
    let told = Cassette::parse(cassette(&inner).as_bytes())
        .unwrap_err()
        .to_string();
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn what_is_written_reads_back() {
    let parsed = Cassette::parse(record(CLOCK, SEED, RATE, TEST).as_bytes()).unwrap();
    assert_eq!(
        Cassette::parse(parsed.to_json().as_bytes()),
        Ok(parsed.clone())
    );
    assert!(parsed.pins().keys().eq(PINS.iter()));
    let tree = base();
    let ledger = Ledger::parse(tree.get(LEDGER).unwrap().as_bytes()).unwrap();
    assert_eq!(Ledger::parse(ledger.to_json().as_bytes()), Ok(ledger));
}

#[test]
fn ledgers_that_are_none() {
    let good = format!(
        "{{\"path\": \"{RECORD}\", \"sha256\": \"{}\", \"pins\": [], \"notes\": []}}",
        hex("x")
    );
    assert!(Ledger::parse(format!("[{good}]").as_bytes()).is_ok());
    assert!(Ledger::parse(b"{\"entries\": []}").is_ok());
    for (text, right) in [
        (format!("[{good}, {good}]"), "has an entry already"),
        (
            format!("{{\"entries\": [], \"more\": {good}}}"),
            "`more` is no key of the ledger",
        ),
        ("{}".to_owned(), "`entries` is missing"),
        ("null".to_owned(), "is not an object"),
        (
            good.replace("\"pins\": []", "\"pins\": [\"clock\", \"clock\"]"),
            "names a pin twice",
        ),
        (good.replace("\"pins\": [],", ""), "`pins` is missing"),
        (
            good.replace(
                "\"notes\": []",
                "\"notes\": [{\"pin\": \"clock\", \"change\": \"moved\"}]",
            ),
            "`why` is missing",
        ),
        (
            good.replace(
                "\"notes\": []",
                "\"notes\": [{\"pin\": \"clock\", \"change\": \"moved\", \"why\": \" \"}]",
            ),
            "`why` must be a reason",
        ),
        (
            good.replace(
                "\"notes\": []",
                "\"notes\": [{\"pin\": \"clock\", \"change\": \"removed\", \"why\": \"x\"}]",
            ),
            "`change` must be `added` or `moved`",
        ),
        (
            good.replace("\"notes\": []", "\"notes\": [], \"accepted_by\": null"),
            "`accepted_by` is not a string",
        ),
        (
            good.replace(RECORD, "../x"),
            "`path` is no path of a repository",
        ),
        (good.replace(&hex("x"), "abc"), "`sha256` must be 64"),
    ] {
        let text = if text.starts_with("{\"path") {
            format!("[{text}]")
        } else {
            text
        };
        let told = Ledger::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(told.contains(right), "{text}: {told}");
    }
}

#[rustfmt::skip]
const SECRETS: &[(&str, &str, bool)] = &[
    // What stands in the exchange, the body, and whether it is a secret.
    ("\"headers\": {\"content-type\": \"application/json\"}", "{\"rate\": 1}", false),
    ("\"headers\": {\"Authorization\": \"Bearer abcdef0123456789\"}", "", true),
    ("\"headers\": {\"authorization\": \"REDACTED\"}", "", false),
    ("\"headers\": {\"Set-Cookie\": \"sid=1\"}", "", true),
    ("\"headers\": {\"x-api-key\": \"k\"}", "", true),
    ("\"headers\": {\"location\": \"https://a.example/cb?access_token=abc\"}", "", true),
    ("\"query\": \"q=1&token=abc\"", "", true),
    ("\"query\": \"q=1&token=REDACTED\"", "", false),
    ("\"query\": \"page_token_count=3&tokens=4\"", "", false),
    ("\"query\": \"api_key=abc\"", "", true),
    ("\"host\": \"api.example.org\"", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", true),
    ("\"host\": \"api.example.org\"", "{\"nested\": [{\"password\": \"x1\"}]}", true),
    ("\"host\": \"api.example.org\"", "{\"password\": null, \"token\": \"\", \"secret\": \"***\"}", false),
    ("\"host\": \"api.example.org\"", "grant_type=client_credentials&client_secret=abc", true),
    ("\"host\": \"api.example.org\"", "key AKIAIOSFODNN7EXAMPLE here", true),
    ("\"host\": \"api.example.org\"", "sk-0123456789abcdefghijABCDEFGHIJ", true),
    ("\"host\": \"api.example.org\"", "task-012345678901234567890123", false),
    ("\"host\": \"api.example.org\"", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", true),
    ("\"host\": \"api.example.org\"", "Authorization: Basic dXNlcjpwYXNzd29yZA==", true),
    ("\"host\": \"api.example.org\"", "the bearer instruments and basic understanding of tokens", false),
    ("\"host\": \"api.example.org\"", "<html><input name=password></html>", false),
];

#[test]
fn secrets_are_found_and_not_told() {
    for (part, body, secret) in SECRETS {
        let inner = format!(
            ",\n \"http\": [ {{ \"method\": \"GET\", \"path\": \"/\", \"status\": 200, {part}, \"body_sha256\": \"{}\" }} ]",
            hex(body)
        );
        let content = cassette(&inner);
        let mut tree = base();
        tree.insert(
            format!("cassettes/bodies/{}", hex(body)),
            (*body).to_owned(),
        );
        tree.insert(RECORD.into(), content);
        let found: Vec<_> = heard(&base(), &tree)
            .findings(GATE)
            .into_iter()
            .filter(|f| f.reason.code() == "cassette-secret")
            .collect();
        assert_eq!(!found.is_empty(), *secret, "{part} {body}");
        for finding in found {
            for value in [
                "abcdef0123456789",
                "sid=1",
                "eyJhbG",
                "AKIA",
                "x1",
                "abc\"",
                "dXNlcj",
            ] {
                assert!(!finding.detail.contains(value), "{}", finding.detail);
            }
        }
    }
}

#[test]
fn a_token_in_a_path_is_found_and_the_pin_not_named() {
    let token = format!("ghp_{}", "a1".repeat(18));
    let inner = format!(
        ",\n \"http\": [ {{ \"method\": \"GET\", \"path\": \"/hook/{token}\", \"status\": 200, \"body_sha256\": \"{}\" }} ]",
        hex("")
    );
    let mut tree = base();
    tree.insert(RECORD.into(), cassette(&inner));
    let heard = heard(&base(), &tree);
    let found: Vec<_> = heard
        .findings(GATE)
        .into_iter()
        .filter(|f| f.reason.code() == "cassette-secret")
        .collect();
    assert_eq!(found.len(), 1);
    assert!(!found.first().unwrap().detail.contains(&token));
}
