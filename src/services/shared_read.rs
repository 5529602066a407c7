//! A read that is shared by all who ask at the same time.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

/// A read of which only one runs at a time. Callers that arrive meanwhile share the next one, so each gets an answer
/// read after it asked, and a slow system is never asked by all at once.
#[derive(Debug)]
pub struct SharedRead<T> {
    begun: AtomicU64,
    /// The last answer and the number of its read.
    last: Mutex<Option<(u64, T)>>,
}

impl<T: Clone> SharedRead<T> {
    /// Returns the answer of a read that began after this call: its own, or one that another caller began since.
    pub async fn get(&self, read: impl AsyncFnOnce() -> T) -> T {
        let before = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await; // in the order of asking
        if let Some((number, answer)) = &*last
            && *number > before
        {
            return answer.clone();
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = read().await;
        *last = Some((number, answer.clone()));
        answer
    }
}

impl<T> Default for SharedRead<T> {
    fn default() -> Self {
        Self { begun: AtomicU64::new(0), last: Mutex::new(None) }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::time::{sleep, timeout};

    use super::*;

    /// Answers with the number of reads so far, a while after it was asked.
    #[derive(Default)]
    struct Slow {
        shared: SharedRead<u64>,
        reads: AtomicU64,
    }

    impl Slow {
        async fn get(&self) -> u64 {
            let read = async || {
                let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
                sleep(Duration::from_millis(100)).await;
                number
            };
            self.shared.get(read).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_meanwhile_share_the_next() {
        let slow = Arc::new(Slow::default());
        let ask = || {
            tokio::spawn({
                let slow = slow.clone();
                async move { slow.get().await }
            })
        };
        let first = ask();
        sleep(Duration::from_millis(10)).await;
        let meanwhile = [ask(), ask(), ask()];
        assert_eq!(first.await.unwrap(), 1);
        for other in meanwhile {
            assert_eq!(other.await.unwrap(), 2, "what was under way when they asked may be older than their question");
        }
        assert_eq!(slow.get().await, 3, "nothing is kept for later");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_holds_nobody_up() {
        let slow = Slow::default();
        assert!(timeout(Duration::from_millis(50), slow.get()).await.is_err());
        assert_eq!(timeout(Duration::from_millis(150), slow.get()).await, Ok(2));
    }
}
