//! The state of the bot token, as the last calls showed it. A refusal is logged once, and shown by `/readyz` until a call
//! succeeds again.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The time after which a refused token is tried again, when somebody asks for its state.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The time for which only a message that Slack takes disproves the refusal of another one. Messages are sent again in less
/// time, so a token with which nothing can be said is not taken for a good one because it can still read.
const MESSAGES_SENT_AGAIN_WITHIN: Duration = Duration::from_secs(120);

/// The state of a token. It is shared by all clones of a client.
#[derive(Debug, Default)]
pub struct TokenHealth {
    refused: Mutex<Option<Refused>>,
}

/// A refused token.
#[derive(Debug)]
struct Refused {
    reason: TokenRefusal,
    /// True if the refused call was a message.
    is_message: bool,
    /// The time of the last refusal.
    at: Instant,
    /// The time of the last attempt to find out more.
    tried: Instant,
}

/// The reason why Slack does not accept the bot token: an error code, or the name of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRefusal(String);

impl TokenRefusal {
    /// Creates a refusal with this code, such as `token_revoked`.
    pub fn new(code: impl Into<String>) -> Self {
        Self(code.into())
    }
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.0.as_str() {
            "account_inactive" | "app_uninstalled" => {
                "the app is no longer installed in the workspace; install it again, and set SLACK_BOT_TOKEN to the token on \
                 the app's page under OAuth & Permissions"
            }
            "not_allowed_token_type" => {
                "SLACK_BOT_TOKEN is a different kind of token; a bot token begins with xoxb- and is on the app's page under \
                 OAuth & Permissions"
            }
            _ => {
                "it is wrong or was revoked; set SLACK_BOT_TOKEN to the one on the app's page under OAuth & Permissions"
            }
        };
        write!(f, "Slack refuses the bot token ({}): {advice}", self.0)
    }
}

impl TokenHealth {
    /// Returns the reason why the token is refused; `None` if it was accepted last.
    pub fn refusal(&self) -> Option<TokenRefusal> {
        self.lock().as_ref().map(|refused| refused.reason.clone())
    }

    /// Returns true if a refused token was not tried for a while before `now`, and counts that as an attempt.
    pub fn is_to_be_tried(&self, now: Instant) -> bool {
        let mut refused = self.lock();
        let due = refused.as_mut().filter(|refused| now.duration_since(refused.tried) >= TRY_AGAIN_AFTER);
        due.map(|refused| refused.tried = now).is_some()
    }

    /// Records that Slack accepted the token in a call of `method`.
    pub(super) fn accepted(&self, method: &str, now: Instant) {
        let mut refused = self.lock();
        let is_disproved = |refused: &Refused| {
            let is_old = now.duration_since(refused.at) >= MESSAGES_SENT_AGAIN_WITHIN;
            !refused.is_message || is_message(method) || is_old
        };
        if refused.as_ref().is_some_and(is_disproved) {
            *refused = None;
            tracing::info!("Slack accepts the bot token again");
        }
    }

    /// Records that Slack refused the token, in a call of a method or by an event of this name. It is logged unless the
    /// token was refused before.
    pub fn refused(&self, code: &str, by: &str, now: Instant) {
        let reason = TokenRefusal::new(code);
        let refused = Refused { reason: reason.clone(), is_message: is_message(by), at: now, tried: now };
        if self.lock().replace(refused).is_none() {
            tracing::error!("{reason}");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for the methods that send or change messages.
fn is_message(method: &str) -> bool {
    method.starts_with("chat.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_until_the_token_is_accepted() {
        let (health, now) = (TokenHealth::default(), Instant::now());
        assert!(health.refusal().is_none() && !health.is_to_be_tried(now));
        health.refused("token_revoked", "users.info", now);
        let said = health.refusal().unwrap().to_string();
        assert!(said.starts_with("Slack refuses the bot token (token_revoked): it is wrong or was revoked"), "{said}");
        assert!(!health.is_to_be_tried(now), "it was tried just now");
        let later = now + TRY_AGAIN_AFTER;
        assert!(health.is_to_be_tried(later) && !health.is_to_be_tried(later), "once");
        health.accepted("auth.test", later);
        assert_eq!(health.refusal(), None);
    }

    #[test]
    fn a_token_with_which_nothing_can_be_said_is_not_a_good_one() {
        let (health, now) = (TokenHealth::default(), Instant::now());
        health.refused("token_revoked", "chat.postMessage", now);
        health.accepted("users.info", now);
        assert!(health.refusal().is_some());
        health.accepted("chat.update", now);
        assert!(health.refusal().is_none());
        health.refused("invalid_auth", "chat.postEphemeral", now);
        health.accepted("auth.test", now + MESSAGES_SENT_AGAIN_WITHIN);
        assert!(health.refusal().is_none(), "nothing was said since");
    }
}
