//! What a person can do in the workspace. The page does it over HTTP (`workspace`), tests through [`SandboxSlack`].

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{broadcast, oneshot},
    time::{Instant, timeout, timeout_at},
};

use super::{
    Error, SandboxSlack, ShortcutKind,
    broadcast::Change,
    delivery::{Delivery, Kind},
    events,
    interactions::root_of,
    server::Server,
    timeline::Draft,
    values,
    world::{
        SLACKBOT, World,
        message::{Message, interactive, text_of},
    },
};
use crate::ids::{ChannelId, MessageTs, UserId};

/// How often a wait looks again when nothing in the world has changed: the ledger may have.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What is pressed.
#[derive(Clone, Debug, PartialEq)]
pub enum Press {
    /// The newest thing with this label, or with this action id.
    Called(String),
    /// The element with this action id, and with this value where there are several.
    Action {
        /// The action id.
        action_id: String,
        /// The button's value, or what is chosen.
        value: Option<String>,
    },
}

impl From<&str> for Press {
    fn from(label: &str) -> Self {
        Self::Called(label.to_owned())
    }
}

/// Where on the page something is pressed.
#[derive(Clone, Debug)]
pub(super) struct Pressed<'a> {
    pub(super) block_id: Option<&'a str>,
    pub(super) press: Press,
    pub(super) chosen: Value,
}

/// What comes of typing a line.
#[derive(Clone, Debug)]
pub(super) enum Typed {
    Said(MessageTs),
    Command(Option<Value>),
}

impl SandboxSlack {
    /// The id of a person, by name.
    ///
    /// # Panics
    ///
    /// If there is nobody of that name.
    pub fn user(&self, name: &str) -> UserId {
        let world = self.server.world();
        world.user(name).map(|user| user.id.clone()).unwrap_or_else(|| panic!("there is no user `{name}`"))
    }

    /// Has somebody say something, as typed: `@countersign` and other names become mentions, the rest is escaped.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is no such user, channel or thread.
    pub fn says(&self, user: &str, channel: &str, text: &str, thread: Option<&MessageTs>) -> Result<MessageTs, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.say(&user, &channel, text, thread)
    }

    /// Has somebody press a button, or choose from a menu, of a message; by label or by action id and value. Waits for
    /// the acknowledgement.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if there is nothing like it, now or in earlier versions of the message;
    /// [`Error::Unanswered`] if the app did not acknowledge in time.
    pub async fn clicks(
        &self,
        user: &str,
        channel: &str,
        ts: &MessageTs,
        press: impl Into<Press>,
    ) -> Result<(), Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        let press = press.into();
        let chosen = match &press {
            Press::Action { value: Some(value), .. } => json!(value),
            _ => Value::Null,
        };
        self.server.press_on_message(&user, &channel, ts, Pressed { block_id: None, press, chosen }).await
    }

    /// Has somebody press a button in a modal or in their Home tab.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::clicks`].
    pub async fn clicks_in_view(&self, user: &str, view_id: &str, press: impl Into<Press>) -> Result<(), Error> {
        let user = self.user(user);
        let press = press.into();
        let chosen = match &press {
            Press::Action { value: Some(value), .. } => json!(value),
            _ => Value::Null,
        };
        self.server.press_on_view(&user, view_id, Pressed { block_id: None, press, chosen }).await
    }

    /// Has somebody fill in and submit a modal. Fields may be named by label; see `values`. Says whether it closed.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with a text for each field that the app, or Slack, objects to; else as [`SandboxSlack::clicks`].
    pub async fn submits(&self, user: &str, view_id: &str, values: Value) -> Result<bool, Error> {
        self.server.submit(&self.user(user), view_id, &values).await
    }

    /// Has somebody close a modal without submitting it.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] if it is not open.
    pub fn closes(&self, user: &str, view_id: &str) -> Result<(), Error> {
        self.server.close(&self.user(user), view_id)
    }

    /// Has somebody type a slash command. Gives what the app put into its acknowledgement.
    ///
    /// # Errors
    ///
    /// [`Error::Nothing`] for a command that the app does not have; else as [`SandboxSlack::clicks`].
    pub async fn command(&self, user: &str, channel: &str, line: &str) -> Result<Option<Value>, Error> {
        let (user, channel) = self.server.who_and_where(user, channel)?;
        self.server.command(&user, &channel, line).await
    }

    /// Has somebody use a shortcut, on a message or not.
    ///
    /// # Errors
    ///
    /// As [`SandboxSlack::clicks`].
    pub async fn uses_shortcut(
        &self,
        user: &str,
        callback_id: &str,
        message: Option<(&str, &MessageTs)>,
    ) -> Result<(), Error> {
        let user = self.user(user);
        let message = match message {
            Some((channel, ts)) => Some((self.server.who_and_where(user.as_str(), channel)?.1, ts.clone())),
            None => None,
        };
        self.server.shortcut(&user, callback_id, message).await
    }

    /// Has somebody look at the app's Home tab.
    pub fn opens_home(&self, user: &str) {
        self.server.open_home(&self.user(user));
    }

    /// What was said in a channel outside threads and can be seen by all, oldest first.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        let world = self.server.world();
        let Some(channel) = world.channel(channel) else { return Vec::new() };
        world.roots(&channel.id).cloned().collect()
    }

    /// A thread: its root and the replies that can be seen by all, oldest first.
    pub fn thread(&self, channel: &str, root: &MessageTs) -> Vec<Message> {
        let world = self.server.world();
        let Some(channel) = world.channel(channel) else { return Vec::new() };
        let first = world.message(&channel.id, root).filter(|message| !message.deleted);
        first.into_iter().chain(world.replies(&channel.id, root)).cloned().collect()
    }

    /// What one person alone was told, oldest first.
    pub fn ephemerals(&self, user: &str) -> Vec<Message> {
        let user = self.user(user);
        let world = self.server.world();
        let all = world.messages.values().flat_map(|messages| messages.values());
        all.filter(|m| m.ephemeral_to.as_ref() == Some(&user) && !m.deleted).cloned().collect()
    }

    /// Changes from now on, as the page is told.
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.server.changes.subscribe()
    }

    /// Looks at the world, at each change, until `find` finds something.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] after `bound`, with the newest messages.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        bound: Duration,
        mut find: impl FnMut(&World) -> Option<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + bound;
        let mut changes = self.subscribe();
        loop {
            if let Some(found) = find(&self.server.world()) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                let last_seen = newest(&self.server.world());
                return Err(Error::TimedOut { waited_for: what.to_owned(), last_seen });
            }
            let again = deadline.min(Instant::now() + LOOK_AGAIN);
            timeout_at(again, changes.recv()).await.ok();
        }
    }
}

