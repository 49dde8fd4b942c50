//! From our three columns of trouble to gRPC statuses: one table, and one ErrorInfo on every status.

use crate::pipeline::NoVerdict;
use crate::repository::RepositoryError;
use crate::store::StoreError;
use std::collections::HashMap;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use tribunal_core::reason::{Aborted, AbortedCode, Refused, RefusedCode};
use tribunal_core::request::{FieldViolation, RequestError};
use tribunal_core::text::shown;

/// The domain of every ErrorInfo.
pub const DOMAIN: &str = "tribunal";
/// A status travels in headers, which clients bound.
const MESSAGE_CAP: usize = 1000;

/// Whether asking again may help, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same request gets the same answer.
    Pointless,
    /// After so many seconds.
    After(u64),
}

/// The code of a refusal on the wire.
#[must_use]
pub const fn refused_code(code: RefusedCode) -> (Code, Retry) {
    use Retry::{After, Pointless};
    match code {
        RefusedCode::UnknownRepository | RefusedCode::UnknownCommit | RefusedCode::NotFound => {
            (Code::NotFound, Pointless)
        }
        RefusedCode::NotACommit
        | RefusedCode::ShortSha
        | RefusedCode::TooLarge
        | RefusedCode::BadPath
        | RefusedCode::BadObject
        | RefusedCode::InvalidArgument => (Code::InvalidArgument, Pointless),
        RefusedCode::BaseNotProtected
        | RefusedCode::NoMergeBase
        | RefusedCode::PolicyInvalid
        | RefusedCode::MergeConflict
        | RefusedCode::MissingPrerequisite
        | RefusedCode::RunnerPackageClash => (Code::FailedPrecondition, Pointless),
        RefusedCode::Quota => (Code::ResourceExhausted, After(30)),
        RefusedCode::QueueFull => (Code::ResourceExhausted, After(10)),
        RefusedCode::UploadIncomplete => (Code::Aborted, After(1)),
        RefusedCode::Unauthenticated => (Code::Unauthenticated, Pointless),
        RefusedCode::Forbidden => (Code::PermissionDenied, Pointless),
    }
}

/// The code of an abort on the wire: all of it is worth another try but what the caller ended.
#[must_use]
pub const fn aborted_code(code: AbortedCode) -> (Code, Retry) {
    use Retry::{After, Pointless};
    match code {
        AbortedCode::EngineUnavailable => (Code::Unavailable, After(5)),
        AbortedCode::ImageMissing | AbortedCode::DiskFull => (Code::Unavailable, After(60)),
        AbortedCode::ServerRestarted => (Code::Unavailable, After(2)),
        AbortedCode::Deadline => (Code::Unavailable, After(10)),
        AbortedCode::Cancelled => (Code::Cancelled, Pointless),
        AbortedCode::Internal => (Code::Internal, After(5)),
    }
}

/// A refusal as a status.
pub(super) fn refused(refused: &Refused) -> Status {
    let (code, retry) = refused_code(refused.code);
    let details = details(refused.code.code(), refused.code.advice(), retry);
    with(code, &refused.message, details)
}

/// An abort as a status.
pub(super) fn aborted(aborted: &Aborted) -> Status {
    let (code, retry) = aborted_code(aborted.code);
    let details = details(aborted.code.code(), aborted.code.advice(), retry);
    with(code, &aborted.message, details)
}

/// All fields that do not hold, as one status.
pub(super) fn fields(violations: &[FieldViolation]) -> Status {
    // One code of its own where all of them have the same one.
    let code = match violations {
        [first, rest @ ..] if rest.iter().all(|v| v.code == first.code) => first.code,
        _ => RefusedCode::InvalidArgument,
    };
    let (grpc, retry) = refused_code(code);
    let mut details = details(code.code(), code.advice(), retry);
    let mut parts = Vec::new();
    for violation in violations {
        details.add_bad_request_violation(violation.field, violation.description.clone());
        parts.push(format!("{}: {}", violation.field, violation.description));
    }
    with(grpc, &parts.join("; "), details)
}

