//! The section of the Home tab: which mails wait, and for how long, with links to their cards.

use std::collections::BTreeSet;

use countersign_core::{clock::Timestamp, ids::ChannelId, reply::Reply};

use super::{
    mail_list::MailList,
    replies::{self, HomeReader},
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
            Some(replies::home(&overview, &waiting, book.channel(), reader, now))
        }
        Err(error) => {
            tracing::warn!(error = countersign_core::cause::chain(&error), "The mails cannot be read for the Home tab");
            None
        }
    }
}
