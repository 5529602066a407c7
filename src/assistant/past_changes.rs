//! Answers about past changes: from the log of the thread, or else from the records of the store, which also cover the
//! other threads of the conversation. In a direct message those are the person's own requests.

use std::{cmp::Reverse, sync::Arc};

use countersign_capabilities::{
    History, Registry,
    dates::{
        self,
        period::{self, Period},
    },
};
use countersign_core::{
    clock::Timestamp,
    reply::{Part, Reply, Span, Text},
};
use countersign_graph::action::{ActionRecord, Label, Reader, Status, asked_by};
use countersign_understanding::lexicon::Mention;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    log::{Log, decided_by},
    outcomes,
};

/// The maximum number of requests that are read.
const MAX_READ: usize = 200;

/// The maximum number of changes that are listed.
const MAX_LISTED: usize = 10;

/// Words of a question that need not occur in the record of a change.
const SMALL: [&str; 9] = ["the", "a", "an", "of", "to", "for", "on", "about", "in"];

/// Returns the schema of the arguments.
pub(super) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "when": { "type": "string", "description": "Such as today, yesterday, this week, lately, since 2026-11-01." },
            "subject": { "type": "string", "description": "What it is about, such as a name." },
            "outcome": {
                "type": "string",
                "enum": ["done", "rejected", "waiting", "any"],
                "description": "`done` unless given.",
            },
            "where": { "type": "string", "enum": ["channel"], "description": "If not only this thread is meant." },
        },
        "additionalProperties": false,
    })
}

/// The arguments.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    when: Option<String>,
    subject: Option<String>,
    outcome: Option<Wanted>,
    #[serde(rename = "where")]
    place: Option<String>,
}

/// The outcome that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Done,
    Rejected,
    Waiting,
    Any,
}

impl Wanted {
    fn includes(self, status: Status) -> bool {
        match self {
            Self::Done => status.has_outcome(),
            Self::Rejected => status == Status::Rejected,
            Self::Waiting => matches!(status, Status::Pending | Status::Approved | Status::Intent),
            Self::Any => !matches!(status, Status::Proposed | Status::Superseded),
        }
    }

    /// Returns the words for “none of these”.
    fn none(self) -> &'static str {
        match self {
            Self::Done => "No changes",
            Self::Rejected => "No rejected requests",
            Self::Waiting => "No requests in progress",
            Self::Any => "No requests",
        }
    }
}

/// The answer of the records.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Found {
    /// The lines about this thread, newest first.
    here: Vec<Line>,
    /// The lines about the other threads, newest first.
    elsewhere: Vec<Line>,
    /// The other threads in words.
    place: String,
    /// The sentences about what was read; `None` if the store did not answer.
    looked: Option<String>,
    /// True if the subject is the name of an existing thing.
    is_known: bool,
}

/// A line about a request, for people and for models.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    text: Text,
    words: String,
}

/// A search of the records.
pub(super) struct Search {
    history: Arc<dyn History>,
    arguments: Arguments,
    period: Option<Period>,
    names: Vec<Mention>,
}

