//! Mail: reading messages, writing answers, and the accounts that hold them.
//!
//! [`Mail::read`] turns the bytes of a message into safe plain text with the [`Warning`]s that a person should see; it
//! never fails. [`Outgoing::reply`] is an answer exactly as it will be sent, and [`Outgoing::to_mime`] writes it.
//! [`MailAccount`] is an account on some server: new mails are found by [`MailAccount::sync`], and an answer is sent
//! once, so that a lost response can be resolved by [`MailAccount::find`].
//!
//! Everything in a mail comes from strangers: each field has a maximum length, and nothing in it is trusted. This crate
//! knows neither the engine nor Slack nor models. Start reading at [`Mail`] and [`MailAccount`].

mod account;
mod address;
mod by_hand;
mod gmail;
mod imap;
mod invitation;
mod mail;
mod read;
mod reply;
mod status;
mod subject;

pub use countersign_wire::tls::Authorities;

pub use self::{
    account::{Batch, Found, Handled, MailAccount, MailError, Prepared, SendError, Sent, SyncPoint},
    address::Address,
    by_hand::{AnswerByHand, Incoming},
    gmail::{GMAIL_PUSH_SCOPE, GMAIL_SCOPES, GmailAccount, GmailSettings, PushSettings, Retry, gmail_address},
    imap::{ImapAccount, ImapSettings, Security, Server},
    invitation::{EventTime, Invitation, InvitationKind},
    mail::{
        Attachment, Authentication, Automatic, MAX_MAIL_BYTES, MAX_SUBJECT_CHARS, MAX_TEXT_CHARS, Mail, MailId,
        MailThreadId, RawMail, Warning,
    },
    reply::{KEY_HEADER, NoReply, Outgoing},
    status::MailStatus,
    subject::{shown_subject, topic},
};
