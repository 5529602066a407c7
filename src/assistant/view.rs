//! The requests that models are sent, and the part of the state that they show: the situation.
//!
//! Everything in them is bounded, so the cost of a turn does not grow with the age of the thread.

use std::{collections::BTreeMap, sync::Arc};

use countersign_capabilities::{Registry, dates};
use countersign_core::{clock::Timestamp, ids::UserId, reply::Fact};
use countersign_graph::{action::ActionRecord, node::Context};
use countersign_model::{Purpose, Request, ToolChoice, ToolSpec, limits::Payer};
use countersign_understanding::situation::{Draft, OpenCard, RecentChange, Situation};
use serde_json::Value;

use super::{
    context::shortened_to,
    history::shorten,
    log::LogEntry,
    state::{AgentState, MAX_DRAFT_TURNS, MAX_MESSAGE_LENGTH},
};

/// The number of recent changes that a model is shown.
const RECENT_CHANGES: usize = 4;
/// The number of lines of an open card, and the length of a line, that a model is shown.
const MAX_CARD_LINES: usize = 8;
const MAX_CARD_LINE: usize = 160;
/// The maximum size of a result in the situation, in bytes of JSON.
const MAX_RESULT_BYTES: usize = 6_000;

/// The fixed instructions of a language model: its persona, the instructions of each capability, and its task.
#[derive(Clone, Debug)]
pub(super) struct Prompts {
    /// The instructions for doing what a message asks for.
    work: Arc<str>,
    /// The same for another plan instead of one that ended early.
    replan: Arc<str>,
    /// The instructions for putting the result into words.
    respond: Arc<str>,
}

impl Prompts {
    /// Creates the instructions for these capabilities. The same capabilities give the same bytes.
    pub(super) fn new(registry: &Registry) -> Self {
        let sections = registry.capabilities.iter().map(|capability| {
            let instructions = capability.info().instructions.trim();
            if instructions.is_empty() { String::new() } else { format!("\n{instructions}\n") }
        });
        let persona = format!("{}{}", include_str!("prompts/persona.md"), sections.collect::<String>());
        let work = format!("{persona}{}", include_str!("prompts/work.md"));
        Self {
            replan: format!("{work}{}", include_str!("prompts/replan.md")).into(),
            work: work.into(),
            respond: format!("{persona}{}", include_str!("prompts/respond.md")).into(),
        }
    }
}

/// Returns the situation of a turn.
pub(super) fn situation(state: &AgentState, context: &Context) -> Situation {
    let turn = &state.turn;
    Situation {
        said: shorten(&turn.said, MAX_MESSAGE_LENGTH),
        by: turn.by.as_ref().map(ToString::to_string).unwrap_or_default(),
        today: today(turn.at, turn.zone.as_deref()),
        zone: turn.zone.clone(),
        names: turn.names.clone(),
        earlier: state.conversation.summary.clone(),
        analysis: turn.analysis.clone(),
        draft: state.draft.clone(),
        on_card: on_card(state, &context.open),
        turned_down: state.turned_down.clone().filter(|_| turn.number <= state.turned_down_turn + MAX_DRAFT_TURNS),
        replan: turn.replan.clone(),
        last_subject: state.last_subject.clone(),
        subjects: state.earlier_subjects(),
        listed: state.listed.clone(),
        topic: state.topic.clone(),
        aside: state.aside.clone(),
        open_cards: context.open.iter().rev().take(5).rev().map(open_card).collect(),
        recent_changes: recent_changes(state),
        gathered: BTreeMap::new(),
        errors: turn.errors.iter().map(|problem| problem.message.clone()).collect(),
    }
}

/// Returns the date in a time zone, such as `2026-12-03`.
fn today(at: Timestamp, zone: Option<&str>) -> String {
    dates::day_in(at, &dates::time_zone(zone)).to_string()
}

/// Returns the situation that there would be with this text as the next message.
pub(super) fn situation_for_message(state: &AgentState, by: &UserId, text: &str, open: &[ActionRecord]) -> Situation {
    let number = state.newest_turn() + 1;
    Situation {
        said: shorten(text, MAX_MESSAGE_LENGTH),
        by: by.to_string(),
        today: today(state.turn.at, state.turn.zone.as_deref()),
        zone: state.turn.zone.clone(),
        draft: state.draft.clone(),
        on_card: on_card(state, open),
        turned_down: state.turned_down.clone().filter(|_| number <= state.turned_down_turn + MAX_DRAFT_TURNS),
        last_subject: state.last_subject.clone(),
        subjects: state.earlier_subjects(),
        listed: state.listed.clone(),
        topic: state.topic.clone(),
        aside: state.aside.clone(),
        open_cards: open.iter().rev().take(5).rev().map(open_card).collect(),
        recent_changes: recent_changes(state),
        ..Situation::default()
    }
}

