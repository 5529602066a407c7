//! The event stream of a job: one event for each change of its state.
//!
//! The bridge polls the job and misses a state that lasts less than the interval. The stand-in
//! first waits for a change, so that a thousand idle streams cost nothing, and then for the
//! interval of the bridge.

use std::{io, sync::Arc};

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;

use super::{jobs::Status, server::Shared};

/// The state of the event stream of a job.
struct Follower {
    shared: Arc<Shared>,
    job: String,
    last_sent: Option<Status>,
    has_polled: bool,
    cut: bool,
    ended: bool,
    epoch: CancellationToken,
}

/// Returns the events of a job as the body of an answer. An unknown job has none. A restart closes
/// the connection.
pub(crate) fn events(shared: Arc<Shared>, job: &str, cut: bool, epoch: CancellationToken) -> Body {
    let job = job.to_owned();
    let follower = Follower { shared, job, last_sent: None, has_polled: false, cut, ended: false, epoch };
    Body::from_stream(stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((event, follower))
    }))
}

impl Follower {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.ended {
            return None;
        }
        if self.has_polled && !self.wait(None).await {
            return self.broken();
        }
        self.has_polled = true;
        loop {
            let news = self.shared.world().job(&self.job)?.news.clone();
            // Created before the job is read, so that no change in between is missed.
            let changed = news.notified();
            if let Some(event) = self.poll() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if !self.wait(Some(changed)).await {
                return self.broken();
            }
        }
    }

    /// Waits for the change, if any, and then for the polling interval. Returns false if the bridge
    /// was restarted in the meantime.
    async fn wait(&self, changed: Option<Notified<'_>>) -> bool {
        let poll = async {
            if let Some(changed) = changed {
                changed.await;
            }
            tokio::time::sleep(self.shared.options.look_every).await;
        };
        tokio::select! {
            () = self.epoch.cancelled() => false,
            () = poll => true,
        }
    }

    fn broken(&mut self) -> Option<io::Result<Bytes>> {
        self.ended = true;
        Some(Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// Reads the job. Returns an event if its state has changed.
    fn poll(&mut self) -> Option<Bytes> {
        let world = self.shared.world();
        let job = world.job(&self.job)?;
        if self.last_sent == Some(job.status) {
            return None;
        }
        self.last_sent = Some(job.status);
        self.ended = job.status.is_final() || self.cut;
        if self.cut && job.status.is_final() {
            return None;
        }
        Some(Bytes::from(format!("data: {}\n\n", job.in_stream())))
    }
}
