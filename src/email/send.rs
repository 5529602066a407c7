//! `send_mail`: sends the answer to a mail, once.
//!
//! The recipient, the subject and the thread are read from the mail each time the change is prepared; a request only
//! gives the mail and the text. So neither a model nor a form can send to anybody but the sender, or the address to which
//! the sender asks to reply, which only a person can choose, in the form.
//!
//! Sending has no idempotency key. The action's id is the key of the answer: its draft carries it in a header, and its
//! Message-ID contains it. After a lost response, the account is asked what became of the answer with this key. A draft
//! that is still there was certainly not sent, so sending continues with that draft, which can be sent only once. An
//! answer that is found nowhere, on a server where it would be found, never became a draft and is sent. Everything else
//! is not known, and a person decides.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_core::{
    cause::chain,
    clock::Clock,
    reply::{Reply, Text},
};
use countersign_graph::{
    action::{
        ActionInfo, ActionKind, ActionRecord, ErrorKind, Field, Form, Input, Label, MissingParameter, Outcome,
        Performed, Pick, PrepareError, Probed, Proposal, Reader, Recovery, Refusal, Scope, Status,
    },
    store::{ActionFilter, Error},
};
use countersign_mail::{
    Address, AnswerByHand, Found, Incoming, Mail, MailAccount, MailError, MailId, MailThreadId, NoReply, Outgoing,
    SendError, Sent, shown_subject,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    card::{self, About},
    register::{Entry, MailRegister},
    replies,
    rules::{MAX_DRAFT_CHARS, recipients},
};

/// The name of the action.
pub const NAME: &str = "send_mail";

/// The maximum number of other answers to a mail that are looked up.
const MAX_OTHERS: usize = 20;

/// The action `send_mail`.
#[derive(Debug)]
pub struct SendAnswer {
    /// The mail account.
    pub account: Arc<dyn MailAccount>,
    /// The list of mails, whose store has the other answers to the same mail.
    pub book: MailRegister,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The time after sending during which a request may still arrive. Half of it is for making the draft and sending
    /// it.
    pub in_flight: Duration,
}

/// The parameters that a request gives.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The id of the mail to answer. Required.
    #[serde(default)]
    mail: Option<String>,
    /// The text of the answer. Required.
    #[serde(default)]
    text: Option<String>,
    /// The recipient, which is the sender of the mail unless a person chose the address in its `Reply-To`.
    #[serde(default)]
    #[schemars(skip)]
    to: Option<Address>,
    /// The facts that the card shows.
    #[serde(default)]
    #[schemars(skip)]
    about: About,
}

/// The stored parameters: the answer, except for what follows from the action's id and the time of sending.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendParameters {
    /// The mail that is answered.
    pub mail: MailId,
    /// The account's address.
    pub from: Address,
    /// The recipient.
    pub to: Address,
    /// The subject.
    pub subject: String,
    /// The id of the message that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to: Option<String>,
    /// The ids of the messages before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The conversation in the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<MailThreadId>,
    /// The text, exactly as it is sent.
    pub text: String,
    /// The facts that the card shows.
    #[serde(default)]
    pub about: About,
    /// The addresses among which a person can choose the recipient, if there are several: the sender's is the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Address>,
}

/// Returns the answer on the newest open card; `None` if no card with an answer is open.
pub(super) fn on_card(open: &[ActionRecord]) -> Option<SendParameters> {
    let answers = open.iter().filter(|record| record.name == NAME);
    let newest = answers.max_by_key(|record| record.requested_at)?;
    SendParameters::deserialize(&*newest.parameters).ok()
}

/// Returns the target of all changes about a mail.
pub(super) fn target(mail: &MailId) -> String {
    format!("mail:{mail}")
}