/// The caller's own deadline has passed.
pub(super) fn deadline() -> Status {
    let code = AbortedCode::Deadline;
    let details = details(code.code(), code.advice(), Retry::Pointless);
    with(
        Code::DeadlineExceeded,
        "the deadline of the call has passed; the score goes on and can be watched again",
        details,
    )
}

/// The details for a status that something below us made: a frame too large, a message that does not parse, an unknown
/// method.
pub(super) fn details_for(code: Code) -> ErrorDetails {
    let refusal = |code: RefusedCode| details(code.code(), code.advice(), refused_code(code).1);
    let abort = |code: AbortedCode| details(code.code(), code.advice(), aborted_code(code).1);
    match code {
        Code::ResourceExhausted | Code::OutOfRange => refusal(RefusedCode::TooLarge),
        Code::NotFound | Code::Unimplemented => refusal(RefusedCode::NotFound),
        Code::PermissionDenied => refusal(RefusedCode::Forbidden),
        Code::Unauthenticated => refusal(RefusedCode::Unauthenticated),
        Code::InvalidArgument
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::DataLoss => refusal(RefusedCode::InvalidArgument),
        Code::Cancelled => abort(AbortedCode::Cancelled),
        Code::DeadlineExceeded => abort(AbortedCode::Deadline),
        Code::Unavailable => abort(AbortedCode::ServerRestarted),
        Code::Ok | Code::Unknown | Code::Internal => abort(AbortedCode::Internal),
    }
}

fn details(code: &'static str, advice: &str, retry: Retry) -> ErrorDetails {
    let reason = code.to_ascii_uppercase().replace('-', "_");
    let metadata = HashMap::from([
        ("code".to_owned(), code.to_owned()),
        ("advice".to_owned(), advice.to_owned()),
    ]);
    let mut details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
    if let Retry::After(seconds) = retry {
        details.set_retry_info(Some(Duration::from_secs(seconds)));
    }
    details
}

fn with(code: Code, message: &str, details: ErrorDetails) -> Status {
    Status::with_error_details(code, shown(message, MESSAGE_CAP), details)
}

/// Anything of ours that can become a status.
pub(super) trait IntoStatus {
    fn into_status(self) -> Status;
}

