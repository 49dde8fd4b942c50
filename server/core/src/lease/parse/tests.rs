//! Every mistake, and where it is said to be.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
use super::*;

const GOOD: &str = r#"{
  "leases": [
    {
      "qualname": "test_net.test_net",
      "bytecode_hash": "0123456789abcdef",
      "failure_signature": "TimeoutError: x",
      "expires_at": 1790000000,
      "owner": "m@example.org",
      "reason": "upstream"
    }
  ]
}
"#;

fn error(text: &str) -> LeaseFileError {
    parse(text.as_bytes()).unwrap_err()
}

fn with(key: &str, value: &str) -> String {
    GOOD.lines()
        .map(
            |line| match line.trim_start().starts_with(&format!("\"{key}\"")) {
                true => format!(
                    "      \"{key}\": {value}{}",
                    if line.ends_with(',') { "," } else { "" }
                ),
                false => line.to_owned(),
            },
        )
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_good_file_parses() {
    let leases = parse(GOOD.as_bytes()).unwrap();
    assert_eq!(leases.len(), 1);
    assert_eq!(leases.first().unwrap().expires_at, UnixTime(1_790_000_000));
    assert_eq!(parse(br#"{"leases": []}"#), Ok(vec![]));
    let v2 = with("bytecode_hash", &format!("\"v2:cp313:{}\"", "a".repeat(64)));
    assert_eq!(
        parse(v2.as_bytes())
            .unwrap()
            .first()
            .unwrap()
            .digest
            .to_string(),
        format!("v2:cp313:{}", "a".repeat(64))
    );
    // Named by the judge where it is used, with a code of its own.
    assert!(
        parse(with("failure_signature", "\" \"").as_bytes())
            .unwrap()
            .first()
            .unwrap()
            .signature
            .is_empty()
    );
}

#[test]
fn every_mistake_has_a_place_and_says_whose_it_is() {
    for (text, line, column, says) in [
        (
            with("expires_at", "\"2026-12-02\""),
            7,
            21,
            "`expires_at` of lease `test_net.test_net` has no time of day",
        ),
        (
            with("expires_at", "null"),
            7,
            21,
            "`expires_at` of lease `test_net.test_net` is neither",
        ),
        (with("expires_at", "1.5e9"), 7, 21, "is neither"),
        (
            with("expires_at", "99999999999999999999"),
            7,
            21,
            "is neither",
        ),
        (with("expires_at", "true"), 7, 21, "is neither"),
        (with("expires_at", "\"\""), 7, 21, "is neither"),
        (
            with("owner", "7"),
            8,
            16,
            "`owner` of lease `test_net.test_net` is not a string",
        ),
        (
            with("owner", "\" \""),
            8,
            16,
            "`owner` of lease `test_net.test_net` is empty",
        ),
        (
            with("bytecode_hash", "\"@compute\""),
            5,
            24,
            "`bytecode_hash` of lease `test_net.test_net` is neither",
        ),
        (
            with("bytecode_hash", "\"v2:cp313:ABC\""),
            5,
            24,
            "is neither",
        ),
        (
            with("qualname", "null"),
            4,
            19,
            "`qualname` is not a string",
        ),
        (
            GOOD.replace("\"owner\"", "\"Owner\""),
            8,
            13,
            "unknown field `Owner`",
        ),
        (
            GOOD.replace("\"owner\"", "\"reason\""),
            9,
            14,
            "duplicate field `reason`",
        ),
        (
            GOOD.replace("      \"owner\": \"m@example.org\",\n", ""),
            9,
            5,
            "missing field `owner`",
        ),
        (
            GOOD.replace("\"leases\"", "\"lease\""),
            2,
            9,
            "unknown field `lease`",
        ),
        ("{}".to_owned(), 1, 2, "missing field `leases`"),
        (
            "{\"leases\": [], \"leases\": []}".to_owned(),
            1,
            23,
            "duplicate field `leases`",
        ),
        (
            "{\"leases\": []} x".to_owned(),
            1,
            16,
            "trailing characters",
        ),
        ("[[]]".to_owned(), 1, 1, "the file is a list"),
        (
            "{\"leases\": [[\"a\", \"b\"]]}".to_owned(),
            1,
            13,
            "a lease is an object",
        ),
        (String::new(), 1, 1, "EOF"),
        ("{\"leases\": [NaN]}".to_owned(), 1, 13, "expected"),
        (
            "\u{feff}{\"leases\": []}".to_owned(),
            1,
            1,
            "expected value",
        ),
    ] {
        let error = error(&text);
        assert!(error.message.contains(says), "{says}: {error}\n{text}");
        let place = (error.line, error.column);
        assert_eq!(place, (line, column), "{error}\n{text}");
    }
    assert_eq!(error(&GOOD.replace("upstream", "up\u{1b}stream")).line, 9);
    assert_eq!(
        parse(b"{\"leases\":\n\xff").unwrap_err().to_string(),
        "line 2, column 1: the file is not UTF-8"
    );
}

#[test]
fn a_second_lease_for_one_name_is_refused() {
    let one = GOOD
        .split("[\n")
        .nth(1)
        .unwrap()
        .split("\n  ]")
        .next()
        .unwrap();
    let two = GOOD.replace(one, &format!("{one},\n{one}"));
    assert_eq!(
        error(&two).to_string(),
        "line 12, column 19: `test_net.test_net` has a lease already, on line 4"
    );
}
