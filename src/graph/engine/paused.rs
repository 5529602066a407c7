//! The checkpoints of threads that this process left in a pause, so that they need not be parsed again when a person answers.
//!
//! The checkpoint is still fetched from the store. Only if its text is the one that was kept, it is not parsed again.

use std::{collections::HashMap, sync::Mutex};

use countersign_core::ids::ThreadId;

use crate::{checkpoint::Checkpoint, indexed::Indexed, json::Json, node::State};

/// The maximum number of threads that are kept, some 20 KB each.
const MAX_THREADS: usize = 64;

/// The checkpoints of threads, with their texts.
pub(super) struct Paused<S: State>(Mutex<HashMap<ThreadId, (Checkpoint<S>, Indexed)>>);

impl<S: State> Default for Paused<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: State> Paused<S> {
    /// Keeps a checkpoint with the text that was saved of it. If there are too many, the others are dropped.
    pub(super) fn keep(&self, thread: ThreadId, checkpoint: Checkpoint<S>, text: Indexed) {
        debug_assert!(
            text.json().read::<Checkpoint<S>>().is_ok_and(|saved| saved == checkpoint),
            "the checkpoint was changed after it was saved"
        );
        let Ok(mut kept) = self.0.lock() else { return };
        if kept.len() >= MAX_THREADS && !kept.contains_key(&thread) {
            kept.clear();
        }
        kept.insert(thread, (checkpoint, text.without_room()));
    }

    /// Returns the checkpoint that was saved with this text, and the text, if they were kept. They are kept no longer.
    pub(super) fn take(&self, thread: &ThreadId, saved: &Json) -> Option<(Checkpoint<S>, Indexed)> {
        let kept = self.0.lock().ok()?.remove(thread);
        kept.filter(|(_, text)| text.json().text() == saved.text())
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    use super::*;
    use crate::{action::ActionRecord, node::Said};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Memory;

    impl State for Memory {
        fn begin_turn(&mut self, _: &Said) {}

        fn suspend(&self) -> Value {
            Value::Null
        }

        fn resume(&mut self, _: Value) -> Result<(), serde_json::Error> {
            Ok(())
        }

        fn superseded(&mut self, _: &ActionRecord, _: Timestamp) {}
    }

    #[test]
    fn a_checkpoint_is_used_once_and_only_for_its_own_text() {
        let paused = Paused::<Memory>::default();
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let keep = |turns| {
            let checkpoint = Checkpoint { turns, ..Checkpoint::default() };
            let text = Indexed::of(&checkpoint);
            let saved = text.json().clone();
            paused.keep(thread.clone(), checkpoint, text);
            saved
        };
        let first = keep(1);
        assert_eq!(paused.take(&thread, &first).map(|(checkpoint, _)| checkpoint.turns), Some(1));
        assert!(paused.take(&thread, &first).is_none(), "it was taken");
        keep(2);
        assert!(paused.take(&thread, &first).is_none(), "the store has another text");
        let other = ThreadId { root: "2.2".into(), ..thread.clone() };
        let second = keep(2);
        assert!(paused.take(&other, &second).is_none());
        assert!(paused.take(&thread, &second).is_some());
    }
}
