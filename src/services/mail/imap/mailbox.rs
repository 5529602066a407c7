//! The commands in the mailboxes: new mails, reading, marks, and the copies of sent mails.

use std::{pin::pin, time::Duration};

use async_imap::{
    error::Error,
    extensions::idle::IdleResponse,
    types::{Fetch, Flag, NameAttribute},
};
use countersign_core::clock::Timestamp;
use futures_util::TryStreamExt as _;
use tokio::time::timeout;

use super::session::{Connected, Session, failed};
use crate::{
    account::{Batch, Handled, MailError, SyncPoint},
    mail::{MAX_MAIL_BYTES, MailId, RawMail},
    read::is_message_id,
    reply::Outgoing,
};

/// The maximum number of mails in a batch.
const MAX_BATCH: usize = 500;
/// The maximum number of sent messages that are looked at for one mail.
const MAX_ANSWERS: usize = 20;
/// The maximum number of flags that are read.
const MAX_FLAGS: usize = 100;
/// The name of the mailbox with sent mails, if the server marks none.
const SENT: &str = "Sent";

/// A point in a mailbox: the ids of new mails are not below `next`, as long as `validity` stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    validity: u32,
    next: u32,
    /// While the mailbox is read from its beginning, in several batches: the id that was the next one when that began.
    listed_to: Option<u32>,
}

impl Position {
    /// Reads `validity:next` or `validity:next:listed_to`, as [`Self::point`] writes it.
    pub(super) fn of(point: &SyncPoint) -> Option<Self> {
        let mut numbers = point.as_str().split(':').map(|number| number.parse().ok());
        let (validity, next) = (numbers.next()??, numbers.next()??);
        let listed_to = match numbers.next() {
            None => None,
            Some(listed_to) => Some(listed_to?),
        };
        numbers.next().is_none().then_some(Self { validity, next, listed_to })
    }

    fn point(self) -> SyncPoint {
        let Self { validity, next, listed_to } = self;
        SyncPoint::new(match listed_to {
            None => format!("{validity}:{next}"),
            Some(listed_to) => format!("{validity}:{next}:{listed_to}"),
        })
    }
}

/// Returns the mails that arrived since a point, or all of them if there is none or it is no longer valid.
pub(super) async fn arrived(
    session: &mut Session,
    mailbox: &str,
    since: Option<Position>,
) -> Result<(Batch, Position), MailError> {
    let now = position(session, mailbox).await?;
    let since = since.filter(|since| since.validity == now.validity);
    let first = since.map_or(1, |since| since.next);
    let query = format!("UID {first}:* UNDELETED");
    // The range `n:*` contains the last mail even if its id is below n.
    let found = session.uid_search(query).await.map_err(|error| failed(&error))?;
    let (uids, has_more) = oldest(found.into_iter().filter(|uid| *uid >= first).collect());
    let after_last = uids.last().map_or(first, |last| last.saturating_add(1));
    let next = if has_more { after_last } else { after_last.max(now.next) };
    let listed_to = match since {
        None => Some(now.next),
        Some(since) => since.listed_to,
    };
    let is_full = listed_to.is_some();
    let next = Position { validity: now.validity, next, listed_to: listed_to.filter(|end| has_more && next < *end) };
    let arrived = uids.into_iter().map(|uid| MailId::new(format!("{}:{uid}", now.validity))).collect();
    Ok((Batch { arrived, next: next.point(), is_full, has_more }, next))
}

/// Returns the point after all mails that are in a mailbox now. The mailbox stays selected.
pub(super) async fn position(session: &mut Session, mailbox: &str) -> Result<Position, MailError> {
    let selected = session.select(mailbox).await.map_err(|error| failed(&error))?;
    let validity = selected.uid_validity.ok_or_else(|| MailError::Decode {
        reason: "the mailbox has no UIDVALIDITY, so its emails cannot be told apart".to_owned(),
    })?;
    Ok(Position { validity, next: selected.uid_next.unwrap_or(1), listed_to: None })
}

/// Returns the number of mails in a mailbox.
pub(super) async fn number(session: &mut Session, mailbox: &str) -> Result<u32, MailError> {
    Ok(session.select(mailbox).await.map_err(|error| failed(&error))?.exists)
}

/// Reads a mail; `None` if it is no longer there.
pub(super) async fn read(session: &mut Session, mailbox: &str, id: &MailId) -> Result<Option<RawMail>, MailError> {
    let Some(uid) = select_for(session, mailbox, id).await? else { return Ok(None) };
    let query = format!("(UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[]<0.{MAX_MAIL_BYTES}>)");
    let mut fetches = pin!(session.uid_fetch(uid.to_string(), query).await.map_err(|error| failed(&error))?);
    let mut found = None;
    while let Some(fetch) = fetches.try_next().await.map_err(|error| failed(&error))? {
        if fetch.uid == Some(uid) && found.is_none() {
            found = raw(id, &fetch);
        }
    }
    Ok(found)
}

