//! `junit.xml`: the sealed cases for the screens of CI systems. Nobody judges by it.
//!
//! Mixed cases are failures that say so. Any character of a case id or message comes out as well-formed XML 1.0; the file is
//! bounded, passes are left out first.

use crate::judge::{CaseSummary, FailureText, Judged, Origin};
use crate::outcome::{Class, Outcome};
use crate::policy::FeedbackLevel;
use crate::reason::Reason;
use crate::report::Audience;
use std::fmt::Write as _;

/// No file is longer.
pub const LIMIT: usize = 512 << 10;

/// The file for this reader.
#[must_use]
pub fn render(judged: &Judged, audience: Audience) -> String {
    let level = match audience {
        Audience::Operator => FeedbackLevel::Full,
        Audience::Caller(level) => level,
    };
    let elements: Vec<(Kind, String)> = match level {
        FeedbackLevel::Verdict => judged.verdicts().iter().map(verdict).collect(),
        FeedbackLevel::Names | FeedbackLevel::Full => judged
            .cases()
            .iter()
            .filter(|case| level == FeedbackLevel::Full || case.origin != Origin::Foreign)
            .map(|case| element(case, audience))
            .collect(),
    };
    let touched: Vec<(Kind, String)> = match level {
        FeedbackLevel::Verdict => Vec::new(),
        FeedbackLevel::Names | FeedbackLevel::Full => judged
            .merge()
            .iter()
            .flat_map(|lane| &lane.cases)
            .map(|case| element(case, audience))
            .collect(),
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let mut room = LIMIT.saturating_sub(1024);
    suite(&mut out, "tribunal", &elements, &mut room);
    if !touched.is_empty() {
        suite(&mut out, "tribunal merge lane", &touched, &mut room);
    }
    out.push_str("</testsuites>\n");
    out
}

/// One suite, as far as there is room.
fn suite(out: &mut String, name: &str, elements: &[(Kind, String)], room: &mut usize) {
    let kept = fitting(elements, room);
    let count = |kind: Kind| elements.iter().filter(|(k, _)| *k == kind).count();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        elements.len(),
        count(Kind::Failure),
        count(Kind::Error),
        count(Kind::Skipped),
    );
    if kept.len() < elements.len() {
        let _ = writeln!(
            out,
            "<properties><property name=\"left-out\" value=\"{}\"/></properties>",
            elements.len() - kept.len()
        );
    }
    for text in kept {
        out.push_str(text);
    }
    out.push_str("</testsuite>\n");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pass,
    Failure,
    Error,
    Skipped,
}

/// What has room, in order: everything that is no pass first, then passes.
fn fitting<'a>(elements: &'a [(Kind, String)], room: &mut usize) -> Vec<&'a str> {
    let mut keep = vec![false; elements.len()];
    for passes in [false, true] {
        for ((kind, text), keep) in elements.iter().zip(&mut keep) {
            if (*kind == Kind::Pass) == passes && text.len() <= *room {
                *room -= text.len();
                *keep = true;
            }
        }
    }
    let kept = elements.iter().zip(keep).filter(|(_, keep)| *keep);
    kept.map(|((_, text), _)| text.as_str()).collect()
}

fn verdict(verdict: &crate::judge::Verdict) -> (Kind, String) {
    use crate::judge::Word;
    let name = verdict.kind().file_stem();
    let (kind, body) = match verdict.word() {
        Word::Pass => (Kind::Pass, String::new()),
        Word::Fail => (
            Kind::Failure,
            format!("<failure message=\"{}\"/>", Word::Fail),
        ),
        Word::NotRun => (
            Kind::Skipped,
            format!("<skipped message=\"{}\"/>", Word::NotRun),
        ),
    };
    (kind, testcase("tribunal", name, 0.0, &body))
}

