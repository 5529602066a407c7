//! Spans of a turn, for a collector of traces. Without one, they are disabled and cost nothing.
//!
//! A trace begins where something arrives ([`begun`]); everything that follows from it in this process is below it, since
//! tasks are spawned in the current span. Spans contain ids, names of actions and nodes, statuses and counts, and no words
//! of people. The crate that exports spans is known only to the composition root, which tells here how to read the id of a
//! span ([`Exporter`]); so no other crate depends on it.
//!
//! Spans are of the level `debug`, so that without a collector they are disabled at the usual log level.

use std::{borrow::Cow, sync::OnceLock, time::Instant};

use tracing::{Instrument as _, Span, debug_span, field::Empty};

/// The functions of the exporter, for a span that is exported.
#[derive(Debug)]
pub struct Exporter {
    /// Returns the span's place in its trace, as the header `traceparent` of W3C; `None` if the trace is not sampled.
    pub parent: fn(&Span) -> Option<String>,
    /// Links the span to another one, which is named as in `traceparent`.
    pub link: fn(&Span, &str),
}

static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// The field with the trace id, which the first span of a process in a trace has. It stands in each log line below it.
pub const TRACE_ID: &str = "trace.id";

/// The position of the trace id in a `traceparent`: after the version, before the id of the span.
const ID_IN_PARENT: std::ops::Range<usize> = 3..35;

/// Sets the exporter. A second one in the same process is ignored.
pub fn export_with(exporter: Exporter) {
    EXPORTER.set(exporter).ok();
}

/// Returns true if spans are exported.
pub fn are_exported() -> bool {
    EXPORTER.get().is_some()
}

/// Returns a new span that has the field [`TRACE_ID`]. If there is no other around it, it begins a trace, whose id is
/// recorded in the field.
pub fn begun(span: Span) -> Span {
    if Span::current().is_none()
        && let Some(parent) = parent_of(&span)
    {
        span.record(TRACE_ID, &parent[ID_IN_PARENT]);
    }
    span
}

/// Returns the place of the current span in its trace, as `traceparent`; `None` if it is not exported.
pub fn parent() -> Option<String> {
    if are_exported() { parent_of(&Span::current()) } else { None }
}

/// Returns the id of the current trace, if it is exported.
pub fn trace_id() -> Option<String> {
    parent().map(|parent| parent[ID_IN_PARENT].to_owned())
}

/// Links the current span to the span with this `traceparent`, if there is one.
pub fn link(to: Option<&str>) {
    if let (Some(exporter), Some(to)) = (EXPORTER.get(), to) {
        (exporter.link)(&Span::current(), to);
    }
}

fn parent_of(span: &Span) -> Option<String> {
    (EXPORTER.get()?.parent)(span)
}

/// Makes a call of an outside system: measures it, and gives it a span if it is part of a turn. `status` returns the end
/// of the call, as an HTTP status or a word, of which there are only few: `ok` or `2xx` is a success.
pub async fn call<T>(
    system: &'static str,
    method: &str,
    call: impl Future<Output = T>,
    status: impl FnOnce(&T) -> Cow<'static, str>,
) -> T {
    let span = match Span::current().is_none() {
        true => Span::none(),
        false => debug_span!(
            "call",
            otel.name = format!("{system} {method}"),
            otel.kind = "client",
            otel.status_code = Empty,
            system,
            method,
            status = Empty
        ),
    };
    let begun = Instant::now();
    let result = call.instrument(span.clone()).await;
    let status = status(&result);
    span.record("status", &*status);
    if status != "ok" && !status.starts_with('2') {
        span.record("otel.status_code", "ERROR");
    }
    metrics::histogram!("countersign_outbound_seconds", "system" => system, "status" => status)
        .record(begun.elapsed().as_secs_f64());
    result
}
