//! Rate limits for each Web API method, following Slack's tiers. They apply only if the sandbox's options enable them.

use std::collections::{BTreeMap, VecDeque};

use countersign_core::clock::Timestamp;

/// One minute, in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// The number of posts to one channel allowed in as many seconds. Slack documents one post per second and tolerates
/// short bursts without saying how long; five is an assumption.
const POST_BURST: usize = 5;

/// The times of the recent calls, in milliseconds, by method; those of posts by method and channel.
#[derive(Debug, Default)]
pub(super) struct RateLimits {
    calls: BTreeMap<String, VecDeque<i64>>,
}

impl RateLimits {
    /// Counts a call. If the call exceeds the limit, it is not counted and the number of seconds to wait is returned.
    pub(super) fn count(&mut self, method: &str, channel: Option<&str>, now: Timestamp) -> Option<u64> {
        let (key, allowed, window_ms) = match (method, channel) {
            ("chat.postMessage", Some(channel)) => {
                (format!("{method} {channel}"), POST_BURST, POST_BURST as i64 * 1000)
            }
            _ => (method.to_owned(), calls_per_minute(method)?, MINUTE_MS),
        };
        let calls = self.calls.entry(key).or_default();
        while calls.front().is_some_and(|at| *at + window_ms <= now.millis()) {
            calls.pop_front();
        }
        if calls.len() < allowed {
            calls.push_back(now.millis());
            return None;
        }
        let oldest = calls.front().copied().unwrap_or_default();
        Some(u64::try_from((oldest + window_ms - now.millis() + 999) / 1000).unwrap_or(1).max(1))
    }
}

/// Returns the number of calls of a method allowed per minute; `None` if the method is not limited.
fn calls_per_minute(method: &str) -> Option<usize> {
    match method {
        "users.list" | "usergroups.list" | "usergroups.users.list" | "chat.startStream" | "chat.stopStream" => Some(20),
        "chat.update"
        | "chat.delete"
        | "apps.connections.open"
        | "conversations.replies"
        | "conversations.history"
        | "conversations.open" => Some(50),
        "chat.postEphemeral"
        | "chat.appendStream"
        | "bots.info"
        | "users.info"
        | "conversations.members"
        | "views.open"
        | "views.push"
        | "views.update"
        | "views.publish"
        | "files.getUploadURLExternal"
        | "files.completeUploadExternal" => Some(100),
        "assistant.threads.setStatus" | "chat.postMessage" => Some(600),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_over_the_limit_has_to_wait() {
        let mut limits = RateLimits::default();
        for _ in 0..50 {
            assert_eq!(limits.count("chat.update", None, Timestamp(1_000)), None);
        }
        assert_eq!(limits.count("chat.update", None, Timestamp(31_000)), Some(30));
        assert_eq!(limits.count("chat.update", None, Timestamp(61_000)), None, "a minute later");
    }

    #[test]
    fn posts_are_limited_per_channel() {
        let mut limits = RateLimits::default();
        let refused = (0..6).filter_map(|_| limits.count("chat.postMessage", Some("C1"), Timestamp(0))).count();
        assert_eq!(refused, 1);
        assert_eq!(limits.count("chat.postMessage", Some("C2"), Timestamp(0)), None);
    }
}
