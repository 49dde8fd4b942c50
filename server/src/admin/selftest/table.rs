//! What both judges said of every case, as a table for a person and as one document for a program.

use super::corpus::{Case, Right};
use super::court::Tribunal;
use super::gate::{Junit, Plain};
use crate::admin::answer::Table;
use crate::admin::{AdminError, Answer};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tribunal_core::join::Decision;

/// One case.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place.
    pub number: usize,
    /// What was asked.
    pub case: Case,
    /// What a plain gate said.
    pub plain: Plain,
    /// What this server said.
    pub tribunal: Tribunal,
    /// Whether that is right.
    pub state: State,
    /// How long both took.
    pub took: Duration,
}

/// Whether the answer is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is.
    Ok,
    /// An attack merges.
    Bypassed,
    /// An honest change does not merge, or a word is not the one it must be.
    Wrong,
    /// There is no answer.
    NoAnswer,
}

impl State {
    pub(super) fn of(case: &Case, tribunal: &Tribunal) -> Self {
        match (case.right, tribunal) {
            (_, Tribunal::Aborted(_)) => Self::NoAnswer,
            (Right::Stopped, Tribunal::Refused(_)) => Self::Ok,
            (Right::Merged, Tribunal::Refused(_)) => Self::Wrong,
            (
                Right::Stopped,
                Tribunal::Joined {
                    decision: Decision::MergeOk,
                    ..
                },
            ) => Self::Bypassed,
            (
                Right::Merged,
                Tribunal::Joined {
                    decision: Decision::MergeBlocked(_),
                    ..
                },
            ) => Self::Wrong,
            (
                Right::Stopped | Right::Merged,
                Tribunal::Joined {
                    decision: Decision::MergeOk | Decision::MergeBlocked(_),
                    words,
                    reasons,
                },
            ) => {
                let known = |(known, word): (&Option<String>, &String)| {
                    known.as_ref().is_none_or(|known| known == word)
                };
                let as_known = case.words.iter().zip(words).all(known)
                    && case
                        .reason
                        .as_ref()
                        .is_none_or(|reason| reasons.contains(reason));
                if as_known { Self::Ok } else { Self::Wrong }
            }
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Bypassed => "BYPASSED",
            Self::Wrong => "WRONG",
            Self::NoAnswer => "NO ANSWER",
        })
    }
}

/// The words alone where they say it all, with the reasons where there are any.
impl fmt::Display for Tribunal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "refused: {code}"),
            Self::Aborted(aborted) => write!(f, "aborted: {}", aborted.code),
            Self::Joined {
                decision: Decision::MergeOk,
                ..
            } => f.write_str("MERGE_OK"),
            Self::Joined { words, reasons, .. } => {
                write!(f, "{}: {}", words.join(" "), reasons.join(" "))
            }
        }
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCheckout => f.write_str("no checkout"),
            Self::Hung => f.write_str("hangs"),
            Self::Ended { exit_code, junit } => {
                let junit = match junit {
                    Junit::Nothing => "none",
                    Junit::Green => "green",
                    Junit::Red => "red",
                };
                write!(f, "exit {exit_code}, junit {junit}")
            }
        }
    }
}

/// The whole: exit 0 only where every answer is right. `instance` is what was left in the engine under, if anything was.
pub(super) fn answer(rows: &[Row], instance: &str, took: Duration) -> Result<Answer, AdminError> {
    let heading = vec!["case", "class", "plain gate", "", "tribunal", ""];
    let cells = rows.iter().map(|row| {
        let fooled = row.case.right == Right::Stopped && row.plain.passes();
        vec![
            row.case.name.clone(),
            row.case.class.clone(),
            row.plain.to_string(),
            if fooled { "fooled" } else { "" }.to_owned(),
            row.tribunal.to_string(),
            row.state.to_string(),
        ]
    });
    let attacks: Vec<&Row> = rows
        .iter()
        .filter(|row| row.case.right == Right::Stopped)
        .collect();
    let count = |holds: &dyn Fn(&Row) -> bool| attacks.iter().filter(|row| holds(row)).count();
    let bypassed = count(&|row| row.state == State::Bypassed);
    let (by_exit, by_junit) = (
        count(&|row| row.plain.passes()),
        count(&|row| row.plain.junit_passes()),
    );
    let not_right: Vec<&str> = rows
        .iter()
        .filter(|row| matches!(row.state, State::Wrong | State::NoAnswer))
        .map(|row| row.case.name.as_str())
        .collect();
    let mut text = Table::new(heading, cells.collect()).aligned();
    text.push_str(&format!(
        "\na plain gate is fooled by {by_exit} of {0} by exit code, by {by_junit} of {0} by JUnit file\n",
        attacks.len()
    ));
    if !not_right.is_empty() {
        text.push_str(&format!("not right: {}\n", not_right.join(", ")));
    }
    text.push_str(&format!("bypassed: {bypassed} of {}\n", attacks.len()));
    let json = json!({
        "cases": rows.iter().map(document).collect::<Vec<_>>(),
        "attacks": attacks.len(),
        "plainFooledByExitCode": by_exit,
        "plainFooledByJunit": by_junit,
        "notRight": not_right,
        "bypassed": bypassed,
        "instance": instance,
        "tookMs": millis(took),
    });
    let answer = Answer::lines(text, json);
    if bypassed == 0 && not_right.is_empty() {
        Ok(answer)
    } else {
        Err(AdminError::NotInOrder(Box::new(answer)))
    }
}

