//! A collector of traces: takes what is exported, by the official definition of the protocol.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::any_value::Value,
    trace::v1::Span,
};
use prost::Message as _;

/// What the collector does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Takes,
    Fails,
    Hangs,
}

/// A running collector.
pub(crate) struct Collector {
    pub(crate) url: String,
    taken: Arc<Mutex<Vec<Span>>>,
}

/// A span with what a test asks about.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) id: String,
    /// Empty for the first of a trace.
    pub(crate) parent: String,
    pub(crate) trace: String,
    pub(crate) name: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The traces of the spans that it is linked to.
    pub(crate) links: Vec<String>,
}

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Self {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let take = async move |State(taken): State<Arc<Mutex<Vec<Span>>>>, headers: HeaderMap, body: Bytes| match manner
        {
            Manner::Takes => {
                assert_eq!(headers["authorization"], "Bearer secret");
                assert_eq!(headers["content-type"], "application/x-protobuf");
                let request = ExportTraceServiceRequest::decode(body).unwrap();
                for of in request.resource_spans {
                    let resource = format!("{:?}", of.resource);
                    assert!(resource.contains("service.name") && resource.contains("the bot"), "{resource}");
                    taken.lock().unwrap().extend(of.scope_spans.into_iter().flat_map(|scope| scope.spans));
                }
                (StatusCode::OK, ExportTraceServiceResponse::default().encode_to_vec())
            }
            Manner::Fails => (StatusCode::INTERNAL_SERVER_ERROR, Vec::new()),
            Manner::Hangs => std::future::pending().await,
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(taken.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, taken }
    }

    /// The spans, in the order in which they began.
    pub(crate) fn spans(&self) -> Vec<Seen> {
        let mut seen: Vec<Seen> = self.taken.lock().unwrap().iter().map(Seen::of).collect();
        seen.sort_by_key(|span| span.began);
        seen
    }
}

impl Seen {
    fn of(span: &Span) -> Self {
        let text = |value: &Value| match value {
            Value::StringValue(text) => text.clone(),
            other => format!("{other:?}"),
        };
        let value = |of: &opentelemetry_proto::tonic::common::v1::KeyValue| {
            text(of.value.as_ref().unwrap().value.as_ref().unwrap())
        };
        assert!(span.events.is_empty(), "log lines are not exported: {span:?}");
        Self {
            id: hex::encode(&span.span_id),
            parent: hex::encode(&span.parent_span_id),
            trace: hex::encode(&span.trace_id),
            name: span.name.clone(),
            began: span.start_time_unix_nano,
            ended: span.end_time_unix_nano,
            attributes: span.attributes.iter().map(|of| (of.key.clone(), value(of))).collect(),
            links: span.links.iter().map(|link| hex::encode(&link.trace_id)).collect(),
        }
    }
}

/// The spans of a trace as a tree, with the time that each took.
pub(crate) fn tree(spans: &[Seen], trace: &str) -> String {
    let mut text = String::new();
    below(spans, trace, "", 0, &mut text);
    text
}

fn below(spans: &[Seen], trace: &str, parent: &str, depth: usize, text: &mut String) {
    for span in spans.iter().filter(|span| span.trace == trace && span.parent == parent) {
        let told = span.attributes.iter().filter(|(key, _)| ["action.name", "status", "kind"].contains(&key.as_str()));
        let told: String = told.map(|(key, value)| format!(" {key}={value}")).collect();
        let ms = (span.ended - span.began) as f64 / 1e6;
        let link = if span.links.is_empty() { "" } else { " (linked to the trace of the card)" };
        text.push_str(&format!("{}{}{told} {ms:.1} ms{link}\n", "  ".repeat(depth), span.name));
        below(spans, trace, &span.id, depth + 1, text);
    }
}
