//! The health of the language model, for people who ask.

use countersign_core::clock::Timestamp;
use countersign_model::watched::Pulse;

/// The health of the language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelHealth {
    /// Its name at its provider.
    pub name: String,
    /// The time it was asked last, and true if it answered.
    pub last: Option<(Timestamp, bool)>,
}

/// The language model, as far as its health goes.
#[derive(Clone, Debug, Default)]
pub struct WatchedModel(Option<(String, Pulse)>);

impl WatchedModel {
    /// Creates the model of this name and pulse, if there is one.
    pub fn new(model: Option<(String, Pulse)>) -> Self {
        Self(model)
    }

    /// Returns the health of the model; `None` if there is none.
    pub fn health(&self) -> Option<ModelHealth> {
        self.0.as_ref().map(|(name, pulse)| ModelHealth { name: name.clone(), last: pulse.last() })
    }
}
