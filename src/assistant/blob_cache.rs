//! The cache for large answers of tools. Each is stored once for all threads, under the hash of its content; a state
//! contains only its name.
//!
//! Otherwise a list of everything or the vocabulary of all contexts would be saved with every step of every thread
//! that asked for it. [`offload`] takes such answers out of a state before it is saved, and [`restore`] puts them back
//! before it is used. An answer that cannot be put in the cache stays in the state.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{context::MAX_ENTRY_BYTES, replies, state::AgentState};

/// The minimum time for which a blob is kept.
pub const MIN_RETENTION: Duration = Duration::from_secs(24 * 3600);

/// The store of large answers.
#[async_trait]
pub trait BlobCache: Send + Sync {
    /// Stores bytes for at least [`MIN_RETENTION`] and returns their name. `None` if that cannot be done now.
    async fn put(&self, bytes: &[u8]) -> Option<String>;

    /// Returns the bytes with this name. `None` if they are gone or cannot be read now.
    async fn get(&self, name: &str) -> Option<Vec<u8>>;
}

/// A cache that stores nothing: every answer stays in the state.
#[derive(Clone, Copy, Debug)]
pub struct NoBlobCache;

#[async_trait]
impl BlobCache for NoBlobCache {
    async fn put(&self, _: &[u8]) -> Option<String> {
        None
    }

    async fn get(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// Returns the value with this name.
pub(super) async fn get(blobs: &dyn BlobCache, name: &str) -> Option<Value> {
    serde_json::from_slice(&blobs.get(name).await?).ok()
}

/// Moves the large answers of the turn to the cache.
pub(super) async fn offload(blobs: &dyn BlobCache, state: &mut AgentState) {
    let now = state.turn.at;
    for (key, answer) in &mut state.turn.gathered {
        let bytes = answer.to_string();
        if bytes.len() <= MAX_ENTRY_BYTES || name_of(answer).is_some() {
            continue;
        }
        let Some(name) = blobs.put(bytes.as_bytes()).await else { continue };
        state.context.move_to_cache(key, &name, now);
        *answer = json!({ "on_shelf": name });
    }
}

/// Puts the answers back into the state. If one is gone, the reply offers to ask again.
pub(super) async fn restore(blobs: &dyn BlobCache, state: &mut AgentState) {
    let names: Vec<(String, String)> = state
        .turn
        .gathered
        .iter()
        .filter_map(|(key, answer)| Some((key.clone(), name_of(answer)?.to_owned())))
        .collect();
    for (key, name) in names {
        match get(blobs, &name).await {
            Some(answer) => {
                state.turn.gathered.insert(key, answer);
            }
            None => {
                state.turn.gathered.remove(&key);
                let said = state.turn.said.clone();
                for read in state.turn.reads.iter_mut().filter(|read| read.key == key) {
                    read.failed = Some(replies::try_again(replies::not_kept(), &said));
                }
            }
        }
    }
}

/// Returns the name of the blob that holds this answer, if it was moved to the cache.
pub fn name_of(answer: &Value) -> Option<&str> {
    answer.as_object().filter(|members| members.len() == 1)?.get("on_shelf")?.as_str()
}
