//! The nodes of a graph, and the steps they return.
//!
//! A node receives the state and returns a [`Step`]: the new state, the next node and the replies.
//! It may read the outside world but has no means to change it. The time is passed in with the
//! [`Context`].

use std::time::Duration;

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, MessageTs, RunId, ThreadId, UserId},
    reply::{Reply, Text},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    action::{ActionRecord, ActionRequest, Evidence, Proposal},
    store::{ActionFollowUp, External, Usage},
};

/// The memory of a thread in a graph, as one struct with named fields. It changes only by way of `&mut`: one that is shared
/// is not written again.
pub trait State: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Begins a turn with a message: data that belongs to a single turn is reset, the rest is kept.
    fn begin_turn(&mut self, said: &Said);

    /// Records that a person said something in the thread. `to_another` is true if it was addressed
    /// to another person by name.
    fn present(&mut self, _by: &UserId, _to_another: bool) {}

    /// Handles an external event that no action waits for. Returns true if a run begins with it:
    /// the event is then in the state for the nodes to read, and data that belongs to a single turn
    /// is reset. Returns false if the event is irrelevant.
    fn begin_with(&mut self, _arrived: &External, _now: Timestamp) -> bool {
        false
    }

    /// Drops the rest of a run that a person stopped. If the run had several parts, returns a
    /// description of those that were done and those that were not, to be added to a sentence.
    fn stopped(&mut self) -> Option<String> {
        None
    }

    /// Drops the parts of requests that wait for a person's answer, which a person stopped. Returns a
    /// description as [`Self::stopped`] does; `None` if nothing waits.
    fn stopped_waiting(&mut self) -> Option<String> {
        None
    }

    /// Takes the events that the nodes have noted since the last save; each becomes an entry of the record.
    fn take_events(&mut self) -> Vec<Value> {
        Vec::new()
    }

    /// Returns a name for what the buttons of a reply wait for, such as the question that it asks; `None` if nothing waits
    /// for them any more, or if they only suggest something.
    fn buttons_wait_for(&self, _reply: &Reply) -> Option<String> {
        None
    }

    /// Returns the part of the state that belongs to the current turn only, to be stored while a
    /// question is open.
    fn suspend(&self) -> Value;

    /// Restores exactly the value that [`Self::suspend`] returned.
    ///
    /// # Errors
    ///
    /// If the value cannot be read, since a program of another version wrote it.
    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error>;

    /// Records that a newer request replaced this one, so the turn that asked for it never
    /// continues.
    fn superseded(&mut self, older: &ActionRecord, now: Timestamp);
}

/// The reaction of a graph to events for which no node runs.
pub trait Listener<S: State>: Send + Sync {
    /// Returns true if a text that does not mention the bot is meant for it, such as an answer to
    /// its question. `open` are the actions of the thread that wait for a person.
    fn is_meant(&self, _state: &S, _by: &UserId, _text: &str, _open: &[ActionRecord]) -> bool {
        true
    }

    /// Handles a follow-up to an action by the person `by`. Returns the reply; `None` if the run that begins with it
    /// answers.
    fn heard(
        &self,
        state: &mut S,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        now: Timestamp,
    ) -> Option<Reply>;

    /// Begins a turn with a follow-up, after the reply to it. `zone` is the time zone of the person who asked for the
    /// action. `true`: a run begins with it.
    fn goes_on(
        &self,
        _state: &mut S,
        _record: &ActionRecord,
        _follow_up: ActionFollowUp,
        _zone: Option<String>,
        _now: Timestamp,
    ) -> bool {
        false
    }
}

/// A message of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The author.
    pub by: UserId,
    /// The text.
    pub text: String,
    /// Slack's time stamp of the message.
    pub ts: Option<MessageTs>,
    /// The time at which the engine began to handle it.
    pub at: Timestamp,
    /// The author's time zone, such as `Europe/Berlin`, if known.
    pub zone: Option<String>,
    /// The request, if it comes from a button or a form and the text need not be interpreted.
    pub request: Option<ActionRequest>,
}

