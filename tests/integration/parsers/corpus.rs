//! One good input of each kind: what Slack, UpGrade and a language model send.

use serde_json::{Value, json};

/// Bodies of the Events API.
pub(crate) fn events() -> Vec<Vec<u8>> {
    let said = json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U0ANA", "team": "T1",
        "text": "<@U0BOT> start &lt;Math Hints&gt; and <https://a.example|see> <#C2|general>", "ts": "1767225600.000100",
        "thread_ts": "1767225500.000100", "client_msg_id": "0d5b", "files": [{ "id": "F1", "name": "data.csv" }],
        "blocks": [{ "type": "rich_text", "block_id": "x", "elements": [{ "type": "rich_text_section", "elements":
            [{ "type": "user", "user_id": "U0BOT" }, { "type": "text", "text": " start" }] }] }]
    });
    let mut mention = said.clone();
    mention["type"] = json!("app_mention");
    let others = [
        json!({ "type": "app_home_opened", "user": "U0ANA", "channel": "D1", "tab": "home", "event_ts": "2.0" }),
        json!({ "type": "app_home_opened", "user": "U0ANA", "channel": "D1", "tab": "messages", "event_ts": "2.0" }),
        json!({ "type": "agent_session_stopped", "channel": "C1", "thread_ts": "1.0", "user": "U0ANA", "event_ts": "2.0" }),
        json!({ "type": "assistant_thread_started", "event_ts": "2.0", "assistant_thread":
            { "user_id": "U0ANA", "context": {}, "channel_id": "D1", "thread_ts": "1.0" } }),
    ];
    let callback = |event| {
        json!({
            "token": "gone", "team_id": "T1", "api_app_id": "A1", "type": "event_callback", "event_id": "Ev1",
            "event_time": 1_767_225_600, "is_ext_shared_channel": false, "event_context": "4-ey",
            "authorizations": [{ "enterprise_id": null, "team_id": "T1", "user_id": "U0BOT", "is_bot": true }],
            "event": event
        })
    };
    [said, mention].into_iter().chain(others).map(|event| bytes(&callback(event))).collect()
}

/// The handshake of the Events API.
pub(crate) fn challenge() -> Vec<u8> {
    bytes(&json!({ "token": "gone", "challenge": "3eZbrw1a", "type": "url_verification" }))
}

/// Payloads of interactions: buttons, modals, shortcuts.
pub(crate) fn interactions() -> Vec<Vec<u8>> {
    let by = json!({ "id": "U0BO", "username": "bo", "name": "bo", "team_id": "T1" });
    let click = json!({
        "type": "block_actions", "api_app_id": "A1", "token": "gone", "trigger_id": "12.34.ab", "user": by,
        "team": { "id": "T1", "domain": "lab" }, "enterprise": null, "is_enterprise_install": false,
        "container": { "type": "message", "message_ts": "1767225700.000200", "channel_id": "C1",
            "is_ephemeral": false, "thread_ts": "1767225600.000100" },
        "channel": { "id": "C1", "name": "general" },
        "message": { "type": "message", "user": "U0BOT", "bot_id": "B0BOT", "ts": "1767225700.000200",
            "thread_ts": "1767225600.000100", "metadata": { "event_type": "countersign", "event_payload": { "n": 1 } } },
        "state": { "values": {} }, "response_url": "https://hooks.slack.com/actions/1",
        "actions": [{ "action_id": "approve", "block_id": "b1", "type": "button", "value": "0a11",
            "text": { "type": "plain_text", "text": "Start experiment", "emoji": true },
            "action_ts": "1767225711.123456" }]
    });
    let closed = json!({ "type": "view_closed", "team": { "id": "T1" }, "user": by, "view": { "id": "V1" }, "is_cleared": false });
    let shortcut = json!({ "type": "shortcut", "team": { "id": "T1" }, "user": by, "callback_id": "new_experiment", "trigger_id": "1" });
    let on_message = json!({ "type": "message_action", "team": { "id": "T1" }, "user": by, "callback_id": "ask", "trigger_id": "1",
        "channel": { "id": "C1" }, "message_ts": "1.0", "message": { "ts": "1.0", "text": "a &amp; b", "thread_ts": "0.9" } });
    [click, submission(), closed, shortcut, on_message].iter().map(bytes).collect()
}

/// A form that was sent, with the fields of [`super::targets`].
pub(crate) fn submission() -> Value {
    json!({
        "type": "view_submission", "team": { "id": "T1" }, "user": { "id": "U0ANA", "team_id": "T1" }, "trigger_id": "5.6.cd",
        "view": { "id": "V1", "type": "modal", "callback_id": "edit", "private_metadata": "0a11", "hash": "h1",
            "state": { "values": {
                "/name": { "value": { "type": "plain_text_input", "value": "Math Hints" } },
                "/tags": { "value": { "type": "plain_text_input", "value": "algebra\npilot" } },
                "/description": { "value": { "type": "plain_text_input", "value": null } },
                "/conditions/0/weight": { "value": { "type": "number_input", "value": "62.5" } },
                "/context": { "value": { "type": "static_select", "selected_option": { "value": "mathstream" } } },
                "/group": { "value": { "type": "static_select", "selected_option": { "value": "yes" } } },
                "people": { "pick": { "type": "multi_users_select", "selected_users": ["U1", "U2"] } },
                "tags": { "pick": { "type": "checkboxes", "selected_options": [{ "value": "a" }, { "value": "b" }] } }
            } } },
        "response_urls": []
    })
}

