//! `cancel_job`: cancels a run at the bridge.

use async_trait::async_trait;
use countersign_capabilities::parameters::{non_blank, parameters, refused, schema};
use countersign_core::reply::{Card, Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Reader,
    Recovery, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{after_error, approved, cannot_read_back, fact, in_flight, stored, unread};
use crate::{
    Deps,
    bridge::{error::Error, job::JobStatus},
    find,
    replies::{answers, errors},
};

/// The name of the action.
pub const NAME: &str = "cancel_job";

/// The action `cancel_job`.
#[derive(Debug)]
pub struct CancelJob(pub Deps);

/// The parameters of the action.
#[derive(Deserialize, JsonSchema)]
struct Given {
    /// The id of the job. Default: the newest.
    #[serde(default)]
    job: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Cancel {
    job: String,
}

#[async_trait]
impl ActionKind for CancelJob {
    fn info(&self) -> ActionInfo {
        ActionInfo::new(
            NAME,
            "Cancels a job at the simulation bridge. Only when someone asks to cancel a job or a run.",
        )
    }

    fn schema(&self) -> Value {
        schema::<Given>()
    }

    async fn prepare(&self, given_parameters: &Value, _: Option<&Reader>) -> Result<Proposal, PrepareError> {
        let deps = &self.0;
        let given: Given = parameters(given_parameters)?;
        let newest = || deps.memory.runs().into_iter().next().map(|run| run.job);
        let Some(id) = non_blank(given.job.as_ref()).map(str::to_owned).or_else(newest) else {
            return Err(refused(ErrorKind::NotFound, answers::no_job()));
        };
        let job = deps.client.job(&id).await.map_err(|error| match error {
            Error::NotFound { .. } => refused(ErrorKind::NotFound, answers::unknown_job(&id)),
            error => find::unavailable(&error),
        })?;
        if job.status.is_final() {
            let run = deps.memory.runs().into_iter().find(|run| run.job == id);
            let reply = has_ended(&id, run.as_ref().map(|run| run.simulation.as_str()), job.status);
            return Err(refused(ErrorKind::Validation, reply));
        }
        let notes = match job.status {
            JobStatus::Running => {
                vec![Text::from("The engine finishes its current step first, then the results are discarded.")]
            }
            _ => Vec::new(),
        };
        let card = Card {
            title: "Cancel this job?".to_owned(),
            facts: vec![fact("Job", Text::new().code(&id)), fact("State", job.status.word())],
            warnings: vec![Text::from("A canceled run has no results.")],
            notes,
            approve: "Cancel job".to_owned(),
            reject: Card::REJECT.to_owned(),
            done: "Canceled the job.".to_owned(),
            ..Card::default()
        };
        Ok(Proposal {
            parameters: json!(Cancel { job: id.clone() }),
            preconditions: json!({ "is_over": false }),
            card,
            undo: None,
            scope: Scope::of(format!("job:{id}")),
        })
    }

    async fn preconditions(&self, record: &ActionRecord) -> Result<Value, Outcome> {
        let cancel: Cancel = stored(record)?;
        let job = self.0.client.job(&cancel.job).await.map_err(|error| unread(&self.0, "", &error))?;
        match job.status.is_final() {
            false => Ok(json!({ "is_over": false })),
            true => Err(Outcome::Failed {
                error: ErrorKind::Execution,
                summary: Text::from(format!("The job had {} before it could be canceled.", participle(job.status))),
            }),
        }
    }

    async fn perform(&self, record: &ActionRecord) -> Performed {
        let (cancel, confirmed): (Cancel, _) = match approved(record) {
            Ok(approved) => approved,
            Err(outcome) => return Performed::Ended(outcome),
        };
        match self.0.client.cancel(&cancel.job, &confirmed).await {
            Ok(job) => Performed::Ended(done(&cancel, job.status)),
            Err(error) => after_error(self, record, &self.0, "", error).await,
        }
    }

    fn recovery(&self) -> Recovery {
        Recovery::Probe { in_flight: in_flight(&self.0), repeatable: true }
    }

    async fn probe(&self, record: &ActionRecord) -> Probed {
        let Ok(cancel) = stored::<Cancel>(record) else {
            return Probed::CannotTell { evidence: Text::from("The stored request can't be read.") };
        };
        match self.0.client.job(&cancel.job).await {
            Ok(job) if job.status == JobStatus::Cancelled || job.cancel_requested => {
                Probed::Happened(done(&cancel, job.status))
            }
            Ok(job) if job.status.is_final() => {
                Probed::Otherwise { evidence: Text::from(format!("The job has {}.", participle(job.status))) }
            }
            Ok(_) => Probed::DidNotHappen,
            Err(error @ Error::Unavailable { .. }) => Probed::CannotTell {
                evidence: Text::from(format!(
                    "{} Canceling a queued job can block a bridge with a queueing scheduler; its operator may have to restart it.",
                    errors::fact(&error)
                )),
            },
            Err(error) => cannot_read_back(&error),
        }
    }
}

/// Says that a job has ended, so that it cannot be canceled. The button to cancel it stays on older messages.
fn has_ended(job: &str, simulation: Option<&str>, status: JobStatus) -> Reply {
    let subject = match simulation {
        Some(simulation) => Text::from("The run of ").bold(simulation),
        None => Text::from("Job ").code(job),
    };
    Reply::text(subject.plain(format!(" has {}, so there is nothing to cancel.", participle(status))))
}

fn participle(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Cancelled => "been canceled",
        JobStatus::Timeout => "timed out",
        JobStatus::Queued | JobStatus::Running | JobStatus::Succeeded | JobStatus::Failed => status.word(),
    }
}

fn done(cancel: &Cancel, status: JobStatus) -> Outcome {
    let summary = match status {
        JobStatus::Running | JobStatus::Queued => {
            "Asked the bridge to cancel the job. It ends when the engine has finished its current step."
        }
        JobStatus::Cancelled => "Canceled the job.",
        JobStatus::Succeeded | JobStatus::Failed | JobStatus::Timeout => {
            "The job had ended before it could be canceled."
        }
    };
    Outcome::Done { result: json!({ "job": cancel.job, "status": status }), summary: Text::from(summary) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_button_of_an_ended_job_says_that_it_has_ended() {
        assert_eq!(
            has_ended("j-1", Some("demo"), JobStatus::Succeeded).words(),
            "The run of demo has succeeded, so there is nothing to cancel."
        );
        assert_eq!(
            has_ended("j-1", None, JobStatus::Timeout).words(),
            "Job j-1 has timed out, so there is nothing to cancel."
        );
    }
}
