//! The trait of a model for embeddings.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::ContextError;

/// A text as a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// The vector: 768 components, of any length.
    pub vector: Vec<f32>,
    /// The number of tokens in the text; 0 if that is not known.
    pub tokens: u64,
}

/// The calls of a model for embeddings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingUsage {
    /// The name of the model.
    pub model: String,
    /// The number of answered calls.
    pub calls: u32,
    /// The number of tokens in the texts.
    pub tokens: u64,
}

/// A model that turns a text into a vector.
#[async_trait]
pub trait Embedder: Send + Sync + Debug {
    /// Returns the name of the model. Vectors of models with different names are never compared.
    fn name(&self) -> &str;

    /// Returns the vector of a text.
    ///
    /// # Errors
    ///
    /// Fails if the model gives no vector after its retries.
    async fn embed(&self, text: &str) -> Result<Embedded, ContextError>;
}
