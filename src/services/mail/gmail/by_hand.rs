//! Finding an answer that a person sent with a mail program: it is in the thread of its mail.

use super::{
    super::{
        account::MailError,
        by_hand::{AnswerByHand, Incoming},
        mail::MailId,
        reply::KEY_HEADER,
    },
    calls::Calls,
    read::{cut, item},
    wire::{DRAFT, SENT, Thread},
};

/// The query for the headers by which an answer is recognized.
const HEADERS: [(&str, &str); 10] = [
    ("format", "metadata"),
    ("metadataHeaders", "From"),
    ("metadataHeaders", "To"),
    ("metadataHeaders", "Cc"),
    ("metadataHeaders", "In-Reply-To"),
    ("metadataHeaders", "References"),
    ("metadataHeaders", "Auto-Submitted"),
    ("metadataHeaders", "Precedence"),
    ("metadataHeaders", "Message-ID"),
    ("metadataHeaders", KEY_HEADER),
];

/// Returns the first answer that a person sent; `None` if there is none.
pub(super) async fn answer(calls: &Calls, to: &Incoming) -> Result<Option<AnswerByHand>, MailError> {
    let Some(thread) = &to.thread else { return Ok(None) };
    let thread = calls.find::<Thread>(&item("threads", thread.as_str())?, &HEADERS).await?;
    for message in thread.map(|thread| thread.messages).unwrap_or_default() {
        if !message.has(SENT) || message.has(DRAFT) {
            continue;
        }
        let sent = cut(&MailId::new(message.id.clone()), &message)?;
        if let Some(answer) = to.answered_by(&sent) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}
