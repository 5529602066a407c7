//! The assistant's memory of a thread.
//!
//! | name elsewhere | lives in | how long |
//! | --- | --- | --- |
//! | `user_input` | [`Turn::said`]; of several requests in one message, the one in hand | the turn |
//! | `conversation_history` | [`AgentState::conversation`] | the thread, the newest messages; older ones as a line each |
//! | `current_state` | [`Turn::phase`] (`ANALYZING`, `GATHERING_INFO`, `CONFIRMING`, `RESPONDING`); `EXECUTING` is the engine's [`countersign_graph::checkpoint::Cursor::Performing`] | the turn |
//! | `intent_type`, `capability`, `confidence`, `user_request_summary` | [`Turn::analysis`] | the turn |
//! | `step_counter`, `total_steps`, `step_results` | [`AgentState::plans`]: [`Plan::step_counter`] and its neighbours | from the message with several requests to the end of the last one, at most [`super::plan::MAX_STEPS`] |
//! | `planning_execution_plan`, `planning_current_step_index` | [`Plan::planned`]; the index is the number of [`Plan::step_results`] | as long as the plan |
//! | `control_…` counters | [`Plan::control`]; the plans of a turn in [`Turn::plans_created`], of a refused one in [`AgentState::turned_down_plans`] | the plan; the turn |
//! | `status_updates`, `progress_events` | [`AgentState::events`] until the next save, then the record | the record |
//! | `action_needed`, `action_params` | [`Turn::change`], set by the tool `propose_<action>`; while something is missing also [`AgentState::draft`] | the turn; a draft until it is complete, dropped or forgotten |
//! | `missing_params` | [`Turn::missing`], and the one that was asked for in [`Draft::asked`] | the turn; the draft |
//! | `context_metadata` and the lists that were read | [`AgentState::context`], by type: the tool's name in capitals, such as `CONTEXT_METADATA` | the thread, the newest |
//! | `gathered_info` | [`Turn::gathered`] | the turn |
//! | `needs_confirmation` | [`Turn::proposal`] is there | until the card is asked |
//! | `confirmation_message` | the card in [`Turn::proposal`], then in the action's record | the record |
//! | `user_confirmed` | the decisions in the action's record ([`countersign_graph::node::Context::ended`]); never in the state | the record |
//! | `execution_log` | [`AgentState::log`] | the thread, the newest |
//! | `errors` | [`Turn::errors`] | the turn |
//! | `final_response` | [`Turn::final_response`] | the turn |
//! | `conversation_complete` | the run has ended ([`countersign_graph::node::Next::End`]): the engine's cursor | the run |
//!
//! A new message resets [`Turn`] and nothing else. An answer to a card puts the turn back exactly as it was when it
//! paused, also after other turns and after a restart; the rest of the state is then as those left it.

use std::collections::BTreeMap;

use countersign_capabilities::{Registry, dates};
use countersign_core::{
    clock::Timestamp,
    ids::UserId,
    reply::{Choice, Part, Reply},
};
use countersign_graph::{
    action::{ActionRecord, ActionRequest, ErrorKind, MissingParameter},
    node::{Said, State},
};
use countersign_model::limits::Reached;
use countersign_planner::{self as planner, events::StreamEvent};
use countersign_understanding::{
    self as understanding,
    situation::{Draft, DraftQuestion, Listed, RejectedChange, Topic},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::turn::{Heard, MAX_MESSAGE_LENGTH, Phase, Problem, ToolRead, Turn};
use super::{
    context::ContextData,
    history::{History, shorten},
    log::Log,
    offered, outcomes,
    plan::{Plan, WaitsFor},
    replies,
    turn::is_default,
};

/// The number of turns for which a question about a draft stays open, and a change that was turned down can be
/// corrected.
pub const MAX_DRAFT_TURNS: u64 = 4;

/// The reason of a person's “stop” in the record.
const STOPPED: planner::events::EndsEarly<'static> = planner::events::EndsEarly::ByDecision("a person said stop");

/// Buttons that answer no question, in addition to the registry's suggestions.
const NO_ANSWERS: &[&str] = &["never mind", "what can you do?", "what concepts can you explain?"];

/// A value of a parameter that was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RefusedValue {
    /// The parameter.
    pub parameter: String,
    /// The value in words.
    pub words: String,
}

