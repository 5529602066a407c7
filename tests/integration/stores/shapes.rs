//! What was saved once can be read for ever, and is written the same way.
//!
//! The files in `tests/fixtures/shapes` are never edited to make a test pass: a change that breaks one needs a new
//! format number and a way to read the old. Each holds a list, with every variant in it.

use std::{collections::BTreeSet, fmt::Debug};

use countersign::{
    assistant::state::AgentState,
    clock::Timestamp,
    conversation::runtime::interaction::Interaction,
    email::register::Entry,
    graph::{
        action::{ActionRecord, Status},
        checkpoint::Checkpoint,
        keyring::{Keyring, Proof},
        node::{Said, State},
        store::{AuditEntry, Delivery, Outbound, Outgoing, StepRecord},
    },
    standing::grant::Grant,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// An agent's memory of any shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Anything(Value);

impl State for Anything {
    fn begin_turn(&mut self, _said: &Said) {}

    fn suspend(&self) -> Value {
        self.0.clone()
    }

    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error> {
        self.0 = turn;
        Ok(())
    }

    fn superseded(&mut self, _: &ActionRecord, _: Timestamp) {}
}

/// Reads a file, and writes it again as it was: what is sealed has to come out as it went in.
fn check<T: Serialize + DeserializeOwned>(name: &str) -> Vec<T> {
    let path = format!("{}/tests/fixtures/shapes/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let saved = std::fs::read_to_string(&path).unwrap();
    let values: Vec<Value> = serde_json::from_str(&saved).unwrap();
    assert!(!values.is_empty());
    let check = |value: Value| {
        let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), value, "{name}");
        read
    };
    values.into_iter().map(check).collect()
}

/// The digests and seals were made without this program, by what is written of their forms. The last record has a number
/// that is not in the canonical form.
#[test]
fn saved_actions_are_read_and_their_digests_and_seals_hold() {
    let keys = Keyring::new(vec![vec![1; 32]]).unwrap();
    for record in check::<ActionRecord>("action_record") {
        assert!(keys.digest_proof(&record).holds(), "{}", record.id);
    }
    for record in check::<ActionRecord>("sealed_action") {
        assert!(keys.digest_proof(&record).holds());
        let seal = record.seal.as_ref();
        let unsealed = ActionRecord { seal: None, ..record.clone() };
        let holds = |record: &ActionRecord| keys.proof("action", record, seal).holds();
        assert!(holds(&unsealed));
        assert!(!holds(&ActionRecord { status: Status::Rejected, ..unsealed.clone() }));
        let mut other = unsealed;
        other.parameters["status"] = "cancelled".into();
        assert!(!keys.digest_proof(&other).holds() && !holds(&other));
        other.keyed.version = 2;
        assert!(matches!(keys.digest_proof(&other), Proof::UnknownVersion(2)));
    }
}

#[test]
fn saved_standing_approvals_are_read() {
    check::<Grant>("standing_approval");
}

#[test]
fn saved_steps_are_read() {
    check::<StepRecord>("step_record");
}

#[test]
fn saved_checkpoints_are_read() {
    check::<Checkpoint<Anything>>("checkpoint");
}

#[test]
fn saved_states_of_the_assistant_are_read() {
    check::<Checkpoint<AgentState>>("chat_checkpoint");
    let empty =
        json!({ "conversation": { "lines": [] }, "turn": { "number": 0, "said": "", "at": 0, "phase": "ANALYZING" } });
    assert_eq!(serde_json::to_value(AgentState::default()).unwrap(), empty);
}

#[test]
fn saved_entries_of_mails_are_read() {
    check::<Entry>("mail_entry");
}

#[test]
fn saved_interactions_are_read() {
    check::<Interaction>("desk_entry");
}

#[test]
fn saved_audit_entries_are_read() {
    let thread = super::fixture::thread(0);
    let mut previous = String::new();
    for entry in check::<AuditEntry>("audit_entry") {
        assert!(entry.holds(&thread, &previous), "entry {} no longer follows the one before", entry.seq);
        previous = entry.hash;
    }
}

#[test]
fn saved_deliveries_are_read() {
    check::<Delivery>("delivery");
}

#[test]
fn saved_messages_are_read() {
    let kinds: BTreeSet<_> = check::<Outgoing>("outgoing")
        .iter()
        .map(|outgoing| match outgoing.body {
            Outbound::Status { .. } => 0,
            Outbound::Reply { .. } => 1,
            Outbound::Card { .. } => 2,
            Outbound::Remove => 3,
            Outbound::File { .. } => 4,
            Outbound::Direct { .. } => 5,
            Outbound::Redraw { .. } => 6,
            Outbound::Elsewhere { .. } => 7,
        })
        .collect();
    assert_eq!(kinds, (0..8).collect(), "every kind has its example");
}
