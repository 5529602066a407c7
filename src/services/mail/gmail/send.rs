//! Sends an answer exactly once, by way of a draft.
//!
//! 1. [`prepare`] finds the draft of the answer by its key, or makes it.
//! 2. [`send`] sends this draft. A draft that was sent is gone, so the same request has an effect only once.
//! 3. After a lost response, [`find`] looks for the draft and for the sent message, by their key.
//! 4. After a certain failure, [`discard`] deletes the draft.
//!
//! The key is in a header of our own, because Gmail may replace the `Message-ID`.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE};
use countersign_core::{
    clock::Timestamp,
    send_permit::{self, SendPermit},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Method;
use serde::Serialize;

use super::{
    super::{
        account::{Found, MailError, Prepared, SendError, Sent},
        mail::{MailId, MailThreadId},
        reply::{KEY_HEADER, Outgoing},
    },
    calls::{Calls, either_way},
    read::{item, path_of},
    wire::{DRAFT, Draft, Drafts, Ignored, Message, Messages, NewMessage, SENT, Thread},
};

/// The maximum number of messages or drafts that are looked through one by one.
const MAX_LOOKED_AT: usize = 300;
/// The number of messages that are read at a time.
const AT_A_TIME: usize = 10;
/// The maximum number of pages of drafts that are searched for a known message.
const MAX_DRAFT_PAGES: usize = 20;
/// The amount by which the clock of Gmail may be behind ours.
const CLOCK_SKEW: Duration = Duration::from_secs(15 * 60);
/// The header with the id of a message.
const MESSAGE_ID: &str = "Message-ID";
/// The query for the headers by which an answer is found again.
const HEADERS: [(&str, &str); 3] =
    [("format", "metadata"), ("metadataHeaders", KEY_HEADER), ("metadataHeaders", MESSAGE_ID)];

/// The body of a request that creates or replaces a draft.
#[derive(Debug, Serialize)]
struct NewDraft<'a> {
    message: NewMessage<'a>,
}

/// The body of a request that sends a draft.
#[derive(Debug, Serialize)]
struct SendDraft<'a> {
    id: &'a str,
}

/// The messages of a thread that belong to an answer.
#[derive(Debug, Default)]
struct Traces {
    /// True if the thread exists.
    has_thread: bool,
    /// The copy that was sent.
    sent: Option<Sent>,
    /// The message of the draft.
    draft: Option<String>,
    /// True if a message without a key was sent in the thread since the answer was written. It may be the draft, which a
    /// person rewrote and sent.
    has_other: bool,
}

/// The result of looking through a list of bounded length.
enum Looked<T> {
    Found(T),
    NotThere,
    TooMany,
}

/// The reason why there is certainly no draft, or perhaps none.
enum Unprepared {
    /// A read failed; it was repeated already.
    Read(MailError),
    /// The request that makes or replaces the draft failed.
    Change(MailError),
}

impl Unprepared {
    fn of_change(&self) -> Option<&MailError> {
        match self {
            Self::Read(_) => None,
            Self::Change(error) => Some(error),
        }
    }

    fn into_error(self) -> MailError {
        match self {
            Self::Read(error) | Self::Change(error) => error,
        }
    }
}

impl From<MailError> for Unprepared {
    fn from(error: MailError) -> Self {
        Self::Read(error)
    }
}

/// Finds the draft of an answer, or makes it under the current permit. Each attempt looks for the draft first, since the
/// attempt before may have made it.
pub(super) async fn prepare(calls: &Calls, out: &Outgoing) -> Result<Prepared, MailError> {
    let permit = send_permit::current().ok_or(MailError::RunOut)?;
    let prepared = calls.repeat(|| prepare_once(calls, out, &permit), Unprepared::of_change).await;
    prepared.map_err(Unprepared::into_error)
}

async fn prepare_once(calls: &Calls, out: &Outgoing, permit: &SendPermit) -> Result<Prepared, Unprepared> {
    let traces = traces(calls, out).await?;
    if traces.sent.is_some() {
        return Err(MailError::Refused { status: None, reason: "this reply was already sent".to_owned() }.into());
    }
    let existing = match &traces.draft {
        Some(message) => Some(draft_with(calls, message).await?.ok_or_else(just_changed)?),
        None if traces.has_thread => None,
        // Without a thread, an earlier draft can be anywhere.
        None => match draft_elsewhere(calls, out).await? {
            Looked::Found(id) => Some(id),
            Looked::NotThere | Looked::TooMany => None,
        },
    };
    let thread = out.thread.as_ref().filter(|_| traces.has_thread).map(MailThreadId::as_str);
    let body = NewDraft { message: NewMessage { raw: BASE64_URL_SAFE.encode(out.to_mime()), thread_id: thread } };
    let draft = match existing {
        // People can edit the draft in Gmail; what is sent is what was approved.
        Some(id) => replace(calls, &item("drafts", &id)?, &body, permit).await,
        None => calls.change::<Draft>(Method::POST, "/drafts", &body, permit).await.map_err(either_way),
    };
    let draft = draft.map_err(Unprepared::Change)?;
    if thread.is_some_and(|thread| thread != draft.message.thread_id) {
        tracing::info!(mail.thread = thread, "Gmail did not put the draft into the thread of its mail");
    }
    Ok(Prepared { draft: Some(draft.id) })
}

