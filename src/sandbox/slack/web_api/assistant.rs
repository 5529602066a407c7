//! `assistant.threads.setStatus`.

use std::sync::Arc;

use serde_json::json;

use super::{Answer, Refusal, args::Args, chat::place};
use crate::sandbox::slack::{check, interactions::root_of, server::Server};

const MOST_LOADING_MESSAGES: usize = 10;

pub(super) fn set_status(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.needed("channel_id")?, false)?;
    let thread = args.ts("thread_ts")?;
    let root = root_of(&server.world(), &channel, &thread).ok_or_else(|| Refusal::of("thread_not_found"))?;
    let loading = args.json("loading_messages").and_then(|list| list.as_array().map(Vec::len)).unwrap_or_default();
    if loading > MOST_LOADING_MESSAGES {
        return Err(Refusal::because(
            "invalid_arguments",
            "must provide no more than 10 items [json-pointer:/loading_messages]",
        ));
    }
    let status = args
        .text("status")
        .ok_or_else(|| Refusal::because("invalid_arguments", "missing required field [json-pointer:/status]"))?;
    server.remark("assistant.threads.setStatus", check::spoken(&json!({ "text": status })));
    server.status(&channel, &root, &status);
    Ok(json!({}))
}
