//! The log: lines on stderr through a filter that can be exchanged, and beside it whoever else is told of spans.

use std::io::{self, IsTerminal as _};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, reload};
use tribunal_server::config::LogFormat;
use tribunal_server::traces::Spans;

/// Exchanges the filter.
pub(crate) type Refilter = Box<dyn Fn(&str) + Send + Sync>;

/// From now on.
pub(crate) fn begin(filter: &str, format: LogFormat, spans: Option<Spans>) -> Refilter {
    // A filter that does not parse is told by the check of the configuration.
    let parsed =
        |filter: &str| EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(parsed(filter));
    let lines = fmt::layer().with_writer(io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(spans)
        .with(lines.with_filter(filter))
        .init();
    Box::new(move |filter| drop(handle.reload(parsed(filter))))
}