/// The state of a thread. It is written after each step and compared with the one before. Most of its fields are usually
/// empty, and empty ones are not stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// The newest messages and a summary of older ones.
    pub conversation: History,
    /// The entries that tools returned.
    #[serde(skip_serializing_if = "is_default")]
    pub context: ContextData,
    /// The change that lacks something, until it is complete or dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Draft>,
    /// The turn in which the draft was last touched.
    #[serde(skip_serializing_if = "is_default")]
    pub draft_turn: u64,
    /// The parts of messages about the draft that are not in it so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// The value that was refused last and that the draft therefore lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_value: Option<RefusedValue>,
    /// The number of answers in a row that were not understood.
    #[serde(skip_serializing_if = "is_default")]
    pub misunderstood: u32,
    /// The change on the newest card, so that “no, at 60/40” can make a new version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_card: Option<Draft>,
    /// The turn that showed that card.
    #[serde(skip_serializing_if = "is_default")]
    pub on_card_turn: u64,
    /// True if a message since then was not understood, so that it may have been a no.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsure: bool,
    /// The change that was turned down last, until anything else is asked for, so that it can be corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turned_down: Option<RejectedChange>,
    /// The turn in which it was turned down.
    #[serde(skip_serializing_if = "is_default")]
    pub turned_down_turn: u64,
    /// The choices of the last answer, from which the next message may pick.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<Choice>,
    /// The request that “forget it” stands for after the last answer, if that offered to forget what it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget_means: Option<String>,
    /// The person's notes that gave the draft a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub draft_notes: Vec<String>,
    /// The name of the thing that “it” means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_subject: Option<String>,
    /// The last subject of each capability, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, String>,
    /// The last list that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listed>,
    /// The tool or action that was used last, and its capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// The last call, if it came after that of the topic and its capability has no things to talk about, such as a watch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<Topic>,
    /// The words of people behind the open question or the newest card that a language model made of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
    /// The turn in which a language model asked what a message means.
    #[serde(skip_serializing_if = "is_default")]
    pub asked_turn: u64,
    /// The person who was asked the open question, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_of: Option<UserId>,
    /// The people who wrote in the thread, the first few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<UserId>,
    /// True if a person in the thread has spoken to another person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_company: bool,
    /// The plans of messages with several requests, each kept until its last step.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<Plan>,
    /// The requests of the newest plan that were not done when it ended early, until another one begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest_of_plan: Vec<String>,
    /// The words of people that asked for these requests, if a language model wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest_heard: Vec<Heard>,
    /// The changes that were asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub log: Log,
    /// The number of plans that were made for the request that was turned down last, if that was a plan.
    #[serde(skip_serializing_if = "is_default")]
    pub turned_down_plans: u32,
    /// The cost of the calls of language models, in billionths of a US dollar, as far as prices are known.
    #[serde(skip_serializing_if = "is_default")]
    pub cost: u64,
    /// The limit of that cost that was mentioned last, and to whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_limit: Option<(Reached, Option<UserId>)>,
    /// The data of the current turn. On the heap, since the state is moved from step to step.
    pub turn: Box<Turn>,
    /// The events of plans since the last save.
    #[serde(skip)]
    pub events: Vec<StreamEvent>,
}

impl State for AgentState {
    fn begin_turn(&mut self, said: &Said) {
        let number = self.turn.number.max(self.newest_turn()) + 1;
        let text = shorten(said.text.trim(), MAX_MESSAGE_LENGTH);
        let length = said.text.trim().chars().count();
        self.note_spoken_to(&said.by);
        self.pin_draft();
        self.conversation.add_person_message(number, &said.by, &text);
        if self.draft.is_some() && number > self.draft_turn + MAX_DRAFT_TURNS {
            self.draft = None;
        }
        let offered = std::mem::take(&mut self.offered);
        let takes_forget = self.takes_forget_from(&said.by);
        let forget_means = self.forget_means.take().filter(|_| takes_forget && understanding::says_forget(&text));
        let text = forget_means.unwrap_or(text);
        let picked = offered::picked_words(&offered, self.turn.final_response.as_deref(), &text);
        let is_picked = picked.is_some() || text != shorten(said.text.trim(), MAX_MESSAGE_LENGTH);
        let text = picked.unwrap_or(text);
        let declines_offer = !offered.is_empty() && self.draft.is_none() && understanding::drops_any(&text);
        *self.turn = Turn {
            number,
            said: text,
            cut_from: Some(length).filter(|length| *length > MAX_MESSAGE_LENGTH),
            by: Some(said.by.clone()),
            at: said.at,
            ts: said.ts.clone(),
            it: self.last_subject.clone(),
            is_picked,
            // “At 9:00 ET, until Monday 18:00”: the zone holds for the whole message.
            zone: dates::zone_named_in(&said.text).or_else(|| said.zone.clone()),
            declines_offer,
            ..Turn::default()
        };
        if let Some(ActionRequest { action, parameters: Value::Object(params) }) = said.request.clone() {
            self.turn.change = Some(Draft::begun(&action, params));
            self.turn.is_explicit = true;
        }
    }

    fn present(&mut self, by: &UserId, to_another: bool) {
        self.note_presence(by, to_another);
    }

