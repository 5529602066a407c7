//! Mails that people outside write, and mails as the owner of the stand-in sees them.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    mailbox::{Mailbox, Message},
    mime,
};

/// The number of bytes of a header in one encoded word.
const WORD: usize = 39;

/// A mail that left the mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentMail {
    /// The id of the copy in the mailbox.
    pub id: String,
    /// The thread of the copy.
    pub thread: String,
    /// The draft that was sent; `None` if it was sent without one.
    pub draft: Option<String>,
    /// The time, in milliseconds since 1970.
    pub at: i64,
    /// The header `From`, with the name.
    pub from: String,
    /// The addresses of all recipients.
    pub to: Vec<String>,
    /// The decoded subject.
    pub subject: String,
    /// The decoded text.
    pub text: String,
    /// The `Message-ID` with which it was sent, without angle brackets.
    pub message_id: String,
    /// The ids in `In-Reply-To`, without angle brackets.
    pub in_reply_to: Vec<String>,
    /// The ids in `References`, without angle brackets.
    pub references: Vec<String>,
    /// The header `X-Countersign-Key`, by which answers are counted.
    pub key: Option<String>,
    /// True if the mail says that a program wrote it.
    pub is_automatic: bool,
    /// The message.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
}

/// A plain mail from an outside sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Letter {
    /// The sender, such as `Ana <ana@customer.example>`.
    pub from: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// The ids of the mails before it, oldest first, without angle brackets. It answers the last one.
    pub references: Vec<String>,
    /// Other headers with their values.
    pub headers: Vec<(String, String)>,
    /// True if the text is HTML.
    pub is_html: bool,
}

impl Letter {
    /// Creates a letter that starts a conversation.
    pub fn new(from: &str, subject: &str, text: &str) -> Self {
        let [from, subject, text] = [from, subject, text].map(str::to_owned);
        Self { from, subject, text, ..Self::default() }
    }

    /// Creates a letter in which the recipient of a sent mail answers it.
    pub fn answer_to(sent: &SentMail, text: &str) -> Self {
        let from = sent.to.first().cloned().unwrap_or_default();
        let topic = sent.subject.strip_prefix("Re: ").unwrap_or(&sent.subject);
        let references = sent.references.iter().chain([&sent.message_id]).cloned().collect();
        Self { references, ..Self::new(&from, &format!("Re: {topic}"), text) }
    }

    /// Makes the text HTML if `is_html`.
    #[must_use]
    pub fn html(mut self, is_html: bool) -> Self {
        self.is_html = is_html;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the message to `to`, with this `Message-ID` without angle brackets.
    pub(crate) fn to_mime(&self, to: &str, message_id: &str, at: Timestamp) -> Vec<u8> {
        let date = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
        let date = date.strftime("%a, %d %b %Y %H:%M:%S +0000");
        let mut lines = vec![
            format!("From: {}", encoded_sender(&self.from)),
            format!("To: {to}"),
            format!("Subject: {}", encoded(&self.subject)),
            format!("Date: {date}"),
            format!("Message-ID: <{message_id}>"),
        ];
        if let Some(answered) = self.references.last() {
            let all: Vec<_> = self.references.iter().map(|id| format!("<{id}>")).collect();
            lines.push(format!("In-Reply-To: <{answered}>"));
            lines.push(format!("References: {}", all.join("\r\n ")));
        }
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push("MIME-Version: 1.0".to_owned());
        let kind = if self.is_html { "html" } else { "plain" };
        lines.push(format!("Content-Type: text/{kind}; charset=utf-8"));
        lines.push("Content-Transfer-Encoding: base64".to_owned());
        lines.push(String::new());
        let body = BASE64_STANDARD.encode(self.text.replace('\n', "\r\n"));
        lines.extend(body.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()));
        let mut message = lines.join("\r\n");
        message.push_str("\r\n");
        message.into_bytes()
    }
}

/// Encodes the name of a sender, and leaves the address as it is.
fn encoded_sender(from: &str) -> String {
    match from.split_once('<') {
        Some((name, address)) if !name.is_ascii() => format!("{} <{address}", encoded(name.trim())),
        _ => from.to_owned(),
    }
}

/// Encodes the text of a header, if that is needed.
fn encoded(text: &str) -> String {
    if text.is_ascii() && text.len() < 900 {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for char in text.chars() {
        if words.last().is_some_and(|word| word.len() + char.len_utf8() > WORD) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(char);
        }
    }
    let words: Vec<_> = words.iter().map(|word| format!("=?utf-8?B?{}?=", BASE64_STANDARD.encode(word))).collect();
    words.join("\r\n ")
}

/// A mail in the mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredMail {
    /// Its id.
    pub id: String,
    /// Its thread.
    pub thread: String,
    /// The header `From`.
    pub from: String,
    /// The addresses of all recipients.
    pub to: Vec<String>,
    /// The decoded subject.
    pub subject: String,
    /// The decoded text.
    pub text: String,
    /// The `Message-ID` without angle brackets.
    pub message_id: String,
    /// The time of its arrival, in milliseconds since 1970.
    pub at: i64,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// The message.
    #[serde(skip)]
    pub bytes: Arc<[u8]>,
}

impl StoredMail {
    /// Returns the form in which the owner of the stand-in sees a message.
    pub(crate) fn of(mailbox: &Mailbox, message: &Message) -> Self {
        let name = |id: &String| {
            let created = mailbox.labels.iter().find(|label| label.id == *id);
            created.map_or_else(|| id.clone(), |label| label.name.clone())
        };
        let header = |name: &str| mime::header(&message.bytes, name);
        Self {
            id: message.id.clone(),
            thread: message.thread.clone(),
            from: header("From").unwrap_or_default(),
            to: mime::recipients(&message.bytes),
            subject: mime::subject(&message.bytes),
            text: mime::text(&message.bytes),
            message_id: mime::ids(header("Message-ID").as_deref()).into_iter().next().unwrap_or_default(),
            at: message.at,
            labels: message.labels.iter().map(name).collect(),
            bytes: message.bytes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_can_be_read_again() {
        let subject = "Grüße aus Übersee, wo die Worte länger sind als eine Zeile";
        let letter = Letter::new("Änne <aenne@customer.example>", subject, "Guten Tag\nÄ");
        let bytes = letter.header("X-Test", "1").to_mime("support@sandbox.example", "a@x", Timestamp(0));
        assert_eq!((mime::subject(&bytes), mime::text(&bytes)), (subject.to_owned(), "Guten Tag\nÄ".to_owned()));
        assert_eq!(mime::header(&bytes, "Date").as_deref(), Some("Thu, 01 Jan 1970 00:00:00 +0000"));
        assert_eq!(mime::header(&bytes, "X-Test").as_deref(), Some("1"));
        assert_eq!(mime::recipients(&bytes), ["support@sandbox.example"]);
    }
}