impl IntoStatus for Refused {
    fn into_status(self) -> Status {
        refused(&self)
    }
}
impl IntoStatus for Aborted {
    fn into_status(self) -> Status {
        aborted(&self)
    }
}
impl IntoStatus for StoreError {
    fn into_status(self) -> Status {
        let trouble = Aborted::from(self);
        tracing::error!(error = %trouble, "the store failed a call");
        // What broke inside is for the operator's log.
        match trouble.code {
            AbortedCode::Internal => aborted(&Aborted::new(trouble.code, "the store failed")),
            AbortedCode::EngineUnavailable
            | AbortedCode::ImageMissing
            | AbortedCode::DiskFull
            | AbortedCode::ServerRestarted
            | AbortedCode::Cancelled
            | AbortedCode::Deadline => aborted(&trouble),
        }
    }
}
impl IntoStatus for NoVerdict {
    fn into_status(self) -> Status {
        match self {
            Self::Refused(refused) => refused.into_status(),
            Self::Aborted(aborted) => aborted.into_status(),
        }
    }
}
impl IntoStatus for RepositoryError {
    fn into_status(self) -> Status {
        match self {
            Self::Refused(refused) => refused.into_status(),
            Self::Aborted(aborted) => aborted.into_status(),
        }
    }
}
impl IntoStatus for RequestError {
    fn into_status(self) -> Status {
        match self {
            Self::Fields(violations) => fields(&violations),
            Self::Refused(refused) => refused.into_status(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;

    fn reason(status: &Status) -> String {
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.domain, "tribunal");
        info.reason
    }

    #[test]
    fn every_code_has_its_reason_and_no_code_is_ok() {
        for code in RefusedCode::ALL {
            let status = refused(&Refused::new(*code, "what in particular"));
            let upper = code.code().to_ascii_uppercase().replace('-', "_");
            assert_eq!(reason(&status), upper);
            assert_eq!(status.message(), "what in particular");
            assert_eq!(
                status.get_details_retry_info().is_some(),
                refused_code(*code).1 != Retry::Pointless
            );
        }
        for code in AbortedCode::ALL {
            let status = aborted(&Aborted::new(*code, "what in particular"));
            let upper = code.code().to_ascii_uppercase().replace('-', "_");
            assert_eq!(reason(&status), upper);
            // Our own trouble is worth another try; what the caller ended is not.
            assert_eq!(
                status.get_details_retry_info().is_none(),
                *code == AbortedCode::Cancelled
            );
        }
    }

    #[test]
    fn the_table_of_codes_is_what_clients_were_told() {
        let table: Vec<_> = RefusedCode::ALL
            .iter()
            .map(|c| format!("{c} {:?}", refused_code(*c).0))
            .chain(
                AbortedCode::ALL
                    .iter()
                    .map(|c| format!("{c} {:?}", aborted_code(*c).0)),
            )
            .collect();
        let expected = [
            "unknown-repository NotFound",
            "unknown-commit NotFound",
            "not-a-commit InvalidArgument",
            "short-sha InvalidArgument",
            "base-not-protected FailedPrecondition",
            "no-merge-base FailedPrecondition",
            "too-large InvalidArgument",
            "bad-path InvalidArgument",
            "bad-object InvalidArgument",
            "quota ResourceExhausted",
            "queue-full ResourceExhausted",
            "policy-invalid FailedPrecondition",
            "merge-conflict FailedPrecondition",
            "missing-prerequisite FailedPrecondition",
            "upload-incomplete Aborted",
            "runner-package-clash FailedPrecondition",
            "unauthenticated Unauthenticated",
            "forbidden PermissionDenied",
            "invalid-argument InvalidArgument",
            "not-found NotFound",
            "engine-unavailable Unavailable",
            "image-missing Unavailable",
            "disk-full Unavailable",
            "server-restarted Unavailable",
            "cancelled Cancelled",
            "deadline Unavailable",
            "internal Internal",
        ];
        assert_eq!(table, expected);
    }

    #[test]
    fn violations_come_together_and_share_a_code_only_if_they_agree() {
        let violation = |field, code| FieldViolation {
            field,
            description: "is wrong".to_owned(),
            code,
        };
        let short = fields(&[
            violation("head", RefusedCode::ShortSha),
            violation("base", RefusedCode::ShortSha),
        ]);
        assert_eq!(reason(&short), "SHORT_SHA");
        let mixed = fields(&[
            violation("head", RefusedCode::ShortSha),
            violation("parent", RefusedCode::InvalidArgument),
        ]);
        assert_eq!(reason(&mixed), "INVALID_ARGUMENT");
        let all = mixed.get_details_bad_request().unwrap().field_violations;
        let names: Vec<_> = all.iter().map(|v| v.field.as_str()).collect();
        assert_eq!(names, ["head", "parent"]);
    }

    #[test]
    fn what_the_store_says_of_itself_stays_inside() {
        let status = StoreError::Corrupt("tokens of alice".to_owned()).into_status();
        assert_eq!(reason(&status), "INTERNAL");
        assert!(!status.message().contains("alice"));
    }

    #[test]
    fn a_hostile_message_is_capped_and_escaped() {
        let long = format!("\u{1b}[31m{}", "x".repeat(5000));
        let status = refused(&Refused::new(RefusedCode::BadPath, long));
        assert!(status.message().len() < 1100);
        assert!(!status.message().contains('\u{1b}'));
    }
}
