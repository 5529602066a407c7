//! Following a job until it ends: by its event stream, and by asking where the stream ends without a final state.
//!
//! The stream sends nothing while the state stays the same, so proxies cut it; and it ends at once, empty, for an
//! unknown job. Connecting again is always safe, as the first event is the present state. A job that the bridge does not
//! know any more has ended, without a result.

use std::time::Duration;

use serde_json::Value;

use super::{
    client::BridgeClient,
    error::Error,
    job::{Job, JobStatus},
};

/// The longest time for which one stream is held open; then it is opened again.
const HELD: Duration = Duration::from_secs(15 * 60);
/// The wait before asking again after a stream without a final state; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The most events of one stream; the bridge sends one for each change of state.
const MOST_EVENTS: usize = 1_000;

impl BridgeClient {
    /// Returns the final state of a job, once it has ended. `tell` hears of each state on the way.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if the bridge does not know the job, and [`Error::Auth`], [`Error::Forbidden`] if it does not
    /// let us look. While the bridge cannot be reached, this waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the stream; the job goes on.
    pub async fn followed(&self, job: &str, tell: &(dyn Fn(&Job) + Send + Sync)) -> Result<Job, Error> {
        let mut pause = PAUSE;
        loop {
            if let Ok(Some(ended)) = tokio::time::timeout(HELD, self.streamed(job, tell)).await {
                return Ok(ended);
            }
            // In a box of its own: thousands of these futures may rest in their streams.
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
                Err(error) => tracing::info!(job.id = job, %error, "Cannot ask about a job; asking again later"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns the final state if the stream tells it before it ends.
    async fn streamed(&self, job: &str, tell: &(dyn Fn(&Job) + Send + Sync)) -> Option<Job> {
        let id: String = url::form_urlencoded::byte_serialize(job.as_bytes()).collect();
        let path = format!("/jobs/{id}/events");
        let mut events = Box::pin(self.stream(&path)).await.ok()?;
        for _ in 0..MOST_EVENTS {
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

/// Returns the end of a job that the bridge does not know any more.
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
        error: Some("The bridge does not know this job any more.".to_owned()),
        cancel_requested: false,
    }
}
