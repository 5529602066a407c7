//! Supervises the tasks that run for as long as the process does. If one ends early, the process
//! exits.
//!
//! A panic in a task is logged with its cause, counted and shown by `/readyz`. Then everything is
//! stopped, and the process exits with a code other than 0, so that the service manager restarts
//! it. The store makes that safe.
//!
//! Restarting the task in the same process was rejected as a design: anything that a panic leaves
//! behind, such as a lock or a partly established connection, would remain, whereas the start of a
//! new process is tested daily. The sweeper is an exception, within its rounds: see
//! [`countersign_conversation::runtime::sweeper`].

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::telemetry;

/// Supervises tasks.
#[derive(Clone, Debug, Default)]
pub struct Supervision(Arc<Mutex<Option<Ended>>>);

/// A task before it begins: its name, and what makes it from the signal to stop.
pub(super) type Task = (&'static str, Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>);

/// Creates a task of this name.
pub(super) fn task<F>(name: &'static str, work: impl FnOnce(CancellationToken) -> F + Send + 'static) -> Task
where
    F: Future<Output = ()> + Send + 'static,
{
    (name, Box::new(move |stop| work(stop).boxed()))
}

/// A task that ended before the stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task} ended unexpectedly: {cause}")]
pub struct Ended {
    /// The name of the task.
    pub task: &'static str,
    /// The reason why it ended.
    pub cause: String,
}

impl Supervision {
    /// Starts a task that must run until `stop`, and cancels `stop` if the task ends before.
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
            supervision.record(Ended { task, cause });
            stop.cancel();
            ended.ok()
        })
    }

    fn record(&self, ended: Ended) {
        metrics::counter!("countersign_tasks_ended_total", "task" => ended.task).increment(1);
        tracing::error!(task = ended.task, cause = ended.cause, "A task ended unexpectedly, so the process ends");
        self.0.lock().expect("no holder panics").get_or_insert(ended);
    }

    /// Returns the first task that ended before the stop, if one did.
    pub fn ended(&self) -> Option<Ended> {
        self.0.lock().expect("no holder panics").clone()
    }

    /// Describes the first task that ended before the stop and its cause, if one did.
    pub fn wrong(&self) -> Option<String> {
        self.ended().map(|ended| ended.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_stops_everything_and_is_reported_with_its_cause() {
        let (tasks, stop) = (Supervision::default(), CancellationToken::new());
        let task = tasks.start("sweeper", async { panic!("out of brooms") }, &stop);
        let ended: Option<()> = task.await.unwrap();
        assert!(ended.is_none() && stop.is_cancelled());
        assert_eq!(tasks.wrong().unwrap(), "sweeper ended unexpectedly: it panicked (out of brooms)");
    }

    #[tokio::test]
    async fn an_end_before_the_stop_stops_everything_but_one_after_it_is_no_fault() {
        let (tasks, stop) = (Supervision::default(), CancellationToken::new());
        tasks.start("http", async {}, &stop).await.unwrap();
        assert!(stop.is_cancelled() && tasks.ended().is_some());
        let tasks = Supervision::default();
        tasks.start("http", async {}, &stop).await.unwrap();
        assert_eq!(tasks.ended(), None);
    }
}
