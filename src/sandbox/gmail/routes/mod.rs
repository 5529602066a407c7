//! The methods of the API: each checks its request and works on the [`World`].

mod drafts;
mod history;
mod labels;
mod messages;

use serde_json::{Value, json};

use super::{failure::Failure, letter::SentMail, mailbox::Mailbox, pubsub::PubSub};
use crate::{call::Call, google::Holder};

/// The scope for everything that is done with the mailbox.
const GMAIL_SCOPE: &str = "https://www.googleapis.com/auth/gmail.modify";
/// The scope for Pub/Sub.
const PUBSUB_SCOPE: &str = "https://www.googleapis.com/auth/pubsub";
/// The path under which the mailbox is.
const MAILBOX: &str = "/gmail/v1/users/";

/// Everything that the stand-in stores.
#[derive(Debug)]
pub(crate) struct World {
    /// The mailbox.
    pub(crate) mailbox: Mailbox,
    /// The subscription.
    pub(crate) pubsub: PubSub,
    /// The current time, in milliseconds since 1970.
    pub(crate) now: i64,
    /// The maximum number of items on a page of a list.
    pub(crate) page_size: usize,
    /// Every mail that was sent so far, oldest first.
    pub(crate) sent: Vec<SentMail>,
    /// The newest change of the mailbox that was published.
    pub(crate) published: u64,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Status 200 with this body.
    Json(Value),
    /// Status 204.
    Nothing,
    /// A mail was sent; status 200 with this body.
    Sent(Box<SentMail>, Value),
    /// There is nothing to answer yet.
    Wait,
}

/// Handles a request of a caller with these rights.
pub(crate) fn handle(world: &mut World, call: &Call, holder: &Holder) -> Result<Outcome, Failure> {
    if let Some(rest) = call.path.strip_prefix("/v1/") {
        return on_pubsub(world, call, holder, rest);
    }
    let rest = call.path.strip_prefix(MAILBOX).ok_or_else(Failure::not_found)?;
    if !holder.may(GMAIL_SCOPE) {
        return Err(Failure::scope());
    }
    let segments: Vec<&str> = rest.split('/').collect();
    let (user, method) = segments.split_first().ok_or_else(Failure::not_found)?;
    let Some(person) = &holder.person else { return Err(Failure::precondition()) };
    if *person != world.mailbox.address || *user != "me" && *user != person {
        return Err(Failure::denied(user));
    }
    let json = match (call.method.as_str(), method) {
        ("GET", ["profile"]) => profile(world, call)?,
        ("GET", ["messages"]) => messages::list(world, call)?,
        ("GET", ["messages", id]) => messages::get(world, call, id)?,
        ("POST", ["messages", id, "modify"]) => labels::modify(world, call, id)?,
        ("GET", ["threads", id]) => messages::thread(world, call, id)?,
        ("GET", ["drafts"]) => drafts::list(world, call)?,
        ("POST", ["drafts"]) => drafts::create(world, call)?,
        ("POST", ["drafts", "send"]) => return drafts::send(world, call),
        ("PUT", ["drafts", id]) => drafts::update(world, call, id)?,
        ("DELETE", ["drafts", id]) => {
            call.has_only(&[])?;
            call.has_no_body()?;
            world.mailbox.delete_draft(id).ok_or_else(Failure::not_found)?;
            return Ok(Outcome::Nothing);
        }
        ("GET", ["labels"]) => labels::list(world, call)?,
        ("POST", ["labels"]) => labels::create(world, call)?,
        ("GET", ["history"]) => history::list(world, call)?,
        ("POST", ["watch"]) => world.pubsub.watch(call, world.mailbox.newest_history, world.now)?,
        _ => return Err(Failure::not_found()),
    };
    Ok(Outcome::Json(json))
}

fn on_pubsub(world: &mut World, call: &Call, holder: &Holder, rest: &str) -> Result<Outcome, Failure> {
    if !holder.may(PUBSUB_SCOPE) {
        return Err(Failure::scope());
    }
    let (name, method) = rest.rsplit_once(':').ok_or_else(Failure::not_found)?;
    if call.method != "POST" || name != world.pubsub.subscription {
        return Err(Failure::not_found());
    }
    call.has_only(&[])?;
    match method {
        "pull" => {
            let pulled = world.pubsub.pull(call, &world.mailbox.address, world.now)?;
            Ok(pulled.map_or(Outcome::Wait, Outcome::Json))
        }
        "acknowledge" => world.pubsub.acknowledge(call).map(Outcome::Json),
        _ => Err(Failure::not_found()),
    }
}

fn profile(world: &World, call: &Call) -> Result<Value, Failure> {
    call.has_only(&[])?;
    Ok(json!({
        "emailAddress": world.mailbox.address,
        "messagesTotal": world.mailbox.len(),
        "threadsTotal": world.mailbox.thread_count(),
        "historyId": world.mailbox.newest_history.to_string(),
    }))
}

/// Returns one page of items, and the token of the next. `pageToken` is the number of items before the page.
fn page<T>(world: &World, call: &Call, items: impl Iterator<Item = T>) -> Result<(Vec<T>, Option<String>), Failure> {
    let size = call.number("maxResults", 100, 500)?.min(world.page_size.max(1));
    let skipped = match call.parameter("pageToken") {
        None => 0,
        Some(token) => token
            .strip_prefix("after-")
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Failure::invalid("Invalid pageToken"))?,
    };
    let mut items: Vec<T> = items.skip(skipped).take(size + 1).collect();
    let has_more = items.len() > size;
    items.truncate(size);
    Ok((items, has_more.then(|| format!("after-{}", skipped + size))))
}

/// Adds the token of the next page to an answer.
fn with_page(mut answer: Value, next: Option<String>) -> Value {
    if let Some(next) = next {
        answer["nextPageToken"] = json!(next);
    }
    answer
}
