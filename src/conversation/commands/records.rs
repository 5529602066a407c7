//! Lists a person's open, past and own actions from the store, with links to the cards.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Label, Status},
    engine::PolicyFor,
    store::{ActionFilter, DeadLetter, Error, Store},
};

use super::replies::{self, CardVisibility};
use crate::{
    approvals::approvers::NamedApprover,
    presentation::links::{Links, linked},
    record::{sight::Asker, undelivered},
};

/// The maximum number of actions that are listed. One more is read, to find out whether there are
/// more.
const MAX_LISTED: usize = 15;

/// The time after a request within which its card should be posted.
const SHOWN_WITHIN: Duration = Duration::from_secs(60);

/// The maximum number of dead letters that are searched.
pub(super) const MAX_DEAD_LETTERS: usize = 1000;

/// Reads lists of actions.
pub struct Records<'a> {
    /// The store of the actions.
    pub store: &'a dyn Store,
    /// The current policy for an action.
    pub policy_for: &'a PolicyFor,
    /// The links to the cards.
    pub links: &'a Links,
    /// The current time.
    pub now: Timestamp,
}

impl Records<'_> {
    /// Lists the cards that wait for a decision and that the asker may see.
    pub async fn pending(&self, asker: &Asker) -> Result<Reply, Error> {
        let found =
            self.store.actions(&ActionFilter::under(&asker.waiting(), &[Status::Pending], MAX_LISTED + 1)).await?;
        let channels = BTreeSet::new(); // the cards of this channel are found by its label
        let named =
            NamedApprover { user: &asker.by, groups: &asker.groups, is_named: asker.is_named, channels: &channels };
        let mut found = named.with_current_cards(self.store, self.policy_for, found).await?;
        found.truncate(MAX_LISTED + 1);
        let letters = self.store.dead_letters(MAX_DEAD_LETTERS).await?;
        let mut lines = Vec::new();
        for record in found.iter().take(MAX_LISTED) {
            let visibility = visibility_of(self.store, &letters, record, self.now).await?;
            let line = replies::waiting(record, visibility, self.now);
            lines.push(match visibility {
                CardVisibility::Refused => line,
                CardVisibility::Shown | CardVisibility::NotYet => self.with_link(record, line).await?,
            });
        }
        let reply = replies::pending(lines, found.len() > MAX_LISTED, self.now);
        Ok(undelivered::with_undelivered(reply, &letters, asker, &found, self.links))
    }

    /// Lists the latest changes that the asker may see.
    pub async fn runs(&self, asker: &Asker) -> Result<Reply, Error> {
        let found = self.store.actions(&ActionFilter::under(&asker.done(), &[], MAX_LISTED + 1)).await?;
        let lines = self.lines(&found, replies::run).await?;
        Ok(replies::runs(lines, found.len() > MAX_LISTED, self.now))
    }

    /// Lists a person's own requests.
    pub async fn mine(&self, by: &UserId) -> Result<Reply, Error> {
        let found =
            self.store.actions(&ActionFilter::under(&[Label::AskedBy(by.clone())], &[], MAX_LISTED + 1)).await?;
        let lines = self.lines(&found, replies::own).await?;
        Ok(replies::mine(lines, found.len() > MAX_LISTED, self.now))
    }

    async fn lines(&self, records: &[ActionRecord], line: impl Fn(&ActionRecord) -> Text) -> Result<Vec<Text>, Error> {
        let mut lines = Vec::new();
        for record in records.iter().take(MAX_LISTED) {
            lines.push(self.with_link(record, line(record)).await?);
        }
        Ok(lines)
    }

    /// Appends a link to the card, if it is posted.
    async fn with_link(&self, record: &ActionRecord, line: Text) -> Result<Text, Error> {
        Ok(linked(line, self.links.slot(&record.thread, &record.slot).await?, "open the card"))
    }
}

/// Returns the visibility of an open action's card.
///
/// # Errors
///
/// If the store isn't answering.
pub async fn visibility_of(
    store: &dyn Store,
    letters: &[DeadLetter],
    record: &ActionRecord,
    now: Timestamp,
) -> Result<CardVisibility, Error> {
    if letters.iter().any(|letter| letter.fills(&record.thread, &record.slot)) {
        return Ok(CardVisibility::Refused);
    }
    let is_due = record.requested_at + SHOWN_WITHIN <= now;
    let is_missing = is_due && store.posted(&record.thread, &record.slot).await?.is_none();
    Ok(if is_missing { CardVisibility::NotYet } else { CardVisibility::Shown })
}
