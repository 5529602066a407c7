//! Decides whether the condition of a step holds: code evaluates it on the result of the step
//! before, or the person is asked.

use countersign_capabilities::Registry;
use countersign_planner::{
    condition::{self, Condition, Verdict},
    plan::Step,
};
use serde_json::Value;

/// The decision on a step with a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The step is carried out.
    Do {
        /// The request.
        request: String,
        /// The value in the result because of which the condition holds, if code evaluated one.
        because: Option<String>,
    },
    /// The condition does not hold.
    Stop {
        /// The value in the result because of which the condition does not hold.
        because: String,
    },
    /// Code cannot evaluate the condition, so the person is asked.
    Ask {
        /// The condition.
        condition: String,
        /// The reason.
        because: String,
    },
}

/// The conditions that hold whenever they are evaluated, since a plan continues only after a step
/// that succeeded.
const SUCCEEDED: &[&str] =
    &["it works", "it worked", "that works", "that worked", "it succeeds", "it succeeded", "it went well"];

/// Decides on a step of a plan by the result of the step that its condition looks at.
pub(super) fn decide(registry: &Registry, step: &Step, result: &Value) -> Decision {
    let request = step.task_objective.clone();
    let Some(Condition { words, .. }) = &step.condition else { return Decision::Do { request, because: None } };
    if SUCCEEDED.iter().any(|known| words.eq_ignore_ascii_case(known)) {
        return Decision::Do { request, because: None };
    }
    let by_capability = registry.capabilities.iter().find_map(|capability| capability.verdict(words, result));
    let verdict = by_capability.or_else(|| condition::read(words).map(|comparison| comparison.on(result)));
    match verdict {
        Some(Verdict::Holds(because)) => Decision::Do { request, because: Some(because) },
        Some(Verdict::Fails(because)) => Decision::Stop { because },
        Some(Verdict::CannotTell(because)) => Decision::Ask { condition: words.clone(), because },
        None => {
            let because = "the result doesn't show it".to_owned();
            Decision::Ask { condition: words.clone(), because }
        }
    }
}

/// Parses a person's answer to the question whether the condition of a step holds. Returns `None`
/// if the text is no such answer.
pub(super) fn answer(said: &str) -> Option<bool> {
    let said = said.trim().trim_end_matches(['.', '!']).to_lowercase();
    match said.as_str() {
        "yes" | "y" | "yes, go on" | "yes go on" | "go on" | "yes please" | "it does" | "it is" => Some(true),
        "no" | "n" | "no, stop here" | "stop here" | "don't" | "do not" | "it does not" | "it is not" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decision(step: &str, result: &Value) -> Decision {
        let registry = Registry::default();
        let plan = registry.plan_of(1, &["show it".to_owned(), step.to_owned()]);
        decide(&registry, &plan.steps[1], result)
    }

    #[test]
    fn a_value_in_the_result_decides() {
        let result = json!({ "p_value": 0.4 });
        let request = "start it".to_owned();
        assert_eq!(
            decision("only if the p value is above 0.05, start it", &result),
            Decision::Do { request: request.clone(), because: Some("p value is 0.4".to_owned()) }
        );
        assert_eq!(
            decision("start it only if the p value is below 0.05", &result),
            Decision::Stop { because: "p value is 0.4".to_owned() }
        );
        assert_eq!(decision("start it", &result), Decision::Do { request: request.clone(), because: None });
        assert_eq!(decision("if it worked, start it", &result), Decision::Do { request, because: None });
    }

    #[test]
    fn what_code_cannot_tell_is_asked() {
        let Decision::Ask { condition, .. } = decision("only if it looks nice, start it", &json!({})) else {
            panic!("it is asked");
        };
        assert_eq!(condition, "it looks nice");
    }
}
