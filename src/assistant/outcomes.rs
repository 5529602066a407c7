//! Replies about the outcome of an action, and the list of changes made in a thread.

use countersign_capabilities::Registry;
use countersign_core::{
    ids::UserId,
    reply::{Part, Reply, Span, Text, WHAT_NEXT},
};
use countersign_graph::action::{ActionRecord, Decision, Outcome, Status, Verdict};
use serde_json::{Value, json};

use super::log::{Log, LogEntry};

/// The maximum number of entries listed.
const MAX_LISTED: usize = 15;

/// Returns the reply about the outcome of an action, with buttons for the next steps.
pub fn outcome(registry: &Registry, record: &ActionRecord) -> Reply {
    let reply = outcome_reply(record);
    let steps = registry.owner_of(&record.name).map(|capability| capability.next_steps(record)).unwrap_or_default();
    steps.into_iter().fold(reply, |reply, step| reply.choice(step.label, step.says))
}

/// Returns the reply about the outcome of an action, without next steps.
fn outcome_reply(record: &ActionRecord) -> Reply {
    let requester = || Text::new().person(record.requested_by.clone()).plain(" ");
    match record.status {
        Status::Done => Reply::text(requester().join(done_text(record))),
        Status::Failed => {
            let several = record.scope.subjects.len() > 1;
            let summary = summary(record);
            let words = match several {
                true if worked_for_some(&summary) => " worked only for some of them. ",
                true => " failed for all of them. ",
                false => " didn't work. ",
            };
            let text = everyone(record).bold(record.act()).plain(words);
            Reply::text(text.join(summary))
        }
        Status::Unknown => {
            Reply::text(everyone(record).join(summary(record))).hint("I won't send it again unless someone asks.")
        }
        Status::Settled => Reply::text(requester().bold(record.act()).plain(": ").join(summary(record))),
        Status::Rejected => rejected(record),
        Status::Expired => {
            let text = match record.approvals_so_far() {
                None => requester().plain("no one decided in time about ").bold(record.act()),
                Some((count, who)) => {
                    let text =
                        requester().plain(format!("{count} had approved ")).bold(record.act()).plain(" (").join(who);
                    text.plain(") when it expired")
                }
            };
            let text = text.plain(", so nothing was changed.");
            Reply::text(text).choice("Ask again", format!("try again: {}", record.act()))
        }
        Status::Cancelled => {
            let text = requester().bold(record.act());
            let text = match record.decisions.last().and_then(|last| last.by.clone()) {
                Some(by) if record.was_closed_by_another() => text.plain(" was closed by ").person(by),
                _ => text.plain(" was withdrawn"),
            };
            Reply::text(text.plain(", so nothing was changed."))
        }
        Status::Superseded => {
            Reply::text(requester().bold(record.act()).plain(" was replaced by a newer request. It changed nothing."))
        }
        Status::Proposed | Status::Pending | Status::Approved | Status::Intent => {
            Reply::text(requester().bold(record.act()).plain(" is still in progress."))
        }
    }
}

/// Adds the question “What next?” to the reply about the outcome of an action, if the outcome is no more than that it is
/// done. The question stands below the figures that the action has added.
pub fn with_question(registry: &Registry, record: &ActionRecord, mut reply: Reply) -> Reply {
    let is_only_done = record.status == Status::Done && summary(record).words() == record.card.done;
    if !is_only_done || subject(registry, record).is_none() {
        return reply;
    }
    match reply.parts.as_mut_slice() {
        [Part::Text(text)] => *text = std::mem::take(text).plain(format!(" {WHAT_NEXT}")),
        _ => reply = reply.and(Part::Text(Text::from(WHAT_NEXT))),
    }
    reply
}

/// Returns the reply that one of several requests is done. The button to undo it is on the card.
pub fn done_so_far(record: &ActionRecord) -> Reply {
    let requester = Text::new().person(record.requested_by.clone()).plain(" ");
    Reply::text(requester.join(done_text(record)))
}

