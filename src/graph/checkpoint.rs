//! An agent's typed memory, which is saved after each step.
//!
//! A step is stored as its difference from the previous checkpoint (JSON Patch, RFC 6902). At every
//! 16th step and every pause, the full checkpoint is stored as well. The differences are also the
//! trace that people read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use countersign_core::{
    ids::{ActionId, ApprovalId, GraphName, MessageTs, RunId, Slot, ThreadId},
    reply::Reply,
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{
    indexed::Indexed,
    json::Json,
    node::State,
    store::{Error, Saved},
};

/// The version of the stored shape.
const FORMAT: u32 = 1;

/// The name of the member with the state, which is the last one.
const STATE: &str = "state";

/// The position of a thread in its graph, and its memory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(bound = "S: State")]
pub struct Checkpoint<S: State> {
    /// The version of this shape.
    pub format: u32,
    /// The graph that the thread belongs to.
    #[serde(default)]
    pub graph: GraphName,
    /// The position in the graph.
    pub cursor: Cursor,
    /// The run in progress, or the last one.
    #[serde(default)]
    pub run: Option<RunId>,
    /// The number of turns that began in this thread.
    pub turns: u64,
    /// The message slots of the run in progress.
    #[serde(default, rename = "voice")]
    pub reply_slots: ReplySlots,
    /// Slack's time stamp of the newest message from a person, to any addressee.
    #[serde(default)]
    pub said_at: Option<MessageTs>,
    /// The replies with buttons that something waits for, oldest first.
    #[serde(default)]
    pub with_buttons: Vec<ReplyWithButtons>,
    /// The open questions, and the actions that wait for an event. Each entry holds the exact state
    /// of the turn that asked.
    #[serde(default)]
    pub suspended: BTreeMap<ApprovalId, Suspended>,
    /// The agent's memory. Copies share it until one of them is changed.
    pub state: Arc<S>,
}

impl<S: State> Checkpoint<S> {
    /// The version of the stored shape. It is increased by every change to the shape, or to the way
    /// a step is written as a difference.
    pub const FORMAT: u32 = FORMAT;

    /// Creates an empty checkpoint for a thread of this graph.
    pub fn of(graph: GraphName) -> Self {
        Self { graph, ..Self::default() }
    }

    /// Returns the agent's memory, to change it.
    pub(super) fn state_mut(&mut self) -> &mut S {
        Arc::make_mut(&mut self.state)
    }

    /// Serializes all members but the state, without the optional ones that are empty.
    fn serialize_position<M: SerializeMap>(&self, members: &mut M) -> Result<(), M::Error> {
        let Self { format, graph, cursor, run, turns, reply_slots, said_at, with_buttons, suspended, state: _ } = self;
        members.serialize_entry("format", format)?;
        if !graph.is_default() {
            members.serialize_entry("graph", graph)?;
        }
        members.serialize_entry("cursor", cursor)?;
        if let Some(run) = run {
            members.serialize_entry("run", run)?;
        }
        members.serialize_entry("turns", turns)?;
        members.serialize_entry("voice", reply_slots)?;
        if let Some(said_at) = said_at {
            members.serialize_entry("said_at", said_at)?;
        }
        if !with_buttons.is_empty() {
            members.serialize_entry("with_buttons", with_buttons)?;
        }
        if !suspended.is_empty() {
            members.serialize_entry("suspended", suspended)?;
        }
        Ok(())
    }
}

impl<S: State> Serialize for Checkpoint<S> {
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.serialize_position(&mut members)?;
        members.serialize_entry(STATE, &*self.state)?;
        members.end()
    }
}

/// A checkpoint without its state.
struct Position<'c, S: State>(&'c Checkpoint<S>);

impl<S: State> Serialize for Position<'_, S> {
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.0.serialize_position(&mut members)?;
        members.end()
    }
}

/// A checkpoint as text.
#[derive(Debug)]
pub(super) struct Written<S> {
    pub(super) text: Indexed,
    /// The state in it.
    state: Weak<S>,
}

impl<S: State> Written<S> {
    /// Takes the text of a checkpoint.
    pub(super) fn of(checkpoint: &Checkpoint<S>, text: Indexed) -> Self {
        Self { text, state: Arc::downgrade(&checkpoint.state) }
    }

    /// Returns JSON `null`, the text of no checkpoint.
    pub(super) fn nothing() -> Self {
        Self { text: Indexed::null(), state: Weak::new() }
    }