    fn stopped(&mut self) -> Option<String> {
        let rest = self.end_plan(Some(STOPPED)).map(|plan| plan.lines_when_stopped());
        let rest = rest.map(|lines| replies::stopped_plan(&lines));
        self.draft = None;
        *self.turn = Turn { number: self.turn.number, ..Turn::default() };
        rest
    }

    fn stopped_waiting(&mut self) -> Option<String> {
        let stopped = self.stop_waiting_plans(STOPPED);
        if stopped.iter().any(|plan| plan.waits_for == WaitsFor::Answer) {
            self.draft = None;
        }
        let lines: Vec<String> = stopped.iter().flat_map(|plan| plan.lines_when_stopped()).collect();
        (!lines.is_empty()).then(|| replies::stopped_plan(&lines))
    }

    fn take_events(&mut self) -> Vec<Value> {
        let event = |event: StreamEvent| serde_json::to_value(event).expect("an event is plain data");
        std::mem::take(&mut self.events).into_iter().map(event).collect()
    }

    fn buttons_wait_for(&self, reply: &Reply) -> Option<String> {
        self.open_question().filter(|_| reply.asks())
    }

    fn suspend(&self) -> Value {
        serde_json::to_value(&self.turn).expect("a turn is plain data")
    }

    fn resume(&mut self, turn: Value) -> Result<(), serde_json::Error> {
        self.turn = serde_json::from_value(turn)?;
        Ok(())
    }

    fn superseded(&mut self, older: &ActionRecord, now: Timestamp) {
        self.log.add(older, outcomes::log_line(older), now);
    }
}

impl AgentState {
    /// Returns the newest turn with a message: a resumed turn may be an older one.
    pub(super) fn newest_turn(&self) -> u64 {
        self.conversation.lines.iter().map(|line| line.turn).max().unwrap_or(0)
    }

    /// Keeps an incomplete change.
    pub fn keep_draft(&mut self, draft: Draft) {
        self.draft_turn = self.turn.number;
        self.asked_of.clone_from(&self.turn.by);
        self.draft = Some(draft);
    }

    /// Makes the moments in the draft independent of the message that they are from, before another one follows.
    fn pin_draft(&mut self) {
        let Some(draft) = self.draft.as_mut().filter(|_| self.turn.number == self.draft_turn) else { return };
        let zone = dates::time_zone(self.turn.zone.as_deref());
        for (_, value) in draft.params.iter_mut().filter(|(key, _)| dates::PARAMETERS.contains(&key.as_str())) {
            if let Value::String(given) = value {
                *given = dates::pinned(given, self.turn.at, &zone);
            }
        }
    }

    /// Remembers the offer of an answer to forget what it shows, which “forget it” takes.
    pub(super) fn remember_forget(&mut self, reply: &Reply) {
        let forgets = |choice: &&Choice| choice.label.to_lowercase().starts_with("forget ");
        self.forget_means = reply.choices.iter().find(forgets).map(|choice| choice.says.clone());
    }

    /// Returns true if “forget it” from this person means what the last answer showed.
    pub(super) fn takes_forget_from(&self, by: &UserId) -> bool {
        self.forget_means.is_some() && self.turn.by.as_ref() == Some(by)
    }

    /// Keeps a change that was turned down, so that saying what should be different is enough.
    pub(super) fn keep_rejected(&mut self, record: &ActionRecord) {
        let Value::Object(params) = Value::clone(&record.parameters) else { return };
        let change = Draft::begun(&record.name, params);
        self.turned_down = Some(RejectedChange { change, reason: outcomes::reason_of(record).map(str::to_owned) });
        self.turned_down_turn = self.newest_turn();
    }

    /// Remembers the choices of a question, so that they can be picked in words as well.
    pub(super) fn remember_offer(&mut self, registry: &Registry, reply: &Reply) {
        let asks = reply.parts.iter().any(|part| match part {
            Part::Text(text) => text.words().trim_end().ends_with('?'),
            _ => false,
        });
        let waits = self.draft.as_ref().is_some_and(|draft| draft.asked.is_some());
        self.offered = if asks && !waits { reply.choices.clone() } else { Vec::new() };
        let begins = |says: &str| registry.suggestions().any(|(_, first)| first == says);
        self.offered.retain(|choice| !NO_ANSWERS.contains(&choice.says.as_str()) && !begins(&choice.says));
        if !self.offered.is_empty() {
            self.asked_of.clone_from(&self.turn.by);
        }
    }

    /// Remembers the words of a reply, for the models of later turns.
    pub fn remember_reply(&mut self, reply: &Reply) {
        let words = reply.words();
        self.conversation.add_bot_message(self.turn.number, &words);
        self.turn.final_response = Some(shorten(&words, super::history::MAX_LINE_LENGTH));
    }