/// The input of a node other than the state.
#[derive(Debug)]
pub struct Context {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The time at which the step began.
    pub now: Timestamp,
    /// The number of times that this node has already failed in this run.
    pub attempt: u32,
    /// The action whose end led to this node, whether it was done, failed, unknown, rejected,
    /// expired or something else.
    pub ended: Option<ActionRecord>,
    /// The actions of this thread that wait for a person.
    pub open: Vec<ActionRecord>,
}

/// The result of running a node.
#[derive(Debug)]
pub struct Step<S> {
    /// The new state.
    pub state: S,
    /// The continuation of the run.
    pub next: Next,
    /// The replies in the thread. The last reply of a turn replaces its status line.
    pub says: Vec<Reply>,
    /// The messages sent through channels other than Slack: the name of the channel, and the body
    /// in its format. They only carry text; a change is an action.
    pub posts: Vec<(String, Value)>,
    /// The usage of model tokens.
    pub usage: Option<Usage>,
}

impl<S> Step<S> {
    /// Continues at another node.
    pub fn go(state: S, node: &'static str) -> Self {
        Self { state, next: Next::Go(node), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Continues at another node after a wait, during which the thread is not leased.
    pub fn later(state: S, node: &'static str, wait: Duration) -> Self {
        Self { next: Next::Later(node, wait), ..Self::end(state) }
    }

    /// Ends the run.
    pub fn end(state: S) -> Self {
        Self { state, next: Next::End, says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Asks a person. The node [`Ask::then`] receives the end of the action.
    pub fn ask(state: S, ask: Ask) -> Self {
        Self { state, next: Next::Ask(Box::new(ask)), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Ends the run, and closes the open requests of the thread as obsolete for this reason.
    pub fn close(state: S, why: Text) -> Self {
        Self { next: Next::Close(why), ..Self::end(state) }
    }

    /// Adds a reply.
    pub fn say(mut self, reply: Reply) -> Self {
        self.says.push(reply);
        self
    }

    /// Adds a message through a channel other than Slack.
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
    /// At this node, at once.
    Go(&'static str),
    /// At this node, after a wait.
    Later(&'static str, Duration),
    /// After a person has answered.
    Ask(Box<Ask>),
    /// The run is over.
    End,
    /// The run is over, and the open requests of the thread are obsolete for this reason. Their runs do not continue.
    Close(Text),
}

/// A question to a person that asks for approval of a change.
#[derive(Debug)]
pub struct Ask {
    /// The [`super::action::ActionInfo::name`].
    pub action: String,
    /// The exact change.
    pub proposal: Proposal,
    /// The person who asked for it.
    pub requested_by: UserId,
    /// The words of a person that ask for it.
    pub evidence: Evidence,
    /// The open action of this thread that it replaces, even if that one concerns something else.
    pub replaces: Option<ActionId>,
    /// The node that receives the end of the action, however it ends.
    pub then: &'static str,
}

/// The cause of an error, for the operator's log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a node failed.
#[derive(Debug)]
pub enum NodeError {
    /// Another attempt may succeed. The engine waits and retries a few times, and then says
    /// `reply`.
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

/// A node of a graph: one unit of work.
#[async_trait]
pub trait Node<S: State>: Send + Sync {
    /// Returns the name, unique in its graph.
    fn name(&self) -> &'static str;

    /// Returns the status line while the node runs; `None` for nodes that finish immediately.
    fn status(&self) -> Option<&'static str> {
        None
    }

    /// Returns the nodes at which a run may continue after this one. The builder checks that they
    /// exist and that every node can be reached.
    fn targets(&self) -> &'static [&'static str];

    /// Runs the node.
    ///
    /// # Errors
    ///
    /// [`NodeError`], which states whether another attempt may help.
    async fn run(&self, state: S, context: &Context) -> Result<Step<S>, NodeError>;
}
