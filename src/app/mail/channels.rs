//! The channels that carry orders about mails from the outbox: labels and deletions of drafts to the mail account, and the
//! messages that begin threads to Slack.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_conversation::runtime::outbox::channel::{Channel, Claim};
use countersign_core::{cause, clock::Clock};
use countersign_email::{
    drafts, heading,
    labels::{self, Delivered},
    register::MailRegister,
    sync::Roots as _,
};
use countersign_graph::store::{Outbound, Sent, Store};
use countersign_mail::MailAccount;

use super::announcer::ChannelRoots;

/// The wait before the second attempt. It doubles with each attempt, up to [`MAX_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// The longest wait between two attempts.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The number of attempts after which an order is given up: more than a day.
const MAX_ATTEMPTS: u32 = 160;

/// The kind of order that a channel carries.
#[derive(Debug)]
pub(in super::super) enum Carries {
    /// Labels of mails.
    Labels,
    /// Deletions of drafts.
    Drafts,
    /// The messages that begin threads, to be drawn again.
    Headings(Box<ChannelRoots>),
}

/// A channel of orders. Each of them can be carried out twice, so an earlier attempt is not looked up.
#[derive(Debug)]
pub(in super::super) struct OrderChannel {
    /// The kind of order.
    pub(in super::super) carries: Carries,
    /// The mail account.
    pub(in super::super) account: Arc<dyn MailAccount>,
    /// The list of mails.
    pub(in super::super) book: MailRegister,
    /// The store of the outbox.
    pub(in super::super) store: Arc<dyn Store>,
    /// The clock.
    pub(in super::super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Channel for OrderChannel {
    fn name(&self) -> &str {
        match self.carries {
            Carries::Labels => labels::CHANNEL,
            Carries::Drafts => drafts::CHANNEL,
            Carries::Headings(_) => heading::CHANNEL,
        }
    }

    async fn deliver(&self, claim: &Claim) -> Sent {
        let Outbound::Elsewhere { body, .. } = &claim.message.outgoing.body else { return Sent::Dropped };
        if !claim.is_ours(&*self.store, &*self.clock).await {
            return Sent::Deferred(self.clock.now());
        }
        let attempts = claim.message.attempts;
        let delivered = match &self.carries {
            Carries::Labels => labels::deliver(&*self.account, &self.book, body).await,
            Carries::Drafts => drafts::deliver(&*self.account, &*self.store, &claim.message.thread, body).await,
            Carries::Headings(roots) => self.draw(roots, body).await,
        };
        match delivered {
            Delivered::Done => Sent::Delivered(None),
            Delivered::Later if attempts < MAX_ATTEMPTS => {
                let wait = FIRST_WAIT.saturating_mul(1 << attempts.min(16)).min(MAX_WAIT);
                Sent::Retry(self.clock.now() + wait)
            }
            Delivered::Later => self.given_up("there is no answer"),
            Delivered::Never(why) => self.given_up(why),
        }
    }
}

impl OrderChannel {
    /// Draws the message that begins a mail's thread again.
    async fn draw(&self, roots: &ChannelRoots, body: &serde_json::Value) -> Delivered {
        let link = |thread: &_| roots.link(thread);
        let (message, heading) = match heading::ordered(&self.book, body, &link).await {
            Ok(Some(ordered)) => ordered,
            Ok(None) => return Delivered::Done,
            Err(_) => return Delivered::Later,
        };
        match roots.redraw(&message, &heading).await {
            Ok(()) => Delivered::Done,
            Err(error) if error.is_final() => Delivered::Never("message_refused"),
            Err(error) => {
                tracing::warn!(error = cause::chain(&error), "Cannot draw the first message of a mail's thread again");
                Delivered::Later
            }
        }
    }

    /// Gives an order up. The mail was handled all the same, so people are not told.
    fn given_up(&self, why: &str) -> Sent {
        tracing::warn!(channel = self.name(), why, "An order about a mail is given up");
        Sent::Dropped
    }
}
