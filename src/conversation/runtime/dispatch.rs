//! Stores each delivery in a mailbox or in the inbox. Deliveries are acknowledged only after they
//! are stored.
//!
//! Messages and choices go into their thread's mailbox. Clicks on cards, a typed yes or no,
//! commands and visits to the Home tab go into the inbox, since they must be answered even while
//! the thread is busy.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_assistant::{declines, stop_request};
use countersign_core::{
    clock::{Clock, Timestamp},
    ids::{ApprovalId, DedupKey, MessageTs, ThreadId},
    spans,
};
use countersign_graph::{
    conversing::FILL_IN_FORM,
    store::{ClaimedInteraction, Delivery, Destination, Handling, Ingested, Store, ThreadMessage},
};
use countersign_slack::{
    Inbound,
    command::Command,
    event::{ChannelKind, ConversationOpened, HomeOpened, Message, MessageChanged, SessionStopped},
    interaction::{self as slack, Action, Kind, View},
    sink::{Received, Sink, SinkAnswer, SinkError},
};
use tracing::{Instrument as _, Span, debug_span, field::Empty};

use super::{
    choice::{AnsweredQuestion, Choice},
    inbox::{Inbox, Permit},
    interaction::{Interaction, MessageWithFiles, SendAgain, Stop, StopWords},
    workers::{Reservation, Workers},
};
use crate::{
    approvals::{
        changed::{ChangedMessage, open_cards_of},
        clicks::{CardButton, Click, PageTurn, TypedAnswer},
        consent,
    },
    commands::{
        self,
        in_thread::{ThreadCommand, ThreadCommandRequest, asks_for_notebook},
    },
    presentation::{
        buttons::{HOME_NEW, HOME_PAGE, RATE, SAY, SEND_AGAIN, SHOWN_PAGE, read_rating},
        modals,
    },
    record::rating::Rating,
    surfaces::{creation::CreationRequest, home::content::Pages, shortcuts},
};

/// The sink that stores deliveries.
pub struct Dispatch {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    inbox: Inbox,
}

