//! The HTTP transport of a session. Each request is sent on a connection of its own, under a permit and with limits.
//! Redirects are followed only on the same server.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use countersign_core::{clock::Clock, send_permit::SendPermit};
use countersign_services::{
    changes::{Changes, Opened},
    http::Lost,
};
use countersign_wire::capped::size;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use hyper::{
    body::Bytes,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION},
};
use reqwest::{Client, Method, RequestBuilder};
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, RequestId},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use secrecy::{ExposeSecret as _, SecretString};
use sse_stream::{Sse, SseStream};
use tracing::{Instrument as _, Span};
use url::Url;

use crate::{handler::TooLong, sign_in::SignIn, tasks_only::TasksOnly};

pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENTS: &str = "text/event-stream";
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
    #[error("its answer is longer than the limit of {}", size(*.most))]
    TooLong { most: usize },
    /// The server sends its clients to another address.
    #[error("it redirects to {to}, which is another server; if that is right, set it as the address")]
    Redirects { to: String },
    /// Nobody is signed in, or the sign-in is over.
    #[error("{0}")]
    NotSignedIn(String),
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
    /// The limit on an answer, in bytes, as it is told.
    pub(crate) longest: usize,
    /// The number of bytes after which no more is read.
    pub(crate) most_read: usize,
    /// The headers of the settings.
    pub(crate) headers: Arc<Vec<(String, SecretString)>>,
    pub(crate) token: Option<SecretString>,
    pub(crate) sign_in: Option<Arc<SignIn>>,
    pub(crate) too_long: Arc<TooLong>,
    pub(crate) tasks_only: Arc<TasksOnly>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

type Refused = StreamableHttpError<HttpError>;

/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 3;

impl Http {
    /// Sends a request under its permit. A request that only reads gets a permit for the duration of its time-out.
    ///
    /// With a sign-in, a request that is refused for its token is sent again with a new one: the server did nothing.
    pub(crate) async fn open(&self, request: RequestBuilder, permit: Option<SendPermit>) -> Result<Opened, HttpError> {
        let again = request.try_clone();
        let token = match &self.sign_in {
            Some(sign_in) => Some(sign_in.token().await?),
            None => self.token.clone(),
        };
        let opened = self.open_with(request, permit.clone(), token).await?;
        match (&self.sign_in, again) {
            (Some(sign_in), Some(request)) if opened.head.status.as_u16() == 401 => {
                let token = sign_in.new_token().await?;
                self.open_with(request, permit, Some(token)).await
            }
            _ => Ok(opened),
        }
    }

    /// Sends a request with this token. Redirects are followed on the same server, where they say that the request is to
    /// be repeated as it is.
    async fn open_with(
        &self,
        request: RequestBuilder,
        permit: Option<SendPermit>,
        token: Option<SecretString>,
    ) -> Result<Opened, HttpError> {
        let permit = permit.unwrap_or_else(|| SendPermit::new(self.clock.clone(), self.timeout));
        let headers = self.headers.iter();
        let mut request = headers.fold(request, |request, (name, value)| request.header(name, value.expose_secret()));
        if let Some(token) = &token {
            request = request.bearer_auth(token.expose_secret());
        }
        for _ in 0..MAX_REDIRECTS {
            let again = request.try_clone();
            let opened = self.changes.open(request, &permit).await.map_err(HttpError::Lost)?;
            let status = opened.head.status.as_u16();
            if !matches!(status, 301..=303 | 307 | 308) {
                return Ok(opened);
            }
            let (client, next) = again.ok_or(HttpError::Unreadable)?.build_split();
            let mut next = next.map_err(|_| HttpError::Unreadable)?;
            let to = opened.head.headers.get(LOCATION).and_then(|to| next.url().join(to.to_str().ok()?).ok());
            let Some(to) = to else { return Ok(opened) };
            let is_same = to.origin() == next.url().origin() && (status >= 307 || next.method() == Method::GET);
            if !is_same {
                return Err(HttpError::Redirects { to: shown(&to) });
            }
            *next.url_mut() = to;
            request = RequestBuilder::from_parts(client, next);
        }
        Err(HttpError::Redirects { to: "itself, again and again".to_owned() })
    }

    /// Adds the headers of a session.
    fn with_headers(
        request: RequestBuilder,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> RequestBuilder {
        let request = match session {
            Some(session) => request.header(SESSION, session),
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
                if body.len() > self.most_read {
                    return Err(HttpError::TooLong { most: self.longest });
                }
            }
            Ok(body)
        };
        tokio::time::timeout(self.timeout, read).await.unwrap_or(Err(HttpError::CutOff))
    }