/// Mentions the person who asked and the people who approved, each once: all of them need to know that it failed.
fn everyone(record: &ActionRecord) -> Text {
    everyone_and(&record.requested_by, record)
}

/// Mentions `by`, who asked to check again, then the person who asked for the action and the people who approved it.
pub fn everyone_and(by: &UserId, record: &ActionRecord) -> Text {
    let mut everyone = vec![by.clone()];
    for person in std::iter::once(record.requested_by.clone()).chain(record.approved_by()) {
        if !everyone.contains(&person) {
            everyone.push(person);
        }
    }
    people(Text::new(), "", &everyone).plain(" ")
}

/// Returns the text that an action is done, with the people who approved it.
fn done_text(record: &ActionRecord) -> Text {
    let summary = summary(record);
    match approved_by_others(record) {
        Some(others) => summary.plain(" Approved by ").join(others).plain("."),
        None => summary,
    }
}

/// Returns the names of the people who approved, without notifying them again. Returns `None` if only the requester
/// approved, or under a standing approval: then nobody pressed Approve, and the card names the standing approval.
fn approved_by_others(record: &ActionRecord) -> Option<Text> {
    let people = record.approved_by();
    if record.under.is_some() || people.iter().all(|person| *person == record.requested_by) {
        return None;
    }
    Some(Text::listed(people.into_iter().map(|person| Text::new().name(person)), "and"))
}

/// Returns true if the summary of a failure begins with a non-zero number of successes, as in “1 of 2: …”.
fn worked_for_some(summary: &Text) -> bool {
    summary.words().split_once(" of ").is_some_and(|(count, _)| count.parse::<u64>().is_ok_and(|count| count > 0))
}

fn rejected(record: &ActionRecord) -> Reply {
    let rejection = record.decisions.iter().rev().find_map(|decision| match decision {
        Decision { by: Some(by), verdict: Verdict::Rejected { .. }, .. } => Some(by),
        _ => None,
    });
    let asked_by = &record.requested_by;
    let Some(by) = rejection else {
        return Reply::text(Text::new().person(asked_by.clone()).plain(" this was rejected, so nothing was changed."));
    };
    let text = match by == asked_by {
        true => Text::new().plain("OK, nothing was changed."),
        false => Text::new()
            .person(asked_by.clone())
            .plain(", ")
            .person(by.clone())
            .plain(" rejected this, so nothing was changed."),
    };
    // A reason is told by the answer that follows, with what it leads to.
    match by != asked_by && record.card.editable {
        true => Reply::text(text).hint(
            Text::from("To ask for something else, press ")
                .bold("Change and ask again…")
                .plain(" on the card, or tell me here."),
        ),
        false => Reply::text(text),
    }
}

/// Returns the reason that was given for the rejection, verbatim.
pub fn reason_of(record: &ActionRecord) -> Option<&str> {
    record.decisions.iter().rev().find_map(|decision| match decision {
        Decision { verdict: Verdict::Rejected { reason: Some(reason) }, .. } => Some(reason.as_str()),
        _ => None,
    })
}

/// Returns the action's own summary of its outcome, or the default one of its card.
pub fn summary(record: &ActionRecord) -> Text {
    match &record.outcome {
        Some(outcome) => outcome.summary().clone(),
        None => Text::from(record.card.done.as_str()),
    }
}

/// Returns a one-line summary of an action for the log.
pub fn log_line(record: &ActionRecord) -> Text {
    let ended = |words: &str| Text::new().plain(record.act()).plain(words.to_owned());
    let line = match record.status {
        Status::Done | Status::Unknown => summary(record),
        Status::Failed | Status::Settled => Text::new().plain(record.act()).plain(": ").join(summary(record)),
        Status::Rejected => ended(": rejected"),
        Status::Expired => match record.approvals_so_far() {
            None => ended(": no one decided in time"),
            Some((count, _)) => ended(&format!(": expired with {count} approvals")),
        },
        Status::Cancelled if record.was_closed_by_another() => ended(": closed by “stop”"),
        Status::Cancelled => ended(": withdrawn"),
        Status::Superseded => ended(": replaced by a newer request"),
        Status::Proposed | Status::Pending | Status::Approved | Status::Intent => ended(": in progress"),
    };
    people(line, " · edited before the decision by ", &record.edited_by())
}

