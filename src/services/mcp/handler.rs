//! Handles messages from a server other than responses: questions, progress, and notices that its tools changed.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use rmcp::{
    ClientHandler, ErrorData,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
        RequestId,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

/// A question that a server asks during a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question, in the server's words.
    pub message: String,
    /// The JSON schema of the answer, an object with primitive values.
    pub schema: Value,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The person answered.
    Accepted(Value),
    /// The person declined to answer. The call continues without an answer.
    Declined,
    /// The person cancelled the call.
    Cancelled,
}

/// Answers the questions of a server during a call, usually by asking a person.
#[async_trait]
pub trait Asks: Send + Sync {
    /// Asks the question and waits for the answer.
    async fn ask(&self, question: Question) -> Answered;
}

/// The progress of a call, as reported by the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount done.
    pub done: f64,
    /// The total amount, if known.
    pub total: Option<f64>,
    /// A progress message, in the server's words.
    pub message: Option<String>,
}

/// A function that receives the progress of a call.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// The listeners of a call in progress, and the time of its last activity.
#[derive(Clone)]
pub(crate) struct Listeners {
    pub(crate) asks: Option<Arc<dyn Asks>>,
    pub(crate) watch: Option<Watch>,
    last_activity: Arc<Mutex<Instant>>,
    questions: Arc<AtomicUsize>,
}

impl Listeners {
    pub(crate) fn new(asks: Option<Arc<dyn Asks>>, watch: Option<Watch>) -> Self {
        Self { asks, watch, last_activity: Arc::new(Mutex::new(Instant::now())), questions: Arc::default() }
    }

    /// Returns the time of the last activity. While a question is open, this is always now.
    pub(crate) fn last_sign_of_life(&self) -> Instant {
        match self.questions.load(Ordering::SeqCst) {
            0 => *self.last_activity.lock().unwrap_or_else(PoisonError::into_inner),
            _ => Instant::now(),
        }
    }

    /// Asks a question of the server. Without anybody who answers, it is cancelled.
    pub(crate) async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        // A question that must be answered at a URL is declined: people are never sent to an address that a server chose.
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        let Some(asks) = &self.asks else { return ElicitResult::new(ElicitationAction::Cancel) };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_else(|_| json!({ "type": "object" }));
        self.questions.fetch_add(1, Ordering::SeqCst);
        let answered = asks.ask(Question { message, schema }).await;
        self.record_activity();
        self.questions.fetch_sub(1, Ordering::SeqCst);
        match answered {
            Answered::Accepted(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Answered::Declined => ElicitResult::new(ElicitationAction::Decline),
            Answered::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    fn record_activity(&self) {
        *self.last_activity.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The calls in progress, by request id, with their progress tokens.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<RequestId, (ProgressToken, Listeners)>>);

impl Calls {
    pub(crate) fn begin(&self, id: RequestId, token: ProgressToken, listeners: Listeners) {
        self.all().insert(id, (token, listeners));
    }

    pub(crate) fn end(&self, id: &RequestId) {
        self.all().remove(id);
    }

    /// Returns the listeners of the call that a question belongs to, which is the call on whose stream it arrived. If
    /// there is no such stream, as with pipes, it is the call that can answer questions, provided there is only one.
    fn listeners(&self, origin: Option<&InboundStreamOrigin>) -> Option<Listeners> {
        let all = self.all();
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(all.get(id)?.1.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => {
                let mut asking =
                    all.values().map(|(_, listeners)| listeners.clone()).filter(|call| call.asks.is_some());
                let only = asking.next()?;
                asking.next().is_none().then_some(only)
            }
        }
    }

    /// Returns the listeners of the call with this progress token.
    fn by_token(&self, token: &ProgressToken) -> Option<Listeners> {
        Some(self.all().values().find(|(known, _)| known == token)?.1.clone())
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, (ProgressToken, Listeners)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers that are longer than the limit, by the ids of their requests; `None` if the id is not known.
#[derive(Debug, Default)]
pub(crate) struct TooLong {
    all: Mutex<Vec<Option<RequestId>>>,
    reported: Notify,
}

impl TooLong {
    /// Reports that the answer to a request is too long; without an id, it may be the answer to any.
    pub(crate) fn report(&self, id: Option<RequestId>) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.reported.notify_waiters();
    }

    /// Waits until the answer to this request is reported as too long.
    pub(crate) async fn reported(&self, id: &RequestId) {
        loop {
            let next = self.reported.notified();
            let is_reported = |known: &Option<RequestId>| known.as_ref().is_none_or(|known| known == id);
            if self.all.lock().unwrap_or_else(PoisonError::into_inner).iter().any(is_reported) {
                return;
            }
            next.await;
        }
    }
}

/// The client side of a session.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    pub(crate) calls: Arc<Calls>,
    /// True if the server has reported that its tools changed.
    pub(crate) changed: Arc<AtomicBool>,
    /// The answers that were not read, since they are too long.
    pub(crate) too_long: Arc<TooLong>,
    /// Held while a call is sent and registered, so that messages about it are not handled before it is registered.
    pub(crate) entering: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let name = Implementation::new("countersign", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        drop(self.entering.lock().await);
        let listeners = self.calls.listeners(context.extensions.get::<InboundStreamOrigin>());
        Ok(match listeners {
            Some(listeners) => listeners.ask(request).await,
            None => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        drop(self.entering.lock().await);
        let Some(listeners) = self.calls.by_token(&params.progress_token) else { return };
        listeners.record_activity();
        if let Some(watch) = &listeners.watch {
            watch(Progress { done: params.progress, total: params.total, message: params.message });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::SeqCst);
    }
}
