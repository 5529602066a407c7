//! The interpretations of the newest messages, so that a message is read once, however often it is asked about.
//!
//! A turn asks several things about one message: whether it is a request, which tools it needs, what answers it. What a
//! message means depends on nothing but the phrases and the [`relevant`] parts of the situation. An
//! interpretation is therefore valid until the phrases change ([`super::phrases::Phrases::generation`]), and nothing has
//! to be passed from one node to the next.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{phrase_book::PhraseBook, situation::Situation, user_request::Interpretation};

/// The maximum number of messages that are kept; about those of the turns that are in progress.
const MAX_KEPT: usize = 64;

/// The newest messages, and what is known of each.
#[derive(Default)]
pub(super) struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The generation of the phrases by which they were read.
    generation: u64,
    /// Oldest first.
    messages: VecDeque<Understood>,
}

/// A message in its situation, and what is known of it.
pub(super) struct Understood {
    /// The parts of the situation on which an interpretation depends.
    situation: Situation,
    /// The request that it expresses.
    pub(super) interpretation: Option<Interpretation>,
    /// The requests in it, if there are several.
    pub(super) steps: Option<Vec<String>>,
}

impl Memory {
    /// Returns a fact about a message, which is read unless it is known. `generation` is that of the phrases.
    fn recall<T: Clone>(
        &self,
        situation: &Situation,
        generation: u64,
        fact: fn(&mut Understood) -> &mut Option<T>,
        read: impl FnOnce() -> T,
    ) -> T {
        let situation = relevant(situation);
        let known = self.of(generation).find(&situation).and_then(|understood| fact(understood).clone());
        if let Some(known) = known {
            return known;
        }
        let found = read(); // it may ask about parts of the message, so nothing is locked
        let mut kept = self.of(generation);
        if kept.find(&situation).is_none() {
            if kept.messages.len() >= MAX_KEPT {
                kept.messages.pop_front();
            }
            kept.messages.push_back(Understood { situation: situation.clone(), interpretation: None, steps: None });
        }
        kept.find(&situation).map(fact).into_iter().for_each(|fact| *fact = Some(found.clone()));
        found
    }

    /// Returns the messages that were read by these phrases.
    fn of(&self, generation: u64) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.generation != generation {
            *kept = Kept { generation, messages: VecDeque::new() };
        }
        kept
    }
}

impl PhraseBook {
    /// Returns a fact about a message, which is read unless it is known.
    pub(super) fn recall<T: Clone>(
        &self,
        situation: &Situation,
        fact: fn(&mut Understood) -> &mut Option<T>,
        read: impl FnOnce() -> T,
    ) -> T {
        let generation = self.phrases().map(|phrases| phrases.generation()).fold(0, u64::wrapping_add);
        self.memory.recall(situation, generation, fact, read)
    }
}

impl Kept {
    fn find(&mut self, situation: &Situation) -> Option<&mut Understood> {
        self.messages.iter_mut().rev().find(|understood| understood.situation == *situation)
    }
}

/// Returns the parts of a situation on which an interpretation depends.
fn relevant(situation: &Situation) -> Situation {
    let unread = Situation::default();
    Situation {
        by: unread.by,
        zone: unread.zone,
        earlier: unread.earlier,
        analysis: unread.analysis,
        replan: unread.replan,
        gathered: unread.gathered,
        errors: unread.errors,
        ..situation.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::*;

    /// A situation in which every part has a value, so that every part can be changed.
    fn full() -> Value {
        let draft = json!({ "action": "archive", "params": { "document": "Plan" } });
        json!({
            "said": "archive it", "by": "U1", "today": "2026-11-24", "zone": "UTC",
            "names": [{ "kind": "document", "name": "Plan", "said": "Plan" }],
            "earlier": ["before"],
            "analysis": { "intent_type": "needs_info", "confidence": 1.0 },
            "draft": draft, "on_card": draft, "turned_down": { "change": draft },
            "replan": { "reason": "none" },
            "last_subject": "Plan", "subjects": { "letters": "Dear Bo" },
            "listed": { "names": ["Plan"] }, "topic": { "capability": "documents" },
            "open_cards": [{ "title": "Archive?", "approve": "Archive", "reject": "No", "typed": true }],
            "recent_changes": [{ "what": "Archived" }],
            "gathered": { "a": 1 }, "errors": ["none"],
        })
    }

    fn situation(value: &Value) -> Situation {
        serde_json::from_value(value.clone()).unwrap()
    }

    /// Recalls the steps of a situation; true if they had to be read.
    fn reads(memory: &Memory, situation: &Situation, generation: u64) -> bool {
        let read = Cell::new(false);
        memory.recall(
            situation,
            generation,
            |known| &mut known.steps,
            || {
                read.set(true);
                Vec::new()
            },
        );
        read.get()
    }

    #[test]
    fn a_message_is_read_again_if_anything_changed_that_its_meaning_depends_on() {
        let full = full();
        let irrelevant = ["by", "zone", "earlier", "analysis", "replan", "gathered", "errors"];
        for part in full.as_object().unwrap().keys() {
            let memory = Memory::default();
            assert!(reads(&memory, &situation(&full), 0) && !reads(&memory, &situation(&full), 0));
            let mut changed = full.clone();
            changed.as_object_mut().unwrap().remove(part);
            assert_ne!(situation(&changed), situation(&full), "{part}");
            assert_eq!(reads(&memory, &situation(&changed), 0), !irrelevant.contains(&part.as_str()), "{part}");
        }
    }

    #[test]
    fn a_message_is_read_again_after_the_phrases_changed() {
        let (memory, message) = (Memory::default(), situation(&full()));
        assert!(reads(&memory, &message, 0) && !reads(&memory, &message, 0));
        assert!(reads(&memory, &message, 1) && !reads(&memory, &message, 1));
    }

    #[test]
    fn only_the_newest_messages_are_kept() {
        let memory = Memory::default();
        let message = |number: usize| Situation { said: number.to_string(), ..Situation::default() };
        assert!((0..=MAX_KEPT).all(|number| reads(&memory, &message(number), 0)));
        assert!(!reads(&memory, &message(MAX_KEPT), 0) && !reads(&memory, &message(1), 0));
        assert!(reads(&memory, &message(0), 0), "it was the oldest");
    }

    #[test]
    fn a_message_can_be_asked_about_while_it_is_read() {
        let (memory, message) = (Memory::default(), situation(&full()));
        let steps =
            memory.recall(&message, 0, |known| &mut known.steps, || vec![reads(&memory, &message, 0).to_string()]);
        assert_eq!(steps, ["true"]);
        assert!(!reads(&memory, &message, 0));
    }
}
