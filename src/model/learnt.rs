//! The members of a request that a model refuses.
//!
//! Servers differ in the optional members that they know, and new models refuse what earlier ones took, such as a forced
//! choice of a tool. If a refusal names such a member, the same request is sent again without it, or in its other form.
//! If the model answers then, all later requests to it are changed in the same way, until the process ends. What is
//! documented of the newest models is known from the start.

use std::{
    borrow::Cow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};
use tracing::warn;

/// The members that can be changed. Without a choice of tools a model chooses by itself, and the instructions say which
/// tool to call and how to answer in JSON.
const CHANGES: &[Change] = &[
    Change::of("tool_choice", How::LeftOut),
    Change::of("reasoning_effort", How::NoneWithTools),
    Change::of("output_config.format", How::AsTool),
    Change::of("response_format", How::LeftOut),
    Change::of("generationConfig.responseJsonSchema", How::LeftOut),
    Change::of("stream_options", How::LeftOut),
    Change::of("max_tokens", How::Renamed("max_completion_tokens")),
    Change::of("max_completion_tokens", How::Renamed("max_tokens")),
];

/// The members that the newest models refuse according to their documentation, by the beginning of the name. The sources
/// are in `docs/models.md`.
const KNOWN: &[(&str, &str)] = &[
    ("claude-sonnet-5-5", "tool_choice"),
    ("claude-opus-5-5", "tool_choice"),
    ("claude-fable-5-", "tool_choice"),
    ("gpt-5.6", "reasoning_effort"),
    ("gpt-6", "reasoning_effort"),
];

/// The members that requests have themselves, and that extra members can be in.
const SHARED: &[&str] = &["output_config", "generationConfig"];

/// A change of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The path of the member, such as `output_config.format`.
    member: Cow<'static, str>,
    how: How,
}

/// The form of a member after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It is left out.
    LeftOut,
    /// It has this name.
    Renamed(&'static str),
    /// With tools, it is `none`: the Chat Completions API has no tools for models that think, and they do by default.
    NoneWithTools,
    /// The schema of the answer is the one of a tool.
    AsTool,
}

impl Change {
    const fn of(member: &'static str, how: How) -> Self {
        Self { member: Cow::Borrowed(member), how }
    }

    /// Returns the change for a refusal that names a member of the request. `extra` are the members that the settings
    /// add, any of which can be left out.
    pub(crate) fn for_refusal(reason: &str, body: &Value, extra: &Map<String, Value>) -> Option<Self> {
        let own = CHANGES.iter().find(|change| change.applies_to(body) && change.is_named_in(reason)).cloned();
        own.or_else(|| {
            let parts = extra.iter().flat_map(|(member, value)| match value.as_object() {
                Some(inner) if SHARED.contains(&member.as_str()) => {
                    inner.keys().map(|inner| format!("{member}.{inner}")).collect()
                }
                _ => vec![member.clone()],
            });
            let mut extras = parts.map(|member| Self { member: member.into(), how: How::LeftOut });
            extras.find(|change| change.applies_to(body) && change.is_named_in(reason))
        })
    }

    /// Returns true if the change makes a difference for a request.
    fn applies_to(&self, body: &Value) -> bool {
        match self.how {
            How::NoneWithTools => !body["tools"].is_null() && body[&*self.member] != "none",
            _ => body.pointer(&format!("/{}", self.member.replace('.', "/"))).is_some(),
        }
    }

    /// Returns true if a refusal names the member, its parent or something in it. A part of a longer name is not enough.
    fn is_named_in(&self, reason: &str) -> bool {
        if self.how == How::NoneWithTools && !reason.contains("tools") {
            return false; // a refused value of the settings is left out instead
        }
        let member = &*self.member;
        let (first, last) = member.split_once('.').unwrap_or((member, member));
        let words = reason.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
        words.map(|word| word.trim_matches('.')).any(|word| {
            let inside = word.strip_prefix(member).is_some_and(|rest| rest.starts_with('.'));
            let is_last = word == last && last != "format"; // which refusals use in another sense, too
            word == first || is_last || word == member || inside
        })
    }

