//! Modals for creating something. A shortcut opens them from anywhere in Slack, and submitting one
//! leads to a normal card.
//!
//! The input is checked before the modal closes, so that errors are shown next to their fields. Then
//! a message that names the person and the request is posted in the chosen channel, and its thread
//! continues with the card as usual. If no channel was chosen, or the bot is not a member of it, the
//! person's direct messages with the bot are used. A crash in between cannot cause a second message,
//! since the message carries a nonce that is stored before it is sent.

use std::time::Duration;

use countersign_capabilities::{Registry, Shortcut};
use countersign_core::{
    cause,
    clock::Timestamp,
    ids::{ChannelId, DedupKey, Nonce, TeamId, ThreadId, UserId},
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{ActionKind, ActionRequest},
    store::{Delivery, Destination, Error, Handling, ThreadMessage},
};
use countersign_slack::{
    blocks,
    client_error::Error as SlackError,
    interaction::{Interaction, View},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    approvals::inbox::Approvals,
    presentation::{
        links::linked,
        modals::{
            self,
            check::{Deadline, FormCheck, check},
            form::{self, Frame},
        },
        render,
    },
};

/// The callback id of the form of a draft.
pub const DRAFT_FORM: &str = "draft_form";

/// The title of that form.
const DRAFT_TITLE: &str = "Fill in the rest";

/// The label of its submit button, if no shortcut has one for its action.
const PROPOSE: &str = "Propose";

/// The text above its fields, in mrkdwn.
const DRAFT_INTRO: &str = "This is what I understood so far. Nothing is changed until someone approves the card.";

/// The maximum length of the data that Slack keeps with a window, in characters.
const MAX_METADATA_CHARS: usize = 3000;

/// The draft that a form was opened with.
#[derive(Serialize, Deserialize)]
struct FilledDraft {
    thread: ThreadId,
    draft: ActionRequest,
}

/// The block id of the channel field.
const CHANNEL_BLOCK: &str = "where";

/// The timeout for loading the form's content.
const FORM_TIMEOUT: Duration = Duration::from_secs(8);

/// A request to create something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreationRequest {
    /// The workspace.
    pub team: TeamId,
    /// The channel for the request; `None` for direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// The person who made the request.
    pub by: UserId,
    /// The callback id of the shortcut; empty if the request is not the one of a shortcut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shortcut: String,
    /// The name of the thing to create.
    pub name: String,
    /// The input, as parameters of the action.
    pub parameters: serde_json::Value,
    /// The thread whose draft was filled in; `None` for a new thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The action, if the request is not the one of a shortcut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The request in the person's words, if it was not filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The nonce of the message that announces the request, by which it can be found.
    pub nonce: Nonce,
    /// The time of the submission.
    pub at: Timestamp,
}

impl CreationRequest {
    /// Creates a request without an action, in a thread of its own in direct messages.
    fn of(interaction: &Interaction, name: &str, at: Timestamp) -> Self {
        Self {
            team: interaction.team.clone(),
            channel: None,
            by: interaction.user.clone(),
            shortcut: String::new(),
            name: name.to_owned(),
            parameters: Value::Null,
            thread: None,
            action: None,
            words: None,
            nonce: Nonce::fresh(),
            at,
        }
    }

    /// Creates the request of a button that asks for something in words, in a thread of its own.
    pub fn in_words(interaction: &Interaction, channel: &ChannelId, words: &str, at: Timestamp) -> Self {
        let (channel, words) = (Some(channel.clone()), words.to_owned());
        Self { channel, words: Some(words.clone()), ..Self::of(interaction, &words, at) }
    }
}

/// The service for requests to create something.
#[derive(Clone)]
pub struct Creation {
    /// The store, Slack and the links.
    pub approvals: Approvals,
    /// The actions and their shortcuts.
    pub registry: Registry,
}

impl Creation {
    /// Returns true if this is the callback id of a shortcut that creates something, or of its
    /// modal.
    pub fn has_shortcut(&self, callback: &str) -> bool {
        callback == DRAFT_FORM || self.registry.shortcuts().any(|shortcut| shortcut.callback == callback)
    }

    /// Returns the shortcut with this callback id, and its action.
    fn shortcut(&self, callback: &str) -> Option<(&'static Shortcut, &dyn ActionKind)> {
        let shortcut = self.registry.shortcuts().find(|shortcut| shortcut.callback == callback)?;
        Some((shortcut, &**self.registry.actions.get(shortcut.action)?))
    }

