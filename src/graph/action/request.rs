//! A request for an action that needs no understanding.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action with its parameters, as a form or a button gives it. From there on it is treated like every request:
/// checked, shown on a card, and decided by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The [`super::ActionKind::name`].
    pub action: String,
    /// The parameters, as a person gives them.
    pub parameters: Value,
}
