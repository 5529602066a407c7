//! Stores each delivery where it belongs. When this returns, Slack may be told that it arrived.
//!
//! Messages and pressed choices go into their thread's mailbox. Clicks on cards, plain yes and no, commands and visits
//! to the Home tab go on the desk, since they must be answered even while the thread is busy.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    approvals::consent,
    desk::Desk,
    entry::{self, Click, Entry, Pressed, Typed},
    render::{APPROVE, REJECT, SAY, STOP},
    workers::Workers,
};
use crate::{
    clock::Clock,
    graph::store::{Delivery, DeskEntry, Destination, Ingested, Mail, Store},
    ids::{ApprovalId, DedupKey, Partition, ThreadId},
    slack::{
        Inbound,
        command::Command,
        event::{ChannelKind, HomeOpened, Message},
        interaction::{Action, Interaction, Kind},
        sink::{Answer, Received, Sink, SinkError},
    },
};

/// Takes deliveries in.
pub struct Dispatch {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    workers: Workers,
    desk: Desk,
}

impl Dispatch {
    /// Deliveries go to these workers and this desk.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, workers: Workers, desk: Desk) -> Self {
        Self { store, clock, workers, desk }
    }

    async fn store(&self, to: Destination, dedup: Vec<DedupKey>) -> Result<(), SinkError> {
        let delivery = Delivery { to, dedup, at: self.clock.now() };
        let ingested = self.store.ingest(&delivery).await.map_err(|error| SinkError(Box::new(error)))?;
        match (ingested, delivery.to) {
            (Ingested::New(_), Destination::Mailbox { thread, .. }) => self.workers.wake(thread),
            (Ingested::New(seq), Destination::Desk { partition, entry, .. }) => {
                self.desk.take(DeskEntry { partition, seq, entry });
            }
            (Ingested::Duplicate, _) => metrics::counter!("countersign_duplicates_total").increment(1),
            (Ingested::Parked(_), _) => {}
        }
        Ok(())
    }

    async fn put_on_desk(&self, partition: Partition, entry: &Entry, dedup: Vec<DedupKey>) -> Result<(), SinkError> {
        let claim = Some((self.workers.name().clone(), self.desk.claim()));
        self.store(Destination::Desk { partition, entry: entry.to_value(), claim }, dedup).await
    }

    async fn on_message(&self, message: Message) -> Result<(), SinkError> {
        let thread = message.thread();
        let addressed = message.mentions_us || message.channel_kind == ChannelKind::Direct;
        if !addressed && message.thread_ts.is_none() {
            return Ok(()); // talk in the channel, to somebody else
        }
        let Message { user: by, text, ts, thread_ts, dedup, .. } = message;
        if let (Some(means), Some(_)) = (consent::typed(&text), thread_ts) {
            let partition = thread.partition();
            let typed = Entry::Typed(Typed { thread, by, text, ts, means, addressed });
            return self.put_on_desk(partition, &typed, dedup).await;
        }
        let mail = Mail::Said { by, text, ts, addressed, wish: None };
        self.store(Destination::Mailbox { thread, addressed, mail }, dedup).await
    }

    async fn on_interaction(&self, interaction: Interaction) -> Result<(), SinkError> {
        let Kind::BlockActions { actions, .. } = &interaction.kind else { return Ok(()) };
        let Some(action) = actions.first() else { return Ok(()) };
        match action.action_id.as_str() {
            APPROVE => self.on_click(&interaction, action, Pressed::Approve).await,
            REJECT => self.on_click(&interaction, action, Pressed::Reject).await,
            STOP => self.on_click(&interaction, action, Pressed::Stop).await,
            name if name.starts_with(SAY) => self.on_choice(&interaction, action).await,
            _ => Ok(()),
        }
    }

    async fn on_click(&self, interaction: &Interaction, action: &Action, pressed: Pressed) -> Result<(), SinkError> {
        let key = action.value().unwrap_or_default().to_owned();
        let partition = ApprovalId::try_from(key.clone()).map_or_else(|_| Partition::of(&key), |id| id.partition());
        let click = Click {
            key,
            pressed,
            by: interaction.user.clone(),
            channel: interaction.channel.clone(),
            message: interaction.message_ts.clone(),
            thread: interaction.thread_ts.clone(),
            response_url: interaction.response_url.clone(),
        };
        self.put_on_desk(partition, &Entry::Click(click), vec![interaction.dedup.clone()]).await
    }

    /// A button that says something says it for the person, in the thread of its message.
    async fn on_choice(&self, interaction: &Interaction, action: &Action) -> Result<(), SinkError> {
        let (Some(text), Some(channel), Some(message)) =
            (action.value(), &interaction.channel, &interaction.message_ts)
        else {
            return Ok(());
        };
        let root = interaction.thread_ts.as_ref().unwrap_or(message).clone();
        let thread = ThreadId { team: interaction.team.clone(), channel: channel.clone(), root };
        let (by, ts) = (interaction.user.clone(), message.clone());
        let mail = Mail::Said { by, text: text.to_owned(), ts, addressed: true, wish: None };
        self.store(Destination::Mailbox { thread, addressed: true, mail }, vec![interaction.dedup.clone()]).await
    }

    async fn on_command(&self, command: Command) -> Result<(), SinkError> {
        let partition = Partition::of(command.channel.as_str());
        let Command { command, text, user, team, channel, response_url, dedup, .. } = command;
        let Some(response_url) = response_url else { return Ok(()) };
        let entry = Entry::Command(entry::Command { command, text, by: user, team, channel, response_url });
        self.put_on_desk(partition, &entry, vec![dedup]).await
    }

    async fn on_home(&self, home: HomeOpened) -> Result<(), SinkError> {
        let partition = Partition::of(home.user.as_str());
        self.put_on_desk(partition, &Entry::Home { user: home.user }, vec![home.dedup]).await
    }
}

#[async_trait]
impl Sink for Dispatch {
    async fn receive(&self, received: Received) -> Result<Answer, SinkError> {
        match received.inbound {
            Inbound::Message(message) => self.on_message(message).await?,
            Inbound::Interaction(interaction) => self.on_interaction(interaction).await?,
            Inbound::Command(command) => self.on_command(command).await?,
            Inbound::HomeOpened(home) => self.on_home(home).await?,
            Inbound::Ignored(_) => {}
        }
        Ok(Answer::default())
    }
}
