//! The mails as people see them, read from the graph's list.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use countersign_conversation::presentation::links::Links;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{ChannelId, UserId},
};
use countersign_email::{
    automatic::AutomaticAnswers,
    register::{self, MailRegister},
    rules::AutomaticSettings,
    sync::{SyncControl, SyncState},
};
use countersign_graph::store;
use countersign_mail::MailId;
use countersign_team_inbox::mail_list::{Entry, MailList, MailListError, MailStatus, Overview, Pause};

/// The number of newest mails among which those of a question are looked for.
const MAX_READ: usize = 10_000;

/// The mails of the account, for the surfaces.
pub(super) struct ShownMails {
    /// The graph's list.
    pub(super) book: MailRegister,
    /// The control of the synchronization.
    pub(super) control: SyncControl,
    /// The address of the account.
    pub(super) account: String,
    /// The channel in which each mail has a thread.
    pub(super) channel: ChannelId,
    /// The settings for automatic answers.
    pub(super) settings: AutomaticSettings,
    /// The automatic answers that were sent.
    pub(super) automatic: Arc<AutomaticAnswers>,
    /// The builder of links to threads.
    pub(super) links: Links,
    /// The clock.
    pub(super) clock: Arc<dyn Clock>,
}

impl fmt::Debug for ShownMails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShownMails").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl ShownMails {
    async fn newest(&self, limit: usize) -> Result<Vec<register::Entry>, MailListError> {
        self.book.newest(limit).await.map_err(|error| unavailable(&error))
    }

    async fn state(&self) -> Result<SyncState, MailListError> {
        self.control.state().await.map_err(|error| unavailable(&error))
    }

    fn shown(&self, entry: register::Entry) -> Entry {
        let (status, is_put_away) = (entry.status, entry.is_put_away());
        let thread = entry.thread.as_ref();
        Entry {
            id: entry.mail.as_str().to_owned(),
            sender_name: entry.sender_name,
            link: thread.and_then(|thread| self.links.message(&thread.channel, &thread.root, &thread.root)),
            sender: entry.sender,
            subject: entry.subject,
            confidence: entry.class.map(|_| entry.confidence),
            class: entry.class.map(|class| class.as_str().to_owned()),
            status,
            why: entry.why.filter(|_| status.waits()),
            received_at: entry.received_at,
            settled_at: status.is_settled().then_some(entry.updated_at),
            is_automatic: entry.is_automatic && status == MailStatus::Sent,
            is_spam: entry.is_spam,
            is_put_away,
            thread: entry.thread,
        }
    }
}

#[async_trait]
impl MailList for ShownMails {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    async fn overview(&self) -> Result<Overview, MailListError> {
        let now = self.clock.now();
        let state = self.state().await?;
        let open = self.book.open().await.map_err(|error| unavailable(&error))?;
        let used = self.automatic.used("", now).await.map_err(|error| unavailable(&error))?;
        let waiting = open.values().filter(|mail| mail.status.waits());
        Ok(Overview {
            account: self.account.clone(),
            last_sync: state.synced_at,
            fault: state.problem.map(|problem| problem.trim_end_matches('.').to_owned()),
            paused: state.paused_by.map(|by| Pause { by, at: state.paused_at }),
            waiting: waiting.clone().count(),
            oldest_waiting: waiting.clone().map(|mail| mail.received_at).min(),
            in_progress: open.len() - waiting.count(),
            is_automatic: self.settings.is_on,
            automatic_today: used.today,
            automatic_a_day: self.settings.answers_a_day,
        })
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let waiting = self.book.waiting(limit).await.map_err(|error| unavailable(&error))?;
        Ok(waiting.into_iter().map(|entry| self.shown(entry)).collect())
    }

    async fn find(&self, words: &str, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let by_id = self.book.entry(&MailId::new(words.trim())).await.map_err(|error| unavailable(&error))?;
        if let Some(entry) = by_id {
            return Ok(vec![self.shown(entry)]);
        }
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let fits = |entry: &register::Entry| {
            let (name, address) = (entry.sender_name.as_deref(), entry.sender.as_deref());
            let sender = format!("{} {}", name.unwrap_or_default(), address.unwrap_or_default());
            let text = format!("{sender} {}", entry.subject).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let found = self.newest(MAX_READ).await?.into_iter().filter(fits);
        Ok(found.take(limit).map(|entry| self.shown(entry)).collect())
    }

    async fn since(&self, since: Timestamp, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let shown = self.newest(MAX_READ).await?.into_iter().map(|entry| self.shown(entry));
        let is_new = |entry: &Entry| entry.received_at >= since || entry.settled_at.is_some_and(|at| at >= since);
        Ok(shown.filter(is_new).take(limit).collect())
    }

    async fn sync_soon(&self) -> Result<(), MailListError> {
        self.control.sync_now();
        Ok(())
    }

    async fn set_paused(&self, is_paused: bool, by: &UserId) -> Result<bool, MailListError> {
        if self.state().await?.paused_by.is_some() == is_paused {
            return Ok(false);
        }
        let changed =
            if is_paused { self.control.pause(by, self.clock.now()).await } else { self.control.resume().await };
        changed.map(|()| true).map_err(|error| unavailable(&error))
    }
}

fn unavailable(error: &store::Error) -> MailListError {
    MailListError::Unavailable(cause::chain(error))
}
