//! The record: an append-only chain of what happened, each entry bound to the hash of the one before.
//!
//! The hash covers commitments to an entry's values ([`crate::seal`]), so that values can be hidden in an export, or
//! after their time, and the chain still holds. Entries of the first version have no salt; their hash covers the bare
//! values.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    digest::Digest,
    seal::{self, Salt, Sealed},
};

/// The longest text of a message in the record, in characters; the hash of the whole binds the rest.
const MAX_TEXT_CHARS: usize = 4000;

/// One event for the record, before it is chained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    /// The time.
    pub at: Timestamp,
    /// The kind of event.
    pub kind: AuditKind,
    /// The person who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The action it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The details: digests, names, reasons.
    pub detail: Value,
    /// The salt that hides its values if they have to be hidden; none in entries of the first version.
    #[serde(default, skip_serializing_if = "Salt::is_none")]
    pub salt: Salt,
}

impl AuditDraft {
    /// Creates an event that is about no action.
    pub fn new(kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> Self {
        Self { at, kind, by, action: None, detail, salt: Salt::fresh() }
    }

    /// Returns a text for a detail: one that is too long is cut, and bound by the hash of the whole.
    pub fn words(text: &str) -> Value {
        match text.char_indices().nth(MAX_TEXT_CHARS) {
            None => json!({ "text": text }),
            Some((end, _)) => {
                let whole = Digest::of(&[&json!(text)]);
                json!({ "text": &text[..end], "cut": { "characters": text.chars().count(), "digest": whole } })
            }
        }
    }
}

/// The kinds of event in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A person asked for something.
    Asked,
    /// A card was made.
    Shown,
    /// A person's click or request did not count.
    ClickRefused,
    /// A person decided, or time did.
    Decided,
    /// The policy was changed in the settings while the card was open.
    PolicyChanged,
    /// The request was about to leave.
    Executed,
    /// A person stopped a run or an action.
    Stopped,
    /// An action began to wait for an event elsewhere.
    Waits,
    /// An event arrived from elsewhere: one that an action waited for, or that began a run.
    Arrived,
    /// An action ended, or its outcome was looked up.
    Outcome,
    /// A person said something in the thread.
    Said,
    /// The bot said something there.
    Answered,
    /// The bot sent a message by another way than Slack.
    Posted,
    /// A step asked a model; with model, calls and tokens.
    Ran,
    /// Requests left for the platform; with its answers.
    Sent,
    /// A file was put into the thread, known by its hash.
    Attached,
    /// A person edited the request of a card: a new version replaced it.
    Edited,
    /// A person gave the reason for a decision.
    Reasoned,
    /// The thread was reminded of the card, or more people were brought in.
    Reminded,
    /// A person, or a later look, settled an unknown outcome.
    Settled,
    /// A person rated an answer.
    Rated,
    /// The record was exported.
    Exported,
    /// Messages and steps were dropped since their time was over.
    Forgotten,
    /// The place of an entry that cannot be read. Never stored.
    Unreadable,
}

/// One event of the record, chained to the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The number within the thread, from 1.
    pub seq: u64,
    /// The hash of the entry before; empty for the first.
    pub previous: String,
    /// The event.
    pub event: AuditDraft,
    /// The hidden parts. If there are any, the event has no salt of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// True if everything but kind and time is hidden: entries of the first version cannot be hidden in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// SHA-256 over all of the above.
    pub hash: String,
}

/// The reason why an entry does not continue the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The entry follows another one.
    Link {
        /// The hash of the entry before it.
        right: String,
    },
    /// The hash is not that of the content.
    Hash {
        /// The hash of its content; `None` if its hidden and its open parts do not fit together.
        right: Option<String>,
    },
}

impl AuditEntry {
    /// Chains an event to the entry before it.
    pub fn chain(thread: &ThreadId, seq: u64, previous: &str, event: AuditDraft) -> Self {
        let hash = String::new();
        let mut entry = Self { seq, previous: previous.to_owned(), event, sealed: None, withheld: false, hash };
        entry.hash = entry.computed_hash(thread).expect("an entry of which nothing is hidden has a hash");
        entry
    }

    /// Creates an entry in place of the one at `seq`, of which at most the hash can be read.
    pub fn unreadable(seq: u64, previous: &str, hash: String, at: Timestamp) -> Self {
        let salt = Salt::default();
        let event = AuditDraft { at, kind: AuditKind::Unreadable, by: None, action: None, detail: Value::Null, salt };
        Self { seq, previous: previous.to_owned(), event, sealed: None, withheld: true, hash }
    }

