//! Small data that belongs to no thread.

use serde_json::Value;

/// What a register holds, and how often it was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    /// How often it was set; 0: never. Setting it again needs this number.
    pub revision: u64,
    /// What it was set to last; null: nothing yet.
    pub value: Value,
}
