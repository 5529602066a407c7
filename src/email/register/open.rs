//! The mails that are not settled yet: an index of the list, in [`SHARDS`] registers.
//!
//! An entry and its place in the index are two writes. Every change of an entry is followed by a write that copies the
//! entry as it is then. A process that is killed between the two repeats its step, and with it the second write.

use std::collections::BTreeMap;

use countersign_core::clock::Timestamp;
use countersign_graph::store::Error;
use countersign_mail::{MailId, MailStatus};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::{Entry, MailRegister, READ_AT_ONCE};

/// The number of registers of the index. A change rewrites one of them.
const SHARDS: u8 = 32;

/// A mail that is not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenMail {
    /// The status.
    pub status: MailStatus,
    /// The time at which the server received it.
    pub received_at: Timestamp,
}

/// A part of the index.
type Shard = BTreeMap<MailId, OpenMail>;

impl MailRegister {
    /// Returns all mails that are neither answered nor rejected.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn open(&self) -> Result<BTreeMap<MailId, OpenMail>, Error> {
        let shards = stream::iter(0..SHARDS)
            .map(|shard| async move { Ok::<_, Error>(self.register::<Shard>(&self.shard_key(shard)).load().await?.1) });
        let shards: Vec<Shard> = shards.buffered(READ_AT_ONCE).try_collect().await?;
        Ok(shards.into_iter().flatten().collect())
    }

    /// Returns the mails that wait for a person, oldest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// Fails if the store isn't answering.
    pub async fn waiting(&self, limit: usize) -> Result<Vec<Entry>, Error> {
        let mut open: Vec<_> = self.open().await?.into_iter().filter(|(_, mail)| mail.status.waits()).collect();
        open.sort_by_key(|(_, mail)| mail.received_at);
        let ids = open.into_iter().map(|(id, _)| id);
        let entries = stream::iter(ids).map(|id| async move { self.entry(&id).await }).buffered(READ_AT_ONCE);
        let waiting = entries.try_filter_map(async |entry| Ok(entry.filter(|entry| entry.status.waits())));
        waiting.take(limit).try_collect().await
    }

    /// Copies the status of a mail into the index, or removes the mail from it.
    pub(super) async fn index(&self, mail: &MailId) -> Result<(), Error> {
        let register = self.register::<Shard>(&self.shard_key(shard_of(mail)));
        let indexed = register.change_with(|mut shard| async move {
            // The entry is read after the register, so the last write has the last status.
            match self.entry(mail).await?.filter(|entry| !entry.status.is_settled()) {
                Some(Entry { status, received_at, .. }) => shard.insert(mail.clone(), OpenMail { status, received_at }),
                None => shard.remove(mail),
            };
            Ok::<_, Error>((shard, ()))
        });
        indexed.await
    }

    fn shard_key(&self, shard: u8) -> String {
        self.key("open", &shard.to_string())
    }
}

fn shard_of(mail: &MailId) -> u8 {
    mail.as_str().bytes().fold(0_u8, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte)) % SHARDS
}

#[cfg(test)]
mod tests {
    use countersign_mail::Mail;

    use super::*;
    use crate::tests::support::{TestStore, mail};

    #[tokio::test]
    async fn all_open_mails_are_known_however_many_came_after_them() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        for nth in 0..150_i64 {
            let mail = Mail { id: MailId::new(format!("m{nth}")), received_at: Timestamp(nth), ..mail() };
            book.add(Entry::new(&mail, Timestamp(nth))).await.unwrap();
        }
        assert_eq!(book.open().await.unwrap().len(), 150);
        for id in ["m7", "m3", "m149"] {
            for status in [MailStatus::Processing, MailStatus::NeedsReview] {
                book.update(&MailId::new(id), |entry| entry.move_to(status, Timestamp(200))).await.unwrap();
            }
        }
        let waiting = book.waiting(2).await.unwrap();
        assert_eq!(waiting.iter().map(|entry| entry.mail.as_str()).collect::<Vec<_>>(), ["m3", "m7"]);
        book.update(&MailId::new("m3"), |entry| entry.move_to(MailStatus::Sent, Timestamp(300))).await.unwrap();
        let open = book.open().await.unwrap();
        assert!(!open.contains_key(&MailId::new("m3")), "it is settled");
        assert_eq!(open.values().filter(|mail| mail.status.waits()).count(), 2);
    }

    #[tokio::test]
    async fn a_write_that_was_lost_is_made_up_for() {
        let store = TestStore::open();
        let book = MailRegister::new(store.store.clone(), "us@example.com");
        let entry = book.add(Entry::new(&mail(), Timestamp(1))).await.unwrap();
        let processing = |entry: &mut Entry| entry.move_to(MailStatus::Processing, Timestamp(2));
        // The process is killed after the first of two writes.
        let key = book.key("entry", entry.mail.as_str());
        book.change(&key, |known: Option<Entry>| known.map(|mut entry| (processing(&mut entry), entry).1))
            .await
            .unwrap();
        assert_eq!(book.open().await.unwrap()[&entry.mail].status, MailStatus::Pending);
        assert!(book.update(&entry.mail, processing).await.unwrap().is_none(), "the step is repeated");
        assert_eq!(book.open().await.unwrap()[&entry.mail].status, MailStatus::Processing);
    }
}
