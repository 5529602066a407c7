//! Questions about a thread's memory that are answered without running a node.
//!
//! Typed consent has to know whether a “no” answers an open question, retention what remains of a thread. Each graph
//! answers for its own state ([`Conversing`]); data that every thread has, whatever its graph, is read from the
//! checkpoint itself. The defaults fit a graph without open questions; of an unknown graph only the common data is
//! read.

use std::{collections::BTreeMap, fmt, sync::Arc};

use countersign_core::ids::{GraphName, MessageTs, UserId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    checkpoint::{Checkpoint, ReplySlots},
    node::State,
    store::Saved,
};

/// A state that people talk with.
pub trait Conversing: State {
    /// Returns true if a question about an unfinished request is open, which a “no” or “cancel” answers.
    fn is_drafting(&self) -> bool {
        false
    }

    /// Returns true if choices were offered last, which a “yes” answers.
    fn is_choosing(&self) -> bool {
        false
    }

    /// Returns the steps of a request that is carried out in several, each in words with its state.
    fn plan_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the person for whom the thread worked last.
    fn works_for(&self) -> Option<&UserId> {
        None
    }
}

/// The memory of a thread, as far as it is read without running it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The graph that it belongs to.
    pub graph: GraphName,
    /// The number of turns that began in it.
    pub turns: u64,
    /// The messages of its last run.
    #[serde(rename = "voice")]
    pub reply_slots: ReplySlots,
    /// The time of the newest message of a person, by Slack, to whomever it was said.
    pub said_at: Option<MessageTs>,
    /// [`Conversing::is_drafting`].
    #[serde(skip)]
    pub is_drafting: bool,
    /// [`Conversing::is_choosing`].
    #[serde(skip)]
    pub is_choosing: bool,
    /// [`Conversing::plan_lines`].
    #[serde(skip)]
    pub plan_lines: Vec<String>,
    /// [`Conversing::works_for`].
    #[serde(skip)]
    pub works_for: Option<UserId>,
}

/// The readers of the memories of threads, by the name of their graph.
#[derive(Clone, Default)]
pub struct Memories(Arc<BTreeMap<GraphName, Reading>>);

/// The reader of the memories of one graph.
#[derive(Clone, Copy)]
struct Reading {
    /// Adds the answers of the state; `None` if it cannot be read.
    learn: fn(Value, Memory) -> Option<Memory>,
    /// Creates the checkpoint of a thread that remembers only the number of turns.
    emptied: fn(GraphName, u64) -> Value,
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
        all.insert(graph, Reading { learn: learn::<S>, emptied: emptied::<S> });
        Self(Arc::new(all))
    }

    /// Reads the memory of a thread; `None` if it cannot be read.
    pub fn read(&self, saved: Option<Saved>) -> Option<Memory> {
        let value = saved?.restore().ok()?;
        let memory = Memory::deserialize(&value).ok()?;
        match self.0.get(&memory.graph) {
            Some(reading) => (reading.learn)(value, memory),
            None => Some(memory),
        }
    }

    /// Returns the checkpoint that remains of a thread whose words are dropped: only the number of turns, so that a new
    /// message gets a place of its own. `None` if the graph is not known here, so it is not ours to empty.
    pub fn emptied(&self, saved: Saved) -> Option<Value> {
        let most = saved.version; // what cannot be read had fewer turns than steps
        let value = saved.restore().unwrap_or_default();
        let memory = Memory::deserialize(&value).ok();
        let (graph, turns) = memory.map_or((GraphName::default(), most), |memory| (memory.graph, memory.turns));
        self.0.get(&graph).map(|reading| (reading.emptied)(graph.clone(), turns))
    }
}

fn learn<S: Conversing>(value: Value, memory: Memory) -> Option<Memory> {
    let Checkpoint { state, .. } = serde_json::from_value::<Checkpoint<S>>(value).ok()?;
    Some(Memory {
        is_drafting: state.is_drafting(),
        is_choosing: state.is_choosing(),
        plan_lines: state.plan_lines(),
        works_for: state.works_for().cloned(),
        ..memory
    })
}

fn emptied<S: Conversing>(graph: GraphName, turns: u64) -> Value {
    serde_json::to_value(Checkpoint::<S> { turns, ..Checkpoint::of(graph) }).expect("a checkpoint is plain data")
}
