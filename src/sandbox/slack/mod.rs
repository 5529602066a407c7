//! A Slack workspace on this machine: a real HTTP and WebSocket server for people, the bot and the page.
//!
//! It keeps users, channels, messages, views and files; answers the Web API under `/api/`; delivers events, clicks and
//! commands to the app over signed HTTP requests or Socket Mode, with Slack's acknowledgements, redeliveries and
//! deadlines; refuses what Slack refuses; and misbehaves on request ([`faults`]). Everything that crossed the wire is
//! in its [`ledger`], which tests judge by.
//!
//! It must not know the bot: no type of the production code crosses into this module, only bytes.
//!
//! Start reading at [`SandboxSlack::start`], then `people` and `acts` (what a person can do), `timeline` (changes of
//! messages), `events` (what the app receives) and `delivery` (how it is sent). `web_api` has a file for each family of
//! methods, `workspace` is the interface of the page, `check` the table of Block Kit limits.
//!
//! Not taken: a mock with canned answers. It cannot notice that the bot edited the wrong message.

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
mod sandbox_api;
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

/// A running workspace. Clones are handles to the same one; it runs until [`SandboxSlack::stop`] or until the runtime
/// ends.
#[derive(Clone)]
pub struct SandboxSlack {
    server: Arc<server::Server>,
}

/// The options of a workspace.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// The way in which the app is reached.
    pub mode: Mode,
    /// The file that keeps the workspace between runs; `None`: it is not kept. Uploads lie beside it.
    pub persist: Option<PathBuf>,
    /// The file to which every call and delivery is also written as a line of JSON.
    pub ledger: Option<PathBuf>,
    /// The time that the app has to acknowledge. Slack: 3 s.
    pub answer_within: Duration,
    /// The delay after each unacknowledged delivery of an event until the next. Slack: at once, 1 min, 5 min.
    pub redeliver_after: Vec<Duration>,
    /// The interval at which the server pings a socket.
    pub ping_every: Duration,
    /// The time a socket stays open after a `disconnect` that is no warning; after a warning it is 10 s.
    pub linger: Duration,
    /// True if calls are limited by Slack's tiers.
    pub rate_limits: bool,
    /// The slash commands of the app.
    pub commands: Vec<Command>,
    /// The shortcuts of the app.
    pub shortcuts: Vec<Shortcut>,
    /// The scopes of the bot token; a method that needs more is refused with `missing_scope`.
    pub scopes: Vec<String>,
    /// The clock of timestamps, triggers and signatures.
    pub clock: Arc<dyn Clock>,
}

/// The scopes that a bot like ours asks for when it is installed.
const SCOPES: [&str; 15] = [
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
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
                    "status | list [context or status] | show <name> | pending | help",
                ),
                Command::new("/simulation", "Simulations", "status | list | parameters <simulation>"),
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
    /// Over sockets that the app opens.
    Socket,
    /// By signed requests to the app.
    Http {
        /// The address before `/slack/events`, `/slack/interactions` and `/slack/commands`; may be given later
        /// ([`SandboxSlack::point_at`]).
        events_url: Option<String>,
        /// The secret that requests are signed with.
        signing_secret: String,
    },
}

/// A slash command, as the app's manifest declares it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Command {
    /// With its slash.
    pub command: String,
    /// The purpose.
    pub description: String,
    /// The hint about its arguments.
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
    /// The id that comes back when it is used.
    pub callback_id: String,
    /// The text in the menu.
    pub name: String,
    /// `message` (in the menu of a message) or `global`.
    #[serde(rename = "type")]
    pub kind: ShortcutKind,
}

impl Shortcut {
    /// Creates a shortcut by its callback id, its text in the menu, and its place.
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

/// The reason why an act of a person failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The page shows a warning sign: there was no acknowledgement within the deadline.
    #[error("the app did not respond")]
    Unanswered,
    /// There is no such user, channel, message, button, view, command or shortcut.
    #[error("there is no {0}")]
    Nothing(String),
    /// The fields of a modal are not filled in correctly.
    #[error("the form was refused: {0:?}")]
    Refused(std::collections::BTreeMap<String, String>),
    /// The expected event did not happen in time.
    #[error("{waited_for} did not happen in time; last seen:\n{last_seen}")]
    TimedOut {
        /// The expected event.
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
