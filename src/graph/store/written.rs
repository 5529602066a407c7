//! Wakes those who wait for a thread's actions or for a register to change, when this process writes them.

use std::{collections::HashMap, fmt, sync::Mutex};

use countersign_core::ids::ThreadId;
use tokio::sync::watch;

/// The number of keys above which those that nobody watches any more are removed.
const MAX_IDLE: usize = 1000;

/// The watchers of what this process writes, by the thread or the key of the register. Nobody is woken by another process.
#[derive(Default)]
pub struct Written(Mutex<HashMap<String, watch::Sender<()>>>);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}

impl Written {
    /// Watches the actions of a thread.
    pub fn thread(&self, thread: &ThreadId) -> watch::Receiver<()> {
        self.watch(thread.to_string())
    }

    /// Watches a register.
    pub fn register(&self, key: &str) -> watch::Receiver<()> {
        self.watch(key.to_owned())
    }

    fn watch(&self, key: String) -> watch::Receiver<()> {
        let mut watched = self.0.lock().expect("no holder panics");
        if watched.len() >= MAX_IDLE {
            watched.retain(|_, watchers| watchers.receiver_count() > 0);
        }
        watched.entry(key).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Wakes the watchers of a thread.
    pub fn on_thread(&self, thread: &ThreadId) {
        let mut watched = self.0.lock().expect("no holder panics");
        if !watched.is_empty() {
            wake(&mut watched, &thread.to_string());
        }
    }

    /// Wakes the watchers of a register.
    pub fn on_register(&self, key: &str) {
        wake(&mut self.0.lock().expect("no holder panics"), key);
    }
}

/// Wakes the watchers of a key, and forgets it if nobody watches any more.
fn wake(watched: &mut HashMap<String, watch::Sender<()>>, key: &str) {
    if watched.get(key).is_some_and(|watchers| watchers.send(()).is_err()) {
        watched.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_watchers_of_what_was_written_are_woken() {
        let written = Written::default();
        let thread = ThreadId { team: "T1".into(), channel: "C1".into(), root: "1.1".into() };
        let (mut of_thread, mut of_register) = (written.thread(&thread), written.register("a"));
        written.on_thread(&thread);
        of_thread.changed().await.unwrap();
        assert!(!of_register.has_changed().unwrap());
        written.on_register("a");
        of_register.changed().await.unwrap();
        drop((of_thread, of_register));
        written.on_thread(&thread);
        written.on_register("a");
        assert!(written.0.lock().unwrap().is_empty(), "nobody watches any more");
    }
}
