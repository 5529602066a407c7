//! A language model behind a provider's API, with streamed answers.
//!
//! [`Remote`] is the same for all providers: it sends a request, reads the events of the answer, and repeats the
//! request if that may help (`call`), also without what the model refuses (`learnt`). An [`Api`] converts requests, and
//! its [`Assembly`] converts the events.
//!
//! The answer is always streamed, so that a stalled call is noticed after a quarter of its time limit, and repeated while
//! the person is still waiting; and so that its words can be shown before it is complete ([`Request::words`]).

use std::{borrow::Cow, fmt, marker::PhantomData, pin::pin, time::Duration};

use async_trait::async_trait;
use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use tokio::time::timeout;
use tracing::{Instrument as _, info_span};
use url::Url;

pub use crate::call::{Fault, Remedy};
use crate::{
    Error, Model, Request, Response, Usage,
    call::{Call, Caller, Failure},
    learnt::{Change, Learnt},
    prices::{NANO, Price},
    words::Words,
};

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// The maximum length of invalid arguments that are kept, in characters.
const MAX_KEPT_ARGUMENTS: usize = 300;

/// The settings of a model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the API.
    pub base_url: Url,
    /// The API key. A blank one is not sent, for servers that need none.
    pub api_key: SecretString,
    /// The model's name.
    pub model: String,
    /// The time limit of one attempt. An attempt also ends after a quarter of this time without data. All attempts
    /// together, with the waits between them, take at most 1.5 times this limit.
    pub timeout: Duration,
    /// The maximum number of attempts; at least one.
    pub attempts: u32,
    /// Members that are added to each request.
    pub extra: Map<String, Value>,
    /// The price of the model, if it is known.
    pub price: Option<Price>,
}

impl Settings {
    /// Returns the key as the value of a header; `None` if it is blank.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the key is not a valid header value.
    pub(crate) fn key(&self, prefix: &str) -> Result<Option<HeaderValue>, Error> {
        let key = self.api_key.expose_secret().trim();
        if key.is_empty() {
            return Ok(None);
        }
        let mut value = HeaderValue::from_str(&format!("{prefix}{key}")).map_err(|_| Error::Auth)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Returns the address of this path in the API. The query of the API's address, such as a version, stays at the end.
    pub(crate) fn at(&self, path: &str) -> String {
        let (base, query) = match self.base_url.as_str().split_once('?') {
            Some((base, query)) => (base, Some(query)),
            None => (self.base_url.as_str(), None),
        };
        let base = base.trim_end_matches('/');
        match (query, path.split_once('?')) {
            (None, _) => format!("{base}{path}"),
            (Some(query), None) => format!("{base}{path}?{query}"),
            (Some(query), Some((path, own))) => format!("{base}{path}?{own}&{query}"),
        }
    }
}

/// Adds members to a body. Objects in both are merged.
pub(crate) fn merge(body: &mut Value, extra: &Map<String, Value>) {
    for (member, value) in extra {
        match (&mut body[member], value) {
            (there @ Value::Object(_), Value::Object(more)) => merge(there, more),
            (there, value) => *there = value.clone(),
        }
    }
}

/// The number of tokens beyond the length of an answer for the thoughts of a model, which the providers count as well. The
/// newest models think by default.
pub(crate) const ROOM_FOR_THOUGHTS: u32 = 4096;

/// The conversion of requests and answers for the API of one provider.
pub trait Api: fmt::Debug + Send + Sync + 'static {
    /// An answer that is being received.
    type Answer: Assembly;

    /// Returns the address for requests.
    fn endpoint(settings: &Settings) -> String;

    /// Returns the address of the list of models.
    fn list_endpoint(settings: &Settings) -> String;

    /// Returns the headers of all requests.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the key is not a valid header value.
    fn headers(settings: &Settings) -> Result<HeaderMap, Error>;

    /// Returns the body of a request.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the API would not accept the request, because of a fault in the program.
    fn body(settings: &Settings, request: &Request) -> Result<Value, Error>;