fn element(case: &CaseSummary, audience: Audience) -> (Kind, String) {
    // What base does not know by this name, head could have named after anything it saw.
    let made_up = case.origin != Origin::Base;
    let (said, named) = match audience {
        Audience::Operator => {
            let held_out = case.held_out_failure.as_ref();
            (
                said(case, held_out.or(case.failure.as_ref())),
                case.node.clone(),
            )
        }
        Audience::Caller(FeedbackLevel::Full) => {
            (said(case, case.failure.as_ref()), case.node.clone())
        }
        Audience::Caller(FeedbackLevel::Names | FeedbackLevel::Verdict) if made_up => {
            (Said::default(), case.node.without_parameters())
        }
        Audience::Caller(FeedbackLevel::Names | FeedbackLevel::Verdict) => {
            (Said::default(), case.node.clone())
        }
    };
    let file = case
        .file
        .as_ref()
        .map(|file| file.as_str())
        .unwrap_or_default();
    let node = named.as_str();
    let name = node
        .strip_prefix(file)
        .and_then(|rest| rest.strip_prefix("::"))
        .unwrap_or(node);
    let (kind, tag, message) = match (case.class, case.code) {
        (Class::Silenced, None | Some(_)) => (
            Kind::Skipped,
            "skipped",
            format!("silenced{}", with(&said.line)),
        ),
        (Class::StablePass, None) => (Kind::Pass, "", String::new()),
        (Class::Mixed, _) => {
            let words: Vec<&str> = case.outcomes.iter().map(Outcome::word).collect();
            let owed = case
                .diagnosis
                .as_ref()
                .map_or(String::new(), |diagnosis| format!("; {}", diagnosis.told()));
            (
                Kind::Failure,
                "failure",
                format!("mixed: {}{}{owed}", words.join(", "), with(&said.line)),
            )
        }
        (Class::StableRed, Some(Reason::CaseError)) => (Kind::Error, "error", red(case, &said)),
        (Class::StableRed | Class::StablePass, _) => (Kind::Failure, "failure", red(case, &said)),
    };
    let body = if tag.is_empty() {
        String::new()
    } else if said.block.is_empty() {
        format!("<{tag} message=\"{}\"/>", escaped(&message, 2000))
    } else {
        format!(
            "<{tag} message=\"{}\">{}</{tag}>",
            escaped(&message, 2000),
            escaped(&said.block, 6000)
        )
    };
    (kind, testcase(file, name, case.duration_ms, &body))
}

#[derive(Default)]
struct Said {
    line: String,
    block: String,
}

fn said(case: &CaseSummary, failure: Option<&FailureText>) -> Said {
    let Some(failure) = failure else {
        return Said::default();
    };
    let exception = failure.exception.as_ref();
    Said {
        line: exception
            .map(|e| {
                format!(
                    "{}: {}",
                    e.kind,
                    e.message.lines().next().unwrap_or_default()
                )
            })
            .unwrap_or_default(),
        block: match case.class {
            Class::Silenced => String::new(),
            Class::StablePass | Class::StableRed | Class::Mixed => {
                exception.map(|e| e.traceback.clone()).unwrap_or_default()
            }
        },
    }
}

fn with(line: &str) -> String {
    if line.is_empty() {
        String::new()
    } else {
        format!(": {line}")
    }
}

fn red(case: &CaseSummary, said: &Said) -> String {
    let code = case.code.map_or("failed", Reason::code);
    format!("{code}{}", with(&said.line))
}

fn testcase(class: &str, name: &str, duration_ms: f64, body: &str) -> String {
    let head = format!(
        "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
        escaped(class, 4096),
        escaped(name, 4096),
        duration_ms / 1000.0
    );
    if body.is_empty() {
        format!("{head}/>\n")
    } else {
        format!("{head}>{body}</testcase>\n")
    }
}

/// Text as XML 1.0 can hold it, in an attribute and in an element alike. What it cannot hold at all is spelled out.
fn escaped(text: &str, cap: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, c) in text.chars().enumerate() {
        if n >= cap {
            out.push('…');
            break;
        }
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                out.extend(c.escape_default())
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
