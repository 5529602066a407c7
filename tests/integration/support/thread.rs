//! One thread, as people see it.

use std::{collections::HashMap, ops::Deref, sync::Arc};

use countersign::ids::MessageTs;
use countersign_sandbox::slack;

use super::{
    bot::TestBot,
    short::{self, BETWEEN},
};

/// The bot of a thread: the test's, or shared with the test.
enum Bot<'a> {
    Borrowed(&'a TestBot),
    Shared(Arc<TestBot>),
}

impl Deref for Bot<'_> {
    type Target = TestBot;

    fn deref(&self) -> &TestBot {
        match self {
            Self::Borrowed(bot) => bot,
            Self::Shared(bot) => bot,
        }
    }
}

/// A thread of the workspace.
pub(crate) struct Thread<'a> {
    bot: Bot<'a>,
    pub(super) channel: String,
    pub(crate) root: MessageTs,
    /// What was heard of each message of the bot.
    heard: HashMap<MessageTs, String>,
    /// The same as a reader saw it, where the test looked at it.
    read: HashMap<MessageTs, String>,
    told: HashMap<String, usize>,
}

impl<'a> Thread<'a> {
    pub(crate) fn new(bot: &'a TestBot, channel: &str, root: MessageTs) -> Self {
        Self::of(Bot::Borrowed(bot), channel, root)
    }

    pub(super) fn shared(bot: Arc<TestBot>, channel: &str, root: MessageTs) -> Self {
        Self::of(Bot::Shared(bot), channel, root)
    }

    fn of(bot: Bot<'a>, channel: &str, root: MessageTs) -> Self {
        let (heard, read, told) = Default::default();
        Self { bot, channel: channel.to_owned(), root, heard, read, told }
    }

    /// What the bot has said or changed since this was last asked, as a reader sees it now.
    pub(crate) fn heard(&mut self) -> String {
        let new: Vec<_> = self.news().into_iter().map(|(now, _)| now).collect();
        new.join(BETWEEN)
    }

    /// The same in short: without what the test has read before, see [`short`].
    pub(crate) fn in_short(&mut self) -> String {
        short::messages(&self.news())
    }

    /// Somebody writes in the thread; what they are answered, in short.
    pub(crate) async fn answer(&mut self, name: &str, text: &str) -> String {
        self.says(name, text).await;
        self.in_short()
    }

    /// Somebody presses a button; what becomes of it, in short.
    pub(crate) async fn outcome(&mut self, name: &str, label: &str) -> String {
        self.clicks(name, label).await;
        self.in_short()
    }

    /// Somebody presses a button, and what becomes of it is not what the test is about.
    pub(crate) async fn clicked(&mut self, name: &str, label: &str) {
        self.clicks(name, label).await;
        self.skip();
    }

    /// Somebody presses a button; what only they are told.
    pub(crate) async fn private_answer(&mut self, name: &str, label: &str) -> String {
        self.clicks(name, label).await;
        self.told(name)
    }

    /// Passes over what was said: it is not new any more, and was not read.
    pub(crate) fn skip(&mut self) {
        let read = self.read.clone();
        self.news();
        self.read = read;
    }

    /// The messages that are new or changed, each with what was read of it before.
    fn news(&mut self) -> Vec<(String, Option<String>)> {
        let mut new = Vec::new();
        for message in self.messages() {
            let words = message.words();
            let before = self.heard.insert(message.ts.clone(), words.clone());
            // The buttons of an answered question are taken away, which is no news.
            let is_answered = before.as_ref().is_some_and(|before| short::without_buttons(before) == words);
            if before.as_ref() != Some(&words) && !is_answered {
                let now = self.bot.readable(&words);
                let before = self.read.insert(message.ts, now.clone());
                new.push((now, before));
            }
        }
        new
    }

    /// The newest message of the bot.
    pub(crate) fn last(&self) -> String {
        self.messages().last().map(|message| self.bot.readable(&message.words())).unwrap_or_default()
    }

    /// The newest message of the bot, in short.
    pub(crate) fn last_in_short(&self) -> String {
        short::message(self.last())
    }

    /// What only `name` was told since this was last asked.
    pub(crate) fn told(&mut self, name: &str) -> String {
        let all: Vec<_> = self.bot.slack.ephemerals(name).iter().map(|m| self.bot.readable(&m.words())).collect();
        let known = self.told.insert(name.to_owned(), all.len()).unwrap_or_default();
        all[known..].join("\n---\n")
    }