    /// Parses the body of a refusal.
    fn fault(body: &[u8]) -> Fault;

    /// Converts the answer to a request, if it must be different from the one of the API.
    fn converted(_request: &Request, response: Response) -> Response {
        response
    }
}

/// An answer that is being received.
pub trait Assembly: Default + Send {
    /// Adds one event. Returns true if it was the last one.
    ///
    /// # Errors
    ///
    /// [`Broken`] if there will be no answer.
    fn take_event(&mut self, event: &str) -> Result<bool, Broken>;

    /// Returns the text so far, for people.
    fn text(&self) -> Cow<'_, str>;

    /// Returns true if the answer is complete when the stream ends without a last event.
    fn is_complete(&self) -> bool {
        false
    }

    /// Returns the complete answer.
    ///
    /// # Errors
    ///
    /// [`Broken::Unreadable`] if the answer has no stop reason.
    fn finish(self) -> Result<Response, Broken>;
}

/// The reason why an answer cannot be completed.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// The API reported an error during the answer.
    Reported(Fault),
    /// An event is invalid. Contains a description of the fault.
    Unreadable(String),
}

impl Broken {
    /// Describes a JSON error without quoting the input.
    pub(crate) fn of_json(error: &serde_json::Error) -> Self {
        Self::Unreadable(match error.classify() {
            serde_json::error::Category::Data => "an event lacks what it must have".to_owned(),
            _ => "an event isn't JSON".to_owned(),
        })
    }

    /// Creates the error of an answer without a stop reason.
    pub(crate) fn without_reason() -> Self {
        Self::Unreadable("it ends without a reason".to_owned())
    }

    fn into_failure(self) -> Failure {
        match self {
            Self::Unreadable(reason) => Failure::decode(&reason),
            Self::Reported(fault) => fault.into_failure(),
        }
    }
}

/// A model that is called through an API.
pub struct Remote<A> {
    caller: Caller,
    settings: Settings,
    endpoint: String,
    learnt: Learnt,
    api: PhantomData<A>,
}

impl<A: Api> Remote<A> {
    /// Creates a client, without sending a request.
    ///
    /// # Errors
    ///
    /// [`Error::Auth`] if the key is not a valid header value, [`Error::Unavailable`] if TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let headers = A::headers(&settings)?;
        let caller = Caller::new(&settings.base_url, headers, settings.timeout, settings.attempts)?;
        let (endpoint, learnt) = (A::endpoint(&settings), Learnt::of(&settings.model));
        Ok(Self { caller, endpoint, settings, learnt, api: PhantomData })
    }

    /// Sends a request in its present form.
    async fn send(&self, request: &Request, body: &Value) -> Result<Response, Error> {
        let body = body.to_string();
        let span = info_span!("model_call", model.name = self.settings.model, purpose = ?request.purpose);
        let body = Some(body.as_bytes());
        let call = Call { url: &self.endpoint, accept: "text/event-stream", body, fault: A::fault };
        let max_silence = self.caller.max_silence();
        let words = request.words.as_ref();
        let read = move |response| read::<A::Answer>(response, max_silence, words);
        let mut answer = self.caller.call(call, read).instrument(span).await;
        if let (Ok(answer), Some(price)) = (&mut answer, &self.settings.price) {
            answer.usage.nano_usd = Some(price.cost(&answer.usage));
        }
        self.count(answer.as_ref().ok());
        answer
    }

    /// Counts a call and, if it was answered, its tokens and its cost.
    fn count(&self, answer: Option<&Response>) {
        let model = || self.settings.model.clone();
        let result = if answer.is_some() { "ok" } else { "failed" };
        metrics::counter!("countersign_model_calls_total", "model" => model(), "result" => result).increment(1);
        let Some(usage) = answer.map(|answer| &answer.usage) else { return };
        let Usage { model: _, input_tokens, cached_tokens, output_tokens, nano_usd } = usage;
        for (kind, tokens) in [("input", input_tokens), ("cached", cached_tokens), ("output", output_tokens)] {
            metrics::counter!("countersign_model_tokens_total", "model" => model(), "kind" => kind).increment(*tokens);
        }
        if let Some(nano_usd) = nano_usd {
            metrics::histogram!("countersign_model_cost_usd", "model" => model()).record(*nano_usd as f64 / NANO);
        }
    }
}

