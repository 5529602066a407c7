//! The models on offer, as each API lists them, and the refusal of those that are retired.

use serde_json::{Value, json};

use super::dialect::Dialect;

/// The models that are listed, for the APIs of all providers.
const MODELS: &[(&str, Option<&str>)] = &[
    ("claude-sonnet-5-5", None),
    ("claude-haiku-5-5", None),
    ("claude-sonnet-5", None),
    ("gpt-6-luna", None),
    ("gpt-6.1-sol", None),
    ("gpt-4.1-mini", Some("2027-01-14")),
    ("text-embedding-3-small", None),
    ("gemini-3.8-flash", None),
    ("gemini-3.5-flash-lite", None),
    ("gemini-embedding-001", None),
];

/// The models on offer.
#[derive(Debug)]
pub(super) struct Offer {
    /// The names, with the day on which each is retired.
    models: Vec<(String, Option<String>)>,
    retired: Vec<String>,
    /// True if the server has no lists.
    pub(super) is_hidden: bool,
}

impl Default for Offer {
    fn default() -> Self {
        let models = MODELS.iter().map(|(name, day)| ((*name).to_owned(), day.map(str::to_owned))).collect();
        Self { models, retired: Vec::new(), is_hidden: false }
    }
}

impl Offer {
    /// Adds a model.
    pub(super) fn add(&mut self, model: &str, retires_on: Option<&str>) {
        self.models.push((model.to_owned(), retires_on.map(str::to_owned)));
    }

    /// Removes a model.
    pub(super) fn retire(&mut self, model: &str) {
        self.models.retain(|(name, _)| name != model);
        self.retired.push(model.to_owned());
    }

    /// Returns the list in the form of an API; `None` if the server has none.
    pub(super) fn list(&self, dialect: &Dialect) -> Option<Value> {
        if self.is_hidden {
            return None;
        }
        let of = |beginnings: &'static [&'static str]| {
            self.models.iter().filter(|(name, _)| beginnings.iter().any(|beginning| name.starts_with(beginning)))
        };
        Some(match dialect {
            Dialect::Messages => {
                let entries = of(&["claude-"]).map(|(name, day)| {
                    let lifecycle = if day.is_some() { "deprecated" } else { "active" };
                    let retires_at = day.as_ref().map(|day| format!("{day}T00:00:00Z"));
                    json!({ "type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z",
                        "lifecycle": lifecycle, "retires_at": retires_at, "max_input_tokens": 1_000_000 })
                });
                json!({ "data": entries.collect::<Vec<_>>(), "has_more": false })
            }
            Dialect::Completions => {
                let entries = of(&["gpt-", "text-"]).map(|(name, day)| {
                    json!({ "id": name, "object": "model", "created": 1, "owned_by": "sandbox", "shutdown_date": day })
                });
                json!({ "object": "list", "data": entries.collect::<Vec<_>>() })
            }
            Dialect::Content { .. } => {
                let entries = of(&["gemini-"])
                    .map(|(name, _)| json!({ "name": format!("models/{name}"), "inputTokenLimit": 1_048_576 }));
                json!({ "models": entries.collect::<Vec<_>>() })
            }
        })
    }

    /// Returns the message with which an API refuses a model that is retired.
    pub(super) fn refusal(&self, dialect: &Dialect, model: &str) -> Option<String> {
        self.retired.iter().any(|retired| retired == model).then(|| match dialect {
            Dialect::Messages => format!("model: {model}"),
            Dialect::Completions => format!("The model `{model}` does not exist or you do not have access to it."),
            Dialect::Content { .. } => format!("models/{model} is not found for API version v1beta."),
        })
    }
}
