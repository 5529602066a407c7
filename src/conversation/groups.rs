//! Who is in which of the user groups that policies name: for what people are shown, never for what they may do.
//!
//! A decision looks a group up when it arrives. A list of what waits may be a minute old, and is shorter rather than
//! late where Slack does not answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::{
    clock::{Clock, Timestamp},
    ids::UserId,
    slack::client::{Error, SlackClient},
};

/// How long a group's members are good for.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// How long somebody waits for a group.
const PATIENCE: Duration = Duration::from_secs(1);

/// The groups that policies name.
#[derive(Clone)]
pub struct Groups(Arc<Inner>);

struct Inner {
    slack: SlackClient,
    clock: Arc<dyn Clock>,
    named: Vec<String>,
    known: Mutex<HashMap<String, (Vec<UserId>, Timestamp)>>,
}

impl Groups {
    /// These groups (`S…`) of this workspace.
    pub fn new(slack: SlackClient, clock: Arc<dyn Clock>, mut named: Vec<String>) -> Self {
        named.sort();
        named.dedup();
        Self(Arc::new(Inner { slack, clock, named, known: Mutex::default() }))
    }

    /// Those that somebody is in.
    pub async fn of(&self, user: &UserId) -> Vec<String> {
        let looked_up = join_all(self.0.named.iter().map(|group| async move { (group, self.members(group).await) }));
        let groups = looked_up.await.into_iter().filter(|(_, members)| members.contains(user));
        groups.map(|(group, _)| group.clone()).collect()
    }

    /// The members of one group, as Slack says now.
    ///
    /// # Errors
    ///
    /// If Slack does not.
    pub async fn members_now(&self, group: &str) -> Result<Vec<UserId>, Error> {
        self.0.slack.usergroup_members(group).await
    }

    /// The members of one group: as known, or else as Slack says now. None if neither is to be had.
    pub async fn members(&self, group: &str) -> Vec<UserId> {
        let now = self.0.clock.now();
        let known = self.0.known.lock().ok().and_then(|known| known.get(group).cloned());
        if let Some((members, at)) = &known
            && now.since(*at) < GOOD_FOR
        {
            return members.clone();
        }
        match timeout(PATIENCE, self.0.slack.usergroup_members(group)).await {
            Ok(Ok(members)) => {
                if let Ok(mut known) = self.0.known.lock() {
                    known.insert(group.to_owned(), (members.clone(), now));
                }
                members
            }
            failed => {
                if let Ok(Err(error)) = failed {
                    tracing::warn!(error = %error, group, "Cannot look up a user group");
                }
                known.map(|(members, _)| members).unwrap_or_default()
            }
        }
    }
}
