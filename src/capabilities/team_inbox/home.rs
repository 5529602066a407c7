//! The section of the Home tab: which mails wait, and for how long, with links to their cards.

use std::collections::BTreeSet;

use countersign_core::{
    clock::Timestamp,
    ids::ChannelId,
    reply::{Part, Reply, Text},
};

use super::{
    mail_list::{Entry, MailList, Overview},
    replies::{class_name, confidence, linked, mails, since, span, subject},
};

/// The maximum number of mails in the section.
const MAX_LISTED: usize = 5;

/// Returns the section; `None` if the mails cannot be read, which `/mail status` reports.
///
/// The tab shows the cards themselves, with their buttons, to people who are named as approvers; everyone else decides
/// in the channel, to which the links lead. Senders and subjects are shown to people who are known to be members of that
/// channel, which is to be among `channels`.
pub(super) async fn section(book: &dyn MailList, channels: &BTreeSet<ChannelId>, now: Timestamp) -> Option<Reply> {
    let read =
        async { Ok::<_, super::mail_list::MailListError>((book.overview().await?, book.waiting(MAX_LISTED).await?)) };
    match read.await {
        Ok((overview, waiting)) => {
            let is_member = channels.contains(book.channel());
            let reader = if is_member { HomeReader::Member } else { HomeReader::Other };
            Some(home(&overview, &waiting, book.channel(), reader, now))
        }
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "The mails cannot be read for the Home tab");
            None
        }
    }
}

/// The reader of the section of the Home tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HomeReader {
    /// A member of the channel of mails.
    Member,
    /// A person who is not known to be a member.
    Other,
}

/// Returns the section of the Home tab, with senders and subjects for members of the channel of mails only.
fn home(overview: &Overview, waiting: &[Entry], channel: &ChannelId, reader: HomeReader, now: Timestamp) -> Reply {
    let reply = Reply::default().and(Part::Heading("Email waiting for review".to_owned()));
    let first = match (overview.waiting, overview.oldest_waiting) {
        (0, _) | (_, None) => Text::from("No email is waiting for review."),
        (count, Some(oldest)) => Text::from(format!("{} in ", mails(count)))
            .channel(channel.clone())
            .plain(format!(", the oldest for {}.", span(now.since(oldest)))),
    };
    let reply = reply.and(Part::Text(first));
    let lines: Vec<Text> = match reader {
        HomeReader::Member => waiting.iter().map(|entry| member_line(entry, now)).collect(),
        HomeReader::Other => {
            waiting.iter().filter(|entry| entry.link.is_some()).map(|entry| private_line(entry, now)).collect()
        }
    };
    let reply = if lines.is_empty() { reply } else { reply.and(Part::List(lines)) };
    match (&overview.paused, &overview.fault) {
        (Some(pause), _) => reply
            .hint(Text::from("Email was paused by ").name(pause.by.clone()).plain(format!("{}.", since(pause, now)))),
        (None, Some(fault)) => reply.hint(format!("I couldn't fetch email: {fault}.")),
        (None, None) => reply,
    }
}

/// Returns a mail as a line for members of its channel; the subject is the link.
fn member_line(entry: &Entry, now: Timestamp) -> Text {
    let line = Text::new().bold(entry.from()).plain(": ");
    let subject = subject(entry);
    let line = match &entry.link {
        Some(link) => line.link(link, subject),
        None => line.plain(subject),
    };
    line.plain(format!(" · {}", waits(entry, now)))
}

/// Returns how long a mail has waited, in words.
fn waits(entry: &Entry, now: Timestamp) -> String {
    format!("waiting {}", span(now.since(entry.received_at)))
}

/// Returns a mail as a line for people who may not be in its channel.
fn private_line(entry: &Entry, now: Timestamp) -> Text {
    let class = match (&entry.class, entry.confidence) {
        (Some(class), Some(sure)) => format!("{}, {}", class_name(class), confidence(sure)),
        (Some(class), None) => class_name(class),
        (None, _) => "not classified".to_owned(),
    };
    linked(Text::from(format!("{class} · {}", waits(entry, now))), entry, "open the thread")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        mail_list::MailStatus,
        testing::{FixedMailList, RECEIVED, entry},
    };

    #[tokio::test]
    async fn the_home_tab_names_the_sender_to_members_of_the_channel_only() {
        let entries = vec![entry("m1", MailStatus::NeedsReview)];
        let book = FixedMailList::new(entries.clone());
        let overview = book.overview().await.unwrap();
        let said = |reader| {
            home(&overview, &entries, book.channel(), reader, RECEIVED + Duration::from_secs(5 * 3600)).words()
        };
        let member = said(HomeReader::Member);
        assert!(member.contains("Ada: Prices for 20 seats · waiting 5 h"), "{member}");
        let said = said(HomeReader::Other);
        assert!(said.contains("1 email in #C5, the oldest for 5 h."), "{said}");
        assert!(said.contains("inquiry, medium confidence · waiting 5 h · open the thread"), "{said}");
        assert!(!said.contains("Ada") && !said.contains("Prices"), "{said}");
    }
}
