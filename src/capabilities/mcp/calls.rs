//! The calls that this process is making: each goes on beside the thread that asked for it, and is looked at from time
//! to time. A call that another process made is not here, and nothing brings it back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{ids::ActionId, permit::Permit};
use countersign_mcp_client::{Answer, Answered, Asks, Call, Error, McpClient, Progress, Question};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// The number of calls from which on those that are over are forgotten. Until then they are kept: an outcome that could not
/// be saved is looked up here again.
const KEPT: usize = 16;

/// The calls by the actions that make them.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<HashMap<ActionId, Arc<Running>>>);

/// The state of a call.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It is sent; the server may have told how far it is.
    Sent(Option<Progress>),
    /// The server asks something; its questions are counted.
    Asks(u64, Question),
    /// It is over.
    Ended(Result<Answer, Error>),
}

/// A call that is being made.
#[derive(Debug)]
pub(crate) struct Running {
    state: watch::Receiver<State>,
    answers: mpsc::UnboundedSender<Answered>,
    stop: CancellationToken,
}

/// A tool call: the tool, its arguments, and its limits.
pub(crate) struct Made {
    pub(crate) client: Arc<McpClient>,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) permit: Permit,
    pub(crate) longest: Duration,
}

impl Calls {
    /// Returns the call of an action.
    pub(crate) fn get(&self, action: &ActionId) -> Option<Arc<Running>> {
        self.all().get(action).cloned()
    }

    /// Begins a call.
    pub(crate) fn begin(&self, action: &ActionId, made: Made) -> Arc<Running> {
        let (changes, state) = watch::channel(State::Sent(None));
        let (answers, given) = mpsc::unbounded_channel();
        let changes = Arc::new(changes);
        let stop = CancellationToken::new();
        let asker = Asker { changes: changes.clone(), given: tokio::sync::Mutex::new((0, given)) };
        let told = changes.clone();
        let call = Call {
            permit: Some(made.permit),
            asks: Some(Arc::new(asker)),
            watch: Some(Arc::new(move |progress| {
                told.send_if_modified(|state| match state {
                    State::Sent(known) => {
                        *known = Some(progress.clone());
                        true
                    }
                    State::Asks(..) | State::Ended(_) => false,
                });
            })),
            longest: made.longest,
            stop: stop.clone(),
        };
        tokio::spawn(async move {
            let answer = made.client.call(&made.tool, &made.arguments, call).await;
            changes.send_replace(State::Ended(answer));
        });
        let running = Arc::new(Running { state, answers, stop });
        let mut all = self.all();
        if all.len() >= KEPT {
            all.retain(|_, running| !running.is_over());
        }
        all.insert(action.clone(), running.clone());
        running
    }

    /// Forgets the call of an action, and stops it if it is not over.
    pub(crate) fn end(&self, action: &ActionId) {
        if let Some(running) = self.all().remove(action) {
            running.stop.cancel();
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ActionId, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Returns the state once it is over or asks something, and at the latest after this time.
    pub(crate) async fn state(&self, within: Duration) -> State {
        let mut state = self.state.clone();
        let is_news = |state: &State| !matches!(state, State::Sent(_));
        let _ = tokio::time::timeout(within, state.wait_for(is_news)).await;
        self.state.borrow().clone()
    }

    fn is_over(&self) -> bool {
        matches!(*self.state.borrow(), State::Ended(_))
    }

    /// Gives the answer to the question that is open.
    pub(crate) fn answer(&self, answered: Answered) {
        let _ = self.answers.send(answered);
    }

    /// Waits until a question is no longer open, for a moment.
    pub(crate) async fn goes_on_from(&self, question: u64) {
        let mut state = self.state.clone();
        let is_over = |state: &State| !matches!(state, State::Asks(nth, _) if *nth == question);
        let _ = tokio::time::timeout(Duration::from_secs(1), state.wait_for(is_over)).await;
    }
}

/// Shows a question in the state of its call, and waits for the answer.
struct Asker {
    changes: Arc<watch::Sender<State>>,
    /// The number of questions so far, and the answers.
    given: tokio::sync::Mutex<(u64, mpsc::UnboundedReceiver<Answered>)>,
}

#[async_trait]
impl Asks for Asker {
    async fn ask(&self, question: Question) -> Answered {
        let mut given = self.given.lock().await; // one question after the other
        given.0 += 1;
        let nth = given.0;
        self.changes.send_replace(State::Asks(nth, question));
        let answered = given.1.recv().await.unwrap_or(Answered::Cancelled);
        self.changes.send_if_modified(|state| {
            let is_open = matches!(state, State::Asks(open, _) if *open == nth);
            if is_open {
                *state = State::Sent(None);
            }
            is_open
        });
        answered
    }
}
