//! `chat.startStream`, `chat.appendStream` and `chat.stopStream`: a message that is streamed.

use std::sync::Arc;

use countersign_core::ids::{ChannelId, MessageTs};
use serde_json::{Value, json};

use super::{
    Answer, Refusal,
    args::Args,
    chat::{MARKDOWN_TEXT, own, place, thread},
};
use crate::slack::{
    check,
    server::Server,
    timeline::{Draft, Edit},
};

pub(super) fn start(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let is_direct = server.world().channel(channel.as_str()).is_some_and(|channel| channel.is_im());
    for recipient in ["recipient_user_id", "recipient_team_id"] {
        if !is_direct && !args.has(recipient) {
            return Err(Refusal::of(&format!("missing_{recipient}")));
        }
    }
    let thread = thread(server, args, &channel)?;
    let (text, blocks) = grown(Vec::new(), &added(args)?)?;
    let bot = server.world().app.user.clone();
    let message = server.post(Draft { thread, blocks, ..Draft::new(channel.clone(), bot, text) });
    server.world().streams.insert(name(&channel, &message.ts));
    Ok(json!({ "channel": channel, "ts": message.ts }))
}

pub(super) fn append(server: &Arc<Server>, args: &Args) -> Answer {
    let added = added(args)?;
    if added.is_empty() {
        return Err(Refusal::of("no_text"));
    }
    extend(server, args, &added, false)
}

pub(super) fn stop(server: &Arc<Server>, args: &Args) -> Answer {
    let mut added = added(args)?;
    if let Some(blocks) = args.json("blocks") {
        added.push(json!({ "type": "blocks", "blocks": blocks }));
        check::chunks(&added)?;
    }
    extend(server, args, &added, true)
}

/// Reads and checks the chunks that a call adds.
fn added(args: &Args) -> Result<Vec<Value>, Refusal> {
    let mut chunks = match args.json("chunks") {
        None => Vec::new(),
        Some(Value::Array(chunks)) => chunks,
        Some(_) => return Err(Refusal::of("invalid_chunks")),
    };
    if let Some(text) = args.text("markdown_text").filter(|text| !text.is_empty()) {
        if text.chars().count() > MARKDOWN_TEXT {
            return Err(Refusal::of("msg_too_long"));
        }
        chunks.push(json!({ "type": "markdown_text", "text": text }));
    }
    check::chunks(&chunks)?;
    Ok(chunks)
}

fn extend(server: &Arc<Server>, args: &Args, added: &[Value], ends: bool) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("ts")?;
    own(server, &channel, &ts, "message_not_owned_by_app")?;
    let name = name(&channel, &ts);
    if !server.world().streams.contains(&name) {
        return Err(Refusal::of("message_not_in_streaming_state"));
    }
    let before = server.world().message(&channel, &ts).map(|message| message.blocks.clone()).unwrap_or_default();
    let (text, blocks) = grown(before, added)?;
    server
        .edit(&channel, &ts, Edit { text, blocks, metadata: None })
        .ok_or_else(|| Refusal::of("message_not_found"))?;
    if ends {
        server.world().streams.remove(&name);
    }
    Ok(json!({ "channel": channel, "ts": ts }))
}

/// Returns the text and the layout with the added chunks, if the layout is within Slack's limits.
fn grown(mut blocks: Vec<Value>, added: &[Value]) -> Result<(String, Vec<Value>), Refusal> {
    for chunk in added {
        match chunk["type"].as_str() {
            Some("markdown_text") => add_text(&mut blocks, chunk["text"].as_str().unwrap_or_default()),
            Some("task_update") => add_task(&mut blocks, chunk),
            Some("plan_update") => add_plan(&mut blocks, &chunk["title"]),
            _ => blocks.extend(chunk["blocks"].as_array().cloned().unwrap_or_default()),
        }
    }
    check::message(&blocks)?;
    let text = blocks.iter().filter(|block| block["type"] == "markdown").filter_map(|block| block["text"].as_str());
    Ok((text.collect(), blocks))
}

fn add_text(blocks: &mut Vec<Value>, text: &str) {
    match blocks.last_mut().filter(|last| last["type"] == "markdown") {
        Some(last) => last["text"] = json!(format!("{}{text}", last["text"].as_str().unwrap_or_default())),
        None => blocks.push(json!({ "type": "markdown", "text": text })),
    }
}

/// Adds a task to the plan, or to the layout if there is no plan.
fn add_task(blocks: &mut Vec<Value>, chunk: &Value) {
    let mut task = json!({ "type": "task_card", "task_id": chunk["id"], "title": chunk["title"] });
    if !chunk["status"].is_null() {
        task["status"] = chunk["status"].clone();
    }
    for name in ["details", "output"] {
        if let Some(words) = chunk[name].as_str() {
            let said = json!([{ "type": "rich_text_section", "elements": [{ "type": "text", "text": words }] }]);
            task[name] = json!({ "type": "rich_text", "elements": said });
        }
    }
    match blocks.iter().position(|block| block["type"] == "plan") {
        Some(plan) => {
            let mut tasks = blocks[plan]["tasks"].as_array().cloned().unwrap_or_default();
            put(&mut tasks, task);
            blocks[plan]["tasks"] = json!(tasks);
        }
        None => put(blocks, task),
    }
}

/// Adds a task, or replaces its earlier version.
fn put(tasks: &mut Vec<Value>, task: Value) {
    match tasks.iter_mut().find(|known| known["task_id"] == task["task_id"]) {
        Some(known) => *known = task,
        None => tasks.push(task),
    }
}

/// Sets the title of the plan. Without a plan, one is created that contains all tasks.
fn add_plan(blocks: &mut Vec<Value>, title: &Value) {
    if let Some(plan) = blocks.iter_mut().find(|block| block["type"] == "plan") {
        plan["title"] = title.clone();
        return;
    }
    let (tasks, rest): (Vec<_>, Vec<_>) = blocks.drain(..).partition(|block| block["type"] == "task_card");
    blocks.push(json!({ "type": "plan", "title": title, "tasks": tasks }));
    blocks.extend(rest);
}

fn name(channel: &ChannelId, ts: &MessageTs) -> String {
    format!("{channel}/{ts}")
}
