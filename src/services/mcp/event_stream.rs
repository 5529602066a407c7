//! The transport of the protocol's first version: the server sends its messages as a stream of events, which begins with
//! the address that the client posts its own to.

use std::{fmt, time::Duration};

use countersign_core::send_permit::SendPermit;
use futures_util::{StreamExt as _, stream::BoxStream};
use hyper::header::ACCEPT;
use rmcp::{
    model::{GetExtensions as _, JsonRpcMessage},
    service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        Transport,
        streamable_http_client::{SseError, StreamableHttpError},
    },
};
use sse_stream::Sse;
use tokio::time::timeout;
use url::Url;

use crate::http::{EVENTS, Http, HttpError, Limit, has_content_type};

/// The time limit for the first event.
const FIRST_EVENT: Duration = Duration::from_secs(5);

/// A connection over the older transport.
pub(crate) struct EventStream {
    http: Http,
    endpoint: Url,
    events: BoxStream<'static, Result<Sse, SseError>>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl EventStream {
    /// Opens the stream, and reads the address for the client's messages, which must be on the same server.
    ///
    /// # Errors
    ///
    /// If the server does not speak this transport.
    pub(crate) async fn open(http: Http, url: &Url) -> Result<Self, HttpError> {
        let opened = http.open(http.requests.get(url.clone()).header(ACCEPT, EVENTS), None).await?;
        if !opened.head.status.is_success() || !has_content_type(&opened, EVENTS) {
            return Err(HttpError::Unreadable);
        }
        let mut events = http.events(opened, Limit::EachAnswer);
        let first = timeout(FIRST_EVENT, events.next()).await.ok().flatten();
        let Some(Ok(Sse { event: Some(kind), data: Some(place), .. })) = first else {
            return Err(HttpError::Unreadable);
        };
        let endpoint = url.join(place.trim()).map_err(|_| HttpError::Unreadable)?;
        if kind != "endpoint" {
            return Err(HttpError::Unreadable);
        }
        match endpoint.origin() == url.origin() {
            true => Ok(Self { http, endpoint, events }),
            false => Err(HttpError::Redirects { to: endpoint.to_string() }),
        }
    }
}

impl Transport<RoleClient> for EventStream {
    type Error = StreamableHttpError<HttpError>;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (http, endpoint) = (self.http.clone(), self.endpoint.clone());
        async move {
            let permit = match &message {
                JsonRpcMessage::Request(request) => request.request.extensions().get::<SendPermit>().cloned(),
                _ => None,
            };
            let opened = http.open(http.requests.post(endpoint).json(&message), permit).await?;
            match opened.head.status.is_success() {
                true => Ok(()),
                false => Err(http.refusal(opened, true).await),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.events.next().await?.ok()?;
            let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
            if let Some(message) = event.data.filter(|_| is_message).and_then(|data| serde_json::from_str(&data).ok()) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}
