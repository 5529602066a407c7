//! `/mail`: quick answers about the team's mail, without any model. Only the asker sees them.

use countersign_capabilities::{Command, Takes, Word};
use countersign_core::{clock::Timestamp, reply::Reply};
use countersign_graph::action::Reader;

use super::{
    mail_list::{MailList, MailListError, may_read},
    replies,
};

/// The maximum number of mails in a list. One more is read, to find out whether there are more.
pub(super) const MAX_LISTED: usize = 15;

const fn word(word: &'static str, takes: Takes, what: &'static str, example: &'static str) -> Word {
    Word { word, takes, what, example }
}

/// The command `/mail` and its words.
pub(super) const COMMAND: Command = Command {
    name: "/mail",
    words: &[
        word("status", Takes::Nothing, "whether email is being fetched and how many are waiting", "status"),
        word("waiting", Takes::Nothing, "the emails waiting for review", "waiting"),
        word("show", Takes::Required("sender, subject or ID"), "an email and its outcome", "show Ada"),
        word("sync", Takes::Nothing, "fetch email now", "sync"),
        word("pause", Takes::Nothing, "stop fetching email", "pause"),
        word("resume", Takes::Nothing, "fetch email again after a pause", "resume"),
    ],
};

/// Answers one word of the command. Words that show mails, or change whether they are fetched, are answered in the
/// channel of mails only.
pub(super) async fn answer(book: &dyn MailList, word: &str, rest: &str, reader: &Reader, now: Timestamp) -> Reply {
    let answered = match word {
        "status" => book.overview().await.map(|overview| replies::status(&overview, now)),
        _ if !may_read(book, reader) => Ok(replies::elsewhere(book.channel())),
        "waiting" => waiting(book, now).await,
        "show" => show(book, rest, now).await,
        "sync" => sync(book).await,
        "pause" => set_paused(book, true, reader).await,
        _ => set_paused(book, false, reader).await,
    };
    answered.unwrap_or_else(|error| {
        tracing::warn!(error = countersign_core::cause::chain(&error), "The mails cannot be read");
        replies::unavailable(&error)
    })
}

async fn waiting(book: &dyn MailList, now: Timestamp) -> Result<Reply, MailListError> {
    let mut found = book.waiting(MAX_LISTED + 1).await?;
    let more = found.len() > MAX_LISTED;
    found.truncate(MAX_LISTED);
    Ok(replies::waiting(&found, more, now))
}

/// Returns the words that are looked for without the marks around them: “ben” for “ben?”.
pub(super) fn name_in(words: &str) -> &str {
    words.trim_matches(|letter: char| letter.is_whitespace() || "?!.,;:\"“”'’".contains(letter))
}

/// Returns the reply to a search for a mail, for the members of their channel.
pub(super) async fn show(book: &dyn MailList, words: &str, now: Timestamp) -> Result<Reply, MailListError> {
    let words = name_in(words);
    let mut found = book.find(words, MAX_LISTED + 1).await?;
    // “Bens”, as in “show bens mail”.
    if let Some(stem) = words.strip_suffix('s').filter(|stem| found.is_empty() && stem.len() > 2) {
        found = book.find(name_in(stem), MAX_LISTED + 1).await?;
    }
    let more = found.len() > MAX_LISTED;
    found.truncate(MAX_LISTED);
    Ok(replies::found(words, &found, more, now))
}

async fn sync(book: &dyn MailList) -> Result<Reply, MailListError> {
    let overview = book.overview().await?;
    if overview.paused.is_none() {
        book.sync_soon().await?;
    }
    Ok(replies::sync_requested(&overview))
}

async fn set_paused(book: &dyn MailList, is_paused: bool, reader: &Reader) -> Result<Reply, MailListError> {
    let Some(by) = &reader.by else { return Ok(replies::unknown_person()) };
    let changed = book.set_paused(is_paused, by).await?;
    if changed && !is_paused {
        book.sync_soon().await?;
    }
    Ok(replies::paused(is_paused, changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mail_list::MailStatus,
        testing::{FixedMailList, RECEIVED, ana_in, entry},
    };

    async fn said(book: &FixedMailList, line: &str, channel: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        answer(book, word, rest, &ana_in(channel), RECEIVED).await.words()
    }

    #[tokio::test]
    async fn mails_are_shown_in_their_channel_only() {
        let book = FixedMailList::new(vec![entry("m1", MailStatus::NeedsReview)]);
        assert!(said(&book, "waiting", "C5").await.contains("Ada: Prices for 20 seats"));
        assert!(said(&book, "show prices", "C5").await.contains("From: Ada <ada@customer.example>"));
        for line in ["show “Ada”?", "show adas", "show ada's"] {
            assert!(said(&book, line, "C5").await.contains("From: Ada <ada@customer.example>"), "{line}");
        }
        for line in ["waiting", "show prices", "sync", "pause", "resume"] {
            assert_eq!(said(&book, line, "C1").await, "I only show email in #C5. Ask me there.", "{line}");
        }
        assert!(said(&book, "status", "C1").await.contains("1 email"), "numbers are no secret");
    }

    #[tokio::test]
    async fn a_pause_is_set_once_and_going_on_fetches_at_once() {
        let book = FixedMailList::new(Vec::new());
        assert!(said(&book, "sync", "C5").await.starts_with("Fetching email now."));
        assert!(said(&book, "pause", "C5").await.starts_with("Paused."));
        assert!(said(&book, "pause", "C5").await.starts_with("Email is already paused."));
        assert!(said(&book, "sync", "C5").await.starts_with("Email is paused, so nothing is fetched."));
        assert_eq!(*book.syncs.lock().unwrap(), 1);
        assert!(said(&book, "resume", "C5").await.starts_with("Resumed."));
        assert_eq!(*book.syncs.lock().unwrap(), 2);
        assert_eq!(said(&book, "resume", "C5").await, "Email isn't paused.");
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_admitted() {
        let book = FixedMailList { is_broken: true, ..FixedMailList::new(Vec::new()) };
        for line in ["status", "waiting", "show prices", "sync", "pause", "resume"] {
            assert!(said(&book, line, "C5").await.starts_with("I can't read the team's email right now."), "{line}");
        }
    }
}
