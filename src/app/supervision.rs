//! The tasks that run from the start to the stop. One that ends before the stop ends the process.
//!
//! A task that panics is logged with its cause, counted and shown by `/readyz`; then everything is stopped, and the
//! process ends with an exit code that is not 0, so that the service manager starts it anew. The store makes that safe.
//!
//! The design we did not take: starting the task again in the same process. What a panic left behind, such as a lock or
//! a half-made connection, would still be there, and a process that is new is one that is tested daily. The sweeper is
//! the exception, within its rounds: see [`countersign_conversation::runtime::sweeper`].

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::telemetry;

/// Watches tasks.
#[derive(Clone, Debug, Default)]
pub struct Supervision(Arc<Mutex<Option<Ended>>>);

/// A task that ended before the stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task} ended by itself: {cause}")]
pub struct Ended {
    /// Its name.
    pub task: &'static str,
    /// The reason.
    pub cause: String,
}

impl Supervision {
    /// Starts a task that is to run until `stop`, and stops everything if it ends before.
    pub fn start<T: Send + 'static>(
        &self,
        task: &'static str,
        work: impl Future<Output = T> + Send + 'static,
        stop: &CancellationToken,
    ) -> JoinHandle<Option<T>> {
        let (supervision, stop) = (self.clone(), stop.clone());
        tokio::spawn(async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            let cause = match &ended {
                Err(panic) => format!("it panicked ({})", telemetry::public_part(&**panic)),
                Ok(_) if stop.is_cancelled() => return ended.ok(),
                Ok(_) => "nothing was left for it to do".to_owned(),
            };
            supervision.note(Ended { task, cause });
            stop.cancel();
            ended.ok()
        })
    }

    fn note(&self, ended: Ended) {
        metrics::counter!("countersign_tasks_ended_total", "task" => ended.task).increment(1);
        tracing::error!(task = ended.task, cause = ended.cause, "A task ended by itself, so the process ends");
        self.0.lock().expect("no holder panics").get_or_insert(ended);
    }

    /// Returns the first task that ended before the stop, if one did.
    pub fn ended(&self) -> Option<Ended> {
        self.0.lock().expect("no holder panics").clone()
    }

    /// Returns that task and its cause in words.
    pub fn wrong(&self) -> Option<String> {
        self.ended().map(|ended| ended.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_stops_everything_and_is_told_with_its_cause() {
        let (tasks, stop) = (Supervision::default(), CancellationToken::new());
        let task = tasks.start("sweeper", async { panic!("out of brooms") }, &stop);
        let ended: Option<()> = task.await.unwrap();
        assert!(ended.is_none() && stop.is_cancelled());
        assert_eq!(tasks.wrong().unwrap(), "sweeper ended by itself: it panicked (out of brooms)");
    }

    #[tokio::test]
    async fn so_does_an_end_without_reason_but_not_one_that_was_asked_for() {
        let (tasks, stop) = (Supervision::default(), CancellationToken::new());
        tasks.start("http", async {}, &stop).await.unwrap();
        assert!(stop.is_cancelled() && tasks.ended().is_some());
        let tasks = Supervision::default();
        tasks.start("http", async {}, &stop).await.unwrap();
        assert_eq!(tasks.ended(), None);
    }
}
