//! A click on a choice below a reply. It becomes a message of the person in the thread.
//!
//! Slack shows nobody who pressed a button, so a line in the thread says what the person chose.

use countersign_core::{
    clock::Timestamp,
    ids::{CommitId, MessageTs, Nonce, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::store::{Changes, Outbound, Outgoing, Seq, ThreadMessage};
use serde::{Deserialize, Serialize};

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
}

impl Choice {
    /// Returns the write that posts the line, and passes the message to the thread.
    pub fn changes(&self, now: Timestamp, seq: Seq) -> Changes {
        let Self { thread, message, by, label, says } = self.clone();
        let mut changes = Changes::new(CommitId::fresh(), thread);
        let line = Text::new().person(by.clone()).plain(" chose ").bold(label).plain(".");
        changes.outbox.push(Outgoing {
            slot: None,
            nonce: Nonce::fresh(),
            progress: false,
            not_before: now,
            body: Outbound::Reply { reply: Reply::text(line) },
        });
        changes.messages.push(ThreadMessage::Said { by, text: says, ts: message, addressed: true, request: None });
        changes.inbox_acks.push(seq);
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_click_is_a_line_and_a_message() {
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.0".into() };
        let choice = Choice {
            thread,
            message: "1.1".into(),
            by: "U1".into(),
            label: "mathstream".to_owned(),
            says: "in the context mathstream".to_owned(),
        };
        let changes = choice.changes(Timestamp(1), 3);
        let [Outgoing { body: Outbound::Reply { reply }, .. }] = changes.outbox.as_slice() else { panic!() };
        assert_eq!(reply.words(), "@U1 chose mathstream.");
        let [ThreadMessage::Said { text, addressed: true, .. }] = changes.messages.as_slice() else { panic!() };
        assert_eq!(text, "in the context mathstream");
        assert_eq!(changes.inbox_acks, [3]);
    }
}
