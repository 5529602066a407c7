//! A request that needs no understanding.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An action with its parameters, as a form or a button gives it. It goes the way of every request from there on: it is
/// checked, shown on a card, and decided by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRequest {
    /// The [`super::ActionKind::name`].
    pub action: String,
    /// Its parameters, as a person gives them.
    pub parameters: Value,
}
