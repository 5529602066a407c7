//! The message that begins a mail's thread: who wrote about what, its class, and what became of it.
//!
//! It is drawn from the mail's entry in the list, and drawn again when that says something new. The order to draw it
//! again is a message of the outbox; whoever carries it out reads the entry as it is then, so the order of two of them
//! does not matter.

use countersign_core::{
    cause::chain,
    ids::{MessageTs, ThreadId},
    reply::{Part, Reply, Text},
};
use countersign_graph::store::Error;
use countersign_mail::{MailId, MailStatus, shown_subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    card::MAX_NAME_CHARS,
    register::{Entry, MailRegister},
    rules::cut,
};

/// The name of the channel that carries the orders.
pub const CHANNEL: &str = "mail-headings";

/// The maximum length of a subject, in characters.
const MAX_SUBJECT_CHARS: usize = 150;

/// An order to draw the message of a mail again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadingOrder {
    /// The mail.
    pub mail: MailId,
}

impl HeadingOrder {
    /// Returns the body of the message for [`CHANNEL`] that orders to draw the message of this mail again.
    pub(super) fn body(mail: &MailId) -> Value {
        serde_json::to_value(Self { mail: mail.clone() }).expect("an order is plain data")
    }
}

/// Returns the message that begins the thread of a mail. `link` returns the address of another mail's thread.
///
/// # Errors
///
/// Fails if the store isn't answering.
pub async fn heading(
    book: &MailRegister,
    entry: &Entry,
    link: &(dyn Fn(&ThreadId) -> Option<String> + Send + Sync),
) -> Result<Reply, Error> {
    let name = entry.sender_name.as_deref().or(entry.sender.as_deref()).unwrap_or("an unknown sender");
    let (name, subject) = (cut(name, MAX_NAME_CHARS), subject_of(entry));
    let is_quiet = entry.is_put_away() || entry.status == MailStatus::Pending;
    let mut reply = match entry.quiet.as_deref().filter(|_| is_quiet) {
        // Nobody has to read it.
        Some(what) => {
            let what = what.trim_start_matches("an ").trim_start_matches("a ");
            let careful = entry.danger.iter().map(|danger| format!(" · ⚠️ {danger}")).collect::<String>();
            Reply::default().hint(format!("{name}: {subject} · {what}, no reply needed{careful}"))
        }
        None => {
            let reply = Reply::text(Text::from("Email from ").bold(name).plain(": ").bold(subject));
            let careful = entry.danger.iter().map(|danger| Text::from(format!("⚠️ Careful: {danger}.")));
            let reply = careful.fold(reply, |reply, line| reply.and(Part::Text(line)));
            state_of(entry).into_iter().fold(reply, Reply::hint)
        }
    };
    for (id, words) in [(&entry.newer, "A newer email came"), (&entry.earlier, "Earlier in this conversation")] {
        let Some(id) = id else { continue };
        if let Some(other) = book.entry(id).await?.filter(|other| !other.is_forgotten()) {
            reply = reply.hint(other_line(words, &other, link));
        }
    }
    Ok(reply)
}

/// Returns the class and the state: “inquiry · waiting for review”; `None` while there is nothing to say.
fn state_of(entry: &Entry) -> Option<String> {
    let is_new = matches!(entry.status, MailStatus::Pending | MailStatus::Processing);
    let class = entry.class.map(|class| class.name());
    let outcome = match entry.is_automatic && entry.status == MailStatus::Sent {
        true => "answered automatically",
        false => entry.outcome(),
    };
    match class {
        _ if is_new => None,
        Some(class) if !entry.is_spam => Some(format!("{class} · {outcome}")),
        _ => Some(outcome.to_owned()),
    }
}

/// Returns the line about another mail in the same conversation, with a link to its thread.
fn other_line(words: &str, earlier: &Entry, link: &(dyn Fn(&ThreadId) -> Option<String> + Send + Sync)) -> Text {
    let line = Text::from(format!("{words}: "));
    let subject = subject_of(earlier);
    let line = match earlier.thread.as_ref().and_then(link) {
        Some(url) => line.link(url, subject),
        None => line.plain(format!("“{subject}”")),
    };
    line.plain(", ").moment(earlier.received_at).plain(format!(" · {}", earlier.outcome()))
}

fn subject_of(entry: &Entry) -> String {
    cut(shown_subject(&entry.subject), MAX_SUBJECT_CHARS)
}