#[async_trait]
impl<A: Api> Model for Remote<A> {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn refused_members(&self) -> Vec<String> {
        self.learnt.members()
    }

    async fn respond(&self, request: &Request) -> Result<Response, Error> {
        let mut body = A::body(&self.settings, request)?;
        let extra = &self.settings.extra;
        merge(&mut body, extra);
        let mut changes = self.learnt.changes();
        changes.iter().for_each(|change| change.apply(&mut body));
        let (known, mut refusals) = (changes.len(), Vec::new());
        // Each change is tried once, so this ends.
        let response = loop {
            match self.send(request, &body).await {
                Err(Error::Refused { reason }) => {
                    let change = Change::for_refusal(&reason, &body, extra);
                    let change = change.filter(|change| !change.is_settled_by(&changes));
                    refusals.push(reason);
                    let Some(change) = change else {
                        return Err(Error::Refused { reason: refusals.join("; ") });
                    };
                    change.apply(&mut body);
                    changes.push(change);
                }
                outcome => break outcome?,
            }
        };
        self.learnt.keep(&self.settings.model, &changes[known..]);
        Ok(A::converted(request, response))
    }
}

impl<A> fmt::Debug for Remote<A> {
    /// Formats only the name, since the address may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("model", &self.settings.model).finish_non_exhaustive()
    }
}

/// Parses the arguments of a tool call; `None` if there are none. Arguments that are not valid JSON become a string. No
/// tool accepts a string, so the model gets an error and tries again.
pub(crate) fn parsed_arguments(arguments: &str) -> Option<Value> {
    if arguments.trim().is_empty() {
        return None;
    }
    let kept = || Value::from(arguments.chars().take(MAX_KEPT_ARGUMENTS).collect::<String>());
    Some(serde_json::from_str(arguments).unwrap_or_else(|_| kept()))
}

/// Reads an answer, which is a stream of events. Some servers send one event as the whole body instead.
async fn read<T: Assembly>(
    response: reqwest::Response,
    max_silence: Duration,
    words: Option<&Words>,
) -> Result<Response, Failure> {
    let mut received = 0;
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(Failure::of_connection)?;
        received += chunk.len();
        if received > MAX_ANSWER_BYTES { Err(Failure::decode("it does not end")) } else { Ok(chunk) }
    });
    let mut bytes = pin!(bytes.peekable());
    let silent = |_| Failure::temporary(format!("silent for {max_silence:.1?}"));
    let mut answer = T::default();
    let first = timeout(max_silence, bytes.as_mut().peek()).await.map_err(silent)?;
    if let Some(Ok(first)) = first
        && first.trim_ascii_start().starts_with(b"{")
    {
        let body = bytes.map_ok(Vec::from).try_concat().await?;
        answer.take_event(&String::from_utf8_lossy(&body)).map_err(Broken::into_failure)?;
        return answer.finish().map_err(Broken::into_failure);
    }
    let mut events = bytes.eventsource();
    loop {
        let event = match timeout(max_silence, events.next()).await.map_err(silent)? {
            Some(Ok(event)) => event,
            Some(Err(eventsource_stream::EventStreamError::Transport(failure))) => return Err(failure),
            Some(Err(_)) => return Err(Failure::decode("it isn't an event stream")),
            None if answer.is_complete() => return answer.finish().map_err(Broken::into_failure),
            None => return Err(Failure::temporary("the answer broke off")),
        };
        if answer.take_event(&event.data).map_err(Broken::into_failure)? {
            return answer.finish().map_err(Broken::into_failure);
        }
        if let Some(words) = words {
            words.write(&answer.text());
        }
    }
}
