//! An account on a mail server, and the errors of calls to it.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use countersign_core::send_permit::RunOut;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    address::Address,
    by_hand::{AnswerByHand, Incoming},
    mail::{MailId, MailThreadId, RawMail},
    reply::Outgoing,
};

/// An account on a mail server.
#[async_trait]
pub trait MailAccount: Send + Sync + fmt::Debug {
    /// Returns the account's own address, from which answers are sent.
    fn address(&self) -> &Address;

    /// Returns true if the address is the account's own or one of its aliases.
    fn is_us(&self, address: &str) -> bool;

    /// Returns the address at which a browser opens the mail, if there is one.
    fn link(&self, mail: &MailId) -> Option<Url>;

    /// Returns the mails that arrived in the inbox after `since`, oldest first. Without `since`, or when the server no
    /// longer knows what happened since, these are all mails that are in the inbox now, and [`Batch::is_full`] is set.
    /// A mail may be returned again by a later call.
    ///
    /// # Errors
    ///
    /// [`MailError`] if there is no complete answer; then nothing has changed, and the same point can be used again.
    async fn sync(&self, since: Option<&SyncPoint>) -> Result<Batch, MailError>;

    /// Reads a mail, of at most [`MAX_MAIL_BYTES`](super::MAX_MAIL_BYTES); a larger one is cut. Returns `None` if it
    /// was deleted in the meantime.
    ///
    /// # Errors
    ///
    /// [`MailError`] if it could not be read.
    async fn read(&self, id: &MailId) -> Result<Option<RawMail>, MailError>;

    /// Prepares sending, where the server can hold a draft: finds the draft by its key, or makes it under the current
    /// permit. May be called again after any failure.
    ///
    /// # Errors
    ///
    /// [`MailError`] if it is not certain that there is a draft. Nothing was sent.
    async fn prepare(&self, out: &Outgoing) -> Result<Prepared, MailError>;

    /// Sends the answer under the current permit ([`countersign_core::send_permit::current`]).
    ///
    /// # Errors
    ///
    /// [`SendError`], which says whether the answer can have been sent.
    async fn send(&self, out: &Outgoing, prepared: &Prepared) -> Result<Sent, SendError>;

    /// Looks for the answer after a send without a response.
    ///
    /// # Errors
    ///
    /// [`MailError`] if the server could not be asked.
    async fn find(&self, out: &Outgoing) -> Result<Found, MailError>;

    /// Deletes the draft of an answer that was certainly not sent, and will not be. Does nothing if there is none, and on
    /// servers that hold no drafts. May be called again.
    ///
    /// # Errors
    ///
    /// [`MailError`] if it is not certain that there is no draft any more.
    async fn discard(&self, out: &Outgoing) -> Result<(), MailError> {
        let _ = out;
        Ok(())
    }

    /// Looks for an answer to a mail that a person sent with a mail program. An answer of the bot is none.
    ///
    /// # Errors
    ///
    /// [`MailError`] if the server could not be asked.
    async fn answered_by_hand(&self, mail: &Incoming) -> Result<Option<AnswerByHand>, MailError>;

    /// Marks a mail as handled, with a label or flag; the marks of earlier calls are replaced. May be called again.
    ///
    /// # Errors
    ///
    /// [`MailError`] if the mail could not be marked.
    async fn mark(&self, id: &MailId, handled: Handled) -> Result<(), MailError>;

    /// Describes the account in one line, after signing in and reading the inbox.
    ///
    /// # Errors
    ///
    /// [`MailError`] if the account cannot be used.
    async fn check(&self) -> Result<String, MailError>;

    /// Returns when there may be new mails, and after `at_most` in any case. Never fails: without news it waits.
    async fn wait_for_news(&self, at_most: Duration) {
        tokio::time::sleep(at_most).await;
    }
}

/// A point up to which the inbox was read. Its text is only meaningful to its account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SyncPoint(String);

impl SyncPoint {
    /// Wraps the text unchanged.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text unchanged.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The mails that arrived since a [`SyncPoint`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The mails, oldest first.
    pub arrived: Vec<MailId>,
    /// The point from which to continue once these mails are stored.
    pub next: SyncPoint,
    /// True if the inbox was read from its beginning.
    pub is_full: bool,
    /// True if there are more mails after `next` already.
    pub has_more: bool,
}

/// An answer that can be sent now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The id of its draft, on servers that hold drafts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
}

/// An answer that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The id of the copy in the account, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<MailId>,
    /// The conversation of the copy, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MailThreadId>,
    /// The `Message-ID` with which it was sent, without angle brackets, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

/// The result of looking for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was sent.
    Sent(Sent),
    /// It is still a draft, so it was certainly not sent.
    Draft(Prepared),
    /// There is neither a draft nor a sent message, on a server where one of them would be found.
    Nothing,
    /// The server cannot tell.
    Unknown {
        /// The reason, as a clause such as `there is no copy in Sent`.
        why: String,
    },
}

/// The way in which a mail was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handled {
    /// An answer was sent, by the bot or with a mail program.
    Answered,
    /// A person decided not to answer.
    Rejected,
    /// It is spam.
    Spam,
}

impl Handled {
    /// All ways in which a mail is handled.
    pub const ALL: [Self; 3] = [Self::Answered, Self::Rejected, Self::Spam];
}

/// The reason why a call to a mail server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// There was no answer, or the server asks to be called later. A read may be repeated.
    #[error("the mail server is unavailable: {reason}")]
    Unavailable {
        /// The observed failure.
        reason: String,
        /// The time after which the server wants to be called again, if it named one.
        retry_after: Option<Duration>,
    },
    /// The server does not accept the credentials.
    #[error("the sign-in to the mail server was refused: {reason}")]
    SignIn {
        /// The reason given by the server.
        reason: String,
    },
    /// The server refuses the call, and would refuse it again.
    #[error("the mail server refused: {reason}")]
    Refused {
        /// The status of the answer, for protocols that have one.
        status: Option<u16>,
        /// The reason given by the server.
        reason: String,
    },
    /// The answer cannot be understood.
    #[error("cannot read the mail server's answer: {reason}")]
    Decode {
        /// The observed problem.
        reason: String,
    },
    /// Nothing was sent, because the time for it is over.
    #[error("the deadline for sending this has passed")]
    RunOut,
}

impl From<RunOut> for MailError {
    fn from(_: RunOut) -> Self {
        Self::RunOut
    }
}

impl MailError {
    /// Returns the reason in one word, for spans and metrics.
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::SignIn { .. } => "not_signed_in",
            Self::Refused { .. } => "refused",
            Self::Decode { .. } => "unreadable",
            Self::RunOut => "run_out",
        }
    }
}

/// The reason why an answer was not sent, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The request did not reach the server, so nothing was sent; it may be sent again.
    #[error("the email was not sent")]
    NotSent(#[source] MailError),
    /// The server refused it, so nothing was sent.
    #[error("the email was refused")]
    Refused(#[source] MailError),
    /// There is no response, so the answer may have been sent.
    #[error("no response to sending the email: {detail}")]
    Unknown {
        /// The observed failure.
        detail: String,
    },
}
