//! Logs and metrics of the process.

use std::{
    any::Any,
    io::{self, IsTerminal},
    panic,
    sync::OnceLock,
    time::Duration,
};

use countersign_config::{self as config, LogFormat};
use countersign_core::spans::TRACE_ID;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, LevelFilter, filter_fn},
    fmt::MakeWriter,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::spans::Export;

static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();

/// The interval at which distributions are summed up.
const UPKEEP_EVERY: Duration = Duration::from_secs(10);

/// The prefix of the program's own crates. Log lines of all other crates come from libraries.
const OWN_PREFIX: &str = "countersign";

/// The library whose log lines contain payloads and connection tickets, at every level.
const SILENCED_LIBRARY: &str = "slack_morphism";

/// Starts logging to standard error, and logging and counting all panics. `levels` is a filter such as
/// `info,countersign::slack=debug`; an invalid one, which the settings normally refuse, is replaced by `info`.
/// Spans go to `export`, if there is one.
pub fn log(levels: &str, format: LogFormat, export: Option<&Export>) {
    subscriber(levels, format, io::stderr().is_terminal(), io::stderr, export).try_init().ok();
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let cause = public_part(info.payload());
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        metrics::counter!("countersign_panics_total").increment(1);
        tracing::error!(place, cause, thread, "A thread or task panicked; this is a fault in the program");
    }));
}

/// Returns a subscriber that writes log lines of these levels, and hands spans over to `export`, whatever the levels.
///
/// Regardless of the levels, lines of the Slack library are never written, nor are lines of any library below `info`,
/// since they contain payloads, tokens and tickets.
pub fn subscriber<W>(
    levels: &str,
    format: LogFormat,
    ansi: bool,
    writer: W,
    export: Option<&Export>,
) -> impl Subscriber + Send + Sync + use<W>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let levels = EnvFilter::try_new(config::log_directives(levels)).unwrap_or_else(|_| EnvFilter::new("info"));
    // A line of a turn says in which trace it is.
    let levels = match export {
        Some(_) => levels.or(filter_fn(is_first_span).with_max_level_hint(LevelFilter::DEBUG)).boxed(),
        None => FilterExt::boxed(levels),
    };
    let may_be_written = filter_fn(may_be_written).with_max_level_hint(LevelFilter::TRACE);
    let spans = filter_fn(|of| of.is_span() && is_own(of)).with_max_level_hint(LevelFilter::DEBUG);
    // A line that cannot be written, because the reader is gone, is dropped: reporting the error would panic.
    let lines = tracing_subscriber::fmt::layer::<Registry>().with_writer(writer).log_internal_errors(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(ansi).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    Registry::default()
        .with(lines.with_filter(may_be_written.and(levels)))
        .with(export.map(|export| export.layer().with_filter(spans)))
}

/// Returns true for a span that may be the first of a trace.
fn is_first_span(of: &Metadata<'_>) -> bool {
    of.is_span() && of.fields().field(TRACE_ID).is_some()
}

/// Returns true if a line or span is one of the program's own.
fn is_own(of: &Metadata<'_>) -> bool {
    let first = of.target().split("::").next().unwrap_or_default();
    first.strip_prefix(OWN_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Returns true if a line may be written, regardless of the levels.
fn may_be_written(line: &Metadata<'_>) -> bool {
    let of = |target: &str, name: &str| target.split("::").next() == Some(name);
    let silent =
        of(line.target(), SILENCED_LIBRARY) || line.module_path().is_some_and(|path| of(path, SILENCED_LIBRARY));
    !silent && (is_own(line) || *line.level() <= Level::INFO)
}

/// Returns the part of a panic message before the first interpolated value, which cannot contain text of a user.
pub fn public_part(panic: &(dyn Any + Send)) -> &str {
    if let Some(constant) = panic.downcast_ref::<&'static str>() {
        return constant;
    }
    let message = panic.downcast_ref::<String>().map_or("no message", String::as_str);
    message.split([':', '`', '"', '\'', ';', '“']).next().unwrap_or_default().trim()
}

/// Starts recording metrics. It takes up to 0.2 s, since the library first compares the clocks of the machine; until then,
/// nothing is counted. A second call in the same process has no effect.
pub fn count() {
    if let Ok(handle) = super::metrics::builder().and_then(PrometheusBuilder::install_recorder) {
        super::metrics::describe();
        METRICS.set(handle).ok();
    }
}

/// Keeps the memory for distributions small until `stop`, even if nobody asks for the metrics.
pub(super) async fn keep_up(stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(UPKEEP_EVERY)).await.is_some() {
        if let Some(handle) = METRICS.get() {
            handle.run_upkeep();
        }
    }
}

/// Returns the metrics, in the text format of Prometheus.
pub fn metrics() -> String {
    METRICS.get().map(PrometheusHandle::render).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the output for log lines of our own, of a library and of the Slack library.
    fn written(levels: &str, format: LogFormat) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing::subscriber::with_default(subscriber(levels, format, false, move || writer.clone(), None), || {
            tracing::error!(target: "slack_morphism::socket_mode", "xapp-1 wss://slack?ticket=t");
            tracing::trace!(target: "slack_morphism", "the words of a message");
            tracing::debug!(target: "hyper::proto", "authorization xoxb-1");
            tracing::warn!(target: "hyper::proto", "a library warns");
            tracing::debug!(target: "countersign::slack", "ours in detail");
            tracing::info!(target: "countersign::slack", "ours");
        });
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn what_may_hold_secrets_is_silent_at_every_setting() {
        let settings = [
            "trace",
            "slack_morphism=trace",
            "slack_morphism=debug,trace",
            "info,slack_morphism::socket_mode=trace,hyper=trace",
            "inf,slack_morphism=debug",
            "not a level at all!!,=",
            "countersign=tarce,slack_morphism=trace",
            "",
        ];
        for levels in settings {
            for format in [LogFormat::Text, LogFormat::Json] {
                let written = written(levels, format);
                for secret in ["xapp-1", "ticket", "words of a message", "xoxb-1"] {
                    assert!(!written.contains(secret), "{levels}: {written}");
                }
            }
        }
        let all = written("trace", LogFormat::Text);
        assert!(all.contains("ours in detail") && all.contains("a library warns"), "{all}");
    }

    #[test]
    fn a_panic_is_told_without_values() {
        let described = |panic: Box<dyn Any + Send>| public_part(&*panic).to_owned();
        assert_eq!(described(Box::new("no holder panics")), "no holder panics");
        assert_eq!(described(Box::new("no holder panics: PoisonError { .. }".to_owned())), "no holder panics");
        let slice = "byte index 5 is not a char boundary; it is inside 'é' of `delete Math Hints`".to_owned();
        assert_eq!(described(Box::new(slice)), "byte index 5 is not a char boundary");
        assert_eq!(described(Box::new(7)), "no message");
    }
}
