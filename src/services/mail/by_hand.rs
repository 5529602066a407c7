//! Answers that people send with a mail program, past the bot.

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    address::Address,
    mail::{Automatic, Mail, MailThreadId, RawMail},
    read::has_header,
    reply::KEY_HEADER,
};

/// The facts about a mail by which an answer to it is found among sent messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The conversation of the mail, if the server has conversations.
    pub thread: Option<MailThreadId>,
    /// The `Message-ID` of the mail, without angle brackets.
    pub message_id: Option<String>,
    /// The addresses to which an answer goes: the sender's, and the one that the sender would like answers to go to.
    pub addresses: Vec<String>,
    /// The time at which the server received the mail.
    pub received_at: Timestamp,
}

/// An answer that a person sent with a mail program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerByHand {
    /// The sender by the header `From`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Address>,
    /// The time at which it was sent.
    pub at: Timestamp,
}

impl Incoming {
    /// Returns the facts about a mail; `None` without a sender.
    pub fn of(mail: &Mail) -> Option<Self> {
        let sender = mail.sender()?;
        Some(Self {
            thread: mail.thread.clone(),
            message_id: mail.message_id.clone(),
            addresses: [Some(sender), mail.reply_to.as_ref()]
                .into_iter()
                .flatten()
                .map(|one| one.address.clone())
                .collect(),
            received_at: mail.received_at,
        })
    }

    /// Returns the answer if this sent message is one, and neither the bot nor another program wrote it. A forwarded
    /// copy is not an answer, as it does not go to the sender.
    pub(crate) fn answered_by(&self, sent: &RawMail) -> Option<AnswerByHand> {
        if has_header(&sent.bytes, KEY_HEADER) {
            return None;
        }
        let message = Mail::read(sent);
        let is_automatic = matches!(
            message.automatic,
            Some(Automatic::AutoSubmitted | Automatic::Precedence | Automatic::AsksForNone)
        );
        let is_named = match &self.message_id {
            Some(id) => message.references.contains(id),
            // Only the conversation joins them.
            None => self.thread.is_some() && sent.thread == self.thread && sent.received_at >= self.received_at,
        };
        let goes_to = |own: &String| {
            message.to.iter().chain(&message.cc).any(|recipient| recipient.address.eq_ignore_ascii_case(own))
        };
        let is_answer = !is_automatic && is_named && self.addresses.iter().any(goes_to);
        is_answer.then_some(AnswerByHand { by: message.from, at: sent.received_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::MailId;

    fn sent(headers: &str) -> RawMail {
        let bytes = format!("From: Bo Field <bo@us.example>\r\n{headers}\r\n\r\n").into_bytes();
        RawMail {
            id: MailId::new("s1"),
            thread: Some(MailThreadId::new("t1")),
            received_at: Timestamp(9),
            labels: Vec::new(),
            size: bytes.len() as u64,
            bytes,
            is_cut: false,
        }
    }

    fn incoming() -> Incoming {
        Incoming {
            thread: Some(MailThreadId::new("t1")),
            message_id: Some("m1@example.org".to_owned()),
            addresses: vec!["dana@example.org".to_owned(), "orders@example.org".to_owned()],
            received_at: Timestamp(5),
        }
    }

    #[test]
    fn an_answer_of_a_person_is_recognized() {
        for headers in [
            "To: Dana <Dana@example.org>\r\nIn-Reply-To: <m1@example.org>",
            "To: orders@example.org\r\nReferences: <m0@example.org> <m1@example.org>",
            "To: x@us.example\r\nCc: dana@example.org\r\nReferences: <m1@example.org> <m2@example.org>",
        ] {
            let found = incoming().answered_by(&sent(headers)).expect(headers);
            assert_eq!((found.by.unwrap().address.as_str(), found.at), ("bo@us.example", Timestamp(9)));
        }
    }

    #[test]
    fn other_sent_messages_are_no_answers_of_a_person() {
        for headers in [
            "To: dana@example.org\r\nIn-Reply-To: <m2@example.org>",
            "To: boss@us.example\r\nIn-Reply-To: <m1@example.org>",
            "To: dana@example.org\r\nIn-Reply-To: <m1@example.org>\r\nX-Countersign-Key: A1",
            "To: dana@example.org\r\nIn-Reply-To: <m1@example.org>\r\nAuto-Submitted: auto-replied",
        ] {
            assert_eq!(incoming().answered_by(&sent(headers)), None, "{headers}");
        }
    }

    #[test]
    fn a_mail_without_an_id_is_answered_in_its_conversation() {
        let nameless = Incoming { message_id: None, ..incoming() };
        assert!(nameless.answered_by(&sent("To: dana@example.org")).is_some());
        let later = Incoming { received_at: Timestamp(10), ..nameless.clone() };
        assert_eq!(later.answered_by(&sent("To: dana@example.org")), None);
        let elsewhere = Incoming { thread: None, ..nameless };
        assert_eq!(elsewhere.answered_by(&sent("To: dana@example.org")), None);
    }
}