    /// Writes a checkpoint. If the state is still the one in this text, its part of the text is used again.
    pub(super) fn next(&self, checkpoint: &Checkpoint<S>) -> Self {
        let is_same_state = std::ptr::eq(self.state.as_ptr(), Arc::as_ptr(&checkpoint.state));
        let last_part = self.text.whole().last_part().filter(|_| is_same_state);
        let text = match last_part.filter(|(name, _)| name.trim_matches('"') == STATE) {
            Some((_, state)) => {
                let text = Indexed::of_object(&Position(checkpoint), STATE, state);
                debug_assert_eq!(text.json().text(), Indexed::of(checkpoint).json().text(), "the state is unchanged");
                text
            }
            None => Indexed::of(checkpoint),
        };
        Self::of(checkpoint, text)
    }
}

impl<S: State> Default for Checkpoint<S> {
    fn default() -> Self {
        Self {
            format: Self::FORMAT,
            graph: GraphName::default(),
            cursor: Cursor::Idle,
            run: None,
            turns: 0,
            reply_slots: ReplySlots::default(),
            said_at: None,
            with_buttons: Vec::new(),
            suspended: BTreeMap::new(),
            state: Arc::default(),
        }
    }
}

/// The slots of a run's messages. The next slot holds the status line at first, and then the reply
/// that replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySlots {
    /// The base name of the run's slots, such as `turn:4`.
    pub base: String,
    /// The number of messages already said.
    pub said: u32,
}

impl ReplySlots {
    /// Creates the slots of a run that has said nothing yet.
    pub fn of(base: impl Into<String>) -> Self {
        Self { base: base.into(), said: 0 }
    }

    /// Returns the slot of the next message: of the status line now, and of the reply later.
    pub fn slot(&self) -> Slot {
        match self.said {
            0 => Slot::new(&*self.base),
            n => Slot::new(format!("{}:{n}", self.base)),
        }
    }
}

/// The position of a thread in its graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cursor {
    /// The thread has nothing to do until something arrives.
    #[default]
    Idle,
    /// The thread is at this node.
    At {
        /// The node's name.
        node: String,
        /// The number of failures of the node so far.
        #[serde(default)]
        attempt: u32,
        /// The action whose end led to the node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<ActionId>,
    },
    /// The thread is carrying out an approved action, and then continues at `node`.
    Performing {
        /// The action.
        action: ActionId,
        /// The node that receives its outcome.
        node: String,
    },
}

/// A turn that waits for a person's answer, or for the event that its action waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspended {
    /// The action that waits.
    pub action: ActionId,
    /// The run that asked.
    pub run: RunId,
    /// The node that receives the answer.
    pub node: String,
    /// The part of the state that a new message would reset ([`State::suspend`]).
    pub turn: Value,
    /// The system that reports the event that the action waits for, and the event's key; `None` if
    /// the action waits for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<(String, String)>,
}

impl Saved {
    /// Refuses a checkpoint of a newer program, which must be neither misread nor overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Newer`] if the checkpoint is of a newer program.
    pub fn check_format(&self, thread: &ThreadId) -> Result<(), Error> {
        match self.format().filter(|found| *found > FORMAT) {
            Some(found) => {
                Err(Error::Newer { what: format!("the checkpoint of thread {thread}"), found, known: FORMAT })
            }
            None => Ok(()),
        }
    }

    /// Returns the version of the saved shape, if the data contains it.
    fn format(&self) -> Option<u32> {
        let snapshot = self.snapshot.as_ref().and_then(format_of);
        let changed = self.deltas.iter().filter(|delta| delta.text().contains("format")).flat_map(format_changed_by);
        snapshot.into_iter().chain(changed).max()
    }

    /// Returns the checkpoint as it was saved: the last full one with the differences since. `Null`
    /// if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a difference cannot be read or does not fit.
    pub fn restore(&self) -> Result<Value, Error> {
        let unreadable = |error| Error::Corrupt { what: format!("the last full checkpoint: {error}") };
        let mut value: Value = match &self.snapshot {
            Some(snapshot) => snapshot.read().map_err(unreadable)?,
            None => Value::Null,
        };
        for delta in &self.deltas {
            let patch: json_patch::Patch =
                delta.read().map_err(|error| Error::Corrupt { what: format!("a step's delta: {error}") })?;
            json_patch::patch(&mut value, &patch)
                .map_err(|error| Error::Corrupt { what: format!("a step's delta does not fit: {error}") })?;
        }
        Ok(value)
    }
}

