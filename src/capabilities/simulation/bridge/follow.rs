//! Follows a job until it ends: by its event stream, and by reading its state if the stream ends without a final one.
//!
//! The stream sends nothing while the state stays the same, so proxies may cut it; for an unknown job it is empty and
//! ends at once. Reconnecting is always safe, because the first event is the present state. A job that the bridge no
//! longer knows has ended without a result.

use std::time::Duration;

use serde_json::Value;

use super::{
    client::BridgeClient,
    error::Error,
    job::{Job, JobStatus},
};

/// The maximum time for which one stream is kept open; then it is opened again.
const MAX_OPEN: Duration = Duration::from_secs(15 * 60);
/// The pause after a stream without a final state; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// The maximum number of events that are read from one stream; the bridge sends one for each change of state.
const MAX_EVENTS: usize = 1_000;

impl BridgeClient {
    /// Waits for the end of a job and returns its final state. `tell` is called with each state.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not know the job; [`Error::Auth`], [`Error::Forbidden`] or
    /// [`Error::NoToken`] if it cannot be read. While the bridge cannot be reached, this keeps trying.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the stream; the job continues.
    pub async fn followed(&self, job: &str, tell: &(dyn Fn(&Job) + Send + Sync)) -> Result<Job, Error> {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(Some(ended)) = tokio::time::timeout(MAX_OPEN, self.streamed(job, tell)).await {
                return Ok(ended);
            }
            // Boxed to keep this future small: thousands of them may wait for their streams.
            match Box::pin(self.job(job)).await {
                Ok(found) => {
                    tell(&found);
                    if found.status.is_final() {
                        return Ok(found);
                    }
                }
                Err(error @ (Error::NotFound { .. } | Error::Auth { .. } | Error::Forbidden | Error::NoToken)) => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::info!(job.id = job, %error, "Cannot read the state of a job; trying again later")
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Returns the final state if the stream sends it before it ends.
    async fn streamed(&self, job: &str, tell: &(dyn Fn(&Job) + Send + Sync)) -> Option<Job> {
        let id: String = url::form_urlencoded::byte_serialize(job.as_bytes()).collect();
        let path = format!("/jobs/{id}/events");
        let mut events = Box::pin(self.stream(&path)).await.ok()?;
        for _ in 0..MAX_EVENTS {
            let body: Value = serde_json::from_str(&events.next().await.ok()??).ok()?;
            let found = Job::read(&body).ok().filter(|found| found.id == job)?;
            tell(&found);
            if found.status.is_final() {
                return Some(found);
            }
        }
        None
    }
}

/// Returns the final state for a job that the bridge no longer knows.
pub fn forgotten(job: &str) -> Job {
    Job {
        id: job.to_owned(),
        status: JobStatus::Failed,
        submitted_at: None,
        started_at: None,
        finished_at: None,
        attempts: 0,
        limit_s: None,
        results: None,
        error: Some("The bridge no longer knows this job.".to_owned()),
        cancel_requested: false,
    }
}
