//! The replies of the mail graph, as sentences for people.

use countersign_core::{
    ids::UserId,
    reply::{Part, Reply, Text},
};
use countersign_mail::{Address, Mail, MailError, NoReply};

use super::{
    book::EarlierAnswer,
    card::{class_line, name_of, shown_text},
    rules::{Class, MAX_DRAFT_CHARS, Source},
};

/// The text that the button for another draft says.
pub(super) const ANOTHER_DRAFT: &str = "another draft";

/// The text that the button for spam says.
pub(super) const SPAM: &str = "this is spam";

/// Returns the message that begins a mail's thread in the channel.
pub(super) fn root(mail: &Mail) -> Reply {
    let sender = mail.sender().map_or_else(|| "an unknown sender".to_owned(), name_of);
    let subject = if mail.subject.trim().is_empty() { "(no subject)" } else { mail.subject.trim() };
    Reply::text(Text::from("New mail from ").bold(sender).plain(": ").bold(subject))
}

/// Returns the mail as the thread shows it.
pub(super) fn mail_shown(mail: &Mail) -> Reply {
    let sender = mail.sender().map_or_else(|| "an unknown sender".to_owned(), Address::to_string);
    let head = Text::from("From ").bold(sender).plain(" · ").moment(mail.received_at);
    Reply::text(head)
        .and(Part::Code(shown_text(mail)))
        .choice("Ask for another draft…", ANOTHER_DRAFT)
        .choice("Spam", SPAM)
}

pub(super) fn sure_spam(confidence: f64) -> Reply {
    Reply::text(format!("This is spam ({confidence:.2}), so no reply was drafted."))
        .choice("Draft a reply", ANOTHER_DRAFT)
}

pub(super) fn unreadable() -> Reply {
    Reply::text("I couldn't read this mail, so there is no draft. It's still in the mailbox.")
        .hint("Open it in your mail program and answer it there.")
}

pub(super) fn cannot_be_drafted(why: &Reply) -> Reply {
    let mut reply = Reply::text("No reply can be sent to this mail.");
    reply.parts.extend(why.parts.iter().cloned());
    reply
}

pub(super) fn mail_gone() -> Reply {
    Reply::text("This mail is no longer in the mailbox, so it can't be answered.")
}

pub(super) fn not_an_answer() -> Reply {
    Reply::text("This isn't a reply to a mail that I know. Nothing was sent.")
}

pub(super) fn too_long(length: usize) -> Reply {
    Reply::text(format!("The reply has {length} characters. It can have at most {MAX_DRAFT_CHARS}."))
}

pub(super) fn only_to_the_sender(sender: &Address) -> Reply {
    Reply::text(format!("A reply goes to the sender of the mail only: {}.", sender.address))
}

pub(super) fn cannot_be_answered(why: &NoReply) -> Reply {
    let why = why.to_string();
    let mut letters = why.chars();
    let why = letters.next().map(|first| format!("{}{}", first.to_uppercase(), letters.as_str())).unwrap_or_default();
    Reply::text(format!("{why}."))
}

pub(super) fn already_answered() -> Reply {
    Reply::text("This mail was answered already. Nothing more was sent.")
}

/// Describes a failure of the mail account, in one sentence without addresses.
pub(super) fn account_error(error: &MailError) -> String {
    match error {
        MailError::Unavailable { .. } => "The mail server doesn't answer.".to_owned(),
        MailError::SignIn { .. } => "The mail server refused the sign-in.".to_owned(),
        MailError::Refused { status: Some(status), .. } => format!("The mail server refused this ({status})."),
        MailError::Refused { status: None, .. } => "The mail server refused this.".to_owned(),
        MailError::Decode { .. } => "The mail server's answer couldn't be read.".to_owned(),
        MailError::RunOut => "There was no time left to send it.".to_owned(),
    }
}

pub(super) fn account_unavailable(error: &MailError) -> Reply {
    Reply::text(account_error(error)).hint("Try again in a few minutes.")
}

