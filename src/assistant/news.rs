//! What the assistant makes of news about an action that was decided: it remembers, and says what is there to be said.

use super::{outcomes, state::AgentState};
use crate::{
    clock::Timestamp,
    graph::{
        action::{ActionRecord, Decision, Status, Verdict},
        store::News,
    },
    ids::UserId,
    model::rules::situation::Draft,
    reply::{Part, Reply, Text},
};

/// Remembers the news, and words them.
pub(super) fn heard(state: &mut AgentState, record: &ActionRecord, news: News, by: &UserId, now: Timestamp) -> Reply {
    state.context.outdated();
    state.log.add(record, outcomes::log_line(record), now);
    let reply = match news {
        News::Explained => {
            // What should be different can now be said in words, as for an open card.
            if let serde_json::Value::Object(params) = record.parameters.clone() {
                state.on_card = Some(Draft { action: record.name.clone(), params, asked: None });
                state.on_card_turn = state.turn.number;
            }
            explained(record, by)
        }
        News::CheckAgain => checked(record, by),
        News::Settled => settled(record, by),
    };
    state.conversation.bot_said(state.turn.number, &reply.words());
    reply
}

/// The reason of a rejection. What can be done about a card that has a form was said when it was turned down.
fn explained(record: &ActionRecord, by: &UserId) -> Reply {
    let reason = reason_of(record).unwrap_or_default();
    let text = Text::new().person(record.requested_by.clone()).plain(", ").person(by.clone());
    let reply = Reply::text(text.plain(" says why this was turned down: ").bold(record.act()))
        .and(Part::Text(Text::new().italic(reason)));
    match record.card.editable {
        true => reply,
        false => reply.hint("Tell me here what to do instead, if anything."),
    }
}

/// What a second look showed.
fn checked(record: &ActionRecord, by: &UserId) -> Reply {
    let to = Text::new().person(by.clone()).plain(" ");
    let about = || Text::new().bold(record.act()).plain(": ");
    let told = record.outcome.as_ref().map(|outcome| outcome.summary().clone()).unwrap_or_default();
    match record.status {
        Status::Done => Reply::text(to.plain("I looked again, and it happened. ").join(about()).join(told)),
        Status::Unknown => {
            Reply::text(to.join(about()).plain("I looked again, and it still cannot be told. ").join(told))
                .hint("Please look at the platform itself, then press Mark as done or Abandon on the card.")
        }
        _ => Reply::text(to.join(about()).join(told)),
    }
}

/// Somebody has looked and said how it ended.
fn settled(record: &ActionRecord, by: &UserId) -> Reply {
    let text = Text::new().person(by.clone()).plain(" settled ").bold(record.act());
    Reply::text(match record.status {
        Status::Done => text.plain(": it is marked as done."),
        _ => text.plain(": it is given up. I will not try it again by myself."),
    })
}

/// Why it was rejected, in the person's words.
fn reason_of(record: &ActionRecord) -> Option<&str> {
    record.decisions.iter().rev().find_map(|decision| match decision {
        Decision { verdict: Verdict::Rejected { reason: Some(reason) }, .. } => Some(reason.as_str()),
        _ => None,
    })
}
