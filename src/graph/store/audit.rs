//! The audit trail of a thread: an append-only hash chain of events, in which each entry includes the hash of the one
//! before it.
//!
//! The hash covers commitments to an entry's values ([`crate::seal`]). Values can therefore be hidden in an export, or
//! when their retention period ends, without breaking the chain. Entries of the first version have no salt; their hash
//! covers the values themselves.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    digest::{self, Digest},
    seal::{self, Commitments, Salt, Sealed},
};

/// The place of an event's detail.
const DETAIL: &str = "/detail";

/// The maximum length of a message's text in the audit trail, in characters. A digest of the full text covers the rest.
const MAX_TEXT_CHARS: usize = 4000;

/// An event for the audit trail, before it is chained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditDraft {
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of event.
    pub kind: AuditKind,
    /// The person who caused the event, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// The action that the event is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The details: digests, names, reasons.
    pub detail: Value,
    /// The salt of the commitments to the event's values; empty in entries of the first version.
    #[serde(default, skip_serializing_if = "Salt::is_none")]
    pub salt: Salt,
}

impl AuditDraft {
    /// Creates an event that is not about an action.
    pub fn new(kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> Self {
        Self { at, kind, by, action: None, detail, salt: Salt::fresh() }
    }

    /// Returns an event detail that holds a text. A text that is too long is cut, with a digest of the full text.
    pub fn text_detail(text: &str) -> Value {
        match text.char_indices().nth(MAX_TEXT_CHARS) {
            None => json!({ "text": text }),
            Some((end, _)) => {
                let digest = Digest::of(&[&json!(text)]);
                json!({ "text": &text[..end], "cut": { "characters": text.chars().count(), "digest": digest } })
            }
        }
    }

    /// Returns the event as JSON without its salt, which is the form that is hashed.
    fn unsalted(&self) -> Value {
        let mut event = self.unsalted_without_detail();
        event["detail"] = self.detail.clone();
        event
    }

    /// Returns [`Self::unsalted`] with `null` in place of the detail.
    fn unsalted_without_detail(&self) -> Value {
        let Self { at, kind, by, action, .. } = self;
        let (by, action) = (by.clone(), action.clone());
        let event = Self { at: *at, kind: *kind, by, action, detail: Value::Null, salt: Salt::default() };
        serde_json::to_value(event).expect("an audit event is plain data")
    }
}

/// The kinds of event in the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A person asked for something.
    Asked,
    /// A card was created.
    Shown,
    /// A person's click or request did not count.
    ClickRefused,
    /// A person decided on a request, or the request expired.
    Decided,
    /// The policy was changed in the settings while the card was open.
    PolicyChanged,
    /// The request for an approved action was about to be sent.
    Executed,
    /// A person stopped a run or an action.
    Stopped,
    /// An action began to wait for an external event.
    Waits,
    /// An external event arrived that an action was waiting for, or that started a run.
    Arrived,
    /// An action ended, or its outcome was looked up.
    Outcome,
    /// A person wrote a message in the thread.
    Said,
    /// The bot wrote a message in the thread.
    Answered,
    /// The bot sent a message through a channel other than Slack.
    Posted,
    /// A run with a plan made progress. The details hold the event as the graph describes it.
    Progress,
    /// A step called a language model. The details name the model and count calls and tokens.
    Ran,
    /// Requests were sent to the platform. The details include its answers.
    Sent,
    /// A file was attached to the thread. The details identify it by its hash.
    Attached,
    /// A person edited the request on a card, and a new version replaced it.
    Edited,
    /// A person gave the reason for a decision.
    Reasoned,
    /// A reminder of the card was posted, or more people were asked to decide.
    Reminded,
    /// A person, or a later check of the platform, settled an unknown outcome.
    Settled,
    /// A person rated an answer.
    Rated,
    /// The audit trail was exported.
    Exported,
    /// Messages and steps were deleted because their retention period ended.
    Forgotten,
    /// A placeholder for an entry that cannot be read. Never stored.
    Unreadable,
}

/// An event of the audit trail, chained to the one before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The entry's number within the thread, starting at 1.
    pub seq: u64,
    /// The hash of the previous entry; empty for the first entry.
    pub previous: String,
    /// The event.
    pub event: AuditDraft,
    /// The commitments to the hidden values, with the salts of the others. If set, the event itself carries no salt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// True if everything but the kind and the time is hidden, since an entry of the first version cannot be hidden in
    /// part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// SHA-256 over all of the above.
    pub hash: String,
}

/// The reason why an entry breaks the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// The entry refers to a different previous entry.
    Link {
        /// The hash of the actual previous entry.
        expected: String,
    },
    /// The stored hash does not match the content.
    Hash {
        /// The hash of the content; `None` unless each value has either a salt or a commitment.
        expected: Option<String>,
    },
}

impl AuditEntry {
    /// Creates an entry that chains an event to the previous entry.
    pub fn chain(thread: &ThreadId, seq: u64, previous: &str, event: AuditDraft) -> Self {
        let hash = Unchained::of(&event).hash(thread, seq, previous);
        Self { seq, previous: previous.to_owned(), event, sealed: None, withheld: false, hash }
    }

    /// Creates a placeholder for the entry at `seq`, of which at most the hash can be read.
    pub fn unreadable(seq: u64, previous: &str, hash: String, at: Timestamp) -> Self {
        let salt = Salt::default();
        let event = AuditDraft { at, kind: AuditKind::Unreadable, by: None, action: None, detail: Value::Null, salt };
        Self { seq, previous: previous.to_owned(), event, sealed: None, withheld: true, hash }
    }

    /// Returns true if [`AuditEntry::check`] finds no fault.
    pub fn holds(&self, thread: &ThreadId, previous: &str) -> bool {
        self.check(thread, previous).is_ok()
    }

