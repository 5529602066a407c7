//! Messages that people edit or delete while a card that they led to is open. The card keeps what it shows, and it and the
//! thread say what happened to the message; the people who decide know better what it means.

use countersign_core::{
    ids::{CommitId, MessageTs, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    request::reply_in_thread,
    store::{ActionChange, ActionFilter, Changes, Error, Seq, Store, Version},
};
use serde::{Deserialize, Serialize};

use super::{
    MAX_WRITE_ATTEMPTS, completing,
    inbox::{Approvals, InboxAnswer, lost_race},
};

/// The maximum number of open cards of a thread that are considered.
const MAX_CARDS: usize = 20;

/// The maximum number of the newest steps of a thread that are searched for the message.
const MAX_STEPS: usize = 500;

/// A message that a person edited or deleted, as stored in the inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedMessage {
    /// The thread.
    pub thread: ThreadId,
    /// The message.
    pub ts: MessageTs,
    /// Its author.
    pub by: UserId,
    /// True if it was deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

impl ChangedMessage {
    /// Returns the warning on the card.
    fn warning(&self) -> Text {
        let text = Text::from("The message that asked for this was ");
        text.plain(if self.deleted { "deleted" } else { "edited" }).plain(" after this card was posted.")
    }

    /// Returns the reply in the thread.
    fn reply(&self, record: &ActionRecord) -> Reply {
        let text = Text::new().person(self.by.clone()).plain(if self.deleted { " deleted" } else { " edited" });
        let text = text.plain(" the message that asked for this, after its card was posted: ").bold(record.act());
        Reply::text(text.plain(". The card still shows the change as it was asked for."))
            .hint("If that is no longer wanted, withdraw or reject it and ask again.")
    }
}

/// Returns the open cards of a thread that a person asked for.
///
/// # Errors
///
/// If the store isn't answering.
pub async fn open_cards_of(store: &dyn Store, thread: &ThreadId, by: &UserId) -> Result<Vec<ActionRecord>, Error> {
    let mut open = store.actions(&ActionFilter::of(thread, &[Status::Pending], MAX_CARDS)).await?;
    open.retain(|record| record.requested_by == *by);
    Ok(open)
}

impl Approvals {
    /// Notes on the open cards that a message led to that it was edited or deleted.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn on_changed_message(&self, changed: &ChangedMessage, seq: Seq) -> Result<InboxAnswer, Error> {
        let ChangedMessage { thread, by, .. } = changed;
        let open = open_cards_of(&*self.store, thread, by).await?;
        // The steps are read only if a card is open, since threads can be long.
        let runs = if open.is_empty() { Vec::new() } else { self.runs_begun_by(changed).await? };
        let mut noted = false;
        for record in open.into_iter().filter(|record| runs.contains(&record.run.to_string())) {
            noted |= self.note_change(record, changed).await?;
        }
        if !noted {
            return Ok(InboxAnswer::NoAnswer);
        }
        let changes = completing(thread, seq);
        self.store.apply(&changes).await?;
        Ok(InboxAnswer::Counted(thread.clone()))
    }

    /// Returns the runs that a message began.
    async fn runs_begun_by(&self, changed: &ChangedMessage) -> Result<Vec<String>, Error> {
        let Some(saved) = self.store.load(&changed.thread).await? else { return Ok(Vec::new()) };
        let after = saved.version.saturating_sub(MAX_STEPS as Version);
        let steps = self.store.steps(&changed.thread, after, MAX_STEPS).await?;
        let begins = |input: &serde_json::Value| {
            // A button says something for a person, and is no message.
            input["kind"] == "said" && input["ts"] == changed.ts.as_str() && input["request"].is_null()
        };
        let begun = steps.iter().filter(|(_, step)| step.input.as_ref().is_some_and(begins));
        Ok(begun.map(|(_, step)| step.run.to_string()).collect())
    }

    /// Notes on a card, and in its thread, that its message was changed. Returns false if that was noted before, or the
    /// card is no longer open.
    async fn note_change(&self, mut record: ActionRecord, changed: &ChangedMessage) -> Result<bool, Error> {
        let warning = changed.warning();
        for _ in 0..MAX_WRITE_ATTEMPTS {
            if !record.status.is_open() || record.card.warnings.contains(&warning) {
                return Ok(false);
            }
            let now = self.clock.now();
            let moved = record.moved(Status::Pending);
            let mut noted = moved.map_err(|error| Error::Corrupt { what: format!("action {}: {error}", record.id) })?;
            noted.card.warnings.push(warning.clone());
            let mut changes = Changes::new(CommitId::fresh(), record.thread.clone());
            changes.audit.push(noted.shown(now));
            changes.outbox.push(noted.card_message(now));
            let slot = format!("changed:{}", record.id);
            changes.outbox.push(reply_in_thread(slot, now, changed.reply(&record)));
            changes.actions.push(ActionChange { expected: Some(record.revision), record: noted });
            match self.store.apply(&changes).await {
                Ok(()) => return Ok(true),
                Err(Error::ActionMoved { current: Some(current), .. }) => record = *current,
                Err(Error::ActionMoved { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Err(lost_race(record))
    }
}
