//! A mail: as the server stores it, and as it was read.

use std::fmt;

use countersign_core::{clock::Timestamp, string_id};
use serde::{Deserialize, Serialize};

use super::{address::Address, invitation::Invitation};

/// The maximum size of a mail that is read completely, in bytes. Larger ones are cut.
pub const MAX_MAIL_BYTES: u64 = 30 * 1024 * 1024;
/// The maximum length of the text of a mail, in characters.
pub const MAX_TEXT_CHARS: usize = 50_000;
/// The maximum length of a subject, in characters.
pub const MAX_SUBJECT_CHARS: usize = 998;

string_id! {
    /// The id of a mail in its account, given by the server.
    MailId
}
string_id! {
    /// The id of a conversation in its account, given by the server.
    MailThreadId
}

/// A mail as the server stores it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawMail {
    /// The id of the mail.
    pub id: MailId,
    /// The conversation of the mail, if the server has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MailThreadId>,
    /// The time at which the server received the mail.
    pub received_at: Timestamp,
    /// The labels or flags of the mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The message (RFC 5322), at most [`MAX_MAIL_BYTES`].
    pub bytes: Vec<u8>,
    /// The complete size of the message, in bytes.
    pub size: u64,
    /// True if the end of the message is missing in `bytes`.
    pub is_cut: bool,
}

impl fmt::Debug for RawMail {
    /// Writes ids and sizes, but not the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawMail")
            .field("id", &self.id)
            .field("thread", &self.thread)
            .field("size", &self.size)
            .field("is_cut", &self.is_cut)
            .finish_non_exhaustive()
    }
}

/// A mail that was read: plain text without hidden parts, with a limit on every field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mail {
    /// The id of the mail.
    pub id: MailId,
    /// The conversation of the mail, if the server has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MailThreadId>,
    /// The sender by the header `From`, which anyone can forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Address>,
    /// The address that the sender would like answers to go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Address>,
    /// The first recipients in `To`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Address>,
    /// The first recipients in `Cc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Address>,
    /// The number of all recipients in `To` and `Cc`.
    pub recipients: usize,
    /// The subject on one line, at most [`MAX_SUBJECT_CHARS`].
    pub subject: String,
    /// The time at which the server received the mail.
    pub received_at: Timestamp,
    /// The `Message-ID` without its angle brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The ids in `References`, or else in `In-Reply-To`; oldest first, without angle brackets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The text, at most [`MAX_TEXT_CHARS`].
    pub text: String,
    /// True if the text, or the message itself, was cut.
    pub is_cut: bool,
    /// The attachments, of which only the names, types and sizes are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The results by which the receiving server judged the sender.
    #[serde(default)]
    pub authentication: Authentication,
    /// The sign that the mail was sent by a program, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
    /// Things a person should know about the mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The events to which the mail invites, or which it cancels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invitations: Vec<Invitation>,
    /// The address of the mailing list through which the mail came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<String>,
}

impl Mail {
    /// Returns a mail of which only its id and the time of its arrival are known.
    pub fn unknown(id: MailId, received_at: Timestamp) -> Self {
        Self {
            id,
            thread: None,
            from: None,
            reply_to: None,
            to: Vec::new(),
            cc: Vec::new(),
            recipients: 0,
            subject: String::new(),
            received_at,
            message_id: None,
            references: Vec::new(),
            text: String::new(),
            is_cut: false,
            attachments: Vec::new(),
            authentication: Authentication::default(),
            automatic: None,
            warnings: Vec::new(),
            invitations: Vec::new(),
            list: None,
        }
    }

    /// Returns a mail of which only the server's own data are known.
    pub(crate) fn of_server(raw: &RawMail) -> Self {
        Self { thread: raw.thread.clone(), is_cut: raw.is_cut, ..Self::unknown(raw.id.clone(), raw.received_at) }
    }

    /// Returns the sender, to whom alone an answer goes.
    pub fn sender(&self) -> Option<&Address> {
        self.from.as_ref()
    }
}

/// An attachment, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name of the file, on one line; `unnamed` if it has none.
    pub name: String,
    /// The media type, such as `application/pdf`.
    pub media_type: String,
    /// The size after decoding, in bytes.
    pub size: u64,
}

/// The results in the `Authentication-Results` of the receiving server, such as `pass` or `fail`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    /// The result for the server that delivered the mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spf: Option<String>,
    /// The result for the signature of the mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dkim: Option<String>,
    /// The result for the domain of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dmarc: Option<String>,
}

/// A sign that a mail was sent by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Automatic {
    /// `Auto-Submitted` is something other than `no`, or a similar header of a vacation responder is present.
    AutoSubmitted,
    /// `Precedence` is `bulk`, `list`, `junk` or `auto_reply`.
    Precedence,
    /// There are headers of a mailing list.
    MailingList,
    /// The sender's address says that nobody reads answers.
    NoReply,
    /// The return path is empty, or the sender is a mail system, as for a report that a mail could not be delivered.
    NullReturnPath,
    /// `X-Auto-Response-Suppress` asks for no automatic answers. People's mails can have it as well.
    AsksForNone,
}

