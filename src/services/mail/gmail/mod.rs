//! Gmail, through its API.
//!
//! Start at [`GmailAccount`]. [`calls`] makes one call, with the sign-in and the retries of reads; [`sync`] finds new
//! mails by the history of the mailbox; [`read`] reads one mail; [`send`] sends an answer exactly once, by way of a
//! draft; [`by_hand`] finds answers of people; [`labels`] marks handled mails; [`push`] waits for notifications. [`wire`] is the part of the API's format that
//! is used.
//!
//! Gmail has no idempotency key. Sending without a draft and looking for the `Message-ID` afterwards was rejected as a
//! design, because Gmail may replace the `Message-ID`; a draft, in contrast, can be sent only once.

mod by_hand;
mod calls;
mod labels;
mod push;
mod read;
mod send;
mod sync;
mod wire;

use std::{fmt, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::clock::Clock;
use countersign_services::google::TokenSource;
use url::Url;

pub use self::calls::Retry;
use self::{calls::Calls, labels::Labels, push::Push};
use super::{
    account::{Batch, Found, Handled, MailAccount, MailError, Prepared, SendError, Sent, SyncPoint},
    address::Address,
    by_hand::{AnswerByHand, Incoming},
    mail::{MailId, RawMail},
    reply::Outgoing,
};

/// The scopes that a token needs for mail.
pub const GMAIL_SCOPES: [&str; 1] = ["https://www.googleapis.com/auth/gmail.modify"];
/// The scope that a token also needs for notifications.
pub const GMAIL_PUSH_SCOPE: &str = "https://www.googleapis.com/auth/pubsub";

/// The settings of an account on Gmail.
#[derive(Clone, Debug)]
pub struct GmailSettings {
    /// The address of the API, such as `https://gmail.googleapis.com`.
    pub api: Url,
    /// The address at which people read their mail, such as `https://mail.google.com/mail/`.
    pub web: Url,
    /// The source of access tokens.
    pub tokens: Arc<TokenSource>,
    /// The other addresses of the account.
    pub aliases: Vec<String>,
    /// The notifications of new mails; `None` if there are none.
    pub push: Option<PushSettings>,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The repetition of reads.
    pub retry: Retry,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// The settings of notifications by Pub/Sub.
#[derive(Clone, Debug)]
pub struct PushSettings {
    /// The address of the API, such as `https://pubsub.googleapis.com`.
    pub api: Url,
    /// The full name of the topic to which Gmail may publish, such as `projects/p/topics/mail`.
    pub topic: String,
    /// The full name of its subscription, such as `projects/p/subscriptions/mail`.
    pub subscription: String,
}

/// An account on Gmail.
pub struct GmailAccount {
    address: Address,
    aliases: Vec<String>,
    web: Url,
    calls: Calls,
    labels: Labels,
    push: Option<Push>,
}

impl fmt::Debug for GmailAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GmailAccount").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl GmailAccount {
    /// Creates the account with this address, without sending a request. The address must be the one of the mailbox to
    /// which the tokens belong ([`gmail_address`]).
    ///
    /// # Errors
    ///
    /// Fails if an API needs TLS and the TLS library finds no trusted certificates.
    pub fn new(settings: GmailSettings, address: Address) -> io::Result<Self> {
        let calls = Calls::to_gmail(&settings)?;
        let push = settings.push.clone().map(|push| Push::new(push, &settings)).transpose()?;
        let aliases = settings.aliases.iter().map(|alias| alias.to_lowercase()).collect();
        Ok(Self { address, aliases, web: settings.web, calls, labels: Labels::default(), push })
    }
}

/// Reads the address of the mailbox to which the tokens belong.
///
/// # Errors
///
/// [`MailError`] if Gmail cannot be asked.
pub async fn gmail_address(settings: &GmailSettings) -> Result<Address, MailError> {
    let calls = Calls::to_gmail(settings).map_err(|error| calls::unavailable(error.to_string()))?;
    let profile: wire::Profile = calls.get("/profile", &[]).await?;
    Address::parse(&profile.email_address)
        .ok_or_else(|| MailError::Decode { reason: "the profile has no address".to_owned() })
}

#[async_trait]
impl MailAccount for GmailAccount {
    fn address(&self) -> &Address {
        &self.address
    }

    fn is_us(&self, address: &str) -> bool {
        let address = address.trim().to_lowercase();
        let plain = without_tag(&address);
        [&self.address.address].into_iter().chain(&self.aliases).any(|own| *own == address || *own == plain)
    }

    fn link(&self, mail: &MailId) -> Option<Url> {
        let mut link = self.web.clone();
        link.query_pairs_mut().append_pair("authuser", &self.address.address);
        link.set_fragment(Some(&format!("all/{mail}")));
        Some(link)
    }

    async fn sync(&self, since: Option<&SyncPoint>) -> Result<Batch, MailError> {
        sync::sync(&self.calls, since).await
    }

    async fn read(&self, id: &MailId) -> Result<Option<RawMail>, MailError> {
        read::read(&self.calls, id).await
    }

    async fn prepare(&self, out: &Outgoing) -> Result<Prepared, MailError> {
        send::prepare(&self.calls, out).await
    }

    async fn send(&self, _out: &Outgoing, prepared: &Prepared) -> Result<Sent, SendError> {
        send::send(&self.calls, prepared).await
    }

    async fn find(&self, out: &Outgoing) -> Result<Found, MailError> {
        send::find(&self.calls, out).await
    }

    async fn discard(&self, out: &Outgoing) -> Result<(), MailError> {
        send::discard(&self.calls, out).await
    }

    async fn answered_by_hand(&self, mail: &Incoming) -> Result<Option<AnswerByHand>, MailError> {
        by_hand::answer(&self.calls, mail).await
    }

    async fn mark(&self, id: &MailId, handled: Handled) -> Result<(), MailError> {
        self.labels.mark(&self.calls, id, handled).await
    }

    async fn check(&self) -> Result<String, MailError> {
        let profile: wire::Profile = self.calls.get("/profile", &[]).await?;
        if !self.is_us(&profile.email_address) {
            let reason = format!("the sign-in is for {}, not for {}", profile.email_address, self.address.address);
            return Err(MailError::SignIn { reason });
        }
        let news = match &self.push {
            Some(push) => {
                push.check(&self.calls).await?;
                "notified by Pub/Sub"
            }
            None => "without notifications",
        };
        let total = match profile.messages_total {
            1 => "1 message".to_owned(),
            total => format!("{total} messages"),
        };
        Ok(format!("Gmail as {}, {total}, {news}", self.address.address))
    }

    async fn wait_for_news(&self, at_most: Duration) {
        match &self.push {
            Some(push) => push.wait(&self.calls, at_most).await,
            None => tokio::time::sleep(at_most).await,
        }
    }
}

/// Returns the address without the part after a `+`, which Gmail ignores.
fn without_tag(address: &str) -> String {
    let Some((local, domain)) = address.rsplit_once('@') else { return address.to_owned() };
    format!("{}@{domain}", local.split('+').next().unwrap_or(local))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_does_not_make_another_address() {
        assert_eq!(without_tag("support+orders@example.com"), "support@example.com");
        assert_eq!(without_tag("support@example.com"), "support@example.com");
        assert_eq!(without_tag("no address"), "no address");
    }
}
