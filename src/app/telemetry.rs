//! Logs and metrics of the process.

use std::{io::IsTerminal, sync::OnceLock};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Starts logging to standard error. `levels` such as `info,countersign=debug`; a mistake in them falls back to `info`.
///
/// The Slack library is kept silent: it logs payloads and the tickets of its connections.
pub fn log(levels: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(format!("{levels},slack_morphism=off")).unwrap_or_else(|_| EnvFilter::new("info"));
    // A line that cannot be written, since nobody reads any more, is lost: complaining about it would panic.
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).try_init().ok(),
        LogFormat::Json => subscriber.json().try_init().ok(),
    };
}

/// Starts counting. Once for a process; a second call changes nothing.
pub fn count() {
    if let Ok(handle) = PrometheusBuilder::new().install_recorder() {
        METRICS.set(handle).ok();
    }
}

/// What was counted, in the text format of Prometheus.
pub fn metrics() -> String {
    METRICS.get().map(PrometheusHandle::render).unwrap_or_default()
}