impl Automatic {
    /// Returns true if nobody waits for an answer to such a mail: a report, a list, or the answer of a program.
    pub fn needs_no_answer(self) -> bool {
        match self {
            Self::AutoSubmitted | Self::Precedence | Self::MailingList | Self::NullReturnPath => true,
            Self::NoReply | Self::AsksForNone => false,
        }
    }
}

impl fmt::Display for Automatic {
    /// Describes the mail after "This email is": `an automatic message`, `a mailing list message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AutoSubmitted => "an automatic message",
            Self::Precedence => "a bulk message",
            Self::MailingList => "a mailing list message",
            Self::NoReply => "from an address that takes no replies",
            Self::NullReturnPath => "a message from a mail system",
            Self::AsksForNone => "a message that asks for no automatic replies",
        })
    }
}

/// Something a person should know about a mail. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// The mail contains text that mail programs do not show.
    HiddenText,
    /// The mail contains characters that take no space, or change the direction of text.
    InvisibleCharacters,
    /// The text of a link names another host than its address.
    DeceptiveLink {
        /// The host that the text names.
        shown: String,
        /// The host to which the link leads.
        leads_to: String,
    },
    /// The receiving server found that the sender may be forged. Contains the failed checks, such as `DMARC fail`.
    AuthenticationFailed(String),
    /// `Reply-To` is another address than the sender's.
    ReplyToElsewhere(Address),
    /// The mail, or a part of it, is not valid. Contains the reason.
    Unreadable(String),
    /// The end of the message or of its text is missing.
    Truncated {
        /// The complete size of the message, in bytes.
        size: u64,
    },
    /// The mail has unusually many recipients.
    ManyRecipients(usize),
    /// The mail has no usable sender.
    NoSender,
}

impl Warning {
    /// Returns a few words about a sign that the mail may want to deceive; `None` for other warnings.
    pub fn danger(&self) -> Option<&'static str> {
        match self {
            Self::HiddenText => Some("hidden text"),
            Self::DeceptiveLink { .. } => Some("a link leads elsewhere"),
            Self::AuthenticationFailed(_) => Some("the sender may be forged"),
            Self::InvisibleCharacters
            | Self::ReplyToElsewhere(_)
            | Self::Unreadable(_)
            | Self::Truncated { .. }
            | Self::ManyRecipients(_)
            | Self::NoSender => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HiddenText => f.write_str("This email contains hidden text, which was left out."),
            Self::InvisibleCharacters => f.write_str("This email contains invisible characters, which were removed."),
            Self::DeceptiveLink { shown, leads_to } => write!(f, "A link that shows {shown} leads to {leads_to}."),
            Self::AuthenticationFailed(checks) => {
                write!(f, "The sender couldn't be verified ({checks}), so the address may be forged.")
            }
            Self::ReplyToElsewhere(address) => {
                write!(f, "This email asks for replies to {address}. A reply goes to the sender instead.")
            }
            Self::Unreadable(reason) => write!(f, "Part of this email can't be read: {reason}."),
            Self::Truncated { size } => {
                write!(f, "This email is too long ({}); the end was left out.", shown_size(*size))
            }
            Self::ManyRecipients(number) => write!(f, "This email has {number} recipients."),
            Self::NoSender => f.write_str("This email has no valid sender address, so it can't be answered."),
        }
    }
}

/// Formats a size, such as `512 bytes`, `40 kB` or `25.3 MB`.
fn shown_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_a_sentence() {
        let elsewhere = Address::parse("Eve <eve@example.net>").expect("an address");
        let warnings = [
            Warning::HiddenText,
            Warning::InvisibleCharacters,
            Warning::DeceptiveLink { shown: "bank.example".into(), leads_to: "evil.example".into() },
            Warning::AuthenticationFailed("DMARC fail".into()),
            Warning::ReplyToElsewhere(elsewhere),
            Warning::Unreadable("the HTML is empty".into()),
            Warning::Truncated { size: 31_250_000 },
            Warning::ManyRecipients(2_000),
            Warning::NoSender,
        ];
        let sentences: Vec<String> = warnings.iter().map(Warning::to_string).collect();
        assert_eq!(
            sentences,
            [
                "This email contains hidden text, which was left out.",
                "This email contains invisible characters, which were removed.",
                "A link that shows bank.example leads to evil.example.",
                "The sender couldn't be verified (DMARC fail), so the address may be forged.",
                "This email asks for replies to Eve <eve@example.net>. A reply goes to the sender instead.",
                "Part of this email can't be read: the HTML is empty.",
                "This email is too long (31.2 MB); the end was left out.",
                "This email has 2000 recipients.",
                "This email has no valid sender address, so it can't be answered.",
            ]
        );
    }

    #[test]
    fn a_raw_mail_is_printed_without_its_message() {
        let raw = RawMail {
            id: MailId::new("17"),
            thread: None,
            received_at: Timestamp(0),
            labels: Vec::new(),
            bytes: b"secret".to_vec(),
            size: 6,
            is_cut: false,
        };
        let printed = format!("{raw:?}");
        assert!(printed.contains("17") && !printed.contains("115"), "{printed}");
    }
}
