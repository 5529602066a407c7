//! The decision on how a turn with a plan continues, by the first rule that applies.

use std::time::Duration;

use super::{
    control::{Control, Limits, Severity, StepError},
    plan::{CLARIFY, Plan, RESPOND},
};

/// The part of a turn's state that determines how the turn continues.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The counters and the last error.
    pub control: &'a Control,
    /// The limits.
    pub limits: &'a Limits,
    /// The person's task; `None` before it is extracted.
    pub task: Option<&'a str>,
    /// True if capabilities were chosen for the task.
    pub is_classified: bool,
    /// The plan, if there is one.
    pub plan: Option<&'a Plan>,
    /// The index of the current step.
    pub step: usize,
    /// Returns true for the name of a capability.
    pub known: &'a dyn Fn(&str) -> bool,
}

/// The continuation of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The same capability or node runs again, after a wait.
    Again {
        /// The capability or the node that failed.
        failed: String,
        /// The wait.
        after: Duration,
    },
    /// The task is extracted.
    Extract,
    /// Capabilities are chosen.
    Classify,
    /// A plan is made.
    Plan,
    /// The current step is carried out by this capability.
    Step(String),
    /// The current step needs this capability, which does not exist.
    Missing(String),
    /// The person is answered or asked a question, by the step with this name.
    Respond(String),
    /// The turn ends with its error.
    Error,
}

/// The current step is past the end of the plan: the caller did not end the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step} of a plan of {count} steps")]
pub struct PastTheEnd {
    /// The index of the current step.
    pub step: usize,
    /// The number of steps.
    pub count: usize,
}

/// Decides how the turn continues.
///
/// # Errors
///
/// Fails with [`PastTheEnd`] if the plan has no current step.
pub fn next(turn: &Turn<'_>) -> Result<Next, PastTheEnd> {
    if turn.control.stopped.is_some() {
        return Ok(Next::Error);
    }
    if let Some(error) = &turn.control.error {
        return Ok(after_error(turn, error));
    }
    if turn.task.is_none_or(str::is_empty) {
        return Ok(Next::Extract);
    }
    if !turn.is_classified {
        return Ok(Next::Classify);
    }
    let Some(plan) = turn.plan else { return Ok(Next::Plan) };
    let count = plan.steps.len();
    let step = plan.steps.get(turn.step).ok_or(PastTheEnd { step: turn.step, count })?;
    Ok(match step.capability.as_deref() {
        None => Next::Respond(RESPOND.to_owned()),
        Some(last @ (RESPOND | CLARIFY)) => Next::Respond(last.to_owned()),
        Some(capability) if (turn.known)(capability) => Next::Step(capability.to_owned()),
        Some(missing) => Next::Missing(missing.to_owned()),
    })
}

/// Decides how the turn continues after an error.
fn after_error(turn: &Turn<'_>, error: &StepError) -> Next {
    let Control { failures, plans_created, reclassifications, .. } = *turn.control;
    match (error.severity, &error.failed) {
        (Severity::Retriable, Some(failed)) if error.retry.allows(failures) => {
            Next::Again { failed: failed.clone(), after: error.retry.wait(failures) }
        }
        (Severity::Replanning, _) if plans_created < turn.limits.plans => Next::Plan,
        (Severity::Reclassification, _) if reclassifications < turn.limits.reclassifications => Next::Classify,
        _ => Next::Error,
    }
}

#[cfg(test)]
mod tests {
    use countersign_graph::retry::RetryPolicy;
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::plan::Step;

    /// The cases in which the decision differs on purpose, with the reason.
    const DIFFERS: &[(&str, &str)] = &[
        ("killed and error: error handling comes first", "no step begins after a stop"),
        ("index past the end", "an error of the caller, not an exception"),
    ];

    #[derive(Deserialize)]
    struct Vector {
        case: String,
        state: Value,
        #[serde(rename = "v0.8.5")]
        expected: Value,
    }

    /// Reads the state of a vector into the types of this crate.
    fn decide(state: &Value) -> Result<Next, PastTheEnd> {
        let count = |name: &str| u32::try_from(state[name].as_u64().unwrap_or(0)).unwrap();
        let error = (state["control_has_error"] == true).then(|| {
            let info = &state["control_error_info"];
            let name = info["capability_name"].as_str().or(info["node_name"].as_str());
            let policy = &info["retry_policy"];
            let usual = RetryPolicy::default();
            let attempts = policy["max_attempts"].as_u64().map_or(usual.attempts, |n| u32::try_from(n).unwrap());
            let delay = policy["delay_seconds"].as_f64().map_or(usual.delay, Duration::from_secs_f64);
            let factor = policy["backoff_factor"].as_f64().unwrap_or(usual.factor);
            StepError {
                failed: name.map(str::to_owned),
                severity: serde_json::from_value(info["severity"].clone()).unwrap_or_default(),
                user_message: String::new(),
                cause: String::new(),
                retry: RetryPolicy { attempts, delay, factor },
            }
        });
        let control = Control {
            plans_created: count("control_plans_created_count"),
            reclassifications: count("control_reclassification_count"),
            failures: count("control_retry_count"),
            error,
            stopped: (state["control_is_killed"] == true).then(|| "stopped".to_owned()),
            ..Control::default()
        };
        let plan = state["planning_execution_plan"]["steps"].as_array().map(|steps| Plan {
            steps: steps.iter().map(|step| serde_json::from_value::<Step>(step.clone()).unwrap()).collect(),
        });
        next(&Turn {
            control: &control,
            limits: &Limits::default(),
            task: state["task_current_task"].as_str(),
            is_classified: state["planning_active_capabilities"].as_array().is_some_and(|chosen| !chosen.is_empty()),
            plan: plan.as_ref(),
            step: count("planning_current_step_index") as usize,
            known: &|name| ["weather", "mailer"].contains(&name),
        })
    }

    #[test]
    fn decides_like_the_vectors() {
        let vectors: Vec<Vector> =
            serde_json::from_str(include_str!("../../tests/fixtures/agent-state/routing-vectors.json")).unwrap();
        assert_eq!(vectors.len(), 32);
        let mut differing = Vec::new();
        for Vector { case, state, expected } in vectors {
            let (name, wait) = match decide(&state) {
                Ok(Next::Again { failed, after }) => (failed, after.as_secs_f64()),
                Ok(Next::Extract) => ("task_extraction".to_owned(), 0.0),
                Ok(Next::Classify) => ("classifier".to_owned(), 0.0),
                Ok(Next::Plan) => ("orchestrator".to_owned(), 0.0),
                Ok(Next::Step(capability) | Next::Respond(capability)) => (capability, 0.0),
                Ok(Next::Error | Next::Missing(_)) => ("error".to_owned(), 0.0),
                Err(PastTheEnd { .. }) => ("past the end".to_owned(), 0.0),
            };
            if expected["next"] != name.as_str() || expected["delaySeconds"] != wait {
                differing.push(case);
            }
        }
        assert_eq!(differing, DIFFERS.iter().map(|(case, _)| *case).rev().collect::<Vec<_>>());
    }

    #[test]
    fn no_step_begins_after_a_stop() {
        let mut control = Control::default();
        control.stop("by a person");
        control.stop("later");
        assert_eq!(control.stopped.as_deref(), Some("by a person"));
        let turn = Turn {
            control: &control,
            limits: &Limits::default(),
            task: Some("t"),
            is_classified: true,
            plan: None,
            step: 0,
            known: &|_| true,
        };
        assert_eq!(next(&turn), Ok(Next::Error));
    }
}
