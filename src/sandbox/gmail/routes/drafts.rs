//! Drafts.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{failure::Failure, mailbox::Draft, strict::NewMessage},
    Outcome, World,
    messages::{checked, send_bytes, short},
    page, with_page,
};
use crate::call::Call;

/// The body of a request that creates or replaces a draft.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDraft {
    message: NewMessage,
}

/// The body of a request that sends a draft.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendDraft {
    id: String,
}

/// Lists drafts, newest first.
pub(super) fn list(world: &World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&["maxResults", "pageToken"])?;
    let mailbox = &world.mailbox;
    let found = mailbox.drafts.iter().rev().filter_map(|draft| Some((draft, mailbox.message(&draft.message)?)));
    let (drafts, next) = page(world, call, found)?;
    if drafts.is_empty() {
        return Ok(json!({ "resultSizeEstimate": 0 }));
    }
    let listed: Vec<_> = drafts
        .iter()
        .map(|(draft, message)| json!({ "id": draft.id, "message": { "id": message.id, "threadId": message.thread } }))
        .collect();
    Ok(with_page(json!({ "drafts": listed, "resultSizeEstimate": listed.len() }), next))
}

/// Creates a draft.
pub(super) fn create(world: &mut World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&[])?;
    let NewDraft { message } = call.body()?;
    let bytes = checked(&world.mailbox, &message)?;
    let draft = world.mailbox.create_draft(bytes, message.thread_id.as_deref(), world.now);
    Ok(answer(world, &draft))
}

/// Replaces the message of a draft.
pub(super) fn update(world: &mut World, call: &Call, id: &str) -> Result<Value, Failure> {
    call.has_only(&[])?;
    let NewDraft { message } = call.body()?;
    let bytes = checked(&world.mailbox, &message)?;
    let updated = world.mailbox.update_draft(id, bytes, message.thread_id.as_deref(), world.now);
    updated.map(|draft| answer(world, &draft)).ok_or_else(Failure::not_found)
}

/// Sends a draft, which ceases to exist.
pub(super) fn send(world: &mut World, call: &Call) -> Result<Outcome, Failure> {
    call.has_only(&[])?;
    let SendDraft { id } = call.body()?;
    let stored = world.mailbox.drafts.iter().find(|draft| draft.id == id).ok_or_else(Failure::not_found)?;
    let stored = world.mailbox.message(&stored.message).cloned().ok_or_else(Failure::not_found)?;
    let outcome = send_bytes(world, &stored.bytes, stored.thread, id.clone())?;
    world.mailbox.delete_draft(&id);
    Ok(outcome)
}

fn answer(world: &World, draft: &Draft) -> Value {
    json!({ "id": draft.id, "message": world.mailbox.message(&draft.message).map(short) })
}
