//! The section of the Home tab: how many mails wait, with links to their cards.

use countersign_core::{clock::Timestamp, reply::Reply};

use super::{book::MailBook, replies};

/// The maximum number of mails in the section.
const MAX_LISTED: usize = 5;

/// Returns the section; `None` if the mails cannot be read, which `/mail status` reports.
///
/// The tab shows the cards themselves, with their buttons, to people who are named as approvers; everyone else decides
/// in the channel, to which the links lead.
pub(super) async fn section(book: &dyn MailBook, now: Timestamp) -> Option<Reply> {
    let read = async { Ok::<_, super::book::BookError>((book.overview().await?, book.waiting(MAX_LISTED).await?)) };
    match read.await {
        Ok((overview, waiting)) => Some(replies::home(&overview, &waiting, book.channel(), now)),
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "The mails cannot be read for the Home tab");
            None
        }
    }
}
