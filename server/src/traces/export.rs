//! The exporter: spans of this crate alone, in batches, from a thread of its own.

use super::{Spans, TracesError};
use crate::notify::Endpoint;
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;
use tribunal_core::trace::{Sampling, TraceParent};

/// One batch to the collector.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who tells a collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Inside of a runtime, which the exporter's connection lives on.
    ///
    /// # Errors
    /// `Exporter`.
    pub fn open(collector: &Endpoint, name: &str) -> Result<Self, TracesError> {
        let address = collector.to_string();
        let mut exporter = SpanExporter::builder().with_tonic();
        if address.starts_with("https://") {
            let tls = ClientTlsConfig::new().with_native_roots();
            exporter = exporter.with_tls_config(tls);
        }
        let exporter = exporter
            .with_endpoint(address)
            .with_timeout(PATIENCE)
            .build()
            .map_err(|error| TracesError::Exporter(error.to_string()))?;
        // Nothing of the environment: what is told stands in the configuration.
        let resource = Resource::builder_empty()
            .with_service_name("tribunal-server")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("service.instance.id", name.to_owned()))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    /// Our own spans, without events: those are the log's, and may show what a candidate wrote.
    #[must_use]
    pub fn layer(&self) -> Spans {
        let tracer = self.provider.tracer("tribunal-server");
        let ours = filter_fn(|about| {
            about.is_span() && about.target().split("::").next() == Some("tribunal_server")
        });
        tracing_opentelemetry::layer()
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_tracer(tracer)
            .with_filter(ours)
            .boxed()
    }

    /// Tell what was not told yet, with a bound. Blocking.
    pub fn shut(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(PATIENCE) {
            tracing::warn!(%error, "the last spans were not told");
        }
    }
}

/// The span goes on in its caller's trace.
pub(crate) fn follow(span: &Span, parent: &TraceParent) {
    let flags = match parent.sampling() {
        Sampling::Recorded => TraceFlags::SAMPLED,
        Sampling::Not => TraceFlags::default(),
    };
    let remote = SpanContext::new(
        TraceId::from_bytes(parent.trace()),
        SpanId::from_bytes(parent.span()),
        flags,
        true,
        TraceState::default(),
    );
    let context = Context::new().with_remote_span_context(remote);
    // Without a collector nobody follows.
    let _ = span.set_parent(context);
}
