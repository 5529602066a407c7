//! The calls that this process is making. Each runs in a task of its own, and the thread that requested it polls its
//! state. A call of another process is not listed here and cannot be recovered.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::CallsInProgress;
use countersign_core::{ids::ActionId, send_permit::SendPermit};
use countersign_mcp_client::{Answer, Answered, Asks, Call, Error, McpClient, Progress, Question};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// The number of calls above which ended ones are dropped. They are kept because an outcome that could not be saved is
/// looked up here again.
const MAX_KEPT: usize = 16;

/// The calls by their actions.
#[derive(Debug, Default)]
pub(crate) struct Calls(CallsInProgress<Running>);

/// The state of a call.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It was sent; with the progress, if the server has reported any.
    Sent(Option<Progress>),
    /// The server asks a question; with the number of the question, counted from 1.
    Asks(u64, Question),
    /// It has ended.
    Ended(Result<Answer, Error>),
}

/// A call that is being made.
#[derive(Debug)]
pub(crate) struct Running {
    state: watch::Receiver<State>,
    answers: mpsc::UnboundedSender<Answered>,
    stop: CancellationToken,
}

/// A tool call to begin: the tool, its arguments, and its limits.
pub(crate) struct NewCall {
    pub(crate) client: Arc<McpClient>,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) permit: SendPermit,
    pub(crate) longest: Duration,
}

impl Calls {
    /// Returns the call of an action.
    pub(crate) fn get(&self, action: &ActionId) -> Option<Arc<Running>> {
        self.0.get(action)
    }

    /// Begins the call of an action.
    pub(crate) fn begin(&self, action: &ActionId, new: NewCall) -> Arc<Running> {
        let (changes, state) = watch::channel(State::Sent(None));
        let (answers, given) = mpsc::unbounded_channel();
        let changes = Arc::new(changes);
        let stop = CancellationToken::new();
        let asker = Asker { changes: changes.clone(), given: tokio::sync::Mutex::new((0, given)) };
        let progress_changes = changes.clone();
        let call = Call {
            permit: Some(new.permit),
            asks: Some(Arc::new(asker)),
            watch: Some(Arc::new(move |progress| {
                progress_changes.send_if_modified(|state| match state {
                    State::Sent(known) => {
                        *known = Some(progress.clone());
                        true
                    }
                    State::Asks(..) | State::Ended(_) => false,
                });
            })),
            longest: new.longest,
            stop: stop.clone(),
        };
        let work = async move {
            let answer = new.client.call(&new.tool, &new.arguments, call).await;
            changes.send_replace(State::Ended(answer));
        };
        tokio::spawn(work.in_current_span());
        self.0.tidy(MAX_KEPT, Running::is_over);
        self.0.add(action, Running { state, answers, stop })
    }

    /// Removes the call of an action, and stops it if it is still running.
    pub(crate) fn end(&self, action: &ActionId) {
        if let Some(running) = self.0.remove(action) {
            running.stop.cancel();
        }
    }
}

impl Running {
    /// Returns the state as soon as the call has ended or asks a question, at the latest after this time.
    pub(crate) async fn state(&self, within: Duration) -> State {
        let mut state = self.state.clone();
        let is_news = |state: &State| !matches!(state, State::Sent(_));
        let _ = tokio::time::timeout(within, state.wait_for(is_news)).await;
        self.state.borrow().clone()
    }

    fn is_over(&self) -> bool {
        matches!(*self.state.borrow(), State::Ended(_))
    }

    /// Answers the open question.
    pub(crate) fn answer(&self, answered: Answered) {
        let _ = self.answers.send(answered);
    }

    /// Waits until this question is no longer open.
    pub(crate) async fn past(&self, question: u64) {
        let mut state = self.state.clone();
        let is_over = |state: &State| !matches!(state, State::Asks(nth, _) if *nth == question);
        let _ = state.wait_for(is_over).await;
    }

    /// Waits until this question is no longer open, for at most a second.
    pub(crate) async fn wait_past(&self, question: u64) {
        let _ = tokio::time::timeout(Duration::from_secs(1), self.past(question)).await;
    }
}

/// Publishes a question as the state of its call, and waits for the answer.
struct Asker {
    changes: Arc<watch::Sender<State>>,
    /// The number of questions so far, and the answers.
    given: tokio::sync::Mutex<(u64, mpsc::UnboundedReceiver<Answered>)>,
}

#[async_trait]
impl Asks for Asker {
    async fn ask(&self, question: Question) -> Answered {
        let mut given = self.given.lock().await; // one question at a time
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