/// Marks a mail with a keyword, and removes the other keywords of ours.
pub(super) async fn mark(session: &mut Session, mailbox: &str, id: &MailId, handled: Handled) -> Result<(), MailError> {
    let Some(uid) = select_for(session, mailbox, id).await? else { return Ok(()) };
    let others: Vec<&str> = Handled::ALL.into_iter().filter(|other| *other != handled).map(keyword).collect();
    store(session, uid, &format!("-FLAGS.SILENT ({})", others.join(" "))).await?;
    let answered = if handled == Handled::Answered { " \\Answered" } else { "" };
    store(session, uid, &format!("+FLAGS.SILENT ({}{answered})", keyword(handled))).await
}

/// Returns true if a message with this id is in the mailbox with sent mails.
pub(super) async fn is_sent(session: &mut Session, sent: Option<&str>, message_id: &str) -> Result<bool, MailError> {
    let mailbox = sent_mailbox(session, sent).await?;
    has_copy(session, &mailbox, message_id).await
}

/// Stores a copy of a sent message, unless there is one. The mailbox is made if it is missing.
pub(super) async fn store_sent(session: &mut Session, sent: Option<&str>, out: &Outgoing) -> Result<(), MailError> {
    let mailbox = sent_mailbox(session, sent).await?;
    if has_copy(session, &mailbox, &out.message_id).await? {
        return Ok(());
    }
    let message = out.to_mime();
    match session.append(&mailbox, Some("(\\Seen)"), None, &message).await {
        Err(Error::Append | Error::No(_)) => {
            session.create(&mailbox).await.map_err(|error| failed(&error))?;
            session.append(&mailbox, Some("(\\Seen)"), None, &message).await.map_err(|error| failed(&error))
        }
        appended => appended.map_err(|error| failed(&error)),
    }
}

/// Waits until the server reports a change in the selected mailbox. Returns false if it reported none.
pub(super) async fn idle(mut connected: Connected, limit: Duration, at_most: Duration) -> Result<bool, MailError> {
    let capabilities = timeout(limit, connected.session.capabilities()).await;
    if !capabilities.is_ok_and(|capabilities| capabilities.is_ok_and(|capabilities| capabilities.has_str("IDLE"))) {
        return Ok(false);
    }
    let mut idling = connected.session.idle();
    match timeout(limit, idling.init()).await {
        Ok(started) => started.map_err(|error| failed(&error))?,
        Err(_) => return Ok(false),
    }
    let (waiting, _interrupt) = idling.wait_with_timeout(at_most);
    Ok(matches!(waiting.await, Ok(IdleResponse::NewData(_))))
}

/// Returns the first ids in their order, and true if there are more.
fn oldest(mut uids: Vec<u32>) -> (Vec<u32>, bool) {
    uids.sort_unstable();
    let has_more = uids.len() > MAX_BATCH;
    uids.truncate(MAX_BATCH);
    (uids, has_more)
}

/// Selects the mailbox of a mail. Returns `None` if the server has given new ids to all mails since.
async fn select_for(session: &mut Session, mailbox: &str, id: &MailId) -> Result<Option<u32>, MailError> {
    let now = position(session, mailbox).await?;
    Ok(numbers(id.as_str()).filter(|(validity, _)| *validity == now.validity).map(|(_, uid)| uid))
}

/// Reads two numbers with a colon between them.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let (one, other) = text.split_once(':')?;
    Some((one.parse().ok()?, other.parse().ok()?))
}

fn raw(id: &MailId, fetch: &Fetch) -> Option<RawMail> {
    let bytes = fetch.body()?.to_vec();
    let size = fetch.size.map_or(0, u64::from).max(bytes.len() as u64);
    let received_at = received_at(fetch);
    let labels = fetch.flags().take(MAX_FLAGS).filter_map(label).collect();
    Some(RawMail { id: id.clone(), thread: None, received_at, labels, is_cut: size > MAX_MAIL_BYTES, bytes, size })
}

fn received_at(fetch: &Fetch) -> Timestamp {
    fetch.internal_date().map_or(Timestamp(0), |date| Timestamp(date.timestamp_millis()))
}

fn label(flag: Flag<'_>) -> Option<String> {
    Some(match flag {
        Flag::Seen => "\\Seen".to_owned(),
        Flag::Answered => "\\Answered".to_owned(),
        Flag::Flagged => "\\Flagged".to_owned(),
        Flag::Draft => "\\Draft".to_owned(),
        Flag::Custom(keyword) => keyword.into_owned(),
        _ => return None,
    })
}

