//! Mails for the tests of this crate.

use std::{sync::Mutex, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, UserId},
};
use countersign_graph::action::Reader;

use super::mail_list::{Entry, MailList, MailListError, MailStatus, Overview, Pause};

/// The time at which all mails of the tests were received.
pub(crate) const RECEIVED: Timestamp = Timestamp(1_800_000_000_000);

/// Returns a mail of Ada about prices.
pub(crate) fn entry(id: &str, status: MailStatus) -> Entry {
    Entry {
        id: id.to_owned(),
        sender_name: Some("Ada".to_owned()),
        sender: Some("ada@customer.example".to_owned()),
        subject: "Prices for 20 seats".to_owned(),
        class: Some("inquiry".to_owned()),
        confidence: Some(0.83),
        status,
        why: None,
        received_at: RECEIVED,
        settled_at: None,
        is_automatic: false,
        is_spam: false,
        is_put_away: false,
        thread: None,
        link: Some(format!("https://team.slack.example/{id}")),
    }
}

/// Returns a mail that was answered after this time.
pub(crate) fn answered(id: &str, after: Duration, is_automatic: bool) -> Entry {
    Entry { settled_at: Some(RECEIVED + after), is_automatic, ..entry(id, MailStatus::Sent) }
}

/// A book with these mails.
#[derive(Debug)]
pub(crate) struct FixedMailList {
    pub(crate) channel: ChannelId,
    pub(crate) entries: Vec<Entry>,
    pub(crate) overview: Mutex<Overview>,
    pub(crate) syncs: Mutex<usize>,
    pub(crate) is_broken: bool,
}

impl FixedMailList {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let waiting = entries.iter().filter(|entry| entry.status.waits());
        let overview = Overview {
            account: "team@ours.example".to_owned(),
            last_sync: Some(RECEIVED),
            fault: None,
            paused: None,
            waiting: waiting.clone().count(),
            oldest_waiting: waiting.map(|entry| entry.received_at).min(),
            in_progress: 0,
            is_automatic: false,
            automatic_today: 0,
            automatic_a_day: 50,
        };
        Self { channel: "C5".into(), entries, overview: Mutex::new(overview), syncs: Mutex::new(0), is_broken: false }
    }

    fn all(&self) -> Result<Vec<Entry>, MailListError> {
        match self.is_broken {
            true => Err(MailListError::Unavailable("the store isn't answering".to_owned())),
            false => Ok(self.entries.clone()),
        }
    }
}

#[async_trait]
impl MailList for FixedMailList {
    fn channel(&self) -> &ChannelId {
        &self.channel
    }

    async fn overview(&self) -> Result<Overview, MailListError> {
        self.all()?;
        Ok(self.overview.lock().unwrap().clone())
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<Entry>, MailListError> {
        Ok(self.all()?.into_iter().filter(|entry| entry.status.waits()).take(limit).collect())
    }

    async fn find(&self, words: &str, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let words = words.to_lowercase();
        let fits = |entry: &Entry| {
            entry.id == words || format!("{} {}", entry.from(), entry.subject).to_lowercase().contains(&words)
        };
        Ok(self.all()?.into_iter().filter(fits).take(limit).collect())
    }

    async fn since(&self, since: Timestamp, limit: usize) -> Result<Vec<Entry>, MailListError> {
        let is_recent = |entry: &Entry| entry.received_at.max(entry.settled_at.unwrap_or_default()) >= since;
        Ok(self.all()?.into_iter().filter(is_recent).take(limit).collect())
    }

    async fn sync_soon(&self) -> Result<(), MailListError> {
        self.all()?;
        *self.syncs.lock().unwrap() += 1;
        Ok(())
    }

    async fn set_paused(&self, is_paused: bool, by: &UserId) -> Result<bool, MailListError> {
        self.all()?;
        let mut overview = self.overview.lock().unwrap();
        if overview.paused.is_some() == is_paused {
            return Ok(false);
        }
        overview.paused = is_paused.then(|| Pause { by: by.clone(), at: Some(RECEIVED) });
        Ok(true)
    }
}

/// Returns Ana as the only reader of an answer in this channel.
pub(crate) fn ana_in(channel: &str) -> Reader {
    Reader { by: Some("U1".into()), team: "T1".into(), channel: channel.into(), thread: None, alone: true, zone: None }
}
