//! The tools, which read the team's mail.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    parameters::{parameters, schema},
};
use countersign_core::{clock::Clock, reply::Reply};
use countersign_graph::action::{ErrorKind, PrepareError, Reader, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    book::{BookError, MailBook, may_read},
    commands::{self, MAX_LISTED},
    figures::Figures,
    replies::{self, Chart},
};

/// The name of the tool for the state of the account.
pub const STATUS: &str = "mail_status";
/// The name of the tool for the mails that wait.
pub const WAITING: &str = "list_waiting_mails";
/// The name of the tool for one mail, found by its sender or subject.
pub const FIND: &str = "find_mails";
/// The name of the tool for figures with a picture.
pub const FIGURES: &str = "show_mail_figures";

/// The number of days that figures cover if none is given.
const DAYS: u32 = 30;
/// The maximum number of days that figures cover.
const MAX_DAYS: u32 = 366;
/// The maximum number of mails that figures cover.
const MAX_COUNTED: usize = 5_000;

/// The dependencies of the tools.
#[derive(Clone, Debug)]
pub(super) struct Deps {
    pub(super) book: Arc<dyn MailBook>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Returns the tools.
pub(super) fn all(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(MailStatus(deps.clone())),
        Arc::new(WaitingMails(deps.clone())),
        Arc::new(FindMails(deps.clone())),
        Arc::new(MailFigures(deps.clone())),
    ]
}

/// Returns the error of a tool that cannot read the mails.
fn unavailable(error: &BookError) -> ToolError {
    tracing::warn!(error = countersign_core::cause::chain(error), "The mails cannot be read");
    ToolError { kind: ErrorKind::Network, reply: replies::unavailable(error), transient: true }
}

/// The answer of a tool: the reply as it was when the mails were read, and data for a model.
#[derive(Serialize, Deserialize)]
struct Answer {
    reply: Reply,
}

fn reply_in(answer: &Value) -> Option<Reply> {
    serde_json::from_value::<Answer>(answer.clone()).ok().map(|answer| answer.reply)
}

/// The tool for the state of the account.
#[derive(Debug)]
struct MailStatus(Deps);

#[async_trait]
impl Tool for MailStatus {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            STATUS,
            "Returns the state of the team's email account: whether email is fetched, and how many emails wait for a person.",
        )
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }

    async fn call(&self, _: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let overview = self.0.book.overview().await.map_err(|error| unavailable(&error))?;
        Ok(json!(Answer { reply: replies::status(&overview, self.0.clock.now()) }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        reply_in(answer)
    }
}

/// The tool for the mails that wait.
#[derive(Debug)]
struct WaitingMails(Deps);

#[async_trait]
impl Tool for WaitingMails {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            WAITING,
            "Lists the emails that wait for a person, the oldest first. Only in the channel for email.",
        )
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }

    /// Returns the channel in which to ask if the reader is not known.
    async fn call(&self, _: &Value, reader: Option<&Reader>) -> Result<Value, ToolError> {
        if !reader.is_some_and(|reader| may_read(&*self.0.book, reader)) {
            return Ok(json!(Answer { reply: replies::elsewhere(self.0.book.channel()) }));
        }
        let mut found = self.0.book.waiting(MAX_LISTED + 1).await.map_err(|error| unavailable(&error))?;
        let more = found.len() > MAX_LISTED;
        found.truncate(MAX_LISTED);
        Ok(json!(Answer { reply: replies::waiting(&found, more, self.0.clock.now()) }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        reply_in(answer)
    }
}

/// The tool for one mail, found by its sender or subject.
#[derive(Debug)]
struct FindMails(Deps);

/// The parameters of a search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sought {
    /// The name or address of the sender, words of the subject, or the ID of the email.
    words: String,
}

#[async_trait]
impl Tool for FindMails {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            FIND,
            "Finds emails by sender or subject, and shows what became of them. Only in the channel for email.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Sought>()
    }

    /// Returns the channel in which to ask if the reader is not known.
    async fn call(&self, arguments: &Value, reader: Option<&Reader>) -> Result<Value, ToolError> {
        if !reader.is_some_and(|reader| may_read(&*self.0.book, reader)) {
            return Ok(json!(Answer { reply: replies::elsewhere(self.0.book.channel()) }));
        }
        let Sought { words } = parameters(arguments).map_err(refused)?;
        let reply = commands::show(&*self.0.book, &words, self.0.clock.now()).await;
        Ok(json!(Answer { reply: reply.map_err(|error| unavailable(&error))? }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        reply_in(answer)
    }
}

/// The tool for figures with a picture.
#[derive(Debug)]
struct MailFigures(Deps);

/// The parameters of the figures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The subject: `times` until an answer, or `classes` of mails.
    #[serde(default)]
    about: About,
    /// The number of days until today. Default: 30.
    #[serde(default)]
    days: Option<u32>,
}

