//! The reasons why Slack refuses the app token, with advice for the operator.

use std::fmt;

use super::client_error::Error;

/// Slack's refusal to open a Socket Mode connection, which lasts until a setting changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Slack's error code, such as `invalid_auth`.
    pub code: String,
}

impl Refusal {
    /// Creates a refusal with this code.
    pub fn new(code: impl Into<String>) -> Self {
        Self { code: code.into() }
    }

    /// Returns the refusal that an error means; `None` if the same call may succeed later.
    pub fn of(error: &Error) -> Option<Self> {
        match error {
            Error::Auth { code } => Some(Self::new(code)),
            Error::MissingScope { .. } => Some(Self::new("missing_scope")),
            Error::RateLimited { .. }
            | Error::NoAnswer(_)
            | Error::NotSent
            | Error::Gone { .. }
            | Error::Refused { .. }
            | Error::Decode => None,
        }
    }

    /// Describes the fault and its remedy.
    fn advice(&self) -> &'static str {
        match self.code.as_str() {
            "not_allowed_token_type" => {
                "SLACK_APP_TOKEN is a different kind of token; an app-level token begins with xapp- and is on the app's page \
                 under Basic Information, App-Level Tokens"
            }
            "missing_scope" => {
                "it lacks the scope connections:write; make one that has it on the app's page under Basic Information, \
                 App-Level Tokens, and set SLACK_APP_TOKEN to it"
            }
            "account_inactive" => "the app is no longer installed in the workspace; reinstall it",
            "invalid_auth" | "not_authed" | "token_revoked" | "token_expired" => {
                "it is wrong or was revoked; set SLACK_APP_TOKEN to the one on the app's page under Basic Information, \
                 App-Level Tokens"
            }
            _ => "look at the app's page, and set SLACK_APP_TOKEN to a token that may be used here",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.code == "link_disabled" {
            return f.write_str(
                "Slack closed Socket Mode (link_disabled): it is turned off; turn it on under Socket Mode on the app's \
                 page",
            );
        }
        write!(f, "Slack refused the app token ({}): {}", self.code, self.advice())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lasting_errors_are_a_refusal() {
        assert_eq!(Refusal::of(&Error::NoAnswer("timeout")), None);
        assert_eq!(Refusal::of(&Error::Auth { code: "invalid_auth".into() }), Some(Refusal::new("invalid_auth")));
        let scope = Error::MissingScope { needed: "connections:write".into() };
        let text = Refusal::of(&scope).unwrap().to_string();
        assert!(text.contains("refused the app token (missing_scope): it lacks the scope connections:write"), "{text}");
    }
}
