//! A gRPC status becomes a failure: the documented code where the server gives one, the transport's trouble otherwise.

use crate::exit::Exit;
use crate::failure::Failure;
use std::str::FromStr as _;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tribunal_core::reason::{AbortedCode, RefusedCode};
use tribunal_core::text::{shown, shown_block};

/// The domain of our own error details.
const DOMAIN: &str = "tribunal";

/// The documented code that a status carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Documented {
    /// The request's fault.
    Refused(RefusedCode),
    /// The server's trouble.
    Aborted(AbortedCode),
}

/// The code in a status's ErrorInfo.
pub(super) fn documented(status: &Status) -> Option<Documented> {
    let info = status.get_details_error_info()?;
    if info.domain != DOMAIN {
        return None;
    }
    let code = info.reason.to_ascii_lowercase().replace('_', "-");
    RefusedCode::from_str(&code)
        .map(Documented::Refused)
        .or_else(|_| AbortedCode::from_str(&code).map(Documented::Aborted))
        .ok()
}

/// Whether asking again may help, and how soon, as far as the connection is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// No.
    Pointless,
    /// After this long.
    After(Duration),
}

/// Whether a call that is safe to repeat should be repeated.
pub(super) fn again(status: &Status) -> Again {
    let said = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay)
        .unwrap_or(Duration::from_millis(500));
    match documented(status) {
        Some(
            Documented::Refused(RefusedCode::QueueFull | RefusedCode::UploadIncomplete)
            | Documented::Aborted(AbortedCode::ServerRestarted),
        ) => Again::After(said),
        Some(Documented::Refused(_) | Documented::Aborted(_)) => Again::Pointless,
        None if is_transport(status) => Again::After(said),
        None => Again::Pointless,
    }
}

/// Whether the connection broke, as opposed to the server saying something.
pub(super) fn is_transport(status: &Status) -> bool {
    documented(status).is_none()
        && matches!(
            status.code(),
            Code::Unavailable
                | Code::Unknown
                | Code::Cancelled
                | Code::Internal
                | Code::DeadlineExceeded
        )
}

/// What a status means for the caller. `what` completes "failed to …".
#[must_use]
pub fn failure_of(what: &str, status: &Status) -> Failure {
    let message = message_of(status);
    match documented(status) {
        Some(Documented::Refused(code)) => {
            let exit = if matches!(code, RefusedCode::Unauthenticated | RefusedCode::Forbidden) {
                Exit::NotAllowed
            } else {
                Exit::Refused
            };
            Failure::new(exit, what, message, code.advice()).coded(code.code())
        }
        Some(Documented::Aborted(code)) => {
            Failure::new(Exit::NoVerdict, what, message, code.advice()).coded(code.code())
        }
        None => undocumented(what, status, message),
    }
}

fn undocumented(what: &str, status: &Status, message: String) -> Failure {
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => Failure::new(
            Exit::NotAllowed,
            what,
            message,
            "give a token that the server knows and that may do this",
        ),
        Code::Unimplemented => Failure::new(
            Exit::Unreachable,
            what,
            format!("what answers does not know this call: {message}"),
            "check the address, and that client and server are of the same version",
        ),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => {
            let why = match std::error::Error::source(status) {
                Some(source) => super::cause(source),
                None => message,
            };
            Failure::new(
                Exit::Unreachable,
                what,
                why,
                "check the address and that the server runs, then ask again",
            )
        }
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange => Failure::new(
            Exit::Refused,
            what,
            message,
            "mend what the server says, then ask again",
        ),
    }
}

/// The message with the fields that are wrong and the time to wait, escaped.
fn message_of(status: &Status) -> String {
    let mut text = shown_block(status.message(), 2000);
    if let Some(fields) = status.get_details_bad_request() {
        for violation in fields.field_violations.iter().take(50) {
            text.push_str(&format!(
                "\n  {}: {}",
                shown(&violation.field, 100),
                shown(&violation.description, 300)
            ));
        }
    }
    if let Some(delay) = status.get_details_retry_info().and_then(|i| i.retry_delay) {
        text.push_str(&format!(" (retry in {} s)", delay.as_secs().max(1)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic_types::ErrorDetails;

    fn status(code: Code, reason: &str, domain: &str) -> Status {
        let mut details = ErrorDetails::new();
        details.set_error_info(reason, domain, HashMap::new());
        Status::with_error_details(code, "what happened", details)
    }

    #[test]
    fn every_documented_code_has_its_exit() {
        for code in RefusedCode::ALL {
            let reason = code.code().to_ascii_uppercase().replace('-', "_");
            let failure = failure_of("ask", &status(Code::InvalidArgument, &reason, DOMAIN));
            let want = match code.code() {
                "unauthenticated" | "forbidden" => Exit::NotAllowed,
                _ => Exit::Refused,
            };
            assert_eq!(
                (failure.exit, failure.code.as_deref()),
                (want, Some(code.code()))
            );
            assert_eq!(failure.next, code.advice());
        }
        for code in AbortedCode::ALL {
            let reason = code.code().to_ascii_uppercase().replace('-', "_");
            let failure = failure_of("ask", &status(Code::Unavailable, &reason, DOMAIN));
            assert_eq!(
                (failure.exit, failure.code.as_deref()),
                (Exit::NoVerdict, Some(code.code()))
            );
        }
    }

    #[test]
    fn what_others_say_is_told_by_its_code() {
        let rows = [
            (Code::Unavailable, Exit::Unreachable),
            (Code::Unimplemented, Exit::Unreachable),
            (Code::Unauthenticated, Exit::NotAllowed),
            (Code::PermissionDenied, Exit::NotAllowed),
            (Code::NotFound, Exit::Refused),
        ];
        for (code, exit) in rows {
            assert_eq!(failure_of("ask", &Status::new(code, "no")).exit, exit);
            // A proxy's own details are not ours.
            assert_eq!(
                failure_of("ask", &status(code, "QUOTA", "proxy.example")).exit,
                exit
            );
        }
    }

    #[test]
    fn only_what_may_change_is_asked_again() {
        assert_ne!(again(&Status::unavailable("x")), Again::Pointless);
        assert_ne!(
            again(&status(Code::ResourceExhausted, "QUEUE_FULL", DOMAIN)),
            Again::Pointless
        );
        assert_ne!(
            again(&status(Code::Unavailable, "SERVER_RESTARTED", DOMAIN)),
            Again::Pointless
        );
        assert_eq!(
            again(&status(Code::ResourceExhausted, "QUOTA", DOMAIN)),
            Again::Pointless
        );
        assert_eq!(
            again(&status(Code::Unavailable, "CANCELLED", DOMAIN)),
            Again::Pointless
        );
        assert_eq!(again(&Status::invalid_argument("x")), Again::Pointless);
    }

    #[test]
    fn text_from_afar_is_escaped() {
        let failure = failure_of("ask", &Status::not_found("\u{1b}[2Jgone"));
        assert!(!failure.to_string().contains('\u{1b}'));
    }
}
