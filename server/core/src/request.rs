//! What a caller asks for, checked in itself: ids are full, fields fit, all violations are told together.
//!
//! Never looks at a repository; whether the commits exist is the repository room's question.

use crate::id::{CommitId, RepoName, RequestId, TokenId};
use crate::reason::{Refused, RefusedCode};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Untrusted: uploads, scores, sees its own uploads.
    Agent,
    /// Reads verdicts, may ask for a score.
    Ci,
    /// Owns the oracle: human change sets, fresh attempts.
    Maintainer,
    /// Runs the server.
    Operator,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The token's public id.
    pub token: TokenId,
    /// Its role.
    pub role: Role,
    /// The only repository it may see; `None` is all of them.
    pub scope: Option<RepoName>,
}

/// Whether stored attempts of the same content may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Freshness {
    /// Reuse stored attempts of the same content.
    Stored,
    /// Run new attempts; stored ones still count in the judgement. Maintainers and operators only.
    Fresh,
}

/// What is run beside the verdicts' lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    None,
    /// Head's proposed tests: told in the report, of no weight in a verdict.
    Proposed,
}

/// A request as it came, nothing checked.
#[derive(Debug, Clone, Default)]
pub struct RawScoreRequest {
    /// Repository id.
    pub repository: String,
    /// Head, as hex.
    pub head: String,
    /// Base, as hex; empty for the protected tip.
    pub base: String,
    /// The caller's idempotency key; empty lets the server draw one.
    pub request_id: String,
    /// Ask for new attempts.
    pub fresh: bool,
    /// Ask for advice on proposed tests.
    pub proposed: bool,
}

/// A request that holds in itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRequest {
    repository: RepoName,
    head: CommitId,
    base: Option<CommitId>,
    request_id: Option<RequestId>,
    freshness: Freshness,
    advice: Advice,
    caller: Caller,
}

/// One field that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The field, as the wire names it.
    pub field: &'static str,
    /// What is wrong with it, fit to be shown.
    pub description: String,
    /// The code that this field's mistake has, where it has one of its own.
    pub code: RefusedCode,
}

/// Why a request does not hold in itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Fields; all of them.
    #[error("read the request: {}", listed(.0))]
    Fields(Vec<FieldViolation>),
    /// This caller may not ask that.
    #[error(transparent)]
    Refused(#[from] Refused),
}

fn listed(violations: &[FieldViolation]) -> String {
    let all: Vec<_> = violations
        .iter()
        .map(|v| format!("{}: {}", v.field, v.description))
        .collect();
    all.join("; ")
}

impl RawScoreRequest {
    /// Check it for this caller; `field` names in violations are those of the wire.
    ///
    /// # Errors
    /// Every field that does not hold, or `forbidden` where the caller's role or scope does not reach.
    pub fn check(&self, caller: &Caller) -> Result<ScoreRequest, RequestError> {
        let mut violations = Vec::new();
        let repository = field("parent", &self.repository, &mut violations);
        let head = commit("head", &self.head, &mut violations);
        let base = match self.base.as_str() {
            "" => None,
            text => commit("base", text, &mut violations),
        };
        let request_id = match self.request_id.as_str() {
            "" => None,
            text => field("request_id", text, &mut violations),
        };
        let (Some(repository), Some(head)) = (repository, head) else {
            return Err(RequestError::Fields(violations));
        };
        if !violations.is_empty() {
            return Err(RequestError::Fields(violations));
        }
        if caller.scope.as_ref().is_some_and(|s| *s != repository) {
            let message = format!("this token does not reach repository {repository}");
            return Err(Refused::new(RefusedCode::Forbidden, message).into());
        }
        let freshness = match (self.fresh, caller.role) {
            (false, _) => Freshness::Stored,
            (true, Role::Maintainer | Role::Operator) => Freshness::Fresh,
            (true, Role::Agent | Role::Ci) => {
                let message = "fresh attempts are for maintainers and operators";
                return Err(Refused::new(RefusedCode::Forbidden, message).into());
            }
        };
        Ok(ScoreRequest {
            repository,
            head,
            base,
            request_id,
            freshness,
            advice: if self.proposed {
                Advice::Proposed
            } else {
                Advice::None
            },
            caller: caller.clone(),
        })
    }
}

fn field<T: FromStr<Err = crate::id::IdError>>(
    name: &'static str,
    text: &str,
    violations: &mut Vec<FieldViolation>,
) -> Option<T> {
    match text.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            violations.push(FieldViolation {
                field: name,
                description: error.to_string(),
                code: RefusedCode::InvalidArgument,
            });
            None
        }
    }
}

