//! Compares the claims in a model's answer with what the turn and the thread have on record.
//!
//! An answer that claims a change which nothing on record shows is not sent: a fixed sentence says that nothing was
//! changed, with what was read and what the person can do. The claims come from the answer itself, which code reads, and
//! from the model, which is asked to list them beside it.

use countersign_capabilities::{Effect, Registry};
use countersign_core::reply::{Choice, Reply};
use countersign_graph::{action::Status, node::Context};
use countersign_understanding::{
    asked::AskedWords,
    claims::{Claim, claims},
};
use serde::Deserialize;
use serde_json::Value;

use super::super::{exchange::Call, replies, state::AgentState, tools};

/// The words in a platform's data that show a change of a kind.
const SHOWN_BY: &[(&str, &[&str])] = &[
    ("start", &["running", "enrolling", "started", "live"]),
    ("stop", &["stopped", "complete", "ended", "finished", "paused", "cancelled", "closed"]),
    ("archive", &["archived"]),
    ("delete", &["deleted", "removed"]),
    ("create", &["created", "added"]),
    ("change", &["updated", "changed", "edited"]),
    ("schedule", &["scheduled", "planned"]),
    ("send", &["sent", "delivered"]),
    ("propose", &["proposed", "pending", "waiting"]),
    ("approve", &["approved", "granted"]),
    ("run", &["completed", "finished", "loaded", "marked", "assigned"]),
    ("note", &["note"]),
];

/// Returns the claims that a model lists beside its answer.
pub(super) fn listed(calls: &[Call]) -> Vec<String> {
    let of = |call: &Call| match call.name.as_str() {
        tools::ANALYZE | tools::NEXT_STEPS => call.input["claims"].as_array().cloned().unwrap_or_default(),
        _ => Vec::new(),
    };
    let all = calls.iter().flat_map(of).filter_map(|claim| claim.as_str().map(str::to_owned));
    all.filter(|claim| !claim.trim().is_empty()).collect()
}

/// Returns a model's answer with its buttons, or a fixed one if it claims what is not on record. `listed` are the claims
/// that the model itself lists.
pub(super) fn checked(
    registry: &Registry,
    state: &AgentState,
    context: &Context,
    (text, choices): (String, Vec<Choice>),
    listed: &[String],
) -> Reply {
    let record = Record { registry, state, context };
    let is_true = record.holds(&text) && listed.iter().all(|claim| record.holds_listed(claim));
    if !is_true {
        tracing::warn!(run.id = %context.run, "An answer of a model claims a change that is not on record");
        return replies::nothing_was_changed(replies::results(registry, &state.turn, &state.log));
    }
    let choices = choices.into_iter().filter(|choice| record.holds(&choice.label)).collect();
    Reply { choices, ..Reply::markdown(text) }
}

/// Returns true if a question of a model, or a choice that it offers, claims nothing that is not on record.
pub(super) fn is_on_record(registry: &Registry, state: &AgentState, context: &Context, text: &str) -> bool {
    Record { registry, state, context }.holds(text)
}

/// Returns the answer in a language model's words, as far as the record supports it.
pub(super) fn answer(
    registry: &Registry,
    state: &AgentState,
    context: &Context,
    text: String,
    calls: &[Call],
    is_cut: bool,
) -> Reply {
    let choices = honest_choices(registry, calls);
    let reply = checked(registry, state, context, (text, choices), &listed(calls));
    if is_cut { replies::cut_off(reply) } else { reply }
}

/// Drops a model's question if it claims what is not on record, and the options whose words a button cannot show.
pub(super) fn check_question(registry: &Registry, state: &mut AgentState, context: &Context) {
    let Some(mut analysis) = state.turn.analysis.take() else { return };
    if !is_on_record(registry, state, context, &analysis.question) {
        analysis.question.clear();
    }
    analysis.options.retain(|option| replies::fits_button(option));
    state.turn.analysis = Some(analysis);
}

/// Returns the buttons that a call offers; empty if it offers none.
fn next_steps(call: &Call) -> Vec<Choice> {
    #[derive(Deserialize)]
    struct Steps {
        steps: Vec<Choice>,
    }
    let offers = call.name == tools::NEXT_STEPS;
    let steps = offers.then(|| serde_json::from_value::<Steps>(call.input.clone()).ok()).flatten();
    steps.map(|offered| offered.steps).unwrap_or_default()
}

/// Returns the buttons that these calls offer, the first few.
pub(super) fn choices_of(calls: &[Call]) -> Vec<Choice> {
    calls.iter().flat_map(next_steps).take(4).collect()
}