impl Search {
    /// Creates the search that answers a question; `None` if the log of the thread answers it, or there is no store.
    ///
    /// # Errors
    ///
    /// If the period cannot be read.
    pub(super) fn of(
        arguments: &Value,
        log: &Log,
        registry: &Registry,
        now: Timestamp,
        zone: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let arguments: Arguments = serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())?;
        let Some(history) = registry.history.clone().filter(|_| !is_in_log(&arguments, log)) else { return Ok(None) };
        let today = dates::day_in(now, &dates::time_zone(zone));
        let read = |when: &String| period::parse(when, today).ok_or_else(|| format!("“{when}” is no period of time"));
        let period = arguments.when.as_ref().map(read).transpose()?;
        let mut names = arguments.subject.as_deref().map(|subject| registry.names_in(subject)).unwrap_or_default();
        names.retain(|name| name.subject);
        Ok(Some(Self { history, arguments, period, names }))
    }

    /// Reads the records that this person may see here.
    pub(super) async fn run(self, reader: &Reader) -> Value {
        json!(self.find(reader).await)
    }

    async fn find(&self, reader: &Reader) -> Found {
        let (place, labels) = match (reader.alone, &reader.by) {
            (false, _) => {
                let here = Label::Within(reader.team.clone(), reader.channel.clone());
                ("the other threads of this channel", vec![here])
            }
            (true, by) => ("your requests in other threads", by.iter().cloned().map(Label::AskedBy).collect()),
        };
        let found = Found { place: place.to_owned(), is_known: !self.names.is_empty(), ..Found::default() };
        let Some(mut records) = self.history.under(&labels, MAX_READ).await else { return found };
        let zone = dates::time_zone(reader.zone.as_deref());
        let is_cut = records.len() >= MAX_READ;
        records.retain(|record| {
            let is_then = |period: Period| period.has(dates::day_in(ended_at(record), &zone));
            record.thread.team == reader.team && self.period.is_none_or(is_then)
        });
        let mut records = self.about_subject(records);
        let wanted = self.arguments.outcome;
        let is_wanted = |record: &ActionRecord| wanted.unwrap_or(Wanted::Done).includes(record.status);
        // “Who approved X?” is also answered by “X was rejected”.
        let is_any = wanted.is_none() && self.arguments.subject.is_some() && !records.iter().any(is_wanted);
        records.retain(|record| if is_any { Wanted::Any.includes(record.status) } else { is_wanted(record) });
        let is_here = |record: &ActionRecord| reader.thread.as_ref() == Some(&record.thread);
        records.sort_by_key(|record| (!is_here(record), Reverse(ended_at(record))));
        let looked = Some(self.looked(place, is_cut, records.len().saturating_sub(MAX_LISTED)));
        records.truncate(MAX_LISTED);
        let cards = join_all(records.iter().map(|record| self.history.address(record))).await;
        let lines = records.iter().zip(cards).map(|(record, card)| {
            let text = line(record, card);
            (is_here(record), Line { words: text.words(), text })
        });
        let (here, elsewhere): (Vec<_>, Vec<_>) = lines.partition(|(is_here, _)| *is_here);
        let lines = |found: Vec<(bool, Line)>| found.into_iter().map(|(_, line)| line).collect();
        Found { here: lines(here), elsewhere: lines(elsewhere), looked, ..found }
    }

    /// Returns the sentences about what was read.
    fn looked(&self, place: &str, is_cut: bool, others: usize) -> String {
        let days = match self.period {
            None => String::new(),
            Some(Period { from, to }) if from == to => format!(", {from}"),
            Some(Period { from, to }) => format!(", {from} to {to}"),
        };
        let mut looked = format!(
            "I looked in this thread and {place}{days}. Threads that were removed from the store aren't included."
        );
        if is_cut {
            looked.push_str(&format!(" Only the {MAX_READ} newest requests were read."));
        }
        if others > 0 {
            looked.push_str(&format!(" {others} older ones aren't shown."));
        }
        looked
    }

    /// Returns the records about the subject. If other words of the question, such as a verb, are in some of them, only
    /// those are meant.
    fn about_subject(&self, records: Vec<ActionRecord>) -> Vec<ActionRecord> {
        let Some(subject) = &self.arguments.subject else { return records };
        let subject = subject.to_lowercase();
        let other = self.names.iter().fold(subject, |words, name| words.replace(&name.said.to_lowercase(), " "));
        let other =
            other.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && !SMALL.contains(word));
        let other: Vec<&str> = other.collect();
        let is_named = |record: &ActionRecord, name: &str| {
            let in_quotes = format!("“{}”", name.to_lowercase());
            record.scope.subjects.iter().any(|subject| subject.eq_ignore_ascii_case(name))
                || words_of(record).contains(&in_quotes)
        };
        let has_words = |record: &ActionRecord| {
            let words = words_of(record);
            other.iter().all(|word| words.contains(word))
        };
        let mut named = records;
        named.retain(|record| self.names.iter().all(|name| is_named(record, &name.name)));
        match named.iter().any(has_words) {
            true => named.into_iter().filter(has_words).collect(),
            false if self.names.is_empty() => Vec::new(),
            false => named,
        }
    }
}

/// Returns true if the log of the thread answers the question.
fn is_in_log(arguments: &Arguments, log: &Log) -> bool {
    let Arguments { when: None, subject: None, place: None, outcome } = arguments else { return false };
    let ends_rejected = log.entries.last().is_some_and(|last| last.status == Status::Rejected);
    match outcome {
        None | Some(Wanted::Done | Wanted::Any) => ends_rejected || log.carried_out().next().is_some(),
        Some(Wanted::Rejected) => ends_rejected,
        Some(Wanted::Waiting) => false,
    }
}