    /// Opens the modal of a shortcut.
    pub async fn open(&self, trigger: Option<&str>, by: &UserId, callback: &str) {
        let shortcut = self.shortcut(callback).map(|(shortcut, _)| shortcut);
        let title = shortcut.map_or(FALLBACK_TITLE, |shortcut| shortcut.title);
        self.open_and_fill(trigger, by, title, shortcut, self.window(callback)).await;
    }

    /// Opens the form of the draft in a thread, filled in as far as the draft is known.
    pub async fn open_draft(
        &self,
        trigger: Option<&str>,
        by: &UserId,
        thread: &ThreadId,
        draft: Option<ActionRequest>,
    ) {
        self.open_and_fill(trigger, by, DRAFT_TITLE, None, self.draft_window(thread, draft)).await;
    }

    /// Opens a modal immediately, and fills it in once the platform has returned the choices.
    async fn open_and_fill(
        &self,
        trigger: Option<&str>,
        by: &UserId,
        title: &str,
        shortcut: Option<&Shortcut>,
        content: impl Future<Output = Value> + Send,
    ) {
        let slack = &self.approvals.slack;
        let opened = match trigger {
            Some(trigger) => slack.open_view(trigger, &modals::loading(title)).await,
            None => Err(SlackError::NotSent),
        };
        match opened {
            Ok(view) => {
                if let Err(error) = slack.update_view(&view, None, &content.await).await {
                    tracing::warn!(error = cause::chain(&error), "A window was not filled");
                }
            }
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "A window was not opened");
                self.message_directly(by, &window_too_late(shortcut)).await;
            }
        }
    }

    /// Returns the window with the form of a draft.
    async fn draft_window(&self, thread: &ThreadId, draft: Option<ActionRequest>) -> Value {
        let Some(draft) = draft else { return modals::message_window(DRAFT_TITLE, &no_draft()) };
        let Some(kind) = self.registry.actions.get(draft.action.as_str()) else {
            return modals::message_window(DRAFT_TITLE, &not_available());
        };
        let Ok(Some(form)) = tokio::time::timeout(FORM_TIMEOUT, kind.form(&draft.parameters)).await else {
            return modals::message_window(DRAFT_TITLE, &form_unavailable());
        };
        let submit = self.registry.shortcuts().find(|one| one.action == draft.action).map_or(PROPOSE, |one| one.submit);
        let filled = json!(FilledDraft { thread: thread.clone(), draft }).to_string();
        if filled.chars().count() > MAX_METADATA_CHARS {
            return modals::message_window(DRAFT_TITLE, &too_long_for_a_form());
        }
        let frame =
            Frame { title: DRAFT_TITLE, submit, callback: DRAFT_FORM, metadata: &filled, intro: Some(DRAFT_INTRO) };
        form::draw(&form, &frame)
    }

    async fn window(&self, callback: &str) -> Value {
        let Some((shortcut, kind)) = self.shortcut(callback) else {
            return modals::message_window(FALLBACK_TITLE, &not_available());
        };
        let title = shortcut.title;
        let Ok(Some(form)) = tokio::time::timeout(FORM_TIMEOUT, kind.form(&json!({}))).await else {
            return modals::message_window(title, &form_unavailable());
        };
        let Shortcut { callback, submit, .. } = *shortcut;
        let frame = Frame { title, submit, callback, metadata: "", intro: Some(INTRO) };
        let mut view = form::draw(&form, &frame);
        if let Some(blocks) = view["blocks"].as_array_mut() {
            blocks.insert(1, channel_field()); // below the introduction
        }
        view
    }

    /// Reads and checks a submitted modal: that of a shortcut, or the form of a draft.
    ///
    /// # Errors
    ///
    /// Returns the response to the submission if the input is not accepted.
    pub async fn read(&self, view: &View, interaction: &Interaction) -> Result<CreationRequest, Value> {
        let instead = |reply: &Reply| modals::replacement(&modals::message_window("Nothing was proposed", reply));
        let filled = match view.callback_id.as_str() {
            DRAFT_FORM => serde_json::from_str(&view.private_metadata).map_err(|_| instead(&not_available()))?,
            _ => None::<FilledDraft>,
        };
        let (kind, before) = match &filled {
            Some(FilledDraft { draft, .. }) => {
                (self.registry.actions.get(&*draft.action).map(|kind| &**kind), &draft.parameters)
            }
            None => (self.shortcut(&view.callback_id).map(|(_, kind)| kind), &json!({})),
        };
        let kind = kind.ok_or_else(|| instead(&not_available()))?;
        let parameters = match Box::pin(check(kind, before, view, Deadline::from_now())).await {
            // Input that could not be checked in time is checked in the thread anyway.
            FormCheck::Valid(parameters, _) | FormCheck::Unchecked(parameters) => parameters,
            FormCheck::Invalid(response) => return Err(response),
            FormCheck::NoForm => return Err(instead(&not_available())),
        };
        let name = parameters["name"].as_str().unwrap_or_default();
        let request = CreationRequest::of(interaction, name, self.approvals.clock.now());
        Ok(match filled {
            Some(FilledDraft { thread, draft }) => {
                CreationRequest { parameters, thread: Some(thread), action: Some(draft.action), ..request }
            }
            None => {
                let channel = view.values.get(CHANNEL_BLOCK).and_then(|values| values.first());
                let channel = channel.map(|channel| ChannelId::new(channel.as_str()));
                CreationRequest { parameters, channel, shortcut: view.callback_id.clone(), ..request }
            }
        })
    }

    /// Announces a request, and passes it to the assistant in the new thread. Returns `None` if it
    /// cannot be announced anywhere. Repeating the call has no further effect.
    ///
    /// # Errors
    ///
    /// Fails if Slack or the store does not respond. The call can be repeated.
    pub async fn begin(&self, request: &CreationRequest) -> Result<Option<ThreadId>, Error> {
        let (thread, text, action) = match (&request.thread, &request.action, &request.words) {
            (Some(thread), Some(action), _) => {
                (thread.clone(), format!("the form “{}”", request.name), Some(action.clone()))
            }
            (_, _, Some(words)) => {
                let said = Text::new().person(request.by.clone()).plain(" asks: ").bold(words.as_str());
                let Some(thread) = self.thread(request, &Reply::text(said)).await? else { return Ok(None) };
                (thread, words.clone(), None)
            }
            _ => {
                let Some((shortcut, kind)) = self.shortcut(&request.shortcut) else { return Ok(None) };
                let announcement = announcement(request, shortcut);
                let Some(thread) = self.thread(request, &announcement).await? else { return Ok(None) };
                (thread, format!("{} “{}”", shortcut.what, request.name), Some(kind.name().to_owned()))
            }
        };
        let parameters = request.parameters.clone();
        let message = ThreadMessage::Said {
            by: request.by.clone(),
            text,
            ts: thread.root.clone(),
            addressed: true,
            request: action.map(|action| ActionRequest { action, parameters }),
        };
        // The inbox entry is in the person's partition, not the thread's, so this is a separate write.
        let to = Destination::mailbox(thread.clone(), true, message);
        let dedup = vec![DedupKey::new(format!("wanted:{}", request.nonce.as_str()))];
        self.approvals.store.ingest(&Delivery { to, dedup, at: self.approvals.clock.now() }, Handling::Later).await?;
        Ok(Some(thread))
    }

    /// Returns the notice about the thread in which a request was posted, or that it could not be posted; `None` for a
    /// request that was made in its thread.
    pub fn notice(&self, request: &CreationRequest, thread: Option<&ThreadId>) -> Option<Reply> {
        let url = |thread: &ThreadId| self.approvals.links.message(&thread.channel, &thread.root, &thread.root);
        request.thread.is_none().then(|| match thread {
            Some(thread) => posted(request, thread, url(thread)),
            None => not_posted(request),
        })
    }

    /// Returns the thread for the request: in the channel, or in direct messages if the bot cannot
    /// post in the channel.
    async fn thread(&self, request: &CreationRequest, announcement: &Reply) -> Result<Option<ThreadId>, Error> {
        if let Some(channel) = &request.channel
            && let Some(thread) = self.announce(request, channel, announcement).await?
        {
            return Ok(Some(thread));
        }
        let direct = match self.approvals.slack.open_direct(&request.by).await {
            Ok(direct) => direct,
            Err(error) => return none_if_final(error),
        };
        let reply = match &request.channel {
            Some(_) => announcement.clone().hint(NOT_A_MEMBER),
            None => announcement.clone(),
        };
        self.announce(request, &direct, &reply).await
    }

    /// Posts the message that starts the thread, unless it has already been posted. Returns `None`
    /// if the bot cannot post there.
    async fn announce(
        &self,
        request: &CreationRequest,
        channel: &ChannelId,
        reply: &Reply,
    ) -> Result<Option<ThreadId>, Error> {
        let CreationRequest { team, nonce, at, .. } = request;
        let posted = match self.approvals.slack.find_by_nonce(channel, None, nonce, *at).await {
            Ok(Some(ts)) => Ok(ts),
            // Without the scope to read the channel, an earlier attempt cannot be found; a second message is better
            // than none.
            Ok(None) | Err(SlackError::MissingScope { .. }) => {
                self.approvals.slack.post_message(channel, None, &render::reply(reply), nonce).await
            }
            Err(error) => Err(error),
        };
        match posted {
            Ok(root) => Ok(Some(ThreadId { team: team.clone(), channel: channel.clone(), root })),
            Err(error) => none_if_final(error),
        }
    }

    async fn message_directly(&self, user: &UserId, reply: &Reply) {
        let sent = async {
            let direct = self.approvals.slack.open_direct(user).await?;
            self.approvals.slack.post_message(&direct, None, &render::reply(reply), &Nonce::fresh()).await
        };
        if let Err(error) = sent.await {
            tracing::warn!(error = cause::chain(&error), "Cannot tell a person that a window was not opened");
        }
    }
}

