//! The records that this process has sealed or verified lately.
//!
//! A record that is read exactly as it was then need not be verified again: its seal was computed by this process, or
//! held. This is decided by comparing the whole record, not its id.

use std::{collections::HashMap, sync::Mutex};

use countersign_core::ids::ActionId;
use countersign_graph::action::ActionRecord;

/// The maximum number of records.
const MAX_RECORDS: usize = 128;

/// The records, by their ids.
#[derive(Debug, Default)]
pub(super) struct RecentRecords(Mutex<HashMap<ActionId, ActionRecord>>);

impl RecentRecords {
    /// Returns true if exactly this record was sealed or verified.
    pub(super) fn contains(&self, record: &ActionRecord) -> bool {
        self.0.lock().is_ok_and(|known| known.get(&record.id) == Some(record))
    }

    /// Notes a record whose seal holds. If there are too many, the others are dropped.
    pub(super) fn add(&self, record: ActionRecord) {
        if let (true, Ok(mut known)) = (record.proof.holds(), self.0.lock()) {
            if known.len() >= MAX_RECORDS {
                known.clear();
            }
            known.insert(record.id.clone(), record);
        }
    }
}
