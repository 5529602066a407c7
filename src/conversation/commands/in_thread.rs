//! “@bot status” and “@bot cancel”: commands in threads, where Slack does not support slash
//! commands.
//!
//! Such a command is a message that consists only of this word, so that no other message is
//! mistaken for one. While the assistant waits for an answer, “cancel” refers to its question, as
//! does “status” without a mention of the bot. Both are then passed to the assistant.
//!
//! In a thread with a plan, questions such as “how far are you?” are answered as “status” is; elsewhere they are passed
//! to the assistant, as is a “status” that does not address the bot.

use countersign_core::{
    clock::Timestamp,
    ids::{MessageTs, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::{
    action::Status,
    conversing::{Memories, Memory},
    store::{ActionFilter, Error, Seq, Store},
};
use serde::{Deserialize, Serialize};

use super::{
    records::{MAX_DEAD_LETTERS, visibility_of},
    replies,
};
use crate::approvals::withdraw::{leave_to_buttons, pass_on, withdraw};

/// The maximum number of a thread's actions that are read.
pub(super) const MAX_ACTIONS: usize = 20;

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
    pub command: ThreadCommand,
    /// True if the bot was mentioned; false in a direct message.
    pub mentioned: bool,
    /// True if the message does not address the bot: it was written in a channel without a mention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overheard: bool,
}

impl ThreadCommandRequest {
    /// Returns the first message of the thread; `None` if the command itself is outside of a thread.
    pub fn root(&self) -> Option<&MessageTs> {
        Some(&self.thread.root).filter(|root| **root != self.ts)
    }
}

/// The commands that can be typed in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadCommand {
    /// Report what is running or waiting.
    Status,
    /// Withdraw the person's own open requests.
    Cancel,
    /// Report the progress of the plan, if there is one.
    Progress,
    /// List the cards that wait for the person.
    Waiting,
    /// Name the people who may approve the open card, or a kind of change.
    Approvers,
    /// Leave out a step of the plan, which has begun.
    Step,
}

/// Questions about the cards that wait for the person, here and elsewhere.
const WAITING: &[&str] = &[
    "what is waiting for me",
    "what's waiting for me",
    "whats waiting for me",
    "what waits for me",
    "is anything waiting for me",
    "is something waiting for me",
    "anything waiting for me",
    "anything for me",
    "anything to approve",
    "anything for me to approve",
    "what do i have to approve",
    "what do i need to approve",
    "what should i approve",
    "what can i approve",
    "what needs my approval",
    "what is waiting for my approval",
    "what's waiting for my approval",
    "which cards are waiting for me",
    "which cards wait for me",
    "my pending approvals",
    "my approvals",
    "show me what is waiting",
    "show me what's waiting",
    "what is on my plate",
    "what's on my plate",
];

/// The subject of a question about the people who may approve.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Approvable {
    /// The open cards of the thread, or any change if none is open.
    ThisThread,
    /// A kind of change, in lower case: `deletes`.
    Kind(String),
    /// The open cards of the thread, by the person who asks.
    ByAsker,
}

/// The beginnings of questions about the asker's own right to approve something.
const BY_ASKER: &[&str] = &[
    "why can't i approve ",
    "why cant i approve ",
    "why can i not approve ",
    "why may i not approve ",
    "why am i not allowed to approve ",
    "why can't i do that ",
    "can i approve ",
    "can't i approve ",
    "could i approve ",
    "may i approve ",
    "am i allowed to approve ",
];

/// The beginnings of questions about the people who may approve something.
const APPROVERS: &[&str] = &[
    "who may approve ",
    "who can approve ",
    "who is allowed to approve ",
    "who's allowed to approve ",
    "who should approve ",
    "who must approve ",
    "who has to approve ",
    "who needs to approve ",
    "who approves ",
    "who signs off ",
    "who signs off on ",
    "who may decide about ",
    "who may decide on ",
    "who decides about ",
    "who decides on ",
];

/// Questions about the progress of a plan.
const PROGRESS: &[&str] = &[
    "how far are you",
    "how far are we",
    "how far is it",
    "how far along are you",
    "how far along are we",
    "how far along is it",
    "how far did you get",
    "how far have you got",
    "where are we",
    "where are you",
    "where are we now",
    "where do we stand",
    "where does it stand",
    "is anything running",
    "is something running",
    "what is running",
    "what's running",
    "what are you doing",
    "what is the status",
    "what's the status",
    "show the status",
    "show status",
    "status please",
    "status of the plan",
    "plan status",
    "how is it going",
    "how is the plan going",
    "any progress",
    "progress",
];

/// The messages that ask for the notebook of a thread.
const NOTEBOOK: &[&str] =
    &["notebook", "lab notebook", "the notebook", "export", "export this thread", "export the thread"];

/// Returns true if the whole message asks for the notebook of its thread.
pub fn asks_for_notebook(text: &str) -> bool {
    NOTEBOOK.contains(&text.trim().trim_end_matches(['.', '!']).to_lowercase().as_str())
}

