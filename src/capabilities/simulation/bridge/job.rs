//! A job of the bridge: a run that continues after the call that started it.

use std::time::Duration;

use countersign_core::clock::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    data::{moment, word},
    error::Error,
};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// It waits for a worker of the bridge.
    Queued,
    /// It is running.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It took longer than its time limit.
    Timeout,
}

impl JobStatus {
    /// Returns true if the state is final.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// Returns the word for this state in replies.
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "canceled",
            Self::Timeout => "timed out",
        }
    }
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The id.
    pub id: String,
    /// The state.
    pub status: JobStatus,
    /// The time it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Timestamp>,
    /// The time its last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The time it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The number of attempts so far.
    #[serde(default)]
    pub attempts: u64,
    /// The time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
    /// The id of its results, once it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// The engine's words, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if its cancellation was requested.
    #[serde(default)]
    pub cancel_requested: bool,
}

impl Job {
    /// Reads a job in any of the forms that the bridge uses.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`] if its id or state cannot be read.
    pub fn read(body: &Value) -> Result<Self, Error> {
        let found = if body["job"].is_object() { &body["job"] } else { body };
        let lacks = |what: &str| Error::Decode { reason: format!("a job has no {what}") };
        let status = serde_json::from_value(found["status"].clone()).map_err(|_| lacks("known status"))?;
        let error = word(&found["error"]["message"]).or_else(|| word(&found["error"]));
        Ok(Self {
            id: word(&found["jobId"]).ok_or_else(|| lacks("id"))?,
            status,
            submitted_at: moment(&found["submittedAt"]).or_else(|| moment(&found["queuedAt"])),
            started_at: moment(&found["startedAt"]),
            finished_at: moment(&found["finishedAt"]),
            attempts: found["attempts"].as_u64().unwrap_or_default(),
            limit_s: found["timeoutSeconds"].as_f64().filter(|limit| *limit >= 1.0).map(|limit| limit as u64),
            results: word(&found["resultHandle"]["resultsId"]).or_else(|| word(&found["resultId"])),
            error: error.map(|text| text.trim_start_matches("InteropError: ").to_owned()),
            cancel_requested: found["cancelRequested"] == true,
        })
    }

    /// Returns the duration of its last attempt, up to `now` if it has not ended.
    pub fn took(&self, now: Timestamp) -> Option<Duration> {
        Some(self.finished_at.unwrap_or(now).since(self.started_at?))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_read_in_each_of_its_forms() {
        let rest = json!({ "jobId": "j", "status": "succeeded", "submittedAt": "2026-11-20T15:42:45.651881+00:00",
            "startedAt": "2026-11-20T15:42:45.700000+00:00", "finishedAt": "2026-11-20T15:42:47.200000+00:00",
            "attempts": 1, "timeoutSeconds": 300.0, "resultHandle": { "resultsId": "run-1" }, "error": null });
        let tool = json!({ "job": { "jobId": "j", "status": "queued", "submittedAt": 1_795_188_941.169, "startedAt": null,
            "resultId": null, "cancelRequested": true, "timeoutSeconds": 300.0, "error": null } });
        let event = json!({ "jobId": "j", "status": "failed", "resultId": null,
            "error": { "message": "InteropError: solver did not converge" } });
        let read = Job::read(&rest).unwrap();
        assert_eq!(
            (read.status, read.results.as_deref(), read.limit_s),
            (JobStatus::Succeeded, Some("run-1"), Some(300))
        );
        assert_eq!(read.took(Timestamp(0)), Some(Duration::from_millis(1_500)));
        let read = Job::read(&tool).unwrap();
        assert_eq!((read.status, read.cancel_requested), (JobStatus::Queued, true));
        assert_eq!(read.submitted_at, Some(Timestamp(1_795_188_941_169)));
        assert_eq!(Job::read(&event).unwrap().error.as_deref(), Some("solver did not converge"));
        assert!(Job::read(&json!({ "jobId": "j", "status": "paused" })).is_err());
    }
}