impl Server {
    pub(super) fn who_and_where(&self, user: &str, channel: &str) -> Result<(UserId, ChannelId), Error> {
        let world = self.world();
        let user = world.user(user).ok_or_else(|| Error::Nothing(format!("user `{user}`")))?.id.clone();
        // In a direct message with the bot, each person means their own.
        let own = (channel == world.app.user.as_str() || channel == "@countersign").then_some(user.as_str());
        let found = world.channel(own.unwrap_or(channel)).filter(|channel| channel.has(&user));
        let channel = found.ok_or_else(|| Error::Nothing(format!("channel `{channel}` for `{user}`")))?.id.clone();
        Ok((user, channel))
    }

    pub(super) fn say(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        text: &str,
        thread: Option<&MessageTs>,
    ) -> Result<MessageTs, Error> {
        let (text, thread) = {
            let world = self.world();
            let thread = match thread {
                Some(ts) => {
                    Some(root_of(&world, channel, ts).ok_or_else(|| Error::Nothing(format!("message `{ts}`")))?)
                }
                None => None,
            };
            (typed(text, &world), thread)
        };
        Ok(self.post(Draft { thread, ..Draft::new(channel.clone(), user.clone(), text) }).ts)
    }

    /// A line typed into the page: a message, or a command where one may stand.
    pub(super) async fn type_line(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        line: &str,
        thread: Option<&MessageTs>,
    ) -> Result<Typed, Error> {
        let Some(word) = line.strip_prefix('/').and_then(|rest| rest.split_whitespace().next()) else {
            return self.say(user, channel, line, thread).map(Typed::Said);
        };
        let refused = match thread {
            Some(_) => format!("/{word} is not supported in threads. Sorry!"),
            None if !self.options.commands.iter().any(|c| c.command[1..] == *word) => {
                format!("/{word} is not a valid command.")
            }
            None => return self.command(user, channel, line).await.map(Typed::Command),
        };
        self.post(Draft {
            thread: thread.cloned(),
            ephemeral_to: Some(user.clone()),
            ..Draft::new(channel.clone(), SLACKBOT.into(), escape(&refused))
        });
        Ok(Typed::Command(None))
    }

