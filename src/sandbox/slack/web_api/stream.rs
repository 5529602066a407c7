//! `chat.startStream`, `chat.appendStream` and `chat.stopStream`.
//!
//! The errors and what a stream looks like to `conversations.replies` follow what others have recorded of Slack: as long
//! as it is not stopped, a stream can be neither edited nor deleted, and only a stop can give it metadata.

use std::sync::Arc;

use countersign_core::ids::{ChannelId, MessageTs};
use serde_json::{Value, json};

use super::{
    Answer, Refusal,
    args::Args,
    chat::{MARKDOWN_TEXT, metadata, own, place, thread},
};
use crate::slack::{
    check,
    server::Server,
    timeline::{Draft, Edit},
    world::message::StreamState,
};

/// The maximum length of texts of tasks and plans, in characters.
const MAX_TASK_TEXT: usize = 256;

pub(super) fn start(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let root = thread(server, args, &channel)?.ok_or_else(|| Refusal::of("invalid_thread_ts"))?;
    if !server.world().channel(channel.as_str()).is_some_and(|channel| channel.is_im()) {
        for (argument, error) in
            [("recipient_user_id", "missing_recipient_user_id"), ("recipient_team_id", "missing_recipient_team_id")]
        {
            if args.text(argument).is_none_or(|id| id.is_empty()) {
                return Err(Refusal::of(error));
            }
        }
        args.user("recipient_user_id")?;
    }
    let blocks = with_chunks(Vec::new(), args)?;
    let text = text_of(&blocks);
    server.record_problem("chat.startStream", check::message_text(&json!({ "text": text, "blocks": blocks })));
    let bot = server.world().app.user.clone();
    let draft =
        Draft { thread: Some(root), blocks, stream: Some(StreamState::InProgress), ..Draft::new(channel, bot, text) };
    let message = server.post(draft);
    Ok(json!({ "channel": message.channel, "ts": message.ts }))
}

pub(super) fn append(server: &Arc<Server>, args: &Args) -> Answer {
    let (channel, ts) = open(server, args)?;
    let before = server.world().message(&channel, &ts).map(|message| message.blocks.clone()).unwrap_or_default();
    let blocks = with_chunks(before, args)?;
    edit(server, "chat.appendStream", (&channel, &ts), blocks, None)
}

pub(super) fn stop(server: &Arc<Server>, args: &Args) -> Answer {
    let (channel, ts) = open(server, args)?;
    let before = server.world().message(&channel, &ts).map(|message| message.blocks.clone()).unwrap_or_default();
    let mut blocks = with_chunks(before, args)?;
    if let Some(Value::Array(more)) = args.json("blocks") {
        check::message(&more)?;
        blocks.extend(more);
    }
    let metadata = metadata(args)?;
    let answer = edit(server, "chat.stopStream", (&channel, &ts), blocks, metadata)?;
    if let Some(message) = server.world().message_mut(&channel, &ts) {
        message.stream = Some(StreamState::Completed);
    }
    server.changed(&channel, &ts);
    Ok(answer)
}

/// Refuses a call that a stream does not allow until it is stopped.
pub(super) fn must_be_stopped(
    server: &Server,
    channel: &ChannelId,
    ts: &MessageTs,
    otherwise: &str,
) -> Result<(), Refusal> {
    let world = server.world();
    let is_streaming =
        world.message(channel, ts).is_some_and(|message| message.stream == Some(StreamState::InProgress));
    if is_streaming { Err(Refusal::of(otherwise)) } else { Ok(()) }
}

/// Returns the place of the stream in the arguments, if it is not stopped.
fn open(server: &Arc<Server>, args: &Args) -> Result<(ChannelId, MessageTs), Refusal> {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("ts")?;
    own(server, &channel, &ts, "message_not_owned_by_app")?;
    match must_be_stopped(server, &channel, &ts, "") {
        Ok(()) => Err(Refusal::of("message_not_in_streaming_state")),
        Err(_) => Ok((channel, ts)),
    }
}

fn edit(
    server: &Arc<Server>,
    method: &str,
    (channel, ts): (&ChannelId, &MessageTs),
    blocks: Vec<Value>,
    metadata: Option<Value>,
) -> Answer {
    let text = text_of(&blocks);
    server.record_problem(method, check::message_text(&json!({ "text": text, "blocks": blocks })));
    let edit = Edit { text, blocks, metadata };
    server.edit(channel, ts, edit).ok_or_else(|| Refusal::of("message_not_found"))?;
    Ok(json!({ "channel": channel, "ts": ts }))
}

/// Returns the layout of a stream with the chunks in the arguments added.
fn with_chunks(mut blocks: Vec<Value>, args: &Args) -> Result<Vec<Value>, Refusal> {
    let text = args.text("markdown_text").map(|text| json!({ "type": "markdown_text", "text": text }));
    let chunks = match args.json("chunks") {
        None => text.into_iter().collect(),
        Some(_) if text.is_some() => return Err(Refusal::of("markdown_text_conflict")),
        Some(Value::Array(chunks)) => chunks,
        Some(_) => return Err(Refusal::of("invalid_chunks")),
    };
    for chunk in chunks {
        add(&mut blocks, &chunk)?;
    }
    Ok(blocks)
}

fn add(blocks: &mut Vec<Value>, chunk: &Value) -> Result<(), Refusal> {
    let invalid = |reason: &str| Refusal::because("invalid_chunks", reason);
    match chunk["type"].as_str() {
        Some("markdown_text") => {
            let text = chunk["text"].as_str().filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| invalid("missing required field [json-pointer:/chunks/text]"))?;
            if text.chars().count() > MARKDOWN_TEXT {
                return Err(Refusal::of("msg_too_long"));
            }
            match blocks.last_mut().filter(|last| last["type"] == "markdown") {
                Some(last) => last["text"] = json!(format!("{}{text}", last["text"].as_str().unwrap_or_default())),
                None => blocks.push(json!({ "type": "markdown", "text": text })),
            }
        }
        Some("task_update") => {
            let field = |name: &str| chunk[name].as_str().unwrap_or_default();
            let is_valid = !field("id").is_empty()
                && (1..=MAX_TASK_TEXT).contains(&field("title").chars().count())
                && ["pending", "in_progress", "complete", "error"].contains(&field("status"));
            if !is_valid {
                return Err(invalid("a task needs an id, a title of up to 256 characters and a status"));
            }
            let known = blocks.iter_mut().find(|block| block["task_id"] == chunk["id"]);
            match known {
                Some(block) => (block["title"], block["status"]) = (chunk["title"].clone(), chunk["status"].clone()),
                None => blocks.push(json!({
                    "type": "task_card", "task_id": chunk["id"], "title": chunk["title"], "status": chunk["status"],
                })),
            }
        }
        _ => return Err(invalid("unknown type [json-pointer:/chunks/type]")),
    }
    Ok(())
}

/// Returns the text of a stream, for people who do not see its layout.
fn text_of(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter_map(|block| block["text"].as_str().or(block["title"].as_str()));
    texts.collect::<Vec<_>>().join("\n")
}
