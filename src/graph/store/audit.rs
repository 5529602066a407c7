//! The audit trail of a thread: an append-only hash chain of events, in which each entry includes the hash of the one
//! before it.
//!
//! An entry's hash is SHA-256 over the version, the thread, the entry's number, the hash of the previous entry, the time, the
//! kind (all six written as in [`crate::digest`]), and the root of the event's commitments (32 bytes). [`crate::seal`]
//! describes the commitments. Values can therefore be hidden in an export, or when their retention period ends, without
//! breaking the chain.
//!
//! This is version 4, and the event says so in its `format`. In version 3, the time and the kind are among the values with
//! commitments. In version 2, the hash covers all places and commitments instead of their root. An event of version 1 has no
//! salt either; the hash covers the event itself, and no version. Entries of these two versions have no `format`.

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ThreadId, UserId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    digest::{self, Digest},
    seal::{self, Leaf, NotInPart, Salt, Sealed, Version},
    shared::Shared,
};

/// The place of an event's detail.
const DETAIL: &str = "/detail";

/// The maximum length of a message's text in the audit trail, in characters. A digest of the full text covers the rest.
const MAX_TEXT_CHARS: usize = 4000;

/// The members of an event that have no commitments since version 4, as they are never hidden.
const NEVER_HIDDEN: [&str; 2] = ["at", "kind"];

/// The format of events that do not name theirs.
const UNNAMED_FORMAT: u32 = 2;

/// The format of events of version 3.
const THIRD_FORMAT: u32 = 3;

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
    /// The version of the entry's hash, stored since version 3. For version 1, which has no salt, this is 2 as well.
    #[serde(default = "unnamed_format", skip_serializing_if = "is_unnamed")]
    pub format: u32,
    /// The salt of the commitments to the event's values; empty in entries of the first version.
    #[serde(default, skip_serializing_if = "Salt::is_none")]
    pub salt: Salt,
}

impl AuditDraft {
    /// The version of the hash of new entries.
    pub const FORMAT: u32 = 4;

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

    /// Returns the event as JSON without its format and salt. The hash covers the leaves of this value.
    fn hashed_part(&self) -> Value {
        let Self { at, kind, by, action, detail, format: _, salt: _ } = self;
        let (by, action, format, salt) = (by.clone(), action.clone(), UNNAMED_FORMAT, Salt::default());
        let without_detail = Self { at: *at, kind: *kind, by, action, detail: Value::Null.into(), format, salt };
        let mut event = serde_json::to_value(without_detail).expect("an audit event is plain data");
        event["detail"] = (**detail).clone();
        event
    }

    /// Returns the part of the event that its root covers in this version, as JSON.
    fn with_commitments(&self, version: Version) -> Value {
        let mut event = self.hashed_part();
        if version == Version::Fourth {
            let members = event.as_object_mut().expect("an event is an object");
            members.retain(|name, _| !NEVER_HIDDEN.contains(&name.as_str()));
        }
        event
    }

    /// Returns the leaves of [`Self::hashed_part`] outside the detail.
    fn own_leaves(&self) -> Vec<(&'static str, Value)> {
        let Self { at, kind, by, action, detail: _, format: _, salt: _ } = self;
        let mut leaves = vec![("/at", json!(at)), ("/kind", json!(kind))];
        leaves.extend(by.iter().map(|by| ("/by", json!(by))));
        leaves.extend(action.iter().map(|action| ("/action", json!(action))));
        leaves
    }

    /// Returns all leaves of [`Self::hashed_part`]; `own` are those outside the detail.
    fn leaves<'v>(&'v self, own: &'v [(&'static str, Value)]) -> Vec<Leaf<'v>> {
        let mut leaves = seal::leaves_at(DETAIL, &self.detail);
        leaves.extend(own.iter().map(|(place, leaf)| Leaf::member(place, leaf)));
        leaves
    }

    /// Returns the root of the commitments in version 4. `None` unless each value has either a salt or a commitment.
    fn root(&self, sealed: Option<&Sealed>) -> Option<[u8; 32]> {
        let Self { at: _, kind: _, by, action, detail, format: _, salt } = self;
        let action = action.as_ref().map(|action| Value::from(action.as_str()));
        let by = by.as_ref().map(|by| Value::from(by.as_str()));
        let members = [("action", action.as_ref()), ("by", by.as_ref()), ("detail", Some(&**detail))];
        let members: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        seal::fourth::root(&members, salt, sealed)
    }

    /// Returns the version of the hash, if this program knows it.
    fn version(&self, sealed: Option<&Sealed>) -> Option<Version> {
        match self.format {
            UNNAMED_FORMAT if self.salt.is_none() && sealed.is_none() => Some(Version::First),
            UNNAMED_FORMAT => Some(Version::Second),
            THIRD_FORMAT => Some(Version::Third),
            Self::FORMAT => Some(Version::Fourth),
            _ => None,
        }
    }
}

