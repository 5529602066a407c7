//! Small values that belong to no thread.

use serde_json::Value;

/// The value of a register, and the number of times that it was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Register {
    /// The number of times that the register was set; 0 if never. A caller that sets it must pass
    /// this number.
    pub revision: u64,
    /// The current value; null if it was never set.
    pub value: Value,
}
