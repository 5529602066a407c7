//! Mails that a person answered with a mail program, while they waited here.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use countersign_core::cause::chain;
use countersign_graph::store::Error;
use countersign_mail::{AnswerByHand, MailId};
use futures_util::{StreamExt as _, stream};

use super::{AT_ONCE, MailSync, unreadable};
use crate::{
    register::{Entry, OpenMail},
    state::Arrival,
};

/// The maximum number of mails that are looked at in a round. With more, each round looks at the next ones. Before
/// anything is sent the account is asked again, so this only decides how soon a card closes.
const A_ROUND: usize = 20;

/// The mail that was looked at last.
#[derive(Debug, Default)]
pub(super) struct Rotation(Mutex<Option<MailId>>);

impl Rotation {
    /// Returns the mails to look at in this round.
    fn next(&self, open: &BTreeMap<MailId, OpenMail>) -> Vec<MailId> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = || open.iter().filter(|(_, mail)| mail.status.waits()).map(|(id, _)| id);
        let is_later = |id: &&MailId| last.as_ref().is_none_or(|last| **id > *last);
        let (later, earlier) = (waiting().filter(is_later), waiting().filter(|id| !is_later(id)));
        let next: Vec<MailId> = later.chain(earlier).take(A_ROUND).cloned().collect();
        *last = next.last().cloned();
        next
    }
}

impl MailSync {
    /// Has the threads of mails that were answered with a mail program close their cards. A failure is logged; a later
    /// round looks again.
    pub(super) async fn notice_answers(&self, open: &BTreeMap<MailId, OpenMail>) {
        let looked_at = stream::iter(self.1.next(open)).map(|id| self.notice_answer(id)).buffered(AT_ONCE);
        looked_at.collect::<Vec<()>>().await;
    }

    async fn notice_answer(&self, id: MailId) {
        let entry = match self.0.book.entry(&id).await {
            Ok(Some(entry)) => entry,
            Ok(None) => return,
            Err(error) => return tracing::warn!(error = chain(&error), "Cannot read the entry of a waiting mail"),
        };
        let Some(incoming) = entry.incoming() else { return };
        match self.0.account.answered_by_hand(&incoming).await {
            Ok(None) => {}
            Ok(Some(answer)) => {
                if let Err(error) = self.tell_thread(&entry, answer).await {
                    tracing::warn!(error = chain(&error), "Cannot tell a thread that its mail was answered");
                }
            }
            Err(error) => tracing::warn!(error = chain(&error), "Cannot look for an answer in the mailbox"),
        }
    }

    async fn tell_thread(&self, entry: &Entry, answer: AnswerByHand) -> Result<(), Error> {
        let Some(thread) = &entry.thread else { return Ok(()) };
        // The thread knows the mail itself.
        let mail = unreadable(&entry.mail, entry.received_at);
        let key = format!("{}#answered", entry.mail);
        let arrival = Arrival { answered: Some(answer), ..Arrival::new(&mail, None, false) };
        self.store_event(thread, &key, &arrival).await?;
        (self.0.wake)(thread.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::Timestamp;
    use countersign_mail::MailStatus;

    use super::*;

    #[test]
    fn every_waiting_mail_has_its_turn() {
        let mail = |status| OpenMail { status, received_at: Timestamp(1) };
        let mut open: BTreeMap<MailId, OpenMail> =
            (10..55).map(|nth| (MailId::new(format!("m{nth}")), mail(MailStatus::NeedsReview))).collect();
        open.insert(MailId::new("m00"), mail(MailStatus::Processing));
        let rotation = Rotation::default();
        let rounds: Vec<Vec<String>> =
            (0..3).map(|_| rotation.next(&open).iter().map(ToString::to_string).collect()).collect();
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 20]);
        assert_eq!((rounds[0][0].as_str(), rounds[1][0].as_str(), rounds[2][0].as_str()), ("m10", "m30", "m50"));
        assert_eq!(rounds[2][5], "m10", "after the last one the first one follows");
        assert!(rotation.next(&BTreeMap::new()).is_empty());
    }
}
