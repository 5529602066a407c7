//! The shortcuts in the menu of a message.
//!
//! “Ask about this message” opens a window that contains the text of the message. The question is
//! posted in the thread of that message, where everyone can read it, and answered there. “Export
//! this thread” posts the thread's notebook in it. A window is opened immediately, since its
//! trigger expires after three seconds.

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, TeamId, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::store::{Changes, Outbound, Outgoing, Seq, ThreadMessage};
use countersign_slack::{
    blocks,
    interaction::{Interaction, View},
    mrkdwn::{Mrkdwn, cut},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approvals::completing;

/// The callback id of “Ask about this message”, and of its window.
pub const ASK: &str = "ask_about_message";

/// The callback id of “Export this thread”.
pub const EXPORT: &str = "export_thread";

/// The block id of the only field.
const FIELD: &str = "question";

/// The maximum length of a question, in characters.
const MAX_QUESTION_CHARS: usize = 3000;

/// The use of a shortcut on a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortcut {
    /// The thread of the message, or the thread that a reply to it would begin.
    pub thread: ThreadId,
    /// The message's timestamp.
    pub message: MessageTs,
    /// The person.
    pub by: UserId,
    /// The message's text.
    pub text: String,
    /// The id that opens a window, which is valid for three seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    /// The address for answers, which is valid for 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

/// A question about a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The thread in which it is asked.
    pub thread: ThreadId,
    /// The message it is about.
    pub message: MessageTs,
    /// The person.
    pub by: UserId,
    /// The question.
    pub question: String,
    /// The address for an answer if the bot may not write in the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_url: Option<String>,
}

/// Returns the use of a shortcut for the inbox; `None` if it was not used on a message.
pub fn shortcut_of(interaction: &Interaction, text: &str) -> Option<Shortcut> {
    let (channel, message) = (interaction.channel.clone()?, interaction.message_ts.clone()?);
    let root = interaction.thread_ts.clone().unwrap_or_else(|| message.clone());
    Some(Shortcut {
        thread: ThreadId { team: interaction.team.clone(), channel, root },
        message,
        by: interaction.user.clone(),
        text: text.to_owned(),
        trigger_id: interaction.trigger_id.clone(),
        response_url: interaction.response_url.clone(),
    })
}

/// Draws the window for a question.
pub fn window(shortcut: &Shortcut) -> Value {
    let quote = Mrkdwn::new(900).plain("About: ").italic(&cut(&shortcut.text.replace('\n', " "), 280)).finish();
    let metadata = json!([
        shortcut.thread.team,
        shortcut.thread.channel,
        shortcut.thread.root,
        shortcut.message,
        shortcut.response_url,
    ]);
    let mut input =
        json!({ "type": "plain_text_input", "action_id": FIELD, "multiline": true, "max_length": MAX_QUESTION_CHARS });
    let words = cut(shortcut.text.trim(), MAX_QUESTION_CHARS);
    if !words.is_empty() {
        input["initial_value"] = json!(words);
    }
    let question = json!({
        "type": "input", "block_id": FIELD, "label": blocks::plain("What should I look at?", 2000), "element": input,
        "hint": blocks::plain("The message text is filled in; edit it as needed. Everyone in its thread sees your question and my answer.", 2000),
    });
    let about = if shortcut.text.trim().is_empty() { Vec::new() } else { vec![blocks::context(&quote)] };
    json!({
        "type": "modal", "callback_id": ASK, "private_metadata": metadata.to_string(),
        "title": blocks::plain("Ask about this message", 24),
        "submit": blocks::plain("Ask", 24), "close": blocks::plain("Cancel", 24),
        "blocks": about.into_iter().chain([question]).collect::<Vec<_>>(),
    })
}

/// Reads the question asked in the window.
///
/// # Errors
///
/// The error to be shown at the field.
pub fn read_question(view: &View, by: &UserId) -> Result<Question, Value> {
    let wrong = |what: &str| json!({ "response_action": "errors", "errors": { FIELD: what } });
    let question = view.values.get(FIELD).and_then(|values| values.first()).map(|words| words.trim().to_owned());
    let question = question.filter(|words| !words.is_empty()).ok_or_else(|| wrong("Tell me what to look at."))?;
    type Metadata = (TeamId, ChannelId, MessageTs, MessageTs, Option<String>);
    let metadata: Result<Metadata, _> = serde_json::from_str(&view.private_metadata);
    let (team, channel, root, message, response_url) =
        metadata.map_err(|_| wrong("I can't find the message anymore. Use the shortcut again."))?;
    Ok(Question { thread: ThreadId { team, channel, root }, message, by: by.clone(), question, response_url })
}

/// Returns the write that posts the question in the thread and passes it to the assistant.
pub fn question_changes(question: &Question, now: Timestamp, seq: Seq) -> Changes {
    let Question { thread, message, by, question, .. } = question.clone();
    let mut changes = completing(&thread, seq);
    let said = Text::new().person(by.clone()).plain(" asks about this message: ").italic(question.clone());
    changes.outbox.push(posted(said, now));
    changes.messages.push(ThreadMessage::Said { by, text: question, ts: message, addressed: true, request: None });
    changes
}

/// Returns a line for the thread about what a person did outside of it.
pub fn posted(line: Text, now: Timestamp) -> Outgoing {
    let body = Outbound::Reply { reply: Reply::text(line) };
    Outgoing { slot: None, nonce: Nonce::fresh(), progress: false, not_before: now, body }
}

/// Returns the reply if the bot cannot write in the message's channel.
pub fn not_a_member() -> Reply {
    Reply::text("I'm not in this channel, so I can't answer here.")
        .hint("Invite me with “/invite @countersign”, or message me directly.")
}

/// Returns the reply if the window could not be opened.
pub fn window_too_late() -> Reply {
    Reply::text("That took too long, so Slack didn't open the window.").hint("Use the shortcut again.")
}

/// Returns the reply to a submitted question.
pub fn question_received() -> Reply {
    Reply::text("On it. I'll answer in this thread.")
}
