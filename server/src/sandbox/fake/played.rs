//! What a played case reports: its phases and ends, in the words of the protocol.

use super::dialect::{Act, Mark, Test};
use super::harness::{Attempt, Harness};
use serde_json::{Value, json};
use std::time::Duration;
use tribunal_core::outcome::{ExceptionText, When};

/// How an attempt ends before its session does.
pub(super) struct Cut {
    pub(super) end: &'static str,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// Phases of a case, and the cut that ended it, if one did.
pub(super) struct Played {
    pub(super) phases: Vec<Value>,
    pub(super) cut: Option<Cut>,
}

impl Harness {
    /// One case: what its script says, as phases.
    pub(super) async fn play(&self, attempt: &Attempt, test: &Test) -> Played {
        let silenced = attempt.mode == "silenced";
        let mark = test.mark.as_ref().filter(|_| silenced);
        if let Some(Mark::Skip(reason)) = mark {
            return whole(vec![skipped(When::Setup, reason), passed(When::Teardown)]);
        }
        let mut call = passed(When::Call);
        let mut teardown = passed(When::Teardown);
        let mut output = String::new();
        let mut failed: Option<ExceptionText> = None;
        for act in &test.acts {
            match act {
                Act::Pass => {}
                Act::Fail(When::Setup, exception) => {
                    return whole(vec![failure(When::Setup, exception), teardown]);
                }
                Act::Fail(When::Call, exception) => failed = Some(exception.clone()),
                Act::Fail(When::Teardown, exception) => {
                    teardown = failure(When::Teardown, exception)
                }
                Act::Skip(reason) if silenced => call = skipped(When::Call, reason),
                Act::Skip(reason) => {
                    failed = Some(ExceptionText {
                        kind: "Skipped".to_owned(),
                        message: reason.clone(),
                        traceback: String::new(),
                    });
                }
                Act::Print(text) => {
                    output.push_str(text);
                    output.push('\n');
                }
                Act::NeedHashSeed(seed, exception) => {
                    if self.hash_seed(attempt.start) != Some(*seed) {
                        failed = Some(exception.clone());
                    }
                }
                Act::NeedText(path, text, exception) => {
                    let there = self.text(attempt, path);
                    if !there.is_some_and(|bytes| String::from_utf8_lossy(bytes).contains(text)) {
                        failed = Some(exception.clone());
                    }
                }
                Act::Take(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
                Act::NeverEnd => {
                    let limit = self
                        .configured
                        .as_ref()
                        .map_or(0, |c| c.policy.case_timeout_ms);
                    tokio::time::sleep(Duration::from_millis(limit)).await;
                    return broken("case-timeout", None, None);
                }
                Act::Exit(code) => return broken("exited", Some(*code), None),
                Act::Signal(signal) => return broken("killed", None, Some(*signal)),
                Act::EatMemory => return broken("out-of-memory", None, Some(9)),
                Act::Flood => return broken("output-limit", None, None),
            }
        }
        match (mark, failed) {
            (Some(Mark::Xfail(reason)), Some(exception)) => {
                call = json!({
                    "when": "call", "outcome": "skipped", "xfail": reason, "xpassed": false, "by": "sealed",
                    "exception": exception
                });
            }
            (Some(Mark::Xfail(reason)), None) => {
                call = json!({ "when": "call", "outcome": "passed", "xfail": reason, "xpassed": true, "by": "runner" });
            }
            (_, Some(exception)) => call = failure(When::Call, &exception),
            (_, None) => {}
        }
        if let Some(fields) = call.as_object_mut() {
            fields.insert("output".to_owned(), Value::String(output));
        }
        whole(vec![passed(When::Setup), call, teardown])
    }

    fn hash_seed(&self, start: usize) -> Option<u32> {
        let starts = &self.configured.as_ref()?.starts;
        starts.get(start).map(|start| start.hash_seed)
    }
}

pub(super) enum Node {
    Case(String),
    EmptySet(String),
}

pub(super) fn nodes(file: &str, test: &Test) -> Vec<Node> {
    let name = format!("{file}::{}", test.qualname.replace('.', "::"));
    match &test.parameters {
        None => vec![Node::Case(name)],
        Some(ids) if ids.is_empty() => vec![Node::EmptySet(format!("{name}[NOTSET]"))],
        Some(ids) => ids
            .iter()
            .map(|id| Node::Case(format!("{name}[{id}]")))
            .collect(),
    }
}

fn whole(phases: Vec<Value>) -> Played {
    Played { phases, cut: None }
}

fn broken(end: &'static str, exit_code: Option<i32>, signal: Option<i32>) -> Played {
    Played {
        phases: vec![passed(When::Setup), unreported(When::Call)],
        cut: Some(Cut {
            end,
            exit_code,
            signal,
        }),
    }
}

pub(super) fn passed(when: When) -> Value {
    json!({ "when": when, "outcome": "passed", "duration_ms": 0.1 })
}

pub(super) fn unreported(when: When) -> Value {
    json!({ "when": when, "outcome": "failed", "reported": false })
}

fn skipped(when: When, reason: &str) -> Value {
    json!({ "when": when, "outcome": "skipped", "skip_reason": reason, "by": "sealed" })
}

fn failure(when: When, exception: &ExceptionText) -> Value {
    json!({ "when": when, "outcome": "failed", "exception": exception, "by": "sealed" })
}
