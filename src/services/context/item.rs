//! A remembered text, and its embedding.

use std::fmt;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ContextError;

/// The number of components of an embedding.
pub const DIMENSIONS: usize = 768;

/// The maximum length of a remembered text, in characters. Longer texts are cut.
pub const MAX_TEXT: usize = 50_000;

/// The maximum length of an id or of the name of an account, in characters.
pub const MAX_ID: usize = 512;

/// The maximum size of the metadata of an item or a contact as JSON, in bytes.
pub const MAX_METADATA: usize = 64 * 1024;

/// The kind of source of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A mail.
    Email,
    /// A record of a customer database.
    Crm,
    /// A calendar entry.
    Calendar,
}

impl Kind {
    /// Returns the name under which the kind is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Crm => "crm",
            Self::Calendar => "calendar",
        }
    }

    /// Returns the kind that is stored under a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Email, Self::Crm, Self::Calendar].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An embedding of length 1, with the name of the model that made it. Only embeddings of the same model are compared.
#[derive(Clone, PartialEq)]
pub struct Embedding {
    model: String,
    vector: Vec<f32>,
}

impl Embedding {
    /// Checks a vector and scales it to length 1.
    ///
    /// # Errors
    ///
    /// [`ContextError::Invalid`] if the vector does not have 768 finite components, or if all of them are zero.
    pub fn new(model: impl Into<String>, mut vector: Vec<f32>) -> Result<Self, ContextError> {
        let model = model.into();
        if model.is_empty() || model.chars().count() > MAX_ID {
            return Err(ContextError::invalid("An embedding needs the name of its model, of at most 512 characters."));
        }
        if vector.len() != DIMENSIONS {
            let found = vector.len();
            return Err(ContextError::invalid(format!(
                "The embedding has {found} components. It must have {DIMENSIONS}."
            )));
        }
        let squares: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        let length = squares.sqrt();
        if !length.is_finite() || length < f64::from(f32::MIN_POSITIVE) {
            return Err(ContextError::invalid(
                "The embedding has no direction: its components must be finite and not all 0.",
            ));
        }
        for x in &mut vector {
            *x = (f64::from(*x) / length) as f32;
        }
        Ok(Self { model, vector })
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the components.
    pub fn vector(&self) -> &[f32] {
        &self.vector
    }
}

impl fmt::Debug for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedding").field("model", &self.model).finish_non_exhaustive()
    }
}

/// A text to remember. `account`, `kind` and `source_id` identify it: a second item with the same ones replaces the
/// first.
#[derive(Clone, PartialEq)]
pub struct Item {
    /// The account to which the text belongs. Searches never cross accounts.
    pub account: String,
    /// The kind of its source.
    pub kind: Kind,
    /// The id of its source, such as the id of a mail.
    pub source_id: String,
    /// The text.
    pub text: String,
    /// The embedding of the text; `None` if there is no model for embeddings, or the text is empty.
    pub embedding: Option<Embedding>,
    /// Anything that a reader of a match needs.
    pub metadata: Value,
    /// The time of the source, by which it is forgotten.
    pub at: Timestamp,
}

impl Item {
    /// Checks the lengths.
    pub(crate) fn check(&self) -> Result<(), ContextError> {
        check_id("account", &self.account)?;
        check_id("source", &self.source_id)?;
        check_metadata(&self.metadata)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account: _, kind, source_id, text, embedding, metadata: _, at } = self;
        f.debug_struct("Item")
            .field("kind", kind)
            .field("source_id", source_id)
            .field("text_bytes", &text.len())
            .field("embedding", embedding)
            .field("at", at)
            .finish_non_exhaustive()
    }
}

/// Checks the length of an id.
pub(crate) fn check_id(what: &str, id: &str) -> Result<(), ContextError> {
    let length = id.chars().count();
    if length == 0 || length > MAX_ID || id.contains('\0') {
        return Err(ContextError::invalid(format!(
            "The id of the {what} has {length} characters. It must have 1 to {MAX_ID}, and no NUL."
        )));
    }
    Ok(())
}

/// Checks the size of metadata.
pub(crate) fn check_metadata(metadata: &Value) -> Result<(), ContextError> {
    let bytes = metadata.to_string();
    if bytes.len() > MAX_METADATA {
        return Err(ContextError::invalid(format!(
            "The metadata has {} bytes. It must have at most {MAX_METADATA}.",
            bytes.len()
        )));
    }
    if has_nul(metadata) {
        return Err(ContextError::invalid("The metadata contains a NUL character, which a database cannot store."));
    }
    Ok(())
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(all) => all.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(key, value)| key.contains('\0') || has_nul(value)),
    }
}

/// Returns the text as it is stored: without NUL, which PostgreSQL cannot store, and of at most `longest` characters.
pub(crate) fn storable(text: &str, longest: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(longest).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_embedding_has_length_1() {
        let embedding = Embedding::new("m", vec![2.0; DIMENSIONS]).unwrap();
        let length: f64 = embedding.vector().iter().map(|x| f64::from(*x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-6, "{length}");
    }

    #[test]
    fn a_vector_without_direction_or_of_another_length_is_refused() {
        for vector in [vec![0.0; DIMENSIONS], vec![f32::NAN; DIMENSIONS], vec![f32::INFINITY; DIMENSIONS], vec![1.0; 3]]
        {
            assert!(matches!(Embedding::new("m", vector), Err(ContextError::Invalid { .. })));
        }
    }

    #[test]
    fn debug_shows_no_text() {
        let item = Item {
            account: "me@example.com".into(),
            kind: Kind::Email,
            source_id: "1".into(),
            text: "a secret".into(),
            embedding: None,
            metadata: json!({ "from": "ana@example.com" }),
            at: Timestamp(0),
        };
        let shown = format!("{item:?}");
        assert!(!shown.contains("secret") && !shown.contains('@'), "{shown}");
    }

    #[test]
    fn ids_and_metadata_are_limited() {
        assert!(check_id("source", "").is_err());
        assert!(check_id("source", &"x".repeat(MAX_ID + 1)).is_err());
        assert!(check_metadata(&json!({ "a": ["\0"] })).is_err());
        assert!(check_metadata(&json!({ "a": "x".repeat(MAX_METADATA) })).is_err());
        assert!(check_metadata(&json!({ "a": 1 })).is_ok());
        assert_eq!(storable("a\0bc", 2), "ab");
    }
}
