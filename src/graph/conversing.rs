//! Questions about a thread's memory that can be answered without running a node.
//!
//! For example, typed consent needs to know whether a “no” answers an open question, and retention
//! needs to know which parts of a thread to keep. Each graph answers for its own state
//! ([`Conversing`]); data that every thread has, regardless of its graph, is read from the
//! checkpoint itself. The default answers fit a graph without open questions. For an unknown graph,
//! only the common data is read.

use std::{collections::BTreeMap, fmt, sync::Arc};

use countersign_core::ids::{ApprovalId, GraphName, MessageTs, UserId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    action::ActionRequest,
    checkpoint::{Checkpoint, Cursor, ReplySlots},
    json::Json,
    node::State,
    store::Saved,
};

/// The words of the button that opens the form of [`Conversing::draft`]. They are not said: a window opens.
pub const FILL_IN_FORM: &str = "fill in a form";

/// The state of a graph that people talk to.
pub trait Conversing: State {
    /// Returns true if a question about an unfinished request is open, which “no” or “cancel” would
    /// answer.
    fn is_drafting(&self) -> bool {
        false
    }

    /// Returns true if the last message offered choices, which “yes” would answer.
    fn is_choosing(&self) -> bool {
        false
    }

    /// Returns true if a message since the newest card was not understood, so that it may have been a no.
    fn is_unsure(&self) -> bool {
        false
    }

    /// Returns true if “forget it” means what the last answer showed, and no request.
    fn takes_forget(&self) -> bool {
        false
    }

    /// Returns the steps of a request that takes several, each described with its state.
    fn plan_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the position in that request, such as `step 1 of 3`.
    fn plan_place(&self) -> Option<String> {
        None
    }

    /// Returns true if a suspended turn belongs to a request that takes several steps.
    fn is_part_of_plan(&self, _turn: &Value) -> bool {
        false
    }

    /// Returns the unfinished request as far as it is known.
    fn draft(&self) -> Option<ActionRequest> {
        None
    }

    /// Returns the person whose request the thread worked on last.
    fn works_for(&self) -> Option<&UserId> {
        None
    }
}

impl Memory {
    /// Returns true if the thread works on a request that takes several steps, or waits with it.
    pub fn has_plan(&self) -> bool {
        !self.plan_lines.is_empty()
    }

    /// Returns true if a message is being answered.
    pub fn is_answering(&self) -> bool {
        matches!(self.cursor, Cursor::At { ended: None, .. })
    }
}

/// The part of a thread's memory that can be read without running its graph.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The graph that the thread belongs to.
    pub graph: GraphName,
    /// The position in the graph.
    pub cursor: Cursor,
    /// The number of turns that began in the thread.
    pub turns: u64,
    /// The message slots of its last run.
    #[serde(rename = "voice")]
    pub reply_slots: ReplySlots,
    /// Slack's time stamp of the newest message from a person, to any addressee.
    pub said_at: Option<MessageTs>,
    /// [`Conversing::is_drafting`].
    #[serde(skip)]
    pub is_drafting: bool,
    /// [`Conversing::is_choosing`].
    #[serde(skip)]
    pub is_choosing: bool,
    /// [`Conversing::is_unsure`].
    #[serde(skip)]
    pub is_unsure: bool,
    /// [`Conversing::takes_forget`].
    #[serde(skip)]
    pub takes_forget: bool,
    /// [`Conversing::plan_lines`].
    #[serde(skip)]
    pub plan_lines: Vec<String>,
    /// [`Conversing::plan_place`].
    #[serde(skip)]
    pub plan_place: Option<String>,
    /// The open questions and waiting actions of requests that take several steps
    /// ([`Conversing::is_part_of_plan`]).
    #[serde(skip)]
    pub plan_questions: Vec<ApprovalId>,
    /// [`Conversing::draft`].
    #[serde(skip)]
    pub draft: Option<ActionRequest>,
    /// [`Conversing::works_for`].
    #[serde(skip)]
    pub works_for: Option<UserId>,
}

/// The readers of threads' memories, by the name of their graph.
#[derive(Clone, Default)]
pub struct Memories(Arc<BTreeMap<GraphName, Reading>>);

/// The reader of the memories of one graph's threads.
#[derive(Clone, Copy)]
struct Reading {
    /// Adds the answers of the state; returns `None` if it cannot be read.
    add_answers: fn(Value, Memory) -> Option<Memory>,
    /// Creates a checkpoint that keeps only the number of turns.
    emptied: fn(GraphName, u64) -> Json,
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Memories {
    /// Adds a graph.
    #[must_use]
    pub fn with<S: Conversing>(self, graph: GraphName) -> Self {
        let mut all = BTreeMap::clone(&self.0);
        all.insert(graph, Reading { add_answers: add_answers::<S>, emptied: emptied::<S> });
        Self(Arc::new(all))
    }

    /// Reads the memory of a thread; `None` if it cannot be read.
    pub fn read(&self, saved: Option<Saved>) -> Option<Memory> {
        let value = saved?.restore().ok()?;
        let memory = Memory::deserialize(&value).ok()?;
        match self.0.get(&memory.graph) {
            Some(reading) => (reading.add_answers)(value, memory),
            None => Some(memory),
        }
    }

    /// Returns the checkpoint to keep when a thread's messages are deleted: only the number of
    /// turns, so that a new message gets a slot of its own. `None` if the graph is not known here,
    /// in which case the thread must not be emptied.
    pub fn emptied(&self, saved: Saved) -> Option<Json> {
        let max_turns = saved.version; // a thread has no more turns than steps
        let value = saved.restore().unwrap_or_default();
        let memory = Memory::deserialize(&value).ok();
        let (graph, turns) = memory.map_or((GraphName::default(), max_turns), |memory| (memory.graph, memory.turns));
        self.0.get(&graph).map(|reading| (reading.emptied)(graph.clone(), turns))
    }
}

fn add_answers<S: Conversing>(value: Value, memory: Memory) -> Option<Memory> {
    let Checkpoint { state, suspended, .. } = serde_json::from_value::<Checkpoint<S>>(value).ok()?;
    let of_plans = suspended.iter().filter(|(_, suspended)| state.is_part_of_plan(&suspended.turn));
    Some(Memory {
        plan_questions: of_plans.map(|(question, _)| question.clone()).collect(),
        is_drafting: state.is_drafting(),
        is_choosing: state.is_choosing(),
        is_unsure: state.is_unsure(),
        takes_forget: state.takes_forget(),
        plan_lines: state.plan_lines(),
        plan_place: state.plan_place(),
        draft: state.draft(),
        works_for: state.works_for().cloned(),
        ..memory
    })
}

fn emptied<S: Conversing>(graph: GraphName, turns: u64) -> Json {
    Json::of(&Checkpoint::<S> { turns, ..Checkpoint::of(graph) })
}
