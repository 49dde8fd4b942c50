//! A server without the feature: there is no exporter, and spans are the log's alone.

use super::{Spans, TracesError};
use crate::notify::Endpoint;
use tracing::Span;
use tribunal_core::trace::TraceParent;

/// There is none.
#[derive(Debug)]
pub enum Traces {}

impl Traces {
    /// Never.
    ///
    /// # Errors
    /// `NotBuilt`.
    pub const fn open(_: &Endpoint, _: &str) -> Result<Self, TracesError> {
        Err(TracesError::NotBuilt)
    }

    /// Of nobody.
    #[must_use]
    pub const fn layer(&self) -> Spans {
        match *self {}
    }

    /// Nothing is left to tell.
    pub const fn shut(self) {
        match self {}
    }
}

/// The log has the id; nobody else is told.
pub(crate) const fn follow(_: &Span, _: &TraceParent) {}
