//! What a CI screen is shown, and that it always is XML.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::judge::{FailureText, Origin, Word};
use crate::outcome::{ExceptionText, Signature, When};
use crate::signed_sample::{GATE, UNTIL};
use proptest::prelude::*;

fn case(name: &str, class: Class, code: Option<Reason>, outcomes: Vec<Outcome>) -> CaseSummary {
    CaseSummary {
        node: format!("tests/sealed/test_a.py::{name}").parse().unwrap(),
        file: Some("tests/sealed/test_a.py".parse().unwrap()),
        origin: Origin::Base,
        class,
        code,
        failure: (class != Class::StablePass).then(|| FailureText {
            attempt: 1,
            when: When::Call,
            exception: Some(ExceptionText {
                kind: "AssertionError".into(),
                message: "a < b\nsecond".into(),
                traceback: "at <line> \"1\"\u{1b}[0m".into(),
            }),
            output: String::new(),
        }),
        outcomes,
        unsilenced: vec![],

        held_out: vec![],
        held_out_failure: None,
        on_base: None,
        diagnosis: None,
        duration_ms: 1500.0,
    }
}

fn judged(cases: Vec<CaseSummary>) -> Judged {
    let words = [Word::Fail, Word::Pass, Word::NotRun];
    Judged::sample(words, Reason::CaseFailed, GATE, UNTIL).with_cases(cases)
}

fn red(code: Reason) -> Outcome {
    Outcome::Red(code, vec![Signature::written("AssertionError: a < b")])
}

#[test]
fn each_class_has_its_element() {
    let judged = judged(vec![
        case("test_ok", Class::StablePass, None, vec![Outcome::Passed; 2]),
        case(
            "test_red",
            Class::StableRed,
            Some(Reason::CaseFailed),
            vec![red(Reason::CaseFailed); 2],
        ),
        case(
            "test_err",
            Class::StableRed,
            Some(Reason::CaseError),
            vec![red(Reason::CaseError); 2],
        ),
        case(
            "test_mix",
            Class::Mixed,
            Some(Reason::CassetteGap),
            vec![Outcome::Passed, red(Reason::CaseFailed)],
        ),
        case(
            "test_skip",
            Class::Silenced,
            None,
            vec![Outcome::Xpassed; 2],
        ),
        case(
            "test_new",
            Class::StablePass,
            Some(Reason::ExtraCase),
            vec![Outcome::Passed; 2],
        ),
    ]);
    let trace = "at &lt;line&gt; &quot;1&quot;\\u{1b}[0m";
    let right = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
<testsuite name="tribunal" tests="6" failures="3" errors="1" skipped="1">
<testcase classname="tests/sealed/test_a.py" name="test_ok" time="1.500"/>
<testcase classname="tests/sealed/test_a.py" name="test_red" time="1.500"><failure message="case-failed: AssertionError: a &lt; b">{trace}</failure></testcase>
<testcase classname="tests/sealed/test_a.py" name="test_err" time="1.500"><error message="case-error: AssertionError: a &lt; b">{trace}</error></testcase>
<testcase classname="tests/sealed/test_a.py" name="test_mix" time="1.500"><failure message="mixed: passed, failed: AssertionError: a &lt; b">{trace}</failure></testcase>
<testcase classname="tests/sealed/test_a.py" name="test_skip" time="1.500"><skipped message="silenced: AssertionError: a &lt; b"/></testcase>
<testcase classname="tests/sealed/test_a.py" name="test_new" time="1.500"><failure message="extra-case"/></testcase>
</testsuite>
</testsuites>
"#
    );
    assert_eq!(render(&judged, Audience::Operator), right);
}

#[test]
fn levels_hold_here_too() {
    let judged = judged(vec![case(
        "test_red",
        Class::StableRed,
        Some(Reason::CaseFailed),
        vec![red(Reason::CaseFailed)],
    )]);
    let names = render(&judged, Audience::Caller(FeedbackLevel::Names));
    assert!(
        names.contains("test_red")
            && names.contains("message=\"case-failed\"/>")
            && !names.contains("AssertionError")
    );
    let words = render(&judged, Audience::Caller(FeedbackLevel::Verdict));
    assert!(!words.contains("test_red") && words.contains("name=\"src_score\""));
    assert!(words.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
}

#[test]
fn passes_are_left_out_before_anything_else() {
    let mut cases: Vec<CaseSummary> = (0..20_000)
        .map(|n| {
            case(
                &format!("test_ok[{n}]"),
                Class::StablePass,
                None,
                vec![Outcome::Passed],
            )
        })
        .collect();
    cases.push(case(
        "test_red",
        Class::StableRed,
        Some(Reason::CaseFailed),
        vec![red(Reason::CaseFailed)],
    ));
    let text = render(&judged(cases), Audience::Operator);
    assert!(text.len() <= LIMIT);
    assert!(
        text.contains("test_red")
            && text.contains("tests=\"20001\"")
            && text.contains("name=\"left-out\"")
    );
}

proptest! {
    /// What is left of any text is allowed in XML 1.0, and no markup of its own.
    #[test]
    fn any_text_is_escaped(text in proptest::collection::vec(any::<char>(), 0..40)) {
        let text: String = text.into_iter().collect();
        let out = escaped(&text, 100);
        for c in out.chars() {
            let allowed = matches!(c, '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
            prop_assert!(allowed && !matches!(c, '<' | '>' | '"' | '\''), "{c:?}");
        }
        for (at, _) in out.match_indices('&') {
            let rest = out.get(at..).unwrap_or_default();
            prop_assert!(["&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#9;", "&#10;", "&#13;"].iter().any(|e| rest.starts_with(e)));
        }
    }
}
