//! The stand-in for a Slack workspace: a real HTTP and WebSocket server on this machine, for
//! people, the bot and the page.
//!
//! It keeps users, channels, messages, views and files; answers the Web API under `/api/`; delivers
//! events, clicks and commands to the app over signed HTTP requests or Socket Mode, with Slack's
//! acknowledgements, redeliveries and deadlines; refuses what Slack refuses; and simulates faults
//! on request ([`faults`]). All calls and deliveries are recorded in its [`ledger`], which tests
//! check.
//!
//! It must not depend on the bot: the two exchange bytes only, and share no types.
//!
//! Start reading at [`SandboxSlack::start`], then `people` and `acts` (actions of a person),
//! `timeline` (changes of messages), `events` (the payloads of events) and `delivery` (their
//! delivery). `web_api` has a file for each family of methods, `workspace` is the API of the page,
//! and `check` has the limits of Block Kit.
//!
//! A mock with canned answers was rejected as a design: it could not notice that the bot edited the
//! wrong message.

mod acts;
mod agent;
pub mod broadcast;
pub mod check;
mod delivery;
mod events;
pub mod faults;
mod http_delivery;
mod interactions;
pub mod ledger;
mod limits;
pub mod people;
mod persistence;
mod response_url;
pub mod scopes;
mod server;
mod socket;
mod start;
mod suggest;
mod timeline;
mod values;
mod views;
mod web_api;
mod workspace;
pub mod world;

use std::{path::PathBuf, sync::Arc, time::Duration};

use countersign_core::clock::{Clock, SystemClock};

/// A handle to a running workspace. Clones refer to the same workspace. It runs until
/// [`SandboxSlack::stop`] or the end of the runtime.
#[derive(Clone)]
pub struct SandboxSlack {
    server: Arc<server::Server>,
}

/// The options of a workspace.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 means a free one.
    pub port: u16,
    /// The way in which the app is reached.
    pub mode: Mode,
    /// The file that stores the workspace between runs; `None` if it is not stored. Uploads are
    /// stored in a folder next to it.
    pub persist: Option<PathBuf>,
    /// The file to which each call and delivery is appended as a line of JSON.
    pub ledger: Option<PathBuf>,
    /// The time within which the app must acknowledge. In Slack it is 3 s.
    pub answer_within: Duration,
    /// The delays before redeliveries of an event that was not acknowledged. In Slack they are 0, 1
    /// min and 5 min.
    pub redeliver_after: Vec<Duration>,
    /// The interval of pings on a socket.
    pub ping_every: Duration,
    /// The time for which a socket stays open after a `disconnect`. After one with reason `warning`
    /// it is 10 s.
    pub linger: Duration,
    /// True if calls are limited by Slack's tiers.
    pub rate_limits: bool,
    /// The slash commands of the app.
    pub commands: Vec<Command>,
    /// The shortcuts of the app.
    pub shortcuts: Vec<Shortcut>,
    /// The scopes of the bot token. A method that needs another scope is refused with
    /// `missing_scope`.
    pub scopes: Vec<String>,
    /// The clock of timestamps, triggers and signatures.
    pub clock: Arc<dyn Clock>,
}

/// The scopes that this bot requests when it is installed.
const SCOPES: [&str; 18] = [
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "usergroups:read",
    "users:read",
];

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            mode: Mode::Socket,
            persist: None,
            ledger: None,
            answer_within: Duration::from_secs(3),
            redeliver_after: vec![Duration::ZERO, Duration::from_secs(60), Duration::from_secs(300)],
            ping_every: Duration::from_secs(10),
            linger: Duration::from_secs(1),
            rate_limits: false,
            commands: vec![
                Command::new(
                    "/upgrade",
                    "Experiments on the platform",
                    "status | list [context or status] | show <name> | watches | pending | help",
                ),
                Command::new("/simulation", "Simulations", "status | list | parameters <simulation>"),
                Command::new(
                    "/mail",
                    "The team's mail",
                    "status | waiting | show <sender, subject or id> | sync | pause | resume",
                ),
                Command::new(
                    "/countersign",
                    "What waits for you, and your runs",
                    "pending | runs | mine | standing | notebook [link] | settings | help",
                ),
            ],
            shortcuts: vec![
                Shortcut::new("ask_about_message", "Ask about this message", ShortcutKind::Message),
                Shortcut::new("export_thread", "Export this thread", ShortcutKind::Message),
                Shortcut::new("new_experiment", "New experiment…", ShortcutKind::Global),
            ],
            scopes: SCOPES.iter().map(|&scope| scope.to_owned()).collect(),
            clock: Arc::new(SystemClock),
        }
    }
}

/// The way in which the app is reached.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Over WebSockets that the app opens.
    Socket,
    /// By signed requests to the app.
    Http {
        /// The base URL of `/slack/events`, `/slack/interactions` and `/slack/commands`. It can be
        /// set later with [`SandboxSlack::point_at`].
        events_url: Option<String>,
        /// The secret that requests are signed with.
        signing_secret: String,
    },
}

/// A slash command, as the app's manifest declares it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Command {
    /// The command with its slash.
    pub command: String,
    /// The purpose.
    pub description: String,
    /// A hint about its arguments.
    pub usage_hint: String,
}

impl Command {
    /// Creates a command with its slash, its purpose and a hint about its arguments.
    pub fn new(command: &str, description: &str, usage_hint: &str) -> Self {
        Self { command: command.to_owned(), description: description.to_owned(), usage_hint: usage_hint.to_owned() }
    }
}

/// A shortcut, as the app's manifest declares it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Shortcut {
    /// The callback id, which is sent to the app when the shortcut is used.
    pub callback_id: String,
    /// The text in the menu.
    pub name: String,
    /// `message` (in the menu of a message) or `global`.
    #[serde(rename = "type")]
    pub kind: ShortcutKind,
}

impl Shortcut {
    /// Creates a shortcut with its callback id, its text in the menu, and the place where it is
    /// offered.
    pub fn new(callback_id: &str, name: &str, kind: ShortcutKind) -> Self {
        Self { callback_id: callback_id.to_owned(), name: name.to_owned(), kind }
    }
}

/// The place where a shortcut is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortcutKind {
    /// In the menu of a message.
    Message,
    /// Everywhere.
    Global,
}

/// The reason why an operation on the workspace failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The app did not acknowledge in time. The page then shows a warning sign.
    #[error("the app did not respond")]
    Unanswered,
    /// There is no such user, channel, message, button, view, command or shortcut.
    #[error("there is no {0}")]
    Nothing(String),
    /// Fields of a modal are not filled in correctly. The errors are by block.
    #[error("the form was refused: {0:?}")]
    Refused(std::collections::BTreeMap<String, String>),
    /// The expected event did not happen in time.
    #[error("{waited_for} did not happen in time; last seen:\n{last_seen}")]
    TimedOut {
        /// A description of the expected event.
        waited_for: String,
        /// The newest messages.
        last_seen: String,
    },
    /// The port is taken.
    #[error("the stand-in for Slack cannot listen on {address}")]
    Start {
        /// The address to listen on.
        address: std::net::SocketAddr,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A file cannot be read.
    #[error("the stand-in for Slack cannot use {}", path.display())]
    File {
        /// The path of the file.
        path: std::path::PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
}
