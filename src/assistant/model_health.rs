//! The health of the language model, for people who ask.

use countersign_core::clock::Timestamp;
use countersign_model::watched::Pulse;

/// The health of the language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelHealth {
    /// The provider's name for the model.
    pub name: String,
    /// The time of the last request, and true if it was answered.
    pub last: Option<(Timestamp, bool)>,
}

/// The source of the language model's health.
#[derive(Clone, Debug, Default)]
pub struct WatchedModel(Option<(String, Pulse)>);

impl WatchedModel {
    /// Creates the source from the model's name and pulse, if there is a model.
    pub fn new(model: Option<(String, Pulse)>) -> Self {
        Self(model)
    }

    /// Returns the health of the model; `None` if there is none.
    pub fn health(&self) -> Option<ModelHealth> {
        self.0.as_ref().map(|(name, pulse)| ModelHealth { name: name.clone(), last: pulse.last() })
    }
}