impl SendAnswer {
    /// Reads the mail from the account.
    async fn mail(&self, id: &MailId) -> Result<Mail, PrepareError> {
        let id = self.book.current_id(id).await.map_err(|error| unread(&error))?;
        match self.account.read(&id).await {
            Ok(Some(raw)) => Ok(Mail::read(&raw)),
            Ok(None) => Err(refused(ErrorKind::NotFound, replies::mail_gone())),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Returns the answer to a mail that a person sent with a mail program, as the account has it now.
    async fn answer_by_hand(&self, mail: &MailId) -> Result<Option<AnswerByHand>, Outcome> {
        let entry = self.book.entry(mail).await.map_err(|error| not_read(&error))?;
        let Some(incoming) = entry.and_then(|entry| entry.incoming()) else { return Ok(None) };
        self.account.answered_by_hand(&incoming).await.map_err(|error| not_sent(&error))
    }

    /// Returns the entry of the newer mail of the conversation, if one came while this mail waited.
    async fn newer(&self, mail: &MailId) -> Result<Option<Entry>, Error> {
        match self.book.entry(mail).await?.and_then(|entry| entry.newer) {
            Some(newer) => self.book.entry(&newer).await,
            None => Ok(None),
        }
    }

    /// Returns the other answers to the mail that were or may have been sent.
    async fn others(&self, mail: &MailId, except: Option<&ActionRecord>) -> Result<Vec<ActionRecord>, Error> {
        let statuses = [Status::Intent, Status::Done, Status::Unknown, Status::Settled];
        let about = [Label::About(target(mail))];
        let mut others = self.book.store().actions(&ActionFilter::under(&about, &statuses, MAX_OTHERS)).await?;
        others.retain(|other| other.name == NAME && except.is_none_or(|record| record.id != other.id));
        others.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(others)
    }
}

/// Returns the answer of an action, exactly as it is sent. Every call returns the same key and the same Message-ID.
pub(super) fn outgoing(record: &ActionRecord) -> Result<Outgoing, serde_json::Error> {
    let SendParameters { mail: _, from, to, subject, in_reply_to, references, thread, text, about: _, choices: _ } =
        Deserialize::deserialize(&*record.parameters)?;
    let message_id = format!("{}@{}", record.id, from.domain());
    Ok(Outgoing {
        from,
        to,
        subject,
        in_reply_to,
        references,
        thread,
        text,
        key: record.id.to_string(),
        message_id,
        at: record.intent_at.unwrap_or(record.requested_at),
        is_automatic: record.under.is_some(),
    })
}

pub(super) fn refused(error: ErrorKind, reply: Reply) -> PrepareError {
    Refusal::Refused { error, reply }.into()
}

/// Returns the error for a list of mails that cannot be read.
pub(super) fn unread(error: &Error) -> PrepareError {
    tracing::warn!(error = chain(error), "Cannot read the list of mails");
    PrepareError::Unavailable { error: ErrorKind::Execution, reply: replies::store_unavailable() }
}

/// Returns the error for an account that cannot be read.
fn unreachable(error: &MailError) -> PrepareError {
    PrepareError::Unavailable { error: kind_of(error), reply: replies::account_unavailable(error) }
}

fn kind_of(error: &MailError) -> ErrorKind {
    match error {
        MailError::Unavailable { .. } | MailError::RunOut => ErrorKind::Network,
        MailError::SignIn { .. } => ErrorKind::Auth,
        MailError::Refused { .. } | MailError::Decode { .. } => ErrorKind::Api,
    }
}

fn failed(error: ErrorKind, summary: impl Into<Text>) -> Outcome {
    Outcome::Failed { error, summary: summary.into() }
}

/// Returns the preconditions: the other answers to the mail, by their actions, and the newer mail of the conversation.
fn as_preconditions(others: &[ActionRecord], newer: Option<&Entry>) -> Value {
    let other = |other: &ActionRecord| json!({ "action": other.id, "status": other.status });
    let mut found = json!({ "other_answers": others.iter().map(other).collect::<Vec<_>>() });
    if let Some(newer) = newer {
        found["newer_email"] = json!(shown_subject(&newer.subject));
    }
    found
}

#[async_trait]
impl ActionKind for SendAnswer {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, "Sends an answer to the sender of a mail.")
    }