/// Returns `None` if a retry would not help, and the error otherwise.
fn none_if_final<T>(error: SlackError) -> Result<Option<T>, Error> {
    use SlackError::{NoAnswer, NotSent, RateLimited};
    match error {
        NoAnswer(_) | NotSent | RateLimited { .. } => Err(Error::Unavailable(Box::new(error))),
        error => {
            tracing::warn!(error = cause::chain(&error), "A request was not announced");
            Ok(None)
        }
    }
}

/// The text above the fields, in mrkdwn.
const INTRO: &str =
    "Nothing is created yet. I'll post a card that shows exactly what will be created. Someone has to approve it.";

/// The hint below a request that could not be posted in the chosen channel.
const NOT_A_MEMBER: &str = "I'm not in the channel you chose, so your request is here. To post it there, invite me with “/invite @countersign” and ask again.";

fn channel_field() -> Value {
    json!({
        "type": "input", "block_id": CHANNEL_BLOCK, "optional": true,
        "label": blocks::plain("Where to ask", 2000),
        "hint": blocks::plain("Everyone in that channel sees the card, and approvers can decide. Leave empty to post the card in our direct messages, where only you see it.", 2000),
        "element": {
            "type": "conversations_select", "action_id": "value",
            "placeholder": blocks::plain("Our direct messages", 150),
            "default_to_current_conversation": true,
            "filter": { "include": ["public", "private"] },
        },
    })
}

