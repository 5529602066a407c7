//! Stores each delivery in a mailbox or in the inbox. Deliveries are acknowledged only after they
//! are stored.
//!
//! Messages and choices go into their thread's mailbox. Clicks on cards, a typed yes or no,
//! commands and visits to the Home tab go into the inbox, since they must be answered even while
//! the thread is busy.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_assistant::declines;
use countersign_core::{
    clock::Clock,
    ids::{ApprovalId, DedupKey, Partition, ThreadId},
};
use countersign_graph::conversing::FILL_IN_FORM;
use countersign_graph::store::{ClaimedInteraction, Delivery, Destination, External, Ingested, Store, ThreadMessage};
use countersign_slack::{
    Inbound,
    command::Command,
    event::{ChannelKind, ConversationOpened, HomeOpened, Message, MessageChanged, SessionStopped},
    interaction::{self, Action, Kind, View},
    sink::{Received, Sink, SinkAnswer, SinkError},
};

use super::{
    choice::{AnsweredQuestion, Choice},
    inbox::{Inbox, Seat, files::MessageWithFiles},
    interaction::{Interaction, SendAgain},
    keyword::Keyword,
    stopping::{Stop, StopWords},
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
        in_thread::{ThreadCommand, ThreadCommandRequest},
    },
    presentation::{
        modals::{self, show_all},
        render::{
            ABANDON, AGAIN, ANSWER, APPROVE, CANCEL, CHANGE, CHECK, DECLINE, EDIT, MARK_DONE, RATE, REJECT, SAY,
            SEND_AGAIN, SHOW_ALL, STOP, UNDO, WITHDRAW, rated,
        },
    },
    record::rating::Rating,
    surfaces::{
        creation::CreationRequest,
        home::{NEW, PAGE, content::Pages},
        shortcuts,
    },
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

    /// Stores an event from outside Slack for this thread. Repeated events are recognised by their
    /// key.
    ///
    /// # Errors
    ///
    /// Fails if the event could not be stored. The call can be repeated.
    pub async fn on_external(&self, thread: ThreadId, arrived: External) -> Result<(), SinkError> {
        let Delivery { to, dedup, .. } = arrived.deliver_to(thread, self.clock.now());
        self.store(to, dedup).await
    }

    async fn store(&self, to: Destination, dedup: Vec<DedupKey>) -> Result<(), SinkError> {
        self.store_with(to, dedup, None).await
    }

    /// Stores a delivery. If it is claimed, it is handled immediately in `seat`.
    async fn store_with(&self, to: Destination, dedup: Vec<DedupKey>, seat: Option<Seat>) -> Result<(), SinkError> {
        let delivery = Delivery { to, dedup, at: self.clock.now() };
        let worker = match &delivery.to {
            Destination::Mailbox { thread, .. } => self.workers.reserve(thread),
            Destination::Inbox { .. } => None,
        };
        if let Some(worker) = worker {
            return self.store_and_start(delivery, worker).await;
        }
        let ingested = self.store.ingest(&delivery).await.map_err(|error| SinkError(Box::new(error)))?;
        match (ingested, delivery.to) {
            (Ingested::New(_), Destination::Mailbox { thread, .. }) => self.workers.wake(thread),
            (Ingested::New(seq), Destination::Inbox { partition, entry, claim: Some(_) }) => {
                if let Some(seat) = seat {
                    self.inbox.spawn(ClaimedInteraction { partition, seq, attempts: 0, entry }, seat);
                }
            }
            (Ingested::New(_), Destination::Inbox { .. }) => {} // claimed as soon as a seat is free
            (Ingested::Duplicate, _) => metrics::counter!("countersign_duplicates_total").increment(1),
            (Ingested::Parked(_), _) => {}
        }
        Ok(())
    }

    /// Stores a message and leases its thread in one write, for a worker that begins at once. This is a task of its own:
    /// if the store answers too late for an acknowledgement, the worker begins all the same.
    async fn store_and_start(&self, delivery: Delivery, worker: Reservation) -> Result<(), SinkError> {
        let store = self.store.clone();
        let stored = self.workers.tasks().spawn(async move {
            let (ingested, acquired) = store.ingest_and_acquire(&delivery, &worker.holder()).await?;
            if ingested == Ingested::Duplicate {
                metrics::counter!("countersign_duplicates_total").increment(1);
            }
            if acquired.is_some() || matches!(ingested, Ingested::New(_)) {
                worker.start(acquired);
            }
            Ok::<_, countersign_graph::store::Error>(())
        });
        match stored.await {
            Ok(stored) => stored.map_err(|error| SinkError(Box::new(error))),
            Err(ended) => Err(SinkError(Box::new(ended))),
        }
    }

    async fn put_in_inbox(
        &self,
        partition: Partition,
        entry: &Interaction,
        dedup: Vec<DedupKey>,
    ) -> Result<(), SinkError> {
        let seat = self.inbox.seat(); // taken first, since a claim's time is for handling only
        let claim = seat.is_some().then(|| (self.workers.name().clone(), self.inbox.claim()));
        self.store_with(Destination::Inbox { partition, entry: entry.to_value(), claim }, dedup, seat).await
    }

    async fn on_message(&self, message: Message) -> Result<(), SinkError> {
        let thread = message.thread();
        let addressed = message.mentions_us || message.channel_kind == ChannelKind::Direct;
        if !addressed && message.thread_ts.is_none() {
            return Ok(()); // a channel message that is not for the bot
        }
        if !addressed && message.text.trim().is_empty() && message.files.is_empty() {
            return Ok(()); // an empty message does not interrupt a conversation
        }
        let (mentioned, to_another) = (message.mentions_us, message.to_another && !addressed);
        let Message { user: by, text, ts, thread_ts, files, dedup, .. } = message;
        if to_another {
            let to = Destination::mailbox(thread, addressed, ThreadMessage::Overheard { by, ts });
            return self.store(to, dedup).await;
        }
        let command = ThreadCommand::parse(&text).filter(|command| addressed || *command != ThreadCommand::Cancel);
        let is_question = addressed && command.is_some_and(ThreadCommand::is_question);
        if let (Some(command), true) = (command, thread_ts.is_some() || is_question) {
            let partition = thread.partition();
            let request = ThreadCommandRequest { thread, by, text, ts, command, mentioned, overheard: !addressed };
            return self.put_in_inbox(partition, &Interaction::ThreadCommand(request), dedup).await;
        }
        let keyword = Keyword::parse(&text);
        if let Some(keyword) =
            keyword.filter(|keyword| thread_ts.is_some() || *keyword == Keyword::Notebook && addressed)
        {
            let partition = thread.partition();
            let entry = match keyword {
                Keyword::Stop => Interaction::Stop(Stop { thread, by, addressed, said: Some(StopWords { text, ts }) }),
                Keyword::Notebook => Interaction::Notebook { thread, by, addressed },
            };
            return self.put_in_inbox(partition, &entry, dedup).await;
        }
        let meaning = consent::parse(&text);
        if thread_ts.is_some() && (meaning.is_some() || declines(&text)) {
            let partition = thread.partition();
            let typed = Interaction::TypedAnswer(TypedAnswer { thread, by, text, ts, meaning, addressed });
            return self.put_in_inbox(partition, &typed, dedup).await;
        }
        if !files.is_empty() {
            let partition = thread.partition();
            let message = MessageWithFiles { thread, by, text, ts, addressed, files };
            return self.put_in_inbox(partition, &Interaction::MessageWithFiles(message), dedup).await;
        }
        let message = ThreadMessage::Said { by, text, ts, addressed, request: None };
        self.store(Destination::mailbox(thread, addressed, message), dedup).await
    }

    /// Stores an edit or deletion of a message, if its author asked for a card that is open in its thread.
    async fn on_message_changed(&self, changed: MessageChanged) -> Result<(), SinkError> {
        let MessageChanged { thread, ts, user: by, is_deleted: deleted, dedup } = changed;
        let open = open_cards_of(&*self.store, &thread, &by).await.map_err(|error| SinkError(Box::new(error)))?;
        if open.is_empty() {
            return Ok(());
        }
        let partition = thread.partition();
        let entry = Interaction::ChangedMessage(ChangedMessage { thread, ts, by, deleted });
        self.put_in_inbox(partition, &entry, vec![dedup]).await
    }

    /// Handles a rating of an answer.
    async fn on_rating(&self, interaction: &interaction::Interaction, action: &Action) -> Result<(), SinkError> {
        let (Some((run, helped)), Some(channel), Some(message)) =
            (action.value().and_then(rated::read), &interaction.channel, &interaction.message_ts)
        else {
            return Ok(());
        };
        let root = interaction.thread_ts.as_ref().unwrap_or(message).clone();
        let thread = ThreadId { team: interaction.team.clone(), channel: channel.clone(), root };
        let (by, response_url) = (interaction.user.clone(), interaction.response_url.clone());
        let rating = Interaction::Rating(Rating { thread: thread.clone(), by, run, helped, response_url });
        self.put_in_inbox(thread.partition(), &rating, vec![interaction.dedup.clone()]).await
    }

    async fn on_interaction(&self, interaction: interaction::Interaction) -> Result<SinkAnswer, SinkError> {
        match &interaction.kind {
            Kind::MessageAction { callback_id, text } => self.on_shortcut(&interaction, callback_id, text).await?,
            Kind::Shortcut { callback_id } if self.inbox.creates(callback_id) => {
                self.on_creation_shortcut(&interaction, callback_id).await?;
            }
            Kind::ViewSubmission { view } => return Box::pin(self.on_submission(&interaction, view)).await,
            _ => self.on_button(&interaction).await?,
        }
        Ok(SinkAnswer::default())
    }

    /// Handles a shortcut on a message.
    async fn on_shortcut(
        &self,
        interaction: &interaction::Interaction,
        callback: &str,
        text: &str,
    ) -> Result<(), SinkError> {
        let Some(shortcut) = shortcuts::shortcut_of(interaction, text) else { return Ok(()) };
        let partition = shortcut.thread.partition();
        let entry = match callback {
            shortcuts::ASK => Interaction::Ask(shortcut),
            shortcuts::EXPORT => Interaction::Export(shortcut),
            _ => return Ok(()),
        };
        self.put_in_inbox(partition, &entry, vec![interaction.dedup.clone()]).await
    }

    /// Handles a shortcut that creates something.
    async fn on_creation_shortcut(
        &self,
        interaction: &interaction::Interaction,
        shortcut: &str,
    ) -> Result<(), SinkError> {
        let (by, trigger_id) = (interaction.user.clone(), interaction.trigger_id.clone());
        let partition = Partition::of(by.as_str());
        self.put_in_inbox(
            partition,
            &Interaction::New { by, trigger_id, shortcut: shortcut.to_owned(), draft_in: None },
            vec![interaction.dedup.clone()],
        )
        .await
    }

    /// Handles a submitted modal. Its input is stored or refused before the submission is
    /// acknowledged.
    async fn on_submission(
        &self,
        interaction: &interaction::Interaction,
        view: &View,
    ) -> Result<SinkAnswer, SinkError> {
        match view.callback_id.as_str() {
            modals::EDIT | modals::CHANGE | modals::ANSWER | modals::REJECT => {
                let payload = self.inbox.submit(view, &interaction.user).await;
                Ok(SinkAnswer { payload: payload.map_err(|error| SinkError(Box::new(error)))? })
            }
            callback if self.inbox.creates(callback) => match self.inbox.read_creation(view, interaction).await {
                Ok(request) => {
                    let partition = Partition::of(request.by.as_str());
                    // After a late acknowledgement, the modal can be submitted again as a new interaction.
                    let dedup = vec![interaction.dedup.clone(), view.dedup()];
                    self.put_in_inbox(partition, &Interaction::Creation(request), dedup).await?;
                    Ok(SinkAnswer::default())
                }
                Err(payload) => Ok(SinkAnswer::with(payload)),
            },
            shortcuts::ASK => match shortcuts::read_question(view, &interaction.user) {
                Ok(question) => {
                    let partition = question.thread.partition();
                    let dedup = vec![interaction.dedup.clone(), view.dedup()];
                    self.put_in_inbox(partition, &Interaction::Question(question), dedup).await?;
                    Ok(SinkAnswer::default())
                }
                Err(payload) => Ok(SinkAnswer::with(payload)),
            },
            _ => Ok(SinkAnswer::default()),
        }
    }

    /// Handles a press that turns a page of the window with the full content of a card.
    async fn on_page_turn(&self, interaction: &interaction::Interaction, action: &Action) -> Result<(), SinkError> {
        let Kind::BlockActions { view: Some(view), .. } = &interaction.kind else { return Ok(()) };
        let page = action.value().and_then(|page| page.parse().ok());
        let (Ok(approval), Some(page)) = (ApprovalId::try_from(view.private_metadata.clone()), page) else {
            return Ok(());
        };
        let (partition, by, view) = (approval.partition(), interaction.user.clone(), view.id.clone());
        let entry = Interaction::PageTurn(PageTurn { approval, by, view, page });
        self.put_in_inbox(partition, &entry, vec![interaction.dedup.clone()]).await
    }

    async fn on_button(&self, interaction: &interaction::Interaction) -> Result<(), SinkError> {
        let Kind::BlockActions { actions, .. } = &interaction.kind else { return Ok(()) };
        let Some(action) = actions.first() else { return Ok(()) };
        match action.action_id.as_str() {
            APPROVE => self.on_click(interaction, action, CardButton::Approve).await,
            REJECT => self.on_click(interaction, action, CardButton::Reject).await,
            // Clicks on cards are answered for everyone; other buttons ignore people from other workspaces.
            RATE if interaction.elsewhere => Ok(()),
            name if interaction.elsewhere && [PAGE, NEW, SAY].iter().any(|prefix| name.starts_with(prefix)) => Ok(()),
            RATE => self.on_rating(interaction, action).await,
            STOP => self.on_click(interaction, action, CardButton::Stop).await,
            EDIT => self.on_click(interaction, action, CardButton::Edit).await,
            SHOW_ALL => self.on_click(interaction, action, CardButton::ShowAll).await,
            UNDO => self.on_click(interaction, action, CardButton::Undo).await,
            AGAIN => self.on_click(interaction, action, CardButton::Again).await,
            CHANGE => self.on_click(interaction, action, CardButton::Change).await,
            CHECK => self.on_click(interaction, action, CardButton::Check).await,
            MARK_DONE => self.on_click(interaction, action, CardButton::MarkDone).await,
            ABANDON => self.on_click(interaction, action, CardButton::Abandon).await,
            WITHDRAW => self.on_click(interaction, action, CardButton::Withdraw).await,
            ANSWER => self.on_click(interaction, action, CardButton::Answer).await,
            DECLINE => self.on_click(interaction, action, CardButton::Decline).await,
            CANCEL => self.on_click(interaction, action, CardButton::CancelCall).await,
            name if name.starts_with(SEND_AGAIN) => self.on_send_again(interaction, action).await,
            name if name.starts_with(NEW) => match name.trim_start_matches(NEW) {
                shortcut if self.inbox.creates(shortcut) => self.on_creation_shortcut(interaction, shortcut).await,
                _ => Ok(()),
            },
            name if name.starts_with(PAGE) => self.on_page(interaction, action).await,
            name if name.starts_with(show_all::PAGE) => self.on_page_turn(interaction, action).await,
            name if name.starts_with(SAY) => self.on_choice(interaction, action).await,
            _ => Ok(()),
        }
    }

    async fn on_click(
        &self,
        interaction: &interaction::Interaction,
        action: &Action,
        button: CardButton,
    ) -> Result<(), SinkError> {
        let key = action.value().unwrap_or_default().to_owned();
        let partition = ApprovalId::try_from(key.clone()).map_or_else(|_| Partition::of(&key), |id| id.partition());
        let click = Click {
            key,
            button,
            by: interaction.user.clone(),
            elsewhere: interaction.elsewhere,
            channel: interaction.channel.clone(),
            message: interaction.message_ts.clone(),
            thread: interaction.thread_ts.clone(),
            response_url: interaction.response_url.clone(),
            trigger_id: interaction.trigger_id.clone(),
        };
        let entry = Interaction::Click(click.clone()).to_value();
        let to = Destination::Inbox { partition, entry, claim: None };
        let delivery = Delivery { to, dedup: vec![interaction.dedup.clone()], at: self.clock.now() };
        if self.inbox.approve_at_once(&delivery, &click).await {
            return Ok(());
        }
        self.put_in_inbox(partition, &Interaction::Click(click), delivery.dedup).await
    }

    /// Handles a request to send a message again.
    async fn on_send_again(&self, interaction: &interaction::Interaction, action: &Action) -> Result<(), SinkError> {
        let key = action.value().unwrap_or_default().to_owned();
        let partition = Partition::of(&key);
        let entry = Interaction::SendAgain(SendAgain {
            key,
            by: interaction.user.clone(),
            channel: interaction.channel.clone(),
            thread: interaction.thread_ts.clone().or_else(|| interaction.message_ts.clone()),
            response_url: interaction.response_url.clone(),
        });
        self.put_in_inbox(partition, &entry, vec![interaction.dedup.clone()]).await
    }

    /// Handles a click on a choice: its text becomes a message from the person in the button's
    /// thread.
    async fn on_choice(&self, interaction: &interaction::Interaction, action: &Action) -> Result<(), SinkError> {
        let (Some(text), Some(channel), Some(message)) =
            (action.value(), &interaction.channel, &interaction.message_ts)
        else {
            return Ok(());
        };
        if interaction.is_ephemeral && interaction.thread_ts.is_none() {
            // A private answer is in no thread, so the words begin one. Pressing again begins no other.
            let request = CreationRequest::in_words(interaction, channel, text, self.clock.now());
            let pressed = DedupKey::new(format!("asked:{channel}:{message}"));
            let partition = Partition::of(request.by.as_str());
            let dedup = vec![interaction.dedup.clone(), pressed];
            return self.put_in_inbox(partition, &Interaction::Creation(request), dedup).await;
        }
        let root = interaction.thread_ts.as_ref().unwrap_or(message).clone();
        let thread = ThreadId { team: interaction.team.clone(), channel: channel.clone(), root };
        if text == FILL_IN_FORM {
            let entry = Interaction::New {
                by: interaction.user.clone(),
                shortcut: String::new(),
                trigger_id: interaction.trigger_id.clone(),
                draft_in: Some(thread.clone()),
            };
            return self.put_in_inbox(thread.partition(), &entry, vec![interaction.dedup.clone()]).await;
        }
        let choice = Choice {
            thread: thread.clone(),
            message: message.clone(),
            by: interaction.user.clone(),
            label: action.label.clone().unwrap_or_else(|| text.to_owned()),
            says: text.to_owned(),
            answered: AnsweredQuestion::of(&interaction.blocks(), &action.block_id),
        };
        let entry = Interaction::Choice(choice);
        self.put_in_inbox(thread.partition(), &entry, vec![interaction.dedup.clone()]).await
    }

    async fn on_command(&self, command: Command) -> Result<(), SinkError> {
        let partition = Partition::of(command.channel.as_str());
        let Command { command, text, user, team, channel, response_url, dedup, .. } = command;
        let Some(response_url) = response_url else { return Ok(()) };
        let entry = Interaction::Command(commands::Command { command, text, by: user, team, channel, response_url });
        self.put_in_inbox(partition, &entry, vec![dedup]).await
    }

    async fn on_home(&self, home: HomeOpened) -> Result<(), SinkError> {
        let partition = Partition::of(home.user.as_str());
        let entry = Interaction::Home { user: home.user, pages: Pages::default() };
        self.put_in_inbox(partition, &entry, vec![home.dedup]).await
    }

    /// Handles a paging button of a Home tab.
    async fn on_page(&self, interaction: &interaction::Interaction, action: &Action) -> Result<(), SinkError> {
        let pages = action.value().and_then(|value| serde_json::from_str(value).ok()).unwrap_or_default();
        let user = interaction.user.clone();
        let partition = Partition::of(user.as_str());
        self.put_in_inbox(partition, &Interaction::Home { user, pages }, vec![interaction.dedup.clone()]).await
    }
}

