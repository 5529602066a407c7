//! An answer, and the rules by which it stays in its conversation.

#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_core::{clock::Timestamp, hash::sha256};
use mail_builder::{
    MessageBuilder,
    headers::{HeaderType, address::Address as Mailbox, date::Date, message_id::MessageId, raw::Raw, text::Text},
    mime::{BodyPart, MimePart},
};
use serde::{Deserialize, Serialize};
use url::Host;

use super::{
    address::{Address, one_line_of},
    mail::{Automatic, MAX_SUBJECT_CHARS, Mail, MailThreadId},
    read::is_message_id,
    subject,
};

/// The header with the key of an answer, by which its draft is found again.
pub const KEY_HEADER: &str = "X-Countersign-Key";
/// The maximum number of ids in `References`: the first one and the newest.
const MAX_REFERENCES: usize = 30;
/// The number of bytes in one encoded word, of which 45 become 60 characters.
const ENCODED_WORD_BYTES: usize = 45;

/// An answer, exactly as it will be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The account's own address.
    pub from: Address,
    /// The recipient.
    pub to: Address,
    /// The subject, with one `Re:`.
    pub subject: String,
    /// The `Message-ID` of the answered mail, without angle brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The ids of the mails before it, oldest first, without angle brackets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The conversation in the account, if the server has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MailThreadId>,
    /// The text.
    pub text: String,
    /// The key in [`KEY_HEADER`].
    pub key: String,
    /// The `Message-ID`, chosen and stored before anything is sent; without angle brackets.
    pub message_id: String,
    /// The time in `Date`.
    pub at: Timestamp,
    /// True if no person read the answer, so that it is marked with `Auto-Submitted: auto-replied`.
    pub is_automatic: bool,
}

/// The reason why a mail cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReply {
    /// The mail has no usable sender.
    #[error("the email has no valid sender address")]
    NoSender,
    /// The sender is the account itself.
    #[error("the email comes from this account's own address")]
    FromUs,
    /// An automatic answer to a mail that was itself sent by a program could go on forever.
    #[error("the email is {0}, and automatic replies go only to people")]
    Automatic(Automatic),
    /// The answer has no text.
    #[error("the reply is empty")]
    Empty,
}

impl Outgoing {
    /// Answers a mail: to its sender alone, in its conversation. The `Message-ID` depends only on `key` and `from`, so
    /// that the same answer always has the same one.
    ///
    /// # Errors
    ///
    /// [`NoReply`] if the mail may not or cannot be answered.
    pub fn reply(
        mail: &Mail,
        from: Address,
        text: String,
        key: String,
        at: Timestamp,
        is_automatic: bool,
    ) -> Result<Self, NoReply> {
        let to = mail.sender().cloned().ok_or(NoReply::NoSender)?;
        if to.is_same_mailbox(&from) {
            return Err(NoReply::FromUs);
        }
        if let Some(automatic) = mail.automatic.filter(|_| is_automatic) {
            return Err(NoReply::Automatic(automatic));
        }
        if text.trim().is_empty() {
            return Err(NoReply::Empty);
        }
        Ok(Self {
            message_id: message_id(&key, &from),
            from,
            to,
            subject: reply_subject(&mail.subject),
            in_reply_to: mail.message_id.clone(),
            references: references(mail),
            thread: mail.thread.clone(),
            text,
            key,
            at,
            is_automatic,
        })
    }

    /// Writes the message as it will be sent. Only the line ends of the text are changed, to CRLF. Nothing in a field can
    /// add another header.
    pub fn to_mime(&self) -> Vec<u8> {
        let mut builder = MessageBuilder::new()
            .from(mailbox(&self.from))
            .to(mailbox(&self.to))
            .header("Subject", subject_header(&self.subject))
            .date(Date::new(self.at.seconds()))
            .message_id(one_line_of(&self.message_id, MAX_SUBJECT_CHARS));
        if let Some(id) = self.in_reply_to.as_deref().filter(|id| is_message_id(id)) {
            builder = builder.in_reply_to(id);
        }
        let references: Vec<&str> = self.references.iter().map(String::as_str).filter(|id| is_message_id(id)).collect();
        if !references.is_empty() {
            builder = builder.references(MessageId::new_list(references.into_iter()));
        }
        if self.is_automatic {
            builder = builder.header("Auto-Submitted", Raw::new("auto-replied"));
            builder = builder.header("X-Auto-Response-Suppress", Raw::new("All"));
        }
        let key: String = self.key.chars().filter(char::is_ascii_graphic).collect();
        let mut bytes = Vec::new();
        builder.header(KEY_HEADER, Raw::new(key)).body(part(&self.text)).serialize(&mut bytes);
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

/// Returns the subject of an answer, on one line: `Re: ` and the original, but no second `Re:`.
fn reply_subject(original: &str) -> String {
    one_line_of(&subject::of_reply(&one_line_of(original, MAX_SUBJECT_CHARS)), MAX_SUBJECT_CHARS)
}

/// Returns the ids of the conversation, up to and including the answered mail.
fn references(mail: &Mail) -> Vec<String> {
    let earlier = mail.references.iter().filter(|id| Some(*id) != mail.message_id.as_ref());
    let mut ids: Vec<String> = earlier.chain(&mail.message_id).cloned().collect();
    if ids.len() > MAX_REFERENCES {
        ids.drain(1..ids.len() - MAX_REFERENCES + 1);
    }
    ids
}

fn message_id(key: &str, from: &Address) -> String {
    let hash = sha256(&[from.address.as_bytes(), &[0], key.as_bytes()].concat());
    let domain = match Host::parse(from.domain()) {
        Ok(Host::Domain(domain)) => domain,
        _ => "localhost".to_owned(),
    };
    format!("{}@{domain}", &hex::encode(hash)[..40])
}

/// Returns an address for a header. A name that looks like an encoded word would be read as another name.
fn mailbox(address: &Address) -> Mailbox<'_> {
    let name = address.name.as_deref().filter(|name| !name.contains("=?"));
    Mailbox::new_address(name, address.address.as_str())
}

/// Returns a subject for its header. Text that looks like an encoded word is encoded itself.
fn subject_header(subject: &str) -> HeaderType<'static> {
    let subject = one_line_of(subject, MAX_SUBJECT_CHARS);
    if !subject.contains("=?") {
        return Text::new(subject).into();
    }
    let mut words = Vec::new();
    let mut word = String::new();
    for char in subject.chars() {
        if word.len() + char.len_utf8() > ENCODED_WORD_BYTES {
            words.push(std::mem::take(&mut word));
        }
        word.push(char);
    }
    words.push(word);
    let words: Vec<String> = words.iter().map(|word| format!("=?utf-8?B?{}?=", STANDARD.encode(word))).collect();
    Raw::new(words.join(" ")).into()
}

/// Returns the text with the line ends of mail. The library chooses the encoding, except for text with control
/// characters, which is sent as base64.
fn part(text: &str) -> MimePart<'static> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    if !text.chars().any(|char| char.is_control() && !matches!(char, '\r' | '\n' | '\t')) {
        return MimePart::new("text/plain", BodyPart::Text(text.into()));
    }
    let encoded = STANDARD.encode(text);
    let lines: Vec<&[u8]> = encoded.as_bytes().chunks(76).collect();
    let encoded = String::from_utf8_lossy(&lines.join(b"\r\n".as_slice())).into_owned();
    MimePart::new("text/plain", BodyPart::Text(encoded.into())).transfer_encoding("base64")
}