/// Returns the message that announces a request.
fn announcement(request: &CreationRequest, shortcut: &Shortcut) -> Reply {
    let asks = format!(" asks for a {}: ", shortcut.what);
    Reply::text(Text::new().person(request.by.clone()).plain(asks).bold(request.name.as_str()))
}

/// Returns the notice about the thread of a request, with the thread's address if it is known.
fn posted(request: &CreationRequest, thread: &ThreadId, url: Option<String>) -> Reply {
    let text = Text::from("Your request for ").bold(request.name.as_str());
    let text = match thread.channel.is_direct() {
        true => text.plain(" is in our direct messages"),
        false => text.plain(" is in ").channel(thread.channel.clone()),
    };
    Reply::text(linked(text, url, "Open the thread"))
}

/// Returns the notice about a request that could not be posted anywhere.
fn not_posted(request: &CreationRequest) -> Reply {
    let text = Text::from("I couldn't post your request for ").bold(request.name.as_str());
    Reply::text(text.plain(", so nothing was proposed."))
        .hint("Invite me to a channel with “/invite @countersign”, then ask there.")
}

/// Returns the reply for a modal that could not be opened.
fn window_too_late(shortcut: Option<&Shortcut>) -> Reply {
    let (what, or) = match shortcut {
        Some(Shortcut { what, says, .. }) => (format!(" for a {what}"), format!(", or just message me: “{says}”")),
        None => (String::new(), String::new()),
    };
    Reply::text(format!("That took too long, so Slack didn't open the window{what}."))
        .hint(format!("Use the shortcut again{or}."))
}

/// Returns the message for a form whose choices the platform did not return.
fn form_unavailable() -> Reply {
    Reply::text("The platform didn't answer in time, so I can't show the form.")
        .hint("Close this window and use the shortcut again in a moment.")
}

/// The title of a modal whose shortcut no longer exists.
const FALLBACK_TITLE: &str = "Something new";

/// Returns the message for a form whose draft is finished or was dropped.
fn no_draft() -> Reply {
    Reply::text("This request is finished or was dropped, so there's nothing to fill in.")
        .hint("Ask again in the thread to start over.")
}

/// Returns the message for a draft that is too long for a window.
fn too_long_for_a_form() -> Reply {
    Reply::text("This request is too long for a form.").hint("Answer in the thread instead.")
}

/// Returns the message for a shortcut that has no action.
fn not_available() -> Reply {
    Reply::text("This can't be created here.")
}
