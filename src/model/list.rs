//! The models that a provider offers, from its list.
//!
//! The providers tell different things about a model. Anthropic and OpenAI tell when they retire it, Google does not, and
//! servers of one's own tell how much text it takes, which may be far less than the model could.

use serde_json::Value;

use crate::{
    Error,
    call::{Call, Caller, read_json},
    remote::{Api, Settings},
};

/// The maximum size of a list, in bytes.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;

/// A model in a provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// The day on which the provider retires it, such as `2027-01-14`, if that is announced.
    pub retires_on: Option<String>,
    /// True if it is still offered, but not for long.
    pub is_deprecated: bool,
    /// The maximum length of a request, in tokens.
    pub context: Option<u64>,
}

impl Listed {
    /// Reads an entry of a list; `None` if it has no name.
    fn read(entry: &Value) -> Option<Self> {
        let name = ["id", "name"].iter().find_map(|member| entry[*member].as_str())?;
        let retires = ["retires_at", "shutdown_date"].iter().find_map(|member| entry[*member].as_str());
        // Anthropic, vLLM, Google, OpenRouter, llama.cpp.
        let contexts = ["/max_input_tokens", "/max_model_len", "/inputTokenLimit", "/context_length", "/meta/n_ctx"];
        Some(Self {
            name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
            retires_on: retires.map(|moment| moment.chars().take("2027-01-14".len()).collect()),
            is_deprecated: ["deprecated", "retired"].iter().any(|stage| entry["lifecycle"] == *stage),
            context: contexts.iter().find_map(|member| entry.pointer(member)?.as_u64()),
        })
    }

    /// Returns true if this is the model of this name. An entry may have a date or a tag that the name lacks, as in
    /// `claude-haiku-4-5-20251001` or `llama3.3:latest`.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.strip_prefix("models/").unwrap_or(name);
        let is_date = |rest: &str| rest.len() >= 8 && rest.chars().all(|c| c.is_ascii_digit() || c == '-');
        match self.name.strip_prefix(name) {
            Some("" | ":latest") => true,
            Some(rest) => rest.strip_prefix('-').is_some_and(is_date),
            None => false,
        }
    }
}

/// Asks a provider for its list of models, once.
///
/// # Errors
///
/// As [`crate::Model::respond`]; [`Error::Refused`] if the server has no list.
pub async fn list<A: Api>(settings: &Settings) -> Result<Vec<Listed>, Error> {
    let caller = Caller::new(&settings.base_url, A::headers(settings)?, settings.timeout, 1)?;
    let url = A::list_endpoint(settings);
    let call = Call { url: &url, accept: "application/json", body: None, fault: A::fault };
    let answer = caller.call(call, |answer| read_json(answer, MAX_LIST_BYTES)).await?;
    let entries = ["data", "models"].iter().find_map(|member| answer[*member].as_array());
    let entries = entries.ok_or_else(|| Error::Decode { reason: "it has no list of models".to_owned() })?;
    Ok(entries.iter().filter_map(Listed::read).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entry: Value) -> (String, Option<String>, bool, Option<u64>) {
        let Listed { name, retires_on, is_deprecated, context } = Listed::read(&entry).unwrap();
        (name, retires_on, is_deprecated, context)
    }

    /// The entries have the form in the documentation of each provider or server.
    #[test]
    fn entries_of_several_providers_are_read() {
        let claude = json!({ "type": "model", "id": "claude-sonnet-4-5-20250929", "lifecycle": "deprecated", "line": "sonnet",
            "retires_at": "2026-11-30T00:00:00Z", "max_input_tokens": 200_000 });
        let expected = ("claude-sonnet-4-5-20250929".to_owned(), Some("2026-11-30".to_owned()), true, Some(200_000));
        assert_eq!(read(claude), expected);
        let gpt = json!({ "id": "gpt-4.1-mini", "object": "model", "created": 1, "shutdown_date": "2027-01-14" });
        assert_eq!(read(gpt), ("gpt-4.1-mini".to_owned(), Some("2027-01-14".to_owned()), false, None));
        let lasting = json!({ "id": "gpt-6-luna", "object": "model", "created": 1, "shutdown_date": null });
        assert_eq!(read(lasting), ("gpt-6-luna".to_owned(), None, false, None));
        let gemini = json!({ "name": "models/gemini-3.8-flash", "inputTokenLimit": 1_048_576 });
        assert_eq!(read(gemini), ("gemini-3.8-flash".to_owned(), None, false, Some(1_048_576)));
        let local = json!({ "id": "qwen", "object": "model", "max_model_len": 8192 });
        assert_eq!(read(local), ("qwen".to_owned(), None, false, Some(8192)));
        assert_eq!(Listed::read(&json!({ "object": "model" })), None);
    }

    #[test]
    fn a_name_without_the_date_or_the_tag_is_the_same_model() {
        let is_called = |entry: &str, name: &str| Listed::read(&json!({ "id": entry })).unwrap().is_called(name);
        assert!(is_called("claude-haiku-4-5-20251001", "claude-haiku-4-5"));
        assert!(is_called("gpt-5.4-mini-2026-03-17", "gpt-5.4-mini"));
        assert!(is_called("llama3.3:latest", "llama3.3"));
        assert!(is_called("gemini-3.8-flash", "models/gemini-3.8-flash"));
        assert!(!is_called("claude-sonnet-5-5", "claude-sonnet-5"));
        assert!(!is_called("gemini-3.5-flash-lite", "gemini-3.5-flash"));
    }
}
