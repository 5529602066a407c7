//! The errors of calls to Slack, classified by what can be done about them.
//!
//! The errors of the Slack library contain the whole body of the answer in their text. Here only the error code of the
//! body is kept, so that messages do not reach the log.

use std::time::Duration;

use serde_json::Value;
use slack_morphism::errors::SlackClientError as Inner;

/// The wait if Slack limits the rate without stating a duration.
const DEFAULT_WAIT: Duration = Duration::from_secs(10);

/// The maximum wait. A longer one is shortened, since a proxy in between may ask for an hour or a year.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The codes which mean that the message itself is wrong.
const CONTENT_CODES: &[&str] = &[
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_attachments",
    "attachment_payload_limit_exceeded",
    "too_many_attachments",
    "msg_too_long",
    "msg_blocks_too_long",
    "no_text",
    "markdown_text_conflict",
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "metadata_too_large",
    "block_mismatch",
];

/// The codes which mean that the destination is wrong.
const PLACE_CODES: &[&str] = &[
    "channel_not_found",
    "thread_not_found",
    "is_archived",
    "not_in_channel",
    "user_not_in_channel",
    "user_not_found",
    "users_not_found",
    "user_disabled",
    "cannot_dm_bot",
    "messages_tab_disabled",
    "restricted_action",
    "restricted_action_read_only_channel",
    "restricted_action_thread_locked",
    "restricted_action_thread_only_channel",
    "restricted_action_non_threadable_channel",
    "cant_post_message",
    "no_permission",
    "access_denied",
    "ekm_access_denied",
    "team_access_not_granted",
];

/// Other codes that a repeated call would get again.
const OTHER_FINAL_CODES: &[&str] = &[
    "message_not_found",
    "cant_update_message",
    "cant_delete_message",
    "edit_window_closed",
    "file_not_found",
    "file_not_stored",
    "invalid_arguments",
    "invalid_arg_name",
    "invalid_array_arg",
    "invalid_url",
];

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The rate limit is exceeded, and nothing was done. The call should be repeated after a wait.
    #[error("Slack asks to wait {} s", .retry_after.as_secs())]
    RateLimited {
        /// The wait; at most 5 minutes.
        retry_after: Duration,
    },
    /// The call was sent, and there is no usable answer. It may have been done, which should be checked before it is
    /// repeated.
    #[error("no answer from Slack; it may or may not have been done ({0})")]
    NoAnswer(&'static str),
    /// Slack could not be reached, so nothing was done. A later call may succeed.
    #[error("Slack cannot be reached; nothing was sent")]
    NotSent,
    /// The object of the call does not exist, or is not accessible to this app: `message_not_found`,
    /// `channel_not_found`, …
    #[error("not found: {code}")]
    Gone {
        /// Slack's error code.
        code: String,
    },
    /// The call is invalid: `invalid_blocks`, `msg_too_long`, …
    #[error("Slack refused it: {code}")]
    Refused {
        /// Slack's error code.
        code: String,
    },
    /// The app lacks a scope. It must be added to the manifest, and the app installed again.
    #[error("the Slack app lacks the scope {needed}")]
    MissingScope {
        /// The missing scope.
        needed: String,
    },
    /// The token is not accepted. Nothing will work until it is replaced.
    #[error("Slack does not accept the token: {code}")]
    Auth {
        /// Slack's error code.
        code: String,
    },
    /// The answer cannot be parsed. The call was probably done.
    #[error("cannot read Slack's answer")]
    Decode,
}

impl Error {
    /// Returns true if Slack certainly refuses this call, so that a repeat would be refused, too. Unknown codes and
    /// answers that are not from Slack do not count as certain.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Gone { code } | Self::Refused { code } => {
                self.is_about_content() || Self::is_about_place(code) || OTHER_FINAL_CODES.contains(&code.as_str())
            }
            Self::MissingScope { .. } => true,
            Self::RateLimited { .. } | Self::NoAnswer(_) | Self::NotSent | Self::Auth { .. } | Self::Decode => false,
        }
    }

    /// Returns true if Slack refuses the message's content or layout. Another message may be accepted.
    pub fn is_about_content(&self) -> bool {
        matches!(self, Self::Refused { code } if CONTENT_CODES.contains(&code.as_str()))
    }

    /// Returns true if a code means that nothing can be posted to the destination, since it is gone, closed, or not
    /// accessible to the app.
    pub fn is_about_place(code: &str) -> bool {
        PLACE_CODES.contains(&code)
    }

    /// Returns the error in one word: Slack's code, if there is one.
    pub fn word(&self) -> String {
        match self {
            Self::Gone { code } | Self::Refused { code } | Self::Auth { code } => code.clone(),
            Self::MissingScope { .. } => "missing_scope".to_owned(),
            Self::RateLimited { .. } => "rate_limited".to_owned(),
            Self::NoAnswer(_) | Self::NotSent | Self::Decode => "no_answer".to_owned(),
        }
    }

    /// Returns true if the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::NoAnswer(_) | Self::NotSent)
    }
}