fn commit(
    name: &'static str,
    text: &str,
    violations: &mut Vec<FieldViolation>,
) -> Option<CommitId> {
    let before = violations.len();
    let id = field(name, text, violations);
    // A short id, a ref or a tag could come to mean another commit tomorrow: told apart from mere nonsense.
    for violation in violations.iter_mut().skip(before) {
        if !text.is_empty() {
            violation.code = RefusedCode::ShortSha;
        }
    }
    id
}

impl ScoreRequest {
    /// Where.
    #[must_use]
    pub const fn repository(&self) -> &RepoName {
        &self.repository
    }
    /// What is to be scored.
    #[must_use]
    pub const fn head(&self) -> &CommitId {
        &self.head
    }
    /// What is to supply the oracle; `None` is the protected tip.
    #[must_use]
    pub const fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }
    /// The caller's idempotency key.
    #[must_use]
    pub const fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }
    /// Whether stored attempts may serve.
    #[must_use]
    pub const fn freshness(&self) -> Freshness {
        self.freshness
    }
    /// What is run for advice.
    #[must_use]
    pub const fn advice(&self) -> Advice {
        self.advice
    }
    /// Who asks.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test may stop at the first surprise"
    )]
    use super::*;

    fn caller(role: Role, scope: Option<&str>) -> Caller {
        Caller {
            token: "00000000000000aa".parse().unwrap(),
            role,
            scope: scope.map(|s| s.parse().unwrap()),
        }
    }

    fn raw() -> RawScoreRequest {
        RawScoreRequest {
            repository: "demo".to_owned(),
            head: "a".repeat(40),
            base: String::new(),
            request_id: String::new(),
            fresh: false,
            proposed: false,
        }
    }

    #[test]
    fn a_request_that_holds_keeps_its_parts() {
        let request = RawScoreRequest {
            base: "b".repeat(64),
            request_id: "job-1".to_owned(),
            ..raw()
        };
        let checked = request.check(&caller(Role::Agent, Some("demo"))).unwrap();
        assert_eq!(checked.head().as_str(), "a".repeat(40));
        assert_eq!(checked.base().unwrap().as_str(), "b".repeat(64));
        assert_eq!(checked.request_id().unwrap().as_str(), "job-1");
        assert_eq!(checked.freshness(), Freshness::Stored);
    }

    #[test]
    fn all_violations_come_together_with_their_codes() {
        let request = RawScoreRequest {
            repository: "../etc".to_owned(),
            head: "abc1234".to_owned(),
            base: "refs/heads/main".to_owned(),
            request_id: "a b".to_owned(),
            fresh: true,
            proposed: false,
        };
        let Err(RequestError::Fields(violations)) = request.check(&caller(Role::Agent, None))
        else {
            panic!("not refused")
        };
        let seen: Vec<_> = violations.iter().map(|v| (v.field, v.code)).collect();
        assert_eq!(
            seen,
            [
                ("parent", RefusedCode::InvalidArgument),
                ("head", RefusedCode::ShortSha),
                ("base", RefusedCode::ShortSha),
                ("request_id", RefusedCode::InvalidArgument),
            ]
        );
    }

    #[test]
    fn upper_case_and_padded_ids_are_not_full_ids() {
        for head in [
            "A".repeat(40),
            format!(" {}", "a".repeat(39)),
            "a".repeat(41),
        ] {
            let request = RawScoreRequest { head, ..raw() };
            let error = request.check(&caller(Role::Operator, None)).unwrap_err();
            assert!(matches!(error, RequestError::Fields(_)), "{error}");
        }
    }

    #[test]
    fn fresh_and_scope_go_by_the_token() {
        for (role, fresh, scope, allowed) in [
            (Role::Agent, true, None, false),
            (Role::Ci, true, None, false),
            (Role::Maintainer, true, None, true),
            (Role::Operator, true, None, true),
            (Role::Agent, false, Some("demo"), true),
            (Role::Operator, false, Some("other"), false),
        ] {
            let request = RawScoreRequest { fresh, ..raw() };
            match request.check(&caller(role, scope)) {
                Ok(_) => assert!(allowed, "{role:?} {scope:?}"),
                Err(RequestError::Refused(refused)) => {
                    assert!(!allowed, "{role:?} {scope:?}");
                    assert_eq!(refused.code, RefusedCode::Forbidden);
                }
                Err(RequestError::Fields(violations)) => panic!("{violations:?}"),
            }
        }
    }
}
