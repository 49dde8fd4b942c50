//! What every command fails with: what failed, why, and what to do next, with the exit code that says whose turn it is.
//!
//! Each room has its own error enum and knows how to become one of these; nothing is thrown away on the way here.

use crate::exit::Exit;
use std::fmt;

/// A failure fit to be shown. All three texts are escaped already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whose turn it is.
    pub exit: Exit,
    /// Completes "failed to …".
    pub what: String,
    /// The cause.
    pub why: String,
    /// One sentence a person can act on.
    pub next: String,
    /// The stable reason code, where the server or the protocol gives one.
    pub code: Option<String>,
}

impl Failure {
    /// A failure without a reason code.
    #[must_use]
    pub fn new(
        exit: Exit,
        what: impl Into<String>,
        why: impl fmt::Display,
        next: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            what: what.into(),
            why: why.to_string(),
            next: next.into(),
            code: None,
        }
    }

    /// The same with a reason code.
    #[must_use]
    pub fn coded(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// A command line or configuration that does not hold.
    #[must_use]
    pub fn usage(what: impl Into<String>, why: impl fmt::Display, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what, why, next)
    }

    /// The JSON document that `--json` prints for it.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "error",
            "exit": self.exit.code(),
            "code": self.code,
            "what": format!("failed to {}", self.what),
            "why": self.why,
            "next": self.next,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}: ", self.what)?;
        if let Some(code) = &self.code {
            write!(f, "{code}: ")?;
        }
        write!(f, "{}\nnext: {}", self.why, self.next)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_why_and_what_next() {
        let failure = Failure::new(
            Exit::Refused,
            "ask for a score",
            "no such commit",
            "push it first",
        )
        .coded("unknown-commit");
        assert_eq!(
            failure.to_string(),
            "failed to ask for a score: unknown-commit: no such commit\nnext: push it first"
        );
        assert_eq!(failure.json()["exit"], 65);
        assert_eq!(failure.json()["code"], "unknown-commit");
    }
}