impl From<Inner> for Error {
    fn from(error: Inner) -> Self {
        match error {
            Inner::ApiError(api) => of_code(&api.code, api.http_response_body.as_deref()),
            Inner::RateLimitError(limit) => {
                Self::RateLimited { retry_after: limit.retry_after.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT) }
            }
            Inner::HttpError(http) if http.status_code.is_server_error() => Self::NoAnswer("server error"),
            Inner::HttpError(http) => {
                let body = http.http_response_body.as_deref();
                match body.and_then(code_in) {
                    Some(code) => of_code(&code, body),
                    None if matches!(http.status_code.as_u16(), 404 | 410) => {
                        Self::Gone { code: format!("http_{}", http.status_code.as_u16()) }
                    }
                    None => Self::Refused { code: format!("http_{}", http.status_code.as_u16()) },
                }
            }
            Inner::HttpProtocolError(protocol) => match protocol.cause {
                Some(cause) if cause.is::<url::ParseError>() => Self::Refused { code: "invalid_url".to_owned() },
                Some(cause) => match cause.downcast_ref::<hyper_util::client::legacy::Error>() {
                    Some(hyper) if hyper.is_connect() => Self::NotSent,
                    _ => Self::NoAnswer("connection lost"),
                },
                None => Self::NoAnswer("connection lost"),
            },
            Inner::SystemError(_) | Inner::EndOfStream(_) | Inner::SocketModeProtocolError(_) => {
                Self::NoAnswer("connection lost")
            }
            Inner::ProtocolError(_) => Self::Decode,
        }
    }
}

/// Returns true if a code means that the token will never be accepted.
pub fn is_fatal(code: &str) -> bool {
    matches!(
        code,
        "invalid_auth"
            | "not_authed"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "not_allowed_token_type"
            | "org_login_required"
            | "link_disabled"
    )
}

/// Returns the error for one of Slack's codes.
fn of_code(code: &str, body: Option<&str>) -> Error {
    let code_owned = || code.to_owned();
    match code {
        _ if is_fatal(code) => Error::Auth { code: code_owned() },
        "missing_scope" => {
            let body = body.and_then(|body| serde_json::from_str::<Value>(body).ok());
            let needed = body.as_ref().and_then(|body| body["needed"].as_str()).unwrap_or("that it was asked for");
            Error::MissingScope { needed: needed.to_owned() }
        }
        "ratelimited" | "rate_limited" => Error::RateLimited { retry_after: DEFAULT_WAIT },
        // Slack: “some aspect of the operation may have succeeded”.
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => {
            Error::NoAnswer("internal error")
        }
        "message_not_found"
        | "channel_not_found"
        | "thread_not_found"
        | "user_not_found"
        | "users_not_found"
        | "view_not_found"
        | "not_found"
        | "no_such_subteam"
        | "is_archived"
        | "not_in_channel"
        | "user_not_in_channel"
        | "cant_update_message"
        | "cant_delete_message"
        | "edit_window_closed"
        | "trigger_expired"
        | "expired_trigger_id"
        | "trigger_exchanged"
        | "exchanged_trigger_id"
        | "expired_url"
        | "used_url" => Error::Gone { code: code_owned() },
        _ => Error::Refused { code: code_owned() },
    }
}

/// Returns the code in the body of an error answer, which is JSON or consists of the code alone.
fn code_in(body: &str) -> Option<String> {
    let json = serde_json::from_str::<Value>(body).ok();
    if let Some(code) = json.as_ref().and_then(|json| json["error"].as_str()) {
        return Some(code.to_owned());
    }
    let word = body.trim();
    let is_code = !word.is_empty() && word.len() <= 40 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_code.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use slack_morphism::errors::{SlackClientApiError, SlackClientProtocolError};

    use super::*;

    fn api(code: &str, body: &str) -> Error {
        Inner::ApiError(SlackClientApiError::new(code.into()).with_http_response_body(body.into())).into()
    }

    #[test]
    fn codes_are_classified_by_what_can_be_done() {
        assert_eq!(api("message_not_found", ""), Error::Gone { code: "message_not_found".into() });
        assert_eq!(api("invalid_blocks", ""), Error::Refused { code: "invalid_blocks".into() });
        assert_eq!(api("token_revoked", ""), Error::Auth { code: "token_revoked".into() });
        assert_eq!(api("internal_error", ""), Error::NoAnswer("internal error"));
        let body = r#"{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"commands"}"#;
        assert_eq!(api("missing_scope", body), Error::MissingScope { needed: "chat:write".into() });
    }

    #[test]
    fn only_a_clear_refusal_is_final() {
        for code in ["invalid_blocks", "msg_too_long", "channel_not_found", "is_archived", "message_not_found"] {
            assert!(api(code, "").is_final(), "{code}");
        }
        for code in ["a_code_of_next_year", "http_403", "http_302", "http_404", "internal_error", "token_revoked"] {
            assert!(!api(code, "").is_final(), "{code}");
        }
        assert!(api("msg_blocks_too_long", "").is_about_content() && !api("is_archived", "").is_about_content());
    }

    #[test]
    fn nothing_of_an_answer_reaches_the_log() {
        let secret = "the text of a message";
        let broken = serde_json::from_str::<Value>("{").unwrap_err();
        let unreadable = Inner::ProtocolError(SlackClientProtocolError::new(broken).with_json_body(secret.into()));
        for error in [api("invalid_blocks", secret), unreadable.into()] {
            assert!(!format!("{error} {error:?}").contains(secret), "{error:?}");
        }
        assert_eq!(code_in("used_url"), Some("used_url".into()));
        assert_eq!(code_in("<html>Not Found</html>"), None);
    }
}