    /// Somebody writes in the thread, without a mention; returns when the bot is done.
    pub(crate) async fn says(&self, name: &str, text: &str) {
        let ts = self.bot.slack.says(name, &self.channel, text, Some(&self.root)).unwrap();
        self.bot.delivered(&ts).await;
        self.bot.settled().await;
    }

    /// Somebody presses the newest button with this label; returns when the bot is done. Who rejects gives no reason.
    pub(crate) async fn clicks(&self, name: &str, label: &str) {
        self.press(name, label).await;
        self.bot.settled().await;
        if ["Reject…", "reject"].contains(&label) && rejects_without_reason(&self.bot.slack, name).await {
            self.bot.settled().await;
        }
    }

    /// Somebody presses, and nobody waits.
    pub(crate) async fn press(&self, name: &str, label: &str) {
        let message = self.with_button(label);
        self.bot.slack.clicks(name, &self.channel, &message, label).await.unwrap();
    }

    /// The newest message that has, or had, the button with this label, or has the one with this action id.
    pub(crate) fn with_button(&self, label: &str) -> MessageTs {
        let has = |message: &slack::world::message::Message| {
            message.buttons().iter().any(|button| button.label == label || button.action_id == label)
                || message.earlier.iter().any(|blocks| serde_json::json!(blocks).to_string().contains(label))
        };
        let found = self.messages().into_iter().rev().find(has);
        found.unwrap_or_else(|| panic!("no message has a button `{label}`; the last one says: {}", self.last())).ts
    }

    /// The messages of the bot, oldest first.
    pub(crate) fn messages(&self) -> Vec<slack::world::message::Message> {
        let all = self.bot.slack.thread(&self.channel, &self.root);
        all.into_iter().filter(|message| message.by_app && !message.deleted).collect()
    }
}

/// Sends the window in which somebody rejects a request, if there is one before them.
pub(crate) async fn rejects_without_reason(slack: &slack::SandboxSlack, name: &str) -> bool {
    let user = slack.user(name);
    let window = slack.look(|world| {
        let view = &world.views[world.stacks.get(&user)?.last()?];
        (view.title() == "Reject this request?").then(|| view.id.clone())
    });
    let Some(window) = window else { return false };
    slack.submits(name, &window, serde_json::json!({})).await.unwrap();
    true
}

/// Without what differs from run to run: times, dates, ids and digests.
pub(crate) fn normalised(text: &str) -> String {
    let mut words = Vec::new();
    for line in text.lines() {
        let mut out = String::new();
        let mut rest = line;
        while let Some(start) = rest.find("<!date^") {
            out.push_str(&rest[..start]);
            let (token, after) = rest[start..].split_once('>').unwrap_or((&rest[start..], ""));
            out.push_str(chosen_date(token).unwrap_or("‹time›"));
            rest = after;
        }
        out.push_str(rest);
        words.push(without_hex(&without_addresses(&out)));
    }
    words.join("\n")
}

/// The date in a token for a date, in UTC, if a test chose it: one after 2090.
fn chosen_date(token: &str) -> Option<&str> {
    let seconds: i64 = token.strip_prefix("<!date^")?.split('^').next()?.parse().ok()?;
    token.split_once('|').map(|(_, written)| written).filter(|_| seconds > 3_786_912_000)
}

/// Links into the workspace become their words: `<https://…/archives/C1/p17…|open the card>` is `‹open the card›`.
fn without_addresses(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("<https://learning-lab.slack.com/archives/") {
        out.push_str(&rest[..start]);
        let (link, after) = rest[start..].split_once('>').unwrap_or((&rest[start..], ""));
        out.push_str(&format!("‹{}›", link.split_once('|').map_or("link", |(_, words)| words)));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Digests (8 hexadecimal digits) and UUIDs become `‹id›`.
fn without_hex(line: &str) -> String {
    let is_id = |word: &str| {
        let hex = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        hex && matches!(word.len(), 8 | 36)
    };
    line.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .map(|piece| {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            if is_id(word) { piece.replace(word, "‹id›") } else { piece.to_owned() }
        })
        .collect()
}