    /// Makes the last read of the turn that succeeded the topic of the thread.
    pub(super) fn note_topic(&mut self, registry: &Registry) {
        let read = self.turn.reads.iter().rev().find(|read| read.failed.is_none());
        if let Some(ToolRead { tool, arguments: Value::Object(arguments), .. }) = read {
            self.note_call(registry.topic_of(tool, arguments));
        }
    }

    /// Makes a change the topic of the thread.
    pub(super) fn note_topic_of_change(&mut self, registry: &Registry, change: &Draft) {
        self.note_call(registry.topic_of(&change.action, &change.params));
    }

    /// Remembers a call, as [`Registry::topic_of`] returns it.
    fn note_call(&mut self, call: Option<(Topic, bool)>) {
        match call {
            Some((topic, true)) => (self.topic, self.aside) = (Some(topic), None),
            Some((aside, false)) => self.aside = Some(aside),
            None => {}
        }
    }

    /// Returns true if a change that was refused leaves no draft: the message was misread as a correction of an open
    /// card, or as a request about something that does not exist and resembles nothing. A draft that the person
    /// cannot see would take the answers that they mean for the card. The choices of the `reply` are remembered.
    /// `has_draft` is true if there was a draft before.
    pub(super) fn leaves_nothing(
        &mut self,
        registry: &Registry,
        reply: &Reply,
        has_draft: bool,
        error: ErrorKind,
    ) -> bool {
        self.remember_offer(registry, reply);
        let resembles_nothing = error == ErrorKind::NotFound && self.offered.is_empty();
        !has_draft && self.plan().is_none() && (self.turn.corrects || resembles_nothing)
    }

    /// Notes a problem.
    pub fn note_problem(&mut self, kind: &str, message: &str) {
        if self.turn.errors.len() < 10 {
            self.turn.errors.push(Problem { kind: shorten(kind, 40), message: shorten(message, 300) });
        }
    }

    /// Asks for a missing parameter: the question becomes part of the draft.
    pub fn ask_for(&mut self, mut draft: Draft, missing: &MissingParameter) {
        draft.asked = Some(DraftQuestion {
            parameter: missing.name.clone(),
            question: missing.question.clone(),
            options: missing.options.iter().take(10).cloned().collect(),
        });
        self.keep_draft(draft);
    }

    /// Keeps an incomplete change without the value of a parameter that was refused for the reason in `reply`, which is
    /// asked for again. A value that was known before stays.
    pub fn keep_without(&mut self, mut draft: Draft, known: Option<&Draft>, parameter: &str, reply: &Reply) {
        let refused = draft.params.remove(parameter).unwrap_or_default();
        if let Some(value) = known.and_then(|known| known.params.get(parameter)) {
            draft.params.insert(parameter.to_owned(), value.clone());
        }
        let words = refused.as_str().map_or_else(|| refused.to_string(), str::to_owned);
        self.refused_value = Some(RefusedValue { parameter: parameter.to_owned(), words: shorten(&words, 80) });
        draft.asked = Some(DraftQuestion {
            parameter: parameter.to_owned(),
            question: shorten(&reply.words(), 300),
            options: reply.choices.iter().map(|choice| choice.label.clone()).collect(),
        });
        self.keep_draft(draft);
    }

    /// Returns the note that the language model was not used. The person is told once that a limit is the reason.
    pub(super) fn note_without_model(&mut self) -> Option<&'static str> {
        let reached = match (self.turn.without_model, self.turn.over_limit) {
            (false, _) => return None,
            (true, None) => return Some(replies::WITHOUT_MODEL),
            (true, Some(reached)) => reached,
        };
        let told = Some((reached, self.turn.by.clone()));
        let is_new = self.told_limit != told;
        self.told_limit = told;
        is_new.then(|| replies::over_limit(reached.limit))
    }

    /// Begins the current step again.
    pub fn repeat_step(&mut self, now: Timestamp) {
        let (number, said) = (self.turn.number, self.turn.said.clone());
        self.begin_step(number, said, now);
    }

    pub(super) fn begin_step(&mut self, number: u64, said: String, now: Timestamp) {
        let Turn { by, zone, without_model, over_limit, plans_created, ts, it, mut heard, mut is_of_model, .. } =
            std::mem::take(&mut *self.turn);
        if let Some(plan) = self.plans.iter().find(|plan| plan.turn == number && !plan.heard.is_empty()) {
            (heard, is_of_model) = (plan.heard.clone(), true);
        }
        *self.turn = Turn {
            number,
            said,
            by,
            at: now,
            zone,
            without_model,
            over_limit,
            plans_created,
            ts,
            it,
            heard,
            is_of_model,
            ..Turn::default()
        };
    }
}