    pub(super) async fn command(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        line: &str,
    ) -> Result<Option<Value>, Error> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if !self.options.commands.iter().any(|known| known.command == command) {
            return Err(Error::Nothing(format!("command `{command}`")));
        }
        let payload = {
            let mut world = self.world();
            let rest = typed(rest.trim(), &world);
            self.command_typed(&mut world, user, channel, command, &rest)
        };
        let answer = self.ask_app(Kind::Command, command, payload).await;
        match &answer {
            Ok(Some(answer)) => self.show_answer(user, channel, answer),
            Ok(None) => {}
            Err(_) => {
                let text = format!("{command} failed with the error \"dispatch_failed\"");
                let ephemeral_to = Some(user.clone());
                self.post(Draft { ephemeral_to, ..Draft::new(channel.clone(), SLACKBOT.into(), text) });
            }
        }
        answer
    }

    pub(super) async fn press_on_message(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        ts: &MessageTs,
        pressed: Pressed<'_>,
    ) -> Result<(), Error> {
        let payload = {
            let mut world = self.world();
            let message = world
                .message(channel, ts)
                .filter(|m| !m.deleted && m.ephemeral_to.as_ref().is_none_or(|to| to == user))
                .ok_or_else(|| Error::Nothing(format!("message `{ts}`")))?
                .clone();
            let (block_id, element) = std::iter::once(&message.blocks)
                .chain(message.earlier.iter().rev())
                .find_map(|blocks| find(blocks, &pressed))
                .ok_or_else(|| Error::Nothing(format!("{:?} on:\n{}", pressed.press, message.words())))?;
            let action_ts = world.next_ts(self.now());
            let action = values::action(&block_id, &element, &pressed.chosen, action_ts.as_str());
            self.pressed_on_message(&mut world, user, &message, action)
        };
        self.ask_app(Kind::Interaction, "block_actions", payload).await.map(|_| ())
    }

    pub(super) async fn press_on_view(
        self: &Arc<Self>,
        user: &UserId,
        view_id: &str,
        pressed: Pressed<'_>,
    ) -> Result<(), Error> {
        let payload = {
            let mut world = self.world();
            let home = world.homes.get(user).filter(|view| view.id == view_id);
            let view = home.or_else(|| world.views.get(view_id)).filter(|view| view.open && view.user == *user);
            let mut view = view.ok_or_else(|| Error::Nothing(format!("view `{view_id}`")))?.clone();
            let (block_id, element) = find(view.blocks(), &pressed)
                .ok_or_else(|| Error::Nothing(format!("{:?} in view `{view_id}`", pressed.press)))?;
            let action_ts = world.next_ts(self.now());
            let action = values::action(&block_id, &element, &pressed.chosen, action_ts.as_str());
            let chosen = json!({ &block_id: { text_of(&element["action_id"]): pressed.chosen } });
            let given = if pressed.chosen.is_null() { &Value::Null } else { &chosen };
            view.values = values::filled_in(view.blocks(), given, &view.values);
            let kept = world.views.get_mut(view_id);
            if let Some(kept) = kept {
                kept.values = view.values.clone();
            }
            self.pressed_on_view(&mut world, user, &view, action)
        };
        self.ask_app(Kind::Interaction, "block_actions", payload).await.map(|_| ())
    }

    /// Submits a modal and does what the app answers. True if it closed.
    pub(super) async fn submit(self: &Arc<Self>, user: &UserId, view_id: &str, given: &Value) -> Result<bool, Error> {
        let payload = {
            let mut world = self.world();
            let view = world.views.get_mut(view_id).filter(|view| view.open && view.user == *user);
            let view = view.ok_or_else(|| Error::Nothing(format!("view `{view_id}`")))?;
            view.values = values::filled_in(view.blocks(), given, &view.values);
            let missing = values::missing(view.blocks(), &view.values);
            if !missing.is_empty() {
                return Err(Error::Refused(missing));
            }
            let view = view.clone();
            self.submitted(&mut world, user, &view)
        };
        let answer = self.ask_app(Kind::Interaction, "view_submission", payload).await?.unwrap_or_default();
        let content = || answer["view"].clone();
        match answer["response_action"].as_str() {
            Some("errors") => {
                let errors = answer["errors"].as_object().into_iter().flatten();
                Err(Error::Refused(errors.map(|(block, text)| (block.clone(), text_of(text))).collect()))
            }
            Some("update") => {
                let valid = super::check::view(&answer["view"], "modal").is_ok();
                valid.then(|| self.update_view(view_id, content())).flatten().ok_or(Error::Unanswered)?;
                Ok(false)
            }
            Some("push") => {
                let valid = super::check::view(&answer["view"], "modal").is_ok();
                valid.then(|| self.push_view(user, content())).flatten().ok_or(Error::Unanswered)?;
                Ok(false)
            }
            Some("clear") => {
                self.close_views(user, true);
                Ok(true)
            }
            _ => {
                self.close_views(user, false);
                Ok(true)
            }
        }
    }

    pub(super) fn close(self: &Arc<Self>, user: &UserId, view_id: &str) -> Result<(), Error> {
        let payload = {
            let mut world = self.world();
            let view = world.views.get(view_id).filter(|view| view.open && view.user == *user);
            let view = view.ok_or_else(|| Error::Nothing(format!("view `{view_id}`")))?.clone();
            let told = view.content["notify_on_close"] == true;
            told.then(|| self.closed(&mut world, user, &view, false))
        };
        self.close_views(user, false);
        if let Some(payload) = payload {
            self.send(interaction(Kind::Interaction, "view_closed", payload, None));
        }
        Ok(())
    }

    pub(super) async fn shortcut(
        self: &Arc<Self>,
        user: &UserId,
        callback_id: &str,
        message: Option<(ChannelId, MessageTs)>,
    ) -> Result<(), Error> {
        let kind = if message.is_some() { ShortcutKind::Message } else { ShortcutKind::Global };
        if !self.options.shortcuts.iter().any(|known| known.callback_id == callback_id && known.kind == kind) {
            return Err(Error::Nothing(format!("shortcut `{callback_id}`")));
        }
        let payload = {
            let mut world = self.world();
            let message = match &message {
                Some((channel, ts)) => {
                    let found = world.message(channel, ts).filter(|message| !message.deleted);
                    Some(found.ok_or_else(|| Error::Nothing(format!("message `{ts}`")))?.clone())
                }
                None => None,
            };
            self.shortcut_used(&mut world, user, callback_id, message.as_ref())
        };
        let about = text_of(&payload["type"]);
        self.ask_app(Kind::Interaction, &about, payload).await.map(|_| ())
    }

    pub(super) fn open_home(&self, user: &UserId) {
        let mut world = self.world();
        let delivery = events::home_opened(user, &mut world, self.now());
        self.send(delivery);
    }

    /// Delivers something that a person waits for.
    async fn ask_app(&self, kind: Kind, about: &str, payload: Value) -> Result<Option<Value>, Error> {
        let (sender, answer) = oneshot::channel();
        self.send(interaction(kind, about, payload, Some(sender)));
        let bound = self.options.answer_within + Duration::from_secs(1);
        match timeout(bound, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Error::Unanswered),
        }
    }
}