impl Dispatch {
    /// Creates a sink for these workers and this inbox.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, workers: Workers, inbox: Inbox) -> Self {
        Self { store, clock, workers, inbox }
    }

    async fn store(&self, to: Destination, dedup: Vec<DedupKey>) -> Result<(), SinkError> {
        self.store_with(to, dedup, None).await
    }

    /// Stores a delivery. If it is claimed, it is handled immediately in `permit`.
    async fn store_with(&self, to: Destination, dedup: Vec<DedupKey>, permit: Option<Permit>) -> Result<(), SinkError> {
        let delivery = Delivery { to, dedup, at: self.clock.now() };
        // Whoever stores a message usually works on it, so one write does both.
        let worker = match &delivery.to {
            Destination::Mailbox { thread, .. } => self.workers.reserve(thread),
            Destination::Inbox { .. } => None,
        };
        if let Some(worker) = worker {
            return self.store_and_start(delivery, worker).await;
        }
        let stored = self.store.ingest(&delivery, Handling::Later).instrument(debug_span!("ingest")).await;
        let (ingested, _) = stored.map_err(|error| SinkError(Box::new(error)))?;
        match (ingested, delivery.to) {
            (Ingested::New(_), Destination::Mailbox { thread, .. }) => self.workers.wake(thread),
            (Ingested::New(seq), Destination::Inbox { partition, entry, claim: Some(_) }) => {
                if let Some(permit) = permit {
                    self.inbox.spawn(ClaimedInteraction { partition, seq, attempts: 0, entry }, permit);
                }
            }
            (Ingested::New(_), Destination::Inbox { .. }) => {} // claimed as soon as a permit is free
            (Ingested::Duplicate, _) => metrics::counter!("countersign_duplicates_total").increment(1),
            (Ingested::Parked(_) | Ingested::Handled, _) => {}
        }
        Ok(())
    }

    /// Stores a message and leases its thread in one write, for a worker that begins at once. This is a task of its own:
    /// if the store answers too late for an acknowledgement, the worker begins all the same.
    async fn store_and_start(&self, delivery: Delivery, worker: Reservation) -> Result<(), SinkError> {
        let store = self.store.clone();
        let work = async move {
            let holder = worker.holder();
            let stored = store.ingest(&delivery, Handling::Lease(&holder)).instrument(debug_span!("ingest"));
            let (ingested, acquired) = stored.await?;
            if ingested == Ingested::Duplicate {
                metrics::counter!("countersign_duplicates_total").increment(1);
            }
            // Slack reports a mention twice, and the second report must not lease the thread in vain.
            if acquired.is_some() || matches!(ingested, Ingested::New(_)) {
                worker.start(acquired);
            }
            Ok::<_, countersign_graph::store::Error>(())
        };
        match self.workers.tasks().spawn(work.in_current_span()).await {
            Ok(stored) => stored.map_err(|error| SinkError(Box::new(error))),
            Err(ended) => Err(SinkError(Box::new(ended))),
        }
    }

    async fn put_in_inbox(&self, entry: &Interaction, dedup: Vec<DedupKey>) -> Result<(), SinkError> {
        let permit = self.inbox.permit(); // taken first, since a claim's time is for handling only
        let claim = permit.is_some().then(|| (self.workers.name().clone(), self.inbox.claim()));
        let to = Destination::Inbox { partition: entry.partition(), entry: entry.to_value(), claim };
        self.store_with(to, dedup, permit).await
    }

    async fn on_message(&self, message: Message) -> Result<(), SinkError> {
        let thread = message.thread();
        let addressed = is_addressed(&message);
        let in_thread = message.thread_ts.is_some();
        if !addressed && !in_thread {
            return Ok(()); // a channel message that is not for the bot
        }
        if !addressed && message.text.trim().is_empty() && message.files.is_empty() {
            return Ok(()); // an empty message does not interrupt a conversation
        }
        let Message { user: by, text, ts, files, dedup, mentions_us: mentioned, to_another, .. } = message;
        if to_another && !addressed {
            // The words are for another person, so they are neither an answer to a card nor kept. That something was said
            // is: a “yes” after it may answer that person.
            let to = Destination::mailbox(thread, addressed, ThreadMessage::Overheard { by, ts });
            return self.store(to, dedup).await;
        }
        // Between people, “cancel” says nothing about the bot's cards.
        let command = ThreadCommand::parse(&text).filter(|command| addressed || *command != ThreadCommand::Cancel);
        let command = command.filter(|command| in_thread || addressed && command.is_question());
        let meaning = consent::parse(&text);
        // The first that fits. Words that end or decide something are looked for before files, since they must not wait
        // until Slack returns those.
        let entry = if let Some(command) = command {
            let overheard = !addressed;
            Interaction::ThreadCommand(ThreadCommandRequest { thread, by, text, ts, command, mentioned, overheard })
        } else if in_thread && stop_request(&text).is_some() {
            Interaction::Stop(Stop { thread, by, addressed, said: Some(StopWords { text, ts }) })
        } else if (in_thread || addressed) && asks_for_notebook(&text) {
            Interaction::Notebook { thread, by, addressed }
        } else if in_thread && (meaning.is_some() || declines(&text)) {
            Interaction::TypedAnswer(TypedAnswer { thread, by, text, ts, meaning, addressed })
        } else if !files.is_empty() {
            Interaction::MessageWithFiles(MessageWithFiles { thread, by, text, ts, addressed, files })
        } else {
            let message = ThreadMessage::Said { by, text, ts, addressed, request: None };
            return self.store(Destination::mailbox(thread, addressed, message), dedup).await;
        };
        self.put_in_inbox(&entry, dedup).await
    }

    /// Stores an edit or deletion of a message, if its author asked for a card that is open in its thread.
    async fn on_message_changed(&self, changed: MessageChanged) -> Result<(), SinkError> {
        let MessageChanged { thread, ts, user: by, is_deleted: deleted, dedup } = changed;
        // Most edits are of messages that led to no card. They are not stored.
        let open = open_cards_of(&*self.store, &thread, &by).await.map_err(|error| SinkError(Box::new(error)))?;
        if open.is_empty() {
            return Ok(());
        }
        let entry = Interaction::ChangedMessage(ChangedMessage { thread, ts, by, deleted });
        self.put_in_inbox(&entry, vec![dedup]).await
    }

    async fn on_interaction(&self, interaction: slack::Interaction) -> Result<SinkAnswer, SinkError> {
        let entry = match &interaction.kind {
            Kind::MessageAction { callback_id, text } => {
                shortcuts::shortcut_of(&interaction, text).and_then(|shortcut| match callback_id.as_str() {
                    shortcuts::ASK => Some(Interaction::Ask(shortcut)),
                    shortcuts::EXPORT => Some(Interaction::Export(shortcut)),
                    _ => None,
                })
            }
            Kind::Shortcut { callback_id } => self.new_by(&interaction, callback_id),
            Kind::ViewSubmission { view } => return Box::pin(self.on_submission(&interaction, view)).await,
            Kind::BlockActions { actions, view } => {
                let Some(action) = actions.first() else { return Ok(SinkAnswer::default()) };
                return self.on_button(&Press { interaction: &interaction, action, view: view.as_ref() }).await;
            }
            Kind::ViewClosed { .. } => None,
        };
        if let Some(entry) = entry {
            self.put_in_inbox(&entry, vec![interaction.dedup]).await?;
        }
        Ok(SinkAnswer::default())
    }

    /// Returns the entry of a shortcut that creates something; `None` for every other shortcut.
    fn new_by(&self, interaction: &slack::Interaction, shortcut: &str) -> Option<Interaction> {
        self.inbox.creates(shortcut).then(|| Interaction::New {
            by: interaction.user.clone(),
            trigger_id: interaction.trigger_id.clone(),
            shortcut: shortcut.to_owned(),
            draft_in: None,
        })
    }

    /// Handles a submitted modal. Its input is stored or refused before the submission is
    /// acknowledged.
    async fn on_submission(&self, interaction: &slack::Interaction, view: &View) -> Result<SinkAnswer, SinkError> {
        let read = match view.callback_id.as_str() {
            modals::EDIT | modals::CHANGE | modals::ANSWER | modals::REJECT => {
                let payload = self.inbox.submit(view, &interaction.user).await;
                return Ok(SinkAnswer { payload: payload.map_err(|error| SinkError(Box::new(error)))? });
            }
            callback if self.inbox.creates(callback) => {
                self.inbox.read_creation(view, interaction).await.map(Interaction::Creation)
            }
            shortcuts::ASK => shortcuts::read_question(view, &interaction.user).map(Interaction::Question),
            _ => return Ok(SinkAnswer::default()),
        };
        match read {
            Ok(entry) => {
                // After a late acknowledgement, the modal can be submitted again as a new interaction.
                self.put_in_inbox(&entry, vec![interaction.dedup.clone(), view.dedup()]).await?;
                Ok(SinkAnswer::default())
            }
            Err(payload) => Ok(SinkAnswer::with(payload)),
        }
    }

    async fn on_button(&self, press: &Press<'_>) -> Result<SinkAnswer, SinkError> {
        let Press { interaction, action, .. } = *press;
        let name = action.action_id.as_str();
        let mut dedup = vec![interaction.dedup.clone()];
        let entry = match CardButton::named(name) {
            Some(button) => Some(Interaction::Click(press.click(button))),
            None => BUTTONS
                .iter()
                .find(|(prefix, ..)| name.starts_with(prefix))
                .filter(|(_, for_everyone, _)| *for_everyone || !interaction.elsewhere)
                .and_then(|(_, _, entry)| entry(self, press)),
        };
        let Some(entry) = entry else { return Ok(SinkAnswer::default()) };
        if let Interaction::Click(click) = &entry {
            let to = Destination::Inbox { partition: entry.partition(), entry: entry.to_value(), claim: None };
            let delivery = Delivery { to, dedup: dedup.clone(), at: self.clock.now() };
            // The approval is written instead of the press. If that is not possible, the press is stored like every
            // other.
            if self.inbox.approve_at_once(&delivery, click).await {
                return Ok(SinkAnswer::default());
            }
        }
        if let (Interaction::Creation(_), Some(channel), Some(message)) =
            (&entry, &interaction.channel, &interaction.message_ts)
        {
            // A private answer keeps its button, and pressing that again must not begin another thread.
            dedup.push(DedupKey::new(format!("asked:{channel}:{message}")));
        }
        self.put_in_inbox(&entry, dedup).await?;
        Ok(SinkAnswer::default())
    }

    async fn on_command(&self, command: Command) -> Result<(), SinkError> {
        let Command { command, text, user, team, channel, response_url, dedup, .. } = command;
        let Some(response_url) = response_url else { return Ok(()) };
        let entry = Interaction::Command(commands::Command { command, text, by: user, team, channel, response_url });
        self.put_in_inbox(&entry, vec![dedup]).await
    }
}