/// The subject of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum About {
    #[default]
    Times,
    Classes,
}

/// Figures with their period and subject.
#[derive(Serialize, Deserialize)]
struct Shown {
    about: String,
    days: u32,
    figures: Figures,
}

#[async_trait]
impl Tool for MailFigures {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            FIGURES,
            "Shows how fast the team answers email, or which classes of email it gets, as figures with a picture.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Wanted>()
    }

    async fn call(&self, arguments: &Value, _: Option<&Reader>) -> Result<Value, ToolError> {
        let wanted: Wanted = parameters(arguments).map_err(refused)?;
        let days = wanted.days.unwrap_or(DAYS).clamp(1, MAX_DAYS);
        let period = Duration::from_secs(u64::from(days) * 86_400);
        let since = countersign_core::clock::Timestamp(self.0.clock.now().millis() - period.as_millis() as i64);
        let found = self.0.book.since(since, MAX_COUNTED).await.map_err(|error| unavailable(&error))?;
        let about = match wanted.about {
            About::Times => "times",
            About::Classes => "classes",
        };
        Ok(json!(Shown { about: about.to_owned(), days, figures: Figures::of(&found) }))
    }

    fn present(&self, _: &Value, answer: &Value) -> Option<Reply> {
        let Shown { about, days, figures } = serde_json::from_value(answer.clone()).ok()?;
        let chart = if about == "classes" { Chart::Classes } else { Chart::Times };
        Some(replies::figures(&figures, days, chart))
    }
}

/// Returns the error for parameters that cannot be used.
fn refused(error: PrepareError) -> ToolError {
    let (kind, reply) = match error {
        PrepareError::Refusal(Refusal::Refused { error, reply }) | PrepareError::Unavailable { error, reply } => {
            (error, reply)
        }
        PrepareError::Refusal(Refusal::Missing(_)) | PrepareError::Answered { .. } => {
            let offer = "I can show how fast we answer email, or what kinds of email arrive.";
            (ErrorKind::Validation, Reply::text(offer))
        }
    };
    ToolError { kind, reply, transient: false }
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::ManualClock;

    use super::*;
    use crate::testing::{FixedBook, ana_in, answered, entry};

    fn deps(book: FixedBook) -> Deps {
        Deps { book: Arc::new(book), clock: Arc::new(ManualClock::default()) }
    }

    #[tokio::test]
    async fn waiting_mails_are_listed_in_their_channel_only() {
        let tool = WaitingMails(deps(FixedBook::new(vec![entry("m1", crate::book::MailStatus::NeedsReview)])));
        let mut said = Vec::new();
        for channel in ["C5", "C1"] {
            let answer = tool.call(&json!({}), Some(&ana_in(channel))).await.unwrap();
            said.push(tool.present(&json!({}), &answer).unwrap().words());
        }
        assert!(said[0].contains("Prices for 20 seats"), "{said:?}");
        assert_eq!(said[1], "I only show email in #C5. Ask me there.");
    }

    #[tokio::test]
    async fn mails_are_found_in_their_channel_only() {
        let tool = FindMails(deps(FixedBook::new(vec![entry("m1", crate::book::MailStatus::NeedsReview)])));
        let arguments = json!({ "words": "ada" });
        let mut said = Vec::new();
        for channel in ["C5", "C1"] {
            let answer = tool.call(&arguments, Some(&ana_in(channel))).await.unwrap();
            said.push(tool.present(&arguments, &answer).unwrap().words());
        }
        assert!(said[0].contains("State: waiting for review"), "{said:?}");
        assert_eq!(said[1], "I only show email in #C5. Ask me there.");
    }

    #[tokio::test]
    async fn figures_have_a_picture_and_name_nobody() {
        let tool = MailFigures(deps(FixedBook::new(vec![answered("m1", Duration::from_secs(60), false)])));
        let arguments = json!({ "about": "classes", "days": 100_000 });
        let answer = tool.call(&arguments, None).await.unwrap();
        assert!(!answer.to_string().contains("Ada"), "{answer}");
        let reply = tool.present(&arguments, &answer).unwrap();
        assert!(reply.words().starts_with("In the last 366 days"), "{}", reply.words());
        assert_eq!(reply.files.len(), 1);
        let refused = tool.call(&json!({ "about": "weather" }), None).await.unwrap_err();
        assert!(!refused.transient && !refused.reply.words().is_empty());
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_may_be_asked_again() {
        let tool = MailStatus(deps(FixedBook { is_broken: true, ..FixedBook::new(Vec::new()) }));
        let error = tool.call(&json!({}), None).await.unwrap_err();
        assert!(error.transient, "{error:?}");
    }
}
