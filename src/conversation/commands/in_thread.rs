//! “@bot status” and “@bot cancel”: commands in threads, where Slack does not support slash
//! commands.
//!
//! Such a command is a message that consists only of this word, so that no other message is
//! mistaken for one. While the assistant waits for an answer, “cancel” refers to its question, as
//! does “status” without a mention of the bot. Both are then passed to the assistant.

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
    records::{MAX_DEAD_LETTERS, visibility_of},
    replies,
};
use crate::approvals::withdraw::withdraw;

/// The maximum number of a thread's actions that are read.
const MAX_ACTIONS: usize = 20;

/// A command typed in a thread, as stored in the inbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadCommandRequest {
    /// The thread.
    pub thread: ThreadId,
    /// The person who wrote it.
    pub by: UserId,
    /// The exact text.
    pub text: String,
    /// Slack's timestamp of the message.
    pub ts: MessageTs,
    /// The command.
    #[serde(rename = "order")]
    pub command: ThreadCommand,
    /// True if the bot was mentioned; false in a direct message.
    pub mentioned: bool,
}

/// The commands that can be typed in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadCommand {
    /// Report what is running or waiting.
    Status,
    /// Withdraw the person's own open requests.
    Cancel,
}

/// The result of a command in a thread.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The command is answered.
    Answered(Reply),
    /// The command is answered, and the thread has changed.
    Changed(Reply),
    /// The message is for the assistant.
    PassedOn,
}

impl ThreadCommand {
    /// Returns the command if the message consists of it and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().trim_end_matches(['.', '!', '?']).to_lowercase().as_str() {
            "status" => Some(Self::Status),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// Executes a command.
///
/// # Errors
///
/// If the store does not answer. The call can be repeated.
pub async fn execute(
    store: &dyn Store,
    memories: &Memories,
    request: &ThreadCommandRequest,
    now: Timestamp,
    seq: Seq,
) -> Result<Outcome, Error> {
    let memory = memories.read(store.load(&request.thread).await?).unwrap_or_default();
    let is_asking = memory.is_drafting;
    if is_asking && (request.command == ThreadCommand::Cancel || !request.mentioned) {
        pass_on(store, request, seq).await?;
        return Ok(Outcome::PassedOn);
    }
    match request.command {
        ThreadCommand::Status => {
            Ok(Outcome::Answered(status(store, request, now, is_asking, &memory.plan_lines).await?))
        }
        ThreadCommand::Cancel => cancel(store, request, now).await,
    }
}

async fn status(
    store: &dyn Store,
    request: &ThreadCommandRequest,
    now: Timestamp,
    is_asking: bool,
    plan: &[String],
) -> Result<Reply, Error> {
    let filter = ActionFilter { thread: Some(request.thread.clone()), statuses: Vec::new(), limit: MAX_ACTIONS };
    let records = store.actions(&filter).await?;
    let (open, ended): (Vec<_>, Vec<_>) = records.iter().partition(|record| is_open(record.status));
    let messages = store.dead_letters(MAX_DEAD_LETTERS).await?;
    let mut lines = Vec::new();
    for record in open {
        lines.push(match record.status {
            Status::Pending => replies::waiting(record, visibility_of(store, &messages, record, now).await?, now),
            _ => replies::run(record),
        });
    }
    let reply = match (lines.as_slice(), is_asking, plan) {
        ([], false, [_, ..]) => Reply::default(),
        _ => replies::thread_status(lines, is_asking, ended.first().map(|record| replies::run(record))),
    };
    Ok(replies::with_plan(reply, plan))
}

async fn cancel(store: &dyn Store, request: &ThreadCommandRequest, now: Timestamp) -> Result<Outcome, Error> {
    let statuses = vec![Status::Pending, Status::Approved, Status::Intent];
    let filter = ActionFilter { thread: Some(request.thread.clone()), statuses, limit: MAX_ACTIONS };
    let mut own = store.actions(&filter).await?;
    own.retain(|record| record.requested_by == request.by);
    let running = own.iter().any(|record| record.status != Status::Pending);
    let mut withdrawn = Vec::new();
    for record in own.iter().filter(|record| record.status == Status::Pending) {
        if withdraw(store, record, &request.by, now).await? {
            withdrawn.push(Text::new().bold(record.act()));
        }
    }
    let changed = !withdrawn.is_empty();
    let reply = replies::withdrawn_in_thread(withdrawn, running);
    Ok(if changed { Outcome::Changed(reply) } else { Outcome::Answered(reply) })
}

async fn pass_on(store: &dyn Store, request: &ThreadCommandRequest, seq: Seq) -> Result<(), Error> {
    let mut changes = Changes::new(CommitId::fresh(), request.thread.clone());
    let ThreadCommandRequest { by, text, ts, .. } = request.clone();
    changes.messages.push(ThreadMessage::Said { by, text, ts, addressed: true, request: None });
    changes.inbox_acks.push(seq);
    store.apply(&changes).await
}

fn is_open(status: Status) -> bool {
    matches!(status, Status::Pending | Status::Approved | Status::Intent | Status::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_alone_is_a_command() {
        assert_eq!(ThreadCommand::parse(" Status? "), Some(ThreadCommand::Status));
        assert_eq!(ThreadCommand::parse("cancel."), Some(ThreadCommand::Cancel));
        for message in ["cancel Math Hints", "status of Math Hints", "what is the status", "cancelled", ""] {
            assert_eq!(ThreadCommand::parse(message), None, "{message}");
        }
    }
}
