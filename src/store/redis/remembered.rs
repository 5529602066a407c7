//! Facts that this process has seen, so that it does not ask for them again. They may be outdated:
//! whoever uses one notices that from the server's answer.

use std::{collections::HashMap, hash::Hash, sync::Mutex};

/// The maximum number of facts of a kind.
const MAX_REMEMBERED: usize = 4096;

/// Facts of one kind.
#[derive(Debug)]
pub(super) struct Remembered<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, V: Clone> Remembered<K, V> {
    /// Returns what is known of `key`.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.0.lock().ok()?.get(key).cloned()
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        if let Ok(mut known) = self.0.lock() {
            known.clear();
        }
    }

    /// Remembers a fact. If there are too many, the others are dropped.
    pub(super) fn set(&self, key: K, value: V) {
        if let Ok(mut known) = self.0.lock() {
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(key, value);
        }
    }
}
