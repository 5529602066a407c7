//! `[slack]`: the connection to Slack.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

/// `[slack]`: the connection to Slack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slack {
    /// `socket` or `http`. Left out: `socket` if `SLACK_APP_TOKEN` is set, `http` if only a signing secret is.
    pub mode: Option<SlackMode>,
    /// The address of the Web API; also `SLACK_API_URL`.
    pub api_url: String,
    /// The time limit of a call, such as `"10s"`.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// The maximum size of an answer, in megabytes.
    pub max_answer_mb: usize,
    /// True to throttle our messages to Slack's rate limits. If false, messages are sent as fast as Slack accepts them,
    /// which is right for a stand-in without limits.
    pub rate_limits: bool,
    /// The number of Socket Mode connections, at most 10. With 2, no events are lost while one is refreshed.
    pub connections: u32,
    /// True to show the current work in Slack's own status line under a thread, if the workspace has this feature.
    pub native_status: bool,
    /// True to show a language model's answer while it is written, where Slack can.
    pub streaming: bool,
    /// True if the app is declared as an agent (`agent_view`, scope `assistant:write`). Slack then shows its own Stop
    /// button.
    pub agent_view: bool,
    /// The accounts that may make requests in addition to full members of the workspace: `guests`, `external` people
    /// of other workspaces, `bots`, `deactivated` accounts. Empty: none.
    #[serde(default)]
    pub outsiders: Vec<String>,
    /// `SLACK_BOT_TOKEN`: `xoxb-…`.
    #[serde(skip)]
    pub bot_token: Option<SecretString>,
    /// `SLACK_APP_TOKEN`: `xapp-…`, for Socket Mode.
    #[serde(skip)]
    pub app_token: Option<SecretString>,
    /// `SLACK_SIGNING_SECRET`, for HTTP.
    #[serde(skip)]
    pub signing_secret: Option<SecretString>,
}

/// The mode in which events arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlackMode {
    /// Through a connection that the bot opens.
    Socket,
    /// As requests to the bot.
    Http,
}
