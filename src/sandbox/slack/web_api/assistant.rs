//! `assistant.threads.*` and `agents.sessions.*`: the status and the prompts of a thread.

use std::sync::Arc;

use serde_json::json;

use super::{Answer, Refusal, args::Args, chat::place};
use crate::slack::{check, interactions::root_of, server::Server};

const MAX_LOADING_MESSAGES: usize = 10;
const MAX_PROMPTS: usize = 4;

pub(super) fn set_status(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel_id")?, false)?;
    let thread = args.ts("thread_ts")?;
    let root = root_of(&server.world(), &channel, &thread).ok_or_else(|| Refusal::of("thread_not_found"))?;
    let loading = args.json("loading_messages").and_then(|list| list.as_array().map(Vec::len)).unwrap_or_default();
    if loading > MAX_LOADING_MESSAGES {
        return Err(Refusal::because(
            "invalid_arguments",
            "must provide no more than 10 items [json-pointer:/loading_messages]",
        ));
    }
    let status = args
        .text("status")
        .ok_or_else(|| Refusal::because("invalid_arguments", "missing required field [json-pointer:/status]"))?;
    server.record_problem("assistant.threads.setStatus", check::message_text(&json!({ "text": status })));
    server.status(&channel, &root, &status);
    Ok(json!({}))
}

pub(super) fn set_session_status(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel_id")?, false)?;
    let thread = args.ts("thread_ts")?;
    let root = root_of(&server.world(), &channel, &thread).ok_or_else(|| Refusal::of("thread_not_found"))?;
    let status = args.required("status")?;
    if !["active", "processing", "suspended", "closed"].contains(&status.as_str()) {
        return Err(Refusal::because("invalid_arguments", "unknown value [json-pointer:/status]"));
    }
    server.session(&channel, &root, &status);
    Ok(json!({ "status": status }))
}

pub(super) fn set_suggested_prompts(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel_id")?, false)?;
    let prompts = args.json("prompts").unwrap_or_default();
    let list = prompts.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_complete = |prompt: &serde_json::Value| prompt["title"].is_string() && prompt["message"].is_string();
    if list.is_empty() || list.len() > MAX_PROMPTS || !list.iter().all(is_complete) {
        let reason = "must provide 1 to 4 items with title and message [json-pointer:/prompts]";
        return Err(Refusal::because("invalid_arguments", reason));
    }
    server.prompts(&channel, &prompts);
    Ok(json!({}))
}
