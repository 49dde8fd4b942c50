//! A failure as an agent gets it: always with a reason code, always with what to do next.

use crate::exit::Exit;
use crate::failure::Failure;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use tribunal_core::text::shown;

/// Longest text of one field.
const TEXT: usize = 1000;

/// Why a call came to nothing
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ErrorAnswer {
    /// The server's reason code, or one of this client's: usage, bad-workspace, unreachable, not-allowed, no-verdict, refused, unverified
    pub(super) code: String,
    /// What failed
    pub(super) what: String,
    /// The cause
    pub(super) why: String,
    /// What to do
    pub(super) next: String,
}

impl ErrorAnswer {
    pub(super) fn text(&self) -> String {
        format!("{}\nnext: {}", self.headline(), self.next)
    }

    /// Without what to do.
    pub(super) fn headline(&self) -> String {
        format!("{}: {}: {}", self.code, self.what, self.why)
    }

    /// Half of the cause; whether there was anything to leave out.
    pub(super) fn shrink(&mut self) -> bool {
        let longest = [&mut self.why, &mut self.next, &mut self.what]
            .into_iter()
            .max_by_key(|text| text.chars().count());
        match longest {
            Some(text) if text.chars().count() > 80 => {
                let half = text.chars().count() / 2;
                *text = text.chars().take(half).chain(['…']).collect();
                true
            }
            Some(_) | None => false,
        }
    }
}

impl From<&Failure> for ErrorAnswer {
    fn from(failure: &Failure) -> Self {
        Self {
            code: shown(failure.code.as_deref().unwrap_or(word(failure.exit)), 60),
            what: shown(&format!("failed to {}", failure.what), TEXT),
            why: shown(&failure.why, TEXT),
            next: shown(&failure.next, TEXT),
        }
    }
}

/// The code of a failure that neither the server nor the protocol names.
const fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::MergeOk => "ok",
        Exit::Blocked | Exit::ForbiddenMark | Exit::CassetteGap => "blocked",
        Exit::NoVerdict => "no-verdict",
        Exit::Unverified => "unverified",
        Exit::Usage => "usage",
        Exit::Refused => "refused",
        Exit::Unreachable => "unreachable",
        Exit::NotAllowed => "not-allowed",
    }
}
