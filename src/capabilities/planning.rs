//! Plans of the requests in a message: the capability of each step, and the results of earlier steps that it needs.

use countersign_planner::{
    condition::Condition,
    plan::{Input, Plan, Step},
};
use countersign_understanding::conditions::split;

use super::Registry;

/// The capability name in a plan for steps that no phrase assigns to a capability. The assistant interprets them when
/// they are due.
pub const ASSISTANT: &str = "assistant";

/// The words that refer to something mentioned before.
const BACK_REFERENCES: &[&str] = &["it", "its", "that", "this", "them", "they", "these", "those"];

impl Registry {
    /// Returns the plan of these requests, before [`Plan::checked`]. A request with “it” needs the latest step before
    /// it that names something or changes something; a condition looks at the step just before it. The keys begin with
    /// `turn`, so that no two plans of a thread share one.
    pub fn plan_of(&self, turn: u64, requests: &[String]) -> Plan {
        let order: Vec<usize> = (0..requests.len()).collect();
        self.plan_in_order(turn, requests, &order)
    }

    /// Returns the plan of the requests with these indices, in this order. The “it” of a step refers to the latest request
    /// before it to which an “it” can refer. If there is none, the step needs the first such request that now comes
    /// later, or else the first of all, which is left out. A condition keeps the request that it looks at.
    pub fn plan_in_order(&self, turn: u64, requests: &[String], order: &[usize]) -> Plan {
        let whole = self.linked(turn, requests);
        let mut steps: Vec<Step> = Vec::new();
        for (step, _) in order.iter().filter_map(|index| whole.get(*index)) {
            let is_done = |(before, is_subject): &&(Step, bool)| {
                *is_subject && steps.iter().any(|step| step.context_key == before.context_key)
            };
            let mut step = step.clone();
            if !step.inputs.is_empty() {
                let mut chosen = whole.iter().enumerate().filter(|(at, _)| order.contains(at)).map(|(_, step)| step);
                let subject = whole.iter().rev().find(is_done);
                let subject = subject.or_else(|| chosen.find(|(other, is_subject)| *is_subject && *other != step));
                let subject = subject.or_else(|| whole.iter().find(|(_, is_subject)| *is_subject));
                step.inputs = subject.and_then(|(subject, _)| input_from(subject)).into_iter().collect();
            }
            steps.push(step);
        }
        Plan { steps }
    }

    /// Returns the steps of these requests in their own order; `true` for a step to which a later “it” may refer.
    fn linked(&self, turn: u64, requests: &[String]) -> Vec<(Step, bool)> {
        let mut steps: Vec<(Step, bool)> = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            let words = split(request);
            let calls = self.calls_of(words.request);
            let owner = calls.iter().find_map(|call| self.owner_of(call));
            let capability = owner.map_or(ASSISTANT, |owner| owner.name()).to_owned();
            let call = calls.into_iter().find(|name| self.is_known(name));
            let condition = words.condition.map(|words| Condition {
                on: steps.last().map(|(before, _)| before.context_key.clone()).unwrap_or_default(),
                words: words.to_owned(),
            });
            let subject = steps.iter().rev().find(|(_, is_subject)| *is_subject);
            let subject = subject.filter(|_| points_back(words.request));
            let inputs: Vec<Input> = subject.and_then(|(subject, _)| input_from(subject)).into_iter().collect();
            let changes = call.as_deref().is_some_and(|name| self.actions.contains_key(name));
            let names_something = self.names_in(words.request).iter().any(|name| name.subject);
            let is_subject = call.is_some() && (names_something || (changes && inputs.is_empty()));
            let step = Step {
                context_key: format!("{turn}_{index}_{capability}"),
                capability: Some(capability),
                task_objective: words.request.to_owned(),
                expected_output: call.map(|name| name.to_uppercase()),
                inputs,
                condition,
                ..Step::default()
            };
            steps.push((step, is_subject));
        }
        steps
    }

    /// Returns true if a step of a plan can have this capability.
    pub fn carries_out(&self, capability: &str) -> bool {
        capability == ASSISTANT || self.capabilities.iter().any(|known| known.name() == capability)
    }

    /// Returns true if a tool or an action has this name.
    fn is_known(&self, name: &str) -> bool {
        self.tools.contains_key(name) || self.actions.contains_key(name)
    }
}

/// Returns the result of a step as an input of another one.
fn input_from(step: &Step) -> Option<Input> {
    Some(Input { kind: step.expected_output.clone()?, key: step.context_key.clone() })
}

/// Returns true if a request refers to something mentioned before.
fn points_back(request: &str) -> bool {
    let words = request.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.map(str::to_lowercase).any(|word| BACK_REFERENCES.contains(&word.as_str()))
}