    /// Returns true if earlier changes of the same request already concern the member.
    pub(crate) fn is_settled_by(&self, earlier: &[Self]) -> bool {
        let renamed = |made: &Self| matches!(made.how, How::Renamed(other) if other == self.member);
        earlier.iter().any(|made| made.member == self.member && made.how == self.how || renamed(made))
    }

    /// Changes a request, if it has the member.
    pub(crate) fn apply(&self, body: &mut Value) {
        if !self.applies_to(body) {
            return;
        }
        if self.how == How::NoneWithTools {
            body[&*self.member] = "none".into();
            return;
        }
        let Some(value) = taken(body, &self.member) else { return };
        match self.how {
            How::LeftOut | How::NoneWithTools => {}
            How::Renamed(other) => body[other] = value,
            How::AsTool => {
                let (schema, name) = (&value["schema"], &value["schema"]["title"]);
                let description = "Takes the answer. Call it once.";
                body["tools"] = json!([{ "name": name, "description": description, "input_schema": schema }]);
                body["tool_choice"] = json!({ "type": "tool", "name": name });
            }
        }
    }
}

/// Removes a member, and its parent if nothing else is in it.
fn taken(body: &mut Value, path: &str) -> Option<Value> {
    let members = body.as_object_mut()?;
    let Some((parent, member)) = path.split_once('.') else { return members.remove(path) };
    let inner = members.get_mut(parent)?.as_object_mut()?;
    let value = inner.remove(member);
    if inner.is_empty() {
        members.remove(parent);
    }
    value
}

/// The changes that a model has required so far.
#[derive(Debug, Default)]
pub(crate) struct Learnt(Mutex<Vec<Change>>);

impl Learnt {
    /// Creates it with what is known of a model.
    pub(crate) fn of(model: &str) -> Self {
        let known = KNOWN.iter().filter(|(beginning, _)| model.starts_with(beginning));
        let changes = known.filter_map(|(_, member)| CHANGES.iter().find(|change| change.member == *member));
        Self(Mutex::new(changes.cloned().collect()))
    }

