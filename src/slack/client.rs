//! The client for Slack's Web API, with a method for each call that is used.
//!
//! Calls use the pooled connections of the Slack library's HTTP connector. Its rate control is off, since it considers
//! tiers but not channels. A request body is serialized once, from borrowed fields; an answer is parsed as raw JSON,
//! from which each method takes what it needs. The library has no time-outs, reads answers of any size, and repeats the
//! body in its errors; all three are corrected here for every call ([`SlackClient::call`], the connector, [`Error`]).
//!
//! Slack has no idempotency keys. Instead, a posted message has a nonce in its metadata, with which
//! [`SlackClient::find_by_nonce`] finds it if the answer was lost. Every member can read the metadata, so it contains
//! nothing else.

use std::{
    fmt,
    future::Future,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use countersign_core::{
    clock::Timestamp,
    ids::{ChannelId, MessageTs, Nonce, TeamId, UserId},
    spans,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};
use slack_morphism::{
    ClientResult, SlackApiToken, SlackApiTokenValue, SlackClient as Library, SlackClientApiCallContext,
    SlackClientHttpConnector,
};
use tracing::Span;

pub use super::client_error::Error;
use super::{
    Identity,
    account::{Account, UserGroup},
    blocks::Message,
    connector::{Connector, connector, was_too_long},
    field,
    file::Downloads,
    hosts::Hosts,
    missing_scopes::MissingScopes,
    post::Post,
    token_health::TokenHealth,
};

/// The event type in the metadata of the bot's messages.
pub(super) const METADATA: &str = "countersign";

/// The time by which a search for a message starts earlier, in seconds, since clocks differ.
const CLOCK_TOLERANCE_S: i64 = 300;

/// The maximum number of pages that are read of a list.
const MAX_PAGES: usize = 50;

/// A client for one workspace, with one token.
#[derive(Clone)]
pub struct SlackClient {
    library: Arc<Library<Connector>>,
    token: SlackApiToken,
    timeout: Duration,
    hosts: Hosts,
    missing: Arc<MissingScopes>,
    health: Arc<TokenHealth>,
    downloads: Downloads,
}

/// The ways to answer a `response_url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Respond {
    /// Send a message that only the person sees.
    Privately,
    /// Replace the message that was clicked.
    ReplaceOriginal,
    /// Delete the message that was clicked.
    DeleteOriginal,
}

