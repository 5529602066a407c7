//! What the conversation around a graph asks of a thread's memory without running a node.
//!
//! Typed consent has to know whether a “no” answers an open question, retention what stays of a thread. Each graph says
//! so for its own state ([`Conversing`]); what every thread has, whatever its graph, is read from the checkpoint itself. A
//! graph that has no open questions says nothing, and one that is not known here is only read as far as every thread is.

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
    /// Whether a question about an unfinished request is open: a “no” or “cancel” is about that.
    fn is_drafting(&self) -> bool {
        false
    }

    /// Whether something to choose from was offered last: a “yes” is about that.
    fn is_choosing(&self) -> bool {
        false
    }

    /// Who the thread worked for last.
    fn works_for(&self) -> Option<&UserId> {
        None
    }
}

/// What is known of a thread without running it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The graph that it belongs to.
    pub graph: GraphName,
    /// How many turns began in it.
    pub turns: u64,
    /// Where it spoke last.
    #[serde(rename = "voice")]
    pub reply_slots: ReplySlots,
    /// When a person said something last, by Slack, to whomever.
    pub said_at: Option<MessageTs>,
    /// [`Conversing::is_drafting`].
    #[serde(skip)]
    pub is_drafting: bool,
    /// [`Conversing::is_choosing`].
    #[serde(skip)]
    pub is_choosing: bool,
    /// [`Conversing::works_for`].
    #[serde(skip)]
    pub works_for: Option<UserId>,
}

/// How the memories of threads are read, by the name of their graph.
#[derive(Clone, Default)]
pub struct Memories(Arc<BTreeMap<GraphName, Reading>>);

/// How the memories of one graph are read.
#[derive(Clone, Copy)]
struct Reading {
    /// Adds what the state says. Nothing, if it cannot be read.
    learn: fn(Value, Memory) -> Option<Memory>,
    /// The checkpoint of a thread that remembers nothing but how many turns there were.
    emptied: fn(GraphName, u64) -> Value,
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Memories {
    /// Also those of this graph.
    #[must_use]
    pub fn with<S: Conversing>(self, graph: GraphName) -> Self {
        let mut all = BTreeMap::clone(&self.0);
        all.insert(graph, Reading { learn: learn::<S>, emptied: emptied::<S> });
        Self(Arc::new(all))
    }

    /// What is known of a thread; nothing if that cannot be read.
    pub fn read(&self, saved: Option<Saved>) -> Option<Memory> {
        let value = saved?.restore().ok()?;
        let memory = Memory::deserialize(&value).ok()?;
        match self.0.get(&memory.graph) {
            Some(reading) => (reading.learn)(value, memory),
            None => Some(memory),
        }
    }

    /// What stays of a thread whose words are dropped: how many turns there were, so that a new message gets a place of its
    /// own. `None`: its graph is not known here, so it is not ours to empty.
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
        works_for: state.works_for().cloned(),
        ..memory
    })
}

fn emptied<S: Conversing>(graph: GraphName, turns: u64) -> Value {
    serde_json::to_value(Checkpoint::<S> { turns, ..Checkpoint::of(graph) }).expect("a checkpoint is plain data")
}