fn keyword(handled: Handled) -> &'static str {
    match handled {
        Handled::Answered => "$CountersignAnswered",
        Handled::Rejected => "$CountersignRejected",
        Handled::Spam => "$CountersignSpam",
    }
}

async fn store(session: &mut Session, uid: u32, change: &str) -> Result<(), MailError> {
    let mut answers = pin!(session.uid_store(uid.to_string(), change).await.map_err(|error| failed(&error))?);
    while answers.try_next().await.map_err(|error| failed(&error))?.is_some() {}
    Ok(())
}

/// Returns the name of the mailbox with sent mails: of the settings, or the one that the server marks.
async fn sent_mailbox(session: &mut Session, sent: Option<&str>) -> Result<String, MailError> {
    if let Some(sent) = sent {
        return Ok(sent.to_owned());
    }
    let mut names = pin!(session.list(Some(""), Some("*")).await.map_err(|error| failed(&error))?);
    let mut marked = None;
    while let Some(name) = names.try_next().await.map_err(|error| failed(&error))? {
        if marked.is_none() && name.attributes().contains(&NameAttribute::Sent) {
            marked = Some(name.name().to_owned());
        }
    }
    Ok(marked.unwrap_or_else(|| SENT.to_owned()))
}

/// Returns the headers of the newest sent messages that answer the message with this id. A message whose id cannot be
/// searched for has none.
pub(super) async fn answers(
    session: &mut Session,
    sent: Option<&str>,
    message_id: &str,
) -> Result<Vec<RawMail>, MailError> {
    let mailbox = sent_mailbox(session, sent).await?;
    if !is_searchable(message_id) || !examine(session, &mailbox).await? {
        return Ok(Vec::new());
    }
    let query = format!("OR HEADER In-Reply-To \"<{message_id}>\" HEADER References \"<{message_id}>\"");
    let found = session.uid_search(query).await.map_err(|error| failed(&error))?;
    let mut uids: Vec<u32> = found.into_iter().collect();
    uids.sort_unstable();
    let newest = uids.split_off(uids.len().saturating_sub(MAX_ANSWERS));
    if newest.is_empty() {
        return Ok(Vec::new());
    }
    let newest = newest.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let query = "(UID INTERNALDATE BODY.PEEK[HEADER])";
    let mut fetches = pin!(session.uid_fetch(newest, query).await.map_err(|error| failed(&error))?);
    let mut answers = Vec::new();
    while let Some(fetch) = fetches.try_next().await.map_err(|error| failed(&error))? {
        let Some((uid, bytes)) = fetch.uid.zip(fetch.header()) else { continue };
        answers.push(RawMail {
            id: MailId::new(uid.to_string()),
            thread: None,
            received_at: received_at(&fetch),
            labels: Vec::new(),
            size: bytes.len() as u64,
            bytes: bytes.to_vec(),
            is_cut: false,
        });
    }
    Ok(answers)
}

/// Opens a mailbox for reading. Returns false if it does not exist.
async fn examine(session: &mut Session, mailbox: &str) -> Result<bool, MailError> {
    match session.examine(mailbox).await {
        Ok(_) => Ok(true),
        Err(Error::No(_)) => Ok(false),
        Err(error) => Err(failed(&error)),
    }
}

/// Returns true if an id can be in a search, between quotation marks.
fn is_searchable(message_id: &str) -> bool {
    is_message_id(message_id) && !message_id.contains(['"', '\\'])
}

/// Returns true if a mailbox has a message with this id. A mailbox that does not exist has none.
async fn has_copy(session: &mut Session, mailbox: &str, message_id: &str) -> Result<bool, MailError> {
    if !is_searchable(message_id) {
        let reason = "the Message-ID of the reply is not valid".to_owned();
        return Err(MailError::Refused { status: None, reason });
    }
    if !examine(session, mailbox).await? {
        return Ok(false);
    }
    let query = format!("HEADER Message-ID \"<{message_id}>\"");
    Ok(!session.uid_search(query).await.map_err(|error| failed(&error))?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_comes_back() {
        for listed_to in [None, Some(9)] {
            let position = Position { validity: 17, next: 4, listed_to };
            assert_eq!(Position::of(&position.point()), Some(position));
        }
        for wrong in ["", "17", "17:", "a:4", "17:4:", "17:4:5:6", "history-9"] {
            assert_eq!(Position::of(&SyncPoint::new(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_batch_has_the_oldest_mails() {
        assert_eq!(oldest(vec![3, 1, 2]), (vec![1, 2, 3], false));
        let (uids, has_more) = oldest((1..=600).rev().collect());
        assert_eq!((uids.len(), uids.first(), uids.last(), has_more), (500, Some(&1), Some(&500), true));
    }
}
