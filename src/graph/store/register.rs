//! Small data that belongs to no thread.

use serde_json::Value;

/// The contents of a register, and the number of times that it was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    /// The number of times that it was set; 0: never. Setting it again needs this number.
    pub revision: u64,
    /// The last value; null before the first.
    pub value: Value,
}