/// Slash commands, as form fields.
pub(crate) fn commands() -> Vec<Vec<u8>> {
    let line = |command: &str, text: &str| {
        let fields = [
            ("token", "gone"),
            ("team_id", "T1"),
            ("channel_id", "C1"),
            ("channel_name", "general"),
            ("user_id", "U0ANA"),
            ("user_name", "ana"),
            ("command", command),
            ("text", text),
            ("api_app_id", "A1"),
            ("response_url", "https://hooks.slack.com/commands/1"),
            ("trigger_id", "9.9.ff"),
        ];
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish().into_bytes()
    };
    vec![line("/upgrade", "list running"), line("/countersign", "pending"), line("/upgrade", "show Math Hints")]
}

/// Text frames of Socket Mode.
pub(crate) fn frames() -> Vec<Vec<u8>> {
    let parsed = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).expect("the corpus is JSON");
    let envelope = |kind: &str, payload: Value| {
        json!({ "envelope_id": "e1", "type": kind, "accepts_response_payload": true, "payload": payload,
            "retry_attempt": 1, "retry_reason": "timeout" })
    };
    let command = json!({ "token": "gone", "team_id": "T1", "channel_id": "C1", "user_id": "U0ANA", "command": "/upgrade",
        "text": "status", "response_url": "https://hooks.slack.com/commands/1", "trigger_id": "9.9.ff", "api_app_id": "A1" });
    let events = events().into_iter().map(|event| envelope("events_api", parsed(event)));
    let interactions = interactions().into_iter().map(|payload| envelope("interactive", parsed(payload)));
    let hello = json!({ "type": "hello", "num_connections": 1, "debug_info": { "host": "applink-1" }, "connection_info": { "app_id": "A1" } });
    let disconnect =
        json!({ "type": "disconnect", "reason": "refresh_requested", "debug_info": { "host": "applink-1" } });
    events
        .chain(interactions)
        .chain([envelope("slash_commands", command), hello, disconnect])
        .map(|frame| bytes(&frame))
        .collect()
}

/// Answers of the recorded platform, both versions: their bodies.
pub(crate) fn platform_answers() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for folder in ["tests/fixtures/upgrade/6.2", "tests/fixtures/upgrade/6.5"] {
        let files = std::fs::read_dir(folder).expect("the recordings are there");
        let mut files: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "json")) {
            let recording: Value =
                serde_json::from_slice(&std::fs::read(file).expect("it can be read")).expect("it is JSON");
            let body = recording.pointer("/response/body").filter(|body| body.is_object() || body.is_array());
            found.extend(body.map(bytes));
        }
    }
    found
}

/// The streamed answers of the language models of all providers.
pub(crate) fn model_answers() -> Vec<Vec<u8>> {
    let events = [
        json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 12, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Two experiments run." } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "t1", "name": "list_experiments", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{\"status\":" } }),
        json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "\"enrolling\"}" } }),
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "thinking", "thinking": "" } }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "thinking_delta", "thinking": "hm" } }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "citations_delta", "citation": { "url": "x" } } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 30 } }),
        json!({ "type": "message_stop" }),
    ];
    let broken = json!([{ "type": "error", "error": { "type": "overloaded_error", "message": "later" } }]);
    let call =
        json!([{ "index": 0, "id": "c1", "type": "function", "function": { "name": "list", "arguments": "{" } }]);
    let more = json!([{ "index": 0, "function": { "arguments": "}" }, "extra_content": { "signature": "s" } }]);
    let completion = json!([
        { "id": "a1", "model": "m", "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "Two" } }] },
        { "id": "a1", "choices": [{ "index": 0, "delta": { "tool_calls": call, "reasoning_content": "hm" } }] },
        { "id": "a1", "choices": [{ "index": 0, "delta": { "tool_calls": more }, "finish_reason": "tool_calls" }] },
        { "id": "a1", "choices": [], "usage": { "prompt_tokens": 12, "prompt_tokens_details": { "cached_tokens": 3 } } },
    ]);
    let call = json!({ "functionCall": { "name": "list", "args": { "n": 1 } }, "thoughtSignature": "s" });
    let parts = json!([{ "text": "hm", "thought": true }, { "text": "Two" }, call]);
    let content = json!([
        { "candidates": [{ "content": { "role": "model", "parts": parts } }], "responseId": "r1", "modelVersion": "m" },
        { "candidates": [{ "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 12 } },
    ]);
    [json!(events), broken, completion, content].iter().map(bytes).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a value is JSON")
}