    /// Returns true if the hash matches the content and the entry follows `previous`.
    pub fn holds(&self, thread: &ThreadId, previous: &str) -> bool {
        self.check(thread, previous).is_ok()
    }

    /// Checks that the hash matches the content and the entry follows `previous`. For a withheld entry only the latter
    /// can be checked.
    ///
    /// # Errors
    ///
    /// [`Broken`] with the fault and the right value.
    pub fn check(&self, thread: &ThreadId, previous: &str) -> Result<(), Broken> {
        if self.previous != previous {
            return Err(Broken::Link { right: previous.to_owned() });
        }
        if self.withheld {
            return Ok(());
        }
        match self.computed_hash(thread) {
            Some(right) if right == self.hash => Ok(()),
            right => Err(Broken::Hash { right }),
        }
    }

    /// Returns the entry without the values for which `instead` returns a replacement; it gets their place, the value
    /// and its commitment. Kind and time are never hidden.
    pub fn hide(mut self, instead: impl Fn(&str, &Value, &str) -> Option<Value>) -> Self {
        let mut event = self.bare_event();
        let instead = |place: &str, value: &Value, commitment: &str| match place {
            "/kind" | "/at" => None,
            place => instead(place, value, commitment),
        };
        if self.event.salt.is_none() && self.sealed.is_none() {
            let hides = seal::leaves(&event).iter().any(|(place, value)| instead(place, value, "").is_some());
            if hides && !self.withheld {
                self.event = AuditDraft { by: None, action: None, detail: Value::Null, ..self.event };
                self.withheld = true;
            }
            return self;
        }
        let Some(sealed) = seal::hide(&mut event, &self.event.salt, self.sealed.take(), instead) else { return self };
        self.sealed = Some(sealed);
        if let Ok(shown) = serde_json::from_value(event) {
            self.event = shown;
        }
        self
    }

    /// Returns the event as it is hashed.
    fn bare_event(&self) -> Value {
        let mut event = serde_json::to_value(&self.event).expect("an audit event is plain data");
        if let Some(fields) = event.as_object_mut() {
            fields.remove("salt");
        }
        event
    }

    fn computed_hash(&self, thread: &ThreadId) -> Option<String> {
        let (thread, seq, previous) = (json!(thread.to_string()), json!(self.seq), json!(self.previous));
        let event = self.bare_event();
        let digest = if self.event.salt.is_none() && self.sealed.is_none() {
            Digest::of(&[&thread, &seq, &previous, &event])
        } else {
            let commitments = seal::commitments(&event, &self.event.salt, self.sealed.as_ref())?;
            Digest::of(&[&json!(2), &thread, &seq, &previous, &commitments])
        };
        Some(digest.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() }
    }

    fn said(text: &str) -> AuditDraft {
        AuditDraft::new(AuditKind::Said, Timestamp(7), Some("U1".into()), AuditDraft::words(text))
    }

    #[test]
    fn a_hidden_value_leaves_the_chain_whole() {
        let whole = AuditEntry::chain(&thread(), 1, "", said("start it"));
        let text = |place: &str, _: &Value, _: &str| (place == "/detail/text").then(|| json!("[hidden]"));
        let hidden = whole.clone().hide(text);
        assert_eq!((&hidden.hash, hidden.holds(&thread(), "")), (&whole.hash, true));
        assert!(!serde_json::to_string(&hidden).unwrap().contains("start it"));
        assert!(hidden.event.salt.is_none(), "it would tell whether a guess is right");

        let mut forged = hidden;
        forged.event.by = Some("U2".into());
        assert!(matches!(forged.check(&thread(), ""), Err(Broken::Hash { right: Some(_) })));
    }

    #[test]
    fn an_entry_of_the_first_version_is_withheld_as_a_whole() {
        let first = AuditDraft { salt: Salt::default(), ..said("start it") };
        let entry =
            AuditEntry::chain(&thread(), 1, "", first).hide(|place, _, _| place.ends_with("text").then(|| json!("")));
        assert!(entry.withheld && entry.holds(&thread(), ""));
        assert!(!serde_json::to_string(&entry).unwrap().contains("start it"));
    }

    #[test]
    fn a_long_text_is_cut_and_bound() {
        let words = AuditDraft::words(&"ä".repeat(MAX_TEXT_CHARS + 1));
        assert_eq!(words["text"].as_str().unwrap().chars().count(), MAX_TEXT_CHARS);
        assert_eq!(words["cut"]["characters"], MAX_TEXT_CHARS + 1);
    }
}
