//! The calls that this process is making, by their actions.
//!
//! A call that takes long runs in a task of its own, and the thread that requested it looks for its end here. A call of
//! another process is not here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use countersign_core::ids::ActionId;

/// The calls in progress, each with its state.
#[derive(Debug)]
pub struct CallsInProgress<T>(Mutex<HashMap<ActionId, Arc<T>>>);

impl<T> Default for CallsInProgress<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> CallsInProgress<T> {
    /// Returns the call of an action.
    pub fn get(&self, action: &ActionId) -> Option<Arc<T>> {
        self.all().get(action).cloned()
    }

    /// Adds the call of an action, in place of an earlier one.
    pub fn add(&self, action: &ActionId, call: T) -> Arc<T> {
        let call = Arc::new(call);
        self.all().insert(action.clone(), call.clone());
        call
    }

    /// Removes the call of an action.
    pub fn remove(&self, action: &ActionId) -> Option<Arc<T>> {
        self.all().remove(action)
    }

    /// Removes the calls that are over, if there are at least `most` calls.
    pub fn tidy(&self, most: usize, is_over: impl Fn(&T) -> bool) {
        let mut all = self.all();
        if all.len() >= most {
            all.retain(|_, call| !is_over(call));
        }
    }

    /// Removes all calls.
    pub fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ActionId, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