/// Returns the time at which a request ended, as far as its record tells.
fn ended_at(record: &ActionRecord) -> Timestamp {
    let settled = record.settled.as_ref().map(|settled| settled.at);
    let decided = record.decisions.last().map(|last| last.at);
    [settled, decided, record.intent_at].into_iter().flatten().max().unwrap_or(record.requested_at)
}

/// Returns the words of a record that a question may use, in lower case.
fn words_of(record: &ActionRecord) -> String {
    let named = [&*record.scope.subjects, &record.scope.contexts].concat().join(" ");
    format!("{} {} {named}", record.act(), record.card.done).to_lowercase()
}

/// Returns the line of a request, with the address of its card. Nobody in it is notified.
fn line(record: &ActionRecord, card: Option<String>) -> Text {
    let what = match record.status {
        Status::Pending => Text::from(format!("{}: waiting for a decision", record.act())),
        _ => outcomes::log_line(record),
    };
    let quiet = what.0.into_iter().map(|span| match span {
        Span::Person(person) => Span::Name(person),
        other => other,
    });
    let line = Text::from(outcomes::mark(record.status, record.cut_short)).join(Text(quiet.collect()));
    let asked = format!(" · {}", asked_by(record.is_suggested()));
    let line = line.plain(" · ").moment(ended_at(record)).plain(asked).name(record.requested_by.clone());
    let people: Vec<Text> = decided_by(record).into_iter().map(|person| Text::new().name(person)).collect();
    let line = match (record.status, people.is_empty()) {
        (_, true) => line,
        (Status::Rejected, false) => line.plain(", rejected by ").join(Text::listed(people, "and")),
        (_, false) => line.plain(", approved by ").join(Text::listed(people, "and")),
    };
    match card {
        Some(url) => line.plain(" · ").link(url, "open the card"),
        None => line,
    }
}

/// Returns the answer to a question about past changes.
pub(super) fn reply(registry: &Registry, log: &Log, arguments: &Value, value: &Value) -> Reply {
    let found = serde_json::from_value::<Found>(value.clone()).unwrap_or_default();
    let Found { here, elsewhere, place, looked, is_known } = found;
    let Some(looked) = looked else {
        let reply = outcomes::accomplished(registry, log);
        return match place.as_str() {
            "" => reply, // the log of the thread is the answer
            _ => reply.hint(format!("I couldn't read {place} in time, so this is about this thread only. Ask again.")),
        };
    };
    let arguments: Arguments = serde_json::from_value(arguments.clone()).unwrap_or_default();
    let when = arguments.when.as_ref().map(|when| format!(" ({when})")).unwrap_or_default();
    let about = arguments.subject.as_ref().map(|subject| format!(" about “{subject}”")).unwrap_or_default();
    let is_plain = when.is_empty() && about.is_empty() && arguments.outcome.is_none();
    let list = |lines: Vec<Line>| Part::List(lines.into_iter().map(|line| line.text).collect());
    let nothing = if is_plain { "Nothing has been changed in this thread yet" } else { "" };
    let reply = match (here.is_empty(), elsewhere.is_empty()) {
        (true, true) if is_plain => {
            Reply::text(format!("{nothing}, nor in {place}.")).choices(registry.suggestions().next())
        }
        (true, true) => {
            let none = arguments.outcome.unwrap_or(Wanted::Done).none();
            let none = Reply::text(format!("{none}{about} in this thread or in {place}{when}."));
            match !is_known && !about.is_empty() && !log.entries.is_empty() {
                true => outcomes::accomplished(registry, log).parts.into_iter().fold(none, Reply::and),
                false => none,
            }
        }
        (true, false) if is_plain => Reply::text(format!("{nothing}. In {place}:")).and(list(elsewhere)),
        (true, false) => Reply::text(format!("In {place}{when}:")).and(list(elsewhere)),
        (false, true) => Reply::text(format!("In this thread{when}:")).and(list(here)),
        (false, false) => {
            let first = Reply::text(format!("In this thread{when}:")).and(list(here));
            first.and(Part::Text(format!("In {place}{when}:").into())).and(list(elsewhere))
        }
    };
    reply.hint(looked)
}

#[cfg(test)]
mod tests;
