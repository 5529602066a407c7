//! An agent's typed memory, as it is saved after each step.
//!
//! A step is stored as the difference it made (JSON Patch, RFC 6902), every 16th step and every pause also as a whole.
//! The differences are at the same time the trace that people read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::node::State;
use crate::ids::{ActionId, ApprovalId, RunId};

/// Where a thread is in its graph, and what it knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "S: State")]
pub struct Checkpoint<S: State> {
    /// The version of this shape.
    pub format: u32,
    /// Where it goes on.
    pub cursor: Cursor,
    /// The run in progress, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// How many turns began in this thread.
    pub turns: u64,
    /// Questions that are open: each holds the state of the turn that asked, exactly as it was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub suspended: BTreeMap<ApprovalId, Suspended>,
    /// The agent's memory.
    pub state: S,
}

impl<S: State> Checkpoint<S> {
    /// The version of the stored shape.
    pub const FORMAT: u32 = 1;
}

impl<S: State> Default for Checkpoint<S> {
    fn default() -> Self {
        Self {
            format: Self::FORMAT,
            cursor: Cursor::Idle,
            run: None,
            turns: 0,
            suspended: BTreeMap::new(),
            state: S::default(),
        }
    }
}

/// Where a thread goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// Nothing to do until something arrives.
    #[default]
    Idle,
    /// At this node.
    At {
        /// The node's name.
        node: String,
        /// Failures of it so far.
        #[serde(default)]
        attempt: u32,
        /// The action whose end leads there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<ActionId>,
    },
    /// Carrying out an approved action; then at `node`.
    Performing {
        /// The action.
        action: ActionId,
        /// Where its outcome goes.
        node: String,
    },
}

/// A turn that waits for a person's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// The action that waits for approval.
    pub action: ActionId,
    /// The run that asked.
    pub run: RunId,
    /// The node that receives the answer.
    pub node: String,
    /// The part of the state that a new message would reset ([`State::suspend`]).
    pub turn: Value,
}
