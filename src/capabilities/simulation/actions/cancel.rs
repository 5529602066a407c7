//! `cancel_job`: cancels a run at the bridge.

use std::sync::Arc;

use countersign_capabilities::{
    parameters::{non_blank, refused},
    rows::Change,
};
use countersign_core::reply::{Card, Fact, Reply, Text};
use countersign_graph::action::{
    ActionInfo, ActionKind, ActionRecord, ErrorKind, Outcome, Performed, PrepareError, Probed, Proposal, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Action, cannot_read_back, failed, read_back, sent, unread};
use crate::{
    Deps,
    bridge::{error::Error, job::JobStatus},
    replies::{answers, errors},
};

/// The name of the action.
pub const NAME: &str = "cancel_job";

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

/// Returns the action `cancel_job`.
pub(crate) fn action(deps: Deps) -> Arc<dyn ActionKind> {
    let info = ActionInfo::new(
        NAME,
        "Cancels a job at the simulation bridge. Only when someone asks to cancel a job or a run.",
    );
    Arc::new(Change {
        now: |row, cancel, record| Box::pin(now(&row.deps, cancel, record)),
        settle: read_back(|row, cancel, _| Box::pin(probe(&row.deps, cancel))),
        ..Change::new(
            deps,
            info,
            |row, asked, _| Box::pin(prepare(&row.deps, asked)),
            |row, cancel, record| Box::pin(send(row, cancel, record)),
        )
    })
}

async fn prepare(deps: &Deps, asked: Given) -> Result<Proposal, PrepareError> {
    let newest = || deps.memory.runs().into_iter().next().map(|run| run.job);
    let Some(id) = non_blank(asked.job.as_ref()).map(str::to_owned).or_else(newest) else {
        return Err(refused(ErrorKind::NotFound, answers::no_job()));
    };
    let job = deps.client.job(&id).await.map_err(|error| match error {
        Error::NotFound { .. } => refused(ErrorKind::NotFound, answers::unknown_job(&id)),
        error => error.into(),
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
        facts: vec![Fact::new("Job", Text::new().code(&id)), Fact::new("State", job.status.word())],
        warnings: vec![Text::from("A canceled run has no results.")],
        notes,
        ..Card::new("Cancel this job?", "Cancel job", "Canceled the job.")
    };
    Ok(Proposal {
        preconditions: json!({ "is_over": false }),
        scope: Scope::of(format!("job:{id}")),
        ..Proposal::new(Cancel { job: id }, card)
    })
}

async fn now(deps: &Deps, cancel: Cancel, record: &ActionRecord) -> Result<Value, Outcome> {
    let job = deps.client.job(&cancel.job).await.map_err(|error| unread(deps, record, &error))?;
    match job.status.is_final() {
        false => Ok(json!({ "is_over": false })),
        true => {
            let summary = format!("The job had {} before it could be canceled.", participle(job.status));
            Err(failed(ErrorKind::Execution, summary))
        }
    }
}

async fn send(row: &Action<Given, Cancel>, cancel: Cancel, record: &ActionRecord) -> Performed {
    let call = |confirmed| async move {
        let job = row.deps.client.cancel(&cancel.job, &confirmed).await?;
        Ok(done(&cancel, job.status))
    };
    sent(row, record, call).await
}

async fn probe(deps: &Deps, cancel: Cancel) -> Probed {
    match deps.client.job(&cancel.job).await {
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
