//! The channel that carries labels from the outbox to the mail account.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_conversation::runtime::outbox::{Claim, channel::Channel};
use countersign_core::clock::Clock;
use countersign_email::{
    book::Book,
    labels::{self, Labelled},
};
use countersign_graph::store::{Outbound, Sent, Store};
use countersign_mail::MailAccount;

/// The wait before the second attempt. It doubles with each attempt, up to [`MAX_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// The longest wait between two attempts.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// The number of attempts after which a label is given up: more than a day.
const MAX_ATTEMPTS: u32 = 160;

/// The channel of labels.
#[derive(Debug)]
pub(in super::super) struct LabelChannel {
    /// The mail account.
    pub(in super::super) account: Arc<dyn MailAccount>,
    /// The list of mails.
    pub(in super::super) book: Book,
    /// The store of the outbox.
    pub(in super::super) store: Arc<dyn Store>,
    /// The clock.
    pub(in super::super) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Channel for LabelChannel {
    fn name(&self) -> &str {
        labels::CHANNEL
    }

    /// Sets the label. Setting it twice changes nothing, so an earlier attempt is not looked up.
    async fn deliver(&self, claim: &Claim) -> Sent {
        let Outbound::Elsewhere { body, .. } = &claim.message.outgoing.body else { return Sent::Dropped };
        if !claim.is_ours(&*self.store, &*self.clock).await {
            return Sent::Deferred(self.clock.now());
        }
        let attempts = claim.message.attempts;
        match labels::deliver(&*self.account, &self.book, body).await {
            Labelled::Done => Sent::Delivered(None),
            Labelled::Later if attempts < MAX_ATTEMPTS => {
                let wait = FIRST_WAIT.saturating_mul(1 << attempts.min(16)).min(MAX_WAIT);
                Sent::Retry(self.clock.now() + wait)
            }
            Labelled::Later => given_up("the account does not answer"),
            Labelled::Never(why) => given_up(why),
        }
    }
}

/// Gives a label up. The mail was handled all the same, so people are not told.
fn given_up(why: &str) -> Sent {
    tracing::warn!(why, "A mail is not labelled");
    Sent::Dropped
}
