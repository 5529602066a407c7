//! A plan: its steps, and the checks before it is used.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::Condition;

/// The step that answers the person.
pub const RESPOND: &str = "respond";
/// The step that asks the person a question.
pub const CLARIFY: &str = "clarify";

/// Several steps, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The key under which the result is kept, unique in the plan.
    pub context_key: String,
    /// The capability that carries out the step; `None` if the step answers the person.
    pub capability: Option<String>,
    /// The request, complete in itself.
    pub task_objective: String,
    /// The criterion for its success, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub success_criteria: String,
    /// The context type of the result; `None` if nothing is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<String>,
    /// The parameters that are known before it begins: text and numbers.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// The results that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// The condition under which it is carried out; `None` if it always is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A result that a step needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Input {
    /// The context type, such as `BALANCE`.
    pub kind: String,
    /// The key.
    pub key: String,
}

impl Step {
    /// Returns true for the steps that end a plan.
    fn is_final(&self) -> bool {
        matches!(self.capability.as_deref(), None | Some(RESPOND | CLARIFY))
    }
}

/// A fault of a plan that cannot be repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A capability does not exist; another choice of capabilities may help.
    #[error("step {step} needs `{capability}`, which does not exist")]
    UnknownCapability {
        /// The number of the step, counted from 1.
        step: usize,
        /// The capability.
        capability: String,
    },
    /// Two steps keep their results under one key.
    #[error("steps {first} and {second} both keep their result as `{key}`")]
    KeyUsedTwice {
        /// The number of the first step.
        first: usize,
        /// The number of the second one.
        second: usize,
        /// The key.
        key: String,
    },
    /// A result is needed that neither exists nor is made by an earlier step.
    #[error("step {step} needs `{key}` of type `{kind}`, which no earlier step makes")]
    MissingInput {
        /// The number of the step.
        step: usize,
        /// The context type.
        kind: String,
        /// The key.
        key: String,
    },
    /// A condition looks at a result that no earlier step makes.
    #[error("step {step} depends on `{key}`, which no earlier step makes")]
    MissingCondition {
        /// The number of the step.
        step: usize,
        /// The key.
        key: String,
    },
    /// The person is answered before the last step.
    #[error("step {step} ends the plan, but more steps follow")]
    EndsEarly {
        /// The number of the step.
        step: usize,
    },
}

impl Plan {
    /// Checks and repairs the plan. If its last step does not end it, a step that answers the person is added. A step
    /// without a key gets `<index>_<capability>`. `known` returns true for the name of a capability; `existing` are the
    /// results of earlier turns.
    ///
    /// # Errors
    ///
    /// Fails with the first [`Fault`] that cannot be repaired.
    pub fn checked(mut self, known: &dyn Fn(&str) -> bool, existing: &[Input]) -> Result<Self, Fault> {
        for (index, step) in self.steps.iter_mut().enumerate() {
            if step.context_key.is_empty() {
                step.context_key = format!("{index}_{}", step.capability.as_deref().unwrap_or(RESPOND));
            }
        }
        if !self.steps.last().is_some_and(Step::is_final) {
            let context_key = format!("{}_{RESPOND}", self.steps.len());
            self.steps.push(Step { context_key, capability: Some(RESPOND.to_owned()), ..Step::default() });
        }
        self.find_fault(known, existing).map_or(Ok(self), Err)
    }

    /// Returns the first fault, in the order of the steps.
    fn find_fault(&self, known: &dyn Fn(&str) -> bool, existing: &[Input]) -> Option<Fault> {
        let mut made: BTreeSet<Input> = existing.iter().cloned().collect();
        let count = self.steps.len();
        for (index, step) in self.steps.iter().enumerate() {
            let number = index + 1;
            if step.is_final() && number < count {
                return Some(Fault::EndsEarly { step: number });
            }
            match &step.capability {
                Some(capability) if !step.is_final() && !known(capability) => {
                    return Some(Fault::UnknownCapability { step: number, capability: capability.clone() });
                }
                _ => {}
            }
            if let Some(first) = self.steps[..index].iter().position(|other| other.context_key == step.context_key) {
                let key = step.context_key.clone();
                return Some(Fault::KeyUsedTwice { first: first + 1, second: number, key });
            }
            if let Some(Input { kind, key }) = step.inputs.iter().find(|input| !made.contains(input)) {
                return Some(Fault::MissingInput { step: number, kind: kind.clone(), key: key.clone() });
            }
            if let Some(condition) = &step.condition
                && !self.steps[..index].iter().any(|other| other.context_key == condition.on)
            {
                return Some(Fault::MissingCondition { step: number, key: condition.on.clone() });
            }
            if let Some(kind) = &step.expected_output {
                made.insert(Input { kind: kind.clone(), key: step.context_key.clone() });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(key: &str, capability: &str) -> Step {
        Step { context_key: key.to_owned(), capability: Some(capability.to_owned()), ..Step::default() }
    }

    fn checked(steps: Vec<Step>) -> Result<Plan, Fault> {
        Plan { steps }.checked(&|name| name == "weather", &[])
    }

    #[test]
    fn a_plan_without_steps_answers() {
        let plan = checked(Vec::new()).unwrap();
        assert_eq!(plan.steps.len(), 1);
        assert_eq!(plan.steps[0].capability.as_deref(), Some(RESPOND));
    }

    #[test]
    fn the_end_is_added() {
        let plan = checked(vec![step("w", "weather")]).unwrap();
        assert_eq!(plan.steps[1].capability.as_deref(), Some(RESPOND));
        let asks = checked(vec![step("w", "weather"), step("q", CLARIFY)]).unwrap();
        assert_eq!(asks.steps.len(), 2);
    }

    #[test]
    fn a_missing_key_is_added() {
        let plan = checked(vec![step("", "weather"), step("", "weather")]).unwrap();
        let keys: Vec<_> = plan.steps.iter().map(|step| step.context_key.as_str()).collect();
        assert_eq!(keys, ["0_weather", "1_weather", "2_respond"]);
    }

    #[test]
    fn faults_are_named() {
        let words = |steps| checked(steps).unwrap_err().to_string();
        assert_eq!(words(vec![step("g", "ghost")]), "step 1 needs `ghost`, which does not exist");
        assert_eq!(
            words(vec![step("w", "weather"), step("w", "weather")]),
            "steps 1 and 2 both keep their result as `w`"
        );
        assert_eq!(
            words(vec![step("r", RESPOND), step("w", "weather")]),
            "step 1 ends the plan, but more steps follow"
        );
        let input = Input { kind: "RAIN".to_owned(), key: "w".to_owned() };
        let needs = Step { inputs: vec![input], ..step("v", "weather") };
        assert_eq!(
            words(vec![step("w", "weather"), needs.clone()]),
            "step 2 needs `w` of type `RAIN`, which no earlier step makes"
        );
        let makes = Step { expected_output: Some("RAIN".to_owned()), ..step("w", "weather") };
        assert!(checked(vec![makes, needs]).is_ok());
        let condition = Some(Condition { on: "x".to_owned(), words: "it rains".to_owned() });
        let depends = Step { condition, ..step("w", "weather") };
        assert_eq!(words(vec![depends]), "step 1 depends on `x`, which no earlier step makes");
    }
}
