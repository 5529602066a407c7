//! The members of the user groups that policies name, and of channels. All lookups use this cache, so
//! that Slack is not asked repeatedly.
//!
//! For a decision, a group is looked up when the decision arrives. The answer is at most seconds
//! old; if Slack isn't answering, the lookup fails. A list of open cards may be based on answers up
//! to a minute old. If Slack isn't answering, it is incomplete rather than late.
//!
//! A person who presses a button in a channel is in it. In the Home tab Slack does not name a channel, so Slack is asked
//! whether the person is a member; without an answer, they are not. An app without the scopes for this is never told, and
//! its Home tab links to the cards instead.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    cause,
    clock::{Clock, Timestamp},
    ids::{ChannelId, UserId},
    recent::Recent,
};
use countersign_graph::{
    action::{ActionRecord, Approver, Lapse},
    standing::Entitled,
};
use countersign_slack::client::{Error, SlackClient};
use futures_util::future::join_all;
use tokio::time::timeout;

use super::{
    people::{People, Right},
    policy::{self, Denial, Person},
};

/// The maximum age of an answer that is used for a decision: long enough for several presses in a
/// row, and short enough to notice a change of a group.
const MAX_AGE_FOR_DECISION: Duration = Duration::from_secs(10);

/// The maximum age of an answer that is used for a list.
const MAX_AGE_FOR_LIST: Duration = Duration::from_secs(60);

/// The time-out of a lookup while a person waits.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of cached answers. If there are more, all are removed.
const MAX_CACHED: usize = 2000;

/// A cached lookup of a workspace's user groups.
#[derive(Clone)]
pub struct Groups(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    /// The user groups that the settings name.
    named: Vec<String>,
    /// The people that the settings name.
    people: BTreeSet<UserId>,
    /// The accounts of the workspace's members.
    accounts: People,
    /// The members of each group, and the time when Slack was asked.
    known: Recent<String, (Vec<UserId>, Timestamp)>,
    /// Whether a person is a member of a channel, if Slack tells, and the time when it was asked.
    memberships: Recent<(ChannelId, UserId), (Option<bool>, Timestamp)>,
}

impl Groups {
    /// Creates the lookup for a workspace. `approvers` are the user groups (`S…`) and people that
    /// the settings name as approvers.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>, approvers: Vec<String>, accounts: People) -> Self {
        let approvers: BTreeSet<String> = approvers.into_iter().collect();
        let (named, people): (Vec<_>, Vec<_>) = approvers.into_iter().partition(|name| name.starts_with('S'));
        let people = people.into_iter().map(UserId::new).collect();
        Self(Arc::new(Inner {
            slack,
            clock,
            named,
            people,
            accounts,
            known: Recent::new(MAX_CACHED),
            memberships: Recent::new(MAX_CACHED),
        }))
    }

    /// Returns true if the settings name a person as an approver anywhere, as a user or by one of
    /// `groups`.
    pub fn names_approver(&self, user: &UserId, groups: &[String]) -> bool {
        !groups.is_empty() || self.0.people.contains(user)
    }

    /// Returns the groups of a person, for lists.
    pub async fn of(&self, user: &UserId) -> Vec<String> {
        let looked_up = join_all(
            self.0.named.iter().map(|group| async move { (group, self.recent_or_cached_members(group).await) }),
        );
        let groups = looked_up.await.into_iter().filter(|(_, members)| members.contains(user));
        groups.map(|(group, _)| group.clone()).collect()
    }

    /// Returns the channels of which a person is a member, for lists.
    pub async fn channels_of(&self, user: &UserId, channels: Vec<ChannelId>) -> BTreeSet<ChannelId> {
        let looked_up = channels.into_iter().map(|channel| async move {
            let is_member = self.is_member(&channel, user, MAX_AGE_FOR_LIST).await;
            is_member.then_some(channel)
        });
        join_all(looked_up).await.into_iter().flatten().collect()
    }

    /// Returns true if a person who decides outside of a channel is a member of it.
    pub async fn is_in_channel(&self, channel: &ChannelId, user: &UserId) -> bool {
        self.is_member(channel, user, MAX_AGE_FOR_DECISION).await
    }

    async fn is_member(&self, channel: &ChannelId, user: &UserId, max_age: Duration) -> bool {
        self.membership(channel, user, max_age).await == Some(true)
    }

    /// Returns whether the person is a member of the channel, from an answer that is younger than `max_age`; `None` if Slack
    /// doesn't tell.
    async fn membership(&self, channel: &ChannelId, user: &UserId, max_age: Duration) -> Option<bool> {
        let (key, now) = ((channel.clone(), user.clone()), self.0.clock.now());
        if let Some(known) = self.0.memberships.younger(&key, max_age, now) {
            return known;
        }
        let asked = timeout(LOOKUP_TIMEOUT, self.0.slack.is_member(channel, user));
        let is_member = match asked.await.unwrap_or(Err(Error::NoAnswer("too slow"))) {
            Ok(is_member) => Some(is_member),
            // The missing scope is logged once, and a later answer would be the same.
            Err(Error::MissingScope { .. }) => None,
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), %channel, "Cannot look up a membership");
                return None;
            }
        };
        self.0.memberships.set(key, (is_member, now));
        is_member
    }

    /// Returns true if Slack says that a person is not a member of a channel, in an answer that is at most seconds old.
    pub async fn is_outside(&self, channel: &ChannelId, user: &UserId) -> bool {
        self.membership(channel, user, MAX_AGE_FOR_DECISION).await == Some(false)
    }

    /// Returns the facts about a person who decides on this action. `in_channel` is true if they
    /// decide in its channel.
    pub async fn person(&self, record: &ActionRecord, by: &UserId, in_channel: bool) -> Person {
        let looked_up = join_all(
            named_groups(record)
                .into_iter()
                .map(|group| async move { (group, self.members(group, MAX_AGE_FOR_DECISION).await) }),
        );
        let (looked_up, account) = tokio::join!(looked_up, self.0.accounts.may(by, Right::Decide));
        let mut person = Person { in_channel, account_denial: account.err(), ..Person::default() };
        for (group, members) in looked_up {
            match members {
                Ok(members) if members.contains(by) => person.groups.push(group.clone()),
                Ok(_) => {}
                Err(_) => person.group_lookup_failed = true,
            }
        }
        person
    }

    /// Returns the facts of [`Self::person`] if nothing has to be looked up.
    pub fn known_person(&self, record: &ActionRecord, by: &UserId, in_channel: bool) -> Option<Person> {
        let account = self.0.accounts.known_right(by, Right::Decide)?;
        let mut person = Person { in_channel, account_denial: account.err(), ..Person::default() };
        for group in named_groups(record) {
            let known = self.known_members(group, MAX_AGE_FOR_DECISION)?;
            if known.contains(by) {
                person.groups.push(group.clone());
            }
        }
        Some(person)
    }

    /// Returns the current members of a group, without a time-out of its own.
    ///
    /// # Errors
    ///
    /// If Slack isn't answering.
    pub async fn members_now(&self, group: &str) -> Result<Vec<UserId>, Error> {
        let asked = self.0.clock.now();
        let members = self.0.slack.usergroup_members(group).await?;
        self.0.known.set(group.to_owned(), (members.clone(), asked));
        Ok(members)
    }

    /// Returns the members of a group for lists; `None` if they are not known.
    pub async fn recent_members(&self, group: &str) -> Option<Vec<UserId>> {
        self.members(group, MAX_AGE_FOR_LIST).await.ok()
    }

    /// Returns the members of a group. If Slack isn't answering, returns its last answer, or nobody
    /// if there was none.
    async fn recent_or_cached_members(&self, group: &str) -> Vec<UserId> {
        match self.members(group, MAX_AGE_FOR_LIST).await {
            Ok(members) => members,
            Err(_) => self.0.known.get(group).map(|(members, _)| members).unwrap_or_default(),
        }
    }

    /// Returns the members of a group, from an answer that is younger than `max_age`.
    async fn members(&self, group: &str, max_age: Duration) -> Result<Vec<UserId>, Error> {
        if let Some(known) = self.known_members(group, max_age) {
            return Ok(known);
        }
        let members =
            timeout(LOOKUP_TIMEOUT, self.members_now(group)).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        members.inspect_err(|error| tracing::warn!(error = cause::chain(&error), group, "Cannot look up a user group"))
    }

    fn known_members(&self, group: &str, max_age: Duration) -> Option<Vec<UserId>> {
        self.0.known.younger(group, max_age, self.0.clock.now())
    }
}

