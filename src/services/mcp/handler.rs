//! What comes from a server without being an answer: questions, progress, and word that its tools changed.

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
use tokio::time::Instant;

/// A question of a server in the middle of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question, in the server's words.
    pub message: String,
    /// The JSON schema of the answer: an object with plain values.
    pub schema: Value,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The person answers.
    Accepted(Value),
    /// The person does not want to answer; the call goes on without it.
    Declined,
    /// The person stops the call.
    Cancelled,
}

/// The one who can answer questions of a server during one call.
#[async_trait]
pub trait Asks: Send + Sync {
    /// Asks, and waits for the answer.
    async fn ask(&self, question: Question) -> Answered;
}

/// The progress of a call, as the server reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount done.
    pub done: f64,
    /// The whole amount, if known.
    pub total: Option<f64>,
    /// The words of the server.
    pub message: Option<String>,
}

/// The one who is told of progress.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// The listeners of a call that is being made, and its latest sign of life.
#[derive(Clone)]
pub(crate) struct Listeners {
    pub(crate) asks: Option<Arc<dyn Asks>>,
    pub(crate) watch: Option<Watch>,
    heard: Arc<Mutex<Instant>>,
    questions: Arc<AtomicUsize>,
}

impl Listeners {
    pub(crate) fn new(asks: Option<Arc<dyn Asks>>, watch: Option<Watch>) -> Self {
        Self { asks, watch, heard: Arc::new(Mutex::new(Instant::now())), questions: Arc::default() }
    }

    /// Returns the moment of the last sign of life; now, while a question is open.
    pub(crate) fn heard(&self) -> Instant {
        match self.questions.load(Ordering::SeqCst) {
            0 => *self.heard.lock().unwrap_or_else(PoisonError::into_inner),
            _ => Instant::now(),
        }
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The calls that are being made, by request and by progress token.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<RequestId, (ProgressToken, Listeners)>>);

impl Calls {
    pub(crate) fn begin(&self, id: RequestId, token: ProgressToken, listeners: Listeners) {
        self.all().insert(id, (token, listeners));
    }

    pub(crate) fn end(&self, id: &RequestId) {
        self.all().remove(id);
    }

    /// Returns the one who answers a question: of the call on whose stream it came; over pipes, of the only call.
    fn listeners(&self, origin: Option<&InboundStreamOrigin>) -> Option<Listeners> {
        let all = self.all();
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(all.get(id)?.1.clone()),
            Some(InboundStreamOrigin::Unassociated) | None => {
                let mut asking = all.values().map(|(_, listeners)| listeners.clone()).filter(|one| one.asks.is_some());
                let only = asking.next()?;
                asking.next().is_none().then_some(only)
            }
        }
    }

    fn under(&self, token: &ProgressToken) -> Option<Listeners> {
        Some(self.all().values().find(|(known, _)| known == token)?.1.clone())
    }

    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, (ProgressToken, Listeners)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client's side of a session.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    pub(crate) calls: Arc<Calls>,
    /// True once the server has said that its tools changed.
    pub(crate) changed: Arc<AtomicBool>,
    /// Held while a call is sent and entered, so that nothing of it can arrive before.
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
        // A question that names an address for the answer is declined: nobody is sent to a place that a server chose.
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        drop(self.entering.lock().await);
        let listeners = self.calls.listeners(context.extensions.get::<InboundStreamOrigin>());
        let Some((asks, listeners)) = listeners.and_then(|one| Some((one.asks.clone()?, one))) else {
            return Ok(ElicitResult::new(ElicitationAction::Cancel));
        };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_else(|_| json!({ "type": "object" }));
        listeners.questions.fetch_add(1, Ordering::SeqCst);
        let answered = asks.ask(Question { message, schema }).await;
        listeners.hear();
        listeners.questions.fetch_sub(1, Ordering::SeqCst);
        Ok(match answered {
            Answered::Accepted(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            Answered::Declined => ElicitResult::new(ElicitationAction::Decline),
            Answered::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        drop(self.entering.lock().await);
        let Some(listeners) = self.calls.under(&params.progress_token) else { return };
        listeners.hear();
        if let Some(watch) = &listeners.watch {
            watch(Progress { done: params.progress, total: params.total, message: params.message });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::SeqCst);
    }
}
