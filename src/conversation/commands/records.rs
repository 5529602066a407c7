//! What waits, what was done and what somebody asked for: from the store, with links to the cards.

use super::{
    super::{
        approvals::named_now::Named,
        links::{Links, linked},
        undelivered,
    },
    replies,
    sight::Asker,
};
use crate::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Label, Status},
        engine::PolicyFor,
        store::{Error, Store},
    },
    ids::UserId,
    reply::{Reply, Text},
};

/// How many actions are listed; one more is asked for, to know whether that was all.
const LISTED: usize = 15;

/// How many dead letters are looked through.
const LOOKED_THROUGH: usize = 1000;

/// Reads actions.
pub struct Records<'a> {
    /// Where they are.
    pub store: &'a dyn Store,
    /// Who may decide.
    pub policy_for: &'a PolicyFor,
    /// Where their cards are.
    pub links: &'a Links,
    /// What time it is.
    pub now: Timestamp,
}

impl Records<'_> {
    /// What waits for a decision, as far as the asker may see it.
    pub async fn pending(&self, asker: &Asker) -> Result<Reply, Error> {
        let found = self.store.actions_under(&asker.waiting(), &[Status::Pending], LISTED + 1).await?;
        let named = Named { user: &asker.by, groups: &asker.groups, is_named: asker.is_named };
        let mut found = named.with_those_of_now(self.store, self.policy_for, found).await?;
        found.truncate(LISTED + 1);
        let letters = self.store.dead_letters(LOOKED_THROUGH).await?;
        let is_shown = |record: &ActionRecord| !letters.iter().any(|letter| letter.fills(&record.thread, &record.slot));
        let lines = self.lines(&found, |record| replies::waiting(record, is_shown(record), self.now)).await?;
        let reply = replies::pending(lines, found.len() > LISTED, self.now);
        Ok(undelivered::listed(reply, &letters, asker, &found, self.links))
    }

    /// The latest changes, as far as the asker may see them.
    pub async fn runs(&self, asker: &Asker) -> Result<Reply, Error> {
        let found = self.store.actions_under(&asker.done(), &[], LISTED + 1).await?;
        let lines = self.lines(&found, replies::run).await?;
        Ok(replies::runs(lines, found.len() > LISTED, self.now))
    }

    /// What somebody asked for.
    pub async fn mine(&self, by: &UserId) -> Result<Reply, Error> {
        let found = self.store.actions_under(&[Label::AskedBy(by.clone())], &[], LISTED + 1).await?;
        let lines = self.lines(&found, replies::own).await?;
        Ok(replies::mine(lines, found.len() > LISTED, self.now))
    }

    async fn lines(&self, records: &[ActionRecord], line: impl Fn(&ActionRecord) -> Text) -> Result<Vec<Text>, Error> {
        let mut lines = Vec::new();
        for record in records.iter().take(LISTED) {
            lines.push(linked(line(record), self.links.card(record).await?, "open the card"));
        }
        Ok(lines)
    }
}