/// Returns the buttons that a language model offers. A button shows the words that it says, unless these are only a
/// question: a person who presses it asks for what its label says.
pub(super) fn honest_choices(registry: &Registry, calls: &[Call]) -> Vec<Choice> {
    let only_reads = |says: &str| registry.effect_of(says) == Effect::Reads;
    let is_said = |choice: &Choice| choice.label.eq_ignore_ascii_case(&choice.says);
    let shown = |choice: Choice| match is_said(&choice) || only_reads(&choice.says) {
        true => choice,
        false => Choice::new(choice.says.clone(), choice.says),
    };
    choices_of(calls).into_iter().map(shown).filter(|choice| replies::fits_button(&choice.label)).collect()
}

/// The record that claims are compared with.
struct Record<'a> {
    registry: &'a Registry,
    state: &'a AgentState,
    context: &'a Context,
}

impl Record<'_> {
    fn holds(&self, text: &str) -> bool {
        claims(text).iter().all(|claim| self.has(claim, &text[claim.sentence.clone()]))
    }

    /// A model lists what it claims in its own words, which may have none of the known forms.
    fn holds_listed(&self, text: &str) -> bool {
        let found = claims(text);
        let any = Claim { kind: "done", is_own: true, is_general: false, sentence: 0..text.len() };
        if found.is_empty() { self.has(&any, text) } else { found.iter().all(|claim| self.has(claim, text)) }
    }

    fn has(&self, claim: &Claim, sentence: &str) -> bool {
        if claim.is_general && !self.registry.names_in(sentence).iter().any(|name| name.subject) {
            return true; // it says how things are in general
        }
        let names = self.names(sentence);
        // A request for a change is not answered with an earlier one.
        let is_look = AskedWords::of(&self.state.turn.said).is_look();
        let in_log = (is_look || !claim.is_own) && self.is_in_log(claim, &names);
        in_log || self.is_on_card(claim, &names) || !claim.is_own && self.was_read(claim, &names)
    }

    /// Returns the names of the things that a sentence is about; without any, those in the person's message.
    fn names(&self, sentence: &str) -> Vec<String> {
        let of = |text: &str| -> Vec<String> {
            let subjects = self.registry.names_in(text).into_iter().filter(|name| name.subject);
            subjects.map(|name| name.name).collect()
        };
        let named = of(sentence);
        if named.is_empty() { of(&self.state.turn.said) } else { named }
    }

    fn is_in_log(&self, claim: &Claim, names: &[String]) -> bool {
        let mut made = self.state.log.entries.iter().filter(|entry| entry.status == Status::Done);
        made.any(|entry| {
            let what = entry.what.words();
            let is_kind =
                claim.kind == "done" || claim.kind == "approve" || claims(&what).iter().any(|of| of.kind == claim.kind);
            is_kind && names.iter().all(|name| what.to_lowercase().contains(&name.to_lowercase()))
        })
    }

    /// Returns true if an open card shows what is said to be proposed.
    fn is_on_card(&self, claim: &Claim, names: &[String]) -> bool {
        let shows = |title: &str| names.iter().all(|name| title.to_lowercase().contains(&name.to_lowercase()));
        claim.kind == "propose" && self.context.open.iter().any(|open| shows(&open.card.title))
    }

    /// Returns true if data that was read in this turn shows the change, of the thing that is named.
    fn was_read(&self, claim: &Claim, names: &[String]) -> bool {
        let Some((_, shown_by)) = SHOWN_BY.iter().find(|(kind, _)| *kind == claim.kind) else { return false };
        let answers = self.state.turn.gathered.values();
        let shows = |value: &Value| is_state(value, shown_by);
        match names {
            [] => answers.into_iter().any(shows),
            names => names
                .iter()
                .all(|name| self.state.turn.gathered.values().any(|answer| about(answer, name).is_some_and(shows))),
        }
    }
}

/// Returns true if a value in this data is the name of a state, as `running` or `Enrollment complete`. What is written in a
/// description or a note proves nothing.
fn is_state(value: &Value, names: &[&str]) -> bool {
    const MOST_WORDS: usize = 3;
    match value {
        Value::String(text) => {
            let text = text.to_lowercase();
            text.split_whitespace().count() <= MOST_WORDS && names.iter().any(|name| text.contains(name))
        }
        Value::Object(members) => members.values().any(|value| is_state(value, names)),
        Value::Array(values) => values.iter().any(|value| is_state(value, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the smallest object with this name as one of its texts.
fn about<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => {
            let inner = members.values().filter(|value| value.is_object() || value.is_array());
            let is_it = |value: &Value| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(name));
            inner
                .into_iter()
                .find_map(|value| about(value, name))
                .or_else(|| members.values().any(is_it).then_some(value))
        }
        Value::Array(values) => values.iter().find_map(|value| about(value, name)),
        _ => None,
    }
}