fn unnamed_format() -> u32 {
    UNNAMED_FORMAT
}

fn is_unnamed(format: &u32) -> bool {
    *format == UNNAMED_FORMAT
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
    /// True if everything but the kind and the time is hidden, since the entry could not be hidden in part: those of the
    /// first version never can.
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
            format: UNNAMED_FORMAT,
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
        if self.event.version(self.sealed.as_ref()).is_none() {
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
        let version = self.event.version(self.sealed.as_ref());
        let mut event = self.event.with_commitments(version.unwrap_or(Version::First));
        let replacement = |place: &str, value: &Value, commitment: &str| match place {
            "/kind" | "/at" => None,
            place => replacement(place, value, commitment),
        };
        let AuditDraft { at, kind, format, ref salt, .. } = self.event;
        let in_part = match version {
            Some(version) => seal::hide(&mut event, version, salt, self.sealed.as_ref(), replacement),
            None => Err(NotInPart),
        };
        match in_part {
            Ok(None) => {}
            Ok(sealed) => {
                self.sealed = sealed;
                (event["at"], event["kind"]) = (json!(at), json!(kind));
                if let Ok(shown) = serde_json::from_value::<AuditDraft>(event) {
                    self.event = AuditDraft { format, ..shown };
                }
            }
            Err(NotInPart) => {
                let hides = seal::leaves(&event).iter().any(|leaf| replacement(&leaf.place, leaf.value, "").is_some());
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
    version: Version,
    /// The event's contribution to the hash: the time, the kind and the root. In version 3, the root; in version 2, the
    /// commitments; in version 1, the event itself.
    hashed: Vec<u8>,
}

impl Unchained {
    /// Computes the commitments to the values of an event. If that is impossible, since the event's salt or format is
    /// wrong, the entry can be stored, but [`AuditEntry::check`] will find the fault.
    pub fn of(event: &AuditDraft) -> Self {
        Self::new(event, None).unwrap_or(Self { version: Version::Fourth, hashed: Vec::new() })
    }

    /// Returns `None` unless each value has either a salt or a commitment, and the version is known.
    fn new(event: &AuditDraft, sealed: Option<&Sealed>) -> Option<Self> {
        let version = event.version(sealed)?;
        let hashed = match version {
            Version::First => {
                let mut hashed = Vec::with_capacity(4096);
                digest::encode(&event.hashed_part(), &mut hashed);
                hashed
            }
            Version::Second => {
                seal::second::encode_commitments(event.leaves(&event.own_leaves()), &event.salt, sealed)?
            }
            Version::Third => seal::third::root(event.leaves(&event.own_leaves()), &event.salt, sealed)?.to_vec(),
            Version::Fourth => {
                let mut hashed = Vec::with_capacity(128);
                digest::encode(&json!(event.at), &mut hashed);
                digest::encode(&json!(event.kind), &mut hashed);
                hashed.extend_from_slice(&event.root(sealed)?);
                hashed
            }
        };
        Some(Self { version, hashed })
    }

    /// Returns the hash of the entry that chains the event to the previous entry.
    pub fn hash(&self, thread: &ThreadId, seq: u64, previous: &str) -> String {
        let mut bytes = Vec::with_capacity(self.hashed.len() + 256);
        match self.version {
            Version::First => {}
            Version::Second => digest::encode_integer(2, &mut bytes),
            Version::Third => digest::encode_integer(3, &mut bytes),
            Version::Fourth => digest::encode_integer(4, &mut bytes),
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

    /// Returns a replacement for the text of an event, and for no other value.
    fn hidden_text(place: &str) -> Option<String> {
        (place == "/detail/text").then(|| "[hidden]".to_owned())
    }

    #[test]
    fn hiding_a_value_keeps_the_chain_valid() {
        let second = AuditDraft { format: UNNAMED_FORMAT, ..said("start it") };
        let third = AuditDraft { format: THIRD_FORMAT, ..said("start it") };
        for event in [second, third, said("start it")] {
            let whole = AuditEntry::chain(&thread(), 1, "", event);
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
    }

    #[test]
    fn an_entry_of_one_version_is_none_of_another() {
        let whole = AuditEntry::chain(&thread(), 1, "", said("start it"));
        for entry in [whole.clone(), whole.hide(|place, _, _| hidden_text(place))] {
            let mut other = entry.clone();
            for format in [UNNAMED_FORMAT, THIRD_FORMAT] {
                other.event.format = format;
                let Err(ChainFault::Hash { expected }) = other.check(&thread(), "") else { panic!("{format}") };
                // In these versions, the time and the kind need salts of their own.
                assert_eq!(expected.is_some(), other.sealed.is_none());
            }
            other.event.format = 5;
            assert_eq!(other.check(&thread(), ""), Err(ChainFault::Format { found: 5 }));
        }
    }

    #[test]
    fn an_event_without_a_proper_salt_or_version_is_stored_with_a_fault_and_hidden_as_a_whole() {
        let salt = |text: &str| serde_json::from_value(json!(text)).unwrap();
        let expected = ChainFault::Hash { expected: None };
        for (event, fault) in [
            (AuditDraft { salt: salt("5a17"), ..said("start it") }, expected.clone()),
            (AuditDraft { salt: Salt::default(), ..said("start it") }, expected),
            (AuditDraft { format: 5, ..said("start it") }, ChainFault::Format { found: 5 }),
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
    fn the_leaves_outside_the_detail_are_those_of_the_event() {
        let with_action = AuditDraft { action: Some("a1".into()), ..said("start it") };
        for event in [AuditDraft { by: None, ..said("start it") }, with_action] {
            let value = AuditDraft { detail: Value::Null.into(), ..event.clone() }.hashed_part();
            let mut own = event.own_leaves();
            own.push((DETAIL, Value::Null));
            own.sort_unstable_by_key(|(place, _)| *place);
            let own: Vec<_> = own.iter().map(|(place, leaf)| Leaf::member(place, leaf)).collect();
            assert_eq!(seal::leaves(&value), own);

            let covered = event.with_commitments(Version::Fourth);
            let members: Vec<_> = covered.as_object().unwrap().iter().map(|(name, value)| (&**name, value)).collect();
            assert_eq!(event.root(None), seal::fourth::root(&members, &event.salt, None));
        }
    }

    /// The hashes were computed without this program, from the descriptions of the versions.
    #[test]
    fn vectors_of_the_latest_versions_hold() {
        let detail = json!({
            "text": "ä start\nit", "a/b": [1, -2.5, [], {}], "a-b": null, "a": { "~": true, "no": false },
            "list": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        });
        for (format, hash) in [
            (THIRD_FORMAT, "0ae0f458310b7eff7bc33e843c229a2fa150caed6ef6c4e9b344668e8090d299"),
            (AuditDraft::FORMAT, "0b8d4c777b2b2605ff75992661be985b6fcc2cd3abcc55b10e7ef6c5ec23f4e8"),
        ] {
            let event = json!({
                "at": 1_700_000_000_000_i64, "kind": "said", "by": "U1", "action": "a1", "detail": detail,
                "format": format, "salt": "000102030405060708090a0b0c0d0e0f",
            });
            let event: AuditDraft = serde_json::from_value(event).unwrap();
            let entry = AuditEntry::chain(&thread(), 7, &"ab".repeat(32), event);
            assert_eq!(entry.hash, hash);
        }
    }

    /// The expected entry was stored by a program that knew only versions 1 and 2.
    #[test]
    fn an_entry_of_version_2_is_hashed_and_hidden_as_before() {
        let detail = json!({ "text": "words", "list": [1, [], {}] });
        let event = json!({
            "at": 1_700_000_000_000_i64, "kind": "said", "by": "U1", "detail": detail,
            "salt": "00000000000000000000000000011667",
        });
        let event: AuditDraft = serde_json::from_value(event).unwrap();
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1700000000.000100".into() };
        let previous = "0f95b3cc303362caef6ff08e53651095172edcd278ab1b73d32e28f42c1cd940";
        let entry = AuditEntry::chain(&thread, 9, previous, event);
        assert!(!serde_json::to_string(&entry).unwrap().contains("format"));
        let hidden = entry
            .hide(|place, _, commitment| (place == "/detail/text").then(|| format!("[hidden {}]", &commitment[..8])));
        let stored = include_str!("../../../tests/fixtures/shapes/audit_entry.json");
        let stored: Vec<AuditEntry> = serde_json::from_str(stored).unwrap();
        assert_eq!(hidden, stored[8]);
    }

    #[test]
    fn an_entry_of_the_first_version_is_withheld_as_a_whole() {
        let first = AuditDraft { format: UNNAMED_FORMAT, salt: Salt::default(), ..said("start it") };
        let entry = AuditEntry::chain(&thread(), 1, "", first).hide(|place, _, _| hidden_text(place));
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