    /// Checks that the hash matches the content and that the entry follows `previous`. For a withheld entry, only the
    /// latter can be checked.
    ///
    /// # Errors
    ///
    /// [`ChainFault`] names the fault and the expected value.
    pub fn check(&self, thread: &ThreadId, previous: &str) -> Result<(), ChainFault> {
        if self.previous != previous {
            return Err(ChainFault::Link { expected: previous.to_owned() });
        }
        if self.withheld {
            return Ok(());
        }
        match self.computed_hash(thread) {
            Some(hash) if hash == self.hash => Ok(()),
            expected => Err(ChainFault::Hash { expected }),
        }
    }

    /// Returns the entry with values hidden. `replacement` is called with the place of each value, the value and its
    /// commitment; a value is hidden if it returns `Some`. The kind and the time are never hidden.
    pub fn hide(mut self, replacement: impl Fn(&str, &Value, &str) -> Option<String>) -> Self {
        let mut event = self.event.unsalted();
        let replacement = |place: &str, value: &Value, commitment: &str| match place {
            "/kind" | "/at" => None,
            place => replacement(place, value, commitment),
        };
        if self.event.salt.is_none() && self.sealed.is_none() {
            let hides = seal::leaves(&event).iter().any(|(place, value)| replacement(place, value, "").is_some());
            if hides && !self.withheld {
                self.event = AuditDraft { by: None, action: None, detail: Value::Null, ..self.event };
                self.withheld = true;
            }
            return self;
        }
        let Some(sealed) = seal::hide(&mut event, &self.event.salt, self.sealed.take(), replacement) else {
            return self;
        };
        self.sealed = Some(sealed);
        if let Ok(shown) = serde_json::from_value(event) {
            self.event = shown;
        }
        self
    }

    fn computed_hash(&self, thread: &ThreadId) -> Option<String> {
        Some(Unchained::new(&self.event, self.sealed.as_ref())?.hash(thread, self.seq, &self.previous))
    }
}

/// The part of an entry's hash that depends on the event alone. It takes most of the time, and can be computed before the
/// previous entry is known.
#[derive(Debug)]
pub struct Unchained {
    /// The commitments to the event's values, or the event itself if it is of the first version, as they are hashed.
    hashed: Vec<u8>,
    is_first_version: bool,
}

impl Unchained {
    /// Computes the commitments to the values of an event.
    pub fn of(event: &AuditDraft) -> Self {
        Self::new(event, None).expect("nothing of the event is hidden")
    }

    /// Returns `None` unless each value has either a salt or a commitment.
    fn new(event: &AuditDraft, sealed: Option<&Sealed>) -> Option<Self> {
        let mut hashed = Vec::with_capacity(4096);
        let is_first_version = event.salt.is_none() && sealed.is_none();
        if is_first_version {
            digest::encode(&event.unsalted(), &mut hashed);
        } else {
            let without_detail = event.unsalted_without_detail();
            let leaves = seal::leaves(&without_detail).into_iter().filter(|(place, _)| place != DETAIL);
            let leaves = leaves.chain(seal::leaves_at(DETAIL, &event.detail)).collect();
            Commitments::to(leaves, &event.salt, sealed)?.encode(&mut hashed);
        }
        Some(Self { hashed, is_first_version })
    }

    /// Returns the hash of the entry that chains the event to the previous entry.
    pub fn hash(&self, thread: &ThreadId, seq: u64, previous: &str) -> String {
        let mut bytes = Vec::with_capacity(self.hashed.len() + 256);
        if !self.is_first_version {
            digest::encode_integer(2, &mut bytes);
        }
        digest::encode_text(&thread.to_string(), &mut bytes);
        digest::encode_integer(seq, &mut bytes);
        digest::encode_text(previous, &mut bytes);
        bytes.extend_from_slice(&self.hashed);
        Digest::of_encoded(&bytes).into_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> ThreadId {
        ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() }
    }

    fn said(text: &str) -> AuditDraft {
        AuditDraft::new(AuditKind::Said, Timestamp(7), Some("U1".into()), AuditDraft::text_detail(text))
    }

    #[test]
    fn hiding_a_value_keeps_the_chain_valid() {
        let whole = AuditEntry::chain(&thread(), 1, "", said("start it"));
        let text = |place: &str, _: &Value, _: &str| (place == "/detail/text").then(|| "[hidden]".to_owned());
        let hidden = whole.clone().hide(text);
        assert_eq!((&hidden.hash, hidden.holds(&thread(), "")), (&whole.hash, true));
        assert!(!serde_json::to_string(&hidden).unwrap().contains("start it"));
        assert!(hidden.event.salt.is_none(), "with the salt, a guess at the hidden value could be confirmed");

        let mut forged = hidden;
        forged.event.by = Some("U2".into());
        assert!(matches!(forged.check(&thread(), ""), Err(ChainFault::Hash { expected: Some(_) })));
    }

    #[test]
    fn an_entry_of_the_first_version_is_withheld_as_a_whole() {
        let first = AuditDraft { salt: Salt::default(), ..said("start it") };
        let entry =
            AuditEntry::chain(&thread(), 1, "", first).hide(|place, _, _| place.ends_with("text").then(String::new));
        assert!(entry.withheld && entry.holds(&thread(), ""));
        assert!(!serde_json::to_string(&entry).unwrap().contains("start it"));
    }

    #[test]
    fn a_long_text_is_cut_and_its_length_recorded() {
        let words = AuditDraft::text_detail(&"ä".repeat(MAX_TEXT_CHARS + 1));
        assert_eq!(words["text"].as_str().unwrap().chars().count(), MAX_TEXT_CHARS);
        assert_eq!(words["cut"]["characters"], MAX_TEXT_CHARS + 1);
    }
}
