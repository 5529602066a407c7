//! “@bot status” and “@bot cancel”: commands for threads, where Slack allows none.
//!
//! A single word to the bot, so that no sentence is taken for it. While the assistant waits for an answer, “cancel” is
//! about that, and so is “status” without a mention of the bot: both are for the assistant then.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, MessageTs, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::{
    action::Status,
    conversing::Memories,
    store::{ActionFilter, Changes, Error, Seq, Store, ThreadMessage},
};
use serde::{Deserialize, Serialize};

use super::{
    records::{LOOKED_THROUGH, sight_of},
    replies,
};
use crate::approvals::withdraw::withdraw;

/// The number of a thread's actions that are read.
const LOOKED_AT: usize = 20;

/// A word to the bot in a thread that works like a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Here {
    /// The thread.
    pub thread: ThreadId,
    /// The person who wrote it.
    pub by: UserId,
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
    /// The order.
    pub order: Order,
    /// True if the bot was mentioned; false in a direct message.
    pub mentioned: bool,
}

/// The orders that a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Report what is running or waiting.
    Status,
    /// Withdraw the person's own open requests.
    Cancel,
}

/// The outcomes of an order.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The order is answered.
    Answered(Reply),
    /// The order is answered, and something in the thread changed.
    Changed(Reply),
    /// The order is for the assistant.
    Passed,
}

/// Returns the order that a whole message is, if it is one.
pub fn meant(text: &str) -> Option<Order> {
    match text.trim().trim_end_matches(['.', '!', '?']).to_lowercase().as_str() {
        "status" => Some(Order::Status),
        "cancel" => Some(Order::Cancel),
        _ => None,
    }
}

/// Carries an order out.
///
/// # Errors
///
/// If the store does not answer. Repeating it is harmless.
pub async fn obey(
    store: &dyn Store,
    memories: &Memories,
    here: &Here,
    now: Timestamp,
    seq: Seq,
) -> Result<Outcome, Error> {
    let asks = memories.read(store.load(&here.thread).await?).is_some_and(|memory| memory.is_drafting);
    if asks && (here.order == Order::Cancel || !here.mentioned) {
        pass_on(store, here, seq).await?;
        return Ok(Outcome::Passed);
    }
    match here.order {
        Order::Status => status(store, here, now, asks).await.map(Outcome::Answered),
        Order::Cancel => cancel(store, here, now).await,
    }
}

async fn status(store: &dyn Store, here: &Here, now: Timestamp, asks: bool) -> Result<Reply, Error> {
    let filter = ActionFilter { thread: Some(here.thread.clone()), statuses: Vec::new(), limit: LOOKED_AT };
    let records = store.actions(&filter).await?;
    let (live, ended): (Vec<_>, Vec<_>) = records.iter().partition(|record| is_live(record.status));
    let messages = store.dead_letters(LOOKED_THROUGH).await?;
    let mut lines = Vec::new();
    for record in live {
        lines.push(match record.status {
            Status::Pending => replies::waiting(record, sight_of(store, &messages, record, now).await?, now),
            _ => replies::run(record),
        });
    }
    Ok(replies::status_here(lines, asks, ended.first().map(|record| replies::run(record))))
}

async fn cancel(store: &dyn Store, here: &Here, now: Timestamp) -> Result<Outcome, Error> {
    let statuses = vec![Status::Pending, Status::Approved, Status::Intent];
    let filter = ActionFilter { thread: Some(here.thread.clone()), statuses, limit: LOOKED_AT };
    let mut own = store.actions(&filter).await?;
    own.retain(|record| record.requested_by == here.by);
    let running = own.iter().any(|record| record.status != Status::Pending);
    let mut withdrawn = Vec::new();
    for record in own.iter().filter(|record| record.status == Status::Pending) {
        if withdraw(store, record, &here.by, now).await? {
            withdrawn.push(Text::new().bold(record.act()));
        }
    }
    let changed = !withdrawn.is_empty();
    let reply = replies::cancelled_here(withdrawn, running);
    Ok(if changed { Outcome::Changed(reply) } else { Outcome::Answered(reply) })
}

async fn pass_on(store: &dyn Store, here: &Here, seq: Seq) -> Result<(), Error> {
    let mut changes = Changes::new(CommitId::fresh(), here.thread.clone());
    let Here { by, text, ts, .. } = here.clone();
    changes.messages.push(ThreadMessage::Said { by, text, ts, addressed: true, request: None });
    changes.inbox_acks.push(seq);
    store.apply(&changes).await
}

fn is_live(status: Status) -> bool {
    matches!(status, Status::Pending | Status::Approved | Status::Intent | Status::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_alone_is_an_order() {
        assert_eq!(meant(" Status? "), Some(Order::Status));
        assert_eq!(meant("cancel."), Some(Order::Cancel));
        for message in ["cancel Math Hints", "status of Math Hints", "what is the status", "cancelled", ""] {
            assert_eq!(meant(message), None, "{message}");
        }
    }
}
