//! Another plan after one that ended early: a person refused it for a reason, a step failed, or a condition was false.
//!
//! The reason is the input of exactly one other plan; [`routing::next`] holds the limit of plans. The other plan is made
//! first and then shown on a card, whatever its steps do: nothing is said about it before it exists. Without a language
//! model, only a reason that corrects the refused plan leads to one, such as “without step 2”.

use countersign_core::clock::Timestamp;
use countersign_graph::{
    action::ActionRecord,
    node::{Said, State as _},
    retry::RetryPolicy,
};
use countersign_planner::{
    control::{Control, Limits, Severity, StepError},
    routing::{self, Next},
};
use countersign_understanding::situation::Replan;

use super::{
    history::shorten,
    plan::{PLANNER, Plan},
    state::AgentState,
};

/// The maximum length of a reason, in characters.
const MAX_REASON_LENGTH: usize = 600;

/// The kinds of problems with which a step may succeed the next time.
const TRANSIENT: &[&str] = &["network", "api"];

/// The kinds of problems that show that the plan cannot work as it is.
const WRONG_PLAN: &[&str] = &["validation", "not_found", "user_input", "execution", "already"];

/// Returns the severity of a failed step by the kind of its problem.
pub(super) fn severity_of(kind: &str) -> Severity {
    match kind {
        kind if TRANSIENT.contains(&kind) => Severity::Retriable,
        kind if WRONG_PLAN.contains(&kind) => Severity::Replanning,
        _ => Severity::Critical,
    }
}

impl AgentState {
    /// Returns the decision on what follows a plan that was refused for a reason.
    pub(super) fn after_refused_plan(&self, reason: &str, limits: &Limits) -> Next {
        let mut control = Control { plans_created: self.turned_down_plans, ..Control::default() };
        control.failed(StepError {
            failed: Some(PLANNER.to_owned()),
            severity: Severity::Replanning,
            user_message: reason.to_owned(),
            cause: "refused".to_owned(),
            retry: RetryPolicy::OF_CAPABILITY,
        });
        routing::next(&routing::Turn {
            control: &control,
            limits,
            task: Some(reason),
            is_classified: true,
            plan: None,
            step: 0,
            known: &|_| true,
        })
        .unwrap_or(Next::Error)
    }

    /// Begins a turn that makes another plan instead of the refused one on this card. `zone` is that of the person who
    /// asked for it.
    pub(super) fn begin_other_plan(
        &mut self,
        refused: &ActionRecord,
        reason: &str,
        zone: Option<String>,
        now: Timestamp,
    ) {
        let plans_created = self.turned_down_plans;
        self.begin_turn(&Said {
            by: refused.requested_by.clone(),
            text: reason.to_owned(),
            at: now,
            ts: None,
            zone,
            request: None,
        });
        self.turn.plans_created = plans_created;
        self.turn.plan_first = true;
        self.turn.replan = Some(Replan { reason: shorten(reason, MAX_REASON_LENGTH), ..Replan::default() });
    }

    /// Begins a turn that makes another plan instead of one that ended early.
    pub(super) fn begin_plan_after(&mut self, ended: &Plan, reason: &str, now: Timestamp) {
        let result = |step: &super::plan::StepResult| format!("{} → {}", step.request, step.result);
        let replan = Replan {
            reason: shorten(reason, MAX_REASON_LENGTH),
            done: ended.step_results.iter().map(result).collect(),
            not_done: ended.undone(),
        };
        self.begin_step(self.present_turn(), ended.asked.clone(), now);
        self.turn.zone = ended.zone.clone().or_else(|| self.turn.zone.take());
        if !ended.heard.is_empty() {
            (self.turn.heard, self.turn.is_of_model) = (ended.heard.clone(), false); // the words are those of the message
        }
        self.turn.plans_created = ended.control.plans_created;
        self.turn.replan = Some(replan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_plan_is_made_again_once_unasked() {
        let limits = Limits::default();
        let after =
            |plans| AgentState { turned_down_plans: plans, ..AgentState::default() }.after_refused_plan("no", &limits);
        assert_eq!((after(1), after(2)), (Next::Plan, Next::Error));
    }
}
