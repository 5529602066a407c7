//! Slash commands: quick answers that only the asker sees, without any language model.

use std::sync::Arc;

use super::entry::Command;
use crate::{
    assistant::quick::QuickAnswers,
    graph::{
        action::{ActionRecord, Status},
        store::{ActionFilter, Error, Store},
    },
    reply::{Part, Reply, Text},
};

/// How many actions are listed.
const LISTED: usize = 15;

/// Answers commands.
#[derive(Clone)]
pub struct Commands {
    store: Arc<dyn Store>,
    quick: QuickAnswers,
}

/// The commands with what may follow them, as help and as the list to compare with.
const WORDS: &[(&str, &str, &str)] = &[
    ("/upgrade", "status", "whether UpGrade is running, and its version"),
    ("/upgrade", "list", "all experiments; `list assign-prog` or `list running` for some"),
    ("/upgrade", "help", "this list"),
    ("/countersign", "pending", "cards that wait for somebody"),
    ("/countersign", "runs", "the latest changes and how they ended"),
    ("/countersign", "help", "this list"),
];

impl Commands {
    /// Answers from this store and this platform.
    pub fn new(store: Arc<dyn Store>, quick: QuickAnswers) -> Self {
        Self { store, quick }
    }

    /// The answer to a command. Never fails: what went wrong is the answer then.
    pub async fn answer(&self, command: &Command) -> Reply {
        let text = command.text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match (command.command.as_str(), word.to_lowercase().as_str()) {
            ("/upgrade", "status") => self.quick.health().await,
            ("/upgrade", "list") => self.quick.list(rest.trim()).await,
            ("/countersign", "pending") => self.pending().await.unwrap_or_else(|error| unavailable(&error)),
            ("/countersign", "runs") => self.runs().await.unwrap_or_else(|error| unavailable(&error)),
            (command, "" | "help") => help(command),
            (command, other) => unknown(command, other),
        }
    }

    async fn pending(&self) -> Result<Reply, Error> {
        let open = self.actions(vec![Status::Pending]).await?;
        if open.is_empty() {
            return Ok(Reply::text("Nothing is waiting for a decision."));
        }
        let lines = open.iter().map(|record| {
            Text::new()
                .bold(record.act())
                .plain(" · asked by ")
                .person(record.requested_by.clone())
                .plain(" · open until ")
                .moment(record.expires_at)
        });
        Ok(Reply::text("Waiting for a decision:").and(Part::List(lines.collect())))
    }

    async fn runs(&self) -> Result<Reply, Error> {
        let latest = self.actions(Vec::new()).await?;
        if latest.is_empty() {
            return Ok(Reply::text("No change has been asked for yet."));
        }
        let lines = latest.iter().map(|record| {
            Text::new()
                .bold(record.act())
                .plain(format!(" {} · asked by ", words(record.status)))
                .person(record.requested_by.clone())
                .plain(" ")
                .moment(record.requested_at)
        });
        Ok(Reply::text("The latest changes:").and(Part::List(lines.collect())))
    }

    async fn actions(&self, statuses: Vec<Status>) -> Result<Vec<ActionRecord>, Error> {
        self.store.actions(&ActionFilter { thread: None, statuses, limit: LISTED }).await
    }
}

/// A status as people say it.
pub(super) fn words(status: Status) -> &'static str {
    match status {
        Status::Proposed => "is being worked out",
        Status::Pending => "waits for a decision",
        Status::Approved | Status::Intent => "is being done",
        Status::Done => "was done",
        Status::Failed => "did not work",
        Status::Unknown => "has no known outcome",
        Status::Rejected => "was rejected",
        Status::Expired => "expired",
        Status::Superseded => "was replaced",
        Status::Cancelled => "was withdrawn",
    }
}

fn help(command: &str) -> Reply {
    let lines = WORDS.iter().filter(|(name, ..)| *name == command).map(|(name, word, what)| {
        Text::new().code(format!("{name} {word}")).plain(format!("  {}", what.replace('`', "")))
    });
    Reply::text("You can ask me:")
        .and(Part::List(lines.collect()))
        .hint("For everything else, mention me in a channel or write to me directly, in your own words.")
}

fn unknown(command: &str, word: &str) -> Reply {
    let nearest = WORDS
        .iter()
        .filter(|(name, ..)| *name == command)
        .map(|(_, known, _)| (strsim::jaro_winkler(known, word), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let text = Text::from("I don't know ").code(format!("{command} {word}")).plain(".");
    match nearest {
        Some((likeness, known)) if likeness > 0.7 => {
            Reply::text(text.plain(" Did you mean ").code(format!("{command} {known}")).plain("?"))
        }
        _ => Reply::text(text).hint(Text::from("Try ").code(format!("{command} help")).plain(".")),
    }
}

fn unavailable(error: &Error) -> Reply {
    tracing::warn!(error = %error, "A command could not be answered");
    Reply::text("I can't reach my own memory at the moment.").hint("Try again in a minute, or tell whoever runs me.")
}
