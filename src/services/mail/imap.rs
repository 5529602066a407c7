//! An account on a server that speaks IMAP, with answers sent by SMTP.
//!
//! IMAP tells which mails are new: ids in a mailbox only grow, until the server restarts the numbering. SMTP has no way to
//! ask about a message later, so after a lost response only a copy in the mailbox for sent mails is evidence; without one
//! the result is [`Found::Unknown`]. A copy is stored there after sending, unless the server does so itself.

mod connection;
mod mailbox;
mod session;
mod smtp;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use countersign_core::{cause::chain, send_permit, spans};
use secrecy::SecretString;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing::warn;
use url::Url;

pub use self::connection::{Security, Server};
use self::{
    mailbox::Position,
    session::{Connected, MAX_ANSWER_BYTES, MAX_BODY_ANSWER_BYTES},
};
use crate::{
    account::{Batch, Found, Handled, MailAccount, MailError, Prepared, SendError, Sent, SyncPoint},
    address::Address,
    by_hand::{AnswerByHand, Incoming},
    mail::{MailId, RawMail},
    reply::Outgoing,
};

/// The number of times by which reading a mail may take longer than another call.
const READ_FACTOR: u32 = 4;

/// The settings of an account with IMAP and SMTP.
#[derive(Clone, Debug)]
pub struct ImapSettings {
    /// The account's own address, from which answers are sent.
    pub address: Address,
    /// Other addresses of the account.
    pub aliases: Vec<String>,
    /// The server for reading.
    pub imap: Server,
    /// The server for sending.
    pub smtp: Server,
    /// The name with which to sign in to both servers.
    pub user: String,
    /// The password for both servers.
    pub password: SecretString,
    /// The mailbox with new mails, usually `INBOX`.
    pub mailbox: String,
    /// The mailbox with sent mails. If there is none, the one that the server marks as such, or else `Sent`.
    pub sent: Option<String>,
    /// The time limit for a call.
    pub timeout: Duration,
}

/// An account with IMAP and SMTP.
pub struct ImapAccount {
    settings: ImapSettings,
    /// A connection that is not in use.
    unused: Mutex<Option<Connected>>,
    /// The point up to which new mails were returned last.
    returned: Mutex<Option<Position>>,
}

impl fmt::Debug for ImapAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImapAccount")
            .field("imap", &self.settings.imap)
            .field("smtp", &self.settings.smtp)
            .finish_non_exhaustive()
    }
}

impl ImapAccount {
    /// Creates an account. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// Fails if the password would be sent without encryption to another machine.
    pub fn new(settings: ImapSettings) -> Result<Self, MailError> {
        settings.imap.validate()?;
        settings.smtp.validate()?;
        Ok(Self { settings, unused: Mutex::default(), returned: Mutex::default() })
    }

    /// Returns a connection that works: the unused one if it still answers, or a new one.
    async fn connected(&self) -> Result<Connected, MailError> {
        let unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut connected) = unused {
            connected.allow(MAX_ANSWER_BYTES);
            if connected.session.noop().await.is_ok() {
                return Ok(connected);
            }
        }
        session::connect(&self.settings).await
    }

    /// Keeps a connection for the next call, unless the last one failed.
    fn keep<T>(&self, connected: Connected, result: &Result<T, MailError>) {
        if result.is_ok() {
            *self.unused.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected);
        }
    }

    fn limited<'a, T: Send + 'a>(
        &'a self,
        factor: u32,
        call: impl Future<Output = Result<T, MailError>> + Send + 'a,
    ) -> impl Future<Output = Result<T, MailError>> + Send + 'a {
        let limit = self.settings.timeout * factor;
        let call = Box::pin(call);
        async move {
            let late = |_| {
                let reason = format!("{} did not answer within {} s", self.settings.imap.host, limit.as_secs());
                Err(MailError::Unavailable { reason, retry_after: None })
            };
            let answered = async { timeout(limit, call).await.unwrap_or_else(late) };
            spans::call("imap", "session", answered, |result| match result {
                Ok(_) => "ok".into(),
                Err(error) => error.status().into(),
            })
            .await
        }
    }

    /// Looks for a sent message in the mailbox with sent mails.
    async fn is_in_sent(&self, message_id: &str) -> Result<bool, MailError> {
        self.limited(1, async {
            let mut connected = self.connected().await?;
            let found = mailbox::is_sent(&mut connected.session, self.settings.sent.as_deref(), message_id).await;
            self.keep(connected, &found);
            found
        })
        .await
    }

    /// Stores a copy of a sent message, unless the server has done so itself.
    async fn store_copy(&self, out: &Outgoing) -> Result<(), MailError> {
        self.limited(1, async {
            let mut connected = self.connected().await?;
            let stored = mailbox::store_sent(&mut connected.session, self.settings.sent.as_deref(), out).await;
            self.keep(connected, &stored);
            stored
        })
        .await
    }

    /// Waits with `IDLE` until the server reports a change. Returns false if it cannot tell.
    async fn idle(&self, at_most: Duration) -> Result<bool, MailError> {
        let connecting = async {
            let mut connected = session::connect(&self.settings).await?;
            let position = mailbox::position(&mut connected.session, &self.settings.mailbox).await?;
            Ok((connected, position))
        };
        let (connected, position) = self.limited(1, connecting).await?;
        let returned = *self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        if returned.is_some_and(|returned| returned != position) {
            return Ok(true);
        }
        mailbox::idle(connected, self.settings.timeout, at_most).await
    }
}