    /// Returns the changes for a new request.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.lock().clone()
    }

    /// Returns the members that are changed.
    pub(crate) fn members(&self) -> Vec<String> {
        self.lock().iter().map(|change| change.member.clone().into_owned()).collect()
    }

    /// Keeps changes with which the model has answered. Each is logged once.
    pub(crate) fn keep(&self, model: &str, changes: &[Change]) {
        let mut kept = self.lock();
        for change in changes {
            if !kept.contains(change) {
                let Change { member, how } = change;
                warn!(model.name = model, %member, ?how, "The language model refuses a member; later requests are changed");
                kept.push(change.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_with(reason: &str, body: &Value, extra: Value) -> Option<Value> {
        let mut body = body.clone();
        Change::for_refusal(reason, &body, extra.as_object().unwrap())?.apply(&mut body);
        Some(body)
    }

    fn changed(reason: &str, body: &Value) -> Option<Value> {
        changed_with(reason, body, json!({}))
    }

    /// The messages are those of the providers.
    #[test]
    fn a_member_that_is_named_is_left_out_or_renamed() {
        let body = json!({ "model": "m", "tool_choice": { "type": "any" }, "max_tokens": 9 });
        let without_choice = json!({ "model": "m", "max_tokens": 9 });
        for reason in [
            "400 invalid_request_error tool_choice: type \"tool\" and \"any\" are not supported for this model.",
            "400 invalid_request_error tool_choice forces tool use is not compatible with this model",
            "400 Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
        ] {
            assert_eq!(changed(reason, &body), Some(without_choice.clone()), "{reason}");
        }
        let reason = "400 unsupported_parameter Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let renamed = json!({ "model": "m", "tool_choice": { "type": "any" }, "max_completion_tokens": 9 });
        assert_eq!(changed(reason, &body), Some(renamed));
    }

    #[test]
    fn a_model_that_thinks_is_told_not_to_with_tools() {
        let reason = "400 invalid_request_error Function tools with reasoning_effort are not supported for gpt-5.6-luna in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";
        let body = json!({ "model": "m", "tools": [{}], "reasoning_effort": "low" });
        let without = json!({ "model": "m", "tools": [{}] });
        let expected = json!({ "model": "m", "tools": [{}], "reasoning_effort": "none" });
        assert_eq!(changed(reason, &body), Some(expected.clone()));
        assert_eq!(changed(reason, &without), Some(expected));
        assert_eq!(changed(reason, &json!({ "model": "m" })), None);
        let value =
            "400 unsupported_value Unsupported value: 'reasoning_effort' does not support 'low' with this model.";
        assert_eq!(changed_with(value, &body, json!({ "reasoning_effort": "low" })), Some(without));
    }

    #[test]
    fn structured_output_becomes_a_tool() {
        let schema = json!({ "title": "sky", "type": "object" });
        let format = json!({ "type": "json_schema", "schema": schema });
        let body = json!({ "model": "m", "output_config": { "format": format, "effort": "low" } });
        for reason in [
            "400 invalid_request_error output_config.format: not supported for this model",
            "400 invalid_request_error output_config: Extra inputs are not permitted",
        ] {
            let changed = changed(reason, &body).unwrap();
            assert_eq!(changed["output_config"], json!({ "effort": "low" }), "{reason}");
            assert_eq!((&changed["tools"][0]["name"], &changed["tools"][0]["input_schema"]), (&json!("sky"), &schema));
            assert_eq!(changed["tool_choice"], json!({ "type": "tool", "name": "sky" }));
        }
    }

    #[test]
    fn an_extra_member_that_is_refused_is_left_out() {
        let extra =
            json!({ "temperature": 0.2, "thinking": { "type": "disabled" }, "output_config": { "effort": "low" } });
        let without = |member: &str| {
            let mut body = extra.clone();
            body.as_object_mut().unwrap().remove(member);
            Some(body)
        };
        for (reason, member) in [
            ("400 invalid_request_error `temperature` is deprecated for this model.", "temperature"),
            ("400 \"thinking.type.disabled\" is not supported for this model.", "thinking"),
            ("400 output_config.effort: this model does not support effort", "output_config"),
        ] {
            assert_eq!(changed_with(reason, &extra, extra.clone()), without(member), "{reason}");
        }
        assert_eq!(changed_with("400 top_p: Extra inputs are not permitted", &extra, extra.clone()), None);
    }

    #[test]
    fn what_is_documented_is_known_from_the_start() {
        assert_eq!(Learnt::of("claude-sonnet-5-5").members(), ["tool_choice"]);
        assert_eq!(Learnt::of("gpt-6-luna").members(), ["reasoning_effort"]);
        assert_eq!(Learnt::of("claude-haiku-4-5").members(), Vec::<String>::new());
    }

    #[test]
    fn other_refusals_change_nothing() {
        let body = json!({ "model": "m", "max_tokens": 9 });
        for reason in [
            "400 tool_choice is not supported", // it was not sent
            "400 model: unknown",
            "400 the prompt has more than 9 max_tokens_per_minute",
            "400 invalid_request_error prompt.max_tokens_total: too many",
        ] {
            assert_eq!(changed(reason, &body), None, "{reason}");
        }
    }

    #[test]
    fn changes_are_kept_once() {
        let learnt = Learnt::default();
        learnt.keep("m", &CHANGES[..2]);
        learnt.keep("m", &CHANGES[1..2]);
        assert_eq!(learnt.changes(), CHANGES[..2]);
    }
}
