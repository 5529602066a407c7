//! Facts that this process has seen lately, so that it does not ask for them again. They may be outdated: whoever uses one
//! notices that, or says how old it may be.

use std::{borrow::Borrow, collections::HashMap, hash::Hash, sync::Mutex, time::Duration};

use crate::clock::Timestamp;

/// Facts by their keys. If there are too many, all are dropped.
#[derive(Debug)]
pub struct Recent<K, V> {
    max: usize,
    facts: Mutex<HashMap<K, V>>,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    /// Creates a cache of at most `max` facts.
    pub fn new(max: usize) -> Self {
        Self { max, facts: Mutex::default() }
    }

    /// Returns the fact about `key`, if it is known.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.facts.lock().ok()?.get(key).cloned()
    }

    /// Notes a fact.
    pub fn set(&self, key: K, fact: V) {
        if let Ok(mut facts) = self.facts.lock() {
            if facts.len() >= self.max {
                facts.clear();
            }
            facts.insert(key, fact);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        if let Ok(mut facts) = self.facts.lock() {
            facts.clear();
        }
    }
}

impl<K: Hash + Eq, V: Clone> Recent<K, (V, Timestamp)> {
    /// Returns the fact about `key` if it was noted with a time that is less than `max_age` before `now`.
    pub fn younger<Q: Hash + Eq + ?Sized>(&self, key: &Q, max_age: Duration, now: Timestamp) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.get(key).filter(|(_, at)| now.since(*at) < max_age).map(|(fact, _)| fact)
    }
}
