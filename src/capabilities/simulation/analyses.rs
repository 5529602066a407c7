//! The analyses that this process has requested. The bridge answers such a call only when the whole analysis is done,
//! so the call runs in a task of its own, and the thread waits for its end as for the end of a job, without holding
//! anything.
//!
//! A call of another process is not listed here, and its answer cannot be recovered: its thread waits until the
//! deadline and then reports that.

use std::time::Duration;

use countersign_capabilities::CallsInProgress;
use countersign_core::{ids::ActionId, send_permit};
use countersign_graph::action::Outcome;
use tokio::{sync::watch, task::AbortHandle};
use tracing::Instrument as _;

/// The prefix of the key of the event that an analysis has ended; the id of the action follows.
const KEY: &str = "analysis:";

/// The analyses by their actions.
#[derive(Debug, Default)]
pub struct Analyses(CallsInProgress<Running>);

/// A requested analysis.
#[derive(Debug)]
struct Running {
    outcome: watch::Receiver<Option<Outcome>>,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the key of the event that the analysis of an action has ended.
pub fn key(action: &ActionId) -> String {
    format!("{KEY}{action}")
}

/// Returns the action of the analysis with this event key; `None` if it is the key of a job.
pub fn action_of(key: &str) -> Option<ActionId> {
    key.strip_prefix(KEY).map(ActionId::new)
}

impl Analyses {
    /// Begins the call of an action, under the current permit.
    pub fn begin(&self, action: &ActionId, call: impl Future<Output = Outcome> + Send + 'static) {
        let (result, outcome) = watch::channel(None);
        let permit = send_permit::current();
        let work = async move { result.send_replace(Some(call.await)) };
        let work = async move {
            match permit {
                Some(permit) => permit.during(work).await,
                None => work.await, // without a permit, no request is sent
            }
        };
        let task = tokio::spawn(work.in_current_span());
        self.0.add(action, Running { outcome, task: task.abort_handle() });
    }

    /// Waits for the end of an action's analysis and returns its outcome; `None` if this process did not request it.
    pub async fn ended(&self, action: &ActionId) -> Option<Outcome> {
        let mut outcome = self.0.get(action)?.outcome.clone();
        let ended = outcome.wait_for(Option::is_some).await.ok()?;
        ended.clone()
    }

    /// Does the same, but waits at most this long.
    pub async fn ended_within(&self, action: &ActionId, within: Duration) -> Option<Outcome> {
        tokio::time::timeout(within, self.ended(action)).await.ok().flatten()
    }

    /// Returns true if this process has requested the analysis of an action, whether or not it has ended.
    pub fn has(&self, action: &ActionId) -> bool {
        self.0.get(action).is_some()
    }

    /// Removes the analysis of an action and aborts its call if it is still running.
    pub fn forget(&self, action: &ActionId) {
        self.0.remove(action);
    }

    /// Removes all analyses and aborts their calls, at the end of the process.
    pub fn give_up(&self) {
        self.0.clear();
    }
}