fn document(row: &Row) -> Value {
    let plain = match &row.plain {
        Plain::NoCheckout => json!({ "ended": "no-checkout" }),
        Plain::Hung => json!({ "ended": "hung" }),
        Plain::Ended { exit_code, .. } => json!({
            "ended": "exited",
            "exitCode": exit_code,
            "passes": row.plain.passes(),
            "junitPasses": row.plain.junit_passes(),
        }),
    };
    let tribunal = match &row.tribunal {
        Tribunal::Refused(code) => json!({ "refused": code.to_string() }),
        Tribunal::Aborted(aborted) => {
            json!({ "aborted": aborted.code.to_string(), "message": aborted.message })
        }
        Tribunal::Joined {
            decision,
            words,
            reasons,
        } => json!({
            "merge": *decision == Decision::MergeOk,
            "words": words,
            "reasons": reasons,
        }),
    };
    json!({
        "case": row.case.name,
        "class": row.case.class,
        "mustMerge": row.case.right == Right::Merged,
        "plain": plain,
        "tribunal": tribunal,
        "state": row.state.to_string(),
        "tookMs": millis(row.took),
    })
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Text;
    use crate::admin::selftest::corpus::cases;
    use tribunal_core::join::Blocked;
    use tribunal_core::reason::{Aborted, AbortedCode, RefusedCode};

    fn row(name: &str, tribunal: Tribunal) -> Row {
        let case = cases(&[name.to_owned()]).unwrap_or_default().remove(0);
        Row {
            number: 0,
            state: State::of(&case, &tribunal),
            case,
            plain: Plain::Ended {
                exit_code: 0,
                junit: Junit::Red,
            },
            tribunal,
            took: Duration::ZERO,
        }
    }

    fn joined(decision: Decision, words: [&str; 3], reasons: &[&str]) -> Tribunal {
        Tribunal::Joined {
            decision,
            words: words.map(str::to_owned),
            reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        }
    }

    fn blocked(words: [&str; 3], reasons: &[&str]) -> Tribunal {
        joined(Decision::MergeBlocked(Blocked::Verdict), words, reasons)
    }

    fn merged() -> Tribunal {
        joined(Decision::MergeOk, ["PASS"; 3], &[])
    }

    #[test]
    fn what_is_right_of_each_answer() {
        let refused = Tribunal::Refused(RefusedCode::BadObject);
        let aborted = Tribunal::Aborted(Aborted::new(AbortedCode::DiskFull, "full"));
        for (case, tribunal, state) in [
            ("00-*", merged(), State::Ok),
            (
                "00-*",
                blocked(["FAIL", "PASS", "PASS"], &["case-failed"]),
                State::Wrong,
            ),
            ("00-*", refused.clone(), State::Wrong),
            ("39-*", merged(), State::Bypassed),
            (
                "39-*",
                blocked(["FAIL", "PASS", "PASS"], &["held-out-pins"]),
                State::Ok,
            ),
            ("39-*", refused, State::Ok),
            ("39-*", aborted, State::NoAnswer),
            (
                "63-*",
                blocked(["NOT_RUN", "FAIL", "NOT_RUN"], &["oracle-edit"]),
                State::Ok,
            ),
            (
                "63-*",
                blocked(["FAIL", "PASS", "PASS"], &["case-failed"]),
                State::Wrong,
            ),
            (
                "61-*",
                blocked(["NOT_RUN", "FAIL", "NOT_RUN"], &["policy-edit"]),
                State::Wrong,
            ),
        ] {
            assert_eq!(
                row(case, tribunal.clone()).state,
                state,
                "{case} {tribunal}"
            );
        }
    }

    #[test]
    fn only_a_table_without_a_wrong_answer_is_in_order() {
        let stopped = blocked(["FAIL", "PASS", "PASS"], &["held-out-pins"]);
        let last = |rows: &[Row]| {
            let (in_order, answer) = match answer(rows, "here", Duration::ZERO) {
                Ok(answer) => (true, answer),
                Err(AdminError::NotInOrder(answer)) => (false, *answer),
                Err(other) => unreachable!("{other}"),
            };
            let Text::Lines(text) = answer.text else {
                unreachable!("lines")
            };
            let last = text.lines().last().unwrap_or_default().to_owned();
            (in_order, last, text)
        };
        let (in_order, line, text) = last(&[row("00-*", merged()), row("39-*", stopped.clone())]);
        assert!(in_order);
        assert_eq!(line, "bypassed: 0 of 1");
        assert!(
            text.contains("fooled by 1 of 1 by exit code, by 0 of 1 by JUnit"),
            "{text}"
        );
        let (in_order, line, _) = last(&[row("39-*", merged()), row("41-*", stopped.clone())]);
        assert!(!in_order);
        assert_eq!(line, "bypassed: 1 of 2");
        let (in_order, line, text) = last(&[row("00-*", stopped)]);
        assert!(!in_order);
        assert_eq!(line, "bypassed: 0 of 0");
        assert!(text.contains("not right: 00-control-honest-fix"), "{text}");
    }
}
