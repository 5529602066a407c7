//! New mails: by the history of the mailbox, or by the list of the inbox if the history is not known.

use std::collections::HashSet;

use super::{
    super::{
        account::{Batch, MailError, SyncPoint},
        mail::MailId,
    },
    calls::Calls,
    wire::{Changed, DRAFT, HistoryPage, HistoryRecord, INBOX, Message, Messages, Profile},
};

/// The maximum number of pages that are read for one batch. A batch ends with the first page that has mails, so that the
/// point after them is stored soon, however many mails there are.
const MAX_PAGES: usize = 10;
/// The number of items of a page, which is the maximum of the API.
const PAGE_SIZE: &str = "500";

/// A point of the synchronisation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Point {
    /// Everything up to this history id is known.
    History(String),
    /// The inbox is being listed from this page on; the history id was read before the first page.
    List { history: String, page: String },
}

impl Point {
    fn parse(point: &SyncPoint) -> Option<Self> {
        match point.as_str().split_once(':')? {
            ("history", id) if !id.is_empty() => Some(Self::History(id.to_owned())),
            ("list", rest) => {
                let (history, page) = rest.split_once(':')?;
                Some(Self::List { history: history.to_owned(), page: page.to_owned() })
            }
            _ => None,
        }
    }

    fn into_sync_point(self) -> SyncPoint {
        SyncPoint::new(match self {
            Self::History(id) => format!("history:{id}"),
            Self::List { history, page } => format!("list:{history}:{page}"),
        })
    }
}

/// Returns the mails that arrived since a point.
pub(super) async fn sync(calls: &Calls, since: Option<&SyncPoint>) -> Result<Batch, MailError> {
    match since.and_then(Point::parse) {
        Some(Point::History(start)) => match by_history(calls, &start).await? {
            Some(batch) => Ok(batch),
            None => {
                tracing::info!("Gmail no longer knows the last history id; the inbox is listed again");
                by_list(calls, None).await
            }
        },
        Some(Point::List { history, page }) => match by_list(calls, Some((history, page))).await {
            // The token of a page is not valid for ever.
            Err(MailError::Refused { status: Some(400 | 404), .. }) => by_list(calls, None).await,
            batch => batch,
        },
        None => by_list(calls, None).await,
    }
}

/// Reads the history. Returns `None` if it does not reach back to `start`.
async fn by_history(calls: &Calls, start: &str) -> Result<Option<Batch>, MailError> {
    let mut arrived = Arrived::default();
    let mut page: Option<String> = None;
    let mut last = start.to_owned();
    for _ in 0..MAX_PAGES {
        let mut query = vec![
            ("startHistoryId", start),
            ("historyTypes", "messageAdded"),
            ("historyTypes", "labelAdded"),
            ("labelId", INBOX),
            ("maxResults", PAGE_SIZE),
        ];
        query.extend(page.as_deref().map(|page| ("pageToken", page)));
        let Some(answer) = calls.find::<HistoryPage>("/history", &query).await? else { return Ok(None) };
        for record in &answer.history {
            arrived.note(record);
            last.clone_from(&record.id);
        }
        page = answer.next_page_token;
        if page.is_none() {
            let next = Point::History(answer.history_id.unwrap_or(last)).into_sync_point();
            return Ok(Some(Batch { arrived: arrived.mails, next, is_full: false, has_more: false }));
        }
        if !arrived.mails.is_empty() {
            break;
        }
    }
    // The records are in the order of their ids, so the rest begins after the last one.
    let next = Point::History(last).into_sync_point();
    Ok(Some(Batch { arrived: arrived.mails, next, is_full: false, has_more: true }))
}

/// Lists the inbox, newest first, from a page on.
async fn by_list(calls: &Calls, from: Option<(String, String)>) -> Result<Batch, MailError> {
    let (history, mut page) = match from {
        Some((history, page)) => (history, Some(page)),
        // Read before the list: mails that arrive meanwhile are returned twice rather than never.
        None => (calls.get::<Profile>("/profile", &[]).await?.history_id, None),
    };
    let mut arrived = Vec::new();
    for _ in 0..MAX_PAGES {
        let mut query = vec![("labelIds", INBOX), ("maxResults", PAGE_SIZE)];
        query.extend(page.as_deref().map(|page| ("pageToken", page)));
        let answer: Messages = calls.get("/messages", &query).await?;
        arrived.extend(answer.messages.into_iter().map(|message| MailId::new(message.id)));
        page = answer.next_page_token;
        if page.is_none() || !arrived.is_empty() {
            break;
        }
    }
    arrived.reverse();
    let has_more = page.is_some();
    let next = match page {
        Some(page) => Point::List { history, page },
        None => Point::History(history),
    };
    Ok(Batch { arrived, next: next.into_sync_point(), is_full: true, has_more })
}

/// The mails that arrived, each once, in the order of the history.
#[derive(Debug, Default)]
struct Arrived {
    mails: Vec<MailId>,
    known: HashSet<String>,
}

impl Arrived {
    fn note(&mut self, record: &HistoryRecord) {
        let added = record.messages_added.iter().filter(|added| is_in_inbox(&added.message));
        let moved =
            record.labels_added.iter().filter(|Changed { label_ids, .. }| label_ids.iter().any(|id| id == INBOX));
        for Changed { message, .. } in added.chain(moved) {
            if self.known.insert(message.id.clone()) {
                self.mails.push(MailId::new(message.id.clone()));
            }
        }
    }
}

fn is_in_inbox(message: &Message) -> bool {
    message.has(INBOX) && !message.has(DRAFT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_point_is_read_as_it_was_written() {
        let list = Point::List { history: "7".to_owned(), page: "a:b".to_owned() };
        for point in [Point::History("12".to_owned()), list] {
            assert_eq!(Point::parse(&point.clone().into_sync_point()), Some(point));
        }
        for other in ["", "12", "history:", "uid:1:2"] {
            assert_eq!(Point::parse(&SyncPoint::new(other)), None, "{other}");
        }
    }

    #[test]
    fn mails_in_the_inbox_arrive_once_and_drafts_never() {
        let message = |id: &str, labels: &[&str]| json!({ "id": id, "threadId": "t", "labelIds": labels });
        let record: HistoryRecord = serde_json::from_value(json!({
            "id": "5",
            "messagesAdded": [
                { "message": message("a", &["INBOX", "UNREAD"]) },
                { "message": message("b", &["SENT"]) },
                { "message": message("c", &["DRAFT", "INBOX"]) },
            ],
            "labelsAdded": [
                { "message": message("a", &["INBOX"]), "labelIds": ["INBOX"] },
                { "message": message("d", &["INBOX"]), "labelIds": ["INBOX"] },
                { "message": message("e", &["INBOX"]), "labelIds": ["STARRED"] },
            ],
        }))
        .unwrap();
        let mut arrived = Arrived::default();
        arrived.note(&record);
        assert_eq!(arrived.mails, [MailId::new("a"), MailId::new("d")]);
    }
}
