//! The tools, which read the team's mail.

use std::{sync::Arc, time::Duration};

use countersign_capabilities::{
    Tool, ToolError, ToolInfo,
    rows::{Call, Nothing, Read},
};
use countersign_core::{
    clock::{Clock, Timestamp},
    reply::Reply,
};
use countersign_graph::action::{ErrorKind, Reader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    commands::{self, MAX_LISTED, name_in},
    figures::Figures,
    mail_list::{Entry, MailList, MailListError, may_read},
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

/// The maximum number of waiting mails among which those of a sender or class are looked for.
const MAX_NARROWED: usize = 500;

/// The dependencies of the tools.
#[derive(Clone, Debug)]
pub(super) struct Deps {
    pub(super) book: Arc<dyn MailList>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Returns the tools.
pub(super) fn all(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    vec![status(deps), waiting(deps), find(deps), figures(deps)]
}

impl From<MailListError> for ToolError {
    /// The mails cannot be read.
    fn from(error: MailListError) -> Self {
        tracing::warn!(error = countersign_core::cause::chain(&error), "The mails cannot be read");
        Self { kind: ErrorKind::Network, reply: replies::unavailable(&error), transient: true }
    }
}

/// The answer of a tool: the reply as it was when the mails were read, and data for a model.
#[derive(Serialize, Deserialize)]
struct Answer {
    reply: Reply,
}

fn reply_in(answer: &Value) -> Option<Reply> {
    serde_json::from_value::<Answer>(answer.clone()).ok().map(|answer| answer.reply)
}

/// Returns a tool that answers with a reply.
fn row<A>(deps: &Deps, info: ToolInfo, call: Call<Deps, A>) -> Arc<dyn Tool>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
{
    Arc::new(Read { present: |_, _, answer| reply_in(answer), ..Read::new(deps.clone(), info, call) })
}

/// Returns the channel in which to ask, if the reader may not read mails here or is not known.
fn elsewhere(deps: &Deps, reader: Option<&Reader>) -> Option<Value> {
    let may_read = reader.is_some_and(|reader| may_read(&*deps.book, reader));
    (!may_read).then(|| json!(Answer { reply: replies::elsewhere(deps.book.channel()) }))
}

/// The tool for the state of the account.
fn status(deps: &Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        STATUS,
        "Returns the state of the team's email account: whether email is fetched, and how many emails wait for a person.",
    );
    row(deps, info, |deps, _: Nothing, _| {
        Box::pin(async move {
            let overview = deps.book.overview().await?;
            Ok(json!(Answer { reply: replies::status(&overview, deps.clock.now()) }))
        })
    })
}

/// The mails that a list is about.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Narrowed {
    /// The name or address of the sender, if only their emails are asked for.
    #[serde(default)]
    from: Option<String>,
    /// The class, such as `complaint`, `meeting_request` or `spam`, if only those are asked for.
    #[serde(default)]
    class: Option<String>,
}

/// The tool for the mails that wait.
fn waiting(deps: &Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        WAITING,
        "Lists the emails that wait for a person, the oldest first; those of one sender or class, or all if there are none. \
         Only in the channel for email.",
    );
    row(deps, info, |deps, Narrowed { from, class }: Narrowed, reader| {
        Box::pin(async move {
            if let Some(answer) = elsewhere(deps, reader) {
                return Ok(answer);
            }
            let (from, now) = (from.as_deref().map(name_in), deps.clock.now());
            let all = deps.book.waiting(MAX_NARROWED).await?;
            let list = |found: &[Entry]| {
                replies::waiting(&found[..found.len().min(MAX_LISTED)], found.len() > MAX_LISTED, now)
            };
            let wanted = match (from, class.as_deref()) {
                (None, None) => return Ok(json!(Answer { reply: list(&all) })),
                (Some(from), _) => format!("from “{from}”"),
                (None, Some(class)) => format!("classified as {}", replies::class_name(class)),
            };
            let is_wanted = |entry: &&Entry| {
                from.is_none_or(|from| entry.is_from(from)) && (class.is_none() || entry.class == class)
            };
            let found: Vec<Entry> = all.iter().filter(is_wanted).cloned().collect();
            let reply = if found.is_empty() { replies::none_waiting(&wanted, list(&all)) } else { list(&found) };
            Ok(json!(Answer { reply }))
        })
    })
}

/// The parameters of a search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sought {
    /// The name or address of the sender, words of the subject, or the ID of the email.
    words: String,
}

/// The tool for one mail, found by its sender or subject.
fn find(deps: &Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        FIND,
        "Finds emails by sender or subject, and shows what became of them. Only in the channel for email.",
    );
    row(deps, info, |deps, Sought { words }, reader| {
        Box::pin(async move {
            if let Some(answer) = elsewhere(deps, reader) {
                return Ok(answer);
            }
            Ok(json!(Answer { reply: commands::show(&*deps.book, &words, deps.clock.now()).await? }))
        })
    })
}

/// The parameters of the figures.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The subject: `times` until an answer, `classes` of mails, or `counts` of what happened.
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
    Counts,
}

/// Figures with their period and subject.
#[derive(Serialize, Deserialize)]
struct Shown {
    about: String,
    days: u32,
    figures: Figures,
}

