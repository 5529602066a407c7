//! How the language model is, for people who wonder.

use countersign_core::clock::Timestamp;
use countersign_model::watched::Pulse;

/// How the language model is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelHealth {
    /// Its name at its provider.
    pub name: String,
    /// When it was asked last, and whether it answered.
    pub last: Option<(Timestamp, bool)>,
}

/// The language model, as far as its health goes.
#[derive(Clone, Debug, Default)]
pub struct WatchedModel(Option<(String, Pulse)>);

impl WatchedModel {
    /// The model of this name and pulse, if there is one.
    pub fn new(model: Option<(String, Pulse)>) -> Self {
        Self(model)
    }

    /// How it is; `None`: there is none.
    pub fn health(&self) -> Option<ModelHealth> {
        self.0.as_ref().map(|(name, pulse)| ModelHealth { name: name.clone(), last: pulse.last() })
    }
}
