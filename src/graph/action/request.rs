//! A request for an action that does not come from text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action with its parameters, as a form or a button provides them. It is handled like every
/// other request: checked, shown on a card, and decided by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The [`super::ActionInfo::name`].
    pub action: String,
    /// The parameters, as a person would give them.
    pub parameters: Value,
}
