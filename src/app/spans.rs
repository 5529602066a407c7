//! Exports spans to a collector, by OTLP over HTTP.
//!
//! Exporting never delays the bot: a span that ended is put into a queue of limited length, from which a task sends batches.
//! Spans for which there is no room, or which the collector does not take, are dropped and counted. The transport of the
//! exporter's own crate was rejected as a design, since it has a client of its own; ours has the certificates, proxies and
//! limits of all other requests.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use countersign_config::Telemetry;
use countersign_core::spans::{self, Exporter};
use countersign_services::http::{self, Answer, Lost};
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _},
};
use opentelemetry_proto::{
    tonic::collector::trace::v1::ExportTraceServiceRequest,
    transform::{common::tonic::ResourceAttributesWithSchema, trace::tonic::group_spans_by_resource_and_scope},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Sampler, SdkTracer, SdkTracerProvider, Span, SpanData, SpanProcessor},
};
use prost::Message as _;
use reqwest::{Client, header};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, registry::LookupSpan};
use url::Url;

/// The maximum number of spans in the queue: those of some hundred turns.
const MAX_QUEUED: usize = 4096;

/// The maximum number of spans in a request.
const MAX_SENT: usize = 512;

/// The wait for more spans before a request.
const WAIT: Duration = Duration::from_secs(1);

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for the last requests when the bot stops.
const LAST: Duration = Duration::from_secs(2);

/// The number of bytes that are read of an answer.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A running export.
pub struct Export {
    tracer: SdkTracer,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

impl Export {
    /// Starts the export, if the settings name a collector. One that does not answer is no error.
    ///
    /// # Errors
    ///
    /// Fails if no client can be set up.
    pub fn start(settings: &Telemetry) -> anyhow::Result<Option<Self>> {
        let Some(collector) = Collector::of(settings)? else { return Ok(None) };
        let (spans, queue) = mpsc::channel(MAX_QUEUED);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample))))
            .with_span_processor(Queue { spans, ends: Mutex::default() })
            .build();
        let stop = CancellationToken::new();
        let task = tokio::spawn(collector.send_all(queue, stop.clone()));
        spans::export_with(Exporter { parent, link });
        Ok(Some(Self { tracer: provider.tracer("countersign"), stop, task }))
    }

    /// Returns the layer that hands over the spans of the program. Log lines are no part of it, since they may contain
    /// answers of other systems.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.tracer.clone())
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
    }

    /// Sends what is in the queue, for a short time, and ends.
    pub async fn finish(self) {
        self.stop.cancel();
        if timeout(LAST, self.task).await.is_err() {
            tracing::warn!("The collector of traces does not answer; the last spans are dropped");
        }
    }
}

/// Asks the collector to take no spans at all. `None` if the settings name none.
///
/// # Errors
///
/// The reason why it does not.
pub(super) async fn check(settings: &Telemetry) -> Option<Result<String, String>> {
    let collector = match Collector::of(settings) {
        Ok(collector) => collector?,
        Err(error) => return Some(Err(format!("{error:#}"))),
    };
    let taken = collector.send(Vec::new()).await.map(|()| format!("{} takes traces", collector.url));
    Some(taken.map_err(|reason| format!("{} takes no traces: {reason}", collector.url)))
}

/// Where spans are sent.
struct Collector {
    client: Client,
    url: Url,
    headers: Vec<(String, SecretString)>,
    resource: ResourceAttributesWithSchema,
}

impl Collector {
    fn of(settings: &Telemetry) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &settings.otlp_endpoint else { return Ok(None) };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let url: Url = url.parse().context("telemetry.otlp_endpoint is not an address")?;
        let client = http::client(&url, TIMEOUT).context("cannot set up the export of traces")?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", settings.service_name.clone()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ]);
        let resource = ResourceAttributesWithSchema::from(&resource.build());
        Ok(Some(Self { client, url, headers: settings.headers(), resource }))
    }

    /// Sends the spans in the queue until `stop`, and what is left then.
    async fn send_all(self, mut queue: mpsc::Receiver<SpanData>, stop: CancellationToken) {
        let mut is_taken = true;
        loop {
            let mut batch = Vec::new();
            let first = stop.run_until_cancelled(queue.recv_many(&mut batch, 1)).await;
            if first.is_some() {
                stop.run_until_cancelled(tokio::time::sleep(WAIT)).await;
            }
            while let Ok(span) = queue.try_recv() {
                batch.push(span);
                if batch.len() == MAX_SENT {
                    break;
                }
            }
            if batch.is_empty() && stop.is_cancelled() {
                return;
            }
            let count = batch.len();
            let sent = self.send(batch).await;
            if let Err(reason) = &sent {
                dropped(count);
                if is_taken {
                    tracing::warn!(reason, "The collector takes no traces; they are dropped until it does");
                }
            }
            is_taken = sent.is_ok();
        }
    }

    async fn send(&self, batch: Vec<SpanData>) -> Result<(), String> {
        let resource_spans = match batch.is_empty() {
            true => Vec::new(),
            false => group_spans_by_resource_and_scope(batch, &self.resource),
        };
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let request =
            self.client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/x-protobuf").body(body);
        let headers = self.headers.iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value.expose_secret()));
        match http::send("collector", request, MAX_ANSWER_BYTES).await {
            Ok(Answer { status, .. }) if status.is_success() => Ok(()),
            Ok(Answer { status, .. }) => Err(format!("it answers {status}")),
            Err(Lost::NotSent { reason } | Lost::NoAnswer { reason, .. } | Lost::TooLong { reason }) => Err(reason),
            Err(Lost::RunOut) => Err("nothing was sent".to_owned()),
        }
    }
}

/// The queue of spans that ended.
#[derive(Debug)]
struct Queue {
    spans: mpsc::Sender<SpanData>,
    /// The last end of a span in each trace whose first span is open. A span is closed after those below it, but counts as
    /// ended when its own work ended; the first one is to end with the last.
    ends: Mutex<HashMap<TraceId, SystemTime>>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, mut span: SpanData) {
        let trace = span.span_context.trace_id();
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if span.parent_span_id == SpanId::INVALID {
            span.end_time = ends.remove(&trace).map_or(span.end_time, |last| last.max(span.end_time));
        } else {
            let last = ends.entry(trace).or_insert(span.end_time);
            *last = span.end_time.max(*last);
        }
        drop(ends);
        if self.spans.try_send(span).is_err() {
            dropped(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

fn dropped(count: usize) {
    metrics::counter!("countersign_spans_dropped_total").increment(count as u64);
}

/// Returns the place of a sampled span in its trace, as the header `traceparent`.
fn parent(span: &tracing::Span) -> Option<String> {
    let context = span.context();
    let context = context.span().span_context().clone();
    let is_exported = context.is_valid() && context.is_sampled();
    is_exported.then(|| format!("00-{}-{}-01", context.trace_id(), context.span_id()))
}

/// Links a span to the one with this `traceparent`.
fn link(span: &tracing::Span, to: &str) {
    let mut parts = to.split('-').skip(1);
    let trace = parts.next().and_then(|id| TraceId::from_hex(id).ok());
    let other = parts.next().and_then(|id| SpanId::from_hex(id).ok());
    if let (Some(trace), Some(other)) = (trace, other) {
        span.add_link(SpanContext::new(trace, other, TraceFlags::SAMPLED, true, TraceState::default()));
    }
}
