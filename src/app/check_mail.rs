//! Checks the mail account, the sources of context, and says whether answers are sent without a person.

use std::sync::Arc;

use async_trait::async_trait;
use countersign_config::{Config, Email};
use countersign_context::{Contact, Contacts, ContextError, contact::Update};
use countersign_core::clock::{Clock, SystemClock, Timestamp};
use countersign_services::google::TokenSource;
use futures_util::future::join4;

use super::{
    mail::{self, account, context},
    stdout::describe_error,
};

/// A line of the report: its subject, and the state or the problem.
type Line = (&'static str, Result<String, String>);

/// Returns a line for each system that mail needs, and one about automatic answers; or one that says that there is no
/// mail.
pub(super) async fn run(config: &Config) -> Vec<Line> {
    let settings = &config.email;
    let missing: Vec<String> = settings.missing().iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        return vec![("email", Err(missing.join("; ")))];
    }
    if !mail::is_set(config) {
        return vec![("email", Ok("none (email.channel is not set)".to_owned()))];
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let tokens = match account::tokens(settings, &clock) {
        Ok(tokens) => tokens,
        Err(error) => return vec![("email", Err(describe_error(&error)))],
    };
    let (of_account, calendar, contacts, store) = join4(
        account_line(config, tokens.as_ref(), &clock),
        calendar(config, tokens.as_ref()),
        contacts(config),
        store(config),
    )
    .await;
    let mut lines = vec![("email", of_account), ("context", store)];
    lines.extend(contacts.map(|result| ("contacts", result)));
    lines.extend(calendar.map(|result| ("calendar", result)));
    lines.extend(embeddings(config));
    lines.push(("automatic", Ok(automatic(settings))));
    lines
}

async fn account_line(
    config: &Config,
    tokens: Option<&Arc<TokenSource>>,
    clock: &Arc<dyn Clock>,
) -> Result<String, String> {
    let account = account::open(config, tokens, clock).await.map_err(|error| describe_error(&error))?;
    account.check().await.map_err(|error| error.to_string())
}

/// Checks the store of similar mails and contacts. A file is not made.
async fn store(config: &Config) -> Result<String, String> {
    let path = config.email.context_file(&config.store.path);
    if config.email.database_url.is_none() && !path.exists() {
        return Ok(format!("none yet; it will be created at {}", path.display()));
    }
    let store = context::store(config).map_err(|error| describe_error(&error))?;
    store.check().await.map_err(|error| error.to_string())
}

/// Checks the contacts in HubSpot, if they are used.
async fn contacts(config: &Config) -> Option<Result<String, String>> {
    match context::hubspot(config, Arc::new(NoContacts)).transpose()? {
        Ok(contacts) => Some(contacts.check().await.map_err(|error| error.to_string())),
        Err(error) => Some(Err(describe_error(&error))),
    }
}

/// Checks the calendar, if one is used.
async fn calendar(config: &Config, tokens: Option<&Arc<TokenSource>>) -> Option<Result<String, String>> {
    match context::calendar(config, tokens).transpose()? {
        Ok(calendar) => Some(calendar.check().await.map_err(|error| error.to_string())),
        Err(error) => Some(Err(describe_error(&error))),
    }
}

/// Says that similar mails are found by their words, if there is no model for embeddings. The model has a line of its
/// own otherwise.
fn embeddings(config: &Config) -> Option<Line> {
    let without = config.model.embedding().is_none();
    let found = "none (no OpenAI or Gemini key is set): similar emails are found by keywords";
    without.then(|| ("embeddings", Ok(found.to_owned())))
}

/// Describes the answers that are sent without a person.
fn automatic(settings: &Email) -> String {
    if !settings.automatic {
        return "off: every reply waits for review (email.automatic)".to_owned();
    }
    let own = settings.thresholds.iter().map(|(class, threshold)| format!("{class} from {threshold}"));
    let own: Vec<String> = own.collect();
    let own = if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) };
    format!(
        "ON: replies are sent without review at a confidence of {} or higher{own}, up to {} a day and {} to one address; \
         complaints are always reviewed",
        settings.threshold, settings.answers_a_day, settings.answers_to_one_address
    )
}

/// The contacts behind those of HubSpot during a check, in which no store is made: there are none.
#[derive(Debug)]
struct NoContacts;

#[async_trait]
impl Contacts for NoContacts {
    async fn find(&self, _: &str) -> Result<Option<Contact>, ContextError> {
        Ok(None)
    }

    async fn seen(&self, _: Option<&str>, _: &str, _: Timestamp) -> Result<bool, ContextError> {
        Ok(false)
    }

    async fn update(&self, _: &str, _: &Update, _: Timestamp) -> Result<Contact, ContextError> {
        Err(ContextError::Invalid { reason: "Nothing is changed during a check.".to_owned() })
    }

    async fn search(&self, _: &str, _: usize) -> Result<Vec<Contact>, ContextError> {
        Ok(Vec::new())
    }

    async fn check(&self) -> Result<String, ContextError> {
        Ok("none".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn config(settings: &[(&str, &str)]) -> Config {
        let environment: HashMap<_, _> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::load(None, &environment, &crate::app::installed::SETTINGS).unwrap()
    }

    #[tokio::test]
    async fn without_mail_there_is_one_line_about_it() {
        let lines = run(&config(&[])).await;
        assert_eq!(lines, [("email", Ok("none (email.channel is not set)".to_owned()))]);
        let half = run(&config(&[("COUNTERSIGN__EMAIL__CHANNEL", "C1")])).await;
        assert!(half[0].1.as_ref().unwrap_err().starts_with("email.channel: it is set, but no mail account is"));
    }

    #[test]
    fn whether_answers_are_sent_without_a_person_is_said_with_the_limits() {
        assert_eq!(automatic(&config(&[]).email), "off: every reply waits for review (email.automatic)");
        let on = [("COUNTERSIGN__EMAIL__AUTOMATIC", "true"), ("COUNTERSIGN__EMAIL__THRESHOLDS__INQUIRY", "0.95")];
        assert_eq!(
            automatic(&config(&on).email),
            "ON: replies are sent without review at a confidence of 0.8 or higher (inquiry from 0.95), up to 50 a day and 3 \
             to one address; complaints are always reviewed"
        );
    }
}
