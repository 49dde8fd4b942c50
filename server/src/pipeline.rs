//! One score from request to signed files, one line a room. Refusals come out of `admit`, verdicts and aborts out of `score`.

use crate::repository::Repository;
use crate::sandbox::Sandbox;
use std::sync::Arc;
use tribunal_core::reason::{Aborted, Refused};

/// The rooms a score walks through, each behind its seam.
#[derive(Clone)]
pub struct Rooms {
    /// Mirrors and uploads.
    pub repository: Arc<dyn Repository>,
    /// Sealed rooms.
    pub sandbox: Arc<dyn Sandbox>,
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum NoVerdict {
    /// The request's fault.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Ours.
    #[error(transparent)]
    Aborted(#[from] Aborted),
}
