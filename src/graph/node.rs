//! The nodes of a graph, and their decisions.
//!
//! A node gets the state and returns a [`Step`]: the new state, the next node, the replies. It may read the outside
//! world; it has no way to change it. Time and randomness come with the [`Context`].

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, RunId, ThreadId, UserId},
    reply::Reply,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    action::{ActionRecord, ActionRequest, Proposal},
    store::{ActionFollowUp, External, Usage},
};

/// The memory of a thread in a graph: one struct with named fields.
pub trait State: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Begins a turn with a message: everything that belongs to a single turn begins anew, the rest stays.
    fn begin_turn(&mut self, said: &Said);

    /// Notes that a person said something in the thread; `to_another`: to another person, by name.
    fn present(&mut self, _by: &UserId, _to_another: bool) {}

    /// Takes up an event from outside of Slack that no action waits for. `true`: a run begins with it, and it is in the
    /// state for the nodes to read; everything that belongs to a single turn begins anew. `false`: it is of no concern.
    fn begin_with(&mut self, _arrived: &External, _now: Timestamp) -> bool {
        false
    }

    /// Drops the rest of a run that a person stopped. Returns the part of it that was done and the part that was not, in
    /// words, if there were several.
    fn stopped(&mut self) -> Option<String> {
        None
    }

    /// Returns the part of the state that belongs to the turn alone, to be kept while a question is open.
    fn suspend(&self) -> Value;

    /// Restores the value that [`Self::suspend`] returned, exactly.
    ///
    /// # Errors
    ///
    /// If an older version wrote something that cannot be read.
    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error>;

    /// Notes that a newer request replaced this one: the turn that asked for it never continues.
    fn superseded(&mut self, older: &ActionRecord, now: Timestamp);
}

/// The reaction of a graph to events for which no node runs.
pub trait Listener<S: State>: Send + Sync {
    /// Returns true if words that do not address the bot by name are meant for it, such as an answer to its question.
    /// `open` are the actions of the thread that wait for a person.
    fn is_meant(&self, _state: &S, _by: &UserId, _text: &str, _open: &[ActionRecord]) -> bool {
        true
    }

    /// Takes up a follow-up of an action by the person `by`. Returns the reply.
    fn heard(
        &self,
        state: &mut S,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        now: Timestamp,
    ) -> Reply;
}

/// A message of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The author.
    pub by: UserId,
    /// The text.
    pub text: String,
    /// The time at which it is taken up.
    pub at: Timestamp,
    /// The request, if no words have to be understood.
    pub request: Option<ActionRequest>,
}

/// The input of a node apart from the state.
#[derive(Debug)]
pub struct Context {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The time at which the step began.
    pub now: Timestamp,
    /// The number of times that this node failed before in this run.
    pub attempt: u32,
    /// The action whose end led here: done, failed, unknown, rejected, expired …
    pub ended: Option<ActionRecord>,
    /// The actions of this thread that wait for a person.
    pub open: Vec<ActionRecord>,
}

/// The decision of a node.
#[derive(Debug)]
pub struct Step<S> {
    /// The new state.
    pub state: S,
    /// The continuation of the run.
    pub next: Next,
    /// The replies in the thread. The last reply of a turn replaces its status line.
    pub says: Vec<Reply>,
    /// The messages sent by other ways than Slack: the name of the way, and the body in its format. These are words
    /// only; a change is an action.
    pub posts: Vec<(String, Value)>,
    /// The usage of model tokens.
    pub usage: Option<Usage>,
}

impl<S> Step<S> {
    /// Continues at another node.
    pub fn go(state: S, node: &'static str) -> Self {
        Self { state, next: Next::Go(node), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Continues at another node after a wait, in which the thread is free for others.
    pub fn later(state: S, node: &'static str, wait: Duration) -> Self {
        Self { next: Next::Later(node, wait), ..Self::end(state) }
    }

    /// Ends the run.
    pub fn end(state: S) -> Self {
        Self { state, next: Next::End, says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Asks a person; `then` receives the end of the action.
    pub fn ask(state: S, ask: Ask) -> Self {
        Self { state, next: Next::Ask(Box::new(ask)), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Adds a reply.
    pub fn say(mut self, reply: Reply) -> Self {
        self.says.push(reply);
        self
    }

    /// Adds a message by another way than Slack.
    pub fn post(mut self, channel: impl Into<String>, body: Value) -> Self {
        self.posts.push((channel.into(), body));
        self
    }

    /// Adds the usage.
    pub fn cost(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }
}

/// The continuation of a run.
#[derive(Debug)]
pub enum Next {
    /// At this node.
    Go(&'static str),
    /// At this node, after a wait.
    Later(&'static str, Duration),
    /// After a person has answered.
    Ask(Box<Ask>),
    /// Nowhere: the run is over.
    End,
}

/// A question to a person: whether a change may be made.
#[derive(Debug)]
pub struct Ask {
    /// The [`super::action::ActionKind::name`].
    pub action: String,
    /// The exact change.
    pub proposal: Proposal,
    /// The person who asked for it.
    pub requested_by: UserId,
    /// The open action of this thread that it replaces, even if that is about something else.
    pub replaces: Option<ActionId>,
    /// The node that receives the end of the action, whatever it is.
    pub then: &'static str,
}

/// The cause of an error, for the operator's log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a node has no step.
#[derive(Debug)]
pub enum NodeError {
    /// Trying again may help: the engine waits and retries a few times; then it says `reply`.
    Transient {
        /// The reply if no attempt succeeds.
        reply: Reply,
        /// The cause, for the log.
        source: BoxError,
    },
    /// The run ends with `reply`.
    Permanent {
        /// The reply.
        reply: Reply,
        /// The cause, for the log.
        source: BoxError,
    },
}

/// One unit of work.
#[async_trait]
pub trait Node<S: State>: Send + Sync {
    /// Returns the name, unique in its graph.
    fn name(&self) -> &'static str;

    /// Returns the status line while it runs; `None` for nodes that take no time.
    fn status(&self) -> Option<&'static str> {
        None
    }

    /// Returns the nodes it may go to. The builder checks that they exist and that every node can be reached.
    fn targets(&self) -> &'static [&'static str];

    /// Runs the node.
    ///
    /// # Errors
    ///
    /// [`NodeError`] says whether to try again.
    async fn run(&self, state: S, context: &Context) -> Result<Step<S>, NodeError>;
}
