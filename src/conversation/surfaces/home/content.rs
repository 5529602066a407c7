//! The content of one person's Home tab.
//!
//! Cards have buttons for everyone who may decide: people who are named as a user, as the requester
//! or by a user group, and the members of a channel that decides. If Slack does not say who is a
//! member, for which the app needs a scope, the tab says only *that* a card waits in the channel,
//! with a link that works only for those who can read the channel, and only for channels in which
//! the person requested or decided something before. The tab also shows the actions of other people
//! that the person decided on.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    clock::Timestamp,
    ids::{ActionId, ChannelId, UserId},
};
use countersign_graph::{
    action::{ActionRecord, Approver, Label, Status},
    engine::PolicyFor,
    store::{ActionFilter, Error, Store},
};
use serde::{Deserialize, Serialize};

use crate::{
    approvals::{approvers::NamedApprover, groups::Groups, policy},
    presentation::links::Links,
    record::sight::approver_labels,
};

/// The number of cards with buttons on a page.
pub const CARDS_PER_PAGE: usize = 3;

/// The number of lines of all other lists on a page.
pub const LINES_PER_PAGE: usize = 5;

/// The maximum number of actions that are read for one list.
const MAX_ACTIONS: usize = 200;

/// The maximum number of channels that are looked at for cards that everyone in them may decide.
const MAX_CHANNELS: usize = 10;

const CLOSED: [Status; 8] = [
    Status::Done,
    Status::Failed,
    Status::Unknown,
    Status::Settled,
    Status::Rejected,
    Status::Expired,
    Status::Superseded,
    Status::Cancelled,
];

/// The page of each list that is shown, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Pages {
    /// The page of the cards that wait.
    pub waiting: u16,
    /// The page of the person's requests.
    pub asked: u16,
    /// The page of the actions in progress.
    pub running: u16,
    /// The page of the past decisions.
    pub lately: u16,
}

impl Pages {
    /// Returns true if this is the first page of all lists.
    pub fn is_first(&self) -> bool {
        *self == Self::default()
    }
}

/// The actions that the tab shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The cards that this person may decide here.
    pub waiting: ListPage,
    /// The cards that everyone in a channel may decide, by channel, if the person is not known to be a member.
    pub elsewhere: BTreeMap<ChannelId, Vec<Item>>,
    /// This person's open requests.
    pub asked: ListPage,
    /// The actions in progress.
    pub running: ListPage,
    /// The past decisions.
    pub lately: ListPage,
    /// The pages that are shown.
    pub pages: Pages,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListPage {
    /// The items on the page.
    pub items: Vec<Item>,
    /// True if there is another page.
    pub more: bool,
}

/// An action and the address of its card.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The action.
    pub record: ActionRecord,
    /// The address of the card; `None` if the workspace's address is not known.
    pub link: Option<String>,
}

impl Content {
    /// Returns a value that changes whenever the shown content changes.
    pub fn fingerprint(&self) -> Vec<(ActionId, u64)> {
        let lists = [&self.waiting, &self.asked, &self.running, &self.lately];
        let listed = lists.into_iter().flat_map(|list| &list.items);
        let all = listed.chain(self.elsewhere.values().flatten());
        all.map(|item| (item.record.id.clone(), item.record.revision)).collect()
    }
}

/// Returns the time of the last decision, or of the request if there is none.
fn decided_at(record: &ActionRecord) -> Timestamp {
    record.decisions.last().map_or(record.requested_at, |last| last.at)
}

/// Returns the channels with open cards of which a person is a member.
///
/// # Errors
///
/// If the store isn't answering.
pub async fn channels_with_cards(
    store: &dyn Store,
    groups: &Groups,
    user: &UserId,
) -> Result<BTreeSet<ChannelId>, Error> {
    let open = ActionFilter::all(&[Status::Pending], MAX_ACTIONS);
    let mut channels = Vec::new();
    for record in store.actions(&open).await? {
        let channel = record.thread.channel;
        if !channel.is_direct() && !channels.contains(&channel) {
            channels.push(channel);
        }
    }
    channels.truncate(MAX_CHANNELS);
    Ok(groups.channels_of(user, channels).await)
}

/// Reads the content for one person.
pub struct Reader<'a> {
    /// The store of the actions.
    pub store: &'a dyn Store,
    /// The links to their cards.
    pub links: &'a Links,
    /// The current policy for an action.
    pub policy_for: &'a PolicyFor,
    /// The person who opened the tab.
    pub user: &'a UserId,
    /// The person's user groups, as far as policies name them.
    pub groups: Vec<String>,
    /// True if the current settings name the person anywhere.
    pub is_named: bool,
    /// The channels with open cards of which the person is known to be a member.
    pub channels: BTreeSet<ChannelId>,
    /// The current time.
    pub now: Timestamp,
}

