//! The audit trail of a thread: an append-only hash chain of events, in which each entry includes the hash of the one
//! before it.
//!
//! An entry's hash is SHA-256 over the version of its form, the thread, the entry's number, the hash of the previous entry, the time, the
//! kind (all six written as in [`crate::digest`]), and the root of the event's commitments (32 bytes). [`crate::seal`]
//! describes the commitments. Values can therefore be hidden in an export, or when their retention period ends, without
//! breaking the chain.
//!
//! The event names the version in its `format`, which is 1. An entry of another version is refused, and a change of the form
//! takes the next number. An event is added by its kind, and a value by a member of its `detail`, in the same version.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    digest::{self, Digest},
    seal::{self, NotInPart, Salt, Sealed},
    shared::Shared,
};

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
    pub detail: Shared<Value>,
    /// The version of the entry's hash.
    pub format: u32,
    /// The salt of the commitments to the event's values; empty in an entry of which something is hidden.
    #[serde(default, skip_serializing_if = "Salt::is_none")]
    pub salt: Salt,
}

impl AuditDraft {
    /// The version of the hash of new entries.
    pub const FORMAT: u32 = 1;

    /// Creates an event that is not about an action.
    pub fn new(kind: AuditKind, at: Timestamp, by: Option<UserId>, detail: Value) -> Self {
        Self { at, kind, by, action: None, detail: detail.into(), format: Self::FORMAT, salt: Salt::fresh() }
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

    /// Returns the values with commitments, as JSON. All others are never hidden.
    fn with_commitments(&self) -> Value {
        let Self { at: _, kind: _, by, action, detail, format: _, salt: _ } = self;
        let mut covered = json!({ "detail": **detail });
        if let Some(by) = by {
            covered["by"] = json!(by);
        }
        if let Some(action) = action {
            covered["action"] = json!(action);
        }
        covered
    }

    /// Returns the root of the commitments. `None` unless each value has either a salt or a commitment.
    fn root(&self, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
        let Self { at: _, kind: _, by, action, detail, format: _, salt } = self;
        let action = action.as_ref().map(|action| Value::from(action.as_str()));
        let by = by.as_ref().map(|by| Value::from(by.as_str()));
        let members = [("action", action.as_ref()), ("by", by.as_ref()), ("detail", Some(&**detail))];
        let members: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        seal::root(&members, salt, sealed)
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
    /// An earlier approval no longer counts, because the person may not approve the action any more.
    Lapsed,
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
    /// True if everything but the kind and the time is hidden, since the entry could not be hidden in part: its
    /// salt is damaged, or its hash has a version that this program does not know.
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
        /// The hash of the content; `None` unless each value has either a salt or a commitment, in the right form.
        expected: Option<String>,
    },
    /// The hash has a version that this program does not know. A newer program may have written the entry.
    Format {
        /// The version.
        found: u32,
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
        let event = AuditDraft {
            at,
            kind: AuditKind::Unreadable,
            by: None,
            action: None,
            detail: Value::Null.into(),
            format: AuditDraft::FORMAT,
            salt: Salt::default(),
        };
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
        if self.event.format != AuditDraft::FORMAT {
            return Err(ChainFault::Format { found: self.event.format });
        }
        match self.computed_hash(thread) {
            Some(hash) if hash == self.hash => Ok(()),
            expected => Err(ChainFault::Hash { expected }),
        }
    }

    /// Returns the entry with values hidden. `replacement` is called with the place of each value, the value and its
    /// commitment; a value is hidden if it returns `Some`. The kind and the time are never hidden. An entry that cannot be
    /// hidden in part is withheld as a whole instead; for such an entry, the commitment is empty.
    pub fn hide(mut self, replacement: impl Fn(&str, &Value, &str) -> Option<String>) -> Self {
        let mut covered = self.event.with_commitments();
        let in_part = match self.event.format {
            AuditDraft::FORMAT => seal::hide(&mut covered, &self.event.salt, self.sealed.as_ref(), &replacement),
            _ => Err(NotInPart),
        };
        match in_part {
            Ok(None) => {}
            Ok(sealed) => {
                let id = |name: &str| covered.get(name).and_then(Value::as_str);
                let (by, action) = (id("by").map(UserId::from), id("action").map(ActionId::from));
                let (detail, salt) = (covered["detail"].take().into(), Salt::default());
                self.event = AuditDraft { by, action, detail, salt, ..self.event };
                self.sealed = sealed;
            }
            Err(NotInPart) => {
                let hides =
                    seal::leaves(&covered).iter().any(|leaf| replacement(&leaf.place, leaf.value, "").is_some());
                if hides && !self.withheld {
                    let (detail, salt) = (Value::Null.into(), Salt::default());
                    self.event = AuditDraft { by: None, action: None, detail, salt, ..self.event };
                    self.sealed = None;
                    self.withheld = true;
                }
            }
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
    /// The event's contribution to the hash: the time, the kind and the root.
    hashed: Vec<u8>,
}

impl Unchained {
    /// Computes the commitments to the values of an event. If that is impossible, since the event's salt is damaged, the
    /// entry can be stored, but [`AuditEntry::check`] will find the fault.
    pub fn of(event: &AuditDraft) -> Self {
        Self::new(event, None).unwrap_or(Self { hashed: Vec::new() })
    }

    /// Returns `None` unless each value has either a salt or a commitment.
    fn new(event: &AuditDraft, sealed: Option<&Sealed>) -> Option<Self> {
        let mut hashed = Vec::with_capacity(128);
        digest::encode(&json!(event.at), &mut hashed);
        digest::encode(&json!(event.kind), &mut hashed);
        hashed.extend_from_slice(&event.root(sealed)?);
        Some(Self { hashed })
    }

    /// Returns the hash of the entry that chains the event to the previous entry.
    pub fn hash(&self, thread: &ThreadId, seq: u64, previous: &str) -> String {
        let mut bytes = Vec::with_capacity(self.hashed.len() + 256);
        digest::encode_integer(AuditDraft::FORMAT.into(), &mut bytes);
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

    /// Returns a replacement for the text of an event, and for no other value.
    fn hidden_text(place: &str) -> Option<String> {
        (place == "/detail/text").then(|| "[hidden]".to_owned())
    }

    #[test]
    fn hiding_a_value_keeps_the_chain_valid() {
        let whole = AuditEntry::chain(&thread(), 1, "", said("start it"));
        let hidden = whole.clone().hide(|place, _, _| hidden_text(place));
        assert_eq!((&hidden.hash, hidden.holds(&thread(), "")), (&whole.hash, true));
        assert!(!serde_json::to_string(&hidden).unwrap().contains("start it"));
        assert_eq!(hidden.event.format, whole.event.format);
        assert!(hidden.event.salt.is_none(), "with the salt, a guess at the hidden value could be confirmed");

        let more = hidden.clone().hide(|place, _, _| (place == "/by").then(|| "Person 1".to_owned()));
        assert_eq!((more.sealed.as_ref().unwrap().hidden.len(), more.holds(&thread(), "")), (2, true));
        assert_eq!(more.clone().hide(|place, _, _| hidden_text(place)), more, "it is hidden already");

        let mut forged = hidden;
        forged.event.by = Some("U2".into());
        assert!(matches!(forged.check(&thread(), ""), Err(ChainFault::Hash { expected: Some(_) })));
    }

    #[test]
    fn an_entry_of_another_version_is_refused() {
        let whole = AuditEntry::chain(&thread(), 1, "", said("start it"));
        for entry in [whole.clone(), whole.hide(|place, _, _| hidden_text(place))] {
            for found in [0, 2] {
                let mut other = entry.clone();
                other.event.format = found;
                assert_eq!(other.check(&thread(), ""), Err(ChainFault::Format { found }));
            }
        }
    }

    #[test]
    fn an_event_without_a_proper_salt_or_version_is_stored_with_a_fault_and_hidden_as_a_whole() {
        let salt = |text: &str| serde_json::from_value(json!(text)).unwrap();
        let expected = ChainFault::Hash { expected: None };
        for (event, fault) in [
            (AuditDraft { salt: salt("5a17"), ..said("start it") }, expected.clone()),
            (AuditDraft { salt: Salt::default(), ..said("start it") }, expected),
            (AuditDraft { format: 2, ..said("start it") }, ChainFault::Format { found: 2 }),
        ] {
            let entry = AuditEntry::chain(&thread(), 1, "", event);
            assert_eq!(entry.check(&thread(), ""), Err(fault));
            assert_eq!(entry.clone().hide(|_, _, _| None), entry);
            let hidden = entry.hide(|place, _, _| hidden_text(place));
            assert!(hidden.withheld && hidden.holds(&thread(), "") && hidden.event.salt.is_none());
            assert!(!serde_json::to_string(&hidden).unwrap().contains("start it"));
        }
    }

    #[test]
    fn the_root_covers_the_values_that_can_be_hidden() {
        let with_action = AuditDraft { action: Some("a1".into()), ..said("start it") };
        for event in [AuditDraft { by: None, ..said("start it") }, with_action] {
            let covered = event.with_commitments();
            let mut members: Vec<_> =
                covered.as_object().unwrap().iter().map(|(name, value)| (&**name, value)).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            assert_eq!(event.root(None), seal::root(&members, &event.salt, None));
        }
    }

    /// The hash was computed without this program, from the description of the form.
    #[test]
    fn the_hash_of_an_entry_is_as_described() {
        let detail = json!({
            "text": "ä start\nit", "a/b": [1, -2.5, [], {}], "a-b": null, "a": { "~": true, "no": false },
            "list": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        });
        let event = json!({
            "at": 1_700_000_000_000_i64, "kind": "said", "by": "U1", "action": "a1", "detail": detail,
            "format": 1, "salt": "000102030405060708090a0b0c0d0e0f",
        });
        let event: AuditDraft = serde_json::from_value(event).unwrap();
        let entry = AuditEntry::chain(&thread(), 7, &"ab".repeat(32), event);
        assert_eq!(entry.hash, "8559280d620f984637c392789d3edc079ca47a00e4c98804999ce05a9eebff77");
    }

    #[test]
    fn a_long_text_is_cut_and_its_length_recorded() {
        let words = AuditDraft::text_detail(&"ä".repeat(MAX_TEXT_CHARS + 1));
        assert_eq!(words["text"].as_str().unwrap().chars().count(), MAX_TEXT_CHARS);
        assert_eq!(words["cut"]["characters"], MAX_TEXT_CHARS + 1);
    }
}
