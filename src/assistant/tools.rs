//! The tools that belong to the graph itself: how a model says what it found out, and how it reads back what is known.
//!
//! Order and bytes are the same in every request, so that a provider can cache them. Tools that read a platform come
//! from the [`Registry`].

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::{capabilities::Registry, model::ToolSpec};

/// How the analysis is told.
pub(super) const ANALYZE: &str = "analyze_user_request";
/// Names the change.
pub(super) const SET_ACTION: &str = "set_action_needed";
/// Gives all parameters.
pub(super) const SET_PARAMS: &str = "set_action_params";
/// Gives or corrects one parameter.
pub(super) const UPDATE_PARAMS: &str = "update_action_params";
/// Names what only the person can say.
pub(super) const SET_MISSING: &str = "set_missing_params";
/// Notes that something is wrong.
pub(super) const ADD_ERROR: &str = "add_error";
/// Gives up the draft.
pub(super) const DROP_DRAFT: &str = "drop_draft";
/// What was done in this thread.
pub(super) const EXECUTION_LOG: &str = "get_execution_log";
/// Buttons below the answer.
pub(super) const NEXT_STEPS: &str = "offer_next_steps";
/// Contexts and their vocabulary, as gathered.
pub(super) const CONTEXT_METADATA: &str = "get_context_metadata";
/// Names, as gathered.
pub(super) const EXPERIMENT_NAMES: &str = "get_experiment_names";
/// Experiments, as gathered.
pub(super) const ALL_EXPERIMENTS: &str = "get_all_experiments";
/// All of it.
pub(super) const ALL_GATHERED: &str = "get_all_gathered_info";
/// What went wrong.
pub(super) const ERRORS: &str = "get_errors";

fn spec(name: &str, description: &str, input_schema: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: description.to_owned(), input_schema }
}

fn nothing() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// For `analyze`.
pub(super) fn analysis() -> Arc<[ToolSpec]> {
    static TOOLS: LazyLock<Arc<[ToolSpec]>> = LazyLock::new(|| {
        Arc::new([spec(
            ANALYZE,
            "Say what the person wants. Call this exactly once.",
            json!({
                "type": "object",
                "properties": {
                    "intent_type": {
                        "type": "string",
                        "enum": ["direct_answer", "needs_info"],
                        "description": "direct_answer: talk or general knowledge, nothing to look up. needs_info: facts of the platform or of this thread, or a change.",
                    },
                    "capability": {
                        "type": "string",
                        "enum": [
                            "terminology", "version_check", "list_experiments", "experiment_details",
                            "experiment_management", "user_simulation", "testing", "unsupported",
                        ],
                        "description": "What the request needs. unsupported: nothing of this serves it, such as sending mail. Leave it out for talk.",
                    },
                    "confidence": {
                        "type": "number",
                        "minimum": 0,
                        "maximum": 1,
                        "description": "How sure you are what is meant. Below 0.7 the person is asked.",
                    },
                    "user_request_summary": {
                        "type": "string",
                        "description": "The request in one sentence that can be understood without the conversation.",
                    },
                    "reasoning": { "type": "string", "description": "Why, in a few words." },
                    "question": { "type": "string", "description": "Only when not sure: what to ask, in one short sentence." },
                    "options": {
                        "type": "array",
                        "items": { "type": "string" },
                        "maxItems": 4,
                        "description": "Only when not sure: what may be meant, each as a full request the person could have typed.",
                    },
                    "steps": {
                        "type": "array",
                        "items": { "type": "string" },
                        "maxItems": 20,
                        "description": "Only when the message holds several requests: each as a full request with everything said of it, in the order in which they are to be done. “It” may stand for what the step before made.",
                    },
                },
                "required": ["intent_type", "confidence", "user_request_summary"],
            }),
        )])
    });
    Arc::clone(&TOOLS)
}

/// For `gather`: first how to say what was found out, then what reads.
pub(super) fn gathering(registry: &Registry) -> Vec<ToolSpec> {
    let actions: Vec<&str> = registry.actions.keys().copied().collect();
    let menu: Vec<String> =
        registry.actions.values().map(|action| format!("`{}`: {}", action.name(), action.description())).collect();
    let parameters: Vec<String> =
        registry.actions.values().map(|action| format!("`{}`: {}", action.name(), action.schema())).collect();
    let mut tools = vec![
        spec(
            SET_ACTION,
            &format!(
                "Name the change the person asked for. A person approves it later; nothing happens now.\n{}",
                menu.join("\n")
            ),
            json!({
                "type": "object",
                "properties": {
                    "action": { "type": "string", "enum": actions },
                    "reasoning": { "type": "string" },
                },
                "required": ["action"],
            }),
        ),
        spec(
            SET_PARAMS,
            &format!(
                "Give all parameters of the change that are known, and only what the person said. What each change takes, as JSON schema:\n{}",
                parameters.join("\n")
            ),
            json!({
                "type": "object",
                "properties": { "action_params": { "type": "object" } },
                "required": ["action_params"],
            }),
        ),
        spec(
            UPDATE_PARAMS,
            "Give or correct one parameter and keep the others. This also continues the draft, or the change on the open card.",
            json!({
                "type": "object",
                "properties": { "key": { "type": "string" }, "value": {} },
                "required": ["key", "value"],
            }),
        ),
        spec(
            SET_MISSING,
            "Name the parameters that only the person can give.",
            json!({
                "type": "object",
                "properties": { "missing_params": { "type": "array", "items": { "type": "string" } } },
                "required": ["missing_params"],
            }),
        ),
        spec(
            ADD_ERROR,
            "Note that the request cannot be served, and why.",
            json!({
                "type": "object",
                "properties": {
                    "error_type": {
                        "type": "string",
                        "enum": ["api", "auth", "validation", "not_found", "network", "user_input", "execution", "unknown"],
                    },
                    "message": { "type": "string" },
                },
                "required": ["error_type", "message"],
            }),
        ),
        spec(DROP_DRAFT, "Give up the draft: the person no longer wants it.", nothing()),
        spec(EXECUTION_LOG, "Read what was done in this thread, when, and who approved it.", nothing()),
    ];
    let reads = registry.tools.values().map(|tool| spec(tool.name(), tool.description(), tool.schema()));
    tools.extend(reads);
    tools
}

/// For `respond`: what reads back what is known, and the buttons.
pub(super) fn responding() -> Arc<[ToolSpec]> {
    static TOOLS: LazyLock<Arc<[ToolSpec]>> = LazyLock::new(|| {
        let back = |name, what| spec(name, &format!("Read back {what}. Nothing is asked of the platform."), nothing());
        Arc::new([
            back(CONTEXT_METADATA, "the contexts and their vocabulary"),
            back(EXPERIMENT_NAMES, "the names of the experiments"),
            back(ALL_EXPERIMENTS, "the list of experiments"),
            back(ALL_GATHERED, "everything that was gathered in this turn"),
            back(EXECUTION_LOG, "what was done in this thread, when, and who approved it"),
            back(ERRORS, "what went wrong in this turn"),
            spec(
                NEXT_STEPS,
                "Show up to four buttons below the answer. Each says something for the person, as if typed.",
                json!({
                    "type": "object",
                    "properties": {
                        "steps": {
                            "type": "array",
                            "maxItems": 4,
                            "items": {
                                "type": "object",
                                "properties": {
                                    "label": { "type": "string", "description": "Two or three words." },
                                    "says": { "type": "string", "description": "The full request." },
                                },
                                "required": ["label", "says"],
                            },
                        },
                    },
                    "required": ["steps"],
                }),
            ),
        ])
    });
    Arc::clone(&TOOLS)
}
