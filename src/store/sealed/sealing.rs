//! What is sealed, how it is sealed, and how it is verified.

use countersign_core::ids::ThreadId;
use countersign_graph::{
    action::ActionRecord,
    keyring::{Proof, RowSeal},
    store::{
        Acquired, ActionChange, ActionKey, AuditDraft, Changes, Delivery, Destination, Error, Outgoing, QueuedMessage,
        Register, ThreadMessage, TimerChange,
    },
};
use serde_json::{Value, json};

use super::{SealedStore, counts};

/// The purpose of the seals of action records. The seal of a register has its key as the purpose.
const ACTION: &str = "action";
/// The purpose of the seals of interactions and timers.
pub(super) const INBOX: &str = "desk";
/// The purpose of the seals of external events.
const MAIL: &str = "mail";

/// The field of a sealed value that holds the seal.
const SEALED: &str = "sealed";

/// Splits a sealed value into its seal and its contents.
fn split_sealed(value: &Value) -> Option<(RowSeal, &Value)> {
    let seal = value.get(SEALED)?;
    Some((serde_json::from_value(seal.clone()).ok()?, value.get("value")?))
}

impl SealedStore {
    /// Makes a record the one to write: with a new seal, or with the one that it has if that is
    /// invalid.
    fn seal(&self, record: &mut ActionRecord) {
        if record.proof.holds() {
            record.seal = None; // the seal covers everything else
            record.seal = Some(self.keys.seal(ACTION, record));
        }
    }

    /// Returns a record that was read, with the result of verifying its seal and its digest.
    pub(super) fn verified(&self, mut record: ActionRecord) -> ActionRecord {
        // The whole record is compared, not its id. The known one shares its parts with other copies.
        if let Some(known) = self.recent.get(&record.id).filter(|known| *known == record) {
            return known;
        }
        let seal = record.seal.take(); // it covers everything else
        record.proof = self.keys.proof(ACTION, &record, seal.as_ref());
        record.seal = seal;
        if record.proof.holds() {
            record.proof = self.keys.digest_proof(&record);
        }
        self.note(record.clone());
        record
    }

    /// Notes a record if its seal holds.
    fn note(&self, record: ActionRecord) {
        if record.proof.holds() {
            self.recent.set(record.id.clone(), record);
        }
    }

    /// Returns a record that was looked up by this key, verified. A record that does not have the key
    /// counts as altered, even if its seal is valid.
    pub(super) fn verified_match(&self, record: ActionRecord, key: ActionKey<'_>) -> ActionRecord {
        let mut record = self.verified(record);
        if !key.is_of(&record) {
            record.proof = Proof::Altered;
        }
        record
    }

    pub(super) fn sealed_changes(&self, changes: &Changes) -> Changes {
        let mut changes = changes.clone();
        changes.keys = Some(self.keys.clone());
        for change in &mut changes.actions {
            changes.outbox.extend(self.announcement(change, changes.audit.last()));
            self.seal(&mut change.record);
        }
        for message in &mut changes.messages {
            self.seal_message(&changes.thread, message);
        }
        for timer in &mut changes.timers {
            if let TimerChange::Set { entry, .. } = timer {
                *entry = self.seal_value(INBOX, entry.take());
            }
        }
        changes
    }

    /// Returns the message about a change of a record. A write that is repeated has the same one.
    fn announcement(&self, change: &ActionChange, last: Option<&AuditDraft>) -> Option<Outgoing> {
        let ActionChange { expected, record } = change;
        let announced = self.announced.filter(|_| *expected != Some(record.revision))?;
        let before = || self.recent.get(&record.id).filter(|before| Some(before.revision) == *expected);
        announced(&before, record, last.map_or(record.requested_at, |event| event.at))
    }

    pub(super) fn sealed_delivery(&self, delivery: &Delivery) -> Delivery {
        let mut delivery = delivery.clone();
        match &mut delivery.to {
            Destination::Inbox { entry, .. } => *entry = self.seal_value(INBOX, entry.take()),
            Destination::Mailbox { thread, message, .. } => self.seal_message(thread, message),
        }
        delivery
    }

    pub(super) fn unsealed(&self, acquired: Acquired) -> Acquired {
        let messages = self.unsealed_messages(&acquired.lease.thread, acquired.messages);
        Acquired { messages, ..acquired }
    }

    /// Makes a message the one to write: an external event is sealed, other messages are unchanged.
    fn seal_message(&self, thread: &ThreadId, message: &mut ThreadMessage) {
        if let ThreadMessage::External(arrived) = message {
            let content = json!({
                "thread": thread, "source": arrived.source(), "key": arrived.key(), "body": arrived.body(),
            });
            *arrived = arrived.with_body(self.seal_value(MAIL, content));
        }
    }

    /// Returns messages that were read, without seals. An external event whose seal is not valid
    /// becomes one of unknown origin.
    pub(super) fn unsealed_messages(&self, thread: &ThreadId, mut messages: Vec<QueuedMessage>) -> Vec<QueuedMessage> {
        for message in &mut messages {
            let ThreadMessage::External(arrived) = &message.message else { continue };
            let valid = self.unseal_value(MAIL, arrived.body()).ok().flatten().filter(|content| {
                let address = json!([content["thread"], content["source"], content["key"]]);
                address == json!([thread, arrived.source(), arrived.key()])
            });
            message.message = ThreadMessage::External(match valid {
                Some(mut content) => arrived.with_body(content["body"].take()),
                None => {
                    tracing::error!(thread.id = %thread, message.seq, "An external event has no valid seal; its origin is unknown");
                    arrived.of_unknown_origin()
                }
            });
        }
        messages
    }

    /// Returns a register that was read, without its seal. Without a valid one, it counts as empty.
    pub(super) fn unsealed_register(&self, key: &str, mut found: Register) -> Register {
        if self.scope.has_register(key) && !found.value.is_null() {
            found.value = self.unseal_value(key, &found.value).unwrap_or_default().unwrap_or_else(|| {
                tracing::error!(register = key, "A register has no valid seal and counts as empty");
                Value::Null
            });
        }
        found
    }

    /// Notes the records of a write, and its cards if it was made, and verifies the record that an error contains, if any.
    pub(super) fn after_write<T>(
        &self,
        sealed: Changes,
        result: Result<T, Error>,
        was_made: impl FnOnce(&T) -> bool,
    ) -> Result<T, Error> {
        if result.as_ref().is_ok_and(was_made) {
            counts::count(&sealed);
            sealed.actions.iter().for_each(|change| self.cards.on_written(change));
            if !sealed.actions.is_empty() {
                self.written.on_thread(&sealed.thread);
            }
        }
        sealed.actions.into_iter().for_each(|change| self.note(change.record));
        result.map_err(|error| match error {
            Error::ActionMoved { id, current: Some(current) } => {
                Error::ActionMoved { id, current: Some(Box::new(self.verified(*current))) }
            }
            error => error,
        })
    }

    /// Returns the value together with its seal.
    pub(super) fn seal_value(&self, purpose: &str, value: Value) -> Value {
        let mut sealed = json!({ SEALED: self.keys.seal(purpose, &value) });
        sealed["value"] = value;
        sealed
    }

    /// Returns the value that was sealed, or `None` if there is no seal. Fails if the seal is not
    /// valid.
    pub(super) fn unseal_value(&self, purpose: &str, value: &Value) -> Result<Option<Value>, Proof> {
        let Some((seal, content)) = split_sealed(value) else { return Ok(None) };
        let proof = self.keys.proof(purpose, content, Some(&seal));
        if proof.holds() { Ok(Some(content.clone())) } else { Err(proof) }
    }
}
