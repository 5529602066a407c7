//! The actions of a person, over HTTP (`workspace`) or in a test (`people`). Each reads the world,
//! notifies the app, and applies the app's response.

use std::{sync::Arc, time::Duration};

use countersign_core::ids::{ChannelId, MessageTs, UserId};
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::timeout};

use super::{
    Error, ShortcutKind,
    delivery::{Delivery, Kind},
    events,
    interactions::root_of,
    people::{Press, Stored},
    server::Server,
    timeline::{Draft, Edit},
    values,
    world::{
        File, Mode, SLACKBOT, World,
        message::{interactive, text_of},
    },
};

/// An interaction with an element: a button that is clicked or a value that is chosen.
#[derive(Clone, Debug)]
pub(super) struct Pressed<'a> {
    pub(super) block_id: Option<&'a str>,
    pub(super) press: Press,
    pub(super) chosen: Value,
    /// The known values of other elements: `state.values`.
    pub(super) values: Value,
}

/// The result of typing a line: a message, or a command with the app's response.
#[derive(Clone, Debug)]
pub(super) enum Typed {
    Said(MessageTs),
    Command(Option<Value>),
}

impl Server {
    pub(super) fn who_and_where(&self, user: &str, channel: &str) -> Result<(UserId, ChannelId), Error> {
        let world = self.world();
        let user = world.user(user).ok_or_else(|| Error::Nothing(format!("user `{user}`")))?.id.clone();
        // The bot's name means the person's own direct message with it.
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
        self.share(user, channel, text, Vec::new(), thread)
    }

    /// Posts a message with stored files.
    pub(super) fn share(
        self: &Arc<Self>,
        user: &UserId,
        channel: &ChannelId,
        text: &str,
        files: Vec<String>,
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
        Ok(self.post(Draft { thread, files, ..Draft::new(channel.clone(), user.clone(), text) }).ts)
    }

    /// Stores a file, and returns its id.
    pub(super) fn stores(&self, name: &str, bytes: &[u8], stored: Stored) -> String {
        let mut world = self.world();
        let id = world.next_id("F");
        let file = File {
            id: id.clone(),
            name: name.to_owned(),
            title: name.to_owned(),
            alt: String::new(),
            length: bytes.len(),
            complete: true,
            mode: if stored == Stored::Snippet { Mode::Snippet } else { Mode::Hosted },
            is_looked_up: stored == Stored::LookedUp,
            bytes: bytes.to_vec(),
        };
        world.files.insert(id.clone(), file);
        id
    }

    pub(super) fn edit_own(&self, user: &UserId, channel: &ChannelId, ts: &MessageTs, text: &str) -> Result<(), Error> {
        self.own(user, channel, ts)?;
        let text = typed(text, &self.world());
        self.edit(channel, ts, Edit { text, blocks: Vec::new(), metadata: None });
        Ok(())
    }

    pub(super) fn delete_own(&self, user: &UserId, channel: &ChannelId, ts: &MessageTs) -> Result<(), Error> {
        self.own(user, channel, ts)?;
        self.delete(channel, ts);
        Ok(())
    }

    /// Checks that a message is there and was written by this person.
    fn own(&self, user: &UserId, channel: &ChannelId, ts: &MessageTs) -> Result<(), Error> {
        let world = self.world();
        let message = world.message(channel, ts).filter(|message| message.user == *user && !message.deleted);
        message.map(drop).ok_or_else(|| Error::Nothing(format!("message `{ts}` of `{user}`")))
    }

