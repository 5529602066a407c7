//! What the newest models refuse, although earlier ones took it. The sources are in `docs/models.md`.

use serde_json::Value;

use super::dialect::Dialect;

/// The models of Anthropic that think as they see fit, so that no call and no sampling can be prescribed.
const ADAPTIVE: &[&str] = &["claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-"];

/// The models of OpenAI that think by default.
const REASONING: &[&str] = &["gpt-5.6", "gpt-6"];

/// Returns the message with which the model refuses a valid request, if it does.
pub(super) fn refusal(dialect: &Dialect, body: &Value) -> Option<String> {
    let is = |models: &[&str]| {
        let model = body["model"].as_str().unwrap_or_default();
        models.iter().any(|beginning| model.starts_with(beginning))
    };
    match dialect {
        Dialect::Messages if is(ADAPTIVE) => of_adaptive(body),
        Dialect::Completions if is(REASONING) => of_reasoning(body),
        Dialect::Messages | Dialect::Completions | Dialect::Content { .. } => None,
    }
}

fn of_adaptive(body: &Value) -> Option<String> {
    if matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Some("tool_choice: type \"any\" and \"tool\" are not supported for this model.".to_owned());
    }
    if let Some(member) = ["temperature", "top_p", "top_k"].iter().find(|member| body.get(**member).is_some()) {
        return Some(format!("`{member}` is deprecated for this model."));
    }
    let kind = body["thinking"]["type"].as_str().filter(|kind| ["disabled", "enabled"].contains(kind))?;
    Some(format!(
        "\"thinking.type.{kind}\" is not supported for this model. Use \"thinking.type.adaptive\" and \
         \"output_config.effort\" to control thinking behavior."
    ))
}

fn of_reasoning(body: &Value) -> Option<String> {
    let model = body["model"].as_str().unwrap_or_default();
    if body.get("tools").is_some() && body["reasoning_effort"] != "none" {
        return Some(format!(
            "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use function \
             tools, use /v1/responses or set reasoning_effort to 'none'."
        ));
    }
    if body.get("max_tokens").is_some() {
        let other = "Use 'max_completion_tokens' instead.";
        return Some(format!("Unsupported parameter: 'max_tokens' is not supported with this model. {other}"));
    }
    let temperature = body.get("temperature").filter(|temperature| **temperature != 1)?;
    Some(format!(
        "Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) value is \
         supported."
    ))
}