/// The tool for figures with a picture.
fn figures(deps: &Deps) -> Arc<dyn Tool> {
    let info = ToolInfo::new(
        FIGURES,
        "Shows how fast the team answers email or which classes of email it gets, with a picture, or counts what happened.",
    );
    Arc::new(Read {
        present: |_, _, answer| {
            let Shown { about, days, figures } = serde_json::from_value(answer.clone()).ok()?;
            let chart = match about.as_str() {
                "classes" => Some(Chart::Classes),
                "counts" => None,
                _ => Some(Chart::Times),
            };
            Some(replies::figures(&figures, days, chart))
        },
        ..Read::new(deps.clone(), info, |deps, wanted: Wanted, _| {
            Box::pin(async move {
                let days = wanted.days.unwrap_or(DAYS).clamp(1, MAX_DAYS);
                let period = Duration::from_secs(u64::from(days) * 86_400);
                let since = Timestamp(deps.clock.now().millis() - period.as_millis() as i64);
                let found = deps.book.since(since, MAX_COUNTED).await?;
                let mut figures = Figures::of(&found);
                let about = match wanted.about {
                    About::Times => "times",
                    About::Classes => "classes",
                    About::Counts => {
                        // Mails that came earlier were settled in the period, or wait still.
                        figures.received = found.iter().filter(|entry| entry.received_at >= since).count();
                        figures.waiting = deps.book.overview().await?.waiting;
                        "counts"
                    }
                };
                Ok(json!(Shown { about: about.to_owned(), days, figures }))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use countersign_core::clock::ManualClock;

    use super::*;
    use crate::testing::{FixedMailList, RECEIVED, ana_in, answered, entry};

    fn deps(book: FixedMailList) -> Deps {
        Deps { book: Arc::new(book), clock: Arc::new(ManualClock::default()) }
    }

    #[tokio::test]
    async fn waiting_mails_are_listed_in_their_channel_only() {
        let tool = waiting(&deps(FixedMailList::new(vec![entry("m1", crate::mail_list::MailStatus::NeedsReview)])));
        let mut said = Vec::new();
        for channel in ["C5", "C1"] {
            let answer = tool.call(&json!({}), Some(&ana_in(channel))).await.unwrap();
            said.push(tool.present(&json!({}), &answer).unwrap().words());
        }
        assert!(said[0].contains("Prices for 20 seats"), "{said:?}");
        assert_eq!(said[1], "I only show email in #C5. Ask me there.");
    }

    #[tokio::test]
    async fn the_waiting_mails_of_a_person_or_class_come_alone_or_else_all() {
        let of = |name: &str, class: &str| Entry {
            sender_name: Some(name.to_owned()),
            sender: Some(format!("{}@customer.example", name.to_lowercase())),
            class: Some(class.to_owned()),
            ..entry(name, crate::mail_list::MailStatus::NeedsReview)
        };
        let mails = vec![of("Ada Reuben", "inquiry"), of("Ben", "complaint")];
        let tool = waiting(&deps(FixedMailList::new(mails)));
        for (arguments, begins, has_ada, has_ben) in [
            (json!({ "from": "ben?" }), "1 email is waiting for review:", false, true),
            (json!({ "from": "ben's" }), "1 email is waiting for review:", false, true),
            (json!({ "from": "bens" }), "1 email is waiting for review:", false, true),
            (json!({ "from": "chloe" }), "No waiting email is from “chloe”.\n2 emails are waiting", true, true),
            (json!({ "class": "complaint" }), "1 email is waiting for review:", false, true),
            (json!({ "class": "spam" }), "No waiting email is classified as spam.\n2 emails", true, true),
        ] {
            let answer = tool.call(&arguments, Some(&ana_in("C5"))).await.unwrap();
            let said = tool.present(&arguments, &answer).unwrap().words();
            assert!(said.starts_with(begins), "{arguments}: {said}");
            assert_eq!((said.contains("Ada"), said.contains("Ben:")), (has_ada, has_ben), "{arguments}: {said}");
        }
        let answer = tool.call(&json!({ "from": "ben" }), Some(&ana_in("C1"))).await.unwrap();
        assert_eq!(tool.present(&json!({}), &answer).unwrap().words(), "I only show email in #C5. Ask me there.");
    }

    #[tokio::test]
    async fn what_happened_is_counted_without_the_mails_that_came_before() {
        let mut mails = vec![answered("m1", Duration::from_secs(3 * 86_400), false)];
        mails.push(entry("m2", crate::mail_list::MailStatus::NeedsReview));
        let deps = deps(FixedMailList::new(mails));
        let clock = Arc::new(ManualClock::default());
        clock.advance(Duration::from_millis((RECEIVED.0 - clock.now().0) as u64 + 3 * 86_400_000 + 1));
        let tool = figures(&Deps { clock, ..deps });
        let arguments = json!({ "about": "counts", "days": 1 });
        let answer = tool.call(&arguments, None).await.unwrap();
        let said = tool.present(&arguments, &answer).unwrap().words();
        assert!(said.starts_with("In the last day, no email arrived and 1 was answered.\nReceived: 0"), "{said}");
        assert!(said.contains("Waiting: 1"), "the mail of an earlier day: {said}");
    }

    #[tokio::test]
    async fn mails_are_found_in_their_channel_only() {
        let tool = find(&deps(FixedMailList::new(vec![entry("m1", crate::mail_list::MailStatus::NeedsReview)])));
        let arguments = json!({ "words": "ada?" });
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
        let tool = figures(&deps(FixedMailList::new(vec![answered("m1", Duration::from_secs(60), false)])));
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
        let tool = status(&deps(FixedMailList { is_broken: true, ..FixedMailList::new(Vec::new()) }));
        let error = tool.call(&json!({}), None).await.unwrap_err();
        assert!(error.transient, "{error:?}");
    }
}