impl fmt::Debug for SlackClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlackClient").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl SlackClient {
    /// The default time limit of a call.
    pub const TIMEOUT: Duration = Duration::from_secs(10);

    /// The default limit on the size of an answer, in bytes.
    pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

    /// Creates a client for the API at `api_url` (`https://slack.com/api`). Each call takes at most `timeout`.
    ///
    /// # Errors
    ///
    /// If the address uses `https` and the machine's root certificates cannot be read.
    pub fn new(api_url: &str, token: &SecretString, timeout: Duration) -> io::Result<Self> {
        Self::with_answer_limit(Self::MAX_ANSWER_BYTES, api_url, token, timeout)
    }

    /// Creates a client like [`Self::new`] that reads answers up to `longest` bytes.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with_answer_limit(
        longest: usize,
        api_url: &str,
        token: &SecretString,
        timeout: Duration,
    ) -> io::Result<Self> {
        let library = Arc::new(Library::new(connector(api_url, longest)?));
        let token = SlackApiToken::new(SlackApiTokenValue(token.expose_secret().to_owned()));
        let (missing, health, downloads) = Default::default();
        Ok(Self { library, token, timeout, hosts: Hosts::with_api(api_url), missing, health, downloads })
    }

    /// Returns the time limit of a call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the scopes that have turned out to be missing. They are shared by all clones of this client.
    pub fn missing_scopes(&self) -> &Arc<MissingScopes> {
        &self.missing
    }

    /// Returns the state of the token. It is shared by all clones of this client.
    pub fn token_health(&self) -> &Arc<TokenHealth> {
        &self.health
    }

    /// Returns the Slack library's client, which is also used for Socket Mode.
    pub(super) fn library(&self) -> &Arc<Library<Connector>> {
        &self.library
    }

    /// Returns the hosts to which data and the token may be sent.
    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Returns the client for the contents of files.
    pub(super) fn downloads(&self) -> &Downloads {
        &self.downloads
    }

    /// Returns the token, in the library's type.
    pub(super) fn token(&self) -> &SlackApiToken {
        &self.token
    }

    /// Checks that Slack would open a Socket Mode connection. Only for a client with an app token.
    pub async fn connections_open(&self) -> Result<(), Error> {
        let answer = self.post("apps.connections.open", &json!({})).await?;
        match self.hosts.is_socket(required_text(&answer, "/url")?) {
            true => Ok(()),
            false => Err(Error::Refused { code: "foreign_url".to_owned() }),
        }
    }

    /// Returns the account of the token.
    pub async fn auth_test(&self) -> Result<Account, Error> {
        let answer = self.post("auth.test", &json!({})).await?;
        let team: TeamId = field::first(&answer, &["/team_id", "/enterprise_id"]).ok_or(Error::Decode)?.into();
        let everywhere = answer["is_enterprise_install"] == true;
        let enterprise = field::text(&answer, "/enterprise_id").map(str::to_owned);
        let identity = Identity::of(required_text(&answer, "/user_id")?)
            .within(Some(team.clone()).filter(|_| !everywhere || enterprise.is_none()), enterprise);
        Ok(Account {
            identity,
            team,
            team_name: field::text(&answer, "/team").unwrap_or_default().to_owned(),
            url: field::text(&answer, "/url").map(str::to_owned),
            bot: field::text(&answer, "/bot_id").map(str::to_owned),
        })
    }

    /// Returns the app (`A…`) of a bot (`B…`).
    pub async fn app_of(&self, bot: &str) -> Result<String, Error> {
        let answer = self.get("bots.info", &[("bot", bot)]).await?;
        required_text(&answer, "/bot/app_id").map(str::to_owned)
    }

    /// Posts a message, in a thread if one is given. If the answer is lost, the message can be found by its nonce.
    pub async fn post_message(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        message: &Message,
        nonce: &Nonce,
    ) -> Result<MessageTs, Error> {
        let metadata = json!({ "event_type": METADATA, "event_payload": { "nonce": nonce } });
        let body = Post {
            thread_ts: thread,
            metadata: Some(metadata),
            unfurl_links: Some(false),
            unfurl_media: Some(false),
            ..Post::new(channel, message)
        };
        ts(&self.post("chat.postMessage", &body).await?)
    }

    /// Replaces the content of one of the bot's messages, but not its metadata.
    pub async fn update_message(&self, channel: &ChannelId, ts: &MessageTs, message: &Message) -> Result<(), Error> {
        let body = Post { ts: Some(ts), ..Post::new(channel, message) };
        self.post("chat.update", &body).await.map(drop)
    }

    /// Deletes one of the bot's messages.
    pub async fn delete_message(&self, channel: &ChannelId, ts: &MessageTs) -> Result<(), Error> {
        self.post("chat.delete", &json!({ "channel": channel, "ts": ts })).await.map(drop)
    }

    /// Returns the direct conversation with a person, which is opened first if necessary.
    pub async fn open_direct(&self, user: &UserId) -> Result<ChannelId, Error> {
        let answer = self.post("conversations.open", &json!({ "users": user })).await?;
        required_text(&answer, "/channel/id").map(ChannelId::from)
    }

    /// Shows a message to one person only. It disappears when the person reloads Slack.
    pub async fn post_ephemeral(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        user: &UserId,
        message: &Message,
    ) -> Result<(), Error> {
        let body = Post { thread_ts: thread, user: Some(user), ..Post::new(channel, message) };
        self.post("chat.postEphemeral", &body).await.map(drop)
    }

    /// Sends an answer to the `response_url` of an interaction or command, without the token.
    pub async fn respond(&self, response_url: &str, how: Respond, message: &Message) -> Result<(), Error> {
        let url = self.hosts.check(response_url)?;
        let body = match how {
            Respond::Privately => json!({ "response_type": "ephemeral", "replace_original": false,
                "text": message.text, "blocks": message.blocks }),
            Respond::ReplaceOriginal => json!({ "replace_original": true,
                "text": message.text, "blocks": message.blocks }),
            Respond::DeleteOriginal => json!({ "delete_original": true }),
        };
        let connector = &self.library.http_api.connector;
        let answered = self.with_timeout(connector.http_post_uri::<_, Value>(url, &body, without_token()));
        spans::call("slack", "response_url", answered, |result| status_of(result).into()).await.map(drop)
    }

    /// Returns the message with this nonce that was posted at `since` or later, if there is one.
    pub async fn find_by_nonce(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        nonce: &Nonce,
        since: Timestamp,
    ) -> Result<Option<MessageTs>, Error> {
        let match_in = |page: &Value| messages(page).find(|message| has_nonce(message, nonce)).map(ts);
        let found = self.find_since(channel, thread, since, match_in);
        found.await?.transpose()
    }

    /// Returns all messages with this nonce that were posted at `since` or later.
    pub async fn find_all_by_nonce(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        nonce: &Nonce,
        since: Timestamp,
    ) -> Result<Vec<MessageTs>, Error> {
        let found = Mutex::new(Vec::new());
        let collect = |page: &Value| {
            let of_page =
                messages(page).filter(|message| has_nonce(message, nonce)).filter_map(|message| ts(message).ok());
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(of_page);
            None::<()>
        };
        self.find_since(channel, thread, since, collect).await?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads pages of messages posted since a point in time, until `find` returns a result.
    pub(super) async fn find_since<T>(
        &self,
        channel: &ChannelId,
        thread: Option<&MessageTs>,
        since: Timestamp,
        find: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let oldest = (since.seconds() - CLOCK_TOLERANCE_S).max(0).to_string();
        let mut query = vec![
            ("channel", channel.as_str()),
            ("include_all_metadata", "true"),
            ("inclusive", "true"),
            ("limit", "200"),
            ("oldest", &oldest),
        ];
        let method = match thread {
            Some(root) => {
                query.push(("ts", root.as_str()));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        self.pages(method, &query, find).await
    }

    /// Opens a modal and returns the view's id. `trigger_id` is valid for 3 s and one use.
    pub async fn open_view(&self, trigger_id: &str, view: &Value) -> Result<String, Error> {
        let answer = self.post("views.open", &json!({ "trigger_id": trigger_id, "view": view })).await?;
        required_text(&answer, "/view/id").map(str::to_owned)
    }

    /// Replaces the content of an open modal. If there is a `hash`, this is done only if the content still has it.
    pub async fn update_view(&self, view_id: &str, hash: Option<&str>, view: &Value) -> Result<(), Error> {
        let mut body = json!({ "view_id": view_id, "view": view });
        if let Some(hash) = hash {
            body["hash"] = json!(hash);
        }
        self.post("views.update", &body).await.map(drop)
    }

    /// Publishes a person's Home tab.
    pub async fn publish_home(&self, user: &UserId, view: &Value) -> Result<(), Error> {
        self.post("views.publish", &json!({ "user_id": user, "view": view })).await.map(drop)
    }

    /// Returns the members of a user group (`S…`).
    pub async fn usergroup_members(&self, group: &str) -> Result<Vec<UserId>, Error> {
        Ok(users(&self.get("usergroups.users.list", &[("usergroup", group)]).await?["users"]))
    }

    /// Returns true if a person is a member of a channel. This needs `channels:read`, or `groups:read` if it is private.
    pub async fn is_member(&self, channel: &ChannelId, user: &UserId) -> Result<bool, Error> {
        let query = [("channel", channel.as_str()), ("limit", "1000")];
        let is_listed = |page: &Value| users(&page["members"]).contains(user).then_some(());
        Ok(self.pages("conversations.members", &query, is_listed).await?.is_some())
    }

    /// Returns the active user groups of the workspace.
    pub async fn usergroups(&self) -> Result<Vec<UserGroup>, Error> {
        let answer = self.get("usergroups.list", &[]).await?;
        let groups = answer["usergroups"].as_array().ok_or(Error::Decode)?.iter();
        let group = |group: &Value| {
            let text = |pointer| field::text(group, pointer).map(str::to_owned);
            Some(UserGroup { id: text("/id")?, handle: text("/handle")? })
        };
        Ok(groups.filter_map(group).collect())
    }

    /// Returns the address of a message that people can open.
    pub async fn permalink(&self, channel: &ChannelId, ts: &MessageTs) -> Result<String, Error> {
        let query = [("channel", channel.as_str()), ("message_ts", ts.as_str())];
        required_text(&self.get("chat.getPermalink", &query).await?, "/permalink").map(str::to_owned)
    }

    /// Calls a method with a JSON body.
    pub(super) async fn post(
        &self,
        method: &'static str,
        body: &(impl Serialize + Send + Sync),
    ) -> Result<Value, Error> {
        self.call(method, |context| self.library.http_api.connector.http_post(method, body, context)).await
    }

    /// Calls a method that reads, with query parameters.
    pub(super) async fn get(&self, method: &'static str, query: &[(&str, &str)]) -> Result<Value, Error> {
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, Some(*value))).collect();
        self.call(method, |context| self.library.http_api.connector.http_get(method, &query, context)).await
    }

    /// Reads a list page by page until `find` returns a result.
    async fn pages<T>(
        &self,
        method: &'static str,
        query: &[(&str, &str)],
        find: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut cursor = String::new();
        for _ in 0..MAX_PAGES {
            let mut query = query.to_vec();
            if !cursor.is_empty() {
                query.push(("cursor", &cursor));
            }
            let page = self.get(method, &query).await?;
            if let Some(found) = find(&page) {
                return Ok(Some(found));
            }
            match field::text(&page, "/response_metadata/next_cursor") {
                Some(next) => cursor = next.to_owned(),
                None => return Ok(None),
            }
        }
        Err(Error::Decode) // too many pages, which does not mean that there is no result
    }

    /// Makes a call with the client's token, within the time limit, and counts its result.
    async fn call<'a, F>(
        &'a self,
        method: &'static str,
        make: impl FnOnce(SlackClientApiCallContext<'a>) -> F,
    ) -> Result<Value, Error>
    where
        F: Future<Output = ClientResult<Value>>,
    {
        let context = SlackClientApiCallContext {
            rate_control_params: None,
            token: Some(&self.token),
            tracing_span: no_span(),
            is_sensitive_url: false,
        };
        let answered = async { self.with_timeout(make(context)).await.and_then(successful) };
        let result = spans::call("slack", method, answered, |result| status_of(result).into()).await;
        match &result {
            Ok(_) => self.health.accepted(method, Instant::now()),
            Err(Error::Auth { code }) => self.health.refused(code, method, Instant::now()),
            Err(Error::MissingScope { needed }) => self.missing.note(needed, method),
            Err(_) => {}
        }
        metrics::counter!("countersign_slack_calls_total", "method" => method, "result" => status_of(&result))
            .increment(1);
        result
    }

    pub(super) async fn with_timeout(&self, call: impl Future<Output = ClientResult<Value>>) -> Result<Value, Error> {
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Err(error)) if was_too_long(&error) => Err(Error::NoAnswer("the answer is too long")),
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(Error::NoAnswer("timeout")),
        }
    }
}

