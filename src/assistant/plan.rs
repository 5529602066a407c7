//! Plans: several requests in one message, which are carried out in order.
//!
//! The plan of the requests is checked before the first of them begins ([`countersign_planner::plan::Plan::checked`]),
//! and [`countersign_planner::routing::next`] decides on what follows each step. Its progress is noted as events,
//! which the engine writes into the record with the step.
//!
//! A plan belongs to the turn that works on it and waits with it: for the answer to a question, or for a decision on a
//! card. It is stored beside the turn and not in it, so that a message in between can drop it, and an answer to a
//! question can continue it in a later turn. A step that does not succeed ends the plan, and the steps that were not
//! done are named.

use countersign_capabilities::{ASSISTANT, Registry};
use countersign_graph::retry::RetryPolicy;
use countersign_planner::{
    self as planner,
    control::{Control, Limits, Severity, StepError},
    events::{EndsEarly, Phase, StreamEvent},
    plan::Step,
    routing::{self, Next},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::{history::shorten, turn::Heard};

/// The maximum number of requests of one message that are carried out.
pub const MAX_STEPS: usize = 8;

/// The maximum length of a stored request or result, in characters.
pub(super) const MAX_TEXT_LENGTH: usize = 300;

/// The requests of one message, and the progress with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// The number of the turn that works on the plan.
    pub turn: u64,
    /// The event that the plan waits for.
    pub waits_for: WaitsFor,
    /// The number of the current step, counted from 1.
    pub step_counter: usize,
    /// The number of steps.
    pub total_steps: usize,
    /// The whole message, shortened.
    pub asked: String,
    /// The results of the finished steps.
    pub step_results: Vec<StepResult>,
    /// The requests after the current one in the person's words, in order.
    pub ahead: Vec<String>,
    /// All steps and the answer at the end, as they were checked.
    pub planned: planner::plan::Plan,
    /// The results that the conditions of later steps look at, by the keys of their steps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Value>,
    /// The number of requests in the message beyond [`MAX_STEPS`].
    pub left_out: usize,
    /// The counters that determine how the plan continues.
    #[serde(skip_serializing_if = "is_untouched")]
    pub control: Control,
    /// The time zone of all its requests, even if someone in another zone answers a question in between; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The words of people that asked for the steps, if a language model wrote them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<Heard>,
}

/// Returns true if the counters have their initial values, which are not stored.
fn is_untouched(control: &Control) -> bool {
    *control == Control::default()
}

/// The event that a plan waits for between two steps of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// No event: the plan is being worked on.
    #[default]
    Nothing,
    /// The answer to a question about a draft.
    Answer,
    /// A decision on a card.
    Card,
    /// A person's answer to the question whether the condition of the next step holds.
    Condition,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The number of the step, counted from 1.
    pub step: usize,
    /// The request.
    pub request: String,
    /// The reply to it, shortened.
    pub result: String,
}

impl Plan {
    /// Returns the position of the current step, such as `Step 2 of 3`.
    pub fn place(&self) -> String {
        format!("Step {} of {}", self.step_counter, self.total_steps)
    }

    /// Describes each step with its state.
    pub fn lines(&self) -> Vec<String> {
        let now = match self.waits_for {
            WaitsFor::Condition => {
                let condition = self.next_step().and_then(|step| step.condition.as_ref());
                condition.map(|condition| format!("Now: waiting for an answer (“{}”?)", shorten(&condition.words, 80)))
            }
            _ => self.request_in_hand().map(|request| format!("Now: {}", shorten(request, 80))),
        };
        let ahead = self.ahead.iter().map(|request| format!("Next: {}", shorten(request, 80)));
        self.lines_of_done().chain(now).chain(ahead).collect()
    }

    /// Describes each step of a plan that was stopped: done or not done.
    pub(super) fn lines_when_stopped(&self) -> Vec<String> {
        let undone = self.undone().into_iter().map(|request| format!("Not done: {}", shorten(&request, 80)));
        self.lines_of_done().chain(undone).collect()
    }

    /// Returns the results of the steps before the current one.
    pub(super) fn before_current(&self) -> &[StepResult] {
        let count = self.step_results.iter().take_while(|step| step.step < self.step_counter).count();
        &self.step_results[..count]
    }