/// Returns the groups that are named by the policy of an action.
fn named_groups(record: &ActionRecord) -> BTreeSet<&String> {
    let named = record.approvers().chain(record.policy.also.iter().flatten()).filter_map(|approver| match approver {
        Approver::Group(group) => Some(group),
        Approver::Channel | Approver::Requester | Approver::User(_) => None,
    });
    named.collect()
}

#[async_trait]
impl Entitled for Groups {
    async fn who_may_approve(&self, record: &ActionRecord, people: &[UserId]) -> Vec<UserId> {
        let asked = join_all(people.iter().map(|by| async move { (by, self.person(record, by, true).await) }));
        let may = asked.await.into_iter().filter(|(by, person)| policy::may_approve(record, by, person).is_ok());
        may.map(|(by, _)| by.clone()).collect()
    }

    async fn lapses(&self, record: &ActionRecord) -> Vec<Lapse> {
        // Each lookup is a call to Slack, so membership is looked up only if it decides something.
        let in_channel_counts = record.approvers().chain(record.policy.also.iter().flatten());
        let in_channel_counts = in_channel_counts.into_iter().any(|approver| *approver == Approver::Channel);
        let channel = &record.thread.channel;
        let looked_up = record.approved_by().into_iter().map(|by| async move {
            let is_member =
                !in_channel_counts || self.membership(channel, &by, MAX_AGE_FOR_DECISION).await != Some(false);
            let person = self.person(record, &by, is_member).await;
            // Without the others, so that an approval is not found to be the second one of the same person.
            let alone = ActionRecord { decisions: Vec::new(), ..record.clone() };
            // What could not be looked up is no reason: an approval ends only by what Slack or the settings say.
            let why = match policy::may_approve(&alone, &by, &person) {
                Err(Denial::Account(denial)) if !denial.is_unknown() => denial.word(),
                Err(denial @ (Denial::NotAnApprover | Denial::OwnRequest)) => denial.word(),
                _ => return None,
            };
            Some(Lapse { by, at: self.0.clock.now(), why: why.to_owned() })
        });
        join_all(looked_up).await.into_iter().flatten().collect()
    }
}
