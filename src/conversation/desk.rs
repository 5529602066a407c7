//! Handles what lies on the desk: each entry once it is known to be ours, and again if that failed.
//!
//! An entry is taken away in the same write as its effect where it has one in the store, and after its answer was sent
//! where it has none. A crash in between repeats an answer to one person, never a decision.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::{
    approvals::desk::{Answer, Approvals},
    commands::Commands,
    entry::{Click, Entry},
    home::Home,
    outbox::Sender,
    render,
    workers::Workers,
};
use crate::{
    graph::store::{DeskEntry, Error, Store},
    ids::{ChannelId, MessageTs, UserId},
    reply::Reply,
    slack::{
        client::{Respond, SlackClient},
        client_error,
    },
};

/// For how many Slack calls' time a claimed entry is left alone before somebody else may handle it.
const CLAIM: u32 = 3;

/// How many entries are claimed at a time when looking for what was left behind.
const BATCH: usize = 32;

/// The desk of one process.
#[derive(Clone)]
pub struct Desk(Arc<Parts>);

/// What a [`Desk`] needs.
pub struct Parts {
    /// Where the entries are.
    pub store: Arc<dyn Store>,
    /// Decides on clicks.
    pub approvals: Approvals,
    /// Answers commands.
    pub commands: Commands,
    /// Draws the Home tab.
    pub home: Home,
    /// Tells people.
    pub slack: SlackClient,
    /// Goes on with threads.
    pub workers: Workers,
    /// Sends what was said.
    pub sender: Sender,
    /// What is going on, for draining.
    pub tasks: TaskTracker,
}

impl Desk {
    /// A desk.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// How long an entry is claimed for. After that it is anybody's: the process that claimed it is gone.
    pub fn claim(&self) -> Duration {
        self.0.slack.timeout() * CLAIM
    }

    /// Handles an entry that this process has claimed.
    pub fn take(&self, entry: DeskEntry) {
        let desk = self.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = desk.handle(&entry).await {
                tracing::warn!(error = %error, "A desk entry will be handled again");
            }
        });
    }

    /// Looks for entries that nobody handles.
    pub async fn sweep(&self) -> Result<(), Error> {
        for entry in self.0.store.claim_desk(self.0.workers.name(), self.claim(), BATCH).await? {
            self.take(entry);
        }
        Ok(())
    }

    async fn handle(&self, desk: &DeskEntry) -> Result<(), Error> {
        let parts = &self.0;
        let entry: Entry = match serde_json::from_value(desk.entry.clone()) {
            Ok(entry) => entry,
            Err(error) => {
                tracing::error!(error = %error, "A desk entry cannot be read and is dropped");
                return parts.store.finish_desk(desk.partition, desk.seq).await;
            }
        };
        let answer = match &entry {
            Entry::Click(click) => {
                let answer = parts.approvals.on_click(click, desk.seq).await?;
                if let Answer::Refused(reply) = &answer {
                    self.tell_clicker(click, reply).await;
                }
                answer
            }
            Entry::Typed(typed) => {
                let answer = parts.approvals.on_typed(typed, desk.seq).await?;
                if let Answer::Refused(reply) = &answer {
                    self.tell(&typed.by, &typed.thread.channel, Some(&typed.thread.root), reply).await;
                }
                answer
            }
            Entry::Expire { approval } => parts.approvals.on_expiry(approval, desk.seq).await?,
            Entry::Command(command) => {
                let mut reply = parts.commands.answer(command).await;
                reply.choices.clear(); // a button would speak in a thread, and a private answer has none
                self.respond(&command.response_url, &reply).await;
                Answer::Nothing
            }
            Entry::Home { user } => {
                parts.home.publish(user).await?;
                Answer::Nothing
            }
        };
        match answer {
            Answer::Counted(thread) => {
                parts.sender.flush(thread.clone());
                parts.workers.wake(thread);
                Ok(())
            }
            Answer::Passed(thread) => {
                parts.workers.wake(thread);
                Ok(())
            }
            Answer::Refused(_) | Answer::Nothing => parts.store.finish_desk(desk.partition, desk.seq).await,
        }
    }

    /// Tells the person who pressed, where they pressed.
    async fn tell_clicker(&self, click: &Click, reply: &Reply) {
        if let Some(url) = &click.response_url
            && self.respond(url, reply).await
        {
            return;
        }
        if let Some(channel) = &click.channel {
            self.tell(&click.by, channel, click.thread.as_ref().or(click.message.as_ref()), reply).await;
        }
    }

    async fn tell(&self, user: &UserId, channel: &ChannelId, thread: Option<&MessageTs>, reply: &Reply) {
        let message = render::reply(reply);
        report(self.0.slack.post_ephemeral(channel, thread, user, &message).await);
    }

    async fn respond(&self, url: &str, reply: &Reply) -> bool {
        report(self.0.slack.respond(url, Respond::Privately, &render::reply(reply)).await)
    }
}

/// Whether it arrived; a private word that cannot be delivered is not worth more than a line.
fn report(result: Result<(), client_error::Error>) -> bool {
    match &result {
        Ok(()) | Err(client_error::Error::MissingScope { .. }) => {} // the client names the scope, once
        Err(error) => tracing::warn!(error = %error, "A private answer was not delivered"),
    }
    result.is_ok()
}