/// A press on a button.
#[derive(Clone, Copy)]
struct Press<'a> {
    interaction: &'a slack::Interaction,
    action: &'a Action,
    view: Option<&'a View>,
}

/// A kind of button: how its name begins, whether it answers people of other workspaces too, and what its press becomes.
type Button = (&'static str, bool, fn(&Dispatch, &Press<'_>) -> Option<Interaction>);

/// The buttons other than those of cards, which are [`CardButton`]s and answer everyone.
const BUTTONS: &[Button] = &[
    (RATE, false, |_, press| press.rating()),
    (SEND_AGAIN, true, |_, press| Some(press.send_again())),
    (HOME_NEW, false, |dispatch, press| {
        dispatch.new_by(press.interaction, press.action.action_id.strip_prefix(HOME_NEW)?)
    }),
    (HOME_PAGE, false, |_, press| Some(press.home_page())),
    (SHOWN_PAGE, true, |_, press| press.page_turn()),
    (SAY, false, |dispatch, press| press.choice(dispatch.clock.now())),
];

impl Press<'_> {
    /// Returns the message with the button, and its thread, or the one that a reply to it would begin.
    fn message(&self) -> Option<(&MessageTs, ThreadId)> {
        let slack::Interaction { team, channel, message_ts, thread_ts, .. } = self.interaction;
        let message = message_ts.as_ref()?;
        let root = thread_ts.as_ref().unwrap_or(message).clone();
        Some((message, ThreadId { team: team.clone(), channel: channel.clone()?, root }))
    }

    fn click(&self, button: CardButton) -> Click {
        let slack::Interaction { user, elsewhere, channel, message_ts, thread_ts, response_url, trigger_id, .. } =
            self.interaction.clone();
        let key = self.action.value().unwrap_or_default().to_owned();
        let (by, message, thread) = (user, message_ts, thread_ts);
        Click { key, button, by, elsewhere, channel, message, thread, response_url, trigger_id }
    }

    fn rating(&self) -> Option<Interaction> {
        let (run, helped) = self.action.value().and_then(read_rating)?;
        let (_, thread) = self.message()?;
        let (by, response_url) = (self.interaction.user.clone(), self.interaction.response_url.clone());
        Some(Interaction::Rating(Rating { thread, by, run, helped, response_url }))
    }

    fn send_again(&self) -> Interaction {
        let slack::Interaction { user, channel, message_ts, thread_ts, response_url, .. } = self.interaction.clone();
        let key = self.action.value().unwrap_or_default().to_owned();
        Interaction::SendAgain(SendAgain { key, by: user, channel, thread: thread_ts.or(message_ts), response_url })
    }

    fn home_page(&self) -> Interaction {
        let pages = self.action.value().and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default();
        Interaction::Home { user: self.interaction.user.clone(), pages }
    }

    fn page_turn(&self) -> Option<Interaction> {
        let View { id, private_metadata, .. } = self.view?;
        let page = self.action.value()?.parse().ok()?;
        let approval = ApprovalId::try_from(private_metadata.clone()).ok()?;
        Some(Interaction::PageTurn(PageTurn { approval, by: self.interaction.user.clone(), view: id.clone(), page }))
    }

    /// Returns the entry of a choice: its text becomes a message from the person in the button's thread.
    fn choice(&self, now: Timestamp) -> Option<Interaction> {
        let Self { interaction, action, .. } = *self;
        let text = action.value()?;
        let (message, thread) = self.message()?;
        if interaction.is_ephemeral && interaction.thread_ts.is_none() {
            // A private answer is in no thread, so the words begin one.
            return Some(Interaction::Creation(CreationRequest::in_words(interaction, &thread.channel, text, now)));
        }
        let by = interaction.user.clone();
        if text == FILL_IN_FORM {
            let (shortcut, trigger_id) = (String::new(), interaction.trigger_id.clone());
            return Some(Interaction::New { by, shortcut, trigger_id, draft_in: Some(thread) });
        }
        Some(Interaction::Choice(Choice {
            thread,
            message: message.clone(),
            by,
            label: action.label.clone().unwrap_or_else(|| text.to_owned()),
            says: text.to_owned(),
            answered: AnsweredQuestion::of(&interaction.blocks(), &action.block_id),
        }))
    }
}

