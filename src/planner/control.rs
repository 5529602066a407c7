//! The counters, limits and errors that determine how a plan continues.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use countersign_graph::retry::RetryPolicy;
use serde::{Deserialize, Serialize};

/// The counters of one turn. A new message sets them to zero; an answer to a card does not change them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    /// The number of plans made.
    pub plans_created: u32,
    /// The number of classifications that were repeated because of an error.
    pub reclassifications: u32,
    /// The number of consecutive failures of the current step.
    pub failures: u32,
    /// The error of the last step; `None` after a success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    /// The reason why the turn was stopped, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The time at which the first step began.
    pub started_at: Timestamp,
    /// The number of nodes that ran.
    pub nodes: u32,
}

impl Control {
    /// Counts a new plan, and clears the error of the one before.
    pub fn plan_created(&mut self) {
        self.plans_created += 1;
        self.succeeded();
    }

    /// Counts a classification that was repeated because of an error, and clears that error.
    pub fn reclassified(&mut self) {
        self.reclassifications += 1;
        self.succeeded();
    }

    /// Notes a success, which clears the failures before it.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.error = None;
    }

    /// Notes a failure.
    pub fn failed(&mut self, error: StepError) {
        self.failures += 1;
        self.error = Some(error);
    }

    /// Stops the turn: no further step begins. Only the first reason is kept.
    pub fn stop(&mut self, reason: &str) {
        self.stopped.get_or_insert_with(|| reason.to_owned());
    }

    /// Stops the turn if it has reached the limit of its time or of its nodes, and returns that limit.
    pub fn enforce(&mut self, limits: &Limits, now: Timestamp) -> Option<Reached> {
        let reached = if now.since(self.started_at) >= limits.run_time {
            Reached::RunTime(limits.run_time)
        } else if self.nodes >= limits.nodes {
            Reached::Nodes(limits.nodes)
        } else {
            return None;
        };
        self.stop(&reached.to_string());
        Some(reached)
    }
}

/// The limits of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of plans.
    pub plans: u32,
    /// The maximum number of classifications that are repeated because of an error.
    pub reclassifications: u32,
    /// The maximum time from the first step to the end, without the time in which a person is asked.
    pub run_time: Duration,
    /// The maximum number of nodes that run.
    pub nodes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { plans: 2, reclassifications: 1, run_time: Duration::from_secs(300), nodes: 100 }
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reached {
    /// [`Limits::run_time`].
    #[error("it took longer than {} s", .0.as_secs())]
    RunTime(Duration),
    /// [`Limits::nodes`].
    #[error("it took more than {0} steps of work")]
    Nodes(u32),
}

/// The error of a step, as plain data: it is stored with the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepError {
    /// The capability or the node that failed; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The severity.
    pub severity: Severity,
    /// The message for people.
    pub user_message: String,
    /// The cause, for the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// The policy for further attempts.
    #[serde(default)]
    pub retry: RetryPolicy,
}

/// The consequence of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The same step may succeed the next time, such as after a time-out or a lost connection.
    Retriable,
    /// The plan is wrong: an input is missing, or the approach cannot work.
    Replanning,
    /// The choice of capabilities is wrong.
    Reclassification,
    /// The step cannot succeed: a permission is missing, or the configuration is wrong. Also for errors of an unknown
    /// kind.
    #[default]
    Critical,
    /// The system itself is at fault.
    Fatal,
}