/// Returns the change on the newest open card as the card shows it. If it was edited in its form, those are the
/// parameters of the card; otherwise those of the request, with the dates of the card: “tomorrow” may mean another day
/// by now.
fn on_card(state: &AgentState, open: &[ActionRecord]) -> Option<Draft> {
    let mut change = state.on_card.clone()?;
    let open = card_to_correct(&change.action, open)?;
    if let (false, Value::Object(edited)) = (open.edits.is_empty(), &*open.parameters) {
        return Some(Draft { params: edited.clone(), ..change });
    }
    for (key, value) in &mut change.params {
        if dates::PARAMETERS.contains(&key.as_str())
            && let Some(shown) = open.parameters[key.as_str()].as_str()
        {
            *value = shown.into();
        }
    }
    Some(change)
}

/// Returns the newest open card of this action, to which a correction applies.
pub(super) fn card_to_correct<'a>(action: &str, open: &'a [ActionRecord]) -> Option<&'a ActionRecord> {
    open.iter().filter(|open| open.name == action).max_by_key(|open| open.requested_at)
}

fn open_card(open: &ActionRecord) -> OpenCard {
    let fact = |fact: &Fact| {
        let before = fact.before.as_ref().map(|before| format!("{} → ", before.words())).unwrap_or_default();
        shorten(&format!("{}: {before}{}", fact.label, fact.after.words()), MAX_CARD_LINE)
    };
    let remarks = open.card.warnings.iter().chain(&open.card.notes);
    OpenCard {
        facts: open.card.facts.iter().take(MAX_CARD_LINES).map(fact).collect(),
        warnings: remarks.take(MAX_CARD_LINES).map(|text| shorten(&text.words(), MAX_CARD_LINE)).collect(),
        irreversible: open.card.irreversible,
        title: shorten(&open.card.title, 120),
        approve: open.card.approve.clone(),
        reject: open.card.reject.clone(),
        typed: open.takes_typed_yes(),
    }
}

fn recent_changes(state: &AgentState) -> Vec<RecentChange> {
    let draft =
        |action: &str, parameters: &Value| Draft::begun(action, parameters.as_object().cloned().unwrap_or_default());
    let shown = |entry: &&LogEntry| entry.again.is_some() || entry.status.has_outcome();
    let entries: Vec<_> = state.log.entries.iter().filter(shown).collect();
    let newest = entries.iter().skip(entries.len().saturating_sub(RECENT_CHANGES));
    newest
        .map(|entry| RecentChange {
            what: shorten(&entry.what.words(), 160),
            undo: entry.undo.as_ref().map(|undo| draft(&undo.name, &undo.parameters)),
            again: entry.again.as_ref().map(|parameters| draft(&entry.action, parameters)),
        })
        .collect()
}

/// Builds the request to a model about this state.
pub(super) fn request(
    prompts: &Prompts,
    purpose: Purpose,
    state: &AgentState,
    context: &Context,
    tools: Arc<[ToolSpec]>,
    tool_choice: ToolChoice,
) -> Request {
    let mut situation = situation(state, context);
    let instructions = match purpose {
        Purpose::Analyze | Purpose::Gather => {
            // The exchange already contains both.
            situation.errors.clear();
            situation.analysis = situation.analysis.filter(|_| state.turn.exchange.is_empty());
            if state.turn.replan.is_some() { prompts.replan.clone() } else { prompts.work.clone() }
        }
        // Nothing in a conversation is about mail, which another graph handles.
        Purpose::Respond | Purpose::Classify | Purpose::Generate => {
            situation.gathered = results(state);
            prompts.respond.clone()
        }
    };
    Request {
        purpose,
        instructions,
        tools,
        history: state.conversation.before(state.turn.number),
        situation: serde_json::to_value(situation).expect("a situation is plain data"),
        exchange: if purpose == Purpose::Gather { state.turn.exchange.clone() } else { Vec::new() },
        tool_choice,
        answer_schema: None,
        max_tokens: 1500,
        payer: Payer { person: state.turn.by.clone(), thread_cost: state.cost },
        words: None,
    }
}

fn results(state: &AgentState) -> BTreeMap<String, Value> {
    state.turn.gathered.iter().map(|(key, value)| (key.clone(), shortened_to(value, MAX_RESULT_BYTES))).collect()
}
