//! The reaction of the chat graph to events for which no node runs, such as follow-ups of decided actions: the replies,
//! which are also added to the state.

use std::sync::Arc;

use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Part, Reply, Text},
};
use countersign_graph::{
    action::{ActionRecord, Status},
    node::Listener,
    store::ActionFollowUp,
};
use countersign_planner::{
    control::Limits,
    routing::{self, Next},
};
use countersign_understanding::{
    phrase_book::PhraseBook,
    situation::{RejectedChange, Situation},
};

use super::{outcomes, replies, state::AgentState};

/// The reaction of the chat graph to events for which no node runs.
pub(super) struct ChatListener {
    /// The phrases that are understood.
    pub(super) book: Arc<PhraseBook>,
    /// The action that shows a plan on a card.
    pub(super) plan_action: Option<&'static str>,
    /// The limits of plans.
    pub(super) limits: Limits,
}

impl ChatListener {
    /// Returns the reason for a refused plan and the decision on what follows; `None` if the action is not a plan or no
    /// reason was given.
    fn refused_plan<'a>(&self, state: &AgentState, record: &'a ActionRecord) -> Option<(&'a str, routing::Next)> {
        let is_plan = self.plan_action == Some(record.name.as_str());
        let reason = outcomes::reason_of(record).filter(|_| is_plan)?;
        Some((reason, state.after_refused_plan(reason, &self.limits)))
    }
}

impl Listener<AgentState> for ChatListener {
    fn is_meant(&self, state: &AgentState, by: &UserId, text: &str, open: &[ActionRecord]) -> bool {
        state.is_spoken_to(&self.book, by, text, open)
    }

    fn heard(
        &self,
        state: &mut AgentState,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        by: &UserId,
        now: Timestamp,
    ) -> Option<Reply> {
        let refused = match follow_up {
            ActionFollowUp::Explained => self.refused_plan(state, record),
            _ => None,
        };
        match refused {
            Some((_, next)) => record_refused_plan(state, record, &next, now),
            None => Some(record_follow_up(&self.book, state, record, follow_up, by, now)),
        }
    }

    fn goes_on(
        &self,
        state: &mut AgentState,
        record: &ActionRecord,
        follow_up: ActionFollowUp,
        zone: Option<String>,
        now: Timestamp,
    ) -> bool {
        if follow_up != ActionFollowUp::Explained {
            return false;
        }
        let Some((reason, routing::Next::Plan)) = self.refused_plan(state, record) else { return false };
        state.begin_other_plan(record, reason, zone, now);
        true
    }
}

/// Adds the follow-up to the state, and returns the reply to it.
fn record_follow_up(
    book: &PhraseBook,
    state: &mut AgentState,
    record: &ActionRecord,
    follow_up: ActionFollowUp,
    by: &UserId,
    now: Timestamp,
) -> Reply {
    state.context.mark_outdated();
    state.log.add(record, outcomes::log_line(record), now);
    let reply = match follow_up {
        ActionFollowUp::Explained => {
            state.keep_rejected(record);
            explanation_reply(book, record, by, state.turned_down.as_ref())
        }
        ActionFollowUp::CheckAgain => recheck_reply(record, by),
        ActionFollowUp::SaidDone => marked_done_reply(record),
        ActionFollowUp::Settled => abandoned_reply(record, by),
        ActionFollowUp::CameLate => late_reply(record, by),
    };
    state.conversation.add_bot_message(state.turn.number, &reply.words());
    reply
}

/// Adds the reason for a refused plan to the state. Returns the reply if the limit of plans is reached; otherwise the
/// other plan, or the reason why there is none, is the answer.
fn record_refused_plan(state: &mut AgentState, record: &ActionRecord, next: &Next, now: Timestamp) -> Option<Reply> {
    let plans_made = state.turned_down_plans;
    state.log.add(record, outcomes::log_line(record), now);
    state.keep_rejected(record);
    state.turned_down_plans = plans_made;
    let reply = (*next != Next::Plan).then(|| replies::no_further_plan(plans_made))?;
    state.conversation.add_bot_message(state.turn.number, &reply.words());
    Some(reply)
}

/// Returns the reply that gives the reason for a rejection. If the reason says what to do instead, a button asks for
/// that. For a card with a form, the reply to the rejection has already said what else can be done.
fn explanation_reply(
    book: &PhraseBook,
    record: &ActionRecord,
    by: &UserId,
    turned_down: Option<&RejectedChange>,
) -> Reply {
    let reason = outcomes::reason_of(record).unwrap_or_default();
    let text = Text::new().person(record.requested_by.clone()).plain(", ").person(by.clone());
    let reply = Reply::text(text.plain(" explains why this was rejected: ").bold(record.act()))
        .and(Part::Text(Text::new().italic(reason)));
    let said = Situation { said: reason.to_owned(), turned_down: turned_down.cloned(), ..Situation::default() };
    match book.asks_otherwise(&said) {
        true => reply.choice("Ask for that instead", reason),
        false if record.card.editable => reply,
        false => reply.hint("Tell me here if you want something else instead."),
    }
}

/// Returns the reply that gives the result of another check. If the result is known now, the people who read that it
/// was unknown are mentioned, too.
fn recheck_reply(record: &ActionRecord, by: &UserId) -> Reply {
    let to = Text::new().person(by.clone()).plain(" ");
    let about = || Text::new().bold(record.act()).plain(": ");
    let summary = record.outcome.as_ref().map(|outcome| outcome.summary().clone()).unwrap_or_default();
    match record.status {
        Status::Done => {
            let to = outcomes::everyone_and(by, record);
            Reply::text(to.plain("I checked again: it happened. ").join(about()).join(summary))
        }
        Status::Unknown => {
            Reply::text(to.join(about()).plain("I checked again, and the outcome still isn't known. ").join(summary))
                .hint("Check the platform itself, then press Mark as done or Abandon on the card.")
        }
        _ => Reply::text(outcomes::everyone_and(by, record).join(about()).join(summary)),
    }
}

/// Returns the reply for an action that a person marked as done, although reading it back does not confirm that.
fn marked_done_reply(record: &ActionRecord) -> Reply {
    let summary = record.outcome.as_ref().map(|outcome| outcome.summary().clone()).unwrap_or_default();
    Reply::text(Text::new().bold(record.act()).plain(": ").join(summary))
}

/// Returns the reply that a person abandoned the action.
fn abandoned_reply(record: &ActionRecord, by: &UserId) -> Reply {
    let text = Text::new().person(by.clone()).plain(" abandoned ").bold(record.act());
    Reply::text(text.plain("; it isn't known whether it happened. I won't try it again unless someone asks."))
}

/// Returns the reply for an action that a person marked as done after it had already been settled.
fn late_reply(record: &ActionRecord, by: &UserId) -> Reply {
    let text = Text::new().person(by.clone()).plain(" ").bold(record.act());
    Reply::text(match &record.settled {
        Some(settled) if settled.by != *by => text
            .plain(" was resolved by ")
            .person(settled.by.clone())
            .plain(" before I could check it. The card says how."),
        _ => text.plain(" was resolved before I could check it. The card says how."),
    })
}