/// Returns the message that the order of a message for [`CHANNEL`] asks for, and where it is; `None` if there is nothing
/// to draw.
///
/// # Errors
///
/// Fails if the store isn't answering.
pub async fn ordered(
    book: &MailRegister,
    body: &Value,
    link: &(dyn Fn(&ThreadId) -> Option<String> + Send + Sync),
) -> Result<Option<(MessageTs, Reply)>, Error> {
    let Ok(HeadingOrder { mail }) = HeadingOrder::deserialize(body) else { return Ok(None) };
    let entry = book.entry(&mail).await.inspect_err(|error| {
        tracing::warn!(error = chain(error), "Cannot read the list of mails");
    })?;
    let Some(entry) = entry.filter(|entry| !entry.is_forgotten()) else { return Ok(None) };
    let Some(thread) = &entry.thread else { return Ok(None) };
    Ok(Some((thread.root.clone(), heading(book, &entry, link).await?)))
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;
    use countersign_mail::Mail;

    use super::*;
    use crate::{
        rules::Class,
        tests::support::{TestStore, mail, thread},
    };

    #[tokio::test]
    async fn the_first_message_says_the_class_and_what_became_of_the_mail() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let mut entry = Entry::new(&Mail { subject: "Re: RE: Prices".into(), ..mail() }, Timestamp(1));
        let said = async |entry: &Entry| heading(&book, entry, &|_| None).await.unwrap().words();
        assert_eq!(said(&entry).await, "Email from Dana Fields: Prices");
        entry.move_to(MailStatus::Processing, Timestamp(2));
        entry.class = Some(Class::MeetingRequest);
        assert_eq!(said(&entry).await, "Email from Dana Fields: Prices", "it is not done yet");
        entry.move_to(MailStatus::NeedsReview, Timestamp(3));
        assert_eq!(said(&entry).await, "Email from Dana Fields: Prices\nmeeting request · waiting for review");
        let nameless = Entry { subject: String::new(), ..entry.clone() };
        assert!(said(&nameless).await.starts_with("Email from Dana Fields: (no subject)\n"));
        entry.close_as_spam(Timestamp(4));
        assert_eq!(said(&entry).await, "Email from Dana Fields: Prices\nmarked as spam");
        let mut answered = Entry { status: MailStatus::Sent, is_spam: false, ..entry };
        assert!(answered.close_as_spam(Timestamp(5)));
        assert_eq!(said(&answered).await, "Email from Dana Fields: Prices\nanswered, marked as spam");
    }

    #[tokio::test]
    async fn the_mail_before_in_the_conversation_is_linked() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let first = Entry { thread: Some(thread()), ..Entry::new(&mail(), Timestamp(1)) };
        book.add(first).await.unwrap();
        let next = Mail {
            id: MailId::new("m2"),
            message_id: Some("m2@example.org".into()),
            received_at: Timestamp(mail().received_at.millis() + 5),
            ..mail()
        };
        let in_thread = Mail { references: Vec::new(), ..next.clone() };
        assert_eq!(book.earlier(&in_thread).await.unwrap(), Some(mail().id), "by the server's conversation");
        let named = Mail { thread: None, references: vec!["m1@example.org".into()], ..next.clone() };
        assert_eq!(book.earlier(&named).await.unwrap(), Some(mail().id), "by what it answers");
        let other = Mail { thread: None, references: vec!["x@example.org".into()], ..next.clone() };
        assert_eq!(book.earlier(&other).await.unwrap(), None);
        let entry = Entry { earlier: Some(mail().id), ..Entry::new(&next, Timestamp(9)) };
        let reply =
            heading(&book, &entry, &|thread| Some(format!("https://slack.example/{}", thread.root))).await.unwrap();
        assert!(format!("{reply:?}").contains("https://slack.example/1700000000.000100"), "{reply:?}");
        let line = "Earlier in this conversation: Prices, 2025-03-04T09:00:00.000Z · not looked at yet";
        assert!(reply.words().ends_with(line), "{}", reply.words());
        let settle = |entry: &mut Entry| {
            entry.move_to(MailStatus::Processing, Timestamp(9)) && entry.close_as_spam(Timestamp(9))
        };
        book.update(&mail().id, settle).await.unwrap();
        book.forget(&mail().id).await.unwrap();
        let reply = heading(&book, &entry, &|_| None).await.unwrap();
        assert_eq!(reply.words(), "Email from Dana Fields: Prices", "it is forgotten");
    }
}