#[async_trait]
impl Sink for Dispatch {
    async fn receive(&self, received: Received) -> Result<SinkAnswer, SinkError> {
        match received.inbound {
            Inbound::Message(message) => self.on_message(message).await?,
            Inbound::MessageChanged(changed) => self.on_message_changed(changed).await?,
            Inbound::Interaction(interaction) => return self.on_interaction(interaction).await,
            Inbound::Command(command) => self.on_command(command).await?,
            Inbound::HomeOpened(home) => self.on_home(home).await?,
            Inbound::SessionStopped(stopped) => {
                let SessionStopped { thread, user: by, dedup } = stopped;
                let partition = thread.partition();
                let entry = Interaction::Stop(Stop { thread, by, addressed: true, said: None });
                self.put_in_inbox(partition, &entry, vec![dedup]).await?;
            }
            Inbound::ConversationOpened(ConversationOpened { channel, thread, dedup }) => {
                let partition = Partition::of(channel.as_str());
                self.put_in_inbox(partition, &Interaction::Prompts { channel, thread }, vec![dedup]).await?;
            }
            // Only a call of Slack can show whether that is still so, and until then nothing is lost.
            Inbound::TokenRevoked(revoked) => self.inbox.token_revoked(revoked.event),
            Inbound::Ignored(_) => {}
        }
        Ok(SinkAnswer::default())
    }
}
