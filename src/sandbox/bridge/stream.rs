//! The events of a job: one line of JSON whenever the word for its state changes, and nothing in between.

use std::{io, sync::Arc};

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio_util::sync::CancellationToken;

use super::{jobs::Status, server::Shared};

/// The follower of a job.
struct Follower {
    shared: Arc<Shared>,
    job: String,
    told: Option<Status>,
    looked: bool,
    cut: bool,
    over: bool,
    epoch: CancellationToken,
}

/// Returns the events of a job as the body of an answer. Of an unknown job there are none. A restart breaks the line.
pub(crate) fn events(shared: Arc<Shared>, job: &str, cut: bool, epoch: CancellationToken) -> Body {
    let job = job.to_owned();
    let follower = Follower { shared, job, told: None, looked: false, cut, over: false, epoch };
    Body::from_stream(stream::unfold(follower, |mut follower| async move {
        let event = follower.next().await?;
        Some((event, follower))
    }))
}

impl Follower {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while !self.over {
            if self.looked {
                tokio::select! {
                    () = self.epoch.cancelled() => {
                        self.over = true;
                        return Some(Err(io::ErrorKind::ConnectionReset.into()));
                    }
                    () = tokio::time::sleep(self.shared.options.look_every) => {}
                }
            }
            self.looked = true;
            let event = self.look();
            if event.is_some() {
                return event.map(Ok);
            }
        }
        None
    }

    /// Looks at the job. Returns an event if there is news.
    fn look(&mut self) -> Option<Bytes> {
        let world = self.shared.world();
        let Some(job) = world.job(&self.job) else {
            self.over = true;
            return None;
        };
        if self.told == Some(job.status) {
            return None;
        }
        self.told = Some(job.status);
        self.over = job.status.is_final() || self.cut;
        if self.cut && job.status.is_final() {
            return None;
        }
        Some(Bytes::from(format!("data: {}\n\n", job.in_stream())))
    }
}
