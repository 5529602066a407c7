//! What a graph is made of: nodes, and what they decide.
//!
//! A node gets the state and gives back a [`Step`]: the new state, where to go, what to say. It may read the outside
//! world; it has no way to change it. Time and randomness come with the [`Context`].

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

/// What a graph remembers of a thread: one struct with named fields.
pub trait State: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A person said something: everything that belongs to a single turn begins anew, what persists stays.
    fn begin_turn(&mut self, said: &Said);

    /// Somebody said something in the thread; `to_another`: to somebody else, by name.
    fn present(&mut self, _by: &UserId, _to_another: bool) {}

    /// Something happened elsewhere than in Slack that no action waits for. `true`: a run begins with it, and it is in the
    /// state for the nodes to read; everything that belongs to a single turn begins anew. `false`: it is of no concern.
    fn begin_with(&mut self, _arrived: &External, _now: Timestamp) -> bool {
        false
    }

    /// A person stopped the run: what was still to come of it is let go.
    fn stopped(&mut self) {}

    /// What belongs to the turn alone, to be kept while a question is open.
    fn suspend(&self) -> Value;

    /// Puts back what [`Self::suspend`] gave, exactly.
    ///
    /// # Errors
    ///
    /// If an older version wrote something that cannot be read.
    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error>;

    /// A newer request took the place of this one: the turn that asked for it never goes on.
    fn superseded(&mut self, older: &ActionRecord, now: Timestamp);
}

/// What a graph makes of what it hears without running a node.
pub trait Listener<S: State>: Send + Sync {
    /// Whether words that nobody said to the bot by name are meant for it: an answer to its question. `open` is what waits
    /// for a person in the thread.
    fn is_meant(&self, _state: &S, _by: &UserId, _text: &str, _open: &[ActionRecord]) -> bool {
        true
    }

    /// Something happened to an action after its decision; `by` did it. Returns what is said about it.
    fn heard(
        &self,
        state: &mut S,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        now: Timestamp,
    ) -> Reply;
}

/// What a person said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Who.
    pub by: UserId,
    /// What.
    pub text: String,
    /// When it is taken up.
    pub at: Timestamp,
    /// What is wanted, where no words have to be understood.
    pub request: Option<ActionRequest>,
}

/// What a node is told besides the state.
#[derive(Debug)]
pub struct Context {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// When the step began.
    pub now: Timestamp,
    /// How often this node failed before in this run.
    pub attempt: u32,
    /// The action whose end leads here: done, failed, unknown, rejected, expired …
    pub ended: Option<ActionRecord>,
    /// The actions of this thread that wait for a person.
    pub open: Vec<ActionRecord>,
}

/// What a node decided.
#[derive(Debug)]
pub struct Step<S> {
    /// The state from now on.
    pub state: S,
    /// Where to go.
    pub next: Next,
    /// What to say in the thread. The last reply of a turn takes the place of its status line.
    pub says: Vec<Reply>,
    /// What to say by other ways than Slack: the name of each, and the words in which it is spoken to. These are words only;
    /// what changes something is an action.
    pub posts: Vec<(String, Value)>,
    /// What it cost in model tokens.
    pub usage: Option<Usage>,
}

impl<S> Step<S> {
    /// Goes on at another node.
    pub fn go(state: S, node: &'static str) -> Self {
        Self { state, next: Next::Go(node), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Ends the run.
    pub fn end(state: S) -> Self {
        Self { state, next: Next::End, says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Asks a person; `then` receives how it ended.
    pub fn ask(state: S, ask: Ask) -> Self {
        Self { state, next: Next::Ask(Box::new(ask)), says: Vec::new(), posts: Vec::new(), usage: None }
    }

    /// Says something.
    pub fn say(mut self, reply: Reply) -> Self {
        self.says.push(reply);
        self
    }

    /// Says something by another way than Slack.
    pub fn post(mut self, channel: impl Into<String>, body: Value) -> Self {
        self.posts.push((channel.into(), body));
        self
    }

    /// Records what it cost.
    pub fn cost(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }
}

/// Where a run goes on.
#[derive(Debug)]
pub enum Next {
    /// At this node.
    Go(&'static str),
    /// When a person has answered.
    Ask(Box<Ask>),
    /// Nowhere: the run is over.
    End,
}

/// A question to a person: whether a change may be made.
#[derive(Debug)]
pub struct Ask {
    /// The [`super::action::ActionKind::name`].
    pub action: String,
    /// Exactly what.
    pub proposal: Proposal,
    /// Who asked for it.
    pub requested_by: UserId,
    /// The open action of this thread that it takes the place of, even where it is about something else.
    pub replaces: Option<ActionId>,
    /// The node that receives the end of it, whatever it is.
    pub then: &'static str,
}

/// What went wrong below, for the operator's log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a node has no step.
#[derive(Debug)]
pub enum NodeError {
    /// Trying again may help: the engine waits and does, a few times; then `reply` is said.
    Transient {
        /// What to say if it never helps.
        reply: Reply,
        /// For the log.
        source: BoxError,
    },
    /// The run ends and `reply` is said.
    Permanent {
        /// What to say.
        reply: Reply,
        /// For the log.
        source: BoxError,
    },
}

/// One unit of work.
#[async_trait]
pub trait Node<S: State>: Send + Sync {
    /// Its name, unique in its graph.
    fn name(&self) -> &'static str;

    /// What the status line says while it runs; `None` for nodes that take no time.
    fn status(&self) -> Option<&'static str> {
        None
    }

    /// The nodes it may go to. The builder checks that they exist and that every node can be reached.
    fn targets(&self) -> &'static [&'static str];

    /// Decides.
    ///
    /// # Errors
    ///
    /// [`NodeError`] says whether to try again.
    async fn run(&self, state: S, context: &Context) -> Result<Step<S>, NodeError>;
}