fn interaction(kind: Kind, about: &str, payload: Value, answer: Option<oneshot::Sender<Option<Value>>>) -> Delivery {
    let id = text_of(&payload["trigger_id"]);
    Delivery { kind, id, about: about.to_owned(), payload, answer }
}

/// The element that is meant, and its block.
fn find(blocks: &[Value], pressed: &Pressed<'_>) -> Option<(String, Value)> {
    let block_fits = |block: &str| pressed.block_id.is_none_or(|wanted| wanted == block);
    interactive(blocks).into_iter().find(|(block, element)| {
        block_fits(block)
            && match &pressed.press {
                Press::Called(name) => text_of(&element["text"]) == *name || element["action_id"] == name.as_str(),
                Press::Action { action_id, value } => {
                    let is_button = element["type"] == "button";
                    let value_fits =
                        value.as_ref().is_none_or(|value| !is_button || element["value"] == value.as_str());
                    element["action_id"] == action_id.as_str() && value_fits
                }
            }
    })
}

/// What somebody typed as Slack stores it: names become mentions, the rest is escaped.
pub(super) fn typed(text: &str, world: &World) -> String {
    let escaped = escape(text);
    let mut out = String::new();
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find('@') {
        let standing_alone = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
        let name_length = rest[at + 1..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        let name = &rest[at + 1..name_length.map_or(rest.len(), |length| at + 1 + length)];
        let end = at + 1 + name.len();
        out.push_str(&rest[..at]);
        match world.user(&name.to_lowercase()).filter(|_| standing_alone) {
            Some(user) => out.push_str(&format!("<@{}>", user.id)),
            None => out.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn newest(world: &World) -> String {
    let mut all: Vec<&Message> = world.messages.values().flat_map(|messages| messages.values()).collect();
    all.sort_by(|a, b| a.ts.cmp(&b.ts));
    let from = all.len().saturating_sub(10);
    all[from..]
        .iter()
        .map(|m| format!("{} {} {}: {}", m.ts, m.channel, m.user, m.words()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_mentions_and_the_rest_is_escaped() {
        let world = World::seed();
        assert_eq!(typed("@countersign is 1 < 2 & 3 > 2?", &world), "<@U_BOT> is 1 &lt; 2 &amp; 3 &gt; 2?");
        assert_eq!(typed("hi @ana, @nobody; ana@ana.org", &world), "hi <@U1>, @nobody; ana@ana.org");
        assert_eq!(typed("<!channel>", &world), "&lt;!channel&gt;");
    }
}
