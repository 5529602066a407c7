//! The membership in channels, for people who decide outside of a channel, in the Home tab.
//!
//! A person who presses a button in a channel is in it. In the Home tab Slack does not name a channel, so Slack is asked
//! whether the person is a member. For a decision, the answer is at most seconds old, and without one the person is not a
//! member. An app without the scopes for this is never told, and its Home tab links to the cards instead.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, UserId},
};
use countersign_slack::client::{Error, SlackClient};
use tokio::time::timeout;

/// The time-out of a lookup while a person waits.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of cached answers. If there are more, all are removed.
const MAX_CACHED: usize = 2000;

/// A cached lookup of memberships.
#[derive(Default)]
pub(super) struct ChannelMembers {
    known: Mutex<HashMap<(ChannelId, UserId), Answer>>,
}

/// An answer of Slack, and the time of asking.
#[derive(Clone, Copy)]
struct Answer {
    is_member: Option<bool>,
    asked: Timestamp,
}

impl ChannelMembers {
    /// Returns whether the person is a member of the channel, from an answer that is younger than `max_age`; `None` if Slack
    /// doesn't tell.
    pub(super) async fn is_member(
        &self,
        slack: &SlackClient,
        (channel, user): (&ChannelId, &UserId),
        now: Timestamp,
        max_age: Duration,
    ) -> Option<bool> {
        let key = (channel.clone(), user.clone());
        let known = self.known.lock().ok().and_then(|known| known.get(&key).copied());
        if let Some(known) = known.filter(|known| now.since(known.asked) < max_age) {
            return known.is_member;
        }
        let answer =
            timeout(LOOKUP_TIMEOUT, slack.is_member(channel, user)).await.unwrap_or(Err(Error::NoAnswer("too slow")));
        let is_member = match answer {
            Ok(is_member) => Some(is_member),
            // The missing scope is logged once, and a later answer would be the same.
            Err(Error::MissingScope { .. }) => None,
            Err(error) => {
                tracing::warn!(error = countersign_core::cause::chain(&error), %channel, "Cannot look up a membership");
                return None;
            }
        };
        if let Ok(mut known) = self.known.lock() {
            if known.len() >= MAX_CACHED {
                known.clear();
            }
            known.insert(key, Answer { is_member, asked: now });
        }
        is_member
    }
}