/// Returns the end of a call, for metrics.
fn status_of(result: &Result<Value, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Error::RateLimited { .. }) => "rate_limited",
        Err(Error::NoAnswer(_) | Error::Decode) => "no_answer",
        Err(Error::NotSent) => "not_sent",
        Err(_) => "refused",
    }
}

/// Returns the answer if it says that the call succeeded. The library returns an empty answer for a successful status
/// without JSON, such as a proxy's page.
fn successful(answer: Value) -> Result<Value, Error> {
    if answer["ok"] == true { Ok(answer) } else { Err(Error::Decode) }
}

/// Returns the messages of a page.
pub(super) fn messages(page: &Value) -> impl Iterator<Item = &Value> {
    page["messages"].as_array().into_iter().flatten()
}

/// Returns true if a message is the bot's own and has this nonce.
fn has_nonce(message: &Value, nonce: &Nonce) -> bool {
    field::text(message, "/metadata/event_type") == Some(METADATA)
        && field::text(message, "/metadata/event_payload/nonce") == Some(nonce.as_str())
}

/// Returns the context of a call to an address that needs no token.
pub(super) fn without_token() -> SlackClientApiCallContext<'static> {
    SlackClientApiCallContext {
        rate_control_params: None,
        token: None,
        tracing_span: no_span(),
        is_sensitive_url: true,
    }
}

/// Returns a disabled span, for the debug lines of the library.
fn no_span() -> &'static Span {
    static NONE: std::sync::LazyLock<Span> = std::sync::LazyLock::new(Span::none);
    &NONE
}

pub(super) fn ts(message: &Value) -> Result<MessageTs, Error> {
    required_text(message, "/ts").map(MessageTs::from)
}

pub(super) fn required_text<'a>(answer: &'a Value, pointer: &str) -> Result<&'a str, Error> {
    field::text(answer, pointer).ok_or(Error::Decode)
}

fn users(list: &Value) -> Vec<UserId> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(UserId::from).collect()
}