async fn replace(calls: &Calls, path: &str, body: &NewDraft<'_>, permit: &SendPermit) -> Result<Draft, MailError> {
    match calls.change(Method::PUT, path, body, permit).await.map_err(either_way) {
        Err(MailError::Refused { status: Some(404), .. }) => Err(just_changed()),
        draft => draft,
    }
}

/// Sends a prepared draft under the current permit. It is sent again only if Gmail has certainly not received it.
pub(super) async fn send(calls: &Calls, prepared: &Prepared) -> Result<Sent, SendError> {
    calls.repeat(|| send_once(calls, prepared), unsent).await
}

/// Returns the cause if nothing was sent and nothing was refused for good.
fn unsent(error: &SendError) -> Option<&MailError> {
    match error {
        SendError::NotSent(error) => Some(error),
        SendError::Refused(_) | SendError::Unknown { .. } => None,
    }
}

async fn send_once(calls: &Calls, prepared: &Prepared) -> Result<Sent, SendError> {
    let Some(permit) = send_permit::current() else { return Err(SendError::NotSent(MailError::RunOut)) };
    let Some(id) = &prepared.draft else {
        let reason = "there is no draft to send".to_owned();
        return Err(SendError::NotSent(MailError::Refused { status: None, reason }));
    };
    match calls.change::<Message>(Method::POST, "/drafts/send", &SendDraft { id }, &permit).await {
        Ok(message) => Ok(sent(&message)),
        // A draft that is gone was deleted by a person, or sent by an earlier request.
        Err(SendError::Refused(MailError::Refused { status: Some(404), .. })) => {
            Err(SendError::Unknown { detail: "its draft is no longer there".to_owned() })
        }
        Err(error) => Err(error),
    }
}

/// Looks for an answer: in its thread, then among all recently sent messages, then among all drafts.
pub(super) async fn find(calls: &Calls, out: &Outgoing) -> Result<Found, MailError> {
    let traces = traces(calls, out).await?;
    if let Some(sent) = traces.sent {
        return Ok(Found::Sent(sent));
    }
    if let Some(message) = traces.draft {
        // The draft is looked up after the thread, so it was certainly not sent before.
        return Ok(match draft_with(calls, &message).await? {
            Some(id) => Found::Draft(Prepared { draft: Some(id) }),
            None => Found::Unknown { why: "its draft has just changed".to_owned() },
        });
    }
    // Gmail starts another thread for an answer that does not seem to belong to its own.
    let draft = draft_elsewhere(calls, out).await?;
    match sent_elsewhere(calls, out).await? {
        Looked::Found(sent) => return Ok(Found::Sent(sent)),
        Looked::TooMany => return Ok(Found::Unknown { why: "too many emails were sent since".to_owned() }),
        Looked::NotThere => {}
    }
    Ok(match draft {
        Looked::Found(id) => Found::Draft(Prepared { draft: Some(id) }),
        Looked::TooMany => Found::Unknown { why: "there are too many drafts".to_owned() },
        Looked::NotThere if traces.has_other => {
            Found::Unknown { why: "another reply was sent in its conversation".to_owned() }
        }
        Looked::NotThere => Found::Nothing,
    })
}

/// Deletes the draft of an answer, if there is one. A draft that a person has rewritten has no key any more and stays.
pub(super) async fn discard(calls: &Calls, out: &Outgoing) -> Result<(), MailError> {
    let traces = traces(calls, out).await?;
    let draft = match &traces.draft {
        Some(message) => draft_with(calls, message).await?,
        None => match draft_elsewhere(calls, out).await? {
            Looked::Found(id) => Some(id),
            Looked::NotThere | Looked::TooMany => None,
        },
    };
    let Some(id) = draft else { return Ok(()) };
    match calls.delete::<Ignored>(&item("drafts", &id)?, &calls.any_permit()).await.map_err(either_way) {
        Err(MailError::Refused { status: Some(404), .. }) => Ok(()), // an earlier attempt deleted it
        deleted => deleted.map(drop),
    }
}

