//! A click on a choice below a reply. It becomes a message of the person in the thread.
//!
//! Slack shows nobody who pressed a button, so a line in the thread says what the person chose. If the buttons were the
//! answers to a question, they are taken away, so that only open questions have buttons. For an answer in words, the
//! engine does so ([`countersign_graph::engine::buttons`]).

use countersign_core::{
    clock::Timestamp,
    ids::{MessageTs, ThreadId, UserId},
    reply::{Text, is_question},
};
use countersign_graph::store::{Changes, Seq, ThreadMessage};
use countersign_slack::blocks::{MAX_FALLBACK_CHARS, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{approvals::completing, surfaces::shortcuts::posted};

/// A click on a choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The thread with the button.
    pub thread: ThreadId,
    /// The message with the button.
    pub message: MessageTs,
    /// The person who clicked.
    pub by: UserId,
    /// The words on the button.
    pub label: String,
    /// The message that the click stands for.
    pub says: String,
    /// The message with the button after the click, if the buttons were the answers to a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<AnsweredQuestion>,
}

/// A question that was answered: its message without the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    /// The remaining blocks of the message.
    pub blocks: Vec<Value>,
}

impl AnsweredQuestion {
    /// Returns the message with these blocks without `answers`, the block with the buttons; `None` if the message asks
    /// nothing. Buttons below an answer suggest what to do next, and remain.
    pub fn of(blocks: &[Value], answers: &str) -> Option<Self> {
        let asks = |block: &Value| block["text"]["text"].as_str().is_some_and(is_question);
        let (removed, blocks): (Vec<_>, Vec<_>) =
            blocks.iter().cloned().partition(|block| block["block_id"] == answers);
        (blocks.iter().any(asks) && !removed.is_empty()).then_some(Self { blocks })
    }

    /// Returns the message in the form in which it is sent.
    pub fn message(&self) -> Message {
        let texts = self.blocks.iter().filter_map(|block| block["text"]["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n").chars().take(MAX_FALLBACK_CHARS).collect();
        Message { text, blocks: self.blocks.clone() }
    }
}

impl Choice {
    /// Returns the write that posts the line, and passes the message to the thread.
    pub fn changes(&self, now: Timestamp, seq: Seq) -> Changes {
        let Self { thread, message, by, label, says, answered: _ } = self.clone();
        let mut changes = completing(&thread, seq);
        let line = Text::new().person(by.clone()).plain(" chose ").bold(label).plain(".");
        changes.outbox.push(posted(line, now));
        changes.messages.push(ThreadMessage::Said { by, text: says, ts: message, addressed: true, request: None });
        changes
    }
}

#[cfg(test)]
mod tests {
    use countersign_graph::store::{Outbound, Outgoing};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_answers_to_a_question_are_taken_away() {
        let text = |words: &str| json!({ "type": "section", "text": { "type": "mrkdwn", "text": words } });
        let buttons = |id: &str| json!({ "type": "actions", "block_id": id, "elements": [] });
        let question = [text("Which context is it for?"), buttons("say:1"), buttons("rate")];
        let answered = AnsweredQuestion::of(&question, "say:1").unwrap();
        assert_eq!(answered.blocks, [text("Which context is it for?"), buttons("rate")]);
        assert_eq!(answered.message().text, "Which context is it for?");
        assert!(AnsweredQuestion::of(&[text("Where? I need a site."), buttons("say:1")], "say:1").is_some());
        for answer in ["*Math Hints* is running.", "Started *Math Hints*. What next?"] {
            assert_eq!(AnsweredQuestion::of(&[text(answer), buttons("say:1")], "say:1"), None, "these are suggestions");
        }
        assert_eq!(AnsweredQuestion::of(&question, "other"), None);
    }

    #[test]
    fn a_click_is_a_line_and_a_message() {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() };
        let choice = Choice {
            thread,
            message: "1.1".into(),
            by: "U1".into(),
            label: "mathstream".to_owned(),
            says: "in the context mathstream".to_owned(),
            answered: None,
        };
        let changes = choice.changes(Timestamp(1), 3);
        let [Outgoing { body: Outbound::Reply { reply }, .. }] = changes.outbox.as_slice() else { panic!() };
        assert_eq!(reply.words(), "@U1 chose mathstream.");
        let [ThreadMessage::Said { text, addressed: true, .. }] = changes.messages.as_slice() else { panic!() };
        assert_eq!(text, "in the context mathstream");
        assert_eq!(changes.inbox_acks, [3]);
    }
}