    /// Describes the finished steps.
    fn lines_of_done(&self) -> impl Iterator<Item = String> {
        self.step_results.iter().map(|step| {
            // The first line may be a heading, such as a name that the request holds already.
            let is_news = |line: &&str| !line.trim().is_empty() && !step.request.contains(line.trim());
            let result = step.result.lines().find(is_news).unwrap_or_default().trim_end_matches(':');
            match result {
                "" => format!("Done: {}", shorten(&step.request, 80)),
                result => format!("Done: {} → {}", shorten(&step.request, 80), shorten(result, 120)),
            }
        })
    }

    /// Returns the requests that are not done, in order.
    pub(super) fn undone(&self) -> Vec<String> {
        self.request_in_hand().map(str::to_owned).into_iter().chain(self.ahead.iter().cloned()).collect()
    }

    /// Returns the same where the current step was stopped while it ran, which is said of its request.
    pub(super) fn undone_when_stopped(&self) -> Vec<String> {
        let stopped = self.request_in_hand();
        let stopped = stopped.map(|request| format!("{} (stopped midway)", shorten(request, 80)));
        stopped.into_iter().chain(self.ahead.iter().cloned()).collect()
    }

    /// Returns the request of the current step, unless that is finished.
    pub(super) fn request_in_hand(&self) -> Option<&str> {
        let is_taken = self.step_results.len() < self.step_counter;
        self.next_step().filter(|_| is_taken).map(|step| step.task_objective.as_str())
    }

    /// Returns the decision on what follows, by the rules of [`routing::next`].
    pub fn route(&self, registry: &Registry, limits: &Limits) -> Next {
        routing::next(&routing::Turn {
            control: &self.control,
            limits,
            task: self.planned.steps.first().map(|step| step.task_objective.as_str()),
            is_classified: true,
            plan: Some(&self.planned),
            step: self.step_results.len(),
            known: &|name| registry.carries_out(name),
        })
        .unwrap_or(Next::Error)
    }

    /// Records that the step that follows the finished ones has failed.
    pub(super) fn step_failed(&mut self, severity: Severity, user_message: String, cause: String) {
        let failed = self.next_step().and_then(|step| step.capability.clone());
        self.control.failed(StepError { failed, severity, user_message, cause, retry: RetryPolicy::OF_CAPABILITY });
    }

    /// Returns the step that follows the finished ones.
    pub fn next_step(&self) -> Option<&Step> {
        self.planned.steps.get(self.step_results.len())
    }

    /// Assigns the steps ahead to capabilities once more.
    pub(super) fn reclassify(&mut self, registry: &Registry) {
        self.control.reclassified();
        let again = registry.plan_of(self.turn, &self.ahead);
        let ahead = self.planned.steps.iter_mut().skip(self.step_results.len());
        for (step, again) in ahead.zip(again.steps) {
            step.capability = again.capability;
        }
    }

    /// Returns an event of the current step.
    pub(super) fn event(&self, text: impl Into<String>) -> StreamEvent {
        let step = self.step_counter.checked_sub(1).and_then(|index| self.planned.steps.get(index));
        StreamEvent {
            text: text.into(),
            source: step.and_then(|step| step.capability.clone()).unwrap_or_else(|| ASSISTANT.to_owned()),
            phase: Phase::Execution,
            step: self.step_counter,
            total_steps: self.total_steps,
            done: self.step_results.len(),
            ..StreamEvent::default()
        }
    }

    /// Returns the event that the step in hand begins: it is understood now, so no capability has a part in it yet.
    pub(super) fn begin_event(&self, request: &str) -> StreamEvent {
        let text = format!("Started: {}", shorten(request, MAX_TEXT_LENGTH));
        StreamEvent { source: ASSISTANT.to_owned(), ..self.event(text) }
    }

    /// Returns the event of the end; `why` is the reason if steps are left that are not done.
    pub(super) fn end_event(&self, why: Option<EndsEarly<'_>>) -> StreamEvent {
        let (done, total) = (self.step_results.len(), self.total_steps);
        let text =
            if done == total { format!("All {total} steps done") } else { format!("{done} of {total} steps done") };
        let decided = why.is_some_and(EndsEarly::is_decision);
        StreamEvent { error: why.map(|why| why.words().to_owned()), decided, complete: true, ..self.event(text) }
    }
}

/// The source of the events about making a plan.
pub(super) const PLANNER: &str = "planner";

/// Joins requests into a single line, shortened.
pub fn requests_in_words(requests: &[String]) -> String {
    let requests: Vec<_> = requests.iter().map(|request| shorten(request, 120)).collect();
    let words = requests.join("; ");
    if words.ends_with(['.', '!', '?', '…']) { words } else { format!("{words}.") }
}