/// Looks for the messages of an answer in its thread.
async fn traces(calls: &Calls, out: &Outgoing) -> Result<Traces, MailError> {
    let Some(thread) = &out.thread else { return Ok(Traces::default()) };
    let thread = calls.find::<Thread>(&item("threads", thread.as_str())?, &HEADERS).await?;
    let Some(Thread { messages }) = thread else { return Ok(Traces::default()) };
    let own: Vec<&Message> = messages.iter().filter(|message| has_key(message, out)).collect();
    Ok(Traces {
        has_thread: true,
        sent: own.iter().find(|message| message.has(SENT)).map(|message| sent(message)),
        draft: own.iter().find(|message| message.has(DRAFT)).map(|message| message.id.clone()),
        has_other: messages
            .iter()
            .any(|message| message.has(SENT) && message.header(KEY_HEADER).is_none() && !is_before(message, out.at)),
    })
}

/// Returns the id of the draft with this message.
async fn draft_with(calls: &Calls, message: &str) -> Result<Option<String>, MailError> {
    let mut page: Option<String> = None;
    for _ in 0..MAX_DRAFT_PAGES {
        let answer = drafts(calls, page.as_deref()).await?;
        if let Some(draft) = answer.drafts.into_iter().find(|draft| draft.message.id == message) {
            return Ok(Some(draft.id));
        }
        page = answer.next_page_token;
        if page.is_none() {
            break;
        }
    }
    Ok(None)
}

/// Looks for the draft of an answer among all drafts.
async fn draft_elsewhere(calls: &Calls, out: &Outgoing) -> Result<Looked<String>, MailError> {
    let Drafts { drafts, next_page_token } = drafts(calls, None).await?;
    let has_more = next_page_token.is_some() || drafts.len() > MAX_LOOKED_AT;
    let drafts: Vec<Draft> = drafts.into_iter().take(MAX_LOOKED_AT).collect();
    let read: Vec<_> = drafts.iter().map(|draft| metadata(calls, &draft.message.id)).collect();
    let messages: Vec<Option<Message>> = stream::iter(read).buffered(AT_A_TIME).try_collect().await?;
    let is_own = |message: &Option<Message>| message.as_ref().is_some_and(|message| has_key(message, out));
    Ok(match messages.iter().position(is_own) {
        Some(at) => Looked::Found(drafts[at].id.clone()),
        None if has_more => Looked::TooMany,
        None => Looked::NotThere,
    })
}

/// Looks for an answer among the messages that were sent since it was written.
async fn sent_elsewhere(calls: &Calls, out: &Outgoing) -> Result<Looked<Sent>, MailError> {
    let mut page: Option<String> = None;
    let mut looked_at = 0;
    while looked_at < MAX_LOOKED_AT {
        let mut query = vec![("labelIds", SENT), ("maxResults", "50")];
        query.extend(page.as_deref().map(|page| ("pageToken", page)));
        let answer: Messages = calls.get("/messages", &query).await?;
        looked_at += answer.messages.len();
        let read: Vec<_> = answer.messages.iter().map(|message| metadata(calls, &message.id)).collect();
        let messages: Vec<Option<Message>> = stream::iter(read).buffered(AT_A_TIME).try_collect().await?;
        for message in messages.iter().flatten() {
            if has_key(message, out) {
                return Ok(Looked::Found(sent(message)));
            }
        }
        // The list is newest first, so all others are older.
        if messages.iter().flatten().any(|message| is_before(message, out.at)) {
            return Ok(Looked::NotThere);
        }
        page = answer.next_page_token;
        if page.is_none() {
            return Ok(Looked::NotThere);
        }
    }
    Ok(Looked::TooMany)
}

async fn drafts(calls: &Calls, page: Option<&str>) -> Result<Drafts, MailError> {
    let mut query = vec![("maxResults", "500")];
    query.extend(page.map(|page| ("pageToken", page)));
    calls.get("/drafts", &query).await
}

/// Reads the headers of a message; `None` if it was deleted.
async fn metadata(calls: &Calls, id: &str) -> Result<Option<Message>, MailError> {
    calls.find(&path_of(id)?, &HEADERS).await
}

fn has_key(message: &Message, out: &Outgoing) -> bool {
    // The header holds the key without spaces and other signs that a header cannot hold.
    let key = out.key.chars().filter(char::is_ascii_graphic);
    message.header(KEY_HEADER).is_some_and(|header| header.chars().eq(key))
}

fn is_before(message: &Message, at: Timestamp) -> bool {
    message.internal_date.parse().is_ok_and(|arrived| Timestamp(arrived) + CLOCK_SKEW < at)
}

fn sent(message: &Message) -> Sent {
    let message_id = message.header(MESSAGE_ID).map(|id| id.trim_matches(['<', '>', ' ']).to_owned());
    Sent {
        id: (!message.id.is_empty()).then(|| MailId::new(message.id.clone())),
        thread: (!message.thread_id.is_empty()).then(|| MailThreadId::new(message.thread_id.clone())),
        message_id: message_id.filter(|id| !id.is_empty()),
    }
}

fn just_changed() -> MailError {
    super::calls::unavailable("its draft has just changed")
}
