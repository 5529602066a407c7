//! Who is in which user group, asked when a decision arrives.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::policy::Person;
use crate::{
    clock::{Clock, Timestamp},
    graph::action::{ActionRecord, Approver},
    ids::UserId,
    slack::client::SlackClient,
};

/// For how long an answer is good: long enough for a burst of presses, short enough that a change of a group is seen.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// How many groups are remembered.
const REMEMBERED: usize = 200;

/// When a group was looked up, and who was in it.
type Known = (Timestamp, Vec<UserId>);

/// Looks user groups up.
#[derive(Clone)]
pub struct Membership {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<HashMap<String, Known>>>,
}

impl Membership {
    /// Of this workspace.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>) -> Self {
        Self { slack, clock, known: Arc::default() }
    }

    /// What is known about a person who decides about this action. `in_channel`: whether they do so in its channel.
    pub async fn person(&self, record: &ActionRecord, by: &UserId, in_channel: bool) -> Person {
        let mut person = Person { in_channel, ..Person::default() };
        for approver in record.approvers() {
            let Approver::Group(group) = approver else { continue };
            match self.members(group).await {
                Some(members) if members.contains(by) => person.groups.push(group.clone()),
                Some(_) => {}
                None => person.is_uncertain = true,
            }
        }
        person
    }

    /// The members of a group; `None` if Slack does not say.
    pub async fn members(&self, group: &str) -> Option<Vec<UserId>> {
        let now = self.clock.now();
        if let Some((read, members)) = self.known.lock().expect("no holder panics").get(group)
            && now.since(*read) < GOOD_FOR
        {
            return Some(members.clone());
        }
        match self.slack.usergroup_members(group).await {
            Ok(members) => {
                let mut known = self.known.lock().expect("no holder panics");
                if known.len() >= REMEMBERED {
                    known.clear();
                }
                known.insert(group.to_owned(), (now, members.clone()));
                Some(members)
            }
            Err(error) => {
                tracing::warn!(error = %error, group, "Cannot look up a user group");
                None
            }
        }
    }
}
