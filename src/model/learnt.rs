//! The members of a request that a model refuses.
//!
//! Servers differ in the optional members that they know, and new models refuse what earlier ones took, such as a forced
//! choice of a tool. If a refusal names such a member, the same request is sent again without it, or with its other form.
//! If the model answers then, all later requests to it are changed in the same way, until the process ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tracing::warn;

/// The members that can be changed. Without a choice of tools a model chooses by itself, and the instructions say which
/// tool to call and how to answer in JSON.
const CHANGES: &[Change] = &[
    Change { member: "tool_choice", other: None },
    Change { member: "response_format", other: None },
    Change { member: "stream_options", other: None },
    Change { member: "max_tokens", other: Some("max_completion_tokens") },
    Change { member: "max_completion_tokens", other: Some("max_tokens") },
];

/// A change of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    member: &'static str,
    /// The other name of the member; `None` if it is left out.
    other: Option<&'static str>,
}

impl Change {
    /// Returns the change for a refusal that names a member of the request.
    pub(crate) fn for_refusal(reason: &str, body: &Value) -> Option<Self> {
        let is_named =
            |member| reason.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == member);
        CHANGES.iter().find(|change| body.get(change.member).is_some() && is_named(change.member)).copied()
    }

    /// Returns true if earlier changes of the same request already concern the member.
    pub(crate) fn is_settled_by(self, earlier: &[Self]) -> bool {
        earlier.iter().any(|made| made.member == self.member || made.other == Some(self.member))
    }

    /// Changes a request, if it has the member.
    pub(crate) fn apply(self, body: &mut Value) {
        let Some(members) = body.as_object_mut() else { return };
        if let (Some(value), Some(other)) = (members.remove(self.member), self.other) {
            members.insert(other.to_owned(), value);
        }
    }
}

/// The changes that a model has required so far.
#[derive(Debug, Default)]
pub(crate) struct Learnt(Mutex<Vec<Change>>);

impl Learnt {
    /// Returns the changes for a new request.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.lock().clone()
    }

    /// Keeps changes with which the model has answered. Each is logged once.
    pub(crate) fn keep(&self, model: &str, changes: &[Change]) {
        let mut kept = self.lock();
        for change in changes {
            if !kept.contains(change) {
                let Change { member, other } = change;
                warn!(model.name = model, member, other, "The language model refuses a member; it is no longer sent");
                kept.push(*change);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(reason: &str, body: &Value) -> Option<Value> {
        let mut body = body.clone();
        Change::for_refusal(reason, &body)?.apply(&mut body);
        Some(body)
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
    fn other_refusals_change_nothing() {
        let body = json!({ "model": "m", "max_tokens": 9 });
        for reason in [
            "400 tool_choice is not supported", // it was not sent
            "400 model: unknown",
            "400 the prompt has more than 9 max_tokens_per_minute",
        ] {
            assert_eq!(changed(reason, &body), None, "{reason}");
        }
    }

    #[test]
    fn changes_are_kept_once() {
        let learnt = Learnt::default();
        learnt.keep("m", &[CHANGES[0], CHANGES[1]]);
        learnt.keep("m", &[CHANGES[1]]);
        assert_eq!(learnt.changes(), [CHANGES[0], CHANGES[1]]);
    }
}
