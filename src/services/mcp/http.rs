//! The HTTP transport of a session. Each request is sent on a connection of its own, under a permit and with limits.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use countersign_core::{clock::Clock, permit::Permit};
use countersign_services::{
    changes::{Changes, Opened},
    http::Lost,
};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use hyper::{
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use reqwest::{Client, RequestBuilder};
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// The maximum length of the text of a refusal, in characters.
const MAX_REFUSAL_CHARS: usize = 300;

/// The reason why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// There is no answer.
    #[error("{}", reason_of(.0))]
    Lost(Lost),
    /// The server answered with an error.
    #[error("HTTP {status}: {said}")]
    Status { status: u16, said: String },
    /// The connection was lost in the middle of an answer.
    #[error("the connection was lost in the middle of an answer")]
    CutOff,
    /// The answer cannot be read.
    #[error("the answer cannot be read")]
    Unreadable,
    /// The answer is longer than the limit.
    #[error("its answer is longer than the limit of {most} bytes")]
    TooLong { most: usize },
}

fn reason_of(lost: &Lost) -> &str {
    match lost {
        Lost::NotSent { reason } | Lost::NoAnswer { reason, .. } | Lost::TooLong { reason } => reason,
        Lost::RunOut => "the deadline for sending this had passed",
    }
}

impl From<HttpError> for StreamableHttpError<HttpError> {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

/// The client that sends the messages of a session.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) changes: Arc<Changes>,
    pub(crate) requests: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timeout: Duration,
    pub(crate) longest: usize,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

type Refused = StreamableHttpError<HttpError>;

impl Http {
    /// Sends a request under its permit. A request that only reads gets a permit for the duration of its time-out.
    async fn open(&self, request: RequestBuilder, permit: Option<Permit>) -> Result<Opened, HttpError> {
        let permit = permit.unwrap_or_else(|| Permit::new(self.clock.clone(), self.timeout));
        self.changes.open(request, &permit).await.map_err(HttpError::Lost)
    }

    /// Adds the headers of a session.
    fn with_headers(
        request: RequestBuilder,
        session: Option<&str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let request = match session {
            Some(session) => request.header(SESSION, session),
            None => request,
        };
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    /// Reads a whole body, up to the limit.
    async fn body(&self, mut opened: Opened) -> Result<Vec<u8>, HttpError> {
        let read = async {
            let mut body = Vec::new();
            while let Some(bytes) = opened.next().await {
                body.extend_from_slice(&bytes.map_err(|_| HttpError::CutOff)?);
                if body.len() > self.longest {
                    return Err(HttpError::TooLong { most: self.longest });
                }
            }
            Ok(body)
        };
        tokio::time::timeout(self.timeout, read).await.unwrap_or(Err(HttpError::CutOff))
    }

    /// Converts an answer with an error status to an error.
    async fn refusal(&self, opened: Opened, in_session: bool) -> Refused {
        let status = opened.head.status.as_u16();
        let body = self.body(opened).await.unwrap_or_default();
        let said = match serde_json::from_slice::<serde_json::Value>(&body) {
            Ok(json) => json["error"]["message"].as_str().or(json["error"].as_str()).unwrap_or_default().to_owned(),
            Err(_) => String::new(),
        };
        let of_session = status == 404 || status == 400 && said.to_lowercase().contains("session");
        match in_session && of_session {
            true => Refused::SessionExpired,
            false => HttpError::Status { status, said: said.chars().take(MAX_REFUSAL_CHARS).collect() }.into(),
        }
    }

    /// Returns the events of an answer. The limit applies to all events together if `whole` is true, else to each
    /// event.
    fn events(&self, opened: Opened, whole: bool) -> BoxStream<'static, Result<Sse, SseError>> {
        let most = self.longest;
        let bytes = stream::unfold((Some(opened), 0_usize), move |(opened, read)| async move {
            let mut opened = opened?;
            let bytes = match opened.next().await? {
                Ok(bytes) => bytes,
                Err(_) => return Some((Err(HttpError::CutOff), (None, 0))),
            };
            let ends_event = !whole && bytes.windows(2).any(|two| two == b"\n\n");
            let read = if ends_event { 0 } else { read + bytes.len() };
            match read > most {
                true => Some((Err(HttpError::TooLong { most }), (None, 0))),
                false => Some((Ok::<Bytes, HttpError>(bytes), (Some(opened), read))),
            }
        });
        SseStream::from_bytes_stream(bytes).boxed()
    }
}

/// Returns true if the answer has this content type.
fn has_content_type(opened: &Opened, kind: &str) -> bool {
    let found = opened.head.headers.get(CONTENT_TYPE).and_then(|found| found.to_str().ok()).unwrap_or_default();
    found.split(';').next().is_some_and(|found| found.trim().eq_ignore_ascii_case(kind))
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Refused> {
        let permit = match &message {
            JsonRpcMessage::Request(request) => request.request.extensions().get::<Permit>().cloned(),
            _ => None,
        };
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        let request = self.requests.post(&*uri).header(ACCEPT, format!("{JSON}, {EVENTS}")).json(&message);
        let request = Self::with_headers(request, session_id.as_deref(), auth_header, custom_headers);
        let opened = self.open(request, permit).await?;
        let status = opened.head.status;
        if !status.is_success() {
            return Err(self.refusal(opened, session_id.is_some()).await);
        }
        if status.as_u16() == 202 || status.as_u16() == 204 || !is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = opened.head.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if has_content_type(&opened, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(opened, true), session));
        }
        if !has_content_type(&opened, JSON) {
            return Err(HttpError::Unreadable.into());
        }
        let body = self.body(opened).await?;
        let answer = serde_json::from_slice(&body).map_err(|_| HttpError::Unreadable)?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Refused> {
        let request = Self::with_headers(self.requests.delete(&*uri), Some(&session_id), auth_header, custom_headers);
        match self.open(request, None).await?.head.status.as_u16() {
            405 => Err(Refused::ServerDoesNotSupportDeleteSession),
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Refused> {
        let request = self.requests.get(&*uri).header(ACCEPT, EVENTS);
        let request = match last_event_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        let request = Self::with_headers(request, session_id.as_deref(), auth_header, custom_headers);
        let opened = self.open(request, None).await?;
        match opened.head.status.as_u16() {
            405 => Err(Refused::ServerDoesNotSupportSse),
            200..300 if has_content_type(&opened, EVENTS) => Ok(self.events(opened, false)),
            200..300 => Err(Refused::ServerDoesNotSupportSse),
            _ => Err(self.refusal(opened, session_id.is_some()).await),
        }
    }
}