/// Returns the version of the shape of a checkpoint.
fn format_of(checkpoint: &Json) -> Option<u32> {
    // As it is written now, it begins with the version.
    let digits = checkpoint.text().strip_prefix(r#"{"format":"#).and_then(|rest| rest.split([',', '}']).next());
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(format) => Some(format),
        None => number(&checkpoint.read::<Value>().ok()?["format"]),
    }
}

/// Returns the versions of the shape that a difference sets.
fn format_changed_by(delta: &Json) -> Vec<u32> {
    let delta: Value = delta.read().unwrap_or_default();
    let changes = delta.as_array().into_iter().flatten();
    let changed = changes.filter_map(|change| match change["path"].as_str() {
        Some("") => number(&change["value"]["format"]),
        Some("/format") => number(&change["value"]),
        _ => None,
    });
    changed.collect()
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().map(|format| u32::try_from(format).unwrap_or(u32::MAX))
}

/// A checkpoint that was read from the store.
pub(super) struct Restored<S: State> {
    pub(super) checkpoint: Checkpoint<S>,
    /// The checkpoint as this program writes it.
    pub(super) text: Indexed,
    /// True if it was saved with the same values: a later difference then fits what is saved.
    pub(super) as_saved: bool,
}

impl<S: State> Restored<S> {
    /// Reads a saved checkpoint. Without one, it is an empty one for a thread of this graph.
    pub(super) fn read(saved: &Saved, graph: &GraphName) -> Result<Self, Error> {
        let corrupt = |error| Error::Corrupt { what: format!("the checkpoint at version {}: {error}", saved.version) };
        match (&saved.snapshot, saved.deltas.is_empty()) {
            (None, true) => {
                Ok(Self { checkpoint: Checkpoint::of(graph.clone()), text: Indexed::null(), as_saved: true })
            }
            (Some(snapshot), true) => {
                let checkpoint = snapshot.read().map_err(corrupt)?;
                let text = Indexed::of(&checkpoint);
                let as_saved = text.json() == snapshot;
                Ok(Self { checkpoint, text, as_saved })
            }
            (_, false) => {
                let value = saved.restore()?;
                let checkpoint = Checkpoint::deserialize(&value).map_err(corrupt)?;
                let text = Indexed::of(&checkpoint);
                let as_saved = text.json().read::<Value>().is_ok_and(|written| written == value);
                Ok(Self { checkpoint, text, as_saved })
            }
        }
    }
}

/// A reply that was posted with buttons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplyWithButtons {
    /// The state's name for what they wait for.
    pub wait_for: String,
    /// The slot of the message.
    pub slot: Slot,
    /// The reply.
    pub reply: Reply,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_newer_checkpoint_is_refused() {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let check = |snapshot: Option<Value>, deltas: Vec<Value>| {
            let (snapshot, deltas) = (snapshot.map(Json::from), deltas.into_iter().map(Json::from).collect());
            Saved { version: 1, snapshot, deltas }.check_format(&thread)
        };
        assert!(check(None, vec![]).is_ok());
        assert!(check(Some(json!({ "format": 1 })), vec![]).is_ok());
        assert!(check(Some(json!({ "a": 0, "format": 1 })), vec![]).is_ok());
        let newer = [
            check(Some(json!({ "format": 2 })), vec![]),
            check(Some(json!({ "a": { "format": 1 }, "format": 2 })), vec![]),
            check(None, vec![json!([{ "op": "add", "path": "", "value": { "format": 2 } }])]),
            check(Some(json!({ "format": 1 })), vec![json!([{ "op": "replace", "path": "/format", "value": 3 }])]),
        ];
        assert!(newer.iter().all(|checked| matches!(checked, Err(Error::Newer { .. }))), "{newer:?}");
    }

    #[test]
    fn a_checkpoint_that_is_nested_too_deeply_is_corrupt() {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let deep: Json = serde_json::from_str(&format!("{}{}", "[".repeat(200), "]".repeat(200))).unwrap();
        let saved = Saved { version: 2, snapshot: Some(deep), deltas: vec![Json::from(json!([]))] };
        assert!(saved.check_format(&thread).is_ok());
        assert!(matches!(saved.restore(), Err(Error::Corrupt { .. })));
    }
}
