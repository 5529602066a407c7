//! Deletes what is known about old mails, as `[record]` says.
//!
//! The content of a mail's thread is deleted as that of any other thread ([`countersign_conversation::record`]). This
//! deletes the rest after the same time: its entry's sender and subject, the answer that is remembered for its sender,
//! and its text among the similar mails.

use std::{sync::Arc, time::Duration};

use countersign_config::{Kept, Record};
use countersign_context::Context;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
};
use countersign_email::register::{Entry, MailRegister, MailStatus};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The time between two rounds.
const EVERY: Duration = Duration::from_secs(3600);

/// The number of newest mails that are looked at in a round.
const MAX_READ: usize = 100_000;

/// The deletion of what is known about old mails.
pub(super) struct MailRetention {
    book: MailRegister,
    context: Arc<Context>,
    clock: Arc<dyn Clock>,
    keep: Option<Duration>,
    kept: Kept,
}

impl MailRetention {
    /// Creates it from the settings.
    pub(super) fn new(book: MailRegister, context: Arc<Context>, clock: Arc<dyn Clock>, settings: &Record) -> Self {
        Self { book, context, clock, keep: settings.keep, kept: settings.kept }
    }

    /// Makes rounds until the signal to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut rounds = interval(EVERY);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(rounds.tick()).await.is_some() {
            match self.round().await {
                Ok(0) => {}
                Ok(mails) => tracing::info!(mails, "Deleted what was known about old mails"),
                Err(error) => {
                    tracing::warn!(error = cause::chain(&*error), "Cannot delete what is known about old mails");
                }
            }
        }
    }

    /// Makes one round. Returns the number of mails about which something was deleted.
    async fn round(&self) -> anyhow::Result<u64> {
        let Some(keep) = self.keep.filter(|_| self.kept != Kept::Whole) else { return Ok(0) };
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(self.clock.now().millis().saturating_sub(keep));
        let texts = self.context.store().forget_before(before).await?;
        let mut entries = 0;
        for entry in self.book.newest(MAX_READ).await?.into_iter().filter(|entry| is_over(entry, before)) {
            self.book.forget(&entry.mail).await?;
            entries += 1;
        }
        Ok(texts.max(entries))
    }
}

/// Returns true if a mail is finished, has not changed since, and something about it is still known.
fn is_over(entry: &Entry, before: Timestamp) -> bool {
    let is_finished = matches!(entry.status, MailStatus::Sent | MailStatus::Rejected);
    let is_known = entry.sender.is_some() || !entry.subject.is_empty();
    is_finished && is_known && entry.updated_at < before
}

#[cfg(test)]
mod tests {
    use countersign_config::Config;
    use countersign_context::{contacts::StoredContacts, sqlite::SqliteContext};
    use countersign_core::clock::ManualClock;
    use countersign_mail::{Mail, MailId, RawMail};
    use countersign_store::sqlite::SqliteStore;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[tokio::test]
    async fn only_finished_mails_are_forgotten_and_only_after_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(SqliteStore::open(folder.path().join("threads.sqlite"), clock.clone()).unwrap());
        let book = MailRegister::new(store, "support@example.com");
        let texts = Arc::new(SqliteContext::open(&folder.path().join("context.sqlite")).unwrap());
        let contacts = Arc::new(StoredContacts::new(texts.clone(), "support@example.com"));
        let context = Arc::new(Context::new("support@example.com", texts, contacts));
        for (id, ends) in [("answered", &[MailStatus::Processing, MailStatus::Sent][..]), ("waits", &[])] {
            let raw = RawMail {
                id: MailId::new(id),
                thread: None,
                received_at: clock.now(),
                labels: Vec::new(),
                bytes: b"From: Dana <dana@example.org>\r\nSubject: Prices\r\n\r\nHow much?".to_vec(),
                size: 60,
                is_cut: false,
            };
            let entry = book.add(Entry::new(&Mail::read(&raw), clock.now())).await.unwrap();
            for status in ends {
                book.update(&entry.mail, |entry| entry.move_to(*status, clock.now())).await.unwrap();
            }
        }
        let mut record = Config::load(None, &Default::default(), &Default::default()).unwrap().record;
        record.keep = Some(DAY);
        let retention = MailRetention::new(book.clone(), context, clock.clone(), &record);
        assert_eq!(retention.round().await.unwrap(), 0, "it is not old enough");
        clock.advance(2 * DAY);
        assert_eq!(retention.round().await.unwrap(), 1);
        let known = async |id: &str| book.entry(&MailId::new(id)).await.unwrap().unwrap().sender;
        assert_eq!(known("answered").await, None);
        assert_eq!(known("waits").await.as_deref(), Some("dana@example.org"));
        assert_eq!(retention.round().await.unwrap(), 0, "nothing is left to forget");
    }
}
