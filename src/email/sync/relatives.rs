//! What a mail means for the threads of others: a newer one in their conversation, or another copy of theirs.

use countersign_graph::store::Error;
use countersign_mail::{Mail, MailId};

use super::{Brought, MailSync, store_problem, unreadable};
use crate::{register::Entry, state::Arrival};

impl MailSync {
    /// Tells the threads of other mails about those that were brought in. Each is told once, however often it is tried.
    ///
    /// # Errors
    ///
    /// The problem of the round, as a sentence, if one of the mails could not be brought in or its relatives not be told.
    pub(super) async fn tell_relatives(&self, brought: Vec<Brought>) -> Result<(), String> {
        let mut problem = None;
        for one in brought {
            let told = match one {
                Brought::New(entry) | Brought::Known(entry) => self.tell_older(&entry).await,
                Brought::Copy(copy, original) => self.tell_original(&copy, &original).await,
                Brought::Skipped => Ok(()),
                Brought::Failed(failed) => {
                    problem.get_or_insert(failed);
                    Ok(())
                }
            };
            if let Err(error) = told {
                problem.get_or_insert(store_problem(&error));
            }
        }
        problem.map_or(Ok(()), Err)
    }

    /// Tells the waiting mails of the same conversation that a newer one came.
    async fn tell_older(&self, newer: &Entry) -> Result<(), Error> {
        if newer.quiet.is_some() || newer.status.is_settled() {
            return Ok(());
        }
        for older in self.0.book.before(newer, Vec::new()).await? {
            let Some(thread) = older.thread.clone().filter(|_| !older.status.is_settled() && older.quiet.is_none())
            else {
                continue;
            };
            if older.newer.as_ref().is_some_and(|known| *known != newer.mail) {
                continue;
            }
            let noted = |entry: &mut Entry| entry.newer.replace(newer.mail.clone()).is_none();
            self.0.book.update(&older.mail, noted).await?;
            let event = Arrival {
                newer: Some(newer.mail.clone()),
                ..Arrival::new(&unreadable(&older.mail, older.received_at), None, false)
            };
            self.store_event(&thread, &format!("{}#newer", older.mail), &event).await?;
            (self.0.wake)(thread);
        }
        Ok(())
    }

    /// Gives another copy of a mail to its thread, which shows it if its text differs.
    async fn tell_original(&self, copy: &Mail, original: &MailId) -> Result<(), Error> {
        let Some(thread) = self.0.book.entry(original).await?.and_then(|entry| entry.thread) else { return Ok(()) };
        let event = Arrival { is_copy: true, ..Arrival::new(copy, None, false) };
        self.store_event(&thread, &format!("{}#copy", copy.id), &event).await?;
        (self.0.wake)(thread);
        Ok(())
    }
}
