//! The analyses that this process is having made. The bridge answers such a call only when all of it is done, so it goes
//! on beside the thread that asked, which waits for its end as for that of a job and holds nothing.
//!
//! A call that another process made is not here, and nothing brings its answer back: its thread waits until its time is
//! over, and then says so.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::{ids::ActionId, permit};
use countersign_graph::action::Outcome;
use tokio::{sync::watch, task::AbortHandle};

/// The beginning of the key of the event that an analysis has ended; the action follows.
const KEY: &str = "analysis:";

/// The analyses by the actions that have them made.
#[derive(Debug, Default)]
pub struct Analyses(Mutex<HashMap<ActionId, Arc<Running>>>);

/// An analysis that is being made.
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

/// Returns the action whose analysis the event of this key ends; `None` if it is the event of a job.
pub fn action_of(key: &str) -> Option<ActionId> {
    key.strip_prefix(KEY).map(ActionId::new)
}

impl Analyses {
    /// Begins the call of an action, under the permit of the present work.
    pub fn begin(&self, action: &ActionId, call: impl Future<Output = Outcome> + Send + 'static) {
        let (tell, outcome) = watch::channel(None);
        let permit = permit::current();
        let work = async move { tell.send_replace(Some(call.await)) };
        let task = tokio::spawn(async move {
            match permit {
                Some(permit) => permit.during(work).await,
                None => work.await, // and nothing is sent
            }
        });
        let running = Arc::new(Running { outcome, task: task.abort_handle() });
        self.all().insert(action.clone(), running);
    }

    /// Returns the outcome of an action's analysis once it has ended; `None` if this process does not make it.
    pub async fn ended(&self, action: &ActionId) -> Option<Outcome> {
        let mut outcome = self.all().get(action)?.outcome.clone();
        let ended = outcome.wait_for(Option::is_some).await.ok()?;
        ended.clone()
    }

    /// Does the same, but waits no longer than this.
    pub async fn ended_within(&self, action: &ActionId, within: Duration) -> Option<Outcome> {
        tokio::time::timeout(within, self.ended(action)).await.ok().flatten()
    }

    /// Returns true if this process is having the analysis of an action made, or has its outcome.
    pub fn has(&self, action: &ActionId) -> bool {
        self.all().contains_key(action)
    }

    /// Forgets the analysis of an action; if it is not over, its call is given up.
    pub fn forget(&self, action: &ActionId) {
        self.all().remove(action);
    }

    /// Gives up every call that is not over, as at the end of the process.
    pub fn give_up(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ActionId, Arc<Running>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