#[async_trait]
impl Sink for Dispatch {
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError> {
        let span = match &received.inbound {
            Inbound::Message(message) if message.thread_ts.is_none() && !is_addressed(message) => Span::none(),
            Inbound::Message(_) => spans::begun(debug_span!("turn", trace.id = Empty)),
            Inbound::Interaction(_) => spans::begun(debug_span!("click", trace.id = Empty)),
            other => spans::begun(debug_span!("delivery", kind = other.kind(), trace.id = Empty)),
        };
        self.receive_in_span(received.inbound).instrument(span).await
    }
}

/// Returns true if a message is certainly for the bot.
fn is_addressed(message: &Message) -> bool {
    message.mentions_us || message.channel_kind == ChannelKind::Direct
}

impl Dispatch {
    async fn receive_in_span(&self, inbound: Inbound) -> Result<SinkAnswer, SinkError> {
        match inbound {
            Inbound::Message(message) => self.on_message(message).await?,
            Inbound::MessageChanged(changed) => self.on_message_changed(changed).await?,
            Inbound::Interaction(interaction) => return self.on_interaction(interaction).await,
            Inbound::Command(command) => self.on_command(command).await?,
            Inbound::HomeOpened(HomeOpened { user, dedup, .. }) => {
                self.put_in_inbox(&Interaction::Home { user, pages: Pages::default() }, vec![dedup]).await?;
            }
            Inbound::SessionStopped(SessionStopped { thread, user: by, dedup }) => {
                let entry = Interaction::Stop(Stop { thread, by, addressed: true, said: None });
                self.put_in_inbox(&entry, vec![dedup]).await?;
            }
            Inbound::ConversationOpened(ConversationOpened { channel, thread, dedup }) => {
                self.put_in_inbox(&Interaction::Prompts { channel, thread }, vec![dedup]).await?;
            }
            // Only a call of Slack can show whether that is still so, and until then nothing is lost.
            Inbound::TokenRevoked(revoked) => self.inbox.token_revoked(revoked.event),
            Inbound::Ignored(_) => {}
        }
        Ok(SinkAnswer::default())
    }
}
