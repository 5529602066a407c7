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
    /// Returns this record as it was sealed or verified, if exactly this one was. It shares its parts with other copies,
    /// while one that was just read shares none.
    pub(super) fn find(&self, record: &ActionRecord) -> Option<ActionRecord> {
        self.0.lock().ok()?.get(&record.id).filter(|known| *known == record).cloned()
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