/// Returns the name of the thing that an action is about, which later messages may call “it”.
pub fn subject(registry: &Registry, record: &ActionRecord) -> Option<String> {
    let result = match &record.outcome {
        Some(Outcome::Done { result, .. }) => result,
        _ => &Value::Null,
    };
    registry.subject(&record.name, &record.parameters, result)
}

/// Lists the changes made in this thread, each with its time, its requester and the people who approved it.
pub fn accomplished(registry: &Registry, log: &Log) -> Reply {
    let done: Vec<_> = log.carried_out().collect();
    if done.is_empty() {
        let first = registry.suggestions().next();
        let nothing = Reply::text("Nothing has been changed in this thread yet.");
        return match log.entries.last().filter(|last| last.status == Status::Rejected) {
            Some(last) => nothing.and(Part::List(vec![turned_down(last)])),
            None => nothing.choices(first),
        };
    }
    let older = done.len().saturating_sub(MAX_LISTED) as u64 + log.earlier;
    let points = done.iter().rev().take(MAX_LISTED).rev().map(|entry| {
        let mut point =
            Text::from(mark(entry.status, entry.cut_short)).join(entry.what.clone()).plain(" · ").moment(entry.at);
        point = people(point, entry.asked_by(), std::slice::from_ref(&entry.requested_by));
        people(point, ", approved by ", &entry.decided_by)
    });
    // The change that was rejected last is also named, with the person.
    let rejected = log.entries.last().filter(|last| last.status == Status::Rejected).map(turned_down);
    let points = points.chain(rejected);
    let heading = match done.len() {
        1 => "1 change in this thread:".to_owned(),
        n => format!("{n} changes in this thread:"),
    };
    let reply = Reply::text(heading).and(Part::List(points.collect()));
    match older {
        0 => reply,
        older => reply.hint(format!("{older} older entries are not shown.")),
    }
}

/// Returns the mark at the beginning of the line of a request with this status.
pub(super) fn mark(status: Status, cut_short: bool) -> &'static str {
    match status {
        Status::Done if cut_short => "⏹ ",
        Status::Done => "✅ ",
        Status::Failed => "❌ ",
        Status::Rejected => "🚫 ",
        Status::Pending | Status::Approved | Status::Intent => "⏳ ",
        _ => "❔ ",
    }
}

/// Returns the line of a change that was turned down: `Start “Math Hints”: rejected · … · by Bo`.
fn turned_down(entry: &LogEntry) -> Text {
    let line = Text::from(mark(entry.status, false)).join(entry.what.clone()).plain(" · ").moment(entry.at);
    let line = people(line, entry.asked_by(), std::slice::from_ref(&entry.requested_by));
    people(line, ", rejected by ", &entry.decided_by)
}

/// Appends `before` and mentions of the people, if there are any.
fn people(text: Text, before: &str, people: &[UserId]) -> Text {
    if people.is_empty() {
        return text;
    }
    let mut text = text.plain(before);
    for (i, person) in people.iter().enumerate() {
        if i > 0 {
            text.0.push(Span::Plain(", ".to_owned()));
        }
        text.0.push(Span::Person(person.clone()));
    }
    text
}

/// Returns the newest entries of the log as JSON for a model.
pub fn log_as_data(log: &Log) -> Value {
    let entries: Vec<Value> = log
        .entries
        .iter()
        .rev()
        .take(MAX_LISTED)
        .rev()
        .map(|entry| {
            json!({
                "at": entry.at.to_string(),
                "what": entry.what.words(),
                "status": entry.status,
                (if entry.is_suggested { "suggested_while_answering" } else { "asked_by" }): entry.requested_by,
                "decided_by": entry.decided_by,
            })
        })
        .collect();
    json!({ "older_entries": log.earlier, "entries": entries })
}