    /// Converts an answer with an error status to an error.
    pub(crate) async fn refusal(&self, opened: Opened, in_session: bool) -> Refused {
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

    /// Returns the events of an answer, as long as they keep to the limit.
    pub(crate) fn events(&self, opened: Opened, limit: Limit) -> BoxStream<'static, Result<Sse, SseError>> {
        let (most, most_read, too_long) = (self.longest, self.most_read, self.too_long.clone());
        let whole = matches!(limit, Limit::Answer(_));
        let reported = match limit {
            Limit::Answer(id) => Some(Some(id)),
            Limit::EachAnswer => Some(None),
            Limit::EachNotice => None,
        };
        let state = (Some(opened), 0_usize, (too_long, reported));
        let bytes = stream::unfold(state, move |(opened, read, report)| async move {
            let mut opened = opened?;
            let bytes = match opened.next().await? {
                Ok(bytes) => bytes,
                Err(_) => return Some((Err(HttpError::CutOff), (None, 0, report))),
            };
            let ends_event = !whole && bytes.windows(2).any(|two| two == b"\n\n");
            let read = if ends_event { 0 } else { read + bytes.len() };
            if read <= most_read {
                return Some((Ok::<Bytes, HttpError>(bytes), (Some(opened), read, report)));
            }
            if let (too_long, Some(id)) = &report {
                too_long.report(id.clone());
            }
            Some((Err(HttpError::TooLong { most }), (None, 0, report)))
        });
        let tasks_only = self.tasks_only.clone();
        let noted = SseStream::from_bytes_stream(bytes).inspect(move |event| {
            if let Ok(Sse { data: Some(data), .. }) = event {
                tasks_only.note(data.as_bytes());
            }
        });
        noted.boxed()
    }
}

/// The part of a stream of events that the limit on the size applies to.
pub(crate) enum Limit {
    /// All events: they are the answer to one request.
    Answer(RequestId),
    /// Each event, which may be the answer to any request.
    EachAnswer,
    /// Each event; none of them is an answer.
    EachNotice,
}

/// Returns an address without a password.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

/// Returns true if the answer has this content type.
pub(crate) fn has_content_type(opened: &Opened, kind: &str) -> bool {
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
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Refused> {
        let permit = match &message {
            JsonRpcMessage::Request(request) => request.request.extensions().get::<SendPermit>().cloned(),
            _ => None,
        };
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let request = self.requests.post(&*uri).header(ACCEPT, format!("{JSON}, {EVENTS}")).json(&message);
        let request = Self::with_headers(request, session_id.as_deref(), custom_headers);
        // The library sends messages in a task of its own.
        let span = match &message {
            JsonRpcMessage::Request(request) => request.request.extensions().get::<Span>().cloned(),
            _ => None,
        };
        let opened = self.open(request, permit).instrument(span.unwrap_or_else(Span::none)).await?;
        let status = opened.head.status;
        if !status.is_success() {
            return Err(self.refusal(opened, session_id.is_some()).await);
        }
        let Some(id) = id.filter(|_| !matches!(status.as_u16(), 202 | 204)) else {
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let session = opened.head.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if has_content_type(&opened, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(opened, Limit::Answer(id)), session));
        }
        if !has_content_type(&opened, JSON) {
            return Err(HttpError::Unreadable.into());
        }
        let body = self.body(opened).await?;
        self.tasks_only.note(&body);
        let answer = serde_json::from_slice(&body).map_err(|_| HttpError::Unreadable)?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Refused> {
        let request = Self::with_headers(self.requests.delete(&*uri), Some(&session_id), custom_headers);
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
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Refused> {
        let request = self.requests.get(&*uri).header(ACCEPT, EVENTS);
        let request = match last_event_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        let request = Self::with_headers(request, session_id.as_deref(), custom_headers);
        let opened = self.open(request, None).await?;
        match opened.head.status.as_u16() {
            405 => Err(Refused::ServerDoesNotSupportSse),
            200..300 if has_content_type(&opened, EVENTS) => Ok(self.events(opened, Limit::EachNotice)),
            200..300 => Err(Refused::ServerDoesNotSupportSse),
            _ => Err(self.refusal(opened, session_id.is_some()).await),
        }
    }
}