impl Reader<'_> {
    /// Reads these pages of all lists.
    ///
    /// # Errors
    ///
    /// If the store isn't answering.
    pub async fn read(&self, pages: Pages) -> Result<Content, Error> {
        let own = Label::AskedBy(self.user.clone());
        let about_me = [own.clone(), Label::DecidedBy(self.user.clone())];
        let mut labels = approver_labels(self.user, &self.groups);
        labels.push(own.clone());
        let mut waiting = self.store.actions(&ActionFilter::under(&labels, &[Status::Pending], MAX_ACTIONS)).await?;
        waiting =
            self.with_current_policies(self.approver().with_current_cards(self.store, self.policy_for, waiting).await?);
        // A label only says that the person was named once; the rules of today decide.
        waiting.retain(|record| self.may_decide(record) && self.now < record.expires_at);
        let mut asked = self.with_current_policies(
            self.store.actions(&ActionFilter::under(&[own], &[Status::Pending], MAX_ACTIONS)).await?,
        );
        let under_way = [Status::Approved, Status::Intent];
        let mut running = self.store.actions(&ActionFilter::under(&about_me, &under_way, MAX_ACTIONS)).await?;
        let many = (usize::from(pages.lately) + 1).saturating_mul(LINES_PER_PAGE) + 1;
        let mut lately = self.store.actions(&ActionFilter::under(&about_me, &CLOSED, many.max(MAX_ACTIONS))).await?;
        // The store sorts by the time of the request, the tab by that of the decision.
        lately.sort_by_key(|record| std::cmp::Reverse(decided_at(record)));
        // An action that changed between these reads is shown once, in its newest state.
        let has = |list: &[ActionRecord], id: &ActionId| list.iter().any(|other| other.id == *id);
        running.retain(|record| !has(&lately, &record.id));
        for list in [&mut waiting, &mut asked] {
            list.retain(|record| !has(&running, &record.id) && !has(&lately, &record.id));
        }
        let elsewhere = self.elsewhere(&about_me).await?;
        Ok(Content {
            waiting: self.page(waiting, pages.waiting, CARDS_PER_PAGE).await?,
            elsewhere,
            asked: self.page(asked, pages.asked, LINES_PER_PAGE).await?,
            running: self.page(running, pages.running, LINES_PER_PAGE).await?,
            lately: self.page(lately, pages.lately, LINES_PER_PAGE).await?,
            pages,
        })
    }

    /// Returns the cards of others that everyone may decide, in channels where this person was
    /// active.
    async fn elsewhere(&self, about_me: &[Label]) -> Result<BTreeMap<ChannelId, Vec<Item>>, Error> {
        let mut places = Vec::new();
        for record in self.store.actions(&ActionFilter::under(about_me, &[], MAX_ACTIONS / 4)).await? {
            let place = Label::Within(record.thread.team.clone(), record.thread.channel.clone());
            if !record.thread.channel.is_direct() && !places.contains(&place) {
                places.push(place);
            }
        }
        places.truncate(MAX_CHANNELS);
        let mut found = BTreeMap::<_, Vec<Item>>::new();
        let open = self
            .store
            .actions(&ActionFilter::under(&places, &[Status::Pending], LINES_PER_PAGE * MAX_CHANNELS))
            .await?;
        for record in self.with_current_policies(open) {
            let policy = &record.policy;
            let mut lists = std::iter::once(&policy.approvers).chain(&policy.also);
            let for_channel = lists.any(|list| list.contains(&Approver::Channel));
            let done = record.requested_by == *self.user || record.approved_by().contains(self.user);
            // Who asked or approved already has nothing to do there.
            if for_channel && !done && !self.may_decide(&record) && self.now < record.expires_at {
                let link = self.links.card(&record).await?;
                found.entry(record.thread.channel.clone()).or_default().push(Item { record, link });
            }
        }
        Ok(found)
    }

    /// Returns the records with the current policy.
    fn with_current_policies(&self, records: Vec<ActionRecord>) -> Vec<ActionRecord> {
        records.into_iter().map(|record| policy::with_current_policy(self.policy_for, record)).collect()
    }

    /// Returns true if this person may approve the action in the Home tab.
    fn may_decide(&self, record: &ActionRecord) -> bool {
        self.approver().may_approve(record)
    }

    fn approver(&self) -> NamedApprover<'_> {
        NamedApprover { user: self.user, groups: &self.groups, is_named: self.is_named, channels: &self.channels }
    }

    async fn page(&self, records: Vec<ActionRecord>, page: u16, size: usize) -> Result<ListPage, Error> {
        let before = usize::from(page).saturating_mul(size);
        let more = records.len() > before + size;
        let mut items = Vec::new();
        for record in records.into_iter().skip(before).take(size) {
            let link = self.links.card(&record).await?;
            items.push(Item { record, link });
        }
        Ok(ListPage { items, more })
    }
}