/// The result of a command in a thread.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The command is answered.
    Answered(Reply),
    /// The command is answered, and the thread has changed.
    Changed(Reply),
    /// The message is not for the bot.
    Ignored,
    /// The message is for the assistant.
    PassedOn,
    /// The command is a question about more than this thread.
    Question,
}

impl ThreadCommand {
    /// Returns the command if the message consists of it and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let said = text.trim().trim_end_matches(['.', '!', '?', ' ']).to_lowercase().replace('’', "'");
        match said.as_str() {
            "status" => Some(Self::Status),
            "cancel" => Some(Self::Cancel),
            said if PROGRESS.contains(&said) => Some(Self::Progress),
            said if WAITING.contains(&said) => Some(Self::Waiting),
            said if leaves_out_step(said) => Some(Self::Step),
            _ => approvable(text).map(|_| Self::Approvers),
        }
    }

    /// Returns true if the command is a question that can be asked outside of a thread as well.
    pub fn is_question(self) -> bool {
        matches!(self, Self::Waiting | Self::Approvers)
    }
}

/// Returns true for words such as “drop step 2” and “skip the last step”.
fn leaves_out_step(said: &str) -> bool {
    const VERBS: &[&str] = &["drop", "skip", "remove", "omit", "without", "cancel", "delete", "leave out", "forget"];
    const NUMBERS: &[&str] = &[
        "one", "two", "three", "four", "five", "six", "seven", "eight", "first", "second", "third", "fourth", "fifth",
        "sixth", "seventh", "eighth", "next", "last",
    ];
    let said = said.strip_prefix("please ").unwrap_or(said);
    let Some(rest) = VERBS.iter().find_map(|verb| said.strip_prefix(verb)?.strip_prefix(' ')) else { return false };
    let rest = rest.strip_prefix("the ").unwrap_or(rest).trim_end_matches(" please");
    let number = match (rest.strip_prefix("step "), rest.strip_suffix(" step")) {
        (Some(number), _) | (None, Some(number)) => number,
        (None, None) => return false,
    };
    let digits = number.trim_start_matches('#').trim_end_matches(|c: char| "stndrh".contains(c));
    NUMBERS.contains(&number) || (!digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Returns the subject of a question about approvers; `None` if the text is no such question.
pub(super) fn approvable(text: &str) -> Option<Approvable> {
    const THIS: &[&str] =
        &["it", "this", "that", "these", "those", "them", "the", "my", "here", "in", "thread", "channel"];
    const MYSELF: &[&str] = &["myself", "own", "alone", "too", "as", "well", "on"];
    const THING: &[&str] = &["card", "cards", "one", "ones", "request", "requests", "change", "changes", "now"];
    let said = text.trim().trim_end_matches(['.', '!', '?', ' ']).to_lowercase().replace('’', "'");
    let said = format!("{said} ");
    let is_this = |word: &str| word.is_empty() || THIS.contains(&word) || THING.contains(&word);
    let by_asker = BY_ASKER.iter().find_map(|start| said.strip_prefix(start));
    if by_asker.is_some_and(|rest| rest.split(' ').all(|word| is_this(word) || MYSELF.contains(&word))) {
        return Some(Approvable::ByAsker);
    }
    let kind = APPROVERS.iter().find_map(|start| said.strip_prefix(start))?.trim();
    Some(match kind.split(' ').all(is_this) {
        true => Approvable::ThisThread,
        false => Approvable::Kind(kind.to_owned()),
    })
}

/// Executes a command.
///
/// # Errors
///
/// If the store isn't answering. The call can be repeated.
pub async fn execute(
    store: &dyn Store,
    memories: &Memories,
    request: &ThreadCommandRequest,
    now: Timestamp,
    seq: Seq,
) -> Result<Outcome, Error> {
    let saved = store.load(&request.thread).await?;
    if request.overheard && saved.is_none() {
        return Ok(Outcome::Ignored); // people talk in a thread without the bot
    }
    let memory = memories.read(saved).unwrap_or_default();
    let is_asking = memory.is_drafting;
    let is_for_assistant = match request.command {
        // The question was asked last, so “cancel” answers it.
        ThreadCommand::Cancel => is_asking,
        ThreadCommand::Status if is_asking && !request.mentioned => true,
        ThreadCommand::Status if !request.overheard => false,
        ThreadCommand::Status | ThreadCommand::Progress => {
            // Words between people are answered only to the person for whom the thread works.
            let is_talk = request.overheard && memory.works_for.as_ref() != Some(&request.by);
            is_talk || !(memory.has_plan() || shows_plan(store, request).await?)
        }
        // On its card, a plan can be changed. Once it has begun, a step is still no name of anything else.
        ThreadCommand::Step => !memory.has_plan() || shows_plan(store, request).await?,
        ThreadCommand::Waiting | ThreadCommand::Approvers => {
            request.overheard && memory.works_for.as_ref() != Some(&request.by)
        }
    };
    if is_for_assistant {
        if request.command == ThreadCommand::Cancel {
            leave_to_buttons(store, &request.thread).await?;
        }
        let ThreadCommandRequest { thread, by, text, ts, overheard, .. } = request;
        pass_on(store, thread, (by, text, ts), !overheard, seq).await?;
        return Ok(Outcome::PassedOn);
    }
    match request.command {
        ThreadCommand::Status | ThreadCommand::Progress => {
            Ok(Outcome::Answered(status(store, request, now, is_asking, &memory).await?))
        }
        ThreadCommand::Cancel => cancel(store, request, now).await,
        ThreadCommand::Waiting | ThreadCommand::Approvers => Ok(Outcome::Question),
        ThreadCommand::Step => {
            let reply = replies::plan_has_begun();
            Ok(Outcome::Answered(replies::with_plan(reply, memory.plan_place.as_deref(), &memory.plan_lines)))
        }
    }
}

/// Returns true if the card of a plan is open in the thread.
async fn shows_plan(store: &dyn Store, request: &ThreadCommandRequest) -> Result<bool, Error> {
    let filter = ActionFilter::of(&request.thread, &[Status::Pending], MAX_ACTIONS);
    Ok(store.actions(&filter).await?.iter().any(|record| record.scope.is_of_plan()))
}

async fn status(
    store: &dyn Store,
    request: &ThreadCommandRequest,
    now: Timestamp,
    is_asking: bool,
    memory: &Memory,
) -> Result<Reply, Error> {
    let filter = ActionFilter::of(&request.thread, &[], MAX_ACTIONS);
    let records = store.actions(&filter).await?;
    let (open, ended): (Vec<_>, Vec<_>) = records.iter().partition(|record| is_open(record.status));
    let messages = store.dead_letters(MAX_DEAD_LETTERS).await?;
    let mut lines = Vec::new();
    for record in open {
        lines.push(match record.status {
            Status::Pending => replies::waiting(record, visibility_of(store, &messages, record, now).await?, now),
            _ => replies::in_progress(record),
        });
    }
    let reply = match (lines.as_slice(), is_asking) {
        ([], false) if memory.has_plan() => Reply::default(),
        _ => replies::thread_status(lines, is_asking, ended.first().map(|record| replies::run(record))),
    };
    Ok(replies::with_plan(reply, memory.plan_place.as_deref(), &memory.plan_lines))
}

async fn cancel(store: &dyn Store, request: &ThreadCommandRequest, now: Timestamp) -> Result<Outcome, Error> {
    let statuses = [Status::Pending, Status::Approved, Status::Intent];
    let filter = ActionFilter::of(&request.thread, &statuses, MAX_ACTIONS);
    let mut own = store.actions(&filter).await?;
    own.retain(|record| record.requested_by == request.by);
    let running = own.iter().any(|record| record.status != Status::Pending);
    let mut withdrawn = Vec::new();
    for record in own.iter().filter(|record| record.status == Status::Pending) {
        if withdraw(store, record, &request.by, now, |_| true).await? {
            withdrawn.push(Text::new().bold(record.act()));
        }
    }
    leave_to_buttons(store, &request.thread).await?;
    let changed = !withdrawn.is_empty();
    let reply = replies::withdrawn_in_thread(withdrawn, running);
    Ok(if changed { Outcome::Changed(reply) } else { Outcome::Answered(reply) })
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
        for said in ["how far are you?", "Where are we?", "is anything running?", "what’s the status?"] {
            assert_eq!(ThreadCommand::parse(said), Some(ThreadCommand::Progress), "{said}");
        }
        assert_eq!(ThreadCommand::parse("What's waiting for me?"), Some(ThreadCommand::Waiting));
        assert_eq!(ThreadCommand::parse("who may approve deletes?"), Some(ThreadCommand::Approvers));
        for said in ["who can approve this?", "Who approves it?", "who can approve?", "who decides on this card"] {
            assert_eq!(approvable(said), Some(Approvable::ThisThread), "{said}");
        }
        for said in ["drop step 2", "Skip the second step.", "leave out the last step", "without step #3"] {
            assert_eq!(ThreadCommand::parse(said), Some(ThreadCommand::Step), "{said}");
        }
        assert_eq!(ThreadCommand::parse("drop step by step hints"), None, "that is a name");
        assert_eq!(approvable("who can approve deletes?"), Some(Approvable::Kind("deletes".to_owned())));
        assert_eq!(approvable("who approved this?"), None, "that is about the past");
        for said in ["why can't i approve this myself?", "Why can’t I approve it?", "can I approve my own request?"] {
            assert_eq!(approvable(said), Some(Approvable::ByAsker), "{said}");
        }
        assert_eq!(approvable("can I approve Math Hints?"), None);
        for message in ["cancel Math Hints", "status of Math Hints", "how far is Math Hints", "cancelled", ""] {
            assert_eq!(ThreadCommand::parse(message), None, "{message}");
        }
    }
}
