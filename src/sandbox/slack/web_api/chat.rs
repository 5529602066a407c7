//! `chat.*`.

use std::sync::Arc;

use countersign_core::ids::{ChannelId, MessageTs};
use serde_json::{Value, json};

use super::{Answer, Refusal, args::Args, stream};
use crate::slack::{
    check,
    interactions::root_of,
    server::Server,
    timeline::{Draft, Edit},
};

/// The length to which texts of new messages are truncated, in characters.
const MAX_TEXT: usize = 40_000;
/// The maximum length of texts in edits, in characters.
const MAX_EDITED_TEXT: usize = 4_000;
/// The maximum length of `markdown_text`, in characters.
pub(super) const MARKDOWN_TEXT: usize = 12_000;

pub(super) fn post_message(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, true)?;
    let draft = draft(server, args, channel)?;
    server.record_problem("chat.postMessage", check::message_text(&args.recorded()));
    let message = server.post(draft);
    let world = server.world();
    Ok(
        json!({ "channel": message.channel, "ts": message.ts, "message": with_metadata(message.wire(&world), &message.metadata) }),
    )
}

pub(super) fn update(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("ts")?;
    own(server, &channel, &ts, "cant_update_message")?;
    stream::must_be_stopped(server, &channel, &ts, "streaming_state_conflict")?;
    let (text, blocks) = content(args)?;
    if text.chars().count() > MAX_EDITED_TEXT {
        return Err(Refusal::of("msg_too_long"));
    }
    let metadata = metadata(args)?;
    server.record_problem("chat.update", check::message_text(&args.recorded()));
    let before = server.world().message(&channel, &ts).map(|message| message.blocks.clone()).unwrap_or_default();
    server.record_problem("chat.update", check::new_block_ids(&before, &blocks));
    let edit = Edit { text, blocks, metadata };
    let message = server.edit(&channel, &ts, edit).ok_or_else(|| Refusal::of("message_not_found"))?;
    let world = server.world();
    Ok(json!({
        "channel": channel, "ts": ts, "text": message.text,
        "message": with_metadata(message.wire(&world), &message.metadata),
    }))
}

pub(super) fn delete(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("ts")?;
    own(server, &channel, &ts, "cant_delete_message")?;
    stream::must_be_stopped(server, &channel, &ts, "cant_delete_message")?;
    server.delete(&channel, &ts).ok_or_else(|| Refusal::of("message_not_found"))?;
    Ok(json!({ "channel": channel, "ts": ts }))
}

pub(super) fn post_ephemeral(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let user = args.user("user")?;
    if !server.world().channel(channel.as_str()).is_some_and(|channel| channel.has(&user)) {
        return Err(Refusal::of("user_not_in_channel"));
    }
    let draft = Draft { ephemeral_to: Some(user), ..draft(server, args, channel)? };
    server.record_problem("chat.postEphemeral", check::message_text(&args.recorded()));
    Ok(json!({ "message_ts": server.post(draft).ts }))
}

pub(super) fn get_permalink(server: &Arc<Server>, args: &Args) -> Answer {
    let channel = place(server, &args.required("channel")?, false)?;
    let ts = args.ts("message_ts")?;
    let world = server.world();
    let message = world.message(&channel, &ts).filter(|message| !message.deleted && message.ephemeral_to.is_none());
    let message = message.ok_or_else(|| Refusal::of("message_not_found"))?;
    let mut link = format!("https://learning-lab.slack.com/archives/{channel}/p{}", ts.as_str().replace('.', ""));
    if !message.is_root() {
        link.push_str(&format!("?thread_ts={}&cid={channel}", message.root()));
    }
    Ok(json!({ "channel": channel, "permalink": link }))
}