#[async_trait]
impl MailAccount for ImapAccount {
    fn address(&self) -> &Address {
        &self.settings.address
    }

    fn is_us(&self, address: &str) -> bool {
        let is = |own: &str| own.eq_ignore_ascii_case(address.trim());
        is(&self.settings.address.address) || self.settings.aliases.iter().any(|alias| is(alias))
    }

    fn link(&self, _mail: &MailId) -> Option<Url> {
        None
    }

    async fn sync(&self, since: Option<&SyncPoint>) -> Result<Batch, MailError> {
        let since = since.and_then(Position::of);
        let (batch, position) = self
            .limited(1, async {
                let mut connected = self.connected().await?;
                let arrived = mailbox::arrived(&mut connected.session, &self.settings.mailbox, since).await;
                self.keep(connected, &arrived);
                arrived
            })
            .await?;
        *self.returned.lock().unwrap_or_else(PoisonError::into_inner) = Some(position);
        Ok(batch)
    }

    async fn read(&self, id: &MailId) -> Result<Option<RawMail>, MailError> {
        self.limited(READ_FACTOR, async {
            let mut connected = self.connected().await?;
            connected.allow(MAX_BODY_ANSWER_BYTES);
            let read = mailbox::read(&mut connected.session, &self.settings.mailbox, id).await;
            self.keep(connected, &read);
            read
        })
        .await
    }

    async fn prepare(&self, _out: &Outgoing) -> Result<Prepared, MailError> {
        Ok(Prepared::default())
    }

    async fn send(&self, out: &Outgoing, _prepared: &Prepared) -> Result<Sent, SendError> {
        let permit = send_permit::current().ok_or(SendError::NotSent(MailError::RunOut))?;
        let sent = Box::pin(smtp::send(&self.settings, out, &permit));
        spans::call("smtp", "send", sent, |sent| match sent {
            Ok(()) => "ok".into(),
            Err(SendError::NotSent(error) | SendError::Refused(error)) => error.status().into(),
            Err(SendError::Unknown { .. }) => "no_answer".into(),
        })
        .await?;
        // The answer is sent, with or without a copy.
        if let Err(error) = self.store_copy(out).await {
            warn!(error = chain(&error), "cannot store the copy of a sent email");
        }
        Ok(Sent { id: None, thread: None, message_id: Some(out.message_id.clone()) })
    }

    async fn find(&self, out: &Outgoing) -> Result<Found, MailError> {
        Ok(if self.is_in_sent(&out.message_id).await? {
            Found::Sent(Sent { id: None, thread: None, message_id: Some(out.message_id.clone()) })
        } else {
            let why = "there is no copy among the sent emails, and SMTP cannot tell whether an email was accepted";
            Found::Unknown { why: why.to_owned() }
        })
    }

    async fn answered_by_hand(&self, mail: &Incoming) -> Result<Option<AnswerByHand>, MailError> {
        let Some(message_id) = &mail.message_id else { return Ok(None) };
        let sent = self.limited(READ_FACTOR, async {
            let mut connected = self.connected().await?;
            let sent = mailbox::answers(&mut connected.session, self.settings.sent.as_deref(), message_id).await;
            self.keep(connected, &sent);
            sent
        });
        Ok(sent.await?.iter().find_map(|sent| mail.answered_by(sent)))
    }

    async fn mark(&self, id: &MailId, handled: Handled) -> Result<(), MailError> {
        self.limited(1, async {
            let mut connected = self.connected().await?;
            let marked = mailbox::mark(&mut connected.session, &self.settings.mailbox, id, handled).await;
            self.keep(connected, &marked);
            marked
        })
        .await
    }

    async fn check(&self) -> Result<String, MailError> {
        let number = self
            .limited(1, async {
                let mut connected = session::connect(&self.settings).await?;
                let number = mailbox::number(&mut connected.session, &self.settings.mailbox).await;
                self.keep(connected, &number);
                number
            })
            .await?;
        Box::pin(smtp::check(&self.settings)).await?;
        let mails = if number == 1 { "1 email".to_owned() } else { format!("{number} emails") };
        Ok(format!(
            "{}: {mails} in {} on {}, sends through {}",
            self.settings.address.address, self.settings.mailbox, self.settings.imap.host, self.settings.smtp.host
        ))
    }

    async fn wait_for_news(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let has_news = timeout_at(until, Box::pin(self.idle(at_most))).await;
        if !matches!(has_news, Ok(Ok(true))) {
            sleep_until(until).await;
        }
    }
}
