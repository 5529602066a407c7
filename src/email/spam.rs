//! `mark_mail_as_spam`: marks a mail as spam in the account, instead of answering it.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_core::reply::{Card, Fact, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Proposal, Reader, Recovery,
    Scope,
};
use countersign_mail::{Handled, MailAccount, MailError, MailId, shown_subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    card::{exactly, title_of},
    register::{MailRegister, MailStatus},
    replies,
    send::{refused, target, unread},
};

/// The name of the action.
pub const NAME: &str = "mark_mail_as_spam";

/// The action `mark_mail_as_spam`.
#[derive(Debug)]
pub struct MarkAsSpam {
    /// The mail account.
    pub account: Arc<dyn MailAccount>,
    /// The list of mails.
    pub book: MailRegister,
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpamParameters {
    /// The id of the mail.
    pub mail: String,
    /// The subject, for the card.
    #[serde(default)]
    pub subject: String,
    /// The sender, for the card.
    #[serde(default)]
    pub sender: String,
    /// The text of the mail, for the card.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
}

#[async_trait]
impl ActionKind for MarkAsSpam {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(NAME, "Marks a mail as spam instead of answering it.")
    }

    fn schema(&self) -> Value {
        schemars::schema_for!(SpamParameters).to_value()
    }

    async fn prepare(&self, parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let given: SpamParameters = serde_json::from_value(parameters.clone())
            .map_err(|_| refused(ErrorKind::Validation, replies::not_an_answer()))?;
        let mail = MailId::new(&*given.mail);
        let entry = self.book.entry(&mail).await.map_err(|error| unread(&error))?;
        let (note, done) = match entry.is_some_and(|entry| entry.status == MailStatus::Sent) {
            true => ("A reply was already sent.", "Marked as spam. A reply was already sent."),
            false => ("No reply is sent.", "Marked as spam. No reply was sent."),
        };
        let mut facts =
            vec![Fact::new("From", exactly(given.sender.clone())), Fact::new("Subject", shown_subject(&given.subject))];
        if !given.email.is_empty() {
            facts.push(Fact::new("Email", Text::new().quote(given.email.clone())));
        }
        let title = match title_of(&given.subject).as_str() {
            "" => "Mark this email (no subject) as spam?".to_owned(),
            subject => format!("Mark “{subject}” as spam?"),
        };
        let card = Card {
            facts,
            notes: vec![Text::from(format!("{note} You can move the email back in the mailbox."))],
            reject: "Not spam".to_owned(),
            ..Card::new(title, "Mark as spam", done)
        };
        // “Not spam” judges the mail, whoever asked.
        let scope = Scope::of(target(&mail)).of_subject(given.subject.clone()).from_outside();
        Ok(Proposal { scope, ..Proposal::new(given, card) })
    }

    async fn preconditions(&self, _: &ActionRecord) -> Result<Value, Outcome> {
        Ok(json!({}))
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let Some(mail) = record.parameters["mail"].as_str().map(MailId::new) else {
            let summary = Text::from("The stored request can't be read, so nothing was marked.");
            return Performed::Ended(Outcome::Failed { error: ErrorKind::Execution, summary });
        };
        let Ok(mail) = self.book.current_id(&mail).await else {
            return Performed::NoAnswer { detail: "the list of emails can't be read".to_owned() };
        };
        match self.account.mark(&mail, Handled::Spam).await {
            Ok(()) => Performed::Ended(Outcome::done(record, json!({}))),
            Err(error @ MailError::Unavailable { .. }) => Performed::NoAnswer { detail: error.to_string() },
            Err(error) => {
                let summary = Text::from(format!("{} Nothing was marked.", replies::account_error(&error)));
                Performed::Ended(Outcome::Failed { error: ErrorKind::Api, summary })
            }
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Idempotent
    }
}
