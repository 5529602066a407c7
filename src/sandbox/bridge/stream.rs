//! The events of a job: one line of JSON whenever the word for its state changes, and nothing in between.
//!
//! The bridge looks again and again and misses what is over between two looks. The stand-in waits for a change first, so
//! that a thousand quiet streams cost nothing, and looks no sooner after it than the bridge would.

use std::{io, sync::Arc};

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::futures::Notified;
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
        if self.over {
            return None;
        }
        if self.looked && !self.waits(None).await {
            return self.broken();
        }
        self.looked = true;
        loop {
            let news = self.shared.world().job(&self.job)?.news.clone();
            // Asked for before the look, so that nothing between the two is missed.
            let changed = news.notified();
            if let Some(event) = self.look() {
                return Some(Ok(event));
            }
            if self.over {
                return None;
            }
            if !self.waits(Some(changed)).await {
                return self.broken();
            }
        }
    }

    /// Waits for a change, if there is one to wait for, and then until the next look. Returns false if the bridge
    /// restarted meanwhile.
    async fn waits(&self, changed: Option<Notified<'_>>) -> bool {
        let look = async {
            if let Some(changed) = changed {
                changed.await;
            }
            tokio::time::sleep(self.shared.options.look_every).await;
        };
        tokio::select! {
            () = self.epoch.cancelled() => false,
            () = look => true,
        }
    }

    fn broken(&mut self) -> Option<io::Result<Bytes>> {
        self.over = true;
        Some(Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// Looks at the job. Returns an event if there is news.
    fn look(&mut self) -> Option<Bytes> {
        let world = self.shared.world();
        let job = world.job(&self.job)?;
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
