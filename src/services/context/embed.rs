//! The trait of a model for embeddings.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::error::ContextError;

/// A model that turns a text into a vector.
#[async_trait]
pub trait Embedder: Send + Sync + Debug {
    /// Returns the name of the model. Vectors of models with different names are never compared.
    fn name(&self) -> &str;

    /// Returns the vector of a text: 768 components, of any length.
    ///
    /// # Errors
    ///
    /// Fails if the model gives no vector after its retries.
    async fn embed(&self, text: &str) -> Result<Vec<f32>, ContextError>;
}