    /// Types a line: a message, or a command if it starts with a slash. Commands do
    /// not work in threads.
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
            None if !self.options.commands.iter().any(|c| c.command.strip_prefix('/') == Some(word)) => {
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
            self.pressed_on_message(&mut world, user, &message, action, &pressed.values)
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
            view.values = values::filled_in(view.blocks(), &pressed.values, &view.values);
            let chosen = json!({ &block_id: { text_of(&element["action_id"]): pressed.chosen } });
            if !pressed.chosen.is_null() {
                view.values = values::filled_in(view.blocks(), &chosen, &view.values);
            }
            let kept = world.views.get_mut(view_id);
            if let Some(kept) = kept {
                kept.values = view.values.clone();
            }
            self.pressed_on_view(&mut world, user, &view, action)
        };
        self.ask_app(Kind::Interaction, "block_actions", payload).await.map(|_| ())
    }

    /// Submits a modal and applies the app's response. Returns true if the modal closed.
    pub(super) async fn submit(self: &Arc<Self>, user: &UserId, view_id: &str, given: &Value) -> Result<bool, Error> {
        let (payload, blocks) = {
            let mut world = self.world();
            let view = world.views.get_mut(view_id).filter(|view| view.open && view.user == *user);
            let view = view.ok_or_else(|| Error::Nothing(format!("view `{view_id}`")))?;
            view.values = values::filled_in(view.blocks(), given, &view.values);
            let missing = values::missing(view.blocks(), &view.values);
            if !missing.is_empty() {
                return Err(Error::Refused(missing));
            }
            let view = view.clone();
            (self.submitted(&mut world, user, &view), view.blocks().to_vec())
        };
        let answer = self.ask_app(Kind::Interaction, "view_submission", payload).await?.unwrap_or_default();
        let content = || answer["view"].clone();
        match answer["response_action"].as_str() {
            Some("errors") => {
                self.can_show(super::check::errors(&answer["errors"], &blocks));
                let errors = answer["errors"].as_object().into_iter().flatten();
                Err(Error::Refused(errors.map(|(block, text)| (block.clone(), text_of(text))).collect()))
            }
            Some("update") => {
                let valid = self.can_show(super::check::view(&answer["view"], "modal"));
                valid.then(|| self.update_view(view_id, content())).flatten().ok_or(Error::Unanswered)?;
                Ok(false)
            }
            Some("push") => {
                let valid = self.can_show(super::check::view(&answer["view"], "modal"));
                valid.then(|| self.push_view(user, content())).flatten().ok_or(Error::Unanswered)?;
                Ok(false)
            }
            Some("clear") => {
                self.close_views(user, None);
                Ok(true)
            }
            _ => {
                self.close_views(user, Some(view_id));
                Ok(true)
            }
        }
    }

    /// Returns true if the content of the app's acknowledgement can be shown. Otherwise records the
    /// problem.
    fn can_show(&self, checked: Result<(), super::check::Problem>) -> bool {
        let is_valid = checked.is_ok();
        self.record_problem("view_submission", checked);
        is_valid
    }

    pub(super) fn close(self: &Arc<Self>, user: &UserId, view_id: &str) -> Result<(), Error> {
        let payload = {
            let mut world = self.world();
            let view = world.views.get(view_id).filter(|view| view.open && view.user == *user);
            let view = view.ok_or_else(|| Error::Nothing(format!("view `{view_id}`")))?.clone();
            let notifies = view.content["notify_on_close"] == true;
            notifies.then(|| self.closed(&mut world, user, &view, false))
        };
        self.close_views(user, Some(view_id));
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

    /// Sends a delivery to the app and waits for its response.
    pub(super) async fn ask_app(&self, kind: Kind, about: &str, payload: Value) -> Result<Option<Value>, Error> {
        let (sender, answer) = oneshot::channel();
        self.send(interaction(kind, about, payload, Some(sender)));
        let limit = self.options.answer_within + Duration::from_secs(1);
        match timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Error::Unanswered),
        }
    }
}

fn interaction(kind: Kind, about: &str, payload: Value, answer: Option<oneshot::Sender<Option<Value>>>) -> Delivery {
    let id = text_of(&payload["trigger_id"]);
    Delivery { kind, id, about: about.to_owned(), payload, answer }
}

/// Returns the element that the person uses, with the id of its block.
fn find(blocks: &[Value], pressed: &Pressed<'_>) -> Option<(String, Value)> {
    let block_matches = |block: &str| pressed.block_id.is_none_or(|wanted| wanted == block);
    interactive(blocks).into_iter().find(|(block, element)| {
        block_matches(block)
            && match &pressed.press {
                Press::Called(name) => text_of(&element["text"]) == *name || element["action_id"] == name.as_str(),
                Press::Action { action_id, value } => {
                    let is_button = element["type"] == "button";
                    let value_matches =
                        value.as_ref().is_none_or(|value| !is_button || element["value"] == value.as_str());
                    element["action_id"] == action_id.as_str() && value_matches
                }
            }
    })
}

/// Converts typed text to the format in which Slack stores it: names become mentions, and the rest is
/// escaped.
pub(super) fn typed(text: &str, world: &World) -> String {
    let escaped = escape(text);
    let mut out = String::new();
    let mut rest = escaped.as_str();
    while let Some(at) = rest.find('@') {
        let begins_word = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
        let name_length = rest[at + 1..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        let name = &rest[at + 1..name_length.map_or(rest.len(), |length| at + 1 + length)];
        let end = at + 1 + name.len();
        out.push_str(&rest[..at]);
        match world.user(&name.to_lowercase()).filter(|_| begins_word) {
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
