//! Spans of calls and scores for an OpenTelemetry collector, over OTLP: where a score's time went, in its caller's own trace.
//!
//! Says names of stages, ids of scores and codes of ends. Never what a commit, a test or a caller wrote, and no line of the
//! log. A collector that does not answer costs spans and nothing else. Built with the feature `otel` alone; without it there
//! is nobody to tell, and a configuration that names one does not hold.

#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
mod nobody;

#[cfg(feature = "otel")]
pub use export::Traces;
#[cfg(feature = "otel")]
pub(crate) use export::follow;
#[cfg(not(feature = "otel"))]
pub use nobody::Traces;
#[cfg(not(feature = "otel"))]
pub(crate) use nobody::follow;

/// What a collector is told with, beside whatever else becomes of spans.
pub type Spans = Box<dyn tracing_subscriber::Layer<tracing_subscriber::Registry> + Send + Sync>;

/// Why nobody is told.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// Without the feature.
    #[error("export traces: this server was built without the feature `otel`")]
    NotBuilt,
    /// The collector's address, or TLS.
    #[error("export traces: {0}")]
    Exporter(String),
}

/// Whether there is somebody who could tell.
pub const BUILT: bool = cfg!(feature = "otel");