pub(super) fn store_unavailable() -> Reply {
    Reply::text("The record of earlier replies can't be read right now.").hint("Try again in a few minutes.")
}

pub(super) fn which_changes(by: &UserId) -> Reply {
    Reply::text(Text::new().person(by.clone()).plain(" What should the new draft do differently?"))
        .hint("For example: “shorter, and offer Tuesday”.")
}

pub(super) fn no_writer() -> Reply {
    let text = Text::from("I can't rewrite a draft without a language model. Use ").bold("Edit…");
    Reply::text(text.plain(" on the card to change it yourself."))
}

pub(super) fn no_other_draft(failure: &str) -> Reply {
    Reply::text(format!("No new draft: {failure}. The draft on the card is unchanged.")).hint("Try again in a moment.")
}

pub(super) fn who(mail: &Mail, contact: Option<&str>, answers: &[EarlierAnswer]) -> Reply {
    let Some(sender) = mail.sender() else {
        return Reply::text("This mail has no valid sender address, so I can't tell who wrote it.");
    };
    let reply = match contact {
        Some(contact) => Reply::text(Text::new().bold(name_of(sender)).plain(": ").plain(contact)),
        None => Reply::text(
            Text::new().bold(name_of(sender)).plain(format!(" ({}) isn't in your contacts.", sender.address)),
        ),
    };
    match answers {
        [] => reply.hint("No earlier replies to this address are on record."),
        [newest, ..] => {
            let count = if answers.len() == 1 {
                "1 earlier reply".to_owned()
            } else {
                format!("{} earlier replies", answers.len())
            };
            reply.hint(Text::from(format!("{count} on record, the last ")).moment(newest.at).plain("."))
        }
    }
}

pub(super) fn last_answer(sender: Option<&Address>, answers: &[EarlierAnswer]) -> Reply {
    let name = sender.map_or_else(|| "this sender".to_owned(), name_of);
    match answers.first() {
        None => Reply::text(format!("No earlier replies to {name} are on record.")),
        Some(answer) => Reply::text(
            Text::from("The last reply to ")
                .bold(name)
                .plain(" was to ")
                .plain(format!("“{}”, ", answer.subject))
                .moment(answer.at)
                .plain(":"),
        )
        .and(Part::Code(answer.text.clone())),
    }
}

pub(super) fn classified(class: Class, confidence: f64, by: Source) -> Reply {
    Reply::text(format!("Class: {}.", class_line(class, confidence, by)))
}

pub(super) fn sent(summary: Text, is_automatic: bool) -> Reply {
    let reply = Reply::text(summary);
    if is_automatic { reply.hint("Sent automatically, as the operator's settings allow.") } else { reply }
}

pub(super) fn failed(summary: Text) -> Reply {
    Reply::text(summary).hint(Text::from("Use ").bold("Try again").plain(" on the card for a new one."))
}

pub(super) fn rejected(by: Option<&UserId>) -> Reply {
    let text = match by {
        Some(by) => Text::from("Rejected by ").person(by.clone()).plain(". No reply was sent."),
        None => Text::from("Rejected. No reply was sent."),
    };
    Reply::text(text).choice("Ask for another draft…", ANOTHER_DRAFT)
}

pub(super) fn still_waiting(why: &str) -> Reply {
    Reply::text(format!("{why} No reply was sent, and the mail still waits."))
        .choice("Ask for another draft…", ANOTHER_DRAFT)
}

pub(super) fn not_understood() -> Reply {
    Reply::text("I can write another draft, say who wrote the mail, or show the last reply to this sender.")
        .choice("Ask for another draft…", ANOTHER_DRAFT)
        .choice("Who wrote this?", "who is this?")
        .choice("Last reply", "what did we answer last time?")
}

pub(super) fn no_mail() -> Reply {
    Reply::text("I couldn't read the mail of this thread, so I can't help with it here.")
}
