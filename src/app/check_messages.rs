//! Checks the store for messages and inbox entries that could not be delivered or handled.

use std::sync::Arc;

use countersign_config::{Config, StoreKind};
use countersign_conversation::record::undelivered::kind;
use countersign_core::{
    clock::{Clock as _, SystemClock},
    ids::Slot,
};
use countersign_graph::store::{DeadLetter, Undelivered, Waiting};

use super::{dependencies, stdout::describe_error};

/// The maximum number of messages and entries that are counted.
const MAX_COUNTED: usize = 1000;

/// The maximum number of messages and entries that are named.
const MAX_NAMED: usize = 5;

/// Checks that everything was delivered and handled. Otherwise the error says what was not, since when and why.
pub(super) async fn run(config: &Config) -> Result<String, String> {
    if config.store_kind() == StoreKind::Sqlite && !config.store.path.exists() {
        return Ok("none yet".to_owned());
    }
    let store =
        dependencies::store_to_read(config, Arc::new(SystemClock)).await.map_err(|error| describe_error(&error))?;
    let messages = store.dead_letters(MAX_COUNTED).await.map_err(|error| error.to_string())?;
    let waiting =
        store.waiting(Waiting::late_before(SystemClock.now()), MAX_COUNTED).await.map_err(|error| error.to_string())?;
    let waiting = late(&waiting);
    if messages.is_empty() {
        return match waiting {
            None => Ok("all delivered".to_owned()),
            Some(waiting) => Err(waiting),
        };
    }
    let named: Vec<String> = messages.iter().take(MAX_NAMED).map(name).collect();
    let more = match messages.len() - named.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Err(format!(
        "{} not delivered or handled: {}{more}; once the cause is fixed, use /countersign pending in that channel to send \
         a message again{}",
        messages.len(),
        named.join("; "),
        waiting.map(|waiting| format!("; {waiting}")).unwrap_or_default(),
    ))
}

/// Describes the messages that are late, such as `2 not delivered yet and being retried, the oldest since 2026-01-02 10:00
/// (card:… in C1/1700000000.000100, 12 tries)`.
fn late(waiting: &[Waiting]) -> Option<String> {
    let Waiting { thread, slot, since, attempts } = waiting.first()?;
    let what = slot.as_ref().map_or("a message", Slot::as_str);
    let count = if waiting.len() < MAX_COUNTED { waiting.len().to_string() } else { format!("at least {MAX_COUNTED}") };
    Some(format!(
        "{count} not delivered yet and being retried, the oldest since {since} ({what} in {}/{}, {attempts} tries); the bot's log \
         says why",
        thread.channel, thread.root,
    ))
}

/// Describes a message or entry, such as `card in C1/1700000000.000100 since 2026-01-02 10:00 (invalid_blocks)`.
fn name(message: &DeadLetter) -> String {
    let DeadLetter { thread, at, reason, what, .. } = message;
    match (what, thread) {
        (Undelivered::Message(outgoing), Some(thread)) => {
            format!("{} in {}/{} since {at} ({reason})", kind(&outgoing.body), thread.channel, thread.root)
        }
        (Undelivered::Inbox(entry), _) => {
            format!("{} since {at} ({reason})", entry["kind"].as_str().unwrap_or("an unreadable entry"))
        }
        (Undelivered::Message(outgoing), None) => format!("{} since {at} ({reason})", kind(&outgoing.body)),
    }
}