    fn schema(&self) -> Value {
        schemars::schema_for!(Given).to_value()
    }

    async fn form(&self, parameters: &Value) -> Option<Form> {
        let text = parameters["text"].as_str()?;
        let field = Field::new("/text", "Reply", Input::Prose(text.to_owned()));
        let hint = format!("Sent exactly as you write it, up to {MAX_DRAFT_CHARS} characters.");
        let mut fields = vec![field.hint(hint).required()];
        let choices = Vec::<Address>::deserialize(&parameters["choices"]).unwrap_or_default();
        if choices.len() > 1 {
            let value = parameters["to"]["address"].as_str().map(str::to_owned);
            let picks = choices.into_iter().map(|choice| Pick { label: choice.to_string(), value: choice.address });
            let field = Field::new("/to/address", "Send to", Input::One { picks: picks.collect(), value });
            fields.push(field.hint("The email asks for replies to another address than its sender's.").required());
        }
        Some(Form { fields })
    }

    fn is_editable(&self, _: &Value) -> bool {
        true
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let given: Given = serde_json::from_value(parameters.clone())
            .map_err(|_| refused(ErrorKind::Validation, replies::not_an_answer()))?;
        let Some(id) = given.mail.filter(|id| !id.is_empty()).map(MailId::new) else {
            return Err(refused(ErrorKind::Validation, replies::not_an_answer()));
        };
        let text = given.text.unwrap_or_default().replace("\r\n", "\n").trim().to_owned();
        if text.is_empty() {
            let question = "What should the reply say?".to_owned();
            let missing = MissingParameter { name: "text".to_owned(), question, options: Vec::new() };
            return Err(Refusal::Missing(vec![missing]).into());
        }
        let length = text.chars().count();
        if length > MAX_DRAFT_CHARS {
            return Err(refused(ErrorKind::Validation, replies::too_long(length)));
        }
        let mail = self.mail(&id).await?;
        let from = self.account.address().clone();
        let mut out = Outgoing::reply(&mail, from, text, String::new(), self.clock.now(), false)
            .map_err(|error| refused(ErrorKind::Validation, replies::cannot_be_answered(&error)))?;
        let mut choices = recipients(&mail);
        if let Some(to) = &given.to {
            let chosen = choices.iter().find(|choice| choice.is_same_mailbox(to));
            let wrong = || refused(ErrorKind::Validation, replies::only_to_the_sender(&choices));
            out.to = chosen.cloned().ok_or_else(wrong)?;
        }
        if choices.len() < 2 {
            choices.clear();
        }
        if self.account.is_us(&out.to.address) {
            return Err(refused(ErrorKind::Validation, replies::cannot_be_answered(&NoReply::FromUs)));
        }
        let others = self.others(&id, None).await.map_err(|error| {
            tracing::warn!(error = chain(&error), "Cannot look up the other answers to a mail");
            PrepareError::Unavailable { error: ErrorKind::Execution, reply: replies::store_unavailable() }
        })?;
        if others.iter().any(|other| matches!(other.status, Status::Done | Status::Settled)) {
            return Err(refused(ErrorKind::Validation, replies::already_answered()));
        }
        if let Some(incoming) = Incoming::of(&mail) {
            match self.account.answered_by_hand(&incoming).await {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let reply = Reply::text(replies::answered_by_hand(&answer).plain("."));
                    return Err(refused(ErrorKind::Validation, reply));
                }
                Err(error) => return Err(unreachable(&error)),
            }
        }
        let newer = self.newer(&id).await.map_err(|error| unread(&error))?;
        let Outgoing { from, to, subject, in_reply_to, references, thread, text, .. } = out;
        let answer = SendParameters {
            mail: id.clone(),
            from,
            to,
            subject,
            in_reply_to,
            references,
            thread,
            text,
            about: given.about,
            choices,
        };
        let link = self.account.link(&id);
        let state = (newer.as_ref(), !others.is_empty());
        let card = card::card(&mail, &answer, state, link.as_ref().map(url::Url::as_str));
        let is_risky = card::is_risky(&mail, &answer.about, newer.as_ref(), !others.is_empty());
        Ok(Proposal {
            preconditions: as_preconditions(&others, newer.as_ref()),
            scope: Scope::of(target(&id)).of_subject(mail.subject.clone()).from_outside().risky(is_risky),
            ..Proposal::new(&answer, card)
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let Some(mail) = record.parameters["mail"].as_str().map(MailId::new) else {
            return Err(failed(ErrorKind::Execution, "I can't read the stored reply, so it wasn't sent."));
        };
        let others = self.others(&mail, Some(record)).await.map_err(|error| {
            tracing::warn!(error = chain(&error), "Cannot look up the other answers to a mail");
            failed(ErrorKind::Execution, "I can't look up earlier replies, so it wasn't sent.")
        })?;
        if others.iter().any(|other| matches!(other.status, Status::Done | Status::Settled | Status::Intent)) {
            return Err(failed(ErrorKind::Execution, "This email was already answered, so nothing was sent."));
        }
        if let Some(answer) = self.answer_by_hand(&mail).await? {
            let summary = replies::answered_by_hand(&answer).plain(". Nothing was sent.");
            return Err(failed(ErrorKind::Execution, summary));
        }
        let newer = self.newer(&mail).await.map_err(|error| not_read(&error))?;
        Ok(as_preconditions(&others, newer.as_ref()))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let out = match outgoing(record) {
            Ok(out) => out,
            Err(error) => {
                tracing::error!(action.id = %record.id, %error, "A stored answer cannot be read");
                let summary = "I can't read the stored reply, so it wasn't sent.";
                return Performed::Ended(failed(ErrorKind::Execution, summary));
            }
        };
        let prepared = match self.account.prepare(&out).await {
            Ok(prepared) => prepared,
            Err(error) => return Performed::Ended(not_sent(&error)),
        };
        match self.account.send(&out, &prepared).await {
            Ok(sent) => Performed::Ended(done(&out, &sent)),
            Err(SendError::NotSent(error) | SendError::Refused(error)) => Performed::Ended(not_sent(&error)),
            Err(SendError::Unknown { detail }) => Performed::NoAnswer { detail },
        }
    }

    /// An answer of which the account has neither a draft nor a copy is made and sent again. An account that would not
    /// find it says that it cannot tell, and then nothing is sent again.
    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: self.in_flight, repeatable: true }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(out) = outgoing(record) else {
            return Probed::CannotTell { evidence: "The stored reply can't be read.".into() };
        };
        match self.account.find(&out).await {
            Ok(Found::Sent(sent)) => Probed::Happened(done(&out, &sent)),
            // A draft can be sent only once, and it is still there.
            Ok(Found::Draft(_)) => {
                Probed::Unfinished { evidence: "The reply is still a draft, so it wasn't sent.".into() }
            }
            Ok(Found::Nothing) => Probed::DidNotHappen,
            Ok(Found::Unknown { why }) => {
                Probed::CannotTell { evidence: Text::from(format!("I can't tell whether it was sent: {why}.")) }
            }
            Err(error) => Probed::CannotTell { evidence: Text::from(replies::account_error(&error)) },
        }
    }
}

fn done(out: &Outgoing, sent: &Sent) -> Outcome {
    let to = card::name_of(&out.to);
    Outcome::Done {
        result: json!({ "id": sent.id, "thread": sent.thread, "message_id": sent.message_id }),
        summary: Text::from("Sent the reply to ").bold(to).plain("."),
    }
}

fn not_read(error: &Error) -> Outcome {
    tracing::warn!(error = chain(error), "Cannot read the list of mails");
    failed(ErrorKind::Execution, "I can't read the list of emails, so nothing was sent.")
}

fn not_sent(error: &MailError) -> Outcome {
    failed(kind_of(error), Text::from(format!("{} Nothing was sent.", replies::account_error(error))))
}
