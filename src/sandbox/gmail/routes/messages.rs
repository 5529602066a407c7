//! Messages and threads.

use base64::{Engine as _, prelude::BASE64_URL_SAFE};
use serde_json::{Value, json};

use super::{
    super::{
        failure::Failure,
        mailbox::{Mailbox, Message},
        mime,
        strict::NewMessage,
    },
    Outcome, World, page, with_page,
};
use crate::call::Call;

/// The amount of a message that is answered. The bot never requests the format with all parts.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    Minimal,
    Raw,
    Metadata(Vec<String>),
}

impl Format {
    /// Reads the parameters `format` and `metadataHeaders`.
    pub(crate) fn read(call: &Call) -> Result<Self, Failure> {
        let names: Vec<String> = call.parameters("metadataHeaders").into_iter().map(str::to_owned).collect();
        match call.parameter("format").unwrap_or_default().to_lowercase().as_str() {
            "minimal" => Ok(Self::Minimal),
            "raw" => Ok(Self::Raw),
            "metadata" => Ok(Self::Metadata(names)),
            other => Err(Failure::invalid(format!("Invalid value at 'format' \"{other}\""))),
        }
    }
}

/// Returns a message in this format.
pub(crate) fn resource(message: &Message, format: &Format) -> Value {
    let mut json = json!({
        "id": message.id,
        "threadId": message.thread,
        "labelIds": message.labels,
        "snippet": mime::snippet(&message.bytes),
        "historyId": message.history.to_string(),
        "internalDate": message.at.to_string(),
        "sizeEstimate": message.bytes.len(),
    });
    match format {
        Format::Minimal => {}
        Format::Raw => json["raw"] = json!(BASE64_URL_SAFE.encode(&message.bytes)),
        Format::Metadata(names) => {
            let mut headers = mime::headers(&message.bytes);
            headers.retain(|(name, _)| names.is_empty() || names.iter().any(|own| own.eq_ignore_ascii_case(name)));
            json["payload"] = json!({ "mimeType": "text/plain", "headers": mime::headers_json(&headers) });
        }
    }
    json
}

/// Returns the form of a message in lists and after changes.
pub(crate) fn short(message: &Message) -> Value {
    json!({ "id": message.id, "threadId": message.thread, "labelIds": message.labels })
}

/// Lists messages, newest first.
pub(super) fn list(world: &World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&["labelIds", "maxResults", "pageToken"])?;
    let labels = call.parameters("labelIds");
    if labels.iter().any(|label| !world.mailbox.has_label(label)) {
        return Err(Failure::invalid("Invalid label"));
    }
    let is_listed = |message: &&Message| {
        let is_hidden = message.has("TRASH") || message.has("SPAM");
        labels.iter().all(|label| message.has(label))
            && (!is_hidden || labels.iter().any(|label| matches!(*label, "TRASH" | "SPAM")))
    };
    let (messages, next) = page(world, call, world.mailbox.newest_first().filter(is_listed))?;
    if messages.is_empty() {
        return Ok(json!({ "resultSizeEstimate": 0 }));
    }
    let listed: Vec<_> =
        messages.iter().map(|message| json!({ "id": message.id, "threadId": message.thread })).collect();
    Ok(with_page(json!({ "messages": listed, "resultSizeEstimate": listed.len() }), next))
}

/// Returns one message.
pub(super) fn get(world: &World, call: &Call, id: &str) -> Result<Value, Failure> {
    call.has_only(&["format", "metadataHeaders"])?;
    let format = Format::read(call)?;
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::invalid("Invalid id value"));
    }
    world.mailbox.message(id).map(|message| resource(message, &format)).ok_or_else(Failure::not_found)
}

/// Returns a thread with its messages, oldest first.
pub(super) fn thread(world: &World, call: &Call, id: &str) -> Result<Value, Failure> {
    call.has_only(&["format", "metadataHeaders"])?;
    let format = match Format::read(call)? {
        Format::Raw => return Err(Failure::invalid("Invalid value at 'format' \"raw\"")),
        format => format,
    };
    let messages = world.mailbox.thread(id).ok_or_else(Failure::not_found)?;
    let history = messages.iter().map(|message| message.history).max().unwrap_or_default();
    let messages: Vec<Value> = messages.into_iter().map(|message| resource(message, &format)).collect();
    Ok(json!({ "id": id, "historyId": history.to_string(), "messages": messages }))
}

/// Sends a message that was checked.
pub(super) fn send_bytes(world: &mut World, bytes: &[u8], thread: String, draft: String) -> Result<Outcome, Failure> {
    if mime::recipients(bytes).is_empty() {
        return Err(Failure::invalid("Recipient address required"));
    }
    let sent = world.mailbox.send(bytes, thread, Some(draft), world.now);
    let copy = world.mailbox.message(&sent.id).map(short).unwrap_or_default();
    Ok(Outcome::Sent(Box::new(sent), copy))
}

/// Decodes a new message and checks that its thread exists.
pub(super) fn checked(mailbox: &Mailbox, new: &NewMessage) -> Result<Vec<u8>, Failure> {
    let bytes = new.bytes()?;
    match &new.thread_id {
        Some(thread) if mailbox.thread(thread).is_none() => Err(Failure::not_found()),
        _ => Ok(bytes),
    }
}