/// Returns the conversation, if the bot may post there. With `or_name`, it may be given by its
/// name, or by the id of the user for a direct message. Slack accepts these for posting only; an
/// edit needs the id of the conversation.
pub(super) fn place(server: &Server, name: &str, or_name: bool) -> Result<ChannelId, Refusal> {
    let world = server.world();
    let found = world.channel(name).filter(|channel| or_name || channel.id.as_str() == name);
    let channel = found.ok_or_else(|| Refusal::of("channel_not_found"))?;
    if !channel.has(&world.app.user) {
        return Err(Refusal::of("not_in_channel"));
    }
    if channel.archived {
        return Err(Refusal::of("is_archived"));
    }
    Ok(channel.id.clone())
}

fn draft(server: &Server, args: &Args, channel: ChannelId) -> Result<Draft, Refusal> {
    let (mut text, blocks) = content(args)?;
    if let Some((at, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(at);
    }
    let metadata = metadata(args)?.filter(|metadata| metadata.as_object().is_some_and(|m| !m.is_empty()));
    let thread = thread(server, args, &channel)?;
    let bot = server.world().app.user.clone();
    Ok(Draft { thread, blocks, metadata, ..Draft::new(channel, bot, text) })
}

/// Returns the root of the thread in the arguments, if any. Like Slack, it accepts only the root,
/// not a reply.
pub(super) fn thread(server: &Server, args: &Args, channel: &ChannelId) -> Result<Option<MessageTs>, Refusal> {
    let Some(ts) = args.text("thread_ts").filter(|ts| !ts.is_empty()).map(MessageTs::new) else { return Ok(None) };
    let root = root_of(&server.world(), channel, &ts).filter(|root| *root == ts);
    root.map(Some).ok_or_else(|| Refusal::of("thread_not_found"))
}

/// Reads and checks the text and the layout.
fn content(args: &Args) -> Result<(String, Vec<Value>), Refusal> {
    let text = args.text("text").unwrap_or_default();
    check::attachments(&args.json("attachments").unwrap_or_default())?;
    if let Some(markdown) = args.text("markdown_text") {
        if args.has("text") || args.has("blocks") {
            return Err(Refusal::of("markdown_text_conflict"));
        }
        if markdown.chars().count() > MARKDOWN_TEXT {
            return Err(Refusal::of("msg_too_long"));
        }
        return Ok((markdown.clone(), vec![json!({ "type": "markdown", "text": markdown })]));
    }
    let blocks = match args.json("blocks") {
        None => Vec::new(),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(Refusal::of("invalid_blocks_format")),
    };
    if text.is_empty() && blocks.is_empty() {
        return Err(Refusal::of("no_text"));
    }
    check::message(&blocks)?;
    Ok((text, blocks))
}

/// Reads the metadata of a message: a type and a flat object of strings.
pub(super) fn metadata(args: &Args) -> Result<Option<Value>, Refusal> {
    let Some(metadata) = args.json("metadata") else { return Ok(None) };
    let object = metadata.as_object().ok_or_else(|| Refusal::of("invalid_metadata_format"))?;
    if object.is_empty() {
        return Ok(Some(metadata));
    }
    if !object.get("event_type").is_some_and(Value::is_string) {
        return Err(Refusal::of("invalid_metadata_format"));
    }
    match object.get("event_payload") {
        Some(Value::Object(payload)) if payload.values().all(Value::is_string) => Ok(Some(metadata)),
        Some(Value::Object(_)) => {
            Err(Refusal::because("invalid_metadata_schema", "values of event_payload must be strings"))
        }
        _ => Err(Refusal::of("invalid_metadata_format")),
    }
}

/// Checks that a message exists and was posted by the app.
pub(super) fn own(server: &Server, channel: &ChannelId, ts: &MessageTs, otherwise: &str) -> Result<(), Refusal> {
    let world = server.world();
    let message = world.message(channel, ts).filter(|message| !message.deleted && message.ephemeral_to.is_none());
    match message {
        None => Err(Refusal::of("message_not_found")),
        Some(message) if !message.by_app => Err(Refusal::of(otherwise)),
        Some(_) => Ok(()),
    }
}

fn with_metadata(mut message: Value, metadata: &Option<Value>) -> Value {
    if let Some(metadata) = metadata {
        message["metadata"] = metadata.clone();
    }
    message
}
